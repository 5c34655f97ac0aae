//! The files of the directory: listed, read, saved.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use ccm_author::outline::outline;
use ccm_host::{Cancel, Digest, FindLimits, FoundFile, Saved};
use ccm_http::{Request, Response, StatusCode, header};
use ccm_yaml::{Kind, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::{App, Listed, lock};
use crate::error::{ApiError, ApiResult, ErrorDetails, OnDisk, json_response};

/// The largest file that can be opened.
pub(crate) const MAX_SIZE: u64 = 16 << 20;
/// What a listing finds at most.
pub(crate) const LIMITS: FindLimits = FindLimits { files: 2000, depth: 8 };
/// Larger files are listed without a look at them.
const MAX_LOOK: u64 = 2 << 20;
/// Time for looking at files; those that are left are listed without.
const LOOK: Duration = Duration::from_millis(700);
/// Files that are watched because a page has read them.
const MAX_OPENED: usize = 100;
const BOM: &str = "\u{feff}";

/// The files of the directory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Files {
    files: Vec<FileEntry>,
    /// Whether there are more.
    truncated: bool,
}

/// A file of the directory.
#[derive(Serialize, JsonSchema)]
struct FileEntry {
    path: String,
    kind: FileKind,
    size: u64,
    modified: String,
    writable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<usize>,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileKind {
    Manifest,
    Template,
    Data,
    Other,
}

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Eol {
    Lf,
    Crlf,
    Mixed,
}

/// A file that is open.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileText")]
pub(crate) struct FileRead<'a> {
    path: &'a str,
    /// With LF at the end of lines, and without a byte order mark.
    text: String,
    /// The digest of the bytes, for saving.
    digest: String,
    eol: Eol,
    bom: bool,
    writable: bool,
    notes: Vec<FileNote>,
}

/// Something to know about a file.
#[derive(Serialize, JsonSchema)]
struct FileNote {
    code: &'static str,
    message: &'static str,
}

/// A file that was saved.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileSaved {
    digest: String,
}

/// Whether a name is one of those that are listed.
pub(crate) fn is_listed(name: &OsStr) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    matches!(extension, Some("yaml" | "yml" | "json" | "jet" | "templ"))
}

pub(crate) fn list(app: &App, cancel: &Cancel) -> ApiResult<Response> {
    let tree = &app.settings.directory;
    let (found, truncated) =
        tree.find(LIMITS, &is_listed).map_err(|error| ApiError::file(&error))?;
    let until = Instant::now() + LOOK;
    let mut known = lock(&app.listed);
    let mut files = Vec::with_capacity(found.len());
    for FoundFile { place, stat, writable } in found {
        let Some(name) = place.to_str() else { continue };
        let is_known = known.get(name).is_some_and(|listed| {
            let is = &listed.stat;
            (is.dev, is.ino, is.size, is.mtime) == (stat.dev, stat.ino, stat.size, stat.mtime)
        });
        if !is_known && Instant::now() < until {
            let (kind, resources, errors) = look(app, &place, stat.size, cancel);
            known.insert(name.to_owned(), Listed { stat, kind, resources, errors });
        }
        let listed = known.get(name);
        files.push(FileEntry {
            path: name.to_owned(),
            kind: listed.map_or_else(|| kind_by_name(name), |listed| listed.kind),
            size: stat.size,
            modified: stat.mtime.to_string(),
            writable: writable && !app.settings.read_only,
            resources: listed.and_then(|listed| listed.resources),
            errors: listed.and_then(|listed| listed.errors),
        });
    }
    let names: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    known.retain(|name, _| names.contains(name.as_str()));
    Ok(json_response(StatusCode::OK, &Files { files, truncated }))
}

fn kind_by_name(name: &str) -> FileKind {
    match Path::new(name).extension().and_then(OsStr::to_str) {
        Some("jet" | "templ") => FileKind::Template,
        Some("yaml" | "yml" | "json") => FileKind::Data,
        _ => FileKind::Other,
    }
}

