//! Placeholders: any text scans, and resolves or is an error.

#![no_main]

use std::sync::LazyLock;

use ccm_template::placeholder::{Openers, scan};
use ccm_template::{Resolver, Scope};
use govalue::Map;
use libfuzzer_sys::fuzz_target;

static ENGINE: LazyLock<Resolver> = LazyLock::new(|| {
    Resolver::restricted(Scope { data: Map::from_iter([("port", 8080)]), ..Scope::new(&ccm_host::Host::new()) })
});

fuzz_target!(|text: &str| {
    for openers in [Openers::All, Openers::Shell] {
        for found in scan(text, openers) {
            let Ok(found) = found else { break };
            assert!(text.is_char_boundary(found.start) && text.is_char_boundary(found.end));
        }
    }
    // Each text is new to the cache of expressions, so it must not live for ever.
    let engine = ENGINE.with_data(Map::from_iter([("port", 8080)]));
    let _ = engine.text(text);
    let _ = engine.value(text);
});
