use govalue::{Map, Value};

use crate::{ErrorKind, Function, Limits, MemoryLoader, Param, Set, Variables};

fn data() -> Value {
    let user = |name: &str, age: i64| {
        Value::from(Map::from_iter([("name", Value::from(name)), ("age", age.into())]))
    };
    let map = Map::from_iter([("b", Value::from(2)), ("a", 1.into()), ("null", Value::Nil)]);
    Map::from_iter([
        ("one", Value::from(1)),
        ("half", 0.5.into()),
        ("text", "héllo".into()),
        ("no", false.into()),
        ("null", Value::Nil),
        ("list", Value::array([3.into(), 1.into(), 2.into()])),
        ("empty", Value::array([])),
        ("map", map.into()),
        ("users", Value::array([user("Ann", 30), user("Bob", 25)])),
    ])
    .into()
}

fn variables() -> Variables {
    let mut variables = Variables::new();
    variables.set("data", data());
    variables.set_function(
        "add",
        Function::typed(&[Param::Int, Param::Int], |args| {
            Ok((args[0].as_int().unwrap_or(0) + args[1].as_int().unwrap_or(0)).into())
        }),
    );
    variables.set_function("fail", Function::new(0..=9, |_| Err("out of luck".into())));
    variables.set_function("nothing", Function::new(0..=0, |_| Ok(Value::Nil)));
    variables
}

fn run_set(set: &Set, text: &str) -> Result<String, ErrorKind> {
    let template = set.parse("t", text).map_err(|error| error.kind())?;
    let context = Map::from_iter([("Data", data())]).into();
    match set.render(&template, &variables(), &context) {
        Ok(text) => Ok(text.to_string()),
        Err(error) => Err(error.kind()),
    }
}

fn run(text: &str) -> Result<String, ErrorKind> {
    run_set(&Set::new().with_delimiters("[[", "]]"), text)
}

#[track_caller]
fn renders(cases: &[(&str, &str)]) {
    for (text, want) in cases {
        assert_eq!(run(text).as_deref(), Ok(*want), "{text}");
    }
}

#[track_caller]
fn fails(kind: ErrorKind, cases: &[&str]) {
    for text in cases {
        assert_eq!(run(text), Err(kind), "{text}");
    }
}

#[test]
fn what_is_missing_and_what_is_null() {
    renders(&[
        ("<[[ data.nope ]]>", "<>"),
        ("<[[ data.null ]]>", "<<nil>>"),
        ("<[[ nil ]]>", "<>"),
        ("<[[ nothing() ]]>", "<>"),
        ("<[[ x := data.nope; x ]]>", "<>"),
        ("[[ isset(data.null, data.one) ]]", "false"),
        ("[[ isset(data.one, nil, 1 + 1) ]]", "true"),
        ("[[ isset(data.nope.nope) ]][[ isset(nope) ]][[ isset(.Nope) ]]", "falsefalsefalse"),
        ("[[ data.nope | isset ]]", "false"),
        ("[[ data.null == nil ]][[ data.nope == nil ]]", "truetrue"),
    ]);
    fails(ErrorKind::Missing, &["[[ data.nope.x ]]", "[[ .Data.nope ]]", "[[ data.null.x ]]"]);
    fails(ErrorKind::UnknownName, &["[[ nope ]]", "[[ x = 1 ]]", "[[ nope.x ]]"]);
}

