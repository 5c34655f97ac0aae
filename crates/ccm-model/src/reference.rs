//! References to resources: `type#name`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A reference to a resource: by name or by alias.
///
/// ```
/// let reference: ccm_model::ResourceRef = "file#/etc/motd".parse()?;
/// assert_eq!(reference.kind, "file");
/// assert_eq!(reference.name, "/etc/motd");
/// # Ok::<(), ccm_model::ResourceRefError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceRef {
    /// The resource's type.
    pub kind: String,
    /// Its name or alias.
    pub name: String,
}

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a reference: write `type#name`, such as `file#/etc/motd`")]
pub struct ResourceRefError(String);

impl ResourceRef {
    /// A reference from its parts.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }

    /// Whether it stands for all earlier resources with a tag: `tag#sites`.
    pub fn is_tag(&self) -> bool {
        self.kind == "tag"
    }
}

impl FromStr for ResourceRef {
    type Err = ResourceRefError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('#') {
            Some((kind, name)) if !kind.trim().is_empty() && !name.trim().is_empty() => {
                Ok(Self::new(kind, name))
            }
            _ => Err(ResourceRefError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ResourceRef {
    type Error = ResourceRefError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ResourceRef> for String {
    fn from(reference: ResourceRef) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_the_separator() {
        let reference: ResourceRef = "exec#echo a#b".parse().unwrap();
        assert_eq!(reference.name, "echo a#b");
        assert_eq!(reference.to_string(), "exec#echo a#b");
    }

    #[test]
    fn both_parts_are_needed() {
        for text in ["", "#", "file#", "#x", "file", " #x", "file# "] {
            assert!(text.parse::<ResourceRef>().is_err(), "{text:?}");
        }
    }
}
