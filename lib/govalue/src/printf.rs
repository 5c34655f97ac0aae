//! Formatting by Go's verbs, as `fmt.Sprintf`.

mod verb;

use crate::Value;
use crate::print::text;
use crate::string::raw_runes;

/// Formats values by a Go format string.
///
/// Nothing fails: what does not fit shows in the result, as in Go.
///
/// ```
/// use govalue::sprintf;
/// assert_eq!(sprintf("%s=%05.1f|%-4d|%x", &["pi".into(), 3.14159.into(), 7.into(), "hi".into()]), "pi=003.1|7   |6869");
/// assert_eq!(sprintf("%d %s", &["x".into()]), "%!d(string=x) %!s(MISSING)");
/// ```
pub fn sprintf(format: &str, values: &[Value]) -> String {
    let mut printer = Printer::new(format, values, &[], usize::MAX);
    printer.run();
    text(printer.out)
}

/// As [`sprintf`], byte for byte, for callers whose values have types of their
/// own and who must bound the result.
///
/// `types` are the names of the values' types where they are not the plain
/// ones. `None` when the result grows beyond `limit` bytes; a single verb is
/// finished first.
///
/// ```
/// use govalue::{Value, sprintf_within};
/// let list = [Value::array(["a".into()])];
/// assert_eq!(sprintf_within("%T", &list, &["[]string"], 100).unwrap(), "[]string");
/// assert_eq!(sprintf_within("%900d", &[1.into()], &[], 100), None);
/// ```
pub fn sprintf_within(
    format: &str,
    values: &[Value],
    types: &[&str],
    limit: usize,
) -> Option<crate::Str> {
    let mut printer = Printer::new(format, values, types, limit);
    printer.run();
    (printer.out.len() <= limit).then(|| crate::Str::from(printer.out))
}

/// Flags, width and precision of one verb.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "these are the five flags of the notation")]
struct Spec {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%#v`: Go syntax.
    syntax: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

struct Printer<'a> {
    format: &'a str,
    values: &'a [Value],
    types: &'a [&'a str],
    limit: usize,
    at: usize,
    next: usize,
    reordered: bool,
    out: Vec<u8>,
}

/// Widths beyond this are errors in Go as well.
const MAX_NUMBER: usize = 1_000_000;

/// The result of reading `[n]`.
#[derive(PartialEq)]
enum Index {
    None,
    Good,
    Bad,
}

impl<'a> Printer<'a> {
    fn new(format: &'a str, values: &'a [Value], types: &'a [&'a str], limit: usize) -> Self {
        Self { format, values, types, limit, at: 0, next: 0, reordered: false, out: Vec::new() }
    }

    fn type_name(&self, index: usize) -> &'a str {
        let plain = self.values.get(index).map_or("<nil>", Value::type_name);
        self.types.get(index).copied().unwrap_or(plain)
    }

    fn run(&mut self) {
        while self.out.len() <= self.limit {
            let rest = &self.format[self.at..];
            let plain = rest.find('%').unwrap_or(rest.len());
            self.out.extend_from_slice(&rest.as_bytes()[..plain]);
            self.at += plain;
            if self.at >= self.format.len() {
                break;
            }
            self.at += 1;
            self.directive();
        }
        if !self.reordered && self.next < self.values.len() {
            self.extra();
        }
    }

    fn extra(&mut self) {
        self.out.extend_from_slice(b"%!(EXTRA ");
        for index in self.next..self.values.len() {
            let value = &self.values[index];
            if index > self.next {
                self.out.extend_from_slice(b", ");
            }
            if self.out.len() > self.limit {
                return;
            }
            self.out.extend_from_slice(self.type_name(index).as_bytes());
            if !value.is_nil() {
                self.out.push(b'=');
                crate::print::print(&mut self.out, value);
            }
        }
        self.out.push(b')');
    }

    fn peek(&self) -> Option<u8> {
        self.format.as_bytes().get(self.at).copied()
    }

    fn directive(&mut self) {
        let mut spec = self.flags();
        let mut index = self.index();
        let mut bad = index == Index::Bad;
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.star() {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.zero &= width >= 0;
                    spec.width = Some(width.unsigned_abs() as usize);
                }
                None => self.out.extend_from_slice(b"%!(BADWIDTH)"),
            }
            index = Index::None;
        } else if let Some(width) = self.number() {
            spec.width = Some(width);
            // An index must come right before the verb.
            bad |= index != Index::None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            bad |= index == Index::Good;
            index = self.index();
            bad |= index == Index::Bad;
            if self.peek() == Some(b'*') {
                self.at += 1;
                match self.star() {
                    Some(precision) if precision >= 0 => spec.precision = Some(precision as usize),
                    Some(_) => {}
                    None => self.out.extend_from_slice(b"%!(BADPREC)"),
                }
                index = Index::None;
            } else {
                spec.precision = Some(self.number().unwrap_or(0));
            }
        }
        if index == Index::None {
            bad |= self.index() == Index::Bad;
        }
        let Some((len, verb)) = raw_runes(&self.format.as_bytes()[self.at..]).next() else {
            self.out.extend_from_slice(b"%!(NOVERB)");
            return;
        };
        self.at += len;
        self.verb(verb.unwrap_or('\u{FFFD}'), spec, bad);
    }

    fn verb(&mut self, verb: char, mut spec: Spec, bad: bool) {
        if verb == '%' {
            self.out.push(b'%');
            return;
        }
        let note = |text: &str| format!("%!{verb}({text})").into_bytes();
        if bad {
            self.out.extend(note("BADINDEX"));
            return;
        }
        let Some(value) = self.values.get(self.next) else {
            self.out.extend(note("MISSING"));
            return;
        };
        let name = self.type_name(self.next);
        self.next += 1;
        if verb == 'v' {
            // `%#v` is Go syntax; `%+v` names the fields of structs, which are
            // not among the values here, and adds no sign.
            spec.syntax = std::mem::take(&mut spec.sharp);
            spec.plus = false;
        }
        verb::write(&mut self.out, value, name, verb, &spec);
    }

    fn flags(&mut self) -> Spec {
        let mut spec = Spec::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'+' => spec.plus = true,
                b'-' => {
                    spec.minus = true;
                    spec.zero = false;
                }
                b'#' => spec.sharp = true,
                b' ' => spec.space = true,
                b'0' => spec.zero = !spec.minus,
                _ => break,
            }
            self.at += 1;
        }
        spec
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.format[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let text = &self.format[self.at..self.at + digits];
        self.at += digits;
        text.parse().ok().filter(|number| *number <= MAX_NUMBER)
    }

    /// `[3]` makes the third value the next one.
    fn index(&mut self) -> Index {
        if self.peek() != Some(b'[') {
            return Index::None;
        }
        self.reordered = true;
        let rest = &self.format[self.at + 1..];
        let Some(end) = rest.find(']') else {
            self.at += 1;
            return Index::Bad;
        };
        self.at += end + 2;
        match rest[..end].parse::<usize>() {
            Ok(number) if (1..=self.values.len()).contains(&number) => {
                self.next = number - 1;
                Index::Good
            }
            _ => Index::Bad,
        }
    }

    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        value.as_int().filter(|number| number.unsigned_abs() as usize <= MAX_NUMBER)
    }
}
