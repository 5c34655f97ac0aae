//! Loads a manifest: from its source to validated resources.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_archive::Limits;
use ccm_hiera::Document;
use ccm_host::{FileKind, Host, StandardInput};
use ccm_model::{
    Finding, Resolve as _, Severity, Stage, TemplateError, Templates, redact_credentials,
};
use ccm_template::{Resolver, Scope};
use ccm_yaml::{Comments, Kind, Node, Source, Span};

use super::item_findings::FindingsByItem;
use super::{
    Declarations, Diagnosis, Manifest, ManifestError, RemoteSource, control, doubted, jet_file,
    references, structure,
};
use crate::inputs::Inputs;
use crate::resource::{AnyType, PropertyError, resolve_and_check};
use crate::saved_plan::MAGIC;

/// The manifest in a tarball, at its top or one level down.
pub(super) const NAME: &str = "manifest.yaml";

/// Where a manifest comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRef {
    /// A file.
    Path(PathBuf),
    /// A tarball of manifests that others serve.
    Url(String),
    /// Standard input. Relative paths begin in the working directory.
    StandardInput,
}

impl SourceRef {
    /// Tells the kind of a source from how it is written.
    pub fn new(text: impl Into<PathBuf>) -> Self {
        let path = text.into();
        match path.to_str() {
            Some("-") => Self::StandardInput,
            Some(url) if url.contains("://") => Self::Url(url.to_owned()),
            _ => Self::Path(path),
        }
    }

    /// Its display name, without credentials.
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Url(url) => redact_credentials(url).into_owned(),
            Self::StandardInput => "-".to_owned(),
        }
    }
}

/// What manifests are read with.
#[derive(Clone, Copy)]
pub(crate) struct ManifestLoader<'a> {
    pub(crate) host: &'a Host,
    pub(crate) types: &'static [&'static dyn AnyType],
    pub(crate) inputs: &'a Inputs,
    /// Whether references may also be met by what ran before, as in a shared
    /// session or below another manifest.
    pub(crate) has_history: bool,
}