#[test]
fn operators() {
    renders(&[
        ("[[ 1 + 2 * 3 - 4 ]] [[ (1 + 2) * 3 - 4.1 ]]", "3 4.9"),
        ("[[ 10 / 4 ]] [[ 7 % 4 ]] [[ -data.half ]] [[ +data.one ]]", "2.5 3 -0.5 1"),
        ("[[ \"a\" + 1 + data.list ]]", "a1[3 1 2]"),
        ("[[ \"a\" + 1e21 ]] [[ 1e21 ]]", "a1e+21 1000000000000000000000"),
        ("[[ !1 == 2 ]] [[ not true || true ]]", "true true"),
        ("[[ true || nope ]] [[ false && nope ]]", "true false"),
        ("[[ 1 < 2 == true ]] [[ 1 != 2 ]]", "true true"),
        ("[[ data.no ? 1 : data.one ? 2 : 3 ]]", "2"),
        ("[[ data.text[1] ]] [[ data.text[0:1] ]]", "195 h"),
        ("[[ data.list[0.9] ]] [[ data.list[1:] ]] [[ data.list[:] ]]", "3 [1 2] [3 1 2]"),
        ("[[ data.map[\"a\"] ]][[ (data.map).b ]]", "12"),
    ]);
    fails(ErrorKind::Arithmetic, &["[[ 1 / 0 ]]", "[[ 1 % 0 ]]"]);
    fails(
        ErrorKind::Missing,
        &["[[ data.list[9] ]]", "[[ data.list[2:1] ]]", "[[ data.list[-1] ]]"],
    );
    fails(
        ErrorKind::Type,
        &["[[ \"a\" < \"b\" ]]", "[[ nil + 1 ]]", "[[ \"a\" - 1 ]]", "[[ _ ]]", "[[ 2i ]]"],
    );
}

#[test]
fn bytes_that_are_no_text_survive() {
    let set = Set::new();
    let template = set.parse("t", "{{ data.text[0:2] }}").unwrap();
    let text = set.render(&template, &variables(), &Value::Nil).unwrap();
    assert_eq!(text.as_bytes(), b"h\xc3");
}

#[test]
fn variables_and_scopes() {
    renders(&[
        ("[[ x := 1 ]][[ if true ]][[ x = 2 ]][[ x := 3 ]][[ x ]][[ end ]][[ x ]]", "32"),
        ("[[ if x := 5; x > 3 ]][[ x ]][[ else if y := x; y ]][[ y ]][[ end ]]", "5"),
        ("[[ if x := 0; x ]]a[[ else if y := 7; y ]][[ x ]][[ y ]][[ end ]]", "07"),
        ("[[ a, b := 1, 2 ]][[ a, b = b, a ]][[ a ]][[ b ]]", "22"),
        ("[[ v, ok := data.map[\"a\"] ]][[ v ]][[ ok ]]", "1true"),
        ("[[ v, ok := data.map[\"z\"] ]][[ v ]][[ ok ]]", "false"),
        ("[[ _ = 1 ]][[ upper := 5; upper ]]", "5"),
    ]);
    fails(ErrorKind::UnknownName, &["[[ if true ]][[ y := 1 ]][[ end ]][[ y ]]"]);
}

#[test]
fn maps_are_references() {
    renders(&[
        ("[[ m := map(\"a\", 1) ]][[ n := m ]][[ n.b = 2 ]][[ m ]]", "map[a:1 b:2]"),
        ("[[ data.new = 5 ]][[ data.new ]]", "5"),
        ("[[ data.map.a = 9 ]][[ data.map.a ]][[ len(data.map) ]]", "93"),
        ("[[ data.map.a = nil ]][[ data.map ]]", "map[b:2 null:<nil>]"),
        (
            "[[ l := slice(data.map) ]][[ data.map.a = 7 ]][[ json(l) ]]",
            r#"[{"a":7,"b":2,"null":null}]"#,
        ),
        ("[[ m := map() ]][[ range data.list ]][[ m.x = . ]][[ end ]][[ m.x ]]", "2"),
    ]);
    fails(ErrorKind::Type, &["[[ data.list.a = 1 ]]", "[[ data.null.a = 1 ]]"]);
    fails(ErrorKind::Limit, &["[[ m := map() ]][[ m.me = m ]][[ m ]]"]);
    // The caller's values are never touched.
    let context = data();
    let set = Set::new();
    let template = set.parse("t", "{{ .one = 2 }}{{ .one }}").unwrap();
    assert_eq!(set.render(&template, &Variables::new(), &context).unwrap(), "2");
    assert_eq!(context.get("one"), Some(&Value::from(1)));
}

