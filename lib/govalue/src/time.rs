//! Go's `time.Time`.

use std::fmt;

use crate::{Duration, Zone};

/// An instant, to the nanosecond, together with the zone it is shown in.
#[derive(Clone, Debug)]
pub struct Time {
    unix: i64,
    nanos: u32,
    zone: Zone,
}

/// Go's `time.Month`: January is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(pub i64);

/// Go's `time.Weekday`: Sunday is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weekday(pub i64);

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0 - 1).ok().and_then(|index| MONTHS.get(index)) {
            Some(name) => f.pad(name),
            None => f.pad(&format!("%!Month({})", self.0)),
        }
    }
}

impl fmt::Display for Weekday {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|index| WEEKDAYS.get(index)) {
            Some(name) => f.pad(name),
            None => f.pad(&format!("%!Weekday({})", self.0)),
        }
    }
}

const DAY: i64 = 86_400;

/// Unix seconds of 1 January of year 1, Go's zero time.
const ZERO_UNIX: i64 = -62_135_596_800;

impl Time {
    /// The instant this many seconds and nanoseconds after 1970.
    pub fn from_unix(seconds: i64, nanos: i64, zone: Zone) -> Self {
        let unix = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
        Self { unix, nanos: nanos.rem_euclid(1_000_000_000) as u32, zone }
    }

    /// Go's zero time: midnight of 1 January of year 1, UTC.
    pub fn zero() -> Self {
        Self { unix: ZERO_UNIX, nanos: 0, zone: Zone::UTC }
    }

    /// The instant at which clocks in `zone` show this date and time. Values out
    /// of range carry over, as in Go's `time.Date`: 32 October is 1 November.
    #[expect(clippy::too_many_arguments, reason = "the parts of a date, in Go's order")]
    pub fn from_date(
        year: i64,
        month: i64,
        day: i64,
        hour: i64,
        minute: i64,
        second: i64,
        nanos: i64,
        zone: Zone,
    ) -> Self {
        let year = year.saturating_add((month.saturating_sub(1)).div_euclid(12));
        let month = (month.saturating_sub(1)).rem_euclid(12) + 1;
        let days = days_from_civil(year, month, 1).saturating_add(day.saturating_sub(1));
        let local = days
            .saturating_mul(DAY)
            .saturating_add(hour.saturating_mul(3600))
            .saturating_add(minute.saturating_mul(60))
            .saturating_add(second);
        let mut time = Self::from_unix(local, nanos, zone);
        // The offset depends on the instant, which depends on the offset: near a
        // transition the second guess is the one Go takes.
        let guess = i64::from(time.zone.offset_at(time.unix));
        if guess != 0 {
            let offset = i64::from(time.zone.offset_at(time.unix.saturating_sub(guess)));
            time.unix = time.unix.saturating_sub(offset);
        }
        time
    }

    /// The zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The same instant in another zone.
    #[must_use]
    pub fn in_zone(&self, zone: Zone) -> Self {
        Self { zone, ..*self }
    }

    /// Seconds since 1970.
    pub fn unix(&self) -> i64 {
        self.unix
    }

    /// Milliseconds since 1970.
    pub fn unix_milli(&self) -> i64 {
        self.unix.wrapping_mul(1_000).wrapping_add(i64::from(self.nanos / 1_000_000))
    }

    /// Microseconds since 1970.
    pub fn unix_micro(&self) -> i64 {
        self.unix.wrapping_mul(1_000_000).wrapping_add(i64::from(self.nanos / 1_000))
    }

    /// Nanoseconds since 1970; wraps beyond the years 1678 to 2262.
    pub fn unix_nano(&self) -> i64 {
        self.unix.wrapping_mul(1_000_000_000).wrapping_add(i64::from(self.nanos))
    }

    /// Seconds since 1970 and nanoseconds within the second; orders instants.
    pub fn instant(&self) -> (i64, u32) {
        (self.unix, self.nanos)
    }

    /// Whether both are the same instant, whatever their zones.
    pub fn same_instant(&self, other: &Self) -> bool {
        self.instant() == other.instant()
    }

    /// Whether this is the zero time.
    pub fn is_zero(&self) -> bool {
        self.instant() == (ZERO_UNIX, 0)
    }

    /// Seconds east of UTC.
    pub fn offset(&self) -> i32 {
        self.zone.offset_at(self.unix)
    }

    /// The zone's abbreviation at this instant; empty for a zone made from an
    /// offset alone.
    pub fn abbreviation(&self) -> String {
        self.zone.abbreviation_at(self.unix)
    }

    fn local(&self) -> i64 {
        self.unix.saturating_add(i64::from(self.offset()))
    }

    /// Year, month and day.
    pub fn date(&self) -> (i64, Month, i64) {
        let (year, month, day) = civil_from_days(self.local().div_euclid(DAY));
        (year, Month(month), day)
    }

    /// Hour, minute and second.
    pub fn clock(&self) -> (i64, i64, i64) {
        let second = self.local().rem_euclid(DAY);
        (second / 3600, second / 60 % 60, second % 60)
    }

    /// The year.
    pub fn year(&self) -> i64 {
        self.date().0
    }

    /// The month.
    pub fn month(&self) -> Month {
        self.date().1
    }

    /// The day of the month.
    pub fn day(&self) -> i64 {
        self.date().2
    }

