//! Validation by the field table alone.

use ccm_model::{Field, Finding, HealthCheck, Properties, Registration, Required, Span, Spanned};

use crate::declare::{Declare, Ensure};

/// Where properties stand in the source, by their index in the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct PropertySpans {
    pub(crate) resource: Option<Span>,
    pub(crate) properties: Box<[(u8, Span)]>,
    /// The properties whose templates failed. Their values are not the ones
    /// that were meant, so nothing else is said about them.
    pub(crate) unresolved: Vec<u8>,
}

impl PropertySpans {
    /// Where a property stands; the resource itself when it was not given.
    pub(crate) fn of(&self, index: usize) -> Option<Span> {
        let given = self.properties.iter().find(|&&(at, _)| usize::from(at) == index);
        given.map(|&(_, span)| span).or(self.resource)
    }

    pub(crate) fn is_unresolved(&self, index: usize) -> bool {
        self.unresolved.iter().any(|&at| usize::from(at) == index)
    }

    /// Where a reference in a list of them stands.
    pub(crate) fn of_item(&self, index: usize, item: usize) -> Option<Span> {
        let given = self.properties.iter().filter(|&&(at, _)| usize::from(at) == index);
        given.map(|&(_, span)| span).nth(item + 1).or_else(|| self.of(index))
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.properties.iter().any(|&(at, _)| usize::from(at) == index)
    }
}

/// Finds missing, conflicting and impossible properties.
pub(crate) fn check_table<T: Declare>(
    want: &T::Properties,
    fields: &'static [Field],
    places: &PropertySpans,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let common = want.common();
    if common.name.is_empty() {
        findings.push(Finding::error(places.resource, "a resource needs a name"));
    }
    let at = fields.iter().position(|field| field.name == "ensure").unwrap_or_default();
    if let Ensure::OneOf(words) = T::ENSURE
        && !words.contains(&common.ensure.as_str())
        && !places.is_unresolved(at)
    {
        let article = if T::NAME.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        let message = format!("ensure cannot be `{}` for {article} {}", common.ensure, T::NAME);
        let finding = Finding::error(places.of(at), message)
            .hint(format!("allowed: {}", words.join(", ")))
            .suggest(&common.ensure, words.iter().copied());
        findings.push(finding);
    }
    check_tags(&common.tags, fields, places, &mut findings);
    check_health_checks(&common.health_checks, &mut findings);
    let registrations = fields.iter().position(|field| field.name == "register_when_stable");
    if !registrations.is_some_and(|at| places.is_unresolved(at)) {
        check_registrations(&common.register_when_stable, &mut findings);
    }
    for (index, field) in fields.iter().enumerate() {
        let needed = match field.required {
            Required::Always => true,
            Required::UnlessEnsure(words) => {
                !words.contains(&common.ensure.as_str()) && !places.is_unresolved(at)
            }
            Required::UnlessSet(other) => {
                let other = fields.iter().position(|field| field.is_called(other));
                !other.is_some_and(|other| places.has(other))
            }
            Required::Never => false,
        };
        if needed && !places.has(index) {
            let message = format!("property `{}` is required", field.name);
            let hint = format!("{}: {}", field.name, field.doc);
            findings.push(Finding::error(places.resource, message).hint(hint));
        }
        for other in field.conflicts {
            let clash = fields.iter().position(|field| field.is_called(other));
            if places.has(index) && clash.is_some_and(|clash| places.has(clash)) {
                let message = format!("`{}` and `{other}` cannot both be set", field.name);
                findings.push(Finding::error(places.of(index), message));
            }
        }
    }
    findings
}

/// Tags are words: a selector with a blank, a `#` or a `*` means something else.
fn check_tags(
    tags: &[String],
    fields: &'static [Field],
    places: &PropertySpans,
    findings: &mut Vec<Finding>,
) {
    let at = fields.iter().position(|field| field.name == "tags").unwrap_or_default();
    let is_word = |tag: &str| {
        let is_other = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '#' | '*');
        !tag.is_empty() && !tag.contains(is_other)
    };
    if places.is_unresolved(at) {
        return;
    }
    for tag in tags.iter().filter(|tag| !is_word(tag)) {
        let message = format!("tags: `{}` is not a single word", tag.escape_debug());
        let hint = "a tag has no blanks, `#` or `*`; write several as a list".to_owned();
        findings.push(Finding::error(places.of(at), message).hint(hint));
    }
}

fn check_health_checks(checks: &[Spanned<HealthCheck>], findings: &mut Vec<Finding>) {
    for (index, check) in checks.iter().enumerate() {
        let which = match check.value.name() {
            name if name.is_empty() => format!("number {}", index + 1),
            name => format!("`{name}`"),
        };
        for (message, hint) in check.value.problems() {
            let message = format!("health_checks: {which}: {message}");
            findings.push(Finding::error(check.span, message).hint(hint));
        }
        let rules = check.value.goss_rules.iter();
        let found =
            rules.flat_map(|rules| [ccm_goss::check(&rules.node), ccm_goss::warnings(&rules.node)]);
        for mut finding in found.flatten() {
            finding.message = format!("health_checks: {which}: goss_rules: {}", finding.message);
            findings.push(finding);
        }
    }
}

fn check_registrations(entries: &[Spanned<Registration>], findings: &mut Vec<Finding>) {
    for entry in entries {
        for problem in entry.value.entry().err().unwrap_or_default() {
            let message = format!("register_when_stable: {problem}");
            findings.push(Finding::error(entry.span, message));
        }
    }
}
