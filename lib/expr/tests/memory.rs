//! Memory is bounded. The one test of this process: others would count too.
#![expect(clippy::disallowed_methods, reason = "the peak of memory is in a file of the kernel")]

use expr::{Environment, ErrorKind, Limits, Program};

/// The most memory that the process has had so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[test]
fn text_in_lists_maps_and_names_is_bounded() {
    let mut limits = Limits::default();
    let whole = Environment::new();
    limits.string = 8 << 20;
    let env = Environment::new().limits(limits);
    let many = |part: &str, count: usize| vec![part; count].join(", ");
    let lets: String = (0..40).map(|n| format!("let v{n} = repeat('{n}', 1000000);")).collect();
    let huge = "join(map(1..900000, repeat('x', 10000)), '')";
    let error = Program::compile(huge, &whole).and_then(|program| program.run(&whole.vars()));
    let error = error.unwrap_err();
    assert_eq!(error.message(), "memory budget exceeded: more than 64 MiB of text");
    for source in [
        "join(map(1..900000, repeat('x', 10000)), '')".to_owned(),
        "map(1..900000, {{a: repeat('x', 10000)}})".to_owned(),
        "map(1..1000, map(1..1000, repeat('x', 1000)))".to_owned(),
        "groupBy(1..900000, repeat(string(#), 2000))".to_owned(),
        "sortBy(1..900000, repeat(string(#), 2000))".to_owned(),
        "reduce(1..900, concat(#acc, [repeat('x', 1000000)]), [])".to_owned(),
        "map(1..900, upper(repeat('x', 1000000)))".to_owned(),
        "map(1..900, toBase64(repeat('x', 1000000)))".to_owned(),
        "map(1..900, toJSON(repeat('x', 1000000)))".to_owned(),
        "map(1..900, repeat('x', 1000000)[1:])".to_owned(),
        "map(1..900, replace(repeat('x', 1000000), 'x', 'yy'))".to_owned(),
        "map(1..900, split(repeat('x', 1000000), ''))".to_owned(),
        "let s = repeat('xy', 1000000); split(s + s + s + s, 'y')".to_owned(),
        "let s = repeat('x', 60000); toJSON(map(1..900000, s))".to_owned(),
        "let s = repeat('x', 60000); string(map(1..900000, s))".to_owned(),
        "let a = 1..900000; map(1..400, reverse(a))".to_owned(),
        "let a = 1..900000; map(1..400, a[1:])".to_owned(),
        "let a = 1..900000; map(1..400, take(a, 800000))".to_owned(),
        "let s = repeat('[],', 1000000); fromJSON('[' + s + s + s + s + s + '0]')".to_owned(),
        format!("[{}]", many("repeat('x', 1000000)", 100)),
        format!(
            "{{{}}}",
            (0..100).map(|n| format!("k{n}: repeat('x', 1000000)")).collect::<Vec<_>>().join(", ")
        ),
        format!("{lets} v0"),
    ] {
        let result = Program::compile(&source, &env).and_then(|program| program.run(&env.vars()));
        let shown = &source[..source.len().min(60)];
        match result {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Budget, "{shown}: {error}"),
            Ok(_) => panic!("{shown} is not refused"),
        }
    }
    // The bound is 64 MiB of text, items of lists come on top.
    assert!(peak() < 320, "{} MiB", peak());
    // What is gone again does not count.
    for source in [
        "len(reduce(1..20000, #acc + 'line of text', ''))",
        "sum(1..2000, len(repeat('x', 100000)))",
    ] {
        Program::compile(source, &env).and_then(|program| program.run(&env.vars())).unwrap();
    }
}
