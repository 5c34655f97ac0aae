//! The language by example, beyond what the vectors show.

use gotemplate::{Engine, Error, ErrorKind, Limits};
use govalue::{Duration, IntType, Map, MapShape, Time, Value, Zone};

fn data() -> Value {
    let user = |name: &str, age: i64| {
        Value::from(Map::from_iter([("name", Value::from(name)), ("age", age.into())]))
    };
    let mut environ = Map::with_shape(MapShape::Strings);
    environ.insert("HOME", "/root");
    Map::from_iter([
        ("users", Value::array([user("Ann", 30), user("Bob", 25)])),
        ("nothing", Value::Nil),
        ("environ", environ.into()),
        ("n", 3.into()),
        ("wide", Value::Sized(IntType::Int64, 2)),
        ("half", 0.5.into()),
        ("bytes", Value::bytes(*b"hi")),
        ("time", Time::from_date(2024, 2, 29, 13, 4, 5, 0, Zone::UTC).into()),
        ("span", Duration(90 * Duration::MINUTE.0).into()),
    ])
    .into()
}

fn render(text: &str) -> Result<String, Error> {
    Engine::new().render("t", text, &data())
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, want) in cases {
        match render(text) {
            Ok(got) => assert_eq!(got, *want, "{text}"),
            Err(error) => panic!("{text}\n{error}"),
        }
    }
}

#[track_caller]
fn fails(kind: ErrorKind, texts: &[&str]) {
    for text in texts {
        match render(text) {
            Ok(got) => panic!("{text}: {got}"),
            Err(error) => assert_eq!(error.kind(), kind, "{text}\n{error}"),
        }
    }
}