impl ManifestLoader<'_> {
    /// Anything larger was not written by a person, nor for one run.
    const MAX_SIZE: u64 = 256 << 20;

    /// Fetches what is elsewhere, then reads and checks the manifest.
    pub(crate) fn load(self, source: &SourceRef) -> Result<Manifest, ManifestError> {
        let name = source.name();
        match source {
            SourceRef::Path(path) => Ok(Manifest { name, ..self.load_file(path, None)? }),
            SourceRef::StandardInput => {
                let read = |source| ManifestError::Read { path: PathBuf::from("-"), source };
                let text = StandardInput::of(self.host).read_text(Self::MAX_SIZE).map_err(read)?;
                if let Some(reason) = self.host.cancel().reason() {
                    return Err(ManifestError::Interrupted { name, reason });
                }
                let path = self.host.current_dir().map_err(read)?.join("-");
                self.resolve(Source::new(name, text), Vec::new(), path, None)
            }
            SourceRef::Url(url) => {
                let tree = self.fetch(url, &name)?;
                let top = tree.path().to_owned();
                let remote = Arc::new(RemoteSource { top, _tree: Some(tree), name });
                let path = find_manifest(self.host, &remote.top, &remote.name)?;
                let name = remote.name.clone();
                Ok(Manifest { name, ..self.load_file(&path, Some(remote))? })
            }
        }
    }

    /// Reads and checks the manifest `path` of a tarball that was fetched and
    /// unpacked before, from what people call `name`.
    pub(crate) fn load_copy(self, path: &Path, name: &str) -> Result<Manifest, ManifestError> {
        let top = path.parent().unwrap_or(Path::new("/")).to_owned();
        let name = redact_credentials(name).into_owned();
        let remote = Arc::new(RemoteSource { top, _tree: None, name: name.clone() });
        Ok(Manifest { name, ..self.load_file(path, Some(remote))? })
    }

    fn fetch(self, url: &str, name: &str) -> Result<ccm_archive::TempTree, ManifestError> {
        ccm_archive::fetch_tree(self.host, url, &Limits::TREE).map_err(|error| {
            match self.host.cancel().reason() {
                Some(reason) => ManifestError::Interrupted { name: name.to_owned(), reason },
                None => error.into(),
            }
        })
    }

    /// Reads and checks a file; `remote` is what it was fetched with.
    pub(crate) fn load_file(
        self,
        path: &Path,
        remote: Option<Arc<RemoteSource>>,
    ) -> Result<Manifest, ManifestError> {
        let read = |source| ManifestError::Read { path: path.to_owned(), source };
        let (text, doubt) = self.host.read_judged(path, Self::MAX_SIZE).map_err(read)?;
        let findings: Vec<Finding> = doubted(self.host, doubt).into_iter().collect();
        let name = shown(path, remote.as_deref());
        let path = if path.is_absolute() {
            path.to_owned()
        } else {
            self.host.current_dir().map_err(read)?.join(path)
        };
        let Some(text) = text else {
            let source = Arc::new(Source::new(name, String::new()));
            return Err(ManifestError::Invalid(Diagnosis { source, findings }));
        };
        if text.as_bytes().starts_with(MAGIC) {
            return Err(ManifestError::SavedPlan { path });
        }
        self.resolve(Source::new(name, text), findings, path, remote)
    }

    /// Checks a text as if it were in the file `path`, with the display name
    /// `name`. If it is YAML, `see` gets its tree before that.
    pub(crate) fn load_text(
        self,
        name: &str,
        path: &Path,
        text: String,
        see: &mut dyn FnMut(&Source, &Node<'_>),
    ) -> Result<Manifest, ManifestError> {
        let source = Source::new(name, text);
        self.resolve_seen(source, Vec::new(), path.to_owned(), None, see)
    }

    /// Reads a text and checks everything; adds to what was found before.
    fn resolve(
        self,
        source: Source,
        findings: Vec<Finding>,
        path: PathBuf,
        remote: Option<Arc<RemoteSource>>,
    ) -> Result<Manifest, ManifestError> {
        self.resolve_seen(source, findings, path, remote, &mut |_, _| {})
    }

    fn resolve_seen(
        self,
        source: Source,
        mut findings: Vec<Finding>,
        path: PathBuf,
        remote: Option<Arc<RemoteSource>>,
        see: &mut dyn FnMut(&Source, &Node<'_>),
    ) -> Result<Manifest, ManifestError> {
        let source = Arc::new(source);
        let working_directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        let resolved = parse(&source, &mut findings).and_then(|(root, comments)| {
            if self.host.cancel().is_cancelled() {
                return None;
            }
            see(&source, &root);
            let document = (&root, &comments, &*source);
            match self.templates(document, &working_directory, &mut findings) {
                Ok(templates) => {
                    let (mut declarations, more) = self.declarations(root, &source, &templates);
                    findings.extend(more);
                    // A manifest that is invalid anyway is reported with all of its errors.
                    if findings.iter().any(|found| found.severity == Severity::Error) {
                        findings.append(&mut declarations.control_errors);
                    }
                    redact(self.host, &mut declarations.control_errors);
                    Some((templates, declarations))
                }
                Err(more) => {
                    findings.extend(more);
                    findings.extend(self.check_without_data(root, &source));
                    None
                }
            }
        });
        let name = source.name().to_owned();
        if let Some(reason) = self.host.cancel().reason() {
            return Err(ManifestError::Interrupted { name, reason });
        }
        redact(self.host, &mut findings);
        let mut warnings = Diagnosis { source, findings };
        warnings.sort();
        match resolved {
            Some((templates, declarations)) if !warnings.has_errors() => Ok(Manifest {
                name,
                path,
                remote,
                working_directory,
                declarations,
                templates,
                warnings,
            }),
            _ => Err(ManifestError::Invalid(warnings)),
        }
    }

    /// Resolves the manifest's data and makes the templates that see it.
    fn templates(
        self,
        (root, comments, source): (&Node<'_>, &Comments, &Source),
        directory: &Path,
        findings: &mut Vec<Finding>,
    ) -> Result<Resolver, Vec<Finding>> {
        let is_map = matches!(root.kind, Kind::Mapping(_));
        // What a manifest must be is said where its structure is read.
        if !is_map {
            let templates = self.inputs.templates(self.host, directory);
            return templates.map_err(|error| data_findings(&error, root, source));
        }
        let document = Document::from_node(root, comments, ccm_hiera::DATA)
            .map_err(|error| data_findings(&error, root, source))?;
        findings.extend(document.unreached().into_iter().map(|unreached| {
            let span = unreached.locate(root);
            Finding::warning(span, unreached.to_string()).hint(unreached.hint())
        }));
        let resolved = self.inputs.templates_for(self.host, &document, directory);
        let (templates, warnings) =
            resolved.map_err(|error| data_findings(&error, root, source))?;
        findings.extend(warnings.into_iter().map(|warning| {
            let message = warning.to_string();
            Finding::warning(warning.span, message)
        }));
        Ok(templates)
    }

    fn declarations(
        self,
        root: Node<'_>,
        source: &Source,
        templates: &Resolver,
    ) -> (Declarations, Vec<Finding>) {
        let mut declared = Declarations::default();
        let (mut findings, jet_file) =
            structure::read(root, self.reading(source, Some(templates)), &mut declared);
        let messages = [
            ("pre_message", &mut declared.pre_message),
            ("post_message", &mut declared.post_message),
        ];
        for ((property, message), span) in messages.into_iter().zip(declared.message_spans) {
            if let Err(error) = message.resolve(templates, false) {
                let failure = PropertyError { property, span: Some(span), error };
                findings.push(failure.finding(Some(source)));
            }
        }
        let Some(jet_file) = jet_file else {
            self.check(&mut declared, source, templates, &mut findings);
            return (declared, findings);
        };
        if let Some(rendered) = jet_file::render(self.host, templates, &jet_file, &mut findings) {
            let more = self.add_rendered(&mut declared, &rendered, templates);
            findings.extend(more.into_iter().map(|finding| finding.within(&rendered)));
            let control = std::mem::take(&mut declared.control_errors).into_iter();
            declared.control_errors = control.map(|finding| finding.within(&rendered)).collect();
            declared.rendered = Some(rendered);
            declared.template = Some(templates.directory().join(&jet_file.path));
        }
        (declared, findings)
    }

    /// Takes resources from what a template made.
    fn add_rendered(
        self,
        declared: &mut Declarations,
        rendered: &Source,
        templates: &Resolver,
    ) -> Vec<Finding> {
        let mut findings = match ccm_yaml::parse_lenient(rendered) {
            Ok((root, duplicates)) => {
                let with = self.reading(rendered, Some(templates));
                let mut findings = structure::read_resources(root, with, declared);
                findings.extend(duplicates.into_iter().map(syntax_finding));
                findings
            }
            Err(error) => return vec![syntax_finding(error)],
        };
        self.check(declared, rendered, templates, &mut findings);
        findings
    }

    fn reading<'t>(
        self,
        source: &'t Source,
        templates: Option<&'t Resolver>,
    ) -> structure::ReadContext<'t> {
        structure::ReadContext { types: self.types, templates, source }
    }

    /// Resolves the templates of the resources and checks everything.
    fn check(
        self,
        declared: &mut Declarations,
        source: &Source,
        templates: &Resolver,
        findings: &mut Vec<Finding>,
    ) {
        let mut of_items = FindingsByItem::default();
        for resource in &mut declared.resources {
            if self.host.cancel().is_cancelled() {
                return;
            }
            let Some(item) = resource.item().cloned() else {
                findings.extend(resolve_and_check(&mut **resource, templates, Some(source)));
                continue;
            };
            let templates = templates.with_item(&item);
            let mut found = resolve_and_check(&mut **resource, &templates, Some(source));
            if resource.has_name() && self.host.redactor().finds_in(&resource.common().name) {
                let message = "the name would show a secret of the item";
                found.push(Finding::error(resource.property_span("name"), message));
            }
            for finding in found {
                of_items.add(finding, &item);
            }
        }
        findings.extend(of_items.into_findings(Some(source), templates));
        if declared.resources.is_empty() && findings.is_empty() {
            findings.push(if declared.has_loops {
                let message = "there are no resources: no `for_each` has items";
                Finding::warning(Span::default(), message)
            } else {
                Finding::error(Span::default(), "there are no resources")
            });
        }
        let mut of_items = FindingsByItem::default();
        let (types, has_history) = (self.types, self.has_history);
        declared.repeated =
            references::check(source, declared, types, has_history, findings, &mut of_items);
        findings.extend(of_items.into_findings(Some(source), templates));
        references::expand_tags(&mut declared.resources);
        declared.control_errors = control::check(source, &declared.resources, templates);
    }

    /// What is wrong with a manifest whose data cannot be resolved. Resources
    /// with placeholders are checked only for their shape: nothing else is known
    /// of them.
    fn check_without_data(self, root: Node<'_>, source: &Source) -> Vec<Finding> {
        let mut declared = Declarations::default();
        let (mut findings, _) = structure::read(root, self.reading(source, None), &mut declared);
        let without_data = Resolver::new(Scope::new(self.host));
        findings.extend(control::check(source, &declared.resources, &without_data));
        let mut are_all_settled = true;
        for resource in &mut declared.resources {
            if resource.resolve(Stage::Parse, &NoTemplates).is_empty() {
                findings.extend(resource.findings(self.host));
            } else {
                are_all_settled = false;
            }
        }
        if are_all_settled {
            let (types, has_history) = (self.types, self.has_history);
            let mut of_items = FindingsByItem::default();
            references::check(source, &declared, types, has_history, &mut findings, &mut of_items);
            findings.extend(of_items.into_findings(None, &without_data));
        }
        findings
    }
}

