//! Renders a directory of templates to files in memory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_engine::{Error, Result};
use ccm_host::{Cancel, FileKind, Folder, Host, Refuse};
use ccm_template::Resolver;
use serde::{Deserialize, Serialize};

use super::Language;
use super::languages::{Calls, Templates};

/// Templates that others render; not rendered by themselves.
const PARTIALS: &str = "_partials";
/// The largest template.
const MAX_FILE: u64 = 64 << 20;
/// No template that a person writes is larger.
const LARGE: usize = 1 << 20;
/// Templates that render templates need more stack than a thread usually has.
const STACK: usize = 64 << 20;

/// How templates are rendered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) language: Language,
    pub(super) delimiters: (&'a str, &'a str),
    pub(super) skip_empty: bool,
    /// The templates were downloaded, so only their URL vouches for them.
    pub(super) is_downloaded: bool,
}

/// What came out, in the order in which it did: later files replace earlier
/// ones of the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Directory(PathBuf),
    File(PathBuf, RenderedFile),
}

/// A file as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RenderedFile {
    #[serde(with = "base64")]
    pub(super) bytes: Arc<[u8]>,
    pub(super) mode: u32,
}

/// Bytes in a text.
mod base64 {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&govalue::base64::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = govalue::base64::decode(text.as_bytes());
        bytes.map(Arc::from).ok_or_else(|| D::Error::custom("not base64"))
    }
}

/// Renders everything in a directory.
pub(super) fn render(
    host: &Host,
    source: &Path,
    rules: Rules<'_>,
    engine: &Resolver,
) -> Result<Vec<Output>> {
    with_stack(|| Rendering::new(host, source, rules, engine)?.run())
}

/// Renders one text as if it stood in a directory of templates. Also gives what
/// it writes there.
pub(super) fn render_text(
    host: &Host,
    source: &Path,
    rules: Rules<'_>,
    engine: &Resolver,
    text: &str,
) -> Result<(Option<Vec<u8>>, Vec<Output>)> {
    with_stack(|| {
        let rendering = Rendering::new(host, source, rules, engine)?;
        rendering.directories(&rendering.source, Path::new(""))?;
        rendering.templates.calls().take();
        let made = rendering.templates.render(Path::new("template"), text)?;
        Ok((made, rendering.templates.calls().take()))
    })
}

/// The errors of templates that cannot be parsed, or print what does not exist.
/// What cannot be read is left to the run.
pub(super) fn check(
    host: &Host,
    source: &Path,
    rules: Rules<'_>,
    engine: &Resolver,
) -> Vec<String> {
    let checked = with_stack(|| {
        let rendering = Rendering::new(host, source, rules, engine)?;
        let mut errors = Vec::new();
        rendering.parse_all(&rendering.source, Path::new(""), &mut errors)?;
        if errors.is_empty() {
            rendering.directories(&rendering.source, Path::new(""))?;
            rendering.find_unknown(&rendering.source, Path::new(""), &mut errors)?;
        }
        Ok(errors)
    });
    checked.unwrap_or_default()
}

fn with_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let rendering = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        thread.map(std::thread::ScopedJoinHandle::join)
    });
    match rendering {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(Error::refused("rendering ended unexpectedly")),
        Err(error) => Err(Error::refused(format!("cannot begin rendering: {error}"))),
    }
}

struct Rendering<'a> {
    source: Arc<Folder>,
    rules: Rules<'a>,
    templates: Templates,
    cancel: Cancel,
}

impl<'a> Rendering<'a> {
    fn new(host: &Host, source: &Path, rules: Rules<'a>, engine: &Resolver) -> Result<Self> {
        let cancel = host.cancel().clone();
        let folder = if rules.is_downloaded {
            host.open_folder(source)?
        } else {
            host.open_trusted_folder(source, Refuse::IfStrict)?
        };
        let folder = folder.ok_or_else(|| Error::Refused {
            reason: format!("the source directory {} does not exist", source.display()),
            hint: Some("a relative source begins in the directory of the manifest".to_owned()),
        })?;
        let folder = Arc::new(folder);
        let templates = Templates::new(Arc::clone(&folder), rules, engine, cancel.clone());
        Ok(Self { source: folder, rules, templates, cancel })
    }

    fn run(self) -> Result<Vec<Output>> {
        self.directory(&self.source, Path::new(""))?;
        Ok(self.templates.calls().take())
    }

