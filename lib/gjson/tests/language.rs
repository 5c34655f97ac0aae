//! The language by example, over a text of our own.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use gjson::{Error, Kind};

const SITE: &str = r#"{
  "site": {"name": "north", "open": true, "rack.a": {"units": 42}},
  "hosts": [
    {"name": "web1", "cpus": 4, "roles": ["web", "tls"], "addr": {"v4": "10.0.0.1"}},
    {"name": "web2", "cpus": 8, "roles": ["web"], "addr": {"v4": "10.0.0.2", "v6": "fd00::2"}},
    {"name": "db1", "cpus": 16, "roles": [], "addr": {}}
  ],
  "matrix": [[1, 2], [3, [4]], []],
  "tags": ["blue", "green", "black"],
  "packed": "{\"k\":[1,2]}"
}"#;

fn raw(path: &str) -> String {
    gjson::get(SITE, path).unwrap().raw().to_owned()
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (path, want) in cases {
        assert_eq!(raw(path), *want, "{path}");
    }
}

#[test]
fn names_and_indexes() {
    check(&[
        ("site.name", r#""north""#),
        ("hosts.1.cpus", "8"),
        ("hosts.01.cpus", "8"),
        ("hosts.-1", ""),
        ("hosts.3", ""),
        ("hosts.name", ""),
        ("site.name.x", ""),
        ("", ""),
        (".", ""),
    ]);
}

#[test]
fn wildcards_and_escapes() {
    check(&[
        ("s*.n?me", r#""north""#),
        ("*.open", "true"),
        ("*.0.name", r#""web1""#),
        (r"site.rack\.a.units", "42"),
        (r"site.rack*.units", "42"),
        (r"si\*", ""),
        ("hosts.*", ""),
    ]);
}

#[test]
fn arrays() {
    check(&[
        ("hosts.#", "3"),
        ("hosts.#.name", r#"["web1","web2","db1"]"#),
        ("hosts.#.addr.v6", r#"["fd00::2"]"#),
        ("hosts.#.roles.#", "[2,1,0]"),
        ("hosts.#.nope", "[]"),
        ("site.#", ""),
        ("matrix.#.0", "[1,3]"),
    ]);
}

#[test]
fn queries() {
    check(&[
        (r#"hosts.#(name=="web2").cpus"#, "8"),
        (r#"hosts.#[name="web2"].cpus"#, "8"),
        ("hosts.#(cpus>4)#.name", r#"["web2","db1"]"#),
        ("hosts.#(cpus>=4)#|#", "3"),
        ("hosts.#(cpus<8).name", r#""web1""#),
        ("hosts.#(cpus!=8)#.cpus", "[4,16]"),
        (r#"hosts.#(name%"web?")#.cpus"#, "[4,8]"),
        (r#"hosts.#(name!%"web*").cpus"#, "16"),
        (r#"hosts.#(roles.#(=="tls")).name"#, r#""web1""#),
        ("hosts.#(roles.#==0).name", r#""db1""#),
        ("hosts.#(addr.v6).name", r#""web2""#),
        ("hosts.#(addr.v6==~*)#.name", r#"["web2"]"#),
        ("hosts.#(addr.v6==~null)#.name", r#"["web1","db1"]"#),
        ("hosts.#(cpus>99)#", "[]"),
        ("hosts.#(cpus>99)", ""),
        (r#"tags.#(%"bl*")#"#, r#"["blue","black"]"#),
        (r#"tags.#(>"b")#.x"#, "[]"),
    ]);
}

#[test]
fn dots_and_pipes() {
    check(&[
        ("hosts|0|name", r#""web1""#),
        ("hosts.#.name|0", r#""web1""#),
        ("hosts.#.name.0", "[]"),
        ("hosts.#(cpus>4)#|0.name", r#""web2""#),
        ("hosts.#(cpus>4)#.roles|@flatten", r#"["web"]"#),
        ("hosts.#.roles.@reverse|0", r#"["tls","web"]"#),
        ("hosts.#.roles|@reverse|0", "[]"),
    ]);
}

#[test]
fn modifiers() {
    check(&[
        ("tags.@reverse.0", r#""black""#),
        ("matrix.@flatten", "[1, 2,3, [4]]"),
        (r#"matrix.@flatten:{"deep":true}"#, "[1,2,3,4]"),
        ("hosts.1.addr.@keys", r#"["v4","v6"]"#),
        ("hosts.1.addr.@values|1", r#""fd00::2""#),
        ("hosts.#.addr|@join", r#"{"v4":"10.0.0.2","v6":"fd00::2"}"#),
        ("packed.@fromstr.k.1", "2"),
        ("matrix.@ugly.@tostr", r#""[[1,2],[3,[4]],[]]""#),
        (r#"{"n":hosts.#.name,"c":hosts.#.cpus}.@group|1"#, r#"{"n":"web2","c":8}"#),
        ("@dig:v4", r#"["10.0.0.1","10.0.0.2"]"#),
        ("@dig:#(cpus>4)|0.name", r#""web2""#),
        ("site.@this.open", "true"),
        ("site.@valid.name", r#""north""#),
        (
            "site.@pretty",
            "{\n  \"name\": \"north\",\n  \"open\": true,\n  \"rack.a\": {\n    \"units\": 42\n  }\n}\n",
        ),
        ("site.@unknown", ""),
    ]);
}

#[test]
fn multipaths_and_literals() {
    check(&[
        ("[site.name,tags.#,nope]", r#"["north",3]"#),
        (r#"{site.name,"n":tags.#,tags.#}"#, r#"{"name":"north","n":3,"_":3}"#),
        ("hosts.#.{name,cpus}|1", r#"{"name":"web2","cpus":8}"#),
        ("hosts.#(cpus>4)#.[name,cpus]", r#"[["web2",8],["db1",16]]"#),
        (r#"{"a":{"b":site.name}}.a.b"#, r#""north""#),
        (
            r#"{site.name,"kind":!"site","list":![1]}"#,
            r#"{"name":"north","kind":"site","list":[1]}"#,
        ),
        ("!true", "true"),
        ("!", ""),
        ("[site.name", ""),
    ]);
}

#[test]
fn lines() {
    let json = "{\"n\":1}\n{\"n\":2}\n[3]\n4";
    for (path, want) in
        [("..#", "4"), ("..1.n", "2"), ("..#.n", "[1,2]"), ("..3", "4"), ("..4", "")]
    {
        assert_eq!(gjson::get(json, path).unwrap().raw(), want, "{path}");
    }
}

#[test]
fn what_is_not_json() {
    for (json, path, want) in [
        ("{\"a\":1", "a", "1"),
        ("junk {\"a\":1} junk", "a", "1"),
        ("{\"a\":{\"b\":1},\"a\":{\"c\":2}}", "a.c", "2"),
        ("{\"a\":1,\"a\":2}", "a", "1"),
        ("{a:1}", "a", ""),
        ("\"{[1]\"", "0", ""),
        ("{\"a\":\"x", "a", ""),
    ] {
        assert_eq!(gjson::get(json, path).unwrap().raw(), want, "{json}");
    }
    assert_eq!(gjson::get("{\"a\":tru}", "a").unwrap().kind(), Kind::True);
}

#[test]
fn bounds() {
    let deep = "[".repeat(100_000);
    for path in ["0.".repeat(50_000), "#.".repeat(50_000), "#(".repeat(1_000) + &")".repeat(1_000)]
    {
        assert_eq!(gjson::get(&deep, &path), Err(Error::TooDeep));
    }
    let multipath = "[".repeat(10_000) + &"]".repeat(10_000);
    assert_eq!(gjson::get("{}", &multipath), Err(Error::TooDeep));
    let doubling = "[@this,@this]|".repeat(64) + "0";
    assert_eq!(gjson::get("{}", &doubling), Err(Error::TooMuchWork));
    assert_eq!(gjson::get(&deep, "@this").unwrap().value(), Err(Error::TooDeep));
    assert_eq!(gjson::get("{}", &"(".repeat(1_000_000)).unwrap().raw(), "");
}