/// The display name of a file.
pub(crate) fn shown(path: &Path, remote: Option<&RemoteSource>) -> String {
    let below = remote.and_then(|remote| {
        let inner = path.strip_prefix(&remote.top).ok()?;
        Some(format!("{}:{}", remote.name, inner.display()))
    });
    below.unwrap_or_else(|| path.display().to_string())
}

/// The manifest in an unpacked tarball, at its top or one level down. `name` is
/// the display name of the tarball.
///
/// # Errors
///
/// Fails if there is none, or more than one a level down.
pub fn find_manifest(host: &Host, top: &Path, name: &str) -> Result<PathBuf, ManifestError> {
    let read = |source| ManifestError::Read { path: top.to_owned(), source };
    let is_file = |path: &Path| -> Result<bool, ManifestError> {
        Ok(host.stat(path).map_err(read)?.is_some_and(|found| found.kind == FileKind::File))
    };
    let direct = top.join(NAME);
    if is_file(&direct)? {
        return Ok(direct);
    }
    let mut found = Vec::new();
    for directory in host.list(top).map_err(read)? {
        let path = top.join(directory).join(NAME);
        if is_file(&path).unwrap_or(false) {
            found.push(path);
        }
    }
    found.sort();
    let reason = match found.len() {
        1 => return Ok(found.swap_remove(0)),
        0 => format!("there is no {NAME} in it"),
        _ => {
            let shown = found.iter().filter_map(|path| path.strip_prefix(top).ok());
            let shown: Vec<String> = shown.map(|path| path.display().to_string()).collect();
            format!("it contains several: {}", shown.join(", "))
        }
    };
    Err(ManifestError::NotFound { name: name.to_owned(), reason })
}

