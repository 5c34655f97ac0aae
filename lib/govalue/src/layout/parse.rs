//! Times read by a layout.

use std::fmt;

use super::tokens::{Offset, Token, tokens};
use crate::time::{MONTHS, WEEKDAYS, days_in_month};
use crate::{Time, Zone};

/// The text does not fit the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTimeError {
    layout: String,
    value: String,
    reason: &'static str,
}

impl fmt::Display for ParseTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, layout) =
            (crate::quote(self.value.as_bytes()), crate::quote(self.layout.as_bytes()));
        write!(f, "parsing time {value} as {layout}: {}", self.reason)
    }
}

impl std::error::Error for ParseTimeError {}

/// Reads a time; where the text names no zone, it is UTC.
pub fn parse(layout: &str, value: &str) -> Result<Time, ParseTimeError> {
    parse_in(layout, value, &Zone::UTC)
}

/// Reads a time; where the text names no zone, it is shown on clocks in `zone`.
pub fn parse_in(layout: &str, value: &str, zone: &Zone) -> Result<Time, ParseTimeError> {
    let mut parts = Parts::default();
    parts.read(layout, value).and_then(|()| parts.finish(zone)).map_err(|reason| ParseTimeError {
        layout: layout.to_owned(),
        value: value.to_owned(),
        reason,
    })
}

const SYNTAX: &str = "the text does not match the layout";
const RANGE: &str = "a number is out of range";

type Step<T> = Result<T, &'static str>;

/// What the text has said so far.
#[derive(Default)]
struct Parts {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
    afternoon: Option<bool>,
    utc: bool,
    offset: Option<i32>,
    zone: Option<String>,
}

impl Parts {
    fn read(&mut self, layout: &str, value: &str) -> Step<()> {
        let mut rest = value;
        let mut elements = tokens(layout).peekable();
        while let Some(token) = elements.next() {
            let next_is_fraction = matches!(elements.peek(), Some(Token::Fraction { .. }));
            rest = self.element(token, rest, next_is_fraction)?;
        }
        if rest.is_empty() { Ok(()) } else { Err("there is text after the time") }
    }

