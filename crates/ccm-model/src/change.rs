//! What a step changes, as data.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One property that a step changes. A side that is missing means that there
/// was, or will be, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Change {
    /// The property
    pub property: Cow<'static, str>,
    /// Its value before
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// Its value after
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The values are secret and left out
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Lines that a text gains
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// Lines that a text loses
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
}

impl Change {
    /// A change of a property from one value to another.
    pub fn new(
        property: impl Into<Cow<'static, str>>,
        from: Option<impl Into<Value>>,
        to: Option<impl Into<Value>>,
    ) -> Self {
        Self {
            property: property.into(),
            from: from.map(Into::into),
            to: to.map(Into::into),
            ..Self::default()
        }
    }

    /// A property that gets its first value.
    pub fn to(property: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        Self::new(property, None::<Value>, Some(value))
    }

    /// A property that loses its value.
    pub fn from(property: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        Self::new(property, Some(value), None::<Value>)
    }

    /// The same change without its values, which nobody may see.
    #[must_use]
    pub fn without_values(self) -> Self {
        Self { from: None, to: None, secret: true, ..self }
    }
}

/// What a step does to its resource, in the words that people see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It was not there.
    Created,
    /// It was there, and something about it changes.
    Updated,
    /// It was there and goes.
    Removed,
    /// A service that did not run.
    Started,
    /// A service that ran.
    Stopped,
    /// A service that ran, stopped and started.
    Restarted,
    /// A service that ran and reads its configuration again.
    Reloaded,
    /// A package that was not there.
    Installed,
    /// A package to a newer version.
    Upgraded,
    /// A package to an older version.
    Downgraded,
    /// A command, or a child manifest.
    Executed,
    /// A tree of templates.
    Rendered,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_left_out() {
        let json = |change: &Change| serde_json::to_string(change).unwrap();
        let mode = Change::new("mode", Some("0600"), Some("0644"));
        assert_eq!(json(&mode), r#"{"property":"mode","from":"0600","to":"0644"}"#);
        assert_eq!(json(&Change::to("enable", true)), r#"{"property":"enable","to":true}"#);
        assert_eq!(json(&Change::from("ensure", "1.0")), r#"{"property":"ensure","from":"1.0"}"#);
        let hidden = Change { added: Some(2), ..mode.without_values() };
        assert_eq!(json(&hidden), r#"{"property":"mode","secret":true,"added":2}"#);
        assert_eq!(serde_json::from_str::<Change>(&json(&hidden)).unwrap(), hidden);
        assert_eq!(serde_json::to_string(&Verb::Upgraded).unwrap(), r#""upgraded""#);
    }
}
