//! A short run of what `fuzz/` does at length: seeds, mutated, fed to the
//! manifest loader. Any text gives declarations or findings, never a panic.

#![expect(clippy::disallowed_methods, reason = "the test reads its seeds")]

use std::path::Path;

use ccm_author::frame;
use ccm_engine::{Engine, ManifestError};
use ccm_host::{Cancel, System};
use ccm_resources::TYPES;
use ccm_testkit::Random;

const RUNS: usize = 30_000;
/// Drawing takes longer than finding; the pattern of the seeds stays even.
const DRAWN_EVERY: usize = 7;

/// Pieces that matter to the loader.
const WORDS: [&str; 24] = [
    "ccm:",
    "resources:",
    "- file:",
    "- exec:",
    "defaults:",
    "name: ",
    "ensure: absent",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "\n",
    "  ",
    "|\n",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "\"",
    "'",
    "#",
    "require: [",
    "\u{feff}",
];

fn mutate(seed: &str, seeds: &[String], random: &mut Random) -> String {
    let mut text: Vec<char> = seed.chars().collect();
    for _ in 0..=random.below(6) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(12)).min(text.len());
        match random.below(5) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, WORDS[random.below(WORDS.len())].chars())),
            2 => {
                let copy: Vec<char> = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
            3 => {
                let other: Vec<char> = seeds[random.below(seeds.len())].chars().collect();
                let from = random.below(other.len());
                let piece = &other[from..(from + random.below(40)).min(other.len())];
                text.splice(at..end, piece.iter().copied());
            }
            _ => {
                if let Some(c) = text.get_mut(at) {
                    *c = char::from_u32(random.below(0x300) as u32).unwrap_or('\0');
                }
            }
        }
    }
    text.into_iter().collect()
}

#[test]
fn no_mutation_of_a_manifest_panics_the_loader() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/manifest");
    let mut seeds: Vec<String> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // What a fuzzer has found and left there is not part of the seeds.
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 3, "the seeds are missing");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut valid = 0;
    let engine = Engine::new(System::default(), TYPES);
    let options = engine.options(Cancel::default());
    for run in 0..RUNS {
        let text = mutate(&seeds[run % seeds.len()], &seeds, &mut random);
        match engine.load_text(Path::new("/mutation"), text, &options) {
            Ok(manifest) => {
                valid += 1;
                ccm_yaml::to_yaml(&manifest.render());
            }
            Err(ManifestError::Invalid(diagnosis)) => {
                for found in diagnosis.findings.iter().filter(|found| found.source.is_none()) {
                    let span = found.span.unwrap_or_default();
                    diagnosis.source.position(span.start);
                }
                if run % DRAWN_EVERY == 0 {
                    frame::render(&diagnosis, TYPES, false);
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(valid > RUNS / 100, "only {valid} of {RUNS} got past the parser: the run shows little");
}
