//! Caret frames: an error, its source line, and a caret below it.
//!
//! Frames of findings, secrets masked; `govalue::frame` draws them.

use ccm_engine::{AnyType, Diagnosis};
use ccm_model::{Finding, Severity, excerpt as excerpt_of, mask_credentials, redact_credentials};
use ccm_yaml::Source;
use govalue::frame::{Excerpt, Frame, Level};

/// The most findings that are printed.
const MAX_SHOWN: usize = 50;

/// Draws one frame per finding. `types` say which properties are secrets.
///
/// Any source and any span can be drawn.
pub fn render(diagnosis: &Diagnosis, types: &[&'static dyn AnyType], color: bool) -> String {
    let fields = types.iter().flat_map(|kind| kind.fields()).filter(|field| field.secret);
    let names = fields.flat_map(|field| field.aliases.iter().copied().chain([field.name]));
    let secrets: Vec<&'static str> = names.collect();
    let mut text = String::new();
    for finding in diagnosis.findings.iter().take(MAX_SHOWN) {
        let source = finding.source.as_ref().unwrap_or(&diagnosis.source);
        text.push_str(&one(source, finding, &secrets, color));
        text.push_str("\n\n");
    }
    if let Some(more) = diagnosis.findings.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
        text.push_str(&format!("… and {more} more (see all with `ccm validate --json`)\n"));
    }
    text
}

fn one(source: &Source, finding: &Finding, secrets: &[&'static str], color: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warning,
    };
    let title = match &finding.resource {
        Some(resource) => format!("{resource}: {}", finding.message),
        None => finding.message.clone(),
    };
    // A title is one line; a template's error brings its own frame.
    let (title, note) = match title.split_once('\n') {
        Some((first, rest)) => (first, Some(mask_credentials(rest))),
        None => (&*title, None),
    };
    let excerpt = match finding.span {
        Some(span) => excerpt_of(source, span, secrets),
        None => Excerpt::whole(source.name()),
    };
    let item = finding.item.map(|span| excerpt_of(source, span, secrets));
    let frame = Frame {
        level,
        title: &redact_credentials(title),
        excerpt: &excerpt,
        origin: item.as_ref().map(|item| ("the item", item)),
        note: note.as_deref(),
        hint: finding.hint.as_deref(),
    };
    frame.render(color)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ccm_model::Span;
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
