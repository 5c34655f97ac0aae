//! Time zones.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Go's `*time.Location`.
#[derive(Clone, Debug)]
pub struct Zone(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Utc,
    Fixed(Arc<(Box<str>, i32)>),
    Named(Arc<(Box<str>, TimeZone)>),
}

/// There is no such time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone(pub String);

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown time zone {}", self.0)
    }
}

impl std::error::Error for UnknownZone {}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Inner::Utc);

    /// A zone with one offset from UTC, in seconds, for all time.
    pub fn fixed(name: &str, offset: i32) -> Self {
        Self(Inner::Fixed(Arc::new((name.into(), offset))))
    }

    /// A zone of the IANA database. The empty name and `UTC` are UTC; so is
    /// `Local`, because a library does not know where it runs.
    pub fn load(name: &str) -> Result<Self, UnknownZone> {
        if matches!(name, "" | "UTC" | "Local") {
            return Ok(Self::UTC);
        }
        // Names are exact in Go; the database here would fold their case.
        let zone = TimeZone::get(name).map_err(|_| UnknownZone(name.to_owned()))?;
        match zone.iana_name() {
            Some(exact) if exact == name => Ok(Self(Inner::Named(Arc::new((name.into(), zone))))),
            _ => Err(UnknownZone(name.to_owned())),
        }
    }

    /// The name by which the zone was made.
    pub fn name(&self) -> &str {
        match &self.0 {
            Inner::Utc => "UTC",
            Inner::Fixed(zone) => &zone.0,
            Inner::Named(zone) => &zone.0,
        }
    }

    /// Seconds east of UTC at an instant given in Unix seconds.
    pub fn offset_at(&self, unix: i64) -> i32 {
        match &self.0 {
            Inner::Utc => 0,
            Inner::Fixed(zone) => zone.1,
            Inner::Named(zone) => zone.1.to_offset(timestamp(unix)).seconds(),
        }
    }

    /// The abbreviation in use at an instant, such as `CEST`.
    pub fn abbreviation_at(&self, unix: i64) -> String {
        match &self.0 {
            Inner::Utc => "UTC".to_owned(),
            Inner::Fixed(zone) => zone.0.to_string(),
            Inner::Named(zone) => zone.1.to_offset_info(timestamp(unix)).abbreviation().to_owned(),
        }
    }

    /// Whether daylight saving time is in use at an instant.
    pub fn is_dst_at(&self, unix: i64) -> bool {
        match &self.0 {
            Inner::Utc | Inner::Fixed(_) => false,
            Inner::Named(zone) => zone.1.to_offset_info(timestamp(unix)).dst().is_dst(),
        }
    }
}

/// The database knows ten thousand years; beyond them its first and last rules hold.
fn timestamp(unix: i64) -> Timestamp {
    let clamped = unix.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(clamped).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Inner::Utc, Inner::Utc) => true,
            (Inner::Fixed(a), Inner::Fixed(b)) => a == b,
            (Inner::Named(a), Inner::Named(b)) => a.0 == b.0,
            _ => false,
        }
    }
}

impl Eq for Zone {}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_offsets_and_names() {
        let zurich = Zone::load("Europe/Zurich").unwrap();
        let (winter, summer) = (1_700_000_000, 1_690_000_000);
        assert_eq!((zurich.offset_at(winter), zurich.offset_at(summer)), (3600, 7200));
        assert_eq!(zurich.abbreviation_at(summer), "CEST");
        assert!(zurich.is_dst_at(summer) && !zurich.is_dst_at(winter));
        assert_eq!(Zone::load("Mars/Olympus"), Err(UnknownZone("Mars/Olympus".into())));
        assert!(Zone::load("europe/zurich").is_err());
        assert_eq!(Zone::load("UTC"), Ok(Zone::UTC));
    }
}