#[test]
fn ranges() {
    renders(&[
        ("[[ range data.list ]][[ . ]],[[ end ]]", "3,1,2,"),
        ("[[ range i := data.list ]][[ i ]]=[[ . ]],[[ end ]]", "0=3,1=1,2=2,"),
        (
            "[[ range i, v := data.list ]][[ i ]]=[[ v ]] [[ .Data.one ]],[[ end ]]",
            "0=3 1,1=1 1,2=2 1,",
        ),
        ("[[ range _, v := data.list ]][[ v ]][[ end ]]", "312"),
        ("[[ range k, v := data.map ]][[ k ]][[ v ]] [[ end ]]", "a1 b2 null<nil> "),
        ("[[ i := 9 ]][[ range i = data.list ]][[ end ]][[ i ]]", "2"),
        ("[[ range data.empty ]]x[[ else ]]none[[ end ]]", "none"),
        ("[[ range ints(2, 4) ]][[ . ]][[ end ]]", "23"),
        ("[[ range json(1) ]][[ . ]][[ end ]]", "49"),
        (
            "[[ range data.users ]][[ .name ]][[ range . ]]([[ . ]])[[ end ]][[ end ]]",
            "Ann(30)(Ann)Bob(25)(Bob)",
        ),
        ("[[ range data.list ]][[ . ]][[ return 1 ]]![[ end ]]", "3!"),
    ]);
    fails(
        ErrorKind::Type,
        &["[[ range 3 ]][[ end ]]", "[[ range nil ]][[ end ]]", "[[ range \"a\" ]][[ end ]]"],
    );
}

#[test]
fn blocks_and_content() {
    renders(&[
        ("[[ yield b() ]][[ block b() ]]B[[ end ]]", "BB"),
        ("[[ block b(x=1, y=x) ]]<[[ x ]][[ y ]]>[[ end ]][[ yield b(x=5) ]]", "<11><55>"),
        ("[[ block b() ]]1[[ end ]][[ block b() ]]2[[ end ]]", "22"),
        ("[[ block b() \"d\" ]]<[[ . ]]>[[ end ]][[ yield b() \"c\" ]]", "<d><c>"),
        (
            "[[ block b() ]]([[ yield content ]])[[ end ]][[ v := 7 ]][[ yield b() content ]][[ v ]][[ end ]]",
            "()(7)",
        ),
        ("[[ block b() ]]([[ yield content \"c\" ]])[[ content ]][[ . ]][[ end ]]", "(c)"),
        (
            "[[ block a() ]][[ yield b() ]][[ end ]][[ block b() ]]([[ yield content ]])[[ end ]]|[[ yield a() content ]]X[[ end ]]",
            "()()|(X)",
        ),
        (
            "[[ block tree() data.list ]]<[[ range . ]][[ . ]][[ if . > 2 ]][[ yield tree() data.empty ]][[ end ]][[ end ]]>[[ end ]]",
            "<3<>12>",
        ),
    ]);
    fails(ErrorKind::Arguments, &["[[ block b(x) ]][[ end ]]"]);
    fails(ErrorKind::NotFound, &["[[ yield nope() ]]"]);
}

