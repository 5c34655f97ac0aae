//! The manifest loader: any text gives a manifest or findings, never a panic.

#![no_main]

use std::path::Path;

use ccm_engine::{Engine, ManifestError};
use ccm_host::{Cancel, System};
use ccm_resources::TYPES;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let engine = Engine::new(System::default(), TYPES);
    let options = engine.options(Cancel::default());
    match engine.load_text(Path::new("/nonexistent/m.yaml"), text.to_owned(), &options) {
        Ok(manifest) => drop(ccm_yaml::to_yaml(&manifest.render())),
        Err(ManifestError::Invalid(diagnosis)) => drop(diagnosis.diagnostics().count()),
        Err(error) => drop(ccm_engine::chain(&error)),
    }
});
