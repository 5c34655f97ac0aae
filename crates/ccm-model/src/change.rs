//! Changes: what a step turns into what, as data that texts are made from.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One property before and after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The property that changes
    pub property: Cow<'static, str>,
    /// Its value before; absent where there was none, or it is secret
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ChangeValue>,
    /// Its value after; absent where there is none, or it is secret
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ChangeValue>,
    /// The values are not shown anywhere
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Lines that a text gains
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines that a text loses
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

/// A value as a change shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ChangeValue {
    /// On or off
    Switch(bool),
    /// Any other single value
    Text(String),
    /// The members of a set
    List(Vec<String>),
}

impl Change {
    /// A property that changes, with neither value known yet.
    pub fn of(property: impl Into<Cow<'static, str>>) -> Self {
        Self { property: property.into(), ..Self::default() }
    }

    /// Sets the value before.
    #[must_use]
    pub fn from(mut self, value: impl Into<ChangeValue>) -> Self {
        self.from = Some(value.into());
        self
    }

    /// Sets the value after.
    #[must_use]
    pub fn to(mut self, value: impl Into<ChangeValue>) -> Self {
        self.to = Some(value.into());
        self
    }

    /// Sets how many lines a text gains and loses.
    #[must_use]
    pub fn lines(mut self, (added, removed): (u64, u64)) -> Self {
        (self.added, self.removed) = (Some(added), Some(removed));
        self
    }

    /// A change whose values must not be shown.
    pub fn secret(property: impl Into<Cow<'static, str>>) -> Self {
        Self { secret: true, ..Self::of(property) }
    }
}

impl From<&str> for ChangeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ChangeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for ChangeValue {
    fn from(is_on: bool) -> Self {
        Self::Switch(is_on)
    }
}

impl From<Vec<String>> for ChangeValue {
    fn from(members: Vec<String>) -> Self {
        Self::List(members)
    }
}

impl fmt::Display for ChangeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(is_on) => is_on.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::List(members) => f.write_str(&members.join(", ")),
        }
    }
}

/// What a step does to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// It was not there and is now
    Created,
    /// It was there and is different now
    Updated,
    /// It was there and is gone
    Removed,
    /// A service runs now
    Started,
    /// A service does not run any more
    Stopped,
    /// A service was stopped and started
    Restarted,
    /// A service has read its configuration again
    Reloaded,
    /// A package was not there and is now
    Installed,
    /// A package is newer now
    Upgraded,
    /// A package is older now
    Downgraded,
    /// A command ran
    Executed,
    /// Templates were rendered to files
    Rendered,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_short_and_come_back() {
        for (change, json) in [
            (
                Change::of("mode").from("0600").to("0644"),
                r#"{"property":"mode","from":"0600","to":"0644"}"#,
            ),
            (
                Change::of("content").to("sha256:00").lines((2, 1)),
                r#"{"property":"content","to":"sha256:00","added":2,"removed":1}"#,
            ),
            (Change::secret("content"), r#"{"property":"content","secret":true}"#),
            (
                Change::of("enable").from(false).to(true),
                r#"{"property":"enable","from":false,"to":true}"#,
            ),
            (
                Change::of("removed").from(vec!["a".to_owned(), "b".to_owned()]),
                r#"{"property":"removed","from":["a","b"]}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&change).unwrap(), json);
            assert_eq!(serde_json::from_str::<Change>(json).unwrap(), change);
        }
        assert_eq!(serde_json::to_string(&Verb::Downgraded).unwrap(), "\"downgraded\"");
    }
}