#[test]
fn try_and_catch() {
    renders(&[
        ("a[[ try ]]b[[ fail() ]]c[[ end ]]d", "ad"),
        (
            "[[ try ]]b[[ fail() ]][[ catch e ]][[ e.Error() ]]/[[ e ]][[ end ]]",
            "out of luck/out of luck",
        ),
        ("[[ try ]]a[[ try ]][[ nope ]][[ catch ]]in[[ end ]]b[[ catch ]]out[[ end ]]", "ainb"),
        ("[[ x := 1 ]][[ try ]][[ x := 2 ]][[ nope ]][[ catch ]][[ x ]][[ end ]]", "1"),
        (
            "[[ range data.list ]][[ try ]][[ range data.users ]][[ nope ]][[ end ]][[ catch ]][[ . ]][[ end ]][[ end ]]",
            "312",
        ),
    ]);
    fails(ErrorKind::UnknownName, &["[[ try ]][[ nope ]][[ catch ]][[ nope ]][[ end ]]"]);
}

#[test]
fn functions_and_pipes() {
    renders(&[
        ("[[ add(1.9, 2) ]] [[ 1 | add: 2 ]] [[ 1 | add(2, _) ]]", "3 3 3"),
        ("[[ \"abc\" | upper | repeat: 2 | len ]]", "6"),
        ("[[ replace(\"a-b\", \"-\", \"+\", -1,) ]]", "a+b"),
        ("[[ raw: \"<\", 1, nil ]][[ safeHtml: \"<\" ]][[ \"<\" | safeJs ]]", "<1&lt;\\u003C"),
        ("[[ data.map | writeJson ]]", "{\"a\":1,\"b\":2,\"null\":null}\n"),
        ("[[ slice(1, \"a\") ]][[ array() ]][[ map(\"b\", 1, \"a\", nil) ]]", "[1 a][]map[b:1]"),
        ("[[ len(\"é\") ]][[ len(data.map) ]][[ len(slice(1)) ]]", "231"),
        ("[[ x := \"a\" ]][[ dump(\"x\", \"nope\") ]]", "\tx:=\"a\" // string\n"),
        (
            "[[ includeIfExists(\"nope\") ]][[ if includeIfExists(\"nope\") ]]y[[ else ]]n[[ end ]]",
            "n",
        ),
    ]);
    fails(
        ErrorKind::Arguments,
        &[
            "[[ add(1) ]]",
            "[[ add(nil, 1) ]]",
            "[[ add(\"1\", 1) ]]",
            "[[ upper(1.5) ]]",
            "[[ upper(data.null) ]]",
            "[[ json(nil) ]]",
            "[[ len(1) ]]",
            "[[ map(\"a\") ]]",
            "[[ map(1, 2) ]]",
            "[[ slice(nil) ]]",
            "[[ ints(3, 3) ]]",
            "[[ repeat(\"a\", -1) ]]",
            "[[ \"x\" | raw | upper ]]",
            "[[ upper(raw(\"x\")) ]]",
            "[[ upper(_) ]]",
            "[[ data.one(1) ]]",
            "[[ 1 | data.one ]]",
            "[[ isset() ]]",
        ],
    );
    fails(ErrorKind::Function, &["[[ fail() ]]"]);
    fails(ErrorKind::Type, &["[[ upper ]]"]);
    assert!(run("[[ dump() ]]").unwrap().starts_with("Context:\n"));
}

#[test]
fn a_failing_function_is_the_source_of_the_error() {
    let set = Set::new();
    let template = set.parse("t", "{{ fail() }}").unwrap();
    let error = set.render(&template, &variables(), &Value::Nil).unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "out of luck");
}

fn family() -> Set {
    Set::new().with_delimiters("[[", "]]").with_loader(MemoryLoader::from_iter([
        ("lib", "[[ block hi(n=\"you\") ]]Hi [[ n ]][[ end ]]"),
        ("layout", "<[[ block body() ]]default[[ end ]]>"),
        ("page", "[[ extends \"layout\" ]][[ import \"lib\" ]][[ block body() ]][[ yield hi() ]][[ end ]]"),
        ("sub/a.jet", "[[ include \"b\" ]][[ include \"../leaf\" ]]"),
        ("sub/b", "b"),
        ("leaf", "[[ . ]]"),
        ("value", "lost[[ return . * 2 ]]"),
        ("broken", "\n[[ if ]]"),
        ("failing", "\n  [[ nope ]]"),
        ("circle", "[[ import \"circle\" ]]"),
        ("self", "[[ include \"self\" ]]"),
        ("deep", "[[ x := slice(slice(slice(exec(\"deep\")))) ]]"),
    ]))
}

