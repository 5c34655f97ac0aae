//! Extracts commands from shell code, for the subset of the shell language that
//! the documentation uses.

/// The commands, word by word, those within `$(…)` too.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let mut reader = Reader { found: Vec::new(), command: Vec::new(), word: None, skip: false };
    reader.read(text);
    reader.end_command();
    reader.found
}

/// The commands that run ccm, with what stands before it taken away.
pub(super) fn of_ccm(text: &str) -> Vec<Vec<String>> {
    let is_prefix =
        |word: &String| matches!(word.as_str(), "sudo" | "if" | "!" | "time") || word.contains('=');
    let ours = commands(text).into_iter().filter_map(|command| {
        let command: Vec<String> = command.into_iter().skip_while(is_prefix).collect();
        (command.first().is_some_and(|word| word == "ccm")).then_some(command)
    });
    ours.collect()
}

struct Reader {
    found: Vec<Vec<String>>,
    command: Vec<String>,
    word: Option<String>,
    /// The next word is where something is read from or written to.
    skip: bool,
}

impl Reader {
    fn read(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let mut taken = c.len_utf8();
            match c {
                '\\' if rest[1..].starts_with('\n') => taken = 2,
                '\\' => {
                    let next = rest[1..].chars().next();
                    self.word().extend(next);
                    taken = 1 + next.map_or(0, char::len_utf8);
                }
                '\'' => {
                    let end = rest[1..].find('\'').expect("a quote that ends");
                    self.word().push_str(&rest[1..=end]);
                    taken = end + 2;
                }
                '"' => taken = self.double_quoted(rest),
                '$' if rest[1..].starts_with('(') => taken = self.substitution(rest),
                '#' if self.word.is_none() => taken = rest.find('\n').unwrap_or(rest.len()),
                '\n' | ';' | '|' | '&' => self.end_command(),
                '<' | '>' => {
                    // `2>` is no word of the command.
                    if self.word.as_ref().is_some_and(|word| word == "2") {
                        self.word = None;
                    }
                    self.end_word();
                    taken = if rest[1..].starts_with("&1") { 3 } else { taken };
                    self.skip = taken == 1;
                }
                c if c.is_whitespace() => self.end_word(),
                c => self.word().push(c),
            }
            rest = &rest[taken..];
        }
    }

    fn double_quoted(&mut self, text: &str) -> usize {
        self.word();
        let mut at = 1;
        loop {
            let c = text[at..].chars().next().expect("a quote that ends");
            match c {
                '"' => return at + 1,
                '\\' => {
                    let next = text[at + 1..].chars().next().expect("something escaped");
                    self.word().push(next);
                    at += 1 + next.len_utf8();
                }
                '$' if text[at + 1..].starts_with('(') => at += self.substitution(&text[at..]),
                c => {
                    self.word().push(c);
                    at += c.len_utf8();
                }
            }
        }
    }

    /// `$(…)`: commands of their own.
    fn substitution(&mut self, text: &str) -> usize {
        let mut depth = 0;
        let end = text
            .char_indices()
            .find_map(|(at, c)| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                (c == ')' && depth == 0).then_some(at)
            })
            .expect("a bracket that closes");
        self.found.extend(commands(&text[2..end]));
        self.word().push_str(&text[..=end]);
        end + 1
    }

    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.skip)
        {
            self.command.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.command.is_empty() {
            self.found.push(std::mem::take(&mut self.command));
        }
    }
}

#[test]
fn commands_are_found_as_a_shell_would() {
    let text = "# a comment\nA=1 ccm apply m.yaml --fact 'a b=c' \\\n  --noop > out 2>&1\n\
                eval \"$(ccm session new)\" && echo '{\"x\": 1}' | ccm ensure api pipe < in\n";
    let of_ccm: Vec<String> = of_ccm(text).iter().map(|words| words.join("_")).collect();
    assert_eq!(
        of_ccm,
        ["ccm_apply_m.yaml_--fact_a b=c_--noop", "ccm_session_new", "ccm_ensure_api_pipe"]
    );
    assert_eq!(commands("a \"b c\"d e\\ f;g").concat(), ["a", "b cd", "e f", "g"]);
}