    /// Renders what is in a directory, in the order of names.
    fn directory(&self, folder: &Folder, place: &Path) -> Result<()> {
        for (name, kind) in folder.entries()? {
            let inner = place.join(&name);
            match kind {
                FileKind::Directory if name == PARTIALS => {
                    if let Some(partials) = folder.folder(&name)? {
                        check_partials(&partials)?;
                    }
                }
                // As the reference does it: nothing behind such a file is seen.
                _ if name == PARTIALS => return Ok(()),
                FileKind::Directory => {
                    let Some(below) = folder.folder(&name)? else { continue };
                    self.templates.calls().push(Output::Directory(inner.clone()))?;
                    self.directory(&below, &inner)?;
                }
                FileKind::File => self.file(folder, &name, &inner)?,
                FileKind::Symlink | FileKind::Other => {
                    return Err(Error::Refused {
                        reason: format!("invalid file in source: {}", inner.display()),
                        hint: Some(
                            "a source may contain only directories and regular files".to_owned(),
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Notes the directories, as if all of them had been rendered.
    fn directories(&self, folder: &Folder, place: &Path) -> Result<()> {
        for (name, kind) in folder.entries()? {
            if kind == FileKind::Directory && name != PARTIALS {
                let Some(below) = folder.folder(&name)? else { continue };
                let inner = place.join(&name);
                self.templates.calls().push(Output::Directory(inner.clone()))?;
                self.directories(&below, &inner)?;
            }
        }
        Ok(())
    }

    /// Parses every template, partials too.
    fn parse_all(&self, folder: &Folder, place: &Path, errors: &mut Vec<String>) -> Result<()> {
        for (name, kind) in folder.entries()? {
            let inner = place.join(&name);
            match kind {
                FileKind::Directory => {
                    if let Some(below) = folder.folder(&name)? {
                        self.parse_all(&below, &inner, errors)?;
                    }
                }
                FileKind::File => {
                    let (bytes, _) = folder.read(&name, MAX_FILE)?;
                    let text = String::from_utf8(bytes).ok().filter(|text| !self.is_data(text));
                    let error = text.and_then(|text| self.templates.error_in(&inner, &text));
                    errors.extend(error);
                }
                FileKind::Symlink | FileKind::Other => {}
            }
        }
        Ok(())
    }

    /// Renders every file for members that it prints and that do not exist. They
    /// are warned of, and errors with `CCM_STRICT=1`.
    fn find_unknown(&self, folder: &Folder, place: &Path, errors: &mut Vec<String>) -> Result<()> {
        for (name, kind) in folder.entries()? {
            let inner = place.join(&name);
            if name == PARTIALS || self.cancel.is_cancelled() {
                continue;
            }
            match kind {
                FileKind::Directory => {
                    if let Some(below) = folder.folder(&name)? {
                        self.find_unknown(&below, &inner, errors)?;
                    }
                }
                FileKind::File => {
                    let (bytes, _) = folder.read(&name, MAX_FILE)?;
                    let text = String::from_utf8(bytes).ok().filter(|text| !self.is_data(text));
                    errors.extend(text.and_then(|text| self.templates.unknown_in(&inner, &text)));
                    self.templates.calls().take();
                }
                FileKind::Symlink | FileKind::Other => {}
            }
        }
        Ok(())
    }

    /// What is this large and has no action in it is data, taken as it is.
    fn is_data(&self, text: &str) -> bool {
        let is_comment = self.rules.language == Language::Jet && text.contains("{*");
        text.len() > LARGE && !is_comment && !text.contains(self.rules.delimiters.0)
    }

    fn file(&self, folder: &Folder, name: &OsStr, place: &Path) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(Error::refused("rendering was interrupted"));
        }
        let (bytes, stat) = folder.read(name, MAX_FILE)?;
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if self.is_data(&text) => text.into_bytes(),
            Ok(text) => match self.templates.render(place, &text)? {
                Some(bytes) => bytes,
                None => return Ok(()),
            },
            // What is no text has no template in it, or cannot be read as one.
            Err(error) if !contains(error.as_bytes(), self.rules.delimiters.0) => {
                error.into_bytes()
            }
            Err(_) => {
                return Err(Error::refused(format!(
                    "cannot render {}: it has templates in it but is not UTF-8",
                    place.display()
                )));
            }
        };
        if self.rules.skip_empty && is_blank(&bytes) {
            return Ok(());
        }
        let mode = 0o644 | (stat.mode & 0o111);
        self.templates
            .calls()
            .push(Output::File(place.to_owned(), RenderedFile { bytes: bytes.into(), mode }))
    }
}

/// Judges all partials, those that nothing renders now too: which of them are
/// rendered may depend on facts.
fn check_partials(folder: &Folder) -> Result<()> {
    if !folder.is_judged() {
        return Ok(());
    }
    for (name, kind) in folder.entries()? {
        match kind {
            FileKind::Directory => {
                if let Some(below) = folder.folder(&name)? {
                    check_partials(&below)?;
                }
            }
            FileKind::File => folder.check(&name)?,
            // Judged when it is read, with what it leads to.
            FileKind::Symlink | FileKind::Other => {}
        }
    }
    Ok(())
}

impl Calls {
    fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes())
}

pub(super) fn is_blank(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).trim().is_empty()
}