/// What a file is, and how many resources and errors it has.
fn look(
    app: &App,
    place: &Path,
    size: u64,
    cancel: &Cancel,
) -> (FileKind, Option<usize>, Option<usize>) {
    let name = place.to_string_lossy();
    let kind = kind_by_name(&name);
    if kind != FileKind::Data || size > MAX_LOOK {
        return (kind, None, None);
    }
    let read = app.settings.directory.read(place, MAX_LOOK).ok().flatten();
    let Some(text) = read.and_then(|(bytes, _)| String::from_utf8(bytes).ok()) else {
        return (FileKind::Other, None, None);
    };
    let source = Source::new(name, text);
    let root = match ccm_yaml::parse_lenient(&source) {
        Ok((root, _)) => root,
        // What it would be is a guess, for people only.
        Err(_) if source.text().lines().any(|line| line.starts_with("ccm:")) => {
            return (FileKind::Manifest, None, Some(1));
        }
        Err(_) => return (FileKind::Data, None, Some(1)),
    };
    let is_manifest = match &root.kind {
        Kind::Mapping(entries) => entries.iter().any(|entry| entry.key.text == "ccm"),
        _ => false,
    };
    if !is_manifest {
        return (FileKind::Data, None, None);
    }
    let resources = outline(&source).ok().map(|found| found.len());
    let errors = app.quiet(cancel.clone()).ok().map(|(engine, options)| {
        let path = app.settings.directory.path().join(place);
        match engine.load_text(&path, source.text().to_owned(), &options) {
            Ok(_) => 0,
            Err(ccm_engine::ManifestError::Invalid(diagnosis)) => {
                let is_error =
                    |finding: &&ccm_model::Finding| finding.severity == ccm_model::Severity::Error;
                diagnosis.findings.iter().filter(is_error).count()
            }
            Err(_) => 1,
        }
    });
    (FileKind::Manifest, resources, errors.filter(|&errors| errors > 0))
}

/// A text as it goes over the wire: line ends and byte order mark aside.
pub(crate) struct FileText {
    pub(crate) text: String,
    pub(crate) eol: Eol,
    pub(crate) bom: bool,
}

impl FileText {
    pub(crate) fn of(text: &str) -> Self {
        let (bom, text) = match text.strip_prefix(BOM) {
            Some(text) => (true, text),
            None => (false, text),
        };
        let lines = text.matches('\n').count();
        let pairs = text.matches("\r\n").count();
        let returns = text.matches('\r').count();
        let eol = match (returns, pairs) {
            (0, _) => Eol::Lf,
            (returns, pairs) if pairs == lines && returns == pairs => Eol::Crlf,
            _ => Eol::Mixed,
        };
        let text = match eol {
            Eol::Lf => text.to_owned(),
            _ => text.replace("\r\n", "\n").replace('\r', "\n"),
        };
        Self { text, eol, bom }
    }
}

pub(crate) fn read(app: &App, place: &str) -> ApiResult<Response> {
    let tree = &app.settings.directory;
    let read = tree.read(Path::new(place), MAX_SIZE).map_err(|error| ApiError::file(&error))?;
    let Some((bytes, _)) = read else { return Err(ApiError::not_found("such file")) };
    let digest = Digest::of(&bytes).to_string();
    let mut notes = Vec::new();
    let mut writable = tree.is_writable(Path::new(place));
    let decoded = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            writable = false;
            notes.push(note("not_utf8", "the file is not UTF-8, so it cannot be saved here"));
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
    };
    let FileText { text, eol, bom } = FileText::of(&decoded);
    if eol == Eol::Mixed {
        notes.push(note("mixed_eol", "some lines end with CRLF, others with LF"));
    }
    if !writable && notes.is_empty() {
        notes.push(note("read_only", "you may not write this file"));
    }
    let mut opened = lock(&app.opened);
    opened.retain(|known| known != place);
    if opened.len() == MAX_OPENED {
        opened.remove(0);
    }
    opened.push(place.to_owned());
    let writable = writable && !app.settings.read_only;
    let answer = FileRead { path: place, text, digest, eol, bom, writable, notes };
    Ok(json_response(StatusCode::OK, &answer))
}

fn note(code: &'static str, message: &'static str) -> FileNote {
    FileNote { code, message }
}

/// What must hold before a file is written.
pub(crate) enum Condition {
    /// It has this digest.
    Has(String),
    /// There is no such file.
    New,
}

