//! Invariants of `ARCHITECTURE.md` that can be seen in the source.

use std::fmt::Write as _;
use std::path::Path;

/// The state of a process belongs into values that are passed on: two engines in
/// one process must not meet in a variable.
const MUTABLE: [&str; 7] =
    ["Mutex<", "RwLock<", "Atomic", "Cell<", "OnceLock<", "static mut ", "thread_local!"];

/// Handles to the machine are made where a process begins, and passed on.
const HANDLES: [&str; 4] = ["Host::new()", "Host::default()", "System::default()", "System::new("];

/// One place adds source schemes, so that every command knows the same ones.
const SCHEMES: [&str; 2] = [".with_network(", ".with_fetch("];

/// Names of types that mean something else in other places, too.
const COMMON_WORDS: [&str; 6] = ["apply", "edit", "exec", "file", "group", "user"];

/// The names of all resource types, as `ccm-resources` declares them.
pub(super) fn type_names(root: &Path) -> Vec<String> {
    let declared = std::fs::read_dir(root.join("crates/ccm-resources/src")).into_iter().flatten();
    let texts = declared.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let name = |text: String| {
        let (_, rest) = text.split_once("const NAME: &'static str = \"")?;
        rest.split_once('"').map(|(name, _)| name.to_owned())
    };
    let mut names: Vec<String> = texts.filter_map(name).collect();
    names.retain(|name| !COMMON_WORDS.contains(&name.as_str()));
    names
}

pub(super) fn check(name: &str, text: &str, types: &[String], problems: &mut String) {
    if let Some(inside) = name.strip_prefix("lib/") {
        check_library(name, inside, text, problems);
    }
    let Some(inside) = name.strip_prefix("crates/") else { return };
    let (owner, file) = inside.split_once('/').unwrap_or_default();
    let is_rust = Path::new(file).extension().is_some_and(|end| end == "rs");
    let is_source = is_rust && file.starts_with("src/") && !is_test_file(file);
    if !is_source || owner == "ccm-testkit" {
        return;
    }
    check_globals(name, text, problems);
    for (number, line) in product_lines(text) {
        let mut report = |what: &str, reason: &str| {
            let _ = writeln!(problems, "{name}:{number}: `{what}`: {reason}");
        };
        if !matches!(owner, "ccm" | "ccm-host") {
            for word in HANDLES.iter().filter(|word| line.contains(**word)) {
                report(word, "only the binary and tests make handles to the machine");
            }
        }
        if owner != "ccm-host" && name != "crates/ccm/src/commands/flags.rs" {
            for word in SCHEMES.iter().filter(|word| line.contains(**word)) {
                report(word, "only `with_network` of `flags.rs` adds source schemes");
            }
        }
        // Some kinds of Goss rules are called as types are, and an entry of a
        // registry has a member of this name.
        let is_registry = file.contains("registration") || file == "src/network.rs";
        if !matches!(owner, "ccm-resources" | "ccm-goss") {
            let types = types.iter().filter(|kind| !(is_registry && *kind == "service"));
            for kind in types.filter(|kind| line.contains(&format!("\"{kind}\""))) {
                report(kind, "only ccm-resources names resource types; use the list of types");
            }
        }
    }
}

fn check_globals(name: &str, text: &str, problems: &mut String) {
    for (number, line) in product_lines(text) {
        let is_static = line.trim_start().trim_start_matches("pub").contains("static ");
        let is_declared = is_static && line.contains(": ") && !line.contains("&'static");
        let is_global = |word: &str| is_declared || word.ends_with(['!', ' ']);
        for word in MUTABLE.into_iter().filter(|word| line.contains(word) && is_global(word)) {
            let reason = "a variable of the process that can change; pass a value on";
            let _ = writeln!(problems, "{name}:{number}: `{word}`: {reason}");
        }
    }
}

