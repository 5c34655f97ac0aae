//! Suggestions for misspelled names.

/// A sentence that names the closest of the known words, if one is close.
///
/// ```
/// let hint = ccm_model::did_you_mean("contnet", ["content", "owner"]);
/// assert_eq!(hint.as_deref(), Some("did you mean `content`?"));
/// assert_eq!(ccm_model::did_you_mean("zebra", ["content", "owner"]), None);
/// ```
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(word, known).map(|known| format!("did you mean `{known}`?"))
}

/// The closest of the known words, if one is close; of two that are equally
/// close the first.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A novel given as a word is not a slip of the finger.
    if word.len() > 64 {
        return None;
    }
    let closest = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .min_by_key(|&(distance, _)| distance)?;
    let tolerance = (closest.1.chars().count() / 3).max(1);
    (closest.0 <= tolerance).then_some(closest.1)
}

/// The hint for a property that other tools have.
pub fn property_hint(name: &str) -> Option<&'static str> {
    match name {
        "notify" | "listen" => {
            Some("give the resource that reacts `subscribe` with the name of this one")
        }
        "before" => Some("resources run in the order written; for a condition use `require`"),
        "when" | "only_if" | "not_if" => {
            Some("for a condition use `control: {if: EXPRESSION}`; `exec` also has guards")
        }
        "loop" | "with_items" | "with_dict" | "foreach" | "for_each" | "each" => {
            Some("to repeat a block, write `for_each` beside its type")
        }
        "backup" => Some("ccm keeps before images; see `ccm history`"),
        "state" => Some("the desired state is `ensure`"),
        "dest" | "path" => Some("the path is the name of the resource"),
        "become" | "become_user" | "runas" | "sudo" => {
            Some("`exec` has `user`; everything else is done by the user who runs ccm")
        }
        _ => None,
    }
}
