//! Reads matchers from rules; contains the table of matchers.

use ccm_model::did_you_mean;
use govalue::Value;

use super::semver::Constraint;
use super::{Matcher, Number, Order, Pattern, Regexp};
use crate::compile::Problems;
use crate::kinds::ValueType;
use crate::tree::{Item, Key, Tree};

/// A matcher that is written as a map, for the documentation.
#[derive(Debug)]
pub struct MatcherInfo {
    /// Its name in rules.
    pub name: &'static str,
    /// Type of the argument, for the documentation.
    pub argument: &'static str,
    /// When it holds.
    pub doc: &'static str,
}

/// Every matcher that is written as a map of one key.
pub static MATCHERS: &[MatcherInfo] = &[
    info("equal", "any value", "The value is the same, including its type"),
    info("have-prefix", "string", "The value's text begins with it"),
    info("have-suffix", "string", "The value's text ends with it"),
    info("contain-substring", "string", "The value's text contains it"),
    info("match-regexp", "string", "The expression (RE2, not anchored) matches the value's text"),
    info("gt", "number", "The value as a number is greater"),
    info("ge", "number", "The value as a number is greater or equal"),
    info("lt", "number", "The value as a number is less"),
    info("le", "number", "The value as a number is less or equal"),
    info("contain-element", "matcher", "An element matches; text is a list of its lines"),
    info("contain-elements", "list of matchers", "Each matcher matches a different element"),
    info("consist-of", "list of matchers", "The same, and no element is left over"),
    info("have-len", "number", "Text has this many bytes, a list or map this many elements"),
    info("have-key", "matcher", "A key of the map matches"),
    info("have-patterns", "list of patterns", "All patterns hold in the lines of the value"),
    info("not", "matcher", "The matcher does not hold"),
    info("and", "list of matchers", "All hold; an empty list does"),
    info("or", "list of matchers", "One holds; an empty list does not"),
    info(
        "semver-constraint",
        "string",
        "Every version of the value satisfies it: `>`, `>=`, `<`, `<=`, `=`, `!=`, `!`, blanks \
         for and, `\\|\\|` for or, `x` as wildcard",
    ),
    info(
        "gjson",
        "map of path to matcher",
        "The value is JSON, and each matcher holds for the value at its path",
    ),
];

const fn info(name: &'static str, argument: &'static str, doc: &'static str) -> MatcherInfo {
    MatcherInfo { name, argument, doc }
}

/// Reads what is expected of a value of some type.
pub(crate) fn read(tree: &Tree, value: ValueType, problems: &mut Problems) -> Matcher {
    let is_single = matches!(value, ValueType::Boolean | ValueType::Number);
    if is_single && matches!(tree.item, Item::List(_)) {
        problems.add_with_hint(
            tree.span,
            "expected a single value, found a list",
            "to allow several values, write `or: […]`",
        );
        return Matcher::Open;
    }
    let matcher = Reading { problems }.matcher(tree, value == ValueType::Lines);
    if let Some(wanted) = unmet(&matcher, value) {
        let message = format!("expected {wanted}, found {}", tree.describe());
        problems.add_failing(tree.span, message);
    }
    matcher
}

/// What a value of this type is compared with, if this can never hold for it.
fn unmet(matcher: &Matcher, value: ValueType) -> Option<&'static str> {
    match (value, matcher) {
        (ValueType::Boolean, Matcher::Number(_)) => Some("`true` or `false`"),
        (ValueType::Boolean, Matcher::Text(text)) if text != "true" && text != "false" => {
            Some("`true` or `false`")
        }
        (ValueType::Number, Matcher::Bool(_)) => Some("a number"),
        (ValueType::Number, Matcher::Text(text)) if Number::parse(text).is_none() => {
            Some("a number")
        }
        (ValueType::List, Matcher::Bool(_) | Matcher::Number(_)) => Some("a list"),
        (ValueType::Text | ValueType::Lines, Matcher::Bool(_)) => Some("a string"),
        _ => None,
    }
}

struct Reading<'a> {
    problems: &'a mut Problems,
}

