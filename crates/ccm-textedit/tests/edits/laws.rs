//! The three laws on random documents, checked from outside: by other means than
//! the crate itself.

use ccm_textedit::{Edit, apply};
use proptest::prelude::*;

use crate::random;

/// The first law; and a text that is stable is not touched.
pub(crate) fn is_idempotent(text: &[u8], edit: &Edit) -> Result<Option<Vec<u8>>, TestCaseError> {
    let Ok(edited) = apply(text, edit) else { return Ok(None) };
    prop_assert_eq!(edited.changes.is_empty(), edited.text == text);
    let again = apply(&edited.text, edit);
    let again = again.map_err(|refusal| TestCaseError::fail(refusal.message))?;
    prop_assert!(again.changes.is_empty(), "{:?}", again.changes);
    prop_assert_eq!(&again.text, &edited.text);
    Ok(Some(edited.text))
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The lines that an edit is not about, with their ends. The end that a last line
/// gets because something follows it does not count.
pub(crate) fn others<'t>(text: &'t [u8], is_named: &dyn Fn(&[u8]) -> bool) -> Vec<&'t [u8]> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let bare = |line: &[u8]| match line {
        [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] | text => is_named(text),
    };
    lines(text).into_iter().filter(|line| !bare(line)).collect()
}

pub(crate) fn same_but_for_a_last_end(before: &[&[u8]], after: &[&[u8]]) -> bool {
    let is_ended = |before: &[u8], after: &[u8]| {
        let added = after.strip_prefix(before).unwrap_or_default();
        !before.ends_with(b"\n") && matches!(added, b"\n" | b"\r\n")
    };
    before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(before, after)| before == after || is_ended(before, after))
}

pub(crate) fn starts_as_before(before: &[u8], after: &[u8]) -> bool {
    before.starts_with(b"\xEF\xBB\xBF") == after.starts_with(b"\xEF\xBB\xBF")
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn lines_obey_the_laws(text in random::text(random::plain_line()), edit in random::line_edit()) {
        let Some(after) = is_idempotent(&text, &edit)? else { return Ok(()) };
        prop_assert!(starts_as_before(&text, &after));
        let Edit::Line(line) = &edit else { unreachable!() };
        let wanted = line.line.as_deref().unwrap_or_default();
        let is_named = |found: &[u8]| {
            found == wanted.as_bytes() || line.pattern.as_ref().is_some_and(|pattern| pattern.is_match(found))
        };
        let (before, after) = (others(&text, &is_named), others(&after, &is_named));
        prop_assert!(same_but_for_a_last_end(&before, &after), "{before:?} {after:?}");
    }

    #[test]
    fn blocks_obey_the_laws(text in random::text(random::marked_line()), edit in random::block_edit()) {
        let Some(after) = is_idempotent(&text, &edit)? else { return Ok(()) };
        prop_assert!(starts_as_before(&text, &after));
        let Edit::Block(block) = &edit else { unreachable!() };
        let (before, after) = (outside(&text, block), outside(&after, block));
        prop_assert!(same_but_for_a_last_end(&before, &after), "{before:?} {after:?}");
    }

    #[test]
    fn ini_files_obey_the_laws(text in random::text(random::ini_line()), edit in random::ini_edit()) {
        let Some(after) = is_idempotent(&text, &edit)? else { return Ok(()) };
        prop_assert!(starts_as_before(&text, &after));
        let Edit::Ini(entries) = &edit else { unreachable!() };
        // A section that goes takes foreign lines with it.
        if entries.remove.iter().any(|pointer| pointer.keys().len() == 1) {
            return Ok(());
        }
        // Every line of a value has its key in it, and new values are known.
        let is_named = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            line.contains(['k', 'l']) || line.starts_with("fresh") || line == "[new]" || line == "lines"
                || line.is_empty() || line == "s" || line.starts_with('[') || line.contains("# in")
        };
        let (before, after) = (others(&text, &is_named), others(&after, &is_named));
        prop_assert!(same_but_for_a_last_end(&before, &after), "{before:?} {after:?}");
    }
}

/// The lines outside of the markers.
fn outside<'t>(text: &'t [u8], block: &ccm_textedit::BlockEdit) -> Vec<&'t [u8]> {
    let all = others(text, &|_| false);
    let [begin, end] = block.markers();
    let find = |marker: &str| {
        all.iter().position(|line| {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end_matches('\n');
            let line = line.strip_suffix('\r').unwrap_or(line);
            line.trim_end_matches([' ', '\t']) == marker
        })
    };
    match (find(&begin), find(&end)) {
        (Some(begin), Some(end)) if begin < end => [&all[..begin], &all[end + 1..]].concat(),
        _ => all,
    }
}
