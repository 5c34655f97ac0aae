//! The language by example: every table pairs expressions with what they print.

use expr::{Environment, ErrorKind, Function, Program, Type};
use govalue::{Map, MapShape, Time, Value, Zone};

fn environment() -> Environment {
    Environment::new()
        .member("user", Type::map(Type::Any))
        .member("env", Type::map(Type::String))
        .member("list", Type::array(Type::Int))
        .member("any", Type::Any)
        .function(
            "join2",
            Function::new(|_, args| Ok(format!("{}{}", args[0], args[1]).into()))
                .arity(2, 2)
                .params([Type::String, Type::Any])
                .returns(Type::String),
        )
        .function("fail", Function::new(|_, _| Err("out of order".into())))
        .clock(|| Time::from_unix(1_700_000_000, 0, Zone::UTC))
}

fn run(source: &str) -> Result<Value, expr::Error> {
    let env = environment();
    let mut vars = env.vars();
    let friend = Map::from_iter([("name", Value::from("Bob")), ("age", 25.into())]);
    vars.set(
        "user",
        Map::from_iter([
            ("name", Value::from("Ann")),
            ("age", 30.into()),
            ("tags", Value::array(["a".into(), "b".into()])),
            ("friends", Value::array([friend.into()])),
            ("none", Value::Nil),
        ]),
    );
    let mut strings = Map::with_shape(MapShape::Strings);
    strings.insert("HOME", "/root");
    vars.set("env", strings);
    vars.set("list", Value::array([3, 1, 2].map(Value::Int)));
    vars.set("any", 7);
    Program::compile(source, &env)?.run(&vars)
}

/// Checks what expressions give, as text.
fn give(cases: &[(&str, &str)]) {
    for (source, want) in cases {
        match run(source) {
            Ok(value) => assert_eq!(value.to_string(), *want, "{source}"),
            Err(error) => panic!("{}", error.snippet(source)),
        }
    }
}

/// Checks that expressions fail, and how.
fn fail(kind: ErrorKind, sources: &[&str]) {
    for source in sources {
        match run(source) {
            Ok(value) => panic!("{source} gives {value}"),
            Err(error) => assert_eq!(error.kind(), kind, "{source}: {error}"),
        }
    }
}

