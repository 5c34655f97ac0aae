//! `validate`, `apply --noop` and `hiera parse` up to what a person sees: any
//! text gives a preview or caret frames, never a panic.

#![no_main]

use std::path::Path;

use ccm_author::frame;
use ccm_engine::{
    Detail, Diagnosis, Diffs, Engine, Manifest, ManifestError, Observer, RunOptions,
};
use ccm_hiera::Document;
use ccm_host::{Cancel, System};
use ccm_resources::TYPES;
use ccm_template::Facts;
use libfuzzer_sys::fuzz_target;

/// Takes what is shown of a run, and shows it to nobody.
struct Screen;

impl Observer for Screen {
    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        draw(diagnosis);
    }
}

fuzz_target!(|text: &str| {
    let engine = Engine::new(System::default(), TYPES);
    let mut options = engine.options(Cancel::default());
    options.inputs.facts = Facts::known(Default::default());
    match engine.load_text(Path::new("/nonexistent/m.yaml"), text.to_owned(), &options) {
        Ok(manifest) => {
            draw(&manifest.warnings);
            ccm_yaml::to_yaml(&manifest.render());
            preview(&engine, options, manifest);
        }
        Err(ManifestError::Invalid(diagnosis)) => draw(&diagnosis),
        Err(error) => drop(ccm_engine::chain(&error)),
    }
    resolve(text);
});

fn draw(diagnosis: &Diagnosis) {
    // With color or without: one of them, by the source, for speed.
    frame::render(diagnosis, TYPES, diagnosis.source.text().len() % 2 == 0);
    let _ = diagnosis.to_string();
}

/// As `apply --noop --diff`. Only files: other types ask programs and servers
/// for their state, and a fuzzer must not write their command lines.
fn preview(engine: &Engine, mut options: RunOptions, manifest: Manifest) {
    if manifest.declarations.resources.iter().any(|resource| resource.kind() != "file") {
        return;
    }
    options.mode.noop = true;
    options.diffs = Diffs::All;
    options.detail = Detail::Report;
    let finished = engine.apply(manifest, &options, None, &mut Screen);
    let _ = serde_json::to_string(&finished.report);
}

/// As `hiera parse`.
fn resolve(text: &str) {
    let resolved = Document::parse("d.yaml", text)
        .and_then(|document| document.resolve(&ccm_host::Host::new(), &Facts::known(Default::default()), None));
    match resolved {
        Ok(resolved) => {
            for warning in &resolved.warnings {
                let _ = warning.to_string();
            }
            let data = govalue::Value::from(resolved.data);
            let _ = govalue::json::encode(&data, govalue::json::Options::default());
        }
        Err(error) => drop(ccm_engine::chain(&error)),
    }
}
