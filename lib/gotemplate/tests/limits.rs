//! No template crashes, hangs or fills the machine.
#![expect(clippy::disallowed_methods, reason = "the peak of memory is in a file of the kernel")]

use std::sync::OnceLock;

use gotemplate::{Engine, ErrorKind, Limits, Template};
use govalue::{Map, Value};

fn data() -> Value {
    let list = Value::array([1.into(), "two".into(), Value::Nil]);
    Map::from_iter([("list", list), ("text", "a b\nc".into()), ("n", 3.into())]).into()
}

fn small() -> Engine {
    Engine::new().limits(Limits { output: 1 << 20, steps: 300_000, depth: 500 })
}

#[track_caller]
fn exceeds(text: &str) {
    match small().render("t", text, &data()) {
        Ok(result) => panic!("{text}: {} bytes", result.len()),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Limit, "{text}: {error}"),
    }
}

#[test]
fn recursion_ends() {
    exceeds("{{ define \"r\" }}{{ template \"r\" . }}{{ end }}{{ template \"r\" . }}");
    // The deepest mixture of everything that nests.
    let opened = "{{ if true }}{{ with $ }}{{ range list 1 }}".repeat(20);
    let closed = "{{ end }}{{ end }}{{ end }}".repeat(20);
    let call = "{{ template \"r\" (index (list (dict \"a\" (list . . .)).a) 0) }}";
    exceeds(&format!(
        "{{{{ define \"r\" }}}}{opened}{call}{closed}{{{{ end }}}}{{{{ template \"r\" . }}}}"
    ));
}

#[test]
fn recursion_through_functions_ends() {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    let limits = Limits { steps: 300_000, ..Limits::default() };
    let engine = Engine::new().limits(limits).rendering_function("again", |caller, arguments| {
        let template = TEMPLATE.get().ok_or("not parsed yet")?;
        Ok(Value::String(template.render_within(caller, &arguments[0])?.into()))
    });
    static MANY: OnceLock<Template> = OnceLock::new();
    let text = "{{ if .n }}{{ again . }}{{ end }}";
    let doubled =
        "{{ if .n }}{{ $d := dict \"n\" (int (sub .n 1)) }}{{ many $d }}{{ many $d }}{{ end }}";
    let engine = engine.rendering_function("many", |caller, arguments| {
        let template = MANY.get().ok_or("not parsed yet")?;
        template.render_within(caller, &arguments[0])?;
        Ok(Value::Nil)
    });
    let template = TEMPLATE.get_or_init(|| engine.parse("t", text).unwrap());
    let error = template.render(&data()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().ends_with("deep"), "{error}");
    // Twice as many each time: the steps are shared as well.
    let many = Value::from(Map::from_iter([("n", 40)]));
    let doubling = MANY.get_or_init(|| engine.parse("many", doubled).unwrap());
    let error = doubling.render(&many).unwrap_err();
    assert!(error.message().ends_with("steps"), "{error}");
    // What happened does not linger.
    assert_eq!(template.render(&Value::Nil).unwrap(), "");
    assert!(
        Engine::new()
            .render("t", "{{ template \"x\" }}{{ define \"x\" }}ok{{ end }}", &data())
            .is_ok()
    );
}

#[test]
fn nesting_ends_when_parsing() {
    exceeds(&format!("{{{{ {}1{} }}}}", "(".repeat(5_000), ")".repeat(5_000)));
    exceeds(&format!("{}x{}", "{{ if 1 }}".repeat(5_000), "{{ end }}".repeat(5_000)));
    exceeds(&format!("{}x{}", "{{ block \"b\" . }}".repeat(5_000), "{{ end }}".repeat(5_000)));
    // Chains are not nesting.
    let chain = "{{ else if false }}b".repeat(5_000);
    let text = format!("{{{{ if false }}}}a{chain}{{{{ else }}}}c{{{{ end }}}}");
    assert_eq!(small().render("t", &text, &data()).unwrap(), "c");
}

#[test]
fn loops_end() {
    exceeds("{{ range 1000000000000 }}{{ end }}");
    exceeds("{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}");
    exceeds("{{ range 100000 }}{{ range 100000 }}x{{ end }}{{ end }}");
}