#[test]
fn other_templates() {
    let set = family();
    for (text, want) in [
        ("[[ extends \"page\" ]]ignored", "<Hi you>"),
        ("[[ extends \"page\" ]][[ block hi() ]]own[[ end ]]", "<own>"),
        ("[[ import \"lib\" ]] [[ yield hi(n=\"x\") ]]", "Hi x"),
        ("[[ include \"sub/a\" \"ctx\" ]]", "bctx"),
        ("[[ range data.list ]][[ include \"leaf\" ]][[ end ]]", "312"),
        ("[[ exec(\"value\", 4) + 1 ]]", "9"),
        ("[[ includeIfExists(\"leaf\", 1) ]][[ includeIfExists(\"none\") ]]", "1"),
        ("[[ try ]]x[[ include \"broken\" ]][[ catch ]]caught[[ end ]]", "caught"),
        ("[[ isset(exec(\"failing\").x) ]][[ data.one ]]", "false1"),
    ] {
        assert_eq!(run_set(&set, text).as_deref(), Ok(want), "{text}");
    }
    for (text, kind) in [
        ("[[ include \"none\" ]]", ErrorKind::NotFound),
        ("[[ extends \"none\" ]]", ErrorKind::NotFound),
        ("[[ import \"circle\" ]]", ErrorKind::Syntax),
        ("[[ include 1 ]]", ErrorKind::Type),
        ("[[ include \"self\" ]]", ErrorKind::Limit),
        ("[[ exec(\"deep\") ]]", ErrorKind::Limit),
        ("[[ try ]][[ include \"self\" ]][[ end ]]", ErrorKind::Limit),
    ] {
        assert_eq!(run_set(&set, text), Err(kind), "{text}");
    }
}

