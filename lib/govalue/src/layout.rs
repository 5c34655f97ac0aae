//! Go's time layouts, which show how the reference time
//! `Mon Jan 2 15:04:05 MST 2006` would be written.

mod parse;
mod tokens;

pub use parse::{ParseTimeError, parse, parse_in};

use crate::Time;
use crate::time::{MONTHS, WEEKDAYS};
use tokens::{Offset, Token, tokens};

/// `Mon Jan _2 15:04:05 2006`
pub const ANSIC: &str = "Mon Jan _2 15:04:05 2006";
/// `Mon Jan _2 15:04:05 MST 2006`
pub const UNIX_DATE: &str = "Mon Jan _2 15:04:05 MST 2006";
/// `Mon Jan 02 15:04:05 -0700 2006`
pub const RUBY_DATE: &str = "Mon Jan 02 15:04:05 -0700 2006";
/// `02 Jan 06 15:04 MST`
pub const RFC822: &str = "02 Jan 06 15:04 MST";
/// `02 Jan 06 15:04 -0700`
pub const RFC822Z: &str = "02 Jan 06 15:04 -0700";
/// `Monday, 02-Jan-06 15:04:05 MST`
pub const RFC850: &str = "Monday, 02-Jan-06 15:04:05 MST";
/// `Mon, 02 Jan 2006 15:04:05 MST`
pub const RFC1123: &str = "Mon, 02 Jan 2006 15:04:05 MST";
/// `Mon, 02 Jan 2006 15:04:05 -0700`
pub const RFC1123Z: &str = "Mon, 02 Jan 2006 15:04:05 -0700";
/// `2006-01-02T15:04:05Z07:00`
pub const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
/// `2006-01-02T15:04:05.999999999Z07:00`
pub const RFC3339_NANO: &str = "2006-01-02T15:04:05.999999999Z07:00";
/// `3:04PM`
pub const KITCHEN: &str = "3:04PM";
/// `2006-01-02`
pub const DATE_ONLY: &str = "2006-01-02";
/// `2006-01-02 15:04:05`
pub const DATE_TIME: &str = "2006-01-02 15:04:05";

/// Writes a time by a layout.
pub fn format(time: &Time, layout: &str) -> String {
    let (year, month, day) = time.date();
    let (hour, minute, second) = time.clock();
    let month_name = MONTHS[(month.0 - 1) as usize];
    let weekday = WEEKDAYS[time.weekday().0 as usize];
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let mut out = String::with_capacity(layout.len() + 8);
    for token in tokens(layout) {
        match token {
            Token::Literal(text) => out.push_str(text),
            Token::LongMonth => out.push_str(month_name),
            Token::Month => out.push_str(&month_name[..3]),
            Token::NumMonth => out.push_str(&month.0.to_string()),
            Token::ZeroMonth => pad(&mut out, month.0, 2, '0'),
            Token::LongWeekday => out.push_str(weekday),
            Token::Weekday => out.push_str(&weekday[..3]),
            Token::Day => out.push_str(&day.to_string()),
            Token::UnderDay => pad(&mut out, day, 2, ' '),
            Token::ZeroDay => pad(&mut out, day, 2, '0'),
            Token::UnderYearDay => pad(&mut out, time.year_day(), 3, ' '),
            Token::ZeroYearDay => pad(&mut out, time.year_day(), 3, '0'),
            Token::Hour => pad(&mut out, hour, 2, '0'),
            Token::Hour12 => out.push_str(&twelve.to_string()),
            Token::ZeroHour12 => pad(&mut out, twelve, 2, '0'),
            Token::Minute => out.push_str(&minute.to_string()),
            Token::ZeroMinute => pad(&mut out, minute, 2, '0'),
            Token::Second => out.push_str(&second.to_string()),
            Token::ZeroSecond => pad(&mut out, second, 2, '0'),
            Token::LongYear => {
                if year < 0 {
                    out.push('-');
                }
                pad(&mut out, year.abs(), 4, '0');
            }
            Token::Year => pad(&mut out, year.rem_euclid(100), 2, '0'),
            Token::UpperHalf => out.push_str(if hour >= 12 { "PM" } else { "AM" }),
            Token::LowerHalf => out.push_str(if hour >= 12 { "pm" } else { "am" }),
            Token::Zone => zone(&mut out, time),
            Token::Offset(offset) => write_offset(&mut out, time.offset(), offset),
            Token::Fraction { digits, nines, comma } => {
                fraction(&mut out, time.nanosecond(), digits, nines, comma);
            }
        }
    }
    out
}

