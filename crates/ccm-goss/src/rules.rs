//! Rules, parsed and ready to run.

use std::sync::Arc;

use ccm_model::{Finding, TemplateError, Templates};
use ccm_yaml::{Node, Source, Span};
use govalue::Value;

use crate::compile::{Entry, Problems, compile};
use crate::tree::{Item, Texts, Tree};

/// Rules that are right.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) entries: Arc<[Entry]>,
}

/// Why rules cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A placeholder cannot be resolved.
    #[error(transparent)]
    Template(TemplateError),
    /// The rules themselves are wrong.
    #[error("{}", messages(.0))]
    Invalid(Vec<Finding>),
}

fn messages(findings: &[Finding]) -> String {
    let line = |finding: &Finding| match &finding.hint {
        Some(hint) => format!("{} ({hint})", finding.message),
        None => finding.message.clone(),
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Everything that is wrong with rules, whatever their placeholders become:
/// also tests that can never hold, as their arguments are wrong.
pub fn check(node: &Node<'_>) -> Vec<Finding> {
    let tree = Tree::from_node(node, Texts::Templates);
    match read(&tree, true) {
        Ok(_) => Vec::new(),
        Err(findings) => findings,
    }
}

/// Commands into which a placeholder puts a value as it is: the shell would run
/// whatever is in it.
pub fn warnings(node: &Node<'_>) -> Vec<Finding> {
    let Item::Map(kinds) = Tree::from_node(node, Texts::Templates).item else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut check = |text: &str, span: Span| {
        if has_unquoted(text) {
            let message =
                "command: the shell reads what the placeholder becomes as part of the command";
            let hint = "write {{ shellQuote(…) }}";
            findings.push(Finding::warning(span, message).hint(Some(hint.to_owned())));
        }
    };
    for (kind, entries) in kinds {
        let Item::Map(entries) = entries.item else { continue };
        for (key, attributes) in entries.iter().filter(|_| kind.text == "command") {
            check(&key.text, key.span);
            let Item::Map(attributes) = &attributes.item else { continue };
            for (name, value) in attributes {
                if let (true, Item::Open(text)) = (name.text == "exec", &value.item) {
                    check(text, value.span);
                }
            }
        }
    }
    findings
}

/// Whether a text holds a placeholder whose value is not quoted.
fn has_unquoted(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("${")).min() {
        let end = if rest[at..].starts_with("{{") { "}}" } else { "}" };
        let inner = &rest[at + 2..];
        let (inner, behind) = inner.split_once(end).unwrap_or((inner, ""));
        if !inner.contains("shellQuote") {
            return true;
        }
        rest = behind;
    }
    false
}

impl Rules {
    /// Reads rules, with their placeholders resolved. Without `templates` a
    /// placeholder is as good as any other text.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong, each with its place.
    pub fn read(node: &Node<'_>, templates: Option<&dyn Templates>) -> Result<Self, RulesError> {
        let tree = match templates {
            Some(templates) => Tree::from_node(node, Texts::Templates)
                .resolve(templates)
                .map_err(RulesError::Template)?,
            None => Tree::from_node(node, Texts::Literal),
        };
        read(&tree, false)
            .map(|entries| Self { entries: entries.into() })
            .map_err(RulesError::Invalid)
    }

    /// The passwords in them, and the values of headers.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        self.entries.iter().flat_map(|entry| {
            let settings = &entry.settings;
            let headers = settings.texts("request-headers").filter_map(crate::compile::header);
            let headers = headers.flat_map(|(name, value)| ccm_model::header_secrets(name, value));
            let password = settings.text("password").into_iter();
            let secrets = password.chain(headers);
            secrets.filter(|secret| !secret.is_empty()).map(str::to_owned)
        })
    }
}

/// A map of rules, or a text that holds one as YAML. If strict, a test that can
/// never hold is wrong.
fn read(tree: &Tree, is_strict: bool) -> Result<Vec<Entry>, Vec<Finding>> {
    match &tree.item {
        Item::Scalar { value: Value::String(text), .. } => {
            read_text(&text.to_str_lossy(), tree.span, is_strict)
        }
        _ => {
            let mut problems = Problems::strict(is_strict);
            let entries = compile(tree, &mut problems);
            finish(entries, problems)
        }
    }
}

fn finish(entries: Vec<Entry>, problems: Problems) -> Result<Vec<Entry>, Vec<Finding>> {
    let findings = problems.into_findings();
    if findings.is_empty() { Ok(entries) } else { Err(findings) }
}

/// Rules in a text of their own. Placeholders in it are not resolved again. What
/// is wrong is so at the place of the text, and the message says where in it.
fn read_text(text: &str, span: Span, is_strict: bool) -> Result<Vec<Entry>, Vec<Finding>> {
    let source = Source::new("rules", text);
    let within = |at: Option<Span>| {
        let place = source.position(at.unwrap_or_default().start);
        format!("line {}, column {} of the text", place.line, place.column)
    };
    let node = ccm_yaml::parse(&source).map_err(|error| {
        let message =
            format!("the text is not YAML: {} ({})", error.message, within(Some(error.span)));
        vec![Finding::error(span, message)]
    })?;
    let mut problems = Problems::strict(is_strict);
    let entries = compile(&Tree::from_node(&node, Texts::Literal), &mut problems);
    finish(entries, problems).map_err(|findings| {
        let moved = findings.into_iter().map(|finding| {
            let message = format!("{} ({})", finding.message, within(finding.span));
            Finding { message, span: Some(span), ..finding }
        });
        moved.collect()
    })
}