    fn element<'t>(
        &mut self,
        token: Token<'_>,
        text: &'t str,
        fraction_next: bool,
    ) -> Step<&'t str> {
        match token {
            Token::Literal(literal) => return skip(text, literal),
            Token::LongMonth => {
                let (index, rest) = name(text, &MONTHS, None)?;
                self.month = Some(index + 1);
                return Ok(rest);
            }
            Token::Month => {
                let (index, rest) = name(text, &MONTHS, Some(3))?;
                self.month = Some(index + 1);
                return Ok(rest);
            }
            Token::LongWeekday => return name(text, &WEEKDAYS, None).map(|(_, rest)| rest),
            Token::Weekday => return name(text, &WEEKDAYS, Some(3)).map(|(_, rest)| rest),
            Token::UpperHalf | Token::LowerHalf => return self.half(token, text),
            Token::Zone => return self.zone_name(text),
            Token::Offset(offset) => return self.offset(offset, text),
            Token::Fraction { digits, nines, .. } => return self.fraction(text, digits, nines),
            _ => {}
        }
        self.number(token, text, fraction_next)
    }

    fn number<'t>(
        &mut self,
        token: Token<'_>,
        text: &'t str,
        fraction_next: bool,
    ) -> Step<&'t str> {
        // How many digits there must be at least and may be at most.
        let (least, most, padded) = match token {
            Token::LongYear => (4, 4, false),
            Token::ZeroYearDay => (3, 3, false),
            Token::UnderYearDay => (1, 3, true),
            Token::Year
            | Token::ZeroMonth
            | Token::ZeroDay
            | Token::ZeroHour12
            | Token::ZeroMinute
            | Token::ZeroSecond => (2, 2, false),
            Token::UnderDay => (1, 2, true),
            _ => (1, 2, false),
        };
        let text = if padded { text.trim_start_matches(' ') } else { text };
        let len = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if len < least {
            return Err(SYNTAX);
        }
        let value: i64 = text[..len].parse().map_err(|_| SYNTAX)?;
        let rest = &text[len..];
        let within = |low: i64, high: i64| {
            if (low..=high).contains(&value) { Ok(value) } else { Err(RANGE) }
        };
        match token {
            Token::LongYear => self.year = value,
            Token::Year => self.year = if value >= 69 { 1900 + value } else { 2000 + value },
            Token::NumMonth | Token::ZeroMonth => self.month = Some(within(1, 12)?),
            Token::Day | Token::UnderDay | Token::ZeroDay => self.day = Some(value),
            Token::UnderYearDay | Token::ZeroYearDay => self.year_day = Some(value),
            Token::Hour => self.hour = within(0, 23)?,
            Token::Hour12 | Token::ZeroHour12 => self.hour = within(0, 12)?,
            Token::Minute | Token::ZeroMinute => self.minute = within(0, 59)?,
            Token::Second | Token::ZeroSecond => {
                self.second = within(0, 59)?;
                return self.unasked_fraction(rest, fraction_next);
            }
            // The other elements are no numbers and do not come here.
            _ => return Err(SYNTAX),
        }
        Ok(rest)
    }

    /// A fraction may follow the seconds even where the layout has none.
    fn unasked_fraction<'t>(&mut self, text: &'t str, fraction_next: bool) -> Step<&'t str> {
        if fraction_next || !text.starts_with(['.', ',']) {
            return Ok(text);
        }
        match text[1..].bytes().take_while(u8::is_ascii_digit).count() {
            0 => Ok(text),
            digits => self.fraction(text, digits, false),
        }
    }

    fn fraction<'t>(&mut self, text: &'t str, digits: usize, nines: bool) -> Step<&'t str> {
        let present =
            text.starts_with(['.', ',']) && text.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if nines && !present {
            return Ok(text);
        }
        if !present {
            return Err(SYNTAX);
        }
        let found = text[1..].bytes().take_while(u8::is_ascii_digit).count();
        let len = if nines { found } else { digits };
        if found < len {
            return Err(SYNTAX);
        }
        let shown = &text[1..=len.min(9)];
        let scale = 10i64.pow(9 - shown.len() as u32);
        self.nanos = shown.parse::<i64>().map_err(|_| SYNTAX)? * scale;
        Ok(&text[1 + len..])
    }

    fn half<'t>(&mut self, token: Token<'_>, text: &'t str) -> Step<&'t str> {
        let (am, pm) = if token == Token::UpperHalf { ("AM", "PM") } else { ("am", "pm") };
        self.afternoon = Some(text.starts_with(pm));
        text.strip_prefix(am).or_else(|| text.strip_prefix(pm)).ok_or(SYNTAX)
    }

    /// `UTC`, or three to five capitals; `GMT-3` carries its hours.
    fn zone_name<'t>(&mut self, text: &'t str) -> Step<&'t str> {
        if let Some(rest) = text.strip_prefix("UTC") {
            self.utc = true;
            return Ok(rest);
        }
        let len = zone_len(text).ok_or(SYNTAX)?;
        self.zone = Some(text[..len].to_owned());
        Ok(&text[len..])
    }

    fn offset<'t>(&mut self, offset: Offset, text: &'t str) -> Step<&'t str> {
        if offset.zulu
            && let Some(rest) = text.strip_prefix('Z')
        {
            self.utc = true;
            return Ok(rest);
        }
        let sign = match text.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(SYNTAX),
        };
        let mut rest = &text[1..];
        let mut seconds = 0;
        for part in 0..offset.parts {
            if part > 0 && offset.colon {
                rest = rest.strip_prefix(':').ok_or(SYNTAX)?;
            }
            let digits = rest
                .get(..2)
                .filter(|text| text.bytes().all(|c| c.is_ascii_digit()))
                .ok_or(SYNTAX)?;
            let value: i32 = digits.parse().map_err(|_| SYNTAX)?;
            let limit = if part == 0 { 24 } else { 60 };
            if value > limit {
                return Err(RANGE);
            }
            seconds += value * [3600, 60, 1][usize::from(part)];
            rest = &rest[2..];
        }
        self.offset = Some(sign * seconds);
        Ok(rest)
    }

    fn finish(&self, zone: &Zone) -> Step<Time> {
        let mut hour = self.hour;
        match self.afternoon {
            Some(true) if hour < 12 => hour += 12,
            Some(false) if hour == 12 => hour = 0,
            _ => {}
        }
        let (month, day) = self.month_and_day()?;
        let date = |zone: Zone| {
            Time::from_date(self.year, month, day, hour, self.minute, self.second, self.nanos, zone)
        };
        if self.utc {
            return Ok(date(Zone::UTC));
        }
        if let Some(offset) = self.offset {
            let time =
                Time::from_unix(date(Zone::UTC).unix() - i64::from(offset), self.nanos, Zone::UTC);
            // An offset that the expected zone has at that time is that zone.
            let abbreviation = zone.abbreviation_at(time.unix());
            let fits = zone.offset_at(time.unix()) == offset
                && self.zone.as_ref().is_none_or(|name| *name == abbreviation);
            let name = self.zone.as_deref().unwrap_or("");
            return Ok(time.in_zone(if fits { zone.clone() } else { Zone::fixed(name, offset) }));
        }
        if let Some(name) = &self.zone {
            let local = date(zone.clone());
            if local.abbreviation() == *name {
                return Ok(local);
            }
            // An abbreviation says nothing about its offset, but for GMT+3.
            let hours: i32 =
                name.strip_prefix("GMT").and_then(|hours| hours.parse().ok()).unwrap_or(0);
            return Ok(date(Zone::fixed(name, hours * 3600)));
        }
        Ok(date(zone.clone()))
    }

    fn month_and_day(&self) -> Step<(i64, i64)> {
        if let Some(mut rest) = self.year_day {
            let year_days = 337 + days_in_month(self.year, 2);
            if !(1..=year_days).contains(&rest) {
                return Err(RANGE);
            }
            let mut month = 1;
            while rest > days_in_month(self.year, month) {
                rest -= days_in_month(self.year, month);
                month += 1;
            }
            if self.month.is_some_and(|given| given != month)
                || self.day.is_some_and(|given| given != rest)
            {
                return Err("the day of the year is another date");
            }
            return Ok((month, rest));
        }
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        if (1..=days_in_month(self.year, month)).contains(&day) {
            Ok((month, day))
        } else {
            Err(RANGE)
        }
    }
}

