//! GJSON paths: any path over any text finds something, nothing, or is an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

const JSON: &str = r#"{"a":{"b":[1,2.5,"x",{"c":null,"d":[true,false]}]},"n":1e3,"s":"te\"xt","ü":{}}"#;

fuzz_target!(|input: (&str, &str)| {
    let (path, json) = input;
    let compiled = gjson::Path::compile(path);
    for json in [JSON, json] {
        if let Ok(found) = compiled.get(json) {
            found.text();
            let _ = found.value();
        }
    }
});
