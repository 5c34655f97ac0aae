//! Whether a text is JSON, to the letter.

/// Whether the text is one JSON value with nothing but blanks around it.
pub(crate) fn is_valid(json: &str) -> bool {
    Checker { bytes: json.as_bytes(), at: 0 }.document().is_some()
}

struct Checker<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Checker<'_> {
    /// Goes through the text with the open brackets on a stack of its own, so
    /// that no nesting is too deep.
    fn document(&mut self) -> Option<()> {
        let mut open = Vec::new();
        loop {
            // Here a value must begin, or an empty container end.
            self.blanks();
            match self.next()? {
                b'{' => {
                    self.blanks();
                    if self.take(b'}') {
                        // An empty object is a whole value.
                    } else {
                        self.key()?;
                        open.push(b'}');
                        continue;
                    }
                }
                b'[' => {
                    self.blanks();
                    if !self.take(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                first @ (b'-' | b'0'..=b'9') => self.number(first)?,
                _ => return None,
            }
            // Here a value has ended: close what ends with it.
            loop {
                self.blanks();
                let Some(close) = open.last() else {
                    return (self.at == self.bytes.len()).then_some(());
                };
                let next = self.next()?;
                if next == *close {
                    open.pop();
                } else if next != b',' {
                    return None;
                } else {
                    if *close == b'}' {
                        self.blanks();
                        self.key()?;
                    }
                    break;
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, rest: &[u8]) -> Option<()> {
        let found = self.bytes[self.at..].starts_with(rest);
        self.at += rest.len();
        found.then_some(())
    }

    fn key(&mut self) -> Option<()> {
        (self.next()? == b'"').then_some(())?;
        self.string()?;
        self.blanks();
        self.take(b':').then_some(())
    }

    /// A string after its first quote.
    fn string(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                0..b' ' => return None,
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        for _ in 0..4 {
                            self.next()?.is_ascii_hexdigit().then_some(())?;
                        }
                    }
                    _ => return None,
                },
                _ => {}
            }
        }
    }

    /// A number after its first character.
    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.next()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.take(b'.') {
            self.next()?.is_ascii_digit().then_some(())?;
            self.digits();
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.next()?.is_ascii_digit().then_some(())?;
            self.digits();
        }
        Some(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid() {
        for json in [
            "0",
            " -1.5e+10 ",
            r#""a\u00e9\n""#,
            "[]",
            "{}",
            "[1, [2], {}]",
            r#"{"a" : {"b":[true,false,null]} , "c":""}"#,
        ] {
            assert!(is_valid(json), "{json}");
        }
        assert!(is_valid(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))));
    }

    #[test]
    fn invalid() {
        for json in [
            "",
            " ",
            "01",
            "1.",
            "1e",
            "-",
            "+1",
            "tru",
            "truex",
            "nan",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "[{}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "{a:1}",
            "1 2",
            "\"a",
            "\"\\q\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "]",
        ] {
            assert!(!is_valid(json), "{json}");
        }
    }
}
