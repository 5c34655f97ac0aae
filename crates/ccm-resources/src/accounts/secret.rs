//! A text that is never shown.

use std::fmt;

use ccm_model::REDACTED;
use serde::{Deserialize, Serialize, Serializer};

/// A text that is never shown: what is logged or saved of it is a placeholder.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the tool that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("$6$salt$hash");
        assert_eq!(format!("{secret:?}"), REDACTED);
        assert_eq!(serde_json::to_string(&secret).unwrap(), format!("\"{REDACTED}\""));
        assert_eq!(secret.expose(), "$6$salt$hash");
    }
}
