//! The time to live of an entry.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::duration;

const SECOND: i64 = 1_000_000_000;

/// How long an entry lasts in the registry.
///
/// ```
/// use ccm_model::Ttl;
///
/// assert_eq!("90m".parse::<Ttl>().unwrap().to_string(), "1h30m0s");
/// assert_eq!("never".parse::<Ttl>(), Ok(Ttl::Never));
/// assert!("500ms".parse::<Ttl>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// It does not expire.
    Never,
    /// It expires after this many nanoseconds.
    After(i64),
}

/// Why a text is not a time to live.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time to live: write `never`, or a duration of at least `1s`")]
pub struct TtlError(String);

impl Ttl {
    /// The time that the entry lasts; `None` if it does not expire.
    pub fn duration(self) -> Option<std::time::Duration> {
        match self {
            Self::Never => None,
            Self::After(nanoseconds) => {
                Some(std::time::Duration::from_nanos(nanoseconds.max(0).unsigned_abs()))
            }
        }
    }
}

/// What servers accept: a time below one second is an error.
impl std::str::FromStr for Ttl {
    type Err = TtlError;

    fn from_str(text: &str) -> Result<Self, TtlError> {
        let wrong = || TtlError(text.chars().take(100).collect());
        if text == "never" {
            return Ok(Self::Never);
        }
        match duration::parse(text) {
            Ok(nanoseconds) if nanoseconds >= SECOND => Ok(Self::After(nanoseconds)),
            _ => Err(wrong()),
        }
    }
}

/// `never`, or the duration as Go writes it.
impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::After(nanoseconds) => write!(f, "{}", govalue::Duration(*nanoseconds)),
        }
    }
}

impl Serialize for Ttl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Reads what any writer may have stored: a text, or a number of nanoseconds.
impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Stored;

        impl Visitor<'_> for Stored {
            type Value = Ttl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration or a number of nanoseconds")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Ttl, E> {
                if text == "never" {
                    return Ok(Ttl::Never);
                }
                duration::parse(text).map(Ttl::After).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Ttl, E> {
                Ok(Ttl::After(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Ttl, E> {
                i64::try_from(number).map(Ttl::After).map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Ttl, E> {
                if number.fract() == 0.0 && number.abs() < 9e18 {
                    return Ok(Ttl::After(number as i64));
                }
                Err(E::custom("not a whole number of nanoseconds"))
            }
        }

        from.deserialize_any(Stored)
    }
}
