//! Caret frames of the real binary, for sources that are hard to point into.

use ccm_testkit::Random;
use std::path::Path;

use crate::TestEnv;

/// Mutations per command; `CCM_MUTATIONS` asks for more.
const MUTATIONS: usize = 60;

#[test]
fn errors_at_non_ascii_characters_are_drawn() {
    let env = TestEnv::new();
    for text in [
        "a: \"x\" é\n",
        "a: \"x\" 𝄞\n",
        "a: [é\n",
        "é: é: é\n",
        "a: \"é\n",
        "ccm: {resources: [{exec: [a]}]}\nb\u{feff}: \"x\" \u{feff}\n",
        "\u{feff}a: \"x\" \u{feff}y\n",
        "a: *é\n",
        "a: !é x\n",
        "é: 1\né: 2\n",
        "ccm:\n  resources:\n    - exec:\n        - a: {timeout: é, environment: [é], nö: 1}\n",
    ] {
        env.manifest(text);
        let picture = env.ccm(["validate", "manifest.yaml"]);
        assert!(picture.starts_with("exit: 1\n"), "{text:?}: {picture}");
        assert!(picture.contains(" --> manifest.yaml:"), "{text:?}: {picture}");
        let data = env.ccm(["hiera", "parse", "manifest.yaml"]);
        assert!(!data.starts_with("exit: 101"), "{text:?}: {data}");
    }
    env.manifest("a: \"x\" é\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: invalid trailing content after double-quoted scalar
     --> manifest.yaml:1:8
      |
    1 | a: "x" é
      |        ^
    "#);
}

#[test]
fn no_mutation_of_a_manifest_panics_what_draws_it() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/render");
    let seed = |name: &str| std::fs::read_to_string(corpus.join(name)).unwrap();
    let runs = std::env::var("CCM_MUTATIONS").map_or(MUTATIONS, |count| count.parse().unwrap());
    let env = TestEnv::new();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    // Guards of commands run in noop, and nobody knows what a mutated one does.
    let noop: &[&str] = &["files.yaml", "unicode.yaml"];
    let any: &[&str] =
        &["secrets.yaml", "data.yaml", "bom.yaml", "yaml.yaml", "shapes.yaml", "files.yaml"];
    for (args, seeds) in [
        (&["validate", "m.yaml"][..], any),
        (&["validate", "--color", "always", "m.yaml"], any),
        (&["apply", "--noop", "--diff=all", "m.yaml"], noop),
        (&["hiera", "parse", "m.yaml"], any),
    ] {
        let mut drawn = 0;
        for run in 0..runs {
            let text = mutate(&seed(seeds[run % seeds.len()]), &mut random);
            env.write("m.yaml", &text);
            let output = env.command(args).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let is_sound = matches!(output.status.code(), Some(0 | 1));
            assert!(is_sound && !stderr.contains("panicked"), "{args:?}: {text:?}: {stderr}");
            drawn += usize::from(stderr.contains("m.yaml"));
        }
        assert!(drawn > runs / 10, "{args:?}: only {drawn} of {runs} drew something");
    }
}

fn mutate(seed: &str, random: &mut Random) -> String {
    const PIECES: [&str; 14] = [
        "é", "\u{feff}", "𝄞", "\"", "'", ": ", "\t", "[", "}", "\u{301}", "\r", "\u{9b}", "*", "#",
    ];
    let mut text: Vec<char> = seed.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(6)).min(text.len());
        match random.below(3) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].chars())),
            _ => drop(text.splice(at..end, PIECES[random.below(PIECES.len())].chars())),
        }
    }
    text.into_iter().collect()
}
