//! Rules in comments: `@require`, `@validate` and `@secret`.

use ccm_yaml::{Comments, Kind, Node, Span};
use govalue::{Map, Value};

use crate::validator;

/// The rules in the comments of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The path to the key, with dots between its parts.
    pub key: String,
    /// Whether there must be a value: `@require`.
    pub required: bool,
    /// An expression that must hold: `@validate`.
    pub validation: Option<String>,
    /// Whether its value must not be shown: `@secret`.
    pub secret: bool,
    /// Where the key stands.
    pub span: Span,
}

/// A comment that looks like a rule but is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The path to the key, with dots between its parts.
    pub key: String,
    /// The comment as it was written.
    pub annotation: String,
    /// Where the key stands.
    pub span: Span,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key `{}` has the unknown annotation `{}`", self.key, self.annotation)
    }
}

/// A rule that the data breaks. Holds no values, because they may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The path to the key.
    pub key: String,
    /// How the value of the key breaks its rule.
    pub reason: Reason,
    /// Where the key stands.
    pub span: Span,
}

/// How data can break a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no value, or an empty one.
    Missing,
    /// The expression does not hold.
    Fails {
        /// The expression as the comment has it.
        validation: String,
    },
    /// The expression cannot be used.
    Invalid {
        /// The expression as the comment has it.
        validation: String,
        /// The message.
        message: String,
    },
}

impl Failure {
    /// The same as a finding in the document of the rule.
    pub fn finding(&self) -> ccm_model::Finding {
        ccm_model::Finding::error(self.span, self.to_string())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = &self.key;
        match &self.reason {
            Reason::Missing => write!(f, "key `{key}` is required but has no value"),
            Reason::Fails { validation } => {
                write!(f, "key `{key}` fails its validation `{validation}`")
            }
            Reason::Invalid { validation, message } => {
                write!(f, "key `{key}` has a validation `{validation}` that is wrong: {message}")
            }
        }
    }
}

/// The rules and warnings of a document's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Annotations {
    pub(crate) rules: Vec<Rule>,
    pub(crate) warnings: Vec<Warning>,
}

impl Annotations {
    /// Reads the comments of the map under `data_key`.
    pub(crate) fn read(root: &Node<'_>, comments: &Comments, data_key: &str) -> Self {
        let mut found = Self::default();
        if let Kind::Mapping(entries) = &root.kind
            && let Some(data) = entries.iter().find(|entry| entry.key.text == data_key)
            && !data_key.is_empty()
        {
            found.walk(&data.value, comments, "");
        }
        found
    }

    fn walk(&mut self, node: &Node<'_>, comments: &Comments, parent: &str) {
        let Kind::Mapping(entries) = &node.kind else { return };
        for entry in entries.iter().filter(|entry| node.owns(&entry.key)) {
            let name = &*entry.key.text;
            // A part with a dot in it is no path; see `value_at`.
            let quoted = name.contains('.').then(|| format!("'{name}'"));
            let name = quoted.as_deref().unwrap_or(name);
            let key = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
            self.annotate(&key, entry.key.span, comments.of(&entry.key));
            self.walk(&entry.value, comments, &key);
        }
    }

    fn annotate(&mut self, key: &str, span: Span, comments: &[String]) {
        let (mut required, mut secret, mut validation) = (false, false, None);
        for comment in comments.iter().filter(|comment| comment.starts_with('@')) {
            let expression = comment
                .strip_prefix("@validate")
                .filter(|rest| rest.starts_with(char::is_whitespace) && !rest.trim().is_empty());
            match (comment.as_str(), expression) {
                ("@require" | "@required", _) => required = true,
                ("@secret", _) => secret = true,
                (_, Some(expression)) => validation = Some(expression.trim().to_owned()),
                _ => self.warnings.push(Warning {
                    key: key.to_owned(),
                    annotation: comment.clone(),
                    span,
                }),
            }
        }
        if required || secret || validation.is_some() {
            self.rules.push(Rule { key: key.to_owned(), required, validation, secret, span });
        }
    }
}