/// Reads the tree, and the comments where there may be rules in them.
fn parse<'a>(source: &'a Source, findings: &mut Vec<Finding>) -> Option<(Node<'a>, Comments)> {
    let text = source.text();
    let parsed = if text.contains('#') && text.contains('@') {
        ccm_yaml::parse_annotated_lenient(source)
    } else {
        ccm_yaml::parse_lenient(source).map(|(root, more)| (root, Comments::default(), more))
    };
    match parsed {
        Ok((root, comments, duplicates)) => {
            findings.extend(duplicates.into_iter().map(syntax_finding));
            Some((root, comments))
        }
        Err(error) => {
            findings.push(syntax_finding(error));
            None
        }
    }
}

fn redact(host: &Host, findings: &mut [Finding]) {
    for finding in findings {
        let redactor = host.redactor();
        let texts = [&mut finding.message].into_iter().chain(&mut finding.hint);
        for text in texts.chain(&mut finding.resource) {
            if let Cow::Owned(redacted) = redactor.text(text) {
                *text = redacted;
            }
        }
    }
}

fn syntax_finding(error: ccm_yaml::SyntaxError) -> Finding {
    Finding::error(error.span, error.message).hint(error.hint)
}

/// Resolves nothing, because there is no data to resolve with.
struct NoTemplates;

impl Templates for NoTemplates {
    fn text(&self, _: &str) -> Result<String, TemplateError> {
        Err(TemplateError::new("there is no data"))
    }

    fn script(&self, text: &str) -> Result<String, TemplateError> {
        self.text(text)
    }
}

fn data_findings(error: &ccm_hiera::Error, root: &Node<'_>, source: &Source) -> Vec<Finding> {
    if let Some((document, findings)) = error.findings() {
        return findings.into_iter().map(|finding| finding.within(document)).collect();
    }
    match error {
        ccm_hiera::Error::Rules { failures } => {
            failures.iter().map(ccm_hiera::Failure::finding).collect()
        }
        error => {
            let span = error.locate(root, source);
            let message = if span.is_some() { error.brief() } else { crate::chain(error) };
            vec![Finding::error(span, message).hint(error.hint())]
        }
    }
}
