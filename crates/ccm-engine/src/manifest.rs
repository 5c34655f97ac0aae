//! Manifests: resources read from YAML, with everything that is wrong found in
//! one pass.

mod children;
mod jet_file;
mod references;
mod structure;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_hiera::Document;
use ccm_host::Host;
use ccm_model::{Finding, Resolve as _, Severity, Stage, TemplateError, Templates};
use ccm_template::Engine;
use ccm_yaml::{Comments, Kind, Node, Source, Span};
use serde_json::{Map, Value, json};

pub use children::Children;

use crate::inputs::Inputs;
use crate::resource::{AnyResource, AnyType, PropertyError, resolve_and_check};

/// A manifest that can be applied.
pub struct Manifest {
    /// Where it was read from.
    pub path: PathBuf,
    /// Where its relative paths begin: its own directory.
    pub working_directory: PathBuf,
    /// What was declared.
    pub declarations: Declarations,
    /// What its templates see, for those that are resolved later.
    pub templates: Engine,
    /// What is worth knowing and stops nothing.
    pub warnings: Diagnosis,
}

/// What a manifest declares.
#[derive(Default)]
pub struct Declarations {
    /// The resources, in the order in which they run.
    pub resources: Vec<Box<dyn AnyResource>>,
    /// Printed before the run.
    pub pre_message: Option<String>,
    /// Printed after a run without errors.
    pub post_message: Option<String>,
    /// Stop at the first resource that fails.
    pub fail_on_error: bool,
    /// Where `pre_message` and `post_message` stand.
    pub(crate) message_spans: [Span; 2],
    /// The text that the resources stand in, if a template made it.
    pub(crate) rendered: Option<Arc<Source>>,
}

/// What is wrong with one source.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The source.
    pub source: Arc<Source>,
    /// What is wrong with it, in the order of places.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Whether anything in it is more than worth knowing.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|found| found.severity == Severity::Error)
    }
}

/// Everything that is wrong in plain text: `file:line:column: what (hint)`.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// An event is no place for more; the screen shows all of them.
        const MAX_SHOWN: usize = 20;
        let is_wrong = |finding: &&Finding| finding.severity == Severity::Error;
        let errors: Vec<&Finding> = self.findings.iter().filter(is_wrong).collect();
        for (index, finding) in errors.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let source = finding.source.as_ref().unwrap_or(&self.source);
            f.write_str(source.name())?;
            if let Some(span) = finding.span {
                let place = source.position(span.start);
                write!(f, ":{}:{}", place.line, place.column)?;
            }
            let resource = finding.resource.as_deref().map(|name| format!("{name}: "));
            write!(f, ": {}{}", resource.unwrap_or_default(), finding.message)?;
            if let Some(hint) = &finding.hint {
                write!(f, " ({hint})")?;
            }
        }
        match errors.len().checked_sub(MAX_SHOWN) {
            Some(more @ 1..) => write!(f, "\n… and {more} more"),
            _ => Ok(()),
        }
    }
}

/// Why there is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It could not be read.
    #[error("cannot read manifest {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: ccm_host::Error,
    },
    /// It is wrong.
    #[error("manifest {} is invalid", .0.source.name())]
    Invalid(Diagnosis),
}

impl ManifestError {
    /// What to do next, unless the findings say it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source: ccm_host::Error::TooLarge { .. }, .. } => {
                Some("split it: `apply` resources apply further manifests".to_owned())
            }
            Self::Read { source, .. } => source.hint(),
            Self::Invalid(_) => None,
        }
    }
}

impl Manifest {
    /// Anything larger was not written by a person, nor for one run.
    const MAX_SIZE: u64 = 256 << 20;

