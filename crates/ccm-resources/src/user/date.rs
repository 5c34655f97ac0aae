//! Dates on which accounts expire, as the databases count them: in days.

/// What stands for no date.
pub(super) const NEVER: &str = "never";

/// The day of a date such as `2030-01-31`, counted from 1970. `None` if there is
/// no such date.
pub(super) fn day(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let mut number = |digits: usize| {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse::<i64>().ok() } else { None }
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let is_date = parts.next().is_none() && year >= 1970 && (1..=12).contains(&month);
    if !is_date || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    Some(days_before(year, month) + day - 1)
}

/// The date of a day.
pub(super) fn date(day: i64) -> String {
    let mut year = 1970 + day / 366;
    while days_before(year + 1, 1) <= day {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days_before(year, month + 1) <= day {
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", day - days_before(year, month) + 1)
}

/// The day of an instant in seconds.
pub(super) fn today(seconds: i64) -> i64 {
    seconds.div_euclid(24 * 60 * 60)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// How many days there are from 1970 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    years + (1..month).map(|month| days_in(year, month)).sum::<i64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("1970-01-02", 1),
            ("1972-03-01", 790),
            ("2000-02-29", 11016),
            ("2024-12-31", 20088),
            ("2100-03-01", 47541),
        ] {
            assert_eq!(day(text), Some(number), "{text}");
            assert_eq!(date(number), text);
        }
        for text in
            ["", "never", "2023-02-29", "2023-13-01", "2023-1-1", "1969-12-31", "2023-01-00"]
        {
            assert_eq!(day(text), None, "{text}");
        }
        assert_eq!(day("2023-01-01-01"), None);
        assert_eq!(today(86_399), 0);
        assert_eq!(today(86_400), 1);
    }

    #[test]
    fn every_day_comes_back() {
        for number in 0..60_000 {
            assert_eq!(day(&date(number)), Some(number));
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for number in (0..60_000).step_by(97) {
            let date_of = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(number);
            assert_eq!(date(number), date_of.to_string());
        }
    }
}
