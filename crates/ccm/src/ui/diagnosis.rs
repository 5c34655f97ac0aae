//! What is wrong with a manifest, with the source line and a caret.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use ccm_engine::Diagnosis;
use ccm_model::{Finding, Severity, Span, mask_credentials, redact_credentials};
use ccm_yaml::Source;

use super::secrets::masked_line;

/// More than this nobody reads at once.
const MAX_SHOWN: usize = 50;
/// A line longer than this is not shown: the place in it still is.
const MAX_LINE: usize = 300;

pub(super) fn render(diagnosis: &Diagnosis, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for finding in diagnosis.findings.iter().take(MAX_SHOWN) {
        text.push_str(&one(
            finding.source.as_ref().unwrap_or(&diagnosis.source),
            finding,
            &renderer,
        ));
        text.push_str("\n\n");
    }
    if let Some(more) = diagnosis.findings.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
        text.push_str(&format!("… and {more} more (see all with `ccm validate --json`)\n"));
    }
    text
}

fn one(source: &Source, finding: &Finding, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = match &finding.resource {
        Some(resource) => format!("{resource}: {}", finding.message),
        None => finding.message.clone(),
    };
    // A title is one line; a template's error brings its own picture.
    let (title, picture) = match title.split_once('\n') {
        Some((first, rest)) => (first, Some(mask_credentials(rest))),
        None => (&*title, None),
    };
    let title = redact_credentials(title);
    let mut report: Group<'_> = match finding.span.and_then(|span| window(source, span)) {
        Some((line, text, range)) => level.primary_title(&*title).element(
            Snippet::source(mask_credentials(&text).into_owned())
                .line_start(line)
                .path(source.name())
                .annotation(AnnotationKind::Primary.span(range)),
        ),
        None => {
            let mut origin = Origin::path(source.name());
            if let Some(span) = finding.span {
                let place = source.position(span.start);
                origin = origin.line(place.line).char_column(place.column);
            }
            level.primary_title(&*title).element(origin)
        }
    };
    if let Some(picture) = &picture {
        report = report.element(Level::NOTE.message(&**picture));
    }
    if let Some(hint) = &finding.hint {
        report = report.element(Level::HELP.message(hint));
    }
    renderer.render(&[report])
}

/// The line of a span without secrets, its number, and the span within it.
fn window(source: &Source, span: Span) -> Option<(usize, String, Range<usize>)> {
    let text = source.text();
    let start = (span.start as usize).min(text.len());
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[line_start..line_end].trim_end_matches('\r');
    if line.len() > MAX_LINE {
        return None;
    }
    let end = (span.end as usize).clamp(start, line_start + line.len());
    let range = (start - line_start).min(line.len())..end - line_start;
    let shown = masked_line(text, line_start..line_start + line.len());
    Some((source.position(span.start).line, shown, range))
}