/// Text between the elements must be there as it is; a run of spaces matches
/// any number of them.
fn skip<'t>(mut text: &'t str, mut literal: &str) -> Step<&'t str> {
    while let Some(wanted) = literal.chars().next() {
        if wanted == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return Err(SYNTAX);
            }
            literal = literal.trim_start_matches(' ');
            text = text.trim_start_matches(' ');
            continue;
        }
        text = text.strip_prefix(wanted).ok_or(SYNTAX)?;
        literal = &literal[wanted.len_utf8()..];
    }
    Ok(text)
}

/// A month or weekday, in any case, whole or cut to its first letters.
fn name<'t>(text: &'t str, names: &[&str], cut: Option<usize>) -> Step<(i64, &'t str)> {
    for (index, name) in names.iter().enumerate() {
        let name = &name[..cut.unwrap_or(name.len())];
        if text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return Ok((index as i64, &text[name.len()..]));
        }
    }
    Err(SYNTAX)
}

/// How long a zone's abbreviation at the start of the text is.
fn zone_len(text: &str) -> Option<usize> {
    if text.starts_with("ChST") || text.starts_with("MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix("GMT") {
        return Some(3 + signed_hours(rest));
    }
    if text.starts_with(['+', '-']) {
        return Some(signed_hours(text)).filter(|len| *len > 0);
    }
    let capitals = text.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
    match capitals {
        5 if text.as_bytes()[4] == b'T' => Some(5),
        4 if text.as_bytes()[3] == b'T' || text.starts_with("WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// The length of `+3` or `-11`; 0 when it is not there or beyond 23.
fn signed_hours(text: &str) -> usize {
    if !text.starts_with(['+', '-']) {
        return 0;
    }
    let digits = text[1..].bytes().take_while(u8::is_ascii_digit).count();
    match text[1..=digits].parse::<u32>() {
        Ok(hours) if hours <= 23 => digits + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;

    fn shown(layout: &str, value: &str) -> String {
        match parse(layout, value) {
            Ok(time) => time.to_string(),
            Err(error) => error.reason.to_owned(),
        }
    }

    #[test]
    fn the_usual_layouts() {
        for (layout, value, want) in [
            (layout::DATE_ONLY, "2023-08-14", "2023-08-14 00:00:00 +0000 UTC"),
            (layout::RFC3339, "2023-08-14T15:04:05.25Z", "2023-08-14 15:04:05.25 +0000 UTC"),
            (layout::RFC3339, "2023-08-14T15:04:05+02:00", "2023-08-14 15:04:05 +0200 +0200"),
            (layout::RFC1123, "Mon, 14 Aug 2023 15:04:05 MST", "2023-08-14 15:04:05 +0000 MST"),
            (layout::RFC822Z, "14 Aug 23 15:04 -0700", "2023-08-14 15:04:00 -0700 -0700"),
            (layout::KITCHEN, "3:04PM", "0000-01-01 15:04:00 +0000 UTC"),
            (layout::ANSIC, "Mon Aug  4 12:00:00 2023", "2023-08-04 12:00:00 +0000 UTC"),
            ("2006-002", "2024-060", "2024-02-29 00:00:00 +0000 UTC"),
            ("Jan 2 2006", "aug 9 1999", "1999-08-09 00:00:00 +0000 UTC"),
            ("06", "70", "1970-01-01 00:00:00 +0000 UTC"),
        ] {
            assert_eq!(shown(layout, value), want, "{value}");
        }
    }

    #[test]
    fn misfits() {
        for (layout, value) in [
            (layout::DATE_ONLY, "2023-02-29"),
            (layout::DATE_ONLY, "2023-13-01"),
            (layout::DATE_ONLY, "2023-1-01"),
            (layout::DATE_ONLY, "2023-01-01x"),
            (layout::DATE_ONLY, ""),
            (layout::DATE_TIME, "2023-01-01 24:00:00"),
            ("15:04", "ab:cd"),
            ("MST", "mst"),
        ] {
            assert!(parse(layout, value).is_err(), "{value}");
        }
    }

    #[test]
    fn zones_given_by_the_caller() {
        let zurich = Zone::load("Europe/Zurich").unwrap();
        let time = parse_in(layout::DATE_TIME, "2023-08-14 00:00:00", &zurich).unwrap();
        assert_eq!(time.to_string(), "2023-08-14 00:00:00 +0200 CEST");
        let time = parse_in("2006 -0700", "2023 +0100", &zurich).unwrap();
        assert_eq!(time.abbreviation(), "CET");
    }
}
