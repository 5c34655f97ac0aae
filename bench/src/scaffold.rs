//! A directory of templates, rendered and compared with what is there.

use std::fs;
use std::io;
use std::path::Path;

use crate::generate;
use crate::measure::median;
use crate::report::{TIMES, row};

const N: usize = 1_000;

/// One kibibyte with placeholders for facts and data, another for every file.
fn template(n: usize, [fact, data]: [&str; 2]) -> String {
    let text = generate::content(n);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.truncate(12);
    lines.extend([fact, data, fact, data]);
    lines.join("\n") + "\n"
}

/// Both languages against reading and hashing templates and rendered files.
pub(crate) fn measure(ccm: &str, me: &str, base: &Path) -> io::Result<()> {
    let languages = [
        (
            "jet",
            [
                "host = [[ facts.host.info.hostname ]]",
                "port = [[ data.port ]], [[ data.app | upper ]]",
            ],
        ),
        (
            "go",
            [
                "host = {{ .facts.host.info.hostname }}",
                "port = {{ .data.port }}, {{ .data.app | upper }}",
            ],
        ),
    ];
    for (language, actions) in languages {
        let directory = base.join(format!("scaffold-{language}"));
        let (source, target) = (directory.join("source"), directory.join("target"));
        fs::create_dir_all(&source)?;
        for n in 0..N {
            fs::write(generate::path(&source, n), template(n, actions))?;
        }
        let manifest = directory.join("manifest.yaml");
        let text = format!(
            "data: {{port: 8080, app: shop}}\nccm:\n  resources:\n    - scaffold:\n        \
             - {}: {{source: source, engine: {language}}}\n",
            target.display()
        );
        fs::write(&manifest, text)?;
        let apply = [ccm, "apply", &manifest.to_string_lossy(), "--no-sync"];
        median(1, &apply, || Ok(()))?;
        let read = |directory: &Path| {
            let directory = directory.to_string_lossy();
            median(TIMES, &[me, "floor", "read", &directory, &N.to_string()], || Ok(()))
        };
        let mut floor = read(&source)?;
        let rendered = read(&target)?;
        let stable = median(TIMES, &apply, || Ok(()))?;
        row(
            &format!("{N} {language} templates stable, floor: rendered files"),
            stable,
            Some(rendered),
        );
        floor.cpu += rendered.cpu;
        row(
            &format!("{N} {language} templates stable, floor: templates and rendered files"),
            stable,
            Some(floor),
        );
    }
    Ok(())
}