/// Everything in which data breaks the rules.
pub(crate) fn check(rules: &[Rule], data: &Map) -> Vec<Failure> {
    let mut failures = Vec::new();
    for rule in rules {
        let value = value_at(data, &rule.key).unwrap_or(&Value::Nil);
        let mut fail = |reason| {
            failures.push(Failure { key: rule.key.clone(), reason, span: rule.span });
        };
        let is_missing = value.is_nil() || matches!(value, Value::String(text) if text.is_empty());
        if rule.required && is_missing {
            fail(Reason::Missing);
        }
        let Some(validation) = &rule.validation else { continue };
        if matches!(value, Value::Nil | Value::Map(_) | Value::Array(_)) {
            continue;
        }
        match validator::check(&value.to_string(), validation) {
            Ok(true) => {}
            Ok(false) => fail(Reason::Fails { validation: validation.clone() }),
            Err(error) => {
                let message = error.to_string();
                fail(Reason::Invalid { validation: validation.clone(), message });
            }
        }
    }
    failures
}

/// The values that must not be shown, those inside of maps and lists included.
pub(crate) fn secrets(rules: &[Rule], data: &Map) -> Vec<String> {
    let mut found = Vec::new();
    let secret = rules.iter().filter(|rule| rule.secret);
    let mut pending: Vec<&Value> = secret.filter_map(|rule| value_at(data, &rule.key)).collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Map(map) => pending.extend(map.iter().map(|(_, value)| value)),
            Value::Array(items) => pending.extend(items.iter()),
            Value::Nil | Value::Bool(_) => {}
            single => found.push(single.to_string()),
        }
    }
    found
}

/// What a path leads to. Dots always separate, so keys with dots in them are
/// out of reach, and a value that is demanded of one is always missing.
fn value_at<'v>(data: &'v Map, path: &str) -> Option<&'v Value> {
    let mut parts = path.split('.');
    let first = data.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Annotations {
        let source = ccm_yaml::Source::new("t", text);
        let (root, comments) = ccm_yaml::parse_annotated(&source).unwrap();
        Annotations::read(&root, &comments, "data")
    }

    #[test]
    fn words_are_taken_exactly() {
        let found = read(
            "data:\n  # @require\n  # @validate isInt(value)\n  a: 1 # note\n  # @Require\n  \
             # @validate\n  # @validated x\n  b: 2\n  c:\n    d: 3 # @required\n",
        );
        let rules: Vec<_> = found
            .rules
            .iter()
            .map(|rule| (rule.key.as_str(), rule.required, rule.validation.as_deref()))
            .collect();
        assert_eq!(rules, [("a", true, Some("isInt(value)")), ("c.d", true, None)]);
        let warnings: Vec<_> = found.warnings.iter().map(|w| w.annotation.as_str()).collect();
        assert_eq!(warnings, ["@Require", "@validate", "@validated x"]);
    }

    #[test]
    fn secrets_are_all_values_below_a_key() {
        let found = read(
            "data:\n  # @secret\n  token: t\n  # @secret\n  db: {user: u, hosts: [h, 7]}\n  \
             open: o\n",
        );
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        let hosts = Value::array([Value::from("h"), Value::Int(7)]);
        let db = Map::from_iter([("user", Value::from("u")), ("hosts", hosts)]);
        let data = Map::from_iter([
            ("token", Value::from("t")),
            ("db", Value::from(db)),
            ("open", Value::from("o")),
        ]);
        let mut values = secrets(&found.rules, &data);
        values.sort();
        assert_eq!(values, ["7", "h", "t", "u"]);
    }

    #[test]
    fn all_failures_are_found() {
        let found = read(
            "data:\n  # @require\n  a: ''\n  # @validate isInt(value)\n  b: x\n  \
             # @validate nope\n  c: y\n  # @validate isInt(value)\n  d: [x]\n",
        );
        let data = Map::from_iter([("a", ""), ("b", "x"), ("c", "y")]);
        let failures = check(&found.rules, &data);
        let shown: Vec<_> = failures.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 3);
        assert_eq!(shown[0], "key `a` is required but has no value");
        assert_eq!(shown[1], "key `b` fails its validation `isInt(value)`");
        assert!(shown[2].contains("unknown name nope"));
    }
}
