//! Go templates with Sprig: any text parses and renders, or is an error.

#![no_main]

use gotemplate::{Engine, Limits};
use govalue::{Map, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits { steps: 50_000, output: 1 << 16, ..Limits::default() };
    if let Ok(template) = Engine::new().limits(limits).parse("fuzz", text) {
        let list = Value::array([Value::Int(1), Value::from("x")]);
        let _ = template.render(&Value::from(Map::from_iter([("list", list)])));
    }
});