impl Reading<'_> {
    /// A matcher; below lines a list is one of patterns.
    fn matcher(&mut self, tree: &Tree, is_lines: bool) -> Matcher {
        match &tree.item {
            Item::Open(_) => Matcher::Open,
            Item::Scalar { value: Value::Nil, .. } => self.wrong(tree, "a value or a matcher"),
            Item::Scalar { value: Value::Bool(flag), .. } => Matcher::Bool(*flag),
            Item::Scalar { value: Value::String(text), .. } => {
                Matcher::Text(text.to_str_lossy().into_owned())
            }
            Item::Scalar { value, written } => match Number::of(value) {
                Some(number) => Matcher::Number(number),
                None => Matcher::Text(written.clone()),
            },
            Item::List(items) if is_lines => Matcher::Patterns(self.patterns(items)),
            Item::List(items) => Matcher::Elements(self.matchers(items, false)),
            Item::Map(entries) => self.named(tree, entries, is_lines),
        }
    }

    fn matchers(&mut self, items: &[Tree], is_lines: bool) -> Vec<Matcher> {
        items.iter().map(|item| self.matcher(item, is_lines)).collect()
    }

    fn patterns(&mut self, items: &[Tree]) -> Vec<Pattern> {
        let mut patterns = Vec::with_capacity(items.len());
        for item in items {
            match &item.item {
                Item::Scalar { value: Value::Nil, .. } | Item::List(_) | Item::Map(_) => {
                    self.wrong(item, "a pattern, which is a string");
                }
                Item::Scalar { written, .. } => {
                    let pattern = Pattern::new(written);
                    if self.problems.is_strict()
                        && let Err(reason) = pattern.check()
                    {
                        self.problems.add_failing(item.span, reason);
                    }
                    patterns.push(pattern);
                }
                Item::Open(_) => {}
            }
        }
        patterns
    }

    fn named(&mut self, tree: &Tree, entries: &[(Key, Tree)], is_lines: bool) -> Matcher {
        let [(key, argument)] = entries else {
            match entries {
                [] => self.problems.add(tree.span, "a matcher is missing"),
                [(first, _), (second, _), ..] => self.problems.add_with_hint(
                    second.span,
                    format!(
                        "only one matcher is allowed in a map, found `{}` and `{}`",
                        first.text, second.text
                    ),
                    "combine matchers with `and: […]` or `or: […]`",
                ),
                [_] => {}
            }
            return Matcher::Open;
        };
        if key.is_open {
            return Matcher::Open;
        }
        let known = self.problems.count();
        let matcher = self.matcher_called(&key.text, key, argument, is_lines);
        self.problems.prefix(known, &key.text);
        matcher
    }

    fn matcher_called(
        &mut self,
        name: &str,
        key: &Key,
        argument: &Tree,
        is_lines: bool,
    ) -> Matcher {
        match name {
            "equal" => match &argument.item {
                Item::Open(_) => Matcher::Open,
                _ => Matcher::Equal(argument.value()),
            },
            "have-prefix" => self.text(argument, Matcher::Prefix),
            "have-suffix" => self.text(argument, Matcher::Suffix),
            "contain-substring" => self.text(argument, Matcher::Substring),
            "match-regexp" => match &argument.item {
                Item::Open(_) => Matcher::Open,
                Item::Scalar { value: Value::String(text), .. } => {
                    let regexp = Regexp::new(&text.to_str_lossy());
                    if self.problems.is_strict()
                        && let Err(reason) = regexp.check()
                    {
                        self.problems.add_failing(argument.span, reason);
                    }
                    Matcher::Regexp(regexp)
                }
                _ => self.wrong(argument, "a string"),
            },
            "semver-constraint" => self.compiled(argument, Constraint::parse, Matcher::Semver),
            "gt" => self.compare(argument, Order::Greater),
            "ge" => self.compare(argument, Order::GreaterOrEqual),
            "lt" => self.compare(argument, Order::Less),
            "le" => self.compare(argument, Order::LessOrEqual),
            "have-len" => match &argument.item {
                Item::Open(_) => Matcher::Open,
                Item::Scalar { value, .. } if value.is_number() => {
                    Number::of(value).map_or(Matcher::Open, Matcher::Len)
                }
                _ => self.wrong(argument, "a number"),
            },
            "contain-element" => self.single(argument, Matcher::Element),
            "have-key" => self.single(argument, Matcher::Key),
            "contain-elements" => self.list(argument, false, Matcher::Elements),
            "consist-of" => self.list(argument, false, Matcher::ConsistOf),
            "and" => self.list(argument, is_lines, Matcher::And),
            "or" => self.list(argument, is_lines, Matcher::Or),
            "not" => Matcher::Not(Box::new(self.matcher(argument, is_lines))),
            "have-patterns" => match &argument.item {
                Item::Open(_) => Matcher::Open,
                Item::List(items) => Matcher::Patterns(self.patterns(items)),
                _ => self.wrong(argument, "a list of patterns"),
            },
            "gjson" => match &argument.item {
                Item::Open(_) => Matcher::Open,
                Item::Map(entries) => {
                    let paths = entries
                        .iter()
                        .map(|(path, expected)| (path.text.clone(), self.matcher(expected, false)));
                    Matcher::Gjson(paths.collect())
                }
                _ => self.wrong(argument, "a map of paths to matchers"),
            },
            _ => {
                let names = MATCHERS.iter().map(|matcher| matcher.name);
                let hint = did_you_mean(name, names);
                self.problems.unknown(key.span, format!("unknown matcher `{name}`"), hint);
                Matcher::Open
            }
        }
    }

    fn text(&mut self, argument: &Tree, make: impl FnOnce(String) -> Matcher) -> Matcher {
        match &argument.item {
            Item::Open(_) => Matcher::Open,
            Item::Scalar { value: Value::String(text), .. } => {
                make(text.to_str_lossy().into_owned())
            }
            _ => self.wrong(argument, "a string"),
        }
    }

    /// A text that means something of its own. What does not fails the test.
    fn compiled<T>(
        &mut self,
        argument: &Tree,
        compile: impl FnOnce(&str) -> Result<T, String>,
        make: impl FnOnce(Result<T, String>) -> Matcher,
    ) -> Matcher {
        match &argument.item {
            Item::Open(_) => Matcher::Open,
            Item::Scalar { value: Value::String(text), .. } => {
                let compiled = compile(&text.to_str_lossy());
                if let Err(reason) = &compiled {
                    self.problems.add_failing(argument.span, reason);
                }
                make(compiled)
            }
            _ => self.wrong(argument, "a string"),
        }
    }

    /// A number that is written as text can be compared with nothing.
    fn compare(&mut self, argument: &Tree, order: Order) -> Matcher {
        match &argument.item {
            Item::Open(_) => Matcher::Open,
            Item::Scalar { value: Value::String(text), .. } => {
                let reason = format!("\"{}\" is a string, not a number", text.to_str_lossy());
                self.problems.add_failing(argument.span, &reason);
                Matcher::Compare(order, Err(reason))
            }
            Item::Scalar { value, .. } if value.is_number() => {
                let number = Number::of(value).ok_or_else(|| "not a number".to_owned());
                Matcher::Compare(order, number)
            }
            _ => self.wrong(argument, "a number"),
        }
    }

    /// A matcher that one element must meet, so that it is no list.
    fn single(&mut self, argument: &Tree, make: impl FnOnce(Box<Matcher>) -> Matcher) -> Matcher {
        match &argument.item {
            Item::List(_) | Item::Scalar { value: Value::Nil | Value::Bool(_), .. } => {
                self.wrong(argument, "a matcher, a string or a number")
            }
            _ => make(Box::new(self.matcher(argument, false))),
        }
    }

    fn list(
        &mut self,
        argument: &Tree,
        is_lines: bool,
        make: impl FnOnce(Vec<Matcher>) -> Matcher,
    ) -> Matcher {
        match &argument.item {
            Item::Open(_) => Matcher::Open,
            Item::List(items) => make(self.matchers(items, is_lines)),
            _ => self.wrong(argument, "a list"),
        }
    }

    fn wrong(&mut self, tree: &Tree, wanted: &str) -> Matcher {
        let message = format!("expected {wanted}, found {}", tree.describe());
        self.problems.add(tree.span, message);
        Matcher::Open
    }
}