#[test]
fn literals() {
    give(&[
        ("0x2A + 0b1 + 0o7 + 1_000", "1050"),
        ("[1e3, .5, 2.]", "[1000 0.5 2]"),
        (r#""a\n" + 'b' + `c\n`"#, "a\nbc\\n"),
        (r#""\u{1F600}\u00e9\x41\101""#, "😀éAA"),
        ("b'ab\\x00'", "[97 98 0]"),
        ("{a: 1, 'b c': 2, 3: [], ('d' + 'e'): nil}", "map[3:[] a:1 b c:2 de:<nil>]"),
        ("{a: 1, a: 2}", "map[a:1]"),
        ("[1, 2,] /* no end */ // here", "[1 2]"),
    ]);
    fail(
        ErrorKind::Syntax,
        &["99999999999999999999", "1e999", "'a", "{in: 1}", "[,]", "", "1 2", "~"],
    );
    fail(ErrorKind::Value, &["{(any): 3}"]);
}

#[test]
fn arithmetic() {
    give(&[
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("6 / 4", "1.5"),
        ("-2 ** 2", "-4"),
        ("2 ** 3 ** 2", "512"),
        ("2 ^ 0.5", "1.4142135623730951"),
        ("-7 % 3", "-1"),
        ("1 / 0", "+Inf"),
        ("9223372036854775807 + 1", "-9223372036854775808"),
        ("1 + 1.5", "2.5"),
        ("any + 1", "8"),
        ("'a' + 'b'", "ab"),
        ("+any - -any", "14"),
    ]);
    fail(ErrorKind::Type, &["1 + 'a'", "1 % 2.0", "-'a'", "nil + 1", "[1] + [2]", "true + true"]);
    fail(ErrorKind::Value, &["any + 'a'", "any % 0", "-user.name", "user.none + 1"]);
}

#[test]
fn comparison_and_logic() {
    give(&[
        ("1 == 1.0 and 1 != 2", "true"),
        ("[1, 2] == [1.0, 2.0]", "true"),
        ("{a: 1} == {a: 1.0}", "false"),
        ("user.age == '30'", "false"),
        ("1 < 2 < 3", "true"),
        ("1 < 3 < 2", "false"),
        ("'a' < 'b' and not ('b' < 'a')", "true"),
        ("nil == nil and user.none == nil", "true"),
        ("true || fail()", "true"),
        ("false && fail()", "false"),
        ("user.none or true", "true"),
        ("true and user.age", "30"),
        ("!true == false", "true"),
        ("1 in [1, 2] and 3 not in [1, 2]", "true"),
        ("'name' in user and 'HOME' in env", "true"),
        ("2.0 in 1..3", "true"),
        ("'user' in $env and 'nobody' not in $env", "true"),
    ]);
    fail(
        ErrorKind::Type,
        &[
            "1 == 'a'",
            "true > false",
            "1 and true",
            "not 1",
            "'1' in [1]",
            "1 in {a: 1}",
            "'a' in 'abc'",
        ],
    );
    fail(
        ErrorKind::Value,
        &["any < 'a'", "user.age and user.age > 1", "not user.none", "1 in user.name"],
    );
}

#[test]
fn strings() {
    give(&[
        ("'hello' contains 'ell' and 'hello' startsWith 'he' and 'hello' endsWith 'lo'", "true"),
        ("'hello' not contains 'x'", "true"),
        ("user.none contains 'x'", "false"),
        (r"'web01' matches '^web\\d+$'", "true"),
        ("user.name matches user.name", "true"),
        ("upper('straße') + lower('ÉÀ')", "STRAßEéà"),
        (
            "trim('  a ') + trim('__b_', '_') + trimPrefix('xa', 'x') + trimSuffix('ax', 'x')",
            "abaa",
        ),
        ("split('a,b,c', ',', 2)", "[a b,c]"),
        ("splitAfter('a,b', ',')", "[a, b]"),
        ("join(split('abc', ''), '-')", "a-b-c"),
        ("replace('aaa', 'a', 'b', 2)", "bba"),
        ("repeat('ab', 2)", "abab"),
        ("[indexOf('héllo', 'l'), lastIndexOf('abca', 'a'), indexOf('a', 'z')]", "[3 3 -1]"),
        ("hasPrefix('abc', 'ab') and hasSuffix('abc', 'bc')", "true"),
        ("[len('日本'), '日本'[0:3], 'hello'[-2:], 'abc'[5:]]", "[2 日 lo ]"),
    ]);
    fail(
        ErrorKind::Type,
        &["upper(1)", "'a' matches '['", "trim()", "upper('a', 'b')", "'abc'[0]"],
    );
    fail(ErrorKind::Value, &["upper(any)", "join([1])", "repeat('a', -1)", "any matches 'a'"]);
}

#[test]
fn members_and_slices() {
    give(&[
        ("user.name + user['name']", "AnnAnn"),
        ("user.friends[0].name", "Bob"),
        ("user.friends[-1].age", "25"),
        ("user.missing", "<nil>"),
        ("env.MISSING", ""),
        ("user.missing?.a.b.c", "<nil>"),
        ("(user.missing?.a).b", "<nil>"),
        ("user.missing?.a ?? 'none'", "none"),
        ("user?.friends?.[0]?.name", "Bob"),
        ("1 + nil ?? 2", "3"),
        ("list[1:]", "[1 2]"),
        ("list[:-1]", "[3 1]"),
        ("list[2:1]", "[]"),
        ("user.name[0]", "65"),
        ("user.not", "<nil>"),
        ("get(list, 9) ?? get(user, 'age')", "30"),
        ("$env.user.name + $env['env'].HOME", "Ann/root"),
    ]);
    fail(ErrorKind::UnknownName, &["nobody", "$env.nobody", "true ? 1 : nobody", "nobody()"]);
    fail(
        ErrorKind::Type,
        &["list['a']", "user[0]", "list.name", "nil.a", "env.HOME[0]", "user()", "5[0:1]"],
    );
    fail(
        ErrorKind::Value,
        &["user.missing.a", "list[3]", "list[-4]", "any.x", "user.name.x", "user.foo()", "len"],
    );
    fail(ErrorKind::Syntax, &["nil ?? 1 + 1", "user.", "list[]"]);
}

#[test]
fn branches_and_variables() {
    give(&[
        ("user.age > 18 ? 'adult' : 'minor'", "adult"),
        ("false ?: 5", "5"),
        ("if false { 1 } else if true { 2 } else { 3 }", "2"),
        ("let x = 2; let y = x * x; x + y", "6"),
        ("(let x = 1; x + 1) * 2", "4"),
        ("1; 2; 3;", "3"),
        ("if true { let a = 1; a; a + 1 } else { 0 }", "2"),
        ("let x = nil; x ?? 'default'", "default"),
    ]);
    fail(
        ErrorKind::Type,
        &["1 ? 2 : 3", "let x = 1; let x = 2; x", "let user = 1; user", "let len = 1; 1"],
    );
    fail(ErrorKind::Syntax, &["let x = 1", "if true { 1 }", "1;;2", "true ? 1"]);
    fail(ErrorKind::Value, &["any ? 1 : 2"]);
}

#[test]
fn predicates() {
    give(&[
        ("filter(list, # > 1)", "[3 2]"),
        ("map(list, {# * 2})", "[6 2 4]"),
        ("map(list, #index)", "[0 1 2]"),
        ("map(user.friends, .name)", "[Bob]"),
        ("map(1..2, let x = #; map(1..2, x * 10 + #))", "[[11 12] [21 22]]"),
        (
            "[all([], false), any(list, # == 3), one(list, # > 1), none(list, # > 9)]",
            "[true true false true]",
        ),
        ("[count(list, # > 1), count([true, false])]", "[2 1]"),
        (
            "[find(list, # < 3), findIndex(list, # < 3), findLast(list, # < 3), findLastIndex(list, # < 3)]",
            "[1 1 2 2]",
        ),
        ("find(list, # > 9)", "<nil>"),
        ("groupBy(1..4, # % 2)", "map[0:[2 4] 1:[1 3]]"),
        ("groupBy(1..4, # % 2)[7]", "[]"),
        ("groupBy(1..4, # % 2)[7] ?? 'none'", "none"),
        ("sortBy(list, -#)", "[3 2 1]"),
        ("sortBy(list, #, 'desc')", "[3 2 1]"),
        ("[sum(list), sum(list, # * 2), sum([])]", "[6 12 0]"),
        (
            "[reduce(list, #acc + #), reduce(list, #acc + #, 10), reduce(list, #acc + #index, 0)]",
            "[6 16 3]",
        ),
        ("list | filter(# > 1) | map(string(#)) | join('+')", "3+2"),
        ("1 + 2 | string()", "3"),
        ("map([1], {{n: #}})", "[map[n:1]]"),
    ]);
    fail(
        ErrorKind::Type,
        &["filter(list, # + 1)", "map('abc', #)", "all(list, nil)", "sortBy(list, #, 1)"],
    );
    fail(
        ErrorKind::UnknownName,
        &["filter(list, #index > 0)", "map(list, #acc)", "map(list, #nope)"],
    );
    fail(
        ErrorKind::Value,
        &[
            "filter(user.none, true)",
            "reduce([], #acc)",
            "groupBy([1], [#])",
            "sortBy([1, 'a'], #)",
            "all(user.tags, #)",
        ],
    );
    fail(ErrorKind::Syntax, &["#", ".name", "map(list)", "filter(list, {})", "'x' | 'y'", "1 | 2"]);
}

#[test]
fn numbers_lists_and_maps() {
    give(&[
        ("[max(1, [5, 2]), min(list), mean(1, 2), median([3, 1, 2])]", "[5 1 1.5 2]"),
        ("[abs(-5), ceil(1.2), floor(-1.2), round(2.5)]", "[5 2 -2 3]"),
        ("[int('12'), int(1.9), float('1e3'), int(duration('1s'))]", "[12 1 1000 1000000000]"),
        ("[bitand(6, 3), bitor(6, 3), bitxor(6, 3), bitnand(6, 3), bitnot(0)]", "[2 7 5 4 -1]"),
        ("[bitshl(1, 3), bitshr(-8, 1), bitushr(-1, 63), bitshl(1, 64)]", "[8 -4 1 0]"),
        ("[first(list), last(list), first([]), take(list, 2)]", "[3 2 <nil> [3 1]]"),
        ("[reverse(list), sort(list), sort(['b', 'a'], 'desc')]", "[[2 1 3] [1 2 3] [b a]]"),
        ("concat([1], [2, [3]]) | flatten() | uniq()", "[1 2 3]"),
        ("uniq([1, 1.0, 'a', [1], [1], nil, nil])", "[1 a [1] <nil>]"),
        ("[keys({a: 1}), values({a: 1}), toPairs({a: 1})]", "[[a] [1] [[a 1]]]"),
        ("fromPairs([['a', 1], [2, 'b']])", "map[2:b a:1]"),
        ("len(list) + len(user) + len({})", "8"),
    ]);
    fail(
        ErrorKind::Type,
        &[
            "len(1)",
            "abs('a')",
            "max()",
            "max('a')",
            "take(list)",
            "keys(list)",
            "get(list)",
            "bitand(1.5, 1)",
        ],
    );
    fail(
        ErrorKind::Value,
        &[
            "int('x')",
            "bitshl(1, -1)",
            "take(list, -1)",
            "sort([1, 'a'])",
            "len(any)",
            "fromPairs([[1]])",
            "max(user.tags)",
        ],
    );
}

#[test]
fn conversions() {
    give(&[
        (
            "map([nil, true, 1, 1.5, 'a', [], {}, b'a', now(), duration('1s')], type(#))",
            "[nil bool int float string array map array time.Time time.Duration]",
        ),
        ("string([1, 1e21, nil, 'a'])", "[1 1e+21 <nil> a]"),
        (
            "toJSON({b: [1.0, '<'], a: nil})",
            "{\n  \"a\": null,\n  \"b\": [\n    1,\n    \"\\u003c\"\n  ]\n}",
        ),
        ("fromJSON('{\"a\": [1]}').a[0] / 2", "0.5"),
        ("fromBase64(toBase64('Hello'))", "Hello"),
    ]);
    fail(
        ErrorKind::Value,
        &["fromJSON('{')", "fromBase64('a')", "toJSON(1 / 0)", "toJSON(groupBy([1], #))"],
    );
}

#[test]
fn times() {
    give(&[
        ("now()", "2023-11-14 22:13:20 +0000 UTC"),
        ("now().Add(duration('1h30m')).Format('15:04')", "23:43"),
        ("date('2023-08-14') + duration('24h') - date('2023-08-14')", "24h0m0s"),
        (
            "[date('2023-08-14').Month(), date('2023-08-14').Weekday(), date('2023-08-14').YearDay()]",
            "[August Monday 226]",
        ),
        (
            "date('2023-08-14 00:00:00', '2006-01-02 15:04:05', 'Europe/Zurich')",
            "2023-08-14 00:00:00 +0200 CEST",
        ),
        ("date('2023-01-31').AddDate(0, 1, 0).Format('Jan 2')", "Mar 3"),
        ("now().In(timezone('Asia/Tokyo')).Hour()", "7"),
        ("duration('90m').Hours() + duration('1h').Minutes()", "61.5"),
        ("duration('1h') * 2 == duration('120m')", "true"),
        ("date('2023-08-15') > date('2023-08-14')", "true"),
        ("{at: now()}.at.Year()", "2023"),
    ]);
    fail(
        ErrorKind::Type,
        &[
            "duration('1h') / 2",
            "duration('1h') == 1",
            "now().Nope()",
            "now().Format(1)",
            "now().AddDate(1)",
        ],
    );
    fail(
        ErrorKind::Value,
        &["date('nope')", "duration('1d')", "timezone('Mars')", "{at: 1}.at.Year()"],
    );
}

#[test]
fn functions_of_the_environment() {
    give(&[("join2('a', 1)", "a1"), ("'a' | join2(2)", "a2"), ("::len('abc')", "3")]);
    fail(ErrorKind::Type, &["join2('a')", "join2('a', 1, 2)", "join2(1, 2)", "join2('a', 1) + 1"]);
    fail(ErrorKind::Function, &["fail()", "1 + fail(2)"]);
    let error = run("1 + fail(2)").unwrap_err();
    assert_eq!(error.to_string(), "fail: out of order");
    assert_eq!(
        std::error::Error::source(&error).map(ToString::to_string).as_deref(),
        Some("out of order")
    );
    assert_eq!(
        error.snippet("1 + fail(2)").to_string(),
        "fail: out of order\n --> expression:1:5\n  |\n1 | 1 + fail(2)\n  |     ^^^^^^^"
    );
}

#[test]
fn programs_are_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Program>();
    shareable::<Environment>();
    shareable::<expr::Vars<'static>>();
    shareable::<expr::Error>();
    let program = Program::compile("1 + 1", &Environment::new()).expect("compiles");
    assert_eq!(program.result_type(), &Type::Int);
}

#[test]
fn what_is_no_boolean_or_no_key_is_an_error() {
    let env = environment();
    for source in
        ["user.missing || user.age > 1", "get([1, 2], 'x')", "get([1, 2], true)", "get({a: 1}, 2)"]
    {
        let ran = expr::Program::compile(source, &env).map(|program| program.run(&env.vars()));
        assert!(!matches!(ran, Ok(Ok(_))), "{source}");
    }
}
