//! Changes: what a step changes, as data.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One property before and after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The property that changes
    pub property: Cow<'static, str>,
    /// Value before; absent if there was none or it is secret
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ChangeValue>,
    /// Value after; absent if there is none or it is secret
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ChangeValue>,
    /// The values are secret
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Number of added lines
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Number of removed lines, or the removed members
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    /// The members of a directory that are created
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<String>,
    /// The members of a directory that are updated
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updated: Vec<String>,
}

/// What is removed: lines of a text, or members of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Removed {
    /// So many lines
    Lines(u64),
    /// These members
    Members(Vec<String>),
}

/// The value of a property in a change.
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
        (self.added, self.removed) = (Some(added), Some(Removed::Lines(removed)));
        self
    }

    /// Sets the members of a directory that are created, updated and removed.
    #[must_use]
    pub fn members(mut self, [created, updated, removed]: [Vec<String>; 3]) -> Self {
        (self.created, self.updated) = (created, updated);
        self.removed = (!removed.is_empty()).then_some(Removed::Members(removed));
        self
    }

    /// How many lines a text gains and loses; `None` if it is not known.
    pub fn line_counts(&self) -> Option<(u64, u64)> {
        match self.removed {
            Some(Removed::Lines(removed)) => Some((self.added?, removed)),
            _ => None,
        }
    }

    /// The members that are removed.
    pub fn removed_members(&self) -> &[String] {
        match &self.removed {
            Some(Removed::Members(members)) => members,
            _ => &[],
        }
    }

    /// How many members are created, updated and removed, in words; `None` for
    /// a change of something else.
    pub fn member_counts(&self) -> Option<String> {
        let counts = [
            (self.created.len(), "created"),
            (self.updated.len(), "updated"),
            (self.removed_members().len(), "removed"),
        ];
        let words = counts.into_iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = words.map(|(count, word)| format!("{count} {word}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
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

/// The verb of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Created
    Created,
    /// Changed
    Updated,
    /// Removed
    Removed,
    /// Started a service
    Started,
    /// Stopped a service
    Stopped,
    /// Restarted a service
    Restarted,
    /// Reloaded a service
    Reloaded,
    /// Installed a package
    Installed,
    /// Upgraded a package
    Upgraded,
    /// Downgraded a package
    Downgraded,
    /// Ran a command
    Executed,
    /// Templates were rendered to files
    Rendered,
    /// Locked a user
    Locked,
    /// Unlocked a user
    Unlocked,
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
                Change::of("files").members([vec!["a".into()], vec!["b".into()], vec!["c".into()]]),
                r#"{"property":"files","removed":["c"],"created":["a"],"updated":["b"]}"#,
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
