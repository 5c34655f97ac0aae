//! The manifest loader: any text gives declarations or findings, never a panic.

#![no_main]

use ccm_engine::Declarations;
use ccm_template::Resolver;
use ccm_resources::TYPES;
use ccm_yaml::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text);
    let (declarations, findings) = Declarations::read(&ccm_host::Host::new(), &source, TYPES, &Resolver::default(), false);
    for finding in &findings {
        if let Some(span) = finding.span {
            source.position(span.start);
        }
    }
    if findings.is_empty() {
        ccm_yaml::to_yaml(&declarations.render());
    }
});
