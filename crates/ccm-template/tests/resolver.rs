//! What the resolver adds to the languages.
#![expect(clippy::disallowed_methods, reason = "the tests set their stage by themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has to fail")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccm_model::Templates;
use ccm_template::{Error, Facts, Resolver, Scope};
use govalue::{Map, Value};

fn resolver() -> Resolver {
    resolver_in(Path::new(""))
}

fn resolver_in(directory: &Path) -> Resolver {
    Resolver::new(Scope {
        directory: directory.to_owned(),
        facts: Facts::known(Map::from_iter([("os", "linux")])),
        data: Map::from_iter([("port", Value::from(8080)), ("list", Value::array([1.into()]))]),
        environ: Scope::environ([("HOME", "/root")]),
        ..Scope::new(&ccm_host::Host::new())
    })
}

fn in_files(files: &[(&str, &str)]) -> (tempfile::TempDir, Resolver) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let resolver = resolver_in(directory.path());
    (directory, resolver)
}

#[test]
fn facts_are_gathered_once_and_only_when_needed() {
    let gathered = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&gathered);
    let facts = Facts::lazy(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Map::from_iter([("os", "linux")])
    });
    let resolver = Resolver::new(Scope {
        facts,
        data: Map::from_iter([("a", 1)]),
        ..Scope::new(&ccm_host::Host::new())
    });
    for text in [
        "plain",
        "{{ Data.a }}",
        "{{ lookup('data.a') }}",
        "{{ lookup('environ.X', 1) }}",
        "{{ 1 }}",
    ] {
        resolver.text(text).unwrap();
    }
    assert_eq!(gathered.load(Ordering::Relaxed), 0);
    for text in ["{{ Facts.os }}", "{{ lookup('facts.os') }}", "{{ $env['Facts'].os }}"] {
        assert_eq!(resolver.text(text).unwrap().text, "linux");
    }
    let other = resolver.with_data(Map::new());
    assert_eq!(other.jet("[[ facts.os ]]", None).unwrap(), "linux");
    assert_eq!(gathered.load(Ordering::Relaxed), 1);
}

#[test]
fn other_data_leaves_the_rest_alone() {
    let (directory, resolver) = in_files(&[("f", "text")]);
    let other = resolver.with_data(Map::from_iter([("port", 1)]));
    let text = "{{ Data.port }} {{ Facts.os }} {{ Environ.HOME }}";
    assert_eq!(other.text(text).unwrap().text, "1 linux /root");
    assert_eq!(resolver.text(text).unwrap().text, "8080 linux /root");
    assert_eq!(other.text("{{ file('f') }}").unwrap().text, "text");
    assert_eq!(other.directory(), directory.path());
}

#[test]
fn templates_that_call_themselves_are_stopped() {
    let (_directory, resolver) = in_files(&[
        ("a.templ", "{{ template('a.templ') }}"),
        ("twice.templ", "{{ template('twice.templ') ?? 1 }}{{ template('twice.templ') }}"),
        ("wide.templ", "{{ map(1..1000, template('deep.templ')) }}"),
        ("deep.templ", "{{ map(1..1000, template('leaf.templ')) }}"),
        ("leaf.templ", "{{ 1 }}"),
        ("b.jet", "[[ template('b.jet') ]]"),
        ("c.jet", "[[ template(\"c.templ\") ]]"),
        ("c.templ", "{{ jet('c.jet') }}"),
    ]);
    for template in ["a.templ", "twice.templ", "wide.templ", "c.templ"] {
        let error = resolver.value(&format!("{{{{ template('{template}') }}}}")).unwrap_err();
        assert!(error.to_string().contains("too"), "{error}");
    }
    assert!(resolver.jet("b.jet", None).is_err());
}

#[test]
fn outputs_are_bounded() {
    let big = "x".repeat(8 << 20);
    let (_directory, resolver) = in_files(&[("big", &big)]);
    let error = resolver.evaluate("map(1..100, file('big'))").unwrap_err();
    assert!(error.to_string().contains("more than 64 MiB of text"), "{error}");
    let error = resolver.evaluate("sum(1..100, len(file('big')))").unwrap_err();
    assert!(error.to_string().contains("256 MiB"), "{error}");
    let error = resolver.text(&"{{ file('big') }}".repeat(9)).unwrap_err();
    assert!(error.to_string().contains("64 MiB"), "{error}");
    let doubled = "let a = [Data.list, Data.list, Data.list, Data.list];".to_owned()
        + &(1..14)
            .map(|n| {
                let (last, next) = (name(n - 1), name(n));
                format!("let {next} = [{last}, {last}, {last}, {last}];")
            })
            .collect::<String>()
        + &name(13);
    assert!(resolver.text(&format!("{{{{ {doubled} }}}}")).is_err());
    assert!(resolver.value(&format!("{{{{ {doubled} }}}}")).is_err());
}

