//! Resources rendered from a Jet template (`resources_jet_file`).

use std::path::Path;
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::Finding;
use ccm_template::{Error, Resolver};
use ccm_yaml::Source;

use super::doubted;
use super::structure::JetFile;

/// Anything larger was not written by a person.
const MAX_SIZE: u64 = 16 << 20;

/// Renders the template. What is wrong with it points into it; what is later
/// found wrong with the result is shown in the result.
pub(super) fn render(
    host: &Host,
    resolver: &Resolver,
    jet: &JetFile,
    findings: &mut Vec<Finding>,
) -> Option<Arc<Source>> {
    let path = resolver.directory().join(&jet.path);
    let (text, doubt) = match host.read_judged(&path, MAX_SIZE) {
        Ok(read) => read,
        Err(error) => {
            findings.push(Finding::error(jet.span, crate::chain(&error)).hint(error.hint()));
            return None;
        }
    };
    let name = display(&path);
    let is_read = text.is_some();
    let template = Arc::new(Source::new(&*name, text.unwrap_or_default()));
    findings.extend(doubted(host, doubt).map(|finding| finding.within(&template)));
    if !is_read {
        return None;
    }
    let rendered = match resolver.jet_text(&name, template.text()) {
        Ok(rendered) => rendered,
        Err(Error::Jet(error)) => {
            findings.push(located(&error, &template));
            return None;
        }
        Err(error) => {
            findings.push(Finding::error(jet.span, error.to_string()));
            return None;
        }
    };
    let Some(rendered) = rendered.as_str() else {
        findings.push(Finding::error(jet.span, "the output of the template is not UTF-8"));
        return None;
    };
    if rendered.trim().is_empty() {
        let message = "the output of the template is empty; it must be a list of resources";
        findings.push(Finding::error(jet.span, message));
        return None;
    }
    Some(Arc::new(Source::new(format!("{name} (rendered)"), rendered)))
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

/// An error of the template, at its place.
fn located(error: &jet::Error, template: &Arc<Source>) -> Finding {
    let message = error.message();
    // Only one template takes part: nothing is included.
    Finding::error(error.span(), message).within(template)
}
