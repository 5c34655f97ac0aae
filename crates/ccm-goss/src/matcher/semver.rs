//! Versions of three numbers, and constraints on them.

use std::cmp::Ordering;

use govalue::Value;
use govalue::semver::Version;

/// Which versions are wanted: one of these lists must hold as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Constraint(Vec<Vec<Range>>);

/// Versions between two others, the upper one not included; or all but these.
#[derive(Clone, Debug)]
struct Range {
    from: Option<(Version, bool)>,
    to: Option<(Version, bool)>,
    is_negated: bool,
}

impl Range {
    fn contains(&self, version: &Version) -> bool {
        let is_beyond = |bound: &Option<(Version, bool)>, side: Ordering| {
            bound.as_ref().is_none_or(|(bound, is_in)| {
                let order = version.cmp_precedence(bound);
                order == side || (*is_in && order.is_eq())
            })
        };
        let is_inside =
            is_beyond(&self.from, Ordering::Greater) && is_beyond(&self.to, Ordering::Less);
        is_inside != self.is_negated
    }

    /// An operator and a version, whose last numbers may be `x`.
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !matches!(c, '<' | '>' | '=' | '!')).unwrap_or(text.len());
        let (operator, version) = text.split_at(end);
        let (low, high) = bounds(version)?;
        // The versions that are named, from the first to before the next.
        let (below, above) = match high {
            Some(next) => ((low.clone(), false), (next, true)),
            None => ((low.clone(), false), (low.clone(), false)),
        };
        let is_one = !above.1;
        let at = Some((low.clone(), true));
        let up_to = if is_one { Some((low, true)) } else { Some((above.0.clone(), false)) };
        let range = |from, to| Some(Self { from, to, is_negated: false });
        match operator {
            "" | "=" | "==" => range(at, up_to),
            "!" | "!=" => Some(Self { from: at, to: up_to, is_negated: true }),
            ">" => range(Some(above), None),
            ">=" => range(at, None),
            "<" => range(None, Some(below)),
            "<=" => range(None, up_to),
            _ => None,
        }
    }
}

/// The version that a text names, or with `x` in it the first of those that it
/// names and the first behind them.
fn bounds(text: &str) -> Option<(Version, Option<Version>)> {
    let parts: Vec<&str> = text.split('.').collect();
    let is_wild = |part: &&str| matches!(*part, "x" | "X" | "*");
    let Some(wild) = parts.iter().position(&is_wild) else {
        return Some((Version::parse_strict(text).ok()?, None));
    };
    if parts.len() > 3 || !parts[wild..].iter().all(is_wild) || wild == 0 {
        return None;
    }
    let mut named = parts[..wild].to_vec();
    named.resize(3, "0");
    let low = Version::parse_strict(&named.join(".")).ok()?;
    let next = match wild {
        1 => Version::release(low.major.checked_add(1)?, 0, 0),
        _ => Version::release(low.major, low.minor.checked_add(1)?, 0),
    };
    Some((low, Some(next)))
}

impl Constraint {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a constraint on versions");
        let lists = text.split("||").map(|list| {
            // A blank may stand between an operator and its version.
            let mut ranges: Vec<String> = Vec::new();
            let mut is_open = false;
            for word in list.split_whitespace() {
                let is_operator = word.chars().all(|c| matches!(c, '<' | '>' | '=' | '!'));
                match ranges.last_mut() {
                    Some(last) if is_open => last.push_str(word),
                    _ => ranges.push(word.to_owned()),
                }
                is_open = is_operator;
            }
            let ranges: Option<Vec<Range>> = ranges.iter().map(|text| Range::parse(text)).collect();
            ranges.filter(|ranges| !ranges.is_empty())
        });
        let lists: Option<Vec<_>> = lists.collect();
        lists.map(Self).ok_or_else(wrong)
    }

    fn is_satisfied_by(&self, version: &Version) -> bool {
        self.0.iter().any(|list| list.iter().all(|range| range.contains(version)))
    }
}

/// Whether the version that a value is, or every version of a list, satisfies a
/// constraint.
pub(super) fn all_satisfy(constraint: &Constraint, value: &Value) -> Result<bool, String> {
    let one = |value: &Value| {
        let text = match value {
            Value::String(text) => text.as_str().map(str::to_owned),
            Value::Int(_) | Value::Float(_) => Some(value.to_string()),
            _ => None,
        };
        let version = text.as_deref().and_then(|text| Version::parse_strict(text.trim()).ok());
        let version =
            version.ok_or_else(|| format!("{} is not a full version", super::shown(value)))?;
        Ok(constraint.is_satisfied_by(&version))
    };
    match value {
        Value::Array(items) => {
            for item in items.iter() {
                if !one(item)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        value => one(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_name_versions() {
        for (constraint, inside, outside) in [
            ("1.2.3", "1.2.3", "1.2.4"),
            ("=1.2.3", "1.2.3+build", "1.2.2"),
            ("==1.2.3", "1.2.3", "1.2.3-rc.1"),
            ("!=1.2.3", "1.2.4", "1.2.3"),
            ("!1.2.3", "1.2.2", "1.2.3"),
            (">1.0.0 <2.0.0", "1.9.9", "2.0.0"),
            ("> 1.0.0  <2.0.0", "1.0.1", "1.0.0"),
            ("<1.0.0 || >=3.0.0", "3.0.0", "2.0.0"),
            ("1.2.x", "1.2.9", "1.3.0"),
            ("1.x", "1.9.0", "2.0.0"),
            ("1.x.x", "1.0.0", "0.9.9"),
            (">1.2.x", "1.3.0", "1.2.9"),
            (">=1.2.x", "1.2.0", "1.1.9"),
            ("<=1.2.x", "1.2.9", "1.3.0"),
            ("<1.2.x", "1.1.9", "1.2.0"),
            ("!=1.2.x", "1.3.0", "1.2.5"),
            (">1.0.0-rc.1", "1.0.0-rc.2", "1.0.0-beta.9"),
            (">1.0.0-rc.2", "1.0.0-rc.10", "1.0.0-rc.1"),
            (">=1.0.0", "1.0.0", "1.0.0-rc.1"),
        ] {
            let parsed = Constraint::parse(constraint).unwrap();
            for (version, wanted) in [(inside, true), (outside, false)] {
                let held = all_satisfy(&parsed, &version.into());
                assert_eq!(held, Ok(wanted), "{constraint} {version}");
            }
        }
        for wrong in ["", "nonsense", "1.0", ">1", "x", "1.x.3", "<>1.0.0", "1.0.0 ||", "~1.0.0"] {
            assert!(Constraint::parse(wrong).is_err(), "{wrong}");
        }
        let any = Constraint::parse(">0.0.1").unwrap();
        for version in ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0.0", "", "é"] {
            assert!(all_satisfy(&any, &version.into()).is_err(), "{version}");
        }
        let list = Value::array(["1.0.0".into(), "0.0.1".into()]);
        assert_eq!(all_satisfy(&any, &list), Ok(false));
    }
}
