//! Jet: any text parses and renders, or is an error, within its limits.

#![no_main]

use govalue::{Map, Value};
use jet::{Limits, Set, Variables};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits { steps: 50_000, output: 1 << 16, ..Limits::default() };
    let set = Set::new().with_delimiters("[[", "]]").with_limits(limits);
    if let Ok(template) = set.parse("fuzz", text) {
        let data = Value::from(Map::from_iter([("list", Value::array([Value::Int(1)]))]));
        let mut variables = Variables::default();
        variables.set("data", data.clone());
        let _ = set.render(&template, &variables, &data);
    }
});