#[test]
fn errors_name_the_template_they_are_in() {
    let set = family();
    let place = |text: &str| {
        let template = set.parse("t", text).unwrap();
        let error = set.render(&template, &variables(), &Value::Nil).unwrap_err();
        let excerpt = error.excerpt();
        let (line, column, text) = (excerpt.line(), excerpt.column(), excerpt.text().unwrap());
        format!("{}:{line}:{column} {text}", error.file())
    };
    assert_eq!(place("[[ include \"failing\" ]]"), "/failing:2:6   [[ nope ]]");
    assert_eq!(place("[[ include \"broken\" ]]"), "/broken:2:7 [[ if ]]");
    assert_eq!(place("a\n[[ 1 + nope ]]"), "t:2:8 [[ 1 + nope ]]");
    assert_eq!(set.get("none").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn nothing_runs_away() {
    let recursions = [
        "[[ block a() ]][[ yield a() ]][[ end ]]",
        "[[ block a() ]][[ if true ]][[ range slice(1) ]][[ try ]][[ yield a() ]][[ end ]][[ end ]][[ end ]][[ end ]]",
        "[[ block a() ]][[ yield a() content ]][[ yield content ]][[ end ]][[ end ]]",
    ];
    fails(ErrorKind::Limit, &recursions);
    let limits = Limits { steps: 300_000, output: 4 << 20, ..Limits::default() };
    let set = Set::new().with_delimiters("[[", "]]").with_limits(limits);
    for text in [
        "[[ range ints(0, 1000000000000) ]][[ end ]]",
        "[[ range ints(0, 1000) ]][[ range ints(0, 1000) ]][[ repeat(\"x\", 1000) ]][[ end ]][[ end ]]",
        "[[ try ]][[ range ints(0, 1000000000) ]]x[[ end ]][[ end ]]",
        "[[ isset(data[repeat(\"x\", 1e15)]) ]]",
        "[[ x := \"ab\" ]][[ range ints(0, 64) ]][[ x = x + x ]][[ end ]]",
        "[[ x := slice(1) ]][[ range ints(0, 64) ]][[ x = slice(x, x) ]][[ end ]]",
        "[[ x := slice() ]][[ range ints(0, 1000000) ]][[ x = slice(x) ]][[ end ]]",
        "[[ m := map() ]][[ range ints(0, 1000000) ]][[ n := map() ]][[ m.x = n ]][[ m = n ]][[ end ]][[ range ints(0, 1000000000) ]][[ end ]]",
        "[[ x := repeat(\"x\", 1000000) ]][[ range ints(0, 1000000) ]][[ y := replace(x, \"x\", \"y\", -1) ]][[ end ]]",
    ] {
        assert_eq!(run_set(&set, text), Err(ErrorKind::Limit), "{text}");
    }
}

#[test]
fn limits_are_the_callers() {
    let limited = |limits| {
        run_set(
            &Set::new().with_delimiters("[[", "]]").with_limits(limits),
            "[[ range ints(0, 100) ]]xxxxxxxxxx[[ end ]]",
        )
    };
    let limits = Limits { depth: 10, steps: 1000, output: 1000 };
    assert_eq!(limited(limits).map(|text| text.len()), Ok(1000));
    assert_eq!(limited(Limits { output: 999, ..limits }), Err(ErrorKind::Limit));
    assert_eq!(limited(Limits { steps: 100, ..limits }), Err(ErrorKind::Limit));
    assert_eq!(limited(Limits { depth: 1, ..limits }), Err(ErrorKind::Limit));
}

#[test]
fn templates_are_shared_between_threads() {
    let set = family();
    let template = set.parse("t", "[[ include \"sub/a\" \"x\" ]]").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let text = set.render(&template, &variables(), &Value::Nil);
                assert_eq!(text.unwrap(), "bx");
            });
        }
    });
}

#[test]
fn keywords_that_end_nothing_are_passed_over() {
    for (text, wanted) in [
        ("[[ if false ]]a[[ else ]]b[[ else ]]c[[ end ]]", "bc"),
        ("[[ if true ]]a[[ else ]]b[[ else ]]c[[ end ]]", "a"),
        ("[[ if true ]]a[[ content ]]b[[ end ]]", "ab"),
        ("[[ if true ]]a[[ catch e ]]x[[ end ]]b[[ end ]]", "ab"),
        ("[[ range slice() ]]a[[ else ]]b[[ else ]]c[[ end ]]", "bc"),
        ("[[ block b() ]]a[[ else ]]b[[ end ]]", "ab"),
        ("[[ try ]]a[[ else ]]b[[ end ]]", "ab"),
        ("a[[ catch ]]b[[ end ]]c", "ac"),
    ] {
        assert_eq!(run(text).as_deref(), Ok(wanted), "{text}");
    }
    for text in [
        "[[ else ]]",
        "[[ content ]]",
        "[[ end ]]",
        "[[ if 1 ]]a[[ else ]]b[[ else if 1 ]]c[[ end ]]",
        "[[ catch ]]",
    ] {
        assert!(run(text).is_err(), "{text}");
    }
}

#[test]
fn maps_that_were_never_made_are_neither_true_nor_set() {
    let set = Set::new().with_delimiters("[[", "]]");
    let template = set
        .parse(
            "t",
            "[[ if m ]]t[[ else ]]f[[ end ]] [[ isset(m) ]] [[ !m ]] [[ len(m) ]] [[ m.x ]]|",
        )
        .unwrap();
    let mut variables = Variables::new();
    variables.set("m", Map::nil(govalue::MapShape::StringAny));
    let text = set.render(&template, &variables, &Value::Nil).unwrap();
    assert_eq!(text, "f false true 0 |");
}
