//! One line per resource.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use anstyle::Style;
use ccm_model::{Event, Health};

use super::{CYAN, DIM, GREEN, RED, YELLOW};

/// Writes `LEVEL type#name word key=value…`, errors indented below it. A
/// manifest is named when a resource brought it.
pub(super) fn write(out: &mut impl Write, event: &Event, manifest: Option<&str>, color: bool) {
    let (level, style) = level(event);
    let (on, off) = paint(style, color);
    // What cannot be written has no reader; the run goes on.
    let _ = write!(out, "{on}{level:<5}{off} {}#", event.kind);
    let (name, mark) = match &event.alias {
        Some(alias) => (alias, " (alias)"),
        None => (&event.name, ""),
    };
    let _ = out.write_all(printable(name).as_bytes());
    let _ = out.write_all(mark.as_bytes());
    let _ = write!(out, " {on}{}{off}", event.outcome());
    let (on, off) = paint(DIM, color);
    let ensure =
        if event.final_ensure.is_empty() { &event.requested_ensure } else { &event.final_ensure };
    let _ = write!(out, "{on} ensure={ensure} runtime={}", brief(event.duration));
    if !event.provider.is_empty() {
        let _ = write!(out, " provider={}", event.provider);
    }
    if let Some(manifest) = manifest {
        let _ = write!(out, " manifest={}", printable(manifest));
    }
    let _ = write!(out, "{off}");
    if let Some(message) = &event.noop_message {
        let _ = write!(out, " noop={message:?}");
    }
    if let Some(owed) = &event.owed {
        let _ = write!(out, " owed={:?}", format!("{} since {:.0}", owed.by, owed.since));
    }
    if !event.unmet_requirements.is_empty() {
        let names: Vec<String> = event.unmet_requirements.iter().map(ToString::to_string).collect();
        let _ = write!(out, " requires={:?}", names.join(", "));
    }
    let _ = writeln!(out);
    // Those that failed are among the errors.
    for result in event.health_check.iter().filter(|result| !result.status.is_failure()) {
        let style = if result.status == Health::Ok { GREEN } else { YELLOW };
        let (on, off) = paint(style, color);
        let _ = writeln!(out, "      {on}{}{off}", printable(&result.to_string()));
    }
    for error in &event.error {
        for line in error.lines() {
            let _ = writeln!(out, "      {}", printable(line));
        }
    }
}

/// A text on one line, and without anything that a terminal would obey.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && c != '\t';
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_obeyed(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn level(event: &Event) -> (&'static str, Style) {
    if event.failed || !event.unmet_requirements.is_empty() {
        ("ERROR", RED)
    } else if event.skipped || event.refreshed || event.changed || has_warning(event) {
        ("WARN", YELLOW)
    } else {
        ("INFO", GREEN)
    }
}

fn has_warning(event: &Event) -> bool {
    event.health_check.iter().any(|result| result.status == Health::Warning)
}

fn paint(style: Style, color: bool) -> (String, String) {
    if color { (style.to_string(), format!("{style:#}")) } else { (String::new(), String::new()) }
}

/// Writes a unified diff, indented so that it is seen to belong to its line.
pub(super) fn write_diff(out: &mut impl Write, diff: &str, color: bool) {
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++") => GREEN,
            Some(b'-') if !line.starts_with("---") => RED,
            Some(b'@') => CYAN,
            _ => Style::new(),
        };
        let (on, off) = paint(style, color);
        let _ = writeln!(out, "      {on}{}{off}", printable(line));
    }
}

/// A duration to the millisecond.
pub(super) fn brief(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds < 1000 {
        return format!("{milliseconds}ms");
    }
    let seconds = milliseconds / 1000;
    let rest = milliseconds % 1000;
    match seconds {
        0..60 => format!("{seconds}.{rest:03}s"),
        _ => format!("{}m{}.{rest:03}s", seconds / 60, seconds % 60),
    }
}

/// A duration with as many digits as tell it from others.
pub(super) fn precise(duration: Duration) -> String {
    if duration < Duration::from_millis(10) {
        return format!("{:.3}ms", duration.as_secs_f64() * 1000.0);
    }
    brief(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(printable("/etc/motd ü"), "/etc/motd ü");
        assert_eq!(printable("a\nb\x1b[31m"), "a\\nb\\u{1b}[31m");
    }

    #[test]
    fn durations_are_given_to_the_millisecond() {
        for (milliseconds, text) in [
            (0, "0ms"),
            (12, "12ms"),
            (999, "999ms"),
            (1234, "1.234s"),
            (59_999, "59.999s"),
            (61_005, "1m1.005s"),
        ] {
            assert_eq!(brief(Duration::from_millis(milliseconds)), text);
        }
    }
}