fn name(n: u8) -> String {
    char::from(b'a' + n).to_string()
}

#[test]
fn errors_show_the_place() {
    let resolver = resolver();
    let error = resolver.text("port {{ Data.port + nope }}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown name nope\n --> expression:1:13\n  |\n1 | Data.port + nope\n  |             ^^^^"
    );
    let error = resolver.text("{{ template('{{ nope }}') }}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "template: in `nope`: unknown name nope\n --> expression:1:1\n  |\n\
         1 | template('{{ nope }}')\n  | ^^^^^^^^^^^^^^^^^^^^^^"
    );
    let error = resolver.evaluate("lookup('data.nope')").unwrap_err();
    assert!(error.to_string().contains("`data.nope`"), "{error}");
    assert!(matches!(resolver.text("a {{ }}"), Err(Error::Empty { .. })));
    let error = resolver.evaluate("file('/nonexistent/x')").unwrap_err();
    assert!(error.to_string().contains("/nonexistent/x: No such file"), "{error}");
}

#[test]
fn the_network_is_missed_only_when_called() {
    let resolver = resolver();
    assert_eq!(resolver.text("{{ true ? 1 : kvGet('b', 'k') }}").unwrap().text, "1");
    for call in ["kvGet('b', 'k')", "registrations('a', 'b', 'c', '*')"] {
        let error = resolver.evaluate(call).unwrap_err();
        assert!(error.to_string().contains("needs a network connection"), "{error}");
    }
}

#[test]
fn conditions_are_true_or_false() {
    let resolver = resolver();
    assert!(resolver.condition("Data.port > 1024").unwrap());
    for wrong in ["Data.port", "Data.nope", "'true'", "[true]", "", "true &&"] {
        assert!(resolver.condition(wrong).is_err(), "{wrong}");
    }
    let error = resolver.condition("Data.port").unwrap_err();
    assert_eq!(error.to_string(), "`Data.port` must be true or false, but is \"8080\"");
    let error = resolver.condition("Data.prot").unwrap_err();
    assert_eq!(error.to_string(), "`Data.prot` has no value; did you mean `Data.port`?");
}

#[test]
fn hierarchical_data_sees_facts_alone() {
    let resolver = Resolver::facts_only(
        &ccm_host::Host::new(),
        Facts::known(Map::from_iter([("os", "linux")])),
    );
    assert_eq!(resolver.value("{{ lookup('facts.os') }}").unwrap(), Value::from("linux"));
    assert_eq!(resolver.value("{{ lookup('data.x') }}").unwrap(), Value::from(""));
    assert_eq!(resolver.value("{{ Data.x }}").unwrap(), Value::Nil);
    for call in ["file('x')", "template('x')", "jet('x')", "kvGet('a', 'b')"] {
        assert!(resolver.evaluate(call).is_err(), "{call}");
    }
}

#[test]
fn the_model_reaches_the_engine() {
    let resolver = resolver();
    let templates: &dyn Templates = &resolver;
    assert_eq!(templates.text("${ Data.port }").unwrap(), "8080");
    assert_eq!(templates.script("${HOME} ${ Data.port }").unwrap(), "${HOME} 8080");
    assert_eq!(templates.value("{{ Data.port }}").unwrap(), Value::Int(8080));
    assert!(templates.text("{{ 'é'[0:1] }}").unwrap_err().message.contains("not UTF-8"));
}

#[test]
fn keys_are_expanded_when_asked() {
    let resolver = resolver();
    let map = Value::from(Map::from_iter([("p{{ Data.port }}", "{{ Data.list }}")]));
    assert_eq!(resolver.expand(&map, false).unwrap().to_string(), "map[p{{ Data.port }}:[1]]");
    assert_eq!(resolver.expand(&map, true).unwrap().to_string(), "map[p8080:[1]]");
}
