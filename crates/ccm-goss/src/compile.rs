//! Compiles rules to entries that can run, and reports all errors with their
//! location.

use std::net::{IpAddr, SocketAddr};

use ccm_host::Transport;
use ccm_model::{Finding, did_you_mean};
use ccm_yaml::Span;
use govalue::Value;

use crate::kinds::{self, Attribute, Id, KINDS, RuleKind, SettingType, ValueType};
use crate::matcher::{self, Matcher};
use crate::probe::dns::RecordType;
use crate::probe::http::METHODS;
use crate::probe::kernel_tables::Protocol;
use crate::tree::{Item, Key, Tree, to_json};

/// One entry of the rules: a thing, and what is expected of it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: &'static RuleKind,
    /// The thing, as its kind names it.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) is_skipped: bool,
    pub(crate) settings: Settings,
    pub(crate) tests: Vec<Test>,
}

/// One expectation.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) attribute: &'static Attribute,
    pub(crate) matcher: Matcher,
    /// What was written, for people.
    pub(crate) expected: serde_json::Value,
}

/// How to ask, as far as it was said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(Vec<(&'static str, Value)>);

impl Settings {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let items = self.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str)
    }
}

/// What is wrong with rules.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    findings: Vec<Finding>,
    /// Whether a test that can never hold is one of them. It is where rules are
    /// read with their manifest; a value that a placeholder gave fails its test.
    is_strict: bool,
}

impl Problems {
    pub(crate) fn strict(is_strict: bool) -> Self {
        Self { findings: Vec::new(), is_strict }
    }

    pub(crate) fn add(&mut self, span: Span, message: impl Into<String>) {
        self.findings.push(Finding::error(span, message));
    }

    /// Whether a test that can never hold is wrong.
    pub(crate) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Something because of which a test fails, whatever the machine says.
    pub(crate) fn add_failing(&mut self, span: Span, message: impl Into<String>) {
        if self.is_strict {
            self.add(span, message);
        }
    }

    pub(crate) fn add_with_hint(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.unknown(span, message.into(), Some(hint.into()));
    }

    pub(crate) fn unknown(&mut self, span: Span, message: String, hint: Option<String>) {
        self.findings.push(Finding::error(span, message).hint(hint));
    }

    pub(crate) fn count(&self) -> usize {
        self.findings.len()
    }