#[test]
fn nothing_and_missing() {
    check(&[
        ("{{ .nope }}|{{ .nope.deeper }}|{{ .nothing }}", "<no value>|<no value>|<no value>"),
        ("{{ (.nothing).deeper }}", "<no value>"),
        ("{{ $x := .nothing }}{{ $x.deeper }}", "<no value>"),
        ("{{ .environ.NOPE }}|{{ index .environ \"NOPE\" }}", "<no value>|"),
        ("{{ print .nope .nothing nil }}", "<nil> <nil> <nil>"),
        ("{{ .nope | html }}", "&lt;no value&gt;"),
        ("{{ range .nothing }}x{{ else }}none{{ end }}", "none"),
        ("{{ len (keys .nope) }}", "0"),
        (
            "{{ toJson .nope }}{{ toJson (regexFindAll \"z\" \"a\" 1) }}{{ toJson (list) }}",
            "nullnull[]",
        ),
        // RE2 does not repeat a repetition, and repeats within a class nothing.
        (r#"{{ regexMatch "a**" "a" }}{{ regexMatch "[a**]" "*" }}"#, "falsetrue"),
        (r#"{{ b64dec "!!" }}|{{ b64dec "YR==" }}"#, "illegal base64 data at input byte 0|a"),
    ]);
    fails(ErrorKind::Type, &["{{ .nothing.deeper }}", "{{ .n.deeper }}", "{{ nil }}"]);
    fails(
        ErrorKind::Arguments,
        &["{{ upper .nope }}", "{{ upper .nothing }}", "{{ keys .nothing }}"],
    );
}

#[test]
fn arguments_are_typed_as_in_go() {
    check(&[
        ("{{ repeat 2.0 \"a\" }}", "aa"),
        ("{{ round 1.5 0 0.6 }}", "1"),
        ("{{ trunc (int .wide) \"abc\" }}", "ab"),
        ("{{ eq .n 3 }}{{ eq .wide 2 }}{{ lt .wide .n }}", "truetruetrue"),
    ]);
    fails(
        ErrorKind::Arguments,
        &[
            "{{ trunc .wide \"abc\" }}",
            "{{ repeat 2.5 \"a\" }}",
            "{{ upper 1 }}",
            "{{ get .environ \"HOME\" }}",
            "{{ ternary 1 2 \"x\" }}",
            "{{ div 1 2 3 }}",
            "{{ upper }}",
            "{{ .users \"x\" }}",
            "{{ 1 | (print) }}",
            "{{ keys \"text\" }}",
        ],
    );
}

#[test]
fn control_flow() {
    check(&[
        ("{{ range $i, $u := .users }}{{ $i }}{{ $u.name }}{{ end }}", "0Ann1Bob"),
        (
            "{{ range .users }}{{ if eq .name \"Bob\" }}{{ break }}{{ end }}{{ .name }}{{ end }}",
            "Ann",
        ),
        ("{{ range $n := 3 }}{{ if eq $n 1 }}{{ continue }}{{ end }}{{ $n }}{{ end }}", "02"),
        ("{{ range .wide }}{{ typeOf . }} {{ end }}", "int64 int64 "),
        ("{{ range .bytes }}{{ . }} {{ end }}", "104 105 "),
        ("{{ $last := 0 }}{{ range $last = until 4 }}{{ end }}{{ $last }}", "3"),
        ("{{ with .nope }}a{{ else with .n }}b{{ . }}{{ else }}c{{ end }}", "b3"),
        ("{{ if false }}a{{ else if $x := 5 }}{{ $x }}{{ end }}", "5"),
        ("{{ $x := 1 }}{{ range 2 }}{{ $x = add $x 1 }}{{ $x := 9 }}{{ end }}{{ $x }}", "3"),
        ("{{ range list 1 nil }}{{ . }},{{ end }}", "1,<no value>,"),
    ]);
    fails(
        ErrorKind::Syntax,
        &[
            "{{ if true }}",
            "{{ end }}",
            "{{ break }}",
            "{{ range 1 }}{{ else }}{{ break }}{{ end }}",
            "{{ if 1 }}{{ else with 2 }}{{ end }}",
            "{{ if 1 }}{{ else }}{{ else }}{{ end }}",
            "{{ $a, $b := 1 }}",
            "{{ range $a, $b, $c := 1 }}{{ end }}",
            "{{ 1 | 2 }}",
            "{{ }}",
            "{{ if }}{{ end }}",
            "{{ range $a, 1 := 2 }}{{ end }}",
        ],
    );
    fails(ErrorKind::Type, &["{{ range \"abc\" }}{{ end }}", "{{ range $i, $v := 3 }}{{ end }}"]);
}

#[test]
fn templates_and_blocks() {
    check(&[
        (
            "{{ define \"r\" }}{{ . }}{{ $ }}{{ end }}{{ template \"r\" 1 }}{{ template \"r\" }}",
            "11<no value><no value>",
        ),
        ("{{ block \"b\" .n }}<{{ . }}>{{ end }}{{ template \"b\" 4 }}", "<3><4>"),
        (
            "{{ define \"r\" }}{{ if . }}{{ . }}{{ template \"r\" (int (sub . 1)) }}{{ end }}{{ end }}{{ template \"r\" 3 }}",
            "321",
        ),
        ("{{ define \"e\" }} {{ end }}{{ define \"e\" }}x{{ end }}{{ template \"e\" }}", "x"),
    ]);
    fails(ErrorKind::UndefinedTemplate, &["{{ template \"nope\" }}"]);
    fails(
        ErrorKind::UndefinedVariable,
        &["{{ $x := 1 }}{{ define \"r\" }}{{ $x }}{{ end }}", "{{ $y = 1 }}"],
    );
    fails(
        ErrorKind::Syntax,
        &["{{ define \"r\" }}a{{ end }}{{ define \"r\" }}b{{ end }}", "{{ template r }}"],
    );
}

#[test]
fn several_sources_make_one_set() {
    let template = Engine::new()
        .parse_all([
            ("main", "{{ template \"greet\" .n }}{{ template \"other\" . }}"),
            ("parts", "{{ define \"greet\" }}hi {{ . }}{{ end }}"),
            ("other", "!"),
        ])
        .unwrap();
    assert_eq!(template.render(&data()).unwrap(), "hi 3!");
    assert_eq!(template.render_named("greet", &"you".into()).unwrap(), b"hi you");
    assert_eq!(
        template.render_named("nope", &Value::Nil).unwrap_err().kind(),
        ErrorKind::UndefinedTemplate
    );
    let mut names: Vec<&str> = template.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["greet", "main", "other", "parts"]);
}

#[test]
fn literals() {
    check(&[
        (
            "{{ 1_000 }} {{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1e3 }} {{ 0x1p4 }} {{ 'a' }}",
            "1000 31 3 15 1000 16 97",
        ),
        ("{{ 1i }} {{ 1+2i }} {{ typeOf 1i }} {{ eq 1i 1i }}", "(0+1i) (1+2i) complex128 true"),
        (r#"{{ "\x41\101\u00e9\"" }}{{ `a\n` }}"#, r#"AAé"a\n"#),
        ("{{ true }}{{ false }}", "truefalse"),
        ("{{ \"a\" | }}", "a"),
    ]);
}

#[test]
fn methods_of_times_and_spans() {
    check(&[
        (
            "{{ .time.Year }} {{ .time.Month }} {{ .time.Weekday }} {{ .time.Unix }}",
            "2024 February Thursday 1709211845",
        ),
        ("{{ .time.Format \"Jan 2\" }} {{ \"2006\" | .time.Format }}", "Feb 29 2024"),
        ("{{ (.time.AddDate 1 0 0).Format \"2006-01-02\" }}", "2025-03-01"),
        ("{{ (.time.Add .span).Hour }} {{ .span.Hours }} {{ .span }}", "14 1.5 1h30m0s"),
        ("{{ .time.Before (.time.Add 1) }} {{ (.time.Sub .time) }}", "true 0s"),
        (
            "{{ $v := semver \"v1.2.3-rc.1\" }}{{ $v }} {{ $v.Original }} {{ $v.IncPatch }} {{ $v.LessThan (semver \"1.2.3\") }}",
            "1.2.3-rc.1 v1.2.3-rc.1 1.2.3 true",
        ),
    ]);
    fails(ErrorKind::Type, &["{{ .time.Nope }}", "{{ .n.String }}"]);
}

#[test]
fn types_are_remembered() {
    check(&[
        (
            "{{ typeOf (splitList \",\" \"a,b\") }} {{ typeOf (until 2) }} {{ typeOf (split \",\" \"a\") }}",
            "[]string []int map[string]string",
        ),
        ("{{ printf \"%T %#v\" (splitList \",\" \"a\") (until 2) }}", "[]string []int{0, 1}"),
        ("{{ deepEqual (list \"a\") (splitList \",\" \"a\") }}", "false"),
        (
            "{{ typeOf (chunk 1 (list 1)) }} {{ kindOf (semver \"1\") }} {{ typeIsLike \"semver.Version\" (semver \"1\") }}",
            "[][]interface {} ptr true",
        ),
        (
            "{{ typeOf (add 1 2) }} {{ typeOf (len \"a\") }} {{ typeOf (index \"a\" 0) }} {{ typeOf nil }}",
            "int64 int uint8 <nil>",
        ),
    ]);
}

#[test]
fn bytes_survive() {
    let template = Engine::new().parse("t", "{{ trunc 2 \"héllo\" | printf \"%s|\" }}").unwrap();
    assert_eq!(template.render_bytes(&data()).unwrap(), b"h\xc3|");
    assert_eq!(template.render(&data()).unwrap(), "h\u{fffd}|");
}

#[test]
fn errors_point() {
    let error = render("line one\n  {{ .n | upper }}\n").unwrap_err();
    assert_eq!((error.template(), error.line(), error.column()), ("t", 2, 11));
    assert_eq!(
        error.to_string(),
        "wrong type for value; expected string; got int\n --> t:2:11\n  |\n2 |   {{ .n | upper }}\n  |           ^^^^^"
    );
    let error = render("{{ index .users 9 }}").unwrap_err();
    assert_eq!(error.message(), "error calling index: index out of range: 9");
}

#[test]
fn functions_of_the_caller() {
    let engine = Engine::new()
        .function("fetch", |_| Err(std::io::Error::other("no route").into()))
        .function("count", |arguments| Ok(arguments.len().into()))
        .function("upper", |_| Ok("mine".into()));
    assert_eq!(engine.render("t", "{{ 3 | count 1 .nope }}{{ upper }}", &data()).unwrap(), "3mine");
    let error = engine.render("t", "{{ fetch }}", &data()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Function);
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn the_clock_is_the_callers() {
    let noon = || Time::from_date(2030, 1, 2, 12, 0, 0, 0, Zone::load("Europe/Zurich").unwrap());
    let engine = Engine::new().clock(noon);
    let check = |text: &str, want: &str| {
        assert_eq!(engine.render("t", text, &data()).unwrap(), want, "{text}");
    };
    check("{{ now }}", "2030-01-02 12:00:00 +0100 CET");
    check("{{ date \"15:04\" 0 }}", "01:00");
    check("{{ ago (now.Add -60000000000) }}", "1m0s");
    check("{{ durationRound (now.AddDate -2 0 0) }}", "2y");
}

#[cfg(feature = "crypto")]
#[test]
fn ciphers_and_hashes() {
    check(&[
        ("{{ encryptAES \"key\" \"secret text\" | decryptAES \"key\" }}", "secret text"),
        ("{{ hasPrefix \"me:$2a$10$\" (htpasswd \"me\" \"pw\") }}", "true"),
        ("{{ htpasswd \"a:b\" \"pw\" }}", "invalid username: a:b"),
        ("{{ len (bcrypt \"pw\") }}", "60"),
        ("{{ env \"HOME\" }}{{ expandenv \"a$HOME-${X}$$b\" }}{{ getHostByName \"x\" }}", "a-b"),
    ]);
    fails(
        ErrorKind::Function,
        &["{{ decryptAES \"k\" \"AAAA\" }}", "{{ decryptAES \"k\" \"!\" }}"],
    );
}

#[test]
fn limits_can_be_set() {
    let limits = Limits { steps: 10, ..Limits::default() };
    let error = Engine::new().limits(limits).render("t", "{{ range 99 }}{{ . }}{{ end }}", &data());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn members_with_another_initial_stay_found_in_maps_that_were_changed() {
    let info = Map::from_iter([("os", "linux")]).with_any_initial();
    let host = Map::from_iter([("info", Value::from(info))]).with_any_initial();
    let data = Value::from(Map::from_iter([("host", host)]));
    for (template, wanted) in [
        ("{{ .host.Info.Os }} {{ .host.info.os }} {{ .host.Info.Os }}", "linux linux linux"),
        (
            "{{ $_ := set .host.info \"a\" 1 }}{{ .host.Info.Os }} {{ .host.info.A }}",
            "linux <no value>",
        ),
        ("{{ $_ := unset .host.info \"os\" }}{{ .host.info.Os }}", "<no value>"),
        ("{{ $_ := set .host \"x\" 1 }}{{ hasKey .host \"Info\" }} {{ .Host }}", "true <no value>"),
    ] {
        let rendered = Engine::new().render("t", template, &data).unwrap();
        assert_eq!(rendered, wanted, "{template}");
    }
}