/// The language crates can be published: they know nothing of ccm. Tests may,
/// as recorded vectors do.
fn check_library(name: &str, inside: &str, text: &str, problems: &mut String) {
    // The reader of the vectors is for tests alone, and knows their variable.
    let is_test = inside.split('/').nth(1) == Some("tests") || inside.starts_with("vectors/");
    if !is_test && inside.contains("/src/") {
        check_globals(name, text, problems);
    }
    let lines = text.lines().enumerate();
    for (at, _) in lines.filter(|(_, line)| !is_test && line.to_lowercase().contains("ccm")) {
        let _ = writeln!(problems, "{name}:{}: mentions ccm, which lib/ knows nothing of", at + 1);
    }
}

fn is_test_file(file: &str) -> bool {
    let is_named = |name: &str| file.ends_with(&format!("/{name}.rs"));
    ["tests", "testing", "vectors"].into_iter().any(is_named)
        || ["/tests/", "/docs/"].iter().any(|folder| file.contains(folder))
}

/// The lines that are compiled into a product, with their numbers: no comments,
/// and nothing from the tests on, which are the last part of a file.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_last_part = |rest: &str| {
        let mut lines = rest.lines();
        let is_test = lines.next().is_some_and(|line| line == "#[cfg(test)]");
        // Further attributes come before the module, and have lines of their own.
        let is_item = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
        let item = lines.find(is_item).unwrap_or_default();
        is_test && item.starts_with("mod ") && item.ends_with('{')
    };
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let end = starts.into_iter().find(|&at| is_last_part(&text[at..])).unwrap_or(text.len());
    let lines = text[..end].lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, text: &str) -> usize {
        let mut problems = String::new();
        check(name, text, &["service".to_owned()], &mut problems);
        problems.lines().count()
    }

    #[test]
    fn what_breaks_an_invariant_is_found() {
        let engine = "crates/ccm-engine/src/run.rs";
        for text in [
            "static COUNT: AtomicU64 = AtomicU64::new(0);",
            "pub(crate) static KNOWN: Mutex<u8> = Mutex::new(0);",
            "static mut X: u8 = 0;",
            "thread_local! {",
            "let host = Host::new();",
            "let system = System::default();",
            "if kind.name() == \"service\" {",
        ] {
            assert_eq!(problems(engine, text), 1, "{text}");
        }
        assert_eq!(problems("lib/expr/src/lib.rs", "//! The expressions of CCM."), 1);
        assert_eq!(problems("lib/expr/src/vm/scope.rs", "thread_local! {"), 1);
    }

    #[test]
    fn what_keeps_them_is_not() {
        let engine = "crates/ccm-engine/src/run.rs";
        for text in [
            "static WORDS: LazyLock<Regex> = LazyLock::new(words);",
            "    cache: Mutex<Vec<&'static str>>,",
            "fn f(names: &'static [u8], lock: &Mutex<u8>) {}",
            "// Host::new() is for tests.",
            "#[cfg(test)]\nmod tests {\n    let host = Host::new();\n}",
            "#[cfg(test)]\n#[expect(\n    x\n)]\nmod tests {\n    let host = Host::new();\n}",
        ] {
            assert_eq!(problems(engine, text), 0, "{text}");
        }
        assert_eq!(problems("crates/ccm/src/main.rs", "System::default()"), 0);
        let scheme = "let system = system.with_fetch(Arc::new(nats));";
        assert_eq!(problems("crates/ccm-agent/src/agent.rs", scheme), 1);
        assert_eq!(problems("crates/ccm/src/commands/edit.rs", scheme), 1);
        assert_eq!(problems("crates/ccm/src/commands/flags.rs", scheme), 0);
        assert_eq!(problems("crates/ccm-resources/src/service.rs", "\"service\""), 0);
        assert_eq!(problems("crates/ccm-engine/src/apply/tests.rs", "Host::new()"), 0);
        assert_eq!(problems("lib/expr/tests/support/mod.rs", "ccm"), 0);
    }
}