    /// Says where in the rules the problems since then are.
    pub(crate) fn prefix(&mut self, since: usize, place: &str) {
        for finding in &mut self.findings[since..] {
            finding.message = format!("{place}: {}", finding.message);
        }
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

/// Reads all entries. What a placeholder decides is left open.
pub(crate) fn compile(tree: &Tree, problems: &mut Problems) -> Vec<Entry> {
    let mut entries = Vec::new();
    let Item::Map(kinds) = &tree.item else {
        if !matches!(tree.item, Item::Open(_)) {
            problems.add(tree.span, format!("expected a map of rules, found {}", tree.describe()));
        }
        return entries;
    };
    let mut is_open = false;
    for (key, things) in kinds {
        if key.is_open || matches!(things.item, Item::Open(_)) {
            is_open = true;
            continue;
        }
        let known = problems.count();
        match kinds::find(&key.text) {
            Some(kind) => is_open |= compile_kind(kind, things, problems, &mut entries),
            None => unknown_kind(key, problems),
        }
        if kinds::find(&key.text).is_some() {
            problems.prefix(known, &key.text);
        }
    }
    let is_empty = entries.iter().all(|entry| entry.tests.is_empty());
    if is_empty && !is_open && problems.count() == 0 {
        problems.add(tree.span, "there is no test in these rules");
    }
    entries
}

fn unknown_kind(key: &Key, problems: &mut Problems) {
    if key.text == "gossfile" {
        return problems.add_with_hint(
            key.span,
            "`gossfile` is not supported",
            "put shared rules into a template, and use it as `goss_rules`",
        );
    }
    let hint = did_you_mean(&key.text, KINDS.iter().map(|kind| kind.name));
    problems.unknown(key.span, format!("unknown kind `{}`", key.text), hint);
}

/// Reads the entries of a kind; whether a placeholder decides about one.
fn compile_kind(
    kind: &'static RuleKind,
    things: &Tree,
    problems: &mut Problems,
    entries: &mut Vec<Entry>,
) -> bool {
    let Item::Map(things_by_name) = &things.item else {
        // A kind without entries is as good as none.
        if !things.is_null() {
            let found = things.describe();
            problems.add(things.span, format!("expected a map of names to tests, found {found}"));
        }
        return false;
    };
    let mut is_open = false;
    for (key, thing) in things_by_name {
        if matches!(thing.item, Item::Open(_)) {
            is_open = true;
            continue;
        }
        let known = problems.count();
        let mut reading = EntryReading {
            kind,
            key,
            is_open: false,
            subject: None,
            settings: Settings::default(),
            tests: Vec::new(),
            given: Vec::new(),
            has_unknown: false,
            problems,
        };
        if let Some(entry) = reading.entry(thing) {
            entries.push(entry);
        }
        is_open |= reading.is_open;
        problems.prefix(known, &ccm_model::redact_credentials(&key.text));
    }
    is_open
}

struct EntryReading<'a> {
    kind: &'static RuleKind,
    key: &'a Key,
    /// Whether a placeholder decides about a part.
    is_open: bool,
    subject: Option<(String, Span)>,
    settings: Settings,
    tests: Vec<Test>,
    given: Vec<(&'static str, Span)>,
    /// Whether the entry has an unknown attribute.
    has_unknown: bool,
    problems: &'a mut Problems,
}

impl EntryReading<'_> {
    fn entry(&mut self, thing: &Tree) -> Option<Entry> {
        let Item::Map(attributes) = &thing.item else {
            let found = thing.describe();
            self.problems.add(thing.span, format!("expected a map of attributes, found {found}"));
            return None;
        };
        self.is_open = attributes.iter().any(|(key, _)| key.is_open);
        // How to ask comes before what is expected, wherever it is written.
        let is_test = |key: &Key| self.kind.test(&key.text).is_some();
        let (tests, others): (Vec<_>, Vec<_>) =
            attributes.iter().filter(|(key, _)| !key.is_open).partition(|(key, _)| is_test(key));
        for (key, value) in others.into_iter().chain(tests) {
            let known = self.problems.count();
            if self.attribute(key, value) {
                self.problems.prefix(known, &key.text);
            }
        }
        self.check_tests(thing);
        let name = match self.subject.take() {
            Some((name, span)) => Some((name, span)),
            None if self.key.is_open => None,
            None => Some((self.key.text.clone(), self.key.span)),
        };
        if let Some((name, span)) = &name {
            self.check_subject(name, *span);
        }
        // The first test decides about the others, wherever it is written.
        if self.kind.has_first {
            let first = self.kind.tests[0].name;
            self.tests.sort_by_key(|test| test.attribute.name != first);
        }
        Some(Entry {
            kind: self.kind,
            name: name.map(|(name, _)| name).unwrap_or_default(),
            title: self.settings.text("title").map(str::to_owned),
            is_skipped: self.settings.flag("skip"),
            settings: std::mem::take(&mut self.settings),
            tests: std::mem::take(&mut self.tests),
        })
    }

    /// Reads an attribute; whether there is one of that name.
    fn attribute(&mut self, key: &Key, value: &Tree) -> bool {
        let name = key.text.as_str();
        if let Some(attribute) = self.kind.test(name) {
            self.test(attribute, key, value);
        } else if let Some(setting) = self.kind.setting(name) {
            self.given.push((setting.name, value.span));
            self.setting(setting.name, setting.value, value);
        } else if self.kind.subject == Some(name) {
            self.subject(value);
        } else {
            let message = format!("unknown attribute `{name}`");
            let hint = match (self.kind.id, name) {
                (Id::Service, "runlevels") => {
                    Some("use `enabled`: systemd has no runlevels".into())
                }
                _ => did_you_mean(name, self.kind.names()),
            };
            self.problems.unknown(key.span, message, hint);
            self.has_unknown = true;
            return false;
        }
        true
    }

    fn test(&mut self, attribute: &'static Attribute, key: &Key, value: &Tree) {
        if value.is_null() {
            return;
        }
        if self.given.iter().any(|(name, _)| *name == attribute.name) {
            let message = format!("is the same as `{}`; set only one of them", attribute.name);
            return self.problems.add(key.span, message);
        }
        self.given.push((attribute.name, value.span));
        let mut kind = attribute.value;
        if self.kind.id == Id::Matching && self.settings.flag("as-reader") {
            kind = ValueType::Lines;
        }
        // An empty list of patterns asks nothing.
        let is_empty = matches!(&value.item, Item::List(items) if items.is_empty());
        if is_empty && kind == ValueType::Lines && self.kind.id != Id::Matching {
            return;
        }
        let matcher = match &value.item {
            // Permissions are octal digits, with or without quotes.
            Item::Scalar { written, value } if attribute.name == "mode" && value.is_number() => {
                Matcher::Text(written.clone())
            }
            _ => matcher::read(value, kind, self.problems),
        };
        self.tests.push(Test { attribute, matcher, expected: to_json(&value.value()) });
    }

    fn setting(&mut self, name: &'static str, wanted: SettingType, tree: &Tree) {
        let value = match &tree.item {
            Item::Open(_) => {
                self.is_open = true;
                return;
            }
            Item::Scalar { value: Value::Nil, .. } if wanted != SettingType::Any => return,
            // One item is enough for the others not to be known by number.
            Item::List(items) if items.iter().any(|item| matches!(item.item, Item::Open(_))) => {
                return;
            }
            _ => tree.value(),
        };
        let wrong = |what: &str| Err(format!("expected {what}, found {}", tree.describe()));
        let checked = match (wanted, &tree.item) {
            (SettingType::Any, _)
            | (SettingType::Boolean, Item::Scalar { value: Value::Bool(_), .. }) => Ok(value),
            (SettingType::Text, Item::Scalar { written, .. }) => Ok(written.as_str().into()),
            (SettingType::Milliseconds(_), Item::Scalar { value: Value::Int(count), .. }) => {
                // A day is for ever, where someone waits for it.
                if (1..=86_400_000).contains(count) {
                    Ok(value)
                } else {
                    Err("must be from 1 to 86400000 milliseconds".to_owned())
                }
            }
            (SettingType::Texts, Item::List(items)) => {
                let text = |item: &Tree| match &item.item {
                    Item::Scalar { written, .. } => Some(Value::from(written.as_str())),
                    _ => None,
                };
                let texts: Option<Vec<Value>> = items.iter().map(text).collect();
                texts.map(Value::array).map_or_else(|| wrong("a list of strings"), Ok)
            }
            (SettingType::Boolean, _) => wrong("`true` or `false`"),
            (SettingType::Text, _) => wrong("a string"),
            (SettingType::Milliseconds(_), _) => wrong("a number of milliseconds"),
            (SettingType::Texts, _) => wrong("a list of strings"),
        };
        match checked.and_then(|value| check_setting(name, &value).map(|()| value)) {
            Ok(value) => self.settings.0.push((name, value)),
            Err(message) => self.problems.add(tree.span, message),
        }
    }

    fn subject(&mut self, tree: &Tree) {
        match &tree.item {
            Item::Open(_) => self.is_open = true,
            Item::Scalar { value: Value::Nil, .. } => {}
            Item::Scalar { written, .. } => self.subject = Some((written.clone(), tree.span)),
            _ => {
                let found = tree.describe();
                self.problems.add(tree.span, format!("expected a string, found {found}"));
            }
        }
    }

    fn check_tests(&mut self, thing: &Tree) {
        let is_given = |name: &str| self.given.iter().any(|(given, _)| *given == name);
        // A placeholder or a slip among the names may be the one that is missing.
        if self.is_open || self.has_unknown {
            return;
        }
        if self.kind.has_first {
            let first = self.kind.tests[0].name;
            if !is_given(first) {
                let message = format!("`{first}` is required");
                self.problems.add(thing.span, message);
            }
        } else if !self.kind.tests.iter().any(|test| is_given(test.name)) {
            let names: Vec<_> =
                self.kind.tests.iter().map(|test| format!("`{}`", test.name)).collect();
            self.problems.add(thing.span, format!("{} is required", names.join(" or ")));
        }
        if self.kind.id == Id::Matching && !is_given("content") {
            self.problems.add(thing.span, "`content` is required");
        }
    }

    /// Checks the name of a thing, once everything else is known.
    fn check_subject(&mut self, name: &str, span: Span) {
        let checked = match self.kind.id {
            _ if name.is_empty() && self.kind.subject.is_some() => {
                Err("the name is empty".to_owned())
            }
            Id::Port => port(name).map(drop),
            Id::Addr => address(name).map(drop),
            Id::Dns => {
                let has_server = self.given.iter().any(|(given, _)| *given == "server");
                match question(name) {
                    (Some(_), host) if !has_server && !self.is_open => {
                        Err(format!("a record of {host} is asked of a `server`, which is missing"))
                    }
                    _ => Ok(()),
                }
            }
            Id::Http if name.starts_with("http://") || name.starts_with("https://") => Ok(()),
            Id::Http => Err("expected a URL with `http://` or `https://`".to_owned()),
            Id::KernelParam => kernel_param(name).map(drop),
            _ => Ok(()),
        };
        if let Err(message) = checked {
            self.problems.add(span, message);
        }
        let has = |name: &str| self.settings.get(name).is_some();
        if self.kind.id == Id::Http && has("cert-file") != has("key-file") && !self.is_open {
            self.problems.add(span, "`cert-file` and `key-file` belong together");
        }
    }
}

fn check_setting(name: &str, value: &Value) -> Result<(), String> {
    let text = value.as_str().unwrap_or_default();
    match name {
        "method" if !METHODS.contains(&text.to_ascii_uppercase().as_str()) => {
            Err(format!("unknown method `{text}`: allowed: {}", METHODS.join(", ")))
        }
        "local-address" if text.parse::<IpAddr>().is_err() => {
            Err(format!("`{text}` is not an IP address"))
        }
        "server" => server(text).map(drop),
        "request-headers" => {
            let items = value.as_array().unwrap_or_default();
            // The value may be a secret.
            let is_header = |item: &Value| item.as_str().is_some_and(|line| header(line).is_some());
            match items.iter().position(|item| !is_header(item)) {
                Some(at) => Err(format!("header number {} is not `Name: value`", at + 1)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// A line such as `Accept: text/html`.
pub(crate) fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    (is_name && !value.contains(['\r', '\n'])).then(|| (name, value.trim()))
}

/// `tcp:80` and the like.
pub(crate) fn port(name: &str) -> Result<(Protocol, u16), String> {
    let (prefix, number) = name.split_once(':').unwrap_or(("tcp", name));
    let protocol = match prefix {
        "tcp" => Protocol::Tcp,
        "tcp6" => Protocol::Tcp6,
        "udp" => Protocol::Udp,
        "udp6" => Protocol::Udp6,
        other => {
            return Err(format!("unknown protocol `{other}`: it is tcp, tcp6, udp or udp6"));
        }
    };
    match number.parse() {
        Ok(number @ 1..) => Ok((protocol, number)),
        _ => Err(format!("`{number}` is not a port: it is a number from 1 to 65535")),
    }
}

/// `tcp://host:80` and the like.
pub(crate) fn address(name: &str) -> Result<(Transport, &str, u16), String> {
    let wrong = || "expected `tcp://HOST:PORT` or `udp://HOST:PORT`".to_owned();
    let (scheme, rest) = name.split_once("://").ok_or_else(wrong)?;
    let transport = match scheme {
        "tcp" => Transport::Tcp,
        "udp" => Transport::Udp,
        _ => return Err(wrong()),
    };
    let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    if host.is_empty() { Err(wrong()) } else { Ok((transport, host, port)) }
}

/// `MX:example.com`, or a plain name.
pub(crate) fn question(name: &str) -> (Option<RecordType>, &str) {
    let typed = name.split_once(':').and_then(|(prefix, rest)| {
        let kind = RecordType::from_name(prefix)?;
        Some((kind, rest))
    });
    match typed {
        Some((kind, rest)) => (Some(kind), rest),
        None => (None, name),
    }
}

/// A server by its address, at port 53 unless it says otherwise.
pub(crate) fn server(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let ip = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.map(|ip| SocketAddr::new(ip, 53))
        .map_err(|_| format!("`{text}` is not an IP address, with or without a port"))
}

/// The path of a kernel parameter below `/proc/sys`: a dot is a slash, and a
/// slash is a dot, as in the name of an interface.
pub(crate) fn kernel_param(name: &str) -> Result<String, String> {
    let path: String = name
        .chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        })
        .collect();
    let is_path = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_path && !path.contains('\0') {
        Ok(path)
    } else {
        Err(format!("`{name}` is not the name of a kernel parameter"))
    }
}
