//! Colors, signs and width, depending on the terminal.

use std::io::IsTerminal as _;

use anstyle::{AnsiColor, Style};
use ccm_host::Host;
use ccm_model::Outcome;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(super) const MAGENTA: Style = AnsiColor::Magenta.on_default();
pub(super) const DIM: Style = Style::new().dimmed();

/// Narrower terminals are treated as this wide: nothing fits them anyway.
const MIN_WIDTH: usize = 40;

/// What the output can show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) has_color: bool,
    /// Signs outside ASCII can be shown.
    pub(super) is_utf8: bool,
    /// The columns of the terminal; `None` where lines may have any length.
    pub(super) width: Option<usize>,
}

impl Theme {
    /// The theme of standard output.
    pub(super) fn of_stdout(host: &Host, has_color: bool) -> Self {
        let stdout = std::io::stdout();
        let width = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout));
        let width = width.and_then(Result::ok).map(|size| usize::from(size.ws_col));
        let width = width.filter(|&width| width > 0).map(|width| width.max(MIN_WIDTH));
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| host.env(name));
        let is_utf8 = locale.is_some_and(|locale| is_utf8(&locale.to_string_lossy()));
        Self { has_color, is_utf8, width }
    }

    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.has_color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// The sign of an outcome. Only the sign has a color: the text stays
    /// readable on every background.
    pub(super) fn marker(self, outcome: Outcome) -> (&'static str, Style) {
        let (sign, ascii, style) = match outcome {
            Outcome::Create => ("+", "+", GREEN),
            Outcome::Change => ("~", "~", YELLOW),
            Outcome::Remove => ("-", "-", RED),
            Outcome::Refresh => ("↻", "*", CYAN),
            Outcome::Run => ("»", ">", CYAN),
            Outcome::Provisional => ("?", "?", MAGENTA),
            Outcome::Failed => ("✗", "x", RED),
            Outcome::Skipped => ("·", ".", DIM),
            Outcome::Stable => ("=", "=", DIM),
        };
        (if self.is_utf8 { sign } else { ascii }, style)
    }

    /// Stands between an old value and a new one.
    pub(super) fn arrow(self) -> &'static str {
        if self.is_utf8 { "→" } else { "->" }
    }

    /// Stands before the number of removed lines.
    pub(super) fn minus(self) -> &'static str {
        if self.is_utf8 { "−" } else { "-" }
    }

    /// Stands for what was cut out of a text.
    pub(super) fn ellipsis(self) -> &'static str {
        if self.is_utf8 { "…" } else { "..." }
    }
}

/// Whether a locale such as `de_DE.UTF-8` has this encoding.
fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_name_their_encoding() {
        for (locale, wanted) in [
            ("C.UTF-8", true),
            ("de_DE.utf8", true),
            ("en_US.UTF-8@euro", true),
            ("C", false),
            ("POSIX", false),
            ("de_DE.ISO-8859-1", false),
            ("", false),
        ] {
            assert_eq!(is_utf8(locale), wanted, "{locale}");
        }
    }

    #[test]
    fn every_outcome_has_its_own_sign() {
        use Outcome as O;
        let all = [
            O::Create,
            O::Change,
            O::Remove,
            O::Refresh,
            O::Run,
            O::Provisional,
            O::Failed,
            O::Skipped,
            O::Stable,
        ];
        for is_utf8 in [true, false] {
            let theme = Theme { has_color: false, is_utf8, width: None };
            let signs: std::collections::BTreeSet<_> =
                all.iter().map(|outcome| theme.marker(*outcome).0).collect();
            assert_eq!(signs.len(), all.len());
            assert!(is_utf8 || signs.iter().all(|sign| sign.is_ascii()));
        }
    }
}
