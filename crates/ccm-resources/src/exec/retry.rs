//! Tries a command until it succeeds.

use std::time::Duration;

use ccm_engine::{Error, Findings, Result};
use ccm_host::{Exit, Host, Output};
use ccm_model::duration;
use serde::{Deserialize, Serialize};

use super::Properties;

/// How long to wait between two tries by default.
pub(super) const SLEEP: Duration = Duration::from_secs(1);
const MOST_TRIES: i32 = 100;
const LONGEST_SLEEP: Duration = Duration::from_hours(1);
/// A resource that may take longer than this is worth a warning.
const LONG: Duration = Duration::from_hours(1);
/// How many lines of standard error a failure carries.
const LAST_LINES: usize = 10;

/// How often to try, and what success is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retry {
    /// For messages.
    pub(super) resource: String,
    pub(super) tries: u32,
    pub(super) sleep: Duration,
    pub(super) returns: Vec<i32>,
    pub(super) creates: Option<String>,
}

/// The last try of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) end: End,
    pub(super) last_words: String,
    /// The number of this try.
    pub(super) tries: u32,
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(Exit),
    Timeout(Duration),
}

impl Retry {
    /// Runs a command until it succeeds or no try is left.
    pub(super) fn run(
        &self,
        host: &Host,
        run: impl Fn(&mut dyn FnMut(&str)) -> Result<Output>,
        show: &mut dyn FnMut(&str),
    ) -> Result<Attempt> {
        let mut tries = 1;
        loop {
            let (end, last_words) = match run(show) {
                Ok(output) => (End::Exit(output.exit), output.stderr_tail(LAST_LINES)),
                // Without further tries, the error says it all.
                Err(Error::Host(ccm_host::Error::Timeout { after, .. })) if self.tries > 1 => {
                    (End::Timeout(after), String::new())
                }
                Err(error) => return Err(error),
            };
            let attempt = Attempt { end, last_words, tries };
            if tries >= self.tries || self.accepts(end) || self.is_created(host) {
                return Ok(attempt);
            }
            let line = format!(
                "{}: try {tries} of {} {}, next in {:?}",
                self.resource,
                self.tries,
                attempt.ending(),
                self.sleep
            );
            tracing::info!("{}", host.redactor().text(&line));
            host.cancel().pause(self.sleep);
            if host.cancel().is_cancelled() {
                return Ok(attempt);
            }
            tries += 1;
        }
    }

    fn accepts(&self, end: End) -> bool {
        match end {
            End::Exit(Exit::Code(code)) if self.returns.is_empty() => code == 0,
            End::Exit(Exit::Code(code)) => self.returns.contains(&code),
            End::Exit(Exit::Signal(_)) | End::Timeout(_) => false,
        }
    }

    fn is_created(&self, host: &Host) -> bool {
        self.creates.as_ref().is_some_and(|path| host.exists(path.as_ref()).is_ok_and(|is| is))
    }
}

impl Attempt {
    /// The exit code, if there is one.
    pub(super) fn code(&self) -> Option<i32> {
        match self.end {
            End::Exit(Exit::Code(code)) => Some(code),
            End::Exit(Exit::Signal(_)) | End::Timeout(_) => None,
        }
    }

    fn ending(&self) -> String {
        match self.end {
            End::Exit(exit) => exit.to_string(),
            End::Timeout(after) => format!("exceeded its timeout of {after:?}"),
        }
    }

    /// Why it is a failure, if it is one.
    pub(super) fn problem(&self, retry: &Retry, command: &str) -> Option<String> {
        if retry.accepts(self.end) {
            return None;
        }
        let ending = self.ending();
        let reason = match self.end {
            _ if retry.tries > 1 => {
                let plural = if self.tries == 1 { "try" } else { "tries" };
                format!("`{command}` {ending} after {} {plural}", self.tries)
            }
            End::Exit(Exit::Code(_)) => {
                let accepted = if retry.returns.is_empty() { &[0] } else { &retry.returns[..] };
                let accepted: Vec<String> = accepted.iter().map(ToString::to_string).collect();
                format!("the command {ending}, not {}", accepted.join(" or "))
            }
            End::Exit(Exit::Signal(_)) | End::Timeout(_) => format!("the command {ending}"),
        };
        Some(match self.last_words.as_str() {
            "" => reason,
            words => format!("{reason}\n{words}"),
        })
    }
}

pub(super) fn validate(want: &Properties, findings: &mut Findings) {
    let tries = want.tries.unwrap_or(1);
    if !(1..=MOST_TRIES).contains(&tries) {
        findings.add("tries", format!("tries must be from 1 to {MOST_TRIES}, not {tries}"));
        return;
    }
    let mut sleep = SLEEP;
    if let Some(text) = &want.try_sleep {
        match duration::parse_positive(text) {
            Err(error) => findings.add("try_sleep", error.to_string()),
            Ok(time) if time > LONGEST_SLEEP => {
                findings.add("try_sleep", format!("`{text}` is longer than an hour"));
            }
            Ok(_) if tries == 1 => {
                let message = "try_sleep has no effect without `tries` above 1";
                findings.add_with_hint("try_sleep", message, "set `tries`, or omit `try_sleep`");
            }
            Ok(time) => sleep = time,
        }
    }
    let timeout = want.timeout.as_deref().and_then(|text| duration::parse_positive(text).ok());
    let each = timeout.unwrap_or_default().saturating_add(sleep);
    if tries > 1 && each.saturating_mul(tries.unsigned_abs()) > LONG {
        findings.warn(
            "tries",
            format!("{tries} tries may take more than an hour"),
            "set a smaller `tries`, `timeout` or `try_sleep`",
        );
    }
}
