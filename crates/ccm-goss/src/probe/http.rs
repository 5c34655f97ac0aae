//! `http`

use std::path::Path;

use ccm_host::{HttpAnswer, HttpProbe};

use super::{Found, Machine, Probe, bytes, chain, number, unknown, value};
use crate::compile::{Entry, header};

/// More of a body than this is not looked at.
const LARGEST_BODY: u64 = 16 << 20;
/// Certificates and keys are small.
const LARGEST_PEM: u64 = 4 << 20;

pub(super) struct Http<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
    answer: Option<Result<HttpAnswer, String>>,
}

impl<'a> Http<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine, answer: None }
    }

    fn ask(&self) -> Result<HttpAnswer, String> {
        let settings = &self.entry.settings;
        let text = |name: &str| settings.text(name).map(str::to_owned);
        let file = |name: &str| match settings.text(name) {
            Some(path) => {
                let read = self.machine.host.read_bytes(Path::new(path), LARGEST_PEM);
                let (pem, _) = read.map_err(|error| format!("{name}: {}", chain(&error)))?;
                Ok::<_, String>(Some(pem))
            }
            None => Ok(None),
        };
        let user = text("username").or_else(|| text("password").map(|_| String::new()));
        let headers = settings.texts("request-headers").filter_map(header);
        let probe = HttpProbe {
            url: self.entry.name.clone(),
            method: text("method").unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase(),
            timeout: self.machine.time(self.entry.timeout())?,
            allow_insecure: settings.flag("allow-insecure"),
            no_follow_redirects: settings.flag("no-follow-redirects"),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body: text("request-body"),
            user: user.map(|user| (user, text("password").unwrap_or_default())),
            authorities: file("ca-file")?,
            identity: file("cert-file")?.zip(file("key-file")?),
            proxy: text("proxy"),
            limit: LARGEST_BODY,
        };
        self.machine.host.probe_http(&probe)
    }
}

impl Probe for Http<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        if self.answer.is_none() {
            self.answer = Some(self.ask());
        }
        match (&self.answer, attribute) {
            (Some(Err(reason)), _) => Err(reason.clone()),
            (Some(Ok(answer)), "status") => number(answer.status),
            (Some(Ok(answer)), "headers") => value(answer.headers.join("\n")),
            (Some(Ok(answer)), "body") => bytes(answer.body.as_deref().map_err(Clone::clone)?),
            _ => unknown(attribute),
        }
    }
}