    /// The hour, 0 to 23.
    pub fn hour(&self) -> i64 {
        self.clock().0
    }

    /// The minute.
    pub fn minute(&self) -> i64 {
        self.clock().1
    }

    /// The second.
    pub fn second(&self) -> i64 {
        self.clock().2
    }

    /// The nanosecond within the second.
    pub fn nanosecond(&self) -> i64 {
        i64::from(self.nanos)
    }

    /// The day of the week.
    pub fn weekday(&self) -> Weekday {
        // 1 January 1970 was a Thursday.
        Weekday((self.local().div_euclid(DAY) + 4).rem_euclid(7))
    }

    /// The day of the year, from 1.
    pub fn year_day(&self) -> i64 {
        let days = self.local().div_euclid(DAY);
        days - days_from_civil(civil_from_days(days).0, 1, 1) + 1
    }

    /// The instant this much later.
    #[must_use]
    pub fn add(&self, span: Duration) -> Self {
        let nanos = i64::from(self.nanos) + span.0 % 1_000_000_000;
        let unix = self.unix.saturating_add(span.0 / 1_000_000_000);
        Self::from_unix(unix, nanos, self.zone.clone())
    }

    /// The span since `other`, at most what a [`Duration`] can hold.
    pub fn sub(&self, other: &Self) -> Duration {
        let nanos = (i128::from(self.unix) - i128::from(other.unix)) * 1_000_000_000
            + i128::from(self.nanos)
            - i128::from(other.nanos);
        Duration(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// The date moved by calendar years, months and days.
    #[must_use]
    pub fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.clock();
        Self::from_date(
            year.saturating_add(years),
            month.0.saturating_add(months),
            day.saturating_add(days),
            hour,
            minute,
            second,
            i64::from(self.nanos),
            self.zone.clone(),
        )
    }

    /// Rounded down to a multiple of `unit` since the zero time.
    #[must_use]
    pub fn truncate(&self, unit: Duration) -> Self {
        if unit.0 <= 0 { self.clone() } else { self.add(Duration(-self.past(unit))) }
    }

    /// Rounded to the nearest multiple of `unit` since the zero time, halves up.
    #[must_use]
    pub fn round(&self, unit: Duration) -> Self {
        if unit.0 <= 0 {
            return self.clone();
        }
        let past = self.past(unit);
        let move_by = if i128::from(past) * 2 < i128::from(unit.0) { -past } else { unit.0 - past };
        self.add(Duration(move_by))
    }

    /// Nanoseconds past the last multiple of `unit` since the zero time.
    fn past(&self, unit: Duration) -> i64 {
        let since = (i128::from(self.unix) - i128::from(ZERO_UNIX)) * 1_000_000_000
            + i128::from(self.nanos);
        since.rem_euclid(i128::from(unit.0)) as i64
    }

    /// Written by a Go layout, such as `2006-01-02`.
    pub fn format(&self, layout: &str) -> String {
        crate::layout::format(self, layout)
    }
}

/// Prints as Go's `Time.String`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// Days from 1970 to a date of the Gregorian calendar, extended to all years.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day comes last.
    let year = year.saturating_sub(i64::from(month <= 2)).clamp(-300_000_000_000, 300_000_000_000);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// How many days a month has.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i64, month: i64, day: i64) -> Time {
        Time::from_date(year, month, day, 0, 0, 0, 0, Zone::UTC)
    }

    #[test]
    fn calendar() {
        let time = Time::from_unix(1_700_000_000, 5, Zone::UTC);
        assert_eq!(time.to_string(), "2023-11-14 22:13:20.000000005 +0000 UTC");
        assert_eq!((time.weekday().to_string(), time.year_day()), ("Tuesday".into(), 318));
        assert_eq!(date(2024, 14, 32).to_string(), "2025-03-04 00:00:00 +0000 UTC");
        assert_eq!(date(2020, 1, 31).add_date(0, 1, 0).format("2006-01-02"), "2020-03-02");
        assert!(Time::zero().is_zero() && date(1, 1, 1).is_zero());
        assert_eq!(Month(13).to_string(), "%!Month(13)");
    }

    #[test]
    fn zones_and_spans() {
        let zurich = Zone::load("Europe/Zurich").unwrap();
        let noon = Time::from_date(2023, 7, 1, 12, 0, 0, 0, zurich);
        assert_eq!(noon.to_string(), "2023-07-01 12:00:00 +0200 CEST");
        assert_eq!(noon.in_zone(Zone::UTC).hour(), 10);
        let later = noon.add(Duration::HOUR);
        assert_eq!(later.sub(&noon), Duration::HOUR);
        assert_eq!(date(2023, 8, 14).add(Duration(1)).truncate(Duration::HOUR).nanosecond(), 0);
        assert_eq!(Time::from_unix(1_700_000_000, 0, Zone::UTC).round(Duration::HOUR).minute(), 0);
    }

    #[test]
    fn extreme_instants_do_not_overflow() {
        for unix in [i64::MIN, i64::MAX] {
            let time = Time::from_unix(unix, 0, Zone::load("Europe/Zurich").unwrap());
            let _ = (time.to_string(), time.add(Duration(i64::MAX)), time.add_date(1, 1, 1));
        }
        let _ = Time::from_date(i64::MAX, i64::MIN, i64::MAX, i64::MAX, 0, 0, i64::MIN, Zone::UTC);
    }
}
