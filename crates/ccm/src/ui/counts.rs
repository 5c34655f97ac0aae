//! Prints how many resources have which outcome.

use ccm_model::Counts;

/// What counts of services say that `--offline` does not start or stop.
const LEFT_FOR_BOOT: &str = "left for the first boot";
const UNMET: &str = "skipped for unmet requirements";

/// `2 to create, 1 failed; 48 stable`.
pub(super) fn planned(counts: &Counts) -> String {
    let work = listed(&[
        (counts.create, "to create"),
        (counts.change, "to change"),
        (counts.remove, "to remove"),
        (counts.refresh, "to refresh"),
        (counts.run, "to run"),
        (counts.provisional, "provisional"),
        (counts.failed, "failed"),
        (counts.unmet, UNMET),
        (counts.deferred, LEFT_FOR_BOOT),
    ]);
    let rest = listed(&[
        (counts.stable, "stable"),
        (counts.skipped.saturating_sub(counts.unmet), "skipped"),
        (counts.not_selected, "not selected"),
    ]);
    match (work.is_empty(), rest.is_empty()) {
        (false, false) => format!("{work}; {rest}"),
        (false, true) => work,
        (true, false) => format!("Nothing to do; {rest}"),
        (true, true) => "Nothing to do".to_owned(),
    }
}

/// `2 created, 1 failed, 48 stable`.
pub(super) fn done(counts: &Counts) -> String {
    let text = listed(&[
        (counts.create, "created"),
        (counts.change, "changed"),
        (counts.remove, "removed"),
        (counts.refresh, "refreshed"),
        (counts.run, "ran"),
        (counts.previewed + counts.provisional, "previewed"),
        (counts.failed, "failed"),
        (counts.unmet, UNMET),
        (counts.deferred, LEFT_FOR_BOOT),
        (counts.stable, "stable"),
        (counts.skipped.saturating_sub(counts.unmet), "skipped"),
        (counts.not_selected, "not selected"),
    ]);
    if text.is_empty() { "no resources".to_owned() } else { text }
}

/// The counts that are not zero.
pub(super) fn listed(counts: &[(usize, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page counts with the same words.
    #[test]
    fn the_page_has_the_words_of_the_command_line() {
        let page = include_str!("../../../ccm-studio/web/core/runs.js");
        let all = Counts {
            create: 1,
            change: 1,
            remove: 1,
            refresh: 1,
            run: 1,
            provisional: 1,
            failed: 1,
            skipped: 2,
            stable: 1,
            unmet: 1,
            previewed: 1,
            deferred: 1,
            not_selected: 1,
        };
        let text = format!("{}, {}", planned(&all), done(&all)).replace("; ", ", ");
        for part in text.split(", ") {
            let (_, words) = part.split_once(' ').unwrap();
            assert!(page.contains(&format!("\"{words}\"")), "{words}");
        }
    }

    #[test]
    fn runs_say_what_was_done() {
        let counts = Counts {
            create: 1,
            previewed: 1,
            failed: 1,
            unmet: 1,
            deferred: 1,
            stable: 1,
            skipped: 2,
            ..Counts::default()
        };
        assert_eq!(
            done(&counts),
            "1 created, 1 previewed, 1 failed, 1 skipped for unmet requirements, 1 left for \
             the first boot, 1 stable, 1 skipped"
        );
        assert_eq!(done(&Counts::default()), "no resources");
    }

    #[test]
    fn plans_say_what_is_to_do_first() {
        assert_eq!(planned(&Counts::default()), "Nothing to do");
        let calm = Counts { stable: 1, skipped: 1, ..Counts::default() };
        assert_eq!(planned(&calm), "Nothing to do; 1 stable, 1 skipped");
        let counts = Counts {
            create: 1,
            change: 1,
            refresh: 1,
            failed: 1,
            skipped: 2,
            unmet: 1,
            deferred: 2,
            not_selected: 4,
            ..calm
        };
        assert_eq!(
            planned(&counts),
            "1 to create, 1 to change, 1 to refresh, 1 failed, 1 skipped for unmet requirements, \
             2 left for the first boot; 1 stable, 1 skipped, 4 not selected"
        );
    }
}