    /// Reads and checks a manifest. `elsewhere` says that references may also
    /// be met by what ran before, as in a shared session.
    pub fn load(
        host: &Host,
        path: &Path,
        types: &[&'static dyn AnyType],
        inputs: &Inputs,
        elsewhere: bool,
    ) -> Result<Self, ManifestError> {
        let read = |source| ManifestError::Read { path: path.to_owned(), source };
        let (text, doubt) = host.read_judged(path, Self::MAX_SIZE).map_err(read)?;
        let working_directory = match path.parent() {
            Some(parent) if parent.is_absolute() => parent.to_owned(),
            parent => host.current_dir().map_err(read)?.join(parent.unwrap_or(Path::new(""))),
        };
        let findings: Vec<Finding> = doubted(host, doubt).into_iter().collect();
        let Some(text) = text else {
            let source = Arc::new(Source::new(inputs.shown(path), String::new()));
            return Err(ManifestError::Invalid(Diagnosis { source, findings }));
        };
        let source = Arc::new(Source::new(inputs.shown(path), text));
        let (resolved, warnings) =
            resolve(host, source, findings, &working_directory, types, inputs, elsewhere)?;
        let Resolved { templates, declarations } = resolved;
        Ok(Self { path: path.to_owned(), working_directory, declarations, templates, warnings })
    }

    /// Checks the text of a manifest that was read already, as if it were in
    /// `working_directory`.
    pub fn parse(
        host: &Host,
        name: &str,
        text: String,
        working_directory: &Path,
        types: &[&'static dyn AnyType],
        inputs: &Inputs,
    ) -> Result<Self, ManifestError> {
        let source = Arc::new(Source::new(name, text));
        let (resolved, warnings) =
            resolve(host, source, Vec::new(), working_directory, types, inputs, false)?;
        let Resolved { templates, declarations } = resolved;
        let working_directory = working_directory.to_owned();
        Ok(Self { path: name.into(), working_directory, declarations, templates, warnings })
    }

    /// The manifest as it stands now: data and resources.
    pub fn render(&self) -> Value {
        let mut rendered = Map::new();
        let data = govalue::json::encode(self.templates.data(), govalue::json::Options::default());
        let data = data.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        if let Some(Value::Object(data)) = data.filter(|data| data != &json!({})) {
            rendered.insert("data".into(), Value::Object(data));
        }
        rendered.insert("ccm".into(), self.declarations.render());
        Value::Object(rendered)
    }
}

/// What a manifest comes to with its data.
struct Resolved {
    templates: Engine,
    declarations: Declarations,
}

/// Reads a text and checks everything; adds to what was found before.
fn resolve(
    host: &Host,
    source: Arc<Source>,
    mut findings: Vec<Finding>,
    working_directory: &Path,
    types: &[&'static dyn AnyType],
    inputs: &Inputs,
    elsewhere: bool,
) -> Result<(Resolved, Diagnosis), ManifestError> {
    let resolved = parse(&source, &mut findings).and_then(|(root, comments)| {
        let document = (&root, &comments, &*source);
        match templates(host, document, inputs, working_directory, &mut findings) {
            Ok(templates) => {
                let (declarations, more) =
                    Declarations::from_root(host, root, &source, types, &templates, elsewhere);
                findings.extend(more);
                Some(Resolved { templates, declarations })
            }
            Err(more) => {
                findings.extend(more);
                findings.extend(check_without_data(host, root, &source, types, elsewhere));
                None
            }
        }
    });
    findings.sort_by_key(|finding| {
        (finding.source.is_some(), finding.span.map_or(0, |span| span.start))
    });
    let diagnosis = Diagnosis { source, findings };
    match resolved {
        Some(resolved) if !diagnosis.has_errors() => Ok((resolved, diagnosis)),
        _ => Err(ManifestError::Invalid(diagnosis)),
    }
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

fn syntax_finding(error: ccm_yaml::SyntaxError) -> Finding {
    Finding::error(error.span, error.message).hint(error.hint)
}

/// What is wrong with a manifest whose data cannot be resolved. Resources with
/// placeholders are checked only for their shape: nothing else is known of them.
fn check_without_data(
    host: &Host,
    root: Node<'_>,
    source: &Source,
    types: &[&'static dyn AnyType],
    elsewhere: bool,
) -> Vec<Finding> {
    let mut declarations = Declarations::default();
    let (mut findings, _) = structure::read(root, types, &mut declarations);
    let mut are_all_settled = true;
    for resource in &mut declarations.resources {
        if resource.resolve(Stage::Parse, &NoTemplates).is_empty() {
            findings.extend(resource.findings(host));
        } else {
            are_all_settled = false;
        }
    }
    if are_all_settled {
        references::check(source, &declarations.resources, types, elsewhere, &mut findings);
    }
    findings
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

    fn condition(&self, expression: &str) -> Result<bool, TemplateError> {
        self.text(expression).map(|_| false)
    }
}

/// Resolves the manifest's data and makes the templates that see it.
fn templates(
    host: &Host,
    (root, comments, source): (&Node<'_>, &Comments, &Source),
    inputs: &Inputs,
    directory: &Path,
    findings: &mut Vec<Finding>,
) -> Result<Engine, Vec<Finding>> {
    let is_map = matches!(root.kind, Kind::Mapping(_));
    // What a manifest must be is said where its structure is read.
    if !is_map {
        return inputs
            .templates(host, directory)
            .map_err(|error| data_findings(&error, root, source));
    }
    let document = Document::from_node(root, comments, ccm_hiera::DATA);
    let resolved = document.and_then(|document| inputs.templates_for(host, &document, directory));
    let (templates, warnings) = resolved.map_err(|error| data_findings(&error, root, source))?;
    findings.extend(warnings.into_iter().map(|warning| {
        let message = warning.to_string();
        Finding::warning(warning.span, message)
    }));
    Ok(templates)
}

fn data_findings(error: &ccm_hiera::Error, root: &Node<'_>, source: &Source) -> Vec<Finding> {
    match error {
        ccm_hiera::Error::Rules { failures } => failures
            .iter()
            .map(|failure| Finding::error(failure.span, failure.to_string()))
            .collect(),
        error => {
            let span = error.locate(root, source);
            let message = if span.is_some() { error.brief() } else { crate::chain(error) };
            vec![Finding::error(span, message).hint(error.hint())]
        }
    }
}

impl Declarations {
    /// Reads a text; what is wrong comes beside what could be read.
    pub fn read(
        host: &Host,
        source: &Source,
        types: &[&'static dyn AnyType],
        templates: &Engine,
        elsewhere: bool,
    ) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let Some((root, _)) = parse(source, &mut findings) else {
            return (Self::default(), findings);
        };
        let (this, more) = Self::from_root(host, root, source, types, templates, elsewhere);
        findings.extend(more);
        (this, findings)
    }

    fn from_root(
        host: &Host,
        root: Node<'_>,
        source: &Source,
        types: &[&'static dyn AnyType],
        templates: &Engine,
        elsewhere: bool,
    ) -> (Self, Vec<Finding>) {
        let mut this = Self::default();
        let (mut findings, jet_file) = structure::read(root, types, &mut this);
        let messages =
            [("pre_message", &mut this.pre_message), ("post_message", &mut this.post_message)];
        for ((property, message), span) in messages.into_iter().zip(this.message_spans) {
            if let Err(error) = message.resolve(templates, false) {
                let failure = PropertyError { property, span: Some(span), error };
                findings.push(failure.finding(Some(source)));
            }
        }
        if let Some(jet_file) = jet_file {
            if let Some(rendered) = jet_file::render(host, templates, &jet_file, &mut findings) {
                let more = this.add_rendered(&rendered, types, templates, elsewhere);
                findings.extend(more.into_iter().map(|finding| finding.within(&rendered)));
                this.rendered = Some(rendered);
            }
            return (this, findings);
        }
        this.resolve(source, types, templates, elsewhere, &mut findings);
        (this, findings)
    }

    /// Takes resources from what a template made.
    fn add_rendered(
        &mut self,
        rendered: &Source,
        types: &[&'static dyn AnyType],
        templates: &Engine,
        elsewhere: bool,
    ) -> Vec<Finding> {
        let mut findings = match ccm_yaml::parse_lenient(rendered) {
            Ok((root, duplicates)) => {
                let mut findings = structure::read_resources(root, types, self);
                findings.extend(duplicates.into_iter().map(syntax_finding));
                findings
            }
            Err(error) => return vec![syntax_finding(error)],
        };
        self.resolve(rendered, types, templates, elsewhere, &mut findings);
        findings
    }

    /// Resolves the templates of the resources and checks everything.
    fn resolve(
        &mut self,
        source: &Source,
        types: &[&'static dyn AnyType],
        templates: &Engine,
        elsewhere: bool,
        findings: &mut Vec<Finding>,
    ) {
        for resource in &mut self.resources {
            findings.extend(resolve_and_check(&mut **resource, templates, Some(source)));
        }
        if self.resources.is_empty() && findings.is_empty() {
            findings.push(Finding::error(Span::default(), "there are no resources"));
        }
        references::check(source, &self.resources, types, elsewhere, findings);
    }

    /// Something about a resource, at its place.
    pub(crate) fn finding(
        &self,
        resource: &dyn AnyResource,
        message: impl Into<String>,
    ) -> Finding {
        let finding = Finding::error(resource.span(), message).of(resource.display());
        match &self.rendered {
            Some(rendered) => finding.within(rendered),
            None => finding,
        }
    }

    /// Whether any resource may ask what became of another.
    pub fn has_references(&self, types: &[&'static dyn AnyType]) -> bool {
        let nests = |kind: &str| types.iter().any(|known| known.name() == kind && known.nests());
        self.resources.iter().any(|resource| {
            let has_own = !resource.common().require.is_empty() || !resource.subscribe().is_empty();
            has_own || nests(resource.kind())
        })
    }

    /// The declarations as they stand now, as the `ccm` section of a manifest.
    pub fn render(&self) -> Value {
        let resources = self.resources.iter().map(|resource| {
            let mut properties = resource.properties();
            let name = properties.as_object_mut().and_then(|map| map.shift_remove("name"));
            let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
            json!({ resource.kind(): [{ name: properties }] })
        });
        let mut ccm = Map::new();
        let messages = [("pre_message", &self.pre_message), ("post_message", &self.post_message)];
        for (name, message) in messages {
            if let Some(message) = message {
                ccm.insert(name.into(), message.as_str().into());
            }
        }
        if self.fail_on_error {
            ccm.insert("fail_on_error".into(), true.into());
        }
        ccm.insert("resources".into(), resources.collect());
        Value::Object(ccm)
    }
}

/// As root, whoever can change the manifest can do everything.
fn doubted(host: &Host, doubt: Option<ccm_host::Doubt>) -> Option<Finding> {
    let doubt = doubt?;
    let message = format!("{doubt}, and ccm applies this file as root");
    let finding = if host.is_strict() {
        Finding::error(None, message)
    } else {
        Finding::warning(None, message)
    };
    Some(finding.hint(doubt.hint()))
}
