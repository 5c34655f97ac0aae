//! Lines of sources for messages, without secrets.

mod secrets;

use ccm_yaml::{Source, Span};
use govalue::Excerpt;

use crate::mask_credentials;
use secrets::masked_line;

/// The line of a source that a span begins in, with the values of these
/// properties, passwords and credentials masked.
pub fn excerpt(source: &Source, span: Span, secrets: &[&'static str]) -> Excerpt {
    let text = source.text();
    let span = source.clamp(span);
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[span.start..].find('\n').map_or(text.len(), |at| span.start + at);
    let line = text[start..end].trim_end_matches('\r');
    let part = span.start - start..span.end - start;
    let number = source.line(span.start as u32);
    if line.len() > Excerpt::MAX_LINE {
        return Excerpt::of_line(source.name(), number, line, part);
    }
    // Masks keep the bytes of a line but not its characters.
    let masked = masked_line(text, start..start + line.len(), secrets);
    Excerpt::of_line(source.name(), number, &mask_credentials(&masked), part)
}
