//! Caret frames: an error, its source line, and a caret below it.
//!
//! All frames are drawn here, secrets masked. Nothing else calls the library
//! that draws them, because it panics on a span that splits a character.

mod secrets;

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use ccm_model::{Finding, Severity, Span, mask_credentials, redact_credentials};
use ccm_yaml::Source;

use crate::{AnyType, Diagnosis};
use secrets::masked_line;

/// The most findings that are printed.
const MAX_SHOWN: usize = 50;
/// A line longer than this is not shown: the place in it still is.
const MAX_LINE: usize = 300;

/// Draws one frame per finding. `types` say which properties are secrets.
///
/// Any source and any span can be drawn: spans are clamped to the source and to
/// whole characters, and control characters are replaced.
pub fn render(diagnosis: &Diagnosis, types: &[&'static dyn AnyType], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let fields = types.iter().flat_map(|kind| kind.fields()).filter(|field| field.secret);
    let names = fields.flat_map(|field| field.aliases.iter().copied().chain([field.name]));
    let secrets: Vec<&'static str> = names.collect();
    let mut text = String::new();
    for finding in diagnosis.findings.iter().take(MAX_SHOWN) {
        let source = finding.source.as_ref().unwrap_or(&diagnosis.source);
        text.push_str(&one(source, finding, &secrets, &renderer));
        text.push_str("\n\n");
    }
    if let Some(more) = diagnosis.findings.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
        text.push_str(&format!("… and {more} more (see all with `ccm validate --json`)\n"));
    }
    text
}

fn one(
    source: &Source,
    finding: &Finding,
    secrets: &[&'static str],
    renderer: &Renderer,
) -> String {
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
    let title = visible(&title);
    let path = visible(source.name());
    let mut report: Group<'_> = match finding.span.and_then(|span| window(source, span, secrets)) {
        Some((line, text, range)) => level.primary_title(&*title).element(
            Snippet::source(text)
                .line_start(line)
                .path(&*path)
                .annotation(AnnotationKind::Primary.span(range)),
        ),
        None => {
            let mut origin = Origin::path(&*path);
            if let Some(span) = finding.span {
                let place = source.position(span.start);
                origin = origin.line(place.line).char_column(place.column);
            }
            level.primary_title(&*title).element(origin)
        }
    };
    let picture = picture.as_deref().map(visible);
    if let Some(picture) = &picture {
        report = report.element(Level::NOTE.message(&**picture));
    }
    let hint = finding.hint.as_deref().map(visible);
    if let Some(hint) = &hint {
        report = report.element(Level::HELP.with_name("hint").message(&**hint));
    }
    renderer.render(&[report])
}

/// The line of a span without secrets, its number, and the span within it.
fn window(
    source: &Source,
    span: Span,
    secrets: &[&'static str],
) -> Option<(usize, String, Range<usize>)> {
    let text = source.text();
    let span = source.clamp(span);
    let line_start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[span.start..].find('\n').map_or(text.len(), |at| span.start + at);
    let line = text[line_start..line_end].trim_end_matches('\r');
    if line.len() > MAX_LINE {
        return None;
    }
    let masked = masked_line(text, line_start..line_start + line.len(), secrets);
    let masked = mask_credentials(&masked);
    // Masks keep the bytes of a line but not its characters, so boundaries are
    // looked for again in what is shown.
    let start = masked.floor_char_boundary(span.start - line_start);
    let end = masked.ceil_char_boundary(span.end - line_start).max(start);
    let mut shown = visible(&masked[..start]).into_owned();
    let start_shown = shown.len();
    shown.push_str(&visible(&masked[start..end]));
    let range = start_shown..shown.len();
    shown.push_str(&visible(&masked[end..]));
    Some((source.line(span.start as u32), shown, range))
}

/// Replaces control characters that a terminal would obey, one by one, so that
/// carets stay in place. Line ends and tabs are kept.
fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = |c| if is_obeyed(c) { char::REPLACEMENT_CHARACTER } else { c };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn draw(text: &str, span: Span, message: &str) -> String {
        let finding = Finding::error(span, message);
        let source = Arc::new(Source::new("m.yaml", text));
        render(&Diagnosis { source, findings: vec![finding] }, &[], false)
    }

    #[test]
    fn spans_of_half_characters_are_widened() {
        let whole = draw("a: é\n", Span { start: 3, end: 5 }, "no");
        insta::assert_snapshot!(whole, @r"
        error: no
         --> m.yaml:1:4
          |
        1 | a: é
          |    ^
        ");
        for (start, end) in [(3, 4), (4, 5), (4, 4)] {
            assert_eq!(draw("a: é\n", Span { start, end }, "no"), whole);
        }
    }

    #[test]
    fn a_terminal_obeys_nothing_of_a_frame() {
        let text = draw("a\x1b[2J\u{9b}b", Span { start: 1, end: 2 }, "\x1b]0;x\n\u{9b}2J");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_is_drawn(
            text in r#"(password: |headers:|environment: |http://|[\[\]{},'"\\:=&!@ \r\n\t\x1b-]|[aé€𝄞\u{feff}\u{200d}\u{301}]){0,30}"#,
            start in 0..120_u32,
            length in 0..40_u32,
        ) {
            draw(&text, Span { start, end: start + length }, "no");
            draw(&text, Span { start: start + length, end: start }, "no");
        }
    }
}
