//! Rows of resources in the output of `ccm`, without what depends on the machine.

/// The marks that begin the row of a resource.
const MARKERS: [&str; 9] = ["+ ", "~ ", "- ", "↻ ", "» ", "? ", "✗ ", "· ", "= "];

/// Whether a line is the row of a resource.
pub fn is_row(line: &str) -> bool {
    let rest = line.trim_start_matches(' ');
    line.starts_with("  ") && MARKERS.iter().any(|marker| rest.starts_with(marker))
}

/// The row of a resource without its time, which only slow machines show. Other
/// lines stay as they are.
pub fn without_time(line: &str) -> String {
    let Some((before, remarks)) = line.rsplit_once("  (").filter(|_| is_row(line)) else {
        return line.to_owned();
    };
    let Some(remarks) = remarks.strip_suffix(')') else { return line.to_owned() };
    let (remark, time) = remarks.rsplit_once(", ").unwrap_or(("", remarks));
    if !(time.starts_with(|c: char| c.is_ascii_digit()) && time.ends_with('s')) {
        line.to_owned()
    } else if remark.is_empty() {
        before.trim_end().to_owned()
    } else {
        format!("{before}  ({remark})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_of_a_row_goes() {
        for (line, steady) in [
            ("  » exec#x  true  (1.2s)", "  » exec#x  true"),
            ("                  » exec#deep   (120ms)", "                  » exec#deep"),
            ("  ↻ exec#x  ran  (owed since today, 0.3s)", "  ↻ exec#x  ran  (owed since today)"),
            ("  » exec#x  (noop)", "  » exec#x  (noop)"),
            ("Applied  (1.2s)", "Applied  (1.2s)"),
            ("  + file#/a (b)  content", "  + file#/a (b)  content"),
        ] {
            assert_eq!(without_time(line), steady);
        }
    }
}