fn pad(out: &mut String, value: i64, width: usize, fill: char) {
    let digits = value.to_string();
    out.extend(std::iter::repeat_n(fill, width.saturating_sub(digits.len())));
    out.push_str(&digits);
}

/// The abbreviation, or the offset for a zone that has none.
fn zone(out: &mut String, time: &Time) {
    let name = time.abbreviation();
    if !name.is_empty() {
        return out.push_str(&name);
    }
    let minutes = time.offset() / 60;
    out.push(if minutes < 0 { '-' } else { '+' });
    pad(out, i64::from(minutes.abs() / 60), 2, '0');
    pad(out, i64::from(minutes.abs() % 60), 2, '0');
}

fn write_offset(out: &mut String, seconds: i32, offset: Offset) {
    if offset.zulu && seconds == 0 {
        return out.push('Z');
    }
    out.push(if seconds < 0 { '-' } else { '+' });
    let seconds = i64::from(seconds.abs());
    let colon = if offset.colon { ":" } else { "" };
    pad(out, seconds / 3600, 2, '0');
    if offset.parts > 1 {
        out.push_str(colon);
        pad(out, seconds / 60 % 60, 2, '0');
    }
    if offset.parts > 2 {
        out.push_str(colon);
        pad(out, seconds % 60, 2, '0');
    }
}

fn fraction(out: &mut String, nanos: i64, digits: usize, nines: bool, comma: bool) {
    let all = format!("{nanos:09}");
    let mut shown = all.get(..digits.min(9)).unwrap_or(&all);
    if nines {
        shown = shown.trim_end_matches('0');
        if shown.is_empty() {
            return;
        }
    }
    out.push(if comma { ',' } else { '.' });
    out.push_str(shown);
}

#[cfg(test)]
mod tests {
    use crate::{Time, Zone};

    #[test]
    fn every_element() {
        let time =
            Time::from_date(2009, 2, 4, 21, 0, 57, 12_345_600, Zone::fixed("PST", -8 * 3600));
        for (layout, want) in [
            (super::ANSIC, "Wed Feb  4 21:00:57 2009"),
            (super::UNIX_DATE, "Wed Feb  4 21:00:57 PST 2009"),
            (super::RUBY_DATE, "Wed Feb 04 21:00:57 -0800 2009"),
            (super::RFC822, "04 Feb 09 21:00 PST"),
            (super::RFC850, "Wednesday, 04-Feb-09 21:00:57 PST"),
            (super::RFC3339, "2009-02-04T21:00:57-08:00"),
            (super::RFC3339_NANO, "2009-02-04T21:00:57.0123456-08:00"),
            (super::KITCHEN, "9:00PM"),
            ("3:4:5pm", "9:0:57pm"),
            (
                "January 2 2006, 15h .000 ,999999 002 __2",
                "February 4 2009, 21h .012 ,012345 035  35",
            ),
            ("Month Janet Sunday 1/2/06", "Month Janet Sunday 2/4/09"),
            ("Z07 Z0700 -07:00:00", "-08 -0800 -08:00:00"),
            ("_2006", "_2009"),
        ] {
            assert_eq!(time.format(layout), want, "{layout}");
        }
        assert_eq!(Time::zero().format("Z07:00 05.999"), "Z 00");
        let unnamed = Time::from_unix(0, 0, Zone::fixed("", 3600));
        assert_eq!(unnamed.to_string(), "1970-01-01 01:00:00 +0100 +0100");
    }
}