impl Condition {
    pub(crate) fn of(request: &Request) -> ApiResult<Self> {
        let wrong = || {
            ApiError::malformed("saving needs the header If-Match with the digest that was read")
                .hint("or If-None-Match: * for a new file")
        };
        match (request.header(header::IF_MATCH), request.header(header::IF_NONE_MATCH)) {
            (Some(tag), None) => {
                let digest = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                digest.map(|digest| Self::Has(digest.to_owned())).ok_or_else(wrong)
            }
            (None, Some("*")) => Ok(Self::New),
            _ => Err(wrong()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteRequest {
    text: String,
    eol: String,
    bom: bool,
}

pub(crate) fn write(
    app: &App,
    place: &str,
    condition: &Condition,
    request: WriteRequest,
) -> ApiResult<Response> {
    if app.settings.read_only {
        return Err(ApiError::forbidden("read_only", "ccm studio was started with --read-only"));
    }
    if !is_listed(OsStr::new(place)) {
        let hint = "a name ends with .yaml, .yml, .json, .jet or .templ";
        return Err(ApiError::forbidden("outside", "files of this kind are not saved").hint(hint));
    }
    crate::texts::check_text(&request.text)?;
    let text = match request.eol.as_str() {
        "lf" => request.text,
        "crlf" => request.text.replace('\n', "\r\n"),
        _ => return Err(ApiError::malformed("`eol` is `lf` or `crlf` when a file is saved")),
    };
    let text = if request.bom { format!("{BOM}{text}") } else { text };
    if text.len() as u64 > MAX_SIZE {
        let message = format!("the file would be larger than {MAX_SIZE} bytes");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    let digest = Digest::of(text.as_bytes()).to_string();
    let (tree, file) = (&app.settings.directory, Path::new(place));
    let failed = |error: ccm_host::Error| ApiError::file(&error);
    let _alone = lock(&app.saving);
    let changed =
        |message: &str| ApiError::new(StatusCode::PRECONDITION_FAILED, "changed", message);
    match condition {
        Condition::New => {
            if !tree.create(file, text.as_bytes(), 0o644).map_err(failed)? {
                let message = "a file of this name already exists";
                return Err(ApiError::new(StatusCode::PRECONDITION_FAILED, "exists", message));
            }
        }
        Condition::Has(expected) => {
            let is_text = Cell::new(true);
            let is_expected = |bytes: &[u8]| {
                is_text.set(std::str::from_utf8(bytes).is_ok());
                is_text.get() && Digest::of(bytes).to_string() == *expected
            };
            match tree.save(file, text.as_bytes(), MAX_SIZE, is_expected).map_err(failed)? {
                Saved::Done => {}
                Saved::Gone => return Err(changed("the file no longer exists")),
                Saved::Differs(_) if !is_text.get() => {
                    let message = "the file is not UTF-8, so it cannot be saved here";
                    return Err(ApiError::conflict("not_utf8", message));
                }
                Saved::Differs(bytes) => {
                    let digest = Digest::of(&bytes).to_string();
                    let FileText { text, eol, bom } =
                        FileText::of(&String::from_utf8_lossy(&bytes));
                    let on_disk = Some(OnDisk { text, eol, bom, digest });
                    return Err(changed("the file has changed on the disk")
                        .with(ErrorDetails { on_disk, ..ErrorDetails::default() }));
                }
            }
        }
    }
    Ok(json_response(StatusCode::OK, &FileSaved { digest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_told_apart() {
        let eol = |text: &str| FileText::of(text).eol;
        assert_eq!(eol(""), Eol::Lf);
        assert_eq!(eol("a\nb"), Eol::Lf);
        assert_eq!(eol("a\r\nb\r\n"), Eol::Crlf);
        assert_eq!(eol("a\r\nb\n"), Eol::Mixed);
        assert_eq!(eol("a\rb\n"), Eol::Mixed);
        assert_eq!(eol("a\r\nb\r"), Eol::Mixed);
        let read = FileText::of("\u{feff}a\r\nb");
        assert_eq!((read.text.as_str(), read.bom), ("a\nb", true));
    }
}
