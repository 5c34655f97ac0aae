//! Renders a directory of templates without a target, for editors.

use std::path::{Path, PathBuf};

use ccm_engine::Result;
use ccm_host::Host;
use ccm_template::Resolver;

use super::Language;
use super::render::{Output, Rules, render, render_text};

/// The rendered files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The output of the requested template.
    pub text: Option<Vec<u8>>,
    /// The files that would be made, sorted; the last one of a place counts.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Renders the templates of a directory, or one text as if it stood there.
/// Writes nothing.
pub fn preview(
    host: &Host,
    source: &Path,
    is_go: bool,
    delimiters: Option<(&str, &str)>,
    engine: &Resolver,
    text: Option<&str>,
) -> Result<Preview> {
    let (language, usual) =
        if is_go { (Language::Go, ("{{", "}}")) } else { (Language::Jet, ("[[", "]]")) };
    let delimiters = delimiters.unwrap_or(usual);
    let rules = Rules { language, delimiters, skip_empty: false, is_downloaded: false };
    let (text, outputs) = match text {
        Some(text) => render_text(host, source, rules, engine, text)?,
        None => (None, render(host, source, rules, engine)?),
    };
    let mut files = std::collections::BTreeMap::new();
    for output in outputs {
        if let Output::File(place, file) = output {
            files.insert(place, file.bytes.to_vec());
        }
    }
    Ok(Preview { text, files: files.into_iter().collect() })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use ccm_template::Scope;

    use super::*;

    #[test]
    fn a_text_renders_and_writes_as_in_a_scaffold_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        std::fs::create_dir_all(path.join("conf")).unwrap();
        std::fs::create_dir_all(path.join("_partials")).unwrap();
        std::fs::write(path.join("_partials/line"), "port [[ .port ]]").unwrap();
        std::fs::write(path.join("motd"), "hello").unwrap();
        let host = Host::new();
        let engine = Resolver::new(Scope::new(&host));
        let text = "[[ write(\"conf/a\", render(\"_partials/line\", map(\"port\", 80))) ]]done";
        let made = preview(&host, path, false, None, &engine, Some(text)).unwrap();
        assert_eq!(made.text.as_deref(), Some(&b"done"[..]));
        assert_eq!(made.files, [(PathBuf::from("conf/a"), b"port 80".to_vec())]);
        assert!(!path.join("conf/a").exists());
        let all = preview(&host, path, false, None, &engine, None).unwrap();
        assert_eq!(all.text, None);
        assert_eq!(all.files, [(PathBuf::from("motd"), b"hello".to_vec())]);
        let error = preview(&host, path, false, None, &engine, Some("[[ write(\"../x\", \"\") ]]"));
        assert!(error.unwrap_err().to_string().contains("not in the target directory"));
    }
}