#[test]
fn texts_and_lists_are_bounded_before_they_are_made() {
    for text in [
        "{{ repeat 9223372036854775807 \"ab\" }}",
        "{{ repeat 1000000 \"ab\" }}",
        "{{ until 9223372036854775807 }}",
        "{{ untilStep -9223372036854775808 9223372036854775807 1 }}",
        "{{ seq 1000000000 }}",
        "{{ seq -9223372036854775808 9223372036854775807 }}",
        "{{ indent 999999999 \"x\" }}",
        "{{ nindent 100000 (repeat 100 \"\\n\") }}",
        "{{ printf \"%999999d%999999d\" 1 2 }}",
        "{{ printf \"%*d%*d\" 999999 1 999999 1 }}",
        "{{ randAlphaNum 999999999999 }}",
        "{{ randBytes 999999999999 }}",
        "{{ replace \"\" (repeat 10000 \"x\") (repeat 10000 \"y\") }}",
        "{{ regexReplaceAll \"\" (repeat 10000 \"x\") (repeat 10000 \"y\") }}",
        "{{ regexReplaceAll \"(x+)\" (repeat 5000 \"x\") (repeat 5000 \"$1\") }}",
        "{{ join (repeat 100000 \"x\") (until 1000) }}",
        "{{ wrapWith 1 (repeat 10000 \"x\") (repeat 10000 \"y \") }}",
        "{{ range 64 }}{{ $x := repeat 65536 \"y\" }}{{ $x }}{{ end }}",
        "{{ $s := \"x\" }}{{ range 64 }}{{ $s = print $s $s }}{{ end }}",
        "{{ $s := \"x\" }}{{ range 64 }}{{ $s = cat $s $s }}{{ end }}",
        "{{ $s := \"<\" }}{{ range 64 }}{{ $s = html $s $s }}{{ end }}",
        "{{ $l := list 1 }}{{ range 64 }}{{ $l = concat $l $l }}{{ end }}",
        "{{ uniq (until 100000) }}",
    ] {
        exceeds(text);
    }
}

#[cfg(feature = "crypto")]
#[test]
fn slow_hashes_are_dear() {
    exceeds("{{ range 1000 }}{{ $_ := htpasswd \"a\" \"b\" }}{{ end }}");
}

#[test]
fn shared_members_are_paid_for_each_time() {
    let doubling = "{{ $l := list 1 }}{{ range 64 }}{{ $l = list $l $l }}{{ end }}";
    for end in [
        "{{ $l }}",
        "{{ toJson $l }}",
        "{{ printf \"%v\" $l }}",
        "{{ deepCopy $l }}",
        "{{ deepEqual $l (deepCopy (list 1)) }}{{ quote $l }}",
        "{{ $m := list 1 }}{{ range 64 }}{{ $m = list $m $m }}{{ end }}{{ deepEqual $l $m }}",
        "{{ range 99999 }}{{ $_ := toString $l }}{{ end }}",
    ] {
        exceeds(&format!("{doubling}{end}"));
    }
}

#[test]
fn deep_values_are_dropped_without_deep_recursion() {
    for text in [
        "{{ $l := list }}{{ range 50000 }}{{ $l = list $l }}{{ end }}",
        "{{ $d := dict }}{{ range 50000 }}{{ $d = dict \"d\" $d }}{{ end }}",
        "{{ $d := dict }}{{ range 50000 }}{{ $d = dict \"d\" (list $d) }}{{ end }}",
    ] {
        let result = Engine::new().render("t", text, &data());
        assert_eq!(result.unwrap(), "", "{text}");
    }
    exceeds("{{ $l := list }}{{ range 1000 }}{{ $l = list $l }}{{ end }}{{ $l }}");
}

#[test]
fn patterns_are_bounded() {
    // What a pattern costs is known before it is compiled.
    let result = small().render("t", "{{ regexMatch \"((a{1000}){1000}){1000}\" \"a\" }}", &data());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Limit);
    let nested =
        format!("{{{{ mustRegexMatch \"{}a{}\" \"a\" }}}}", "(".repeat(3000), ")".repeat(3000));
    assert!(small().render("t", &nested, &data()).is_err());
}

#[test]
fn a_result_may_be_as_long_as_the_limit() {
    let engine = Engine::new().limits(Limits { output: 10, ..Limits::default() });
    assert_eq!(engine.render("t", "0123456789", &data()).unwrap().len(), 10);
    let error = engine.render("t", "01234{{ .n }}56789", &data()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn lists_out_of_long_texts_are_bounded() {
    let limits = Limits::default();
    let engine = Engine::new().limits(limits);
    for text in [
        "{{ splitList \"\" (repeat 60000000 \"x\") | len }}",
        "{{ splitList \"y\" (repeat 30000000 \"xy\") | len }}",
        "{{ split \"y\" (repeat 30000000 \"xy\") | len }}",
        "{{ regexFindAll \"x\" (repeat 60000000 \"x\") -1 | len }}",
        "{{ regexSplit \"y\" (repeat 30000000 \"xy\") -1 | len }}",
        "{{ replace \"x\" \"\" (repeat 60000000 \"x\") | len }}",
        "{{ fromJson (print \"[\" (repeat 20000000 \"[],\") \"0]\") | len }}",
        "{{ until 19000000 | len }}",
        "{{ $a := until 1000000 }}{{ range until 100 }}{{ $b := reverse $a }}{{ end }}",
        "{{ html (repeat 60000000 \"<\") | len }}",
        "{{ urlquery (repeat 60000000 \"<\") | len }}",
    ] {
        let error = engine.render("t", text, &data()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{text}: {error}");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak =
        peak.and_then(|line| line.trim().split(' ').next()).and_then(|kib| kib.parse::<u64>().ok());
    let peak = peak.unwrap_or_default() / 1024;
    assert!(peak < 800, "{peak} MiB");
    let small = "{{ splitList \",\" \"a,b\" | len }} {{ range until 1000 }}.{{ end }}";
    assert!(engine.render("t", small, &data()).is_ok());
}
