//! Health checks: their properties, and the meaning of their results.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{GossRules, did_you_mean, duration, redact_credentials, shellquote};

const NAGIOS: &str = "nagios";
const GOSS: &str = "goss";

/// How long one try of rules may take unless the check says otherwise.
const RULES_TIMEOUT: Duration = Duration::from_mins(1);

/// A command or rules that test whether a resource works.
#[derive(Clone, Debug, Default, ccm_macros::Properties)]
pub struct HealthCheck {
    /// Nagios-compatible command
    #[property(
        required_unless(set = "goss_rules"),
        conflicts("goss_rules"),
        format = Command
    )]
    pub command: Option<String>,
    /// Goss rules, or a placeholder that resolves to such a map
    #[property(template = never)]
    pub goss_rules: Option<GossRules>,
    /// Name of the check; defaults to the base name of the command, or `goss`
    pub name: Option<String>,
    /// Attempts until the check succeeds; defaults to 1
    #[property(format = Count)]
    pub tries: Option<i32>,
    /// Time between attempts; defaults to `1s`
    #[property(format = Duration)]
    pub try_sleep: Option<String>,
    /// Timeout of one attempt; defaults to `1m` for rules, none for commands
    #[property(format = Duration)]
    pub timeout: Option<String>,
    /// Format of the result: `nagios` for a command, `goss` for rules
    #[property(format = OneOf(&["nagios", "goss"]))]
    pub format: Option<String>,
}

impl HealthCheck {
    /// The command, word by word.
    pub fn words(&self) -> Result<Vec<String>, shellquote::QuoteError> {
        shellquote::split(self.command.as_deref().unwrap_or_default())
    }

    /// Its display name. A command that is a URL by mistake, or holds one,
    /// gives away no credentials.
    pub fn name(&self) -> Cow<'_, str> {
        let given = self.name.as_deref().filter(|name| !name.is_empty());
        redact_credentials(given.unwrap_or_else(|| {
            if self.goss_rules.is_some() {
                return GOSS;
            }
            let command = self.command.as_deref().unwrap_or_default();
            let program = command.split_whitespace().next().unwrap_or_default();
            program.rsplit('/').next().unwrap_or_default()
        }))
    }

    /// The number of attempts.
    pub fn tries(&self) -> u32 {
        self.tries.and_then(|tries| tries.try_into().ok()).unwrap_or(1)
    }

    /// The time between attempts.
    pub fn try_sleep(&self) -> Duration {
        let given = self.try_sleep.as_deref().and_then(|text| duration::parse_positive(text).ok());
        given.unwrap_or(Duration::from_secs(1))
    }

    /// The timeout of one attempt.
    pub fn timeout(&self) -> Option<Duration> {
        let timeout = self.timeout.as_deref()?;
        duration::parse_positive(timeout).ok().filter(|timeout| !timeout.is_zero())
    }

    /// The timeout of one attempt of rules.
    pub fn rules_timeout(&self) -> Duration {
        self.timeout().unwrap_or(RULES_TIMEOUT)
    }

    /// Everything that is wrong with it, each with what helps where something
    /// does. The rules themselves are checked by whoever evaluates them.
    pub fn problems(&self) -> Vec<(String, Option<String>)> {
        let mut problems = Vec::new();
        let mut add = |message: String| problems.push((message, None));
        match &self.command {
            None if self.goss_rules.is_some() => {}
            None => add("a check needs a `command` or `goss_rules`".to_owned()),
            Some(_) if self.goss_rules.is_some() => {
                add("`command` and `goss_rules` cannot both be set".to_owned());
            }
            Some(command) if command.trim().is_empty() => add("command: is empty".to_owned()),
            Some(_) => {
                if let Err(error) = self.words() {
                    add(format!("command: {error}"));
                }
            }
        }
        if let Some(tries @ ..1) = self.tries {
            add(format!("tries: must be at least 1, not {tries}"));
        }
        for (name, text) in [("try_sleep", &self.try_sleep), ("timeout", &self.timeout)] {
            if let Some(Err(error)) = text.as_deref().map(duration::parse_positive) {
                add(format!("{name}: {error}"));
            }
        }
        let has_rules = self.goss_rules.is_some();
        match self.format.as_deref() {
            Some(NAGIOS) if has_rules => {
                add(format!("format: `{NAGIOS}` is for commands, rules have `{GOSS}`"));
            }
            Some(GOSS) if !has_rules => {
                add(format!("format: `{GOSS}` is for rules, a command has `{NAGIOS}`"));
            }
            None | Some(NAGIOS | GOSS) => {}
            Some(other) => {
                let hint = did_you_mean(other, [NAGIOS, GOSS])
                    .unwrap_or_else(|| format!("allowed: `{NAGIOS}`, `{GOSS}`"));
                problems.push((format!("format: unknown format `{other}`"), Some(hint)));
            }
        }
        problems
    }
}

/// The status of a check, as in Nagios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(from = "u8", into = "u8")]
pub enum Health {
    /// Exit code 0 of a Nagios plugin.
    #[default]
    Ok,
    /// Fine, with something to look at.
    Warning,
    /// Exit code 2; the resource fails.
    Critical,
    /// Could not be told.
    Unknown,
}

impl Health {
    /// Returns the status for an exit code.
    pub fn from_exit_code(code: i32) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Warning,
            2 => Self::Critical,
            _ => Self::Unknown,
        }
    }

    /// Whether a resource in this health counts as failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Critical | Self::Unknown)
    }
}

impl From<u8> for Health {
    fn from(number: u8) -> Self {
        Self::from_exit_code(number.into())
    }
}

impl From<Health> for u8 {
    fn from(health: Health) -> Self {
        match health {
            Health::Ok => 0,
            Health::Warning => 1,
            Health::Critical => 2,
            Health::Unknown => 3,
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        })
    }
}

/// The result of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, schemars::JsonSchema)]
pub struct HealthCheckResult {
    /// Status of the last attempt: 0 is OK, 1 warning, 2 critical, 3 unknown.
    #[schemars(with = "u8", range(max = 3))]
    pub status: Health,
    /// Number of attempts.
    pub tries: u32,
    /// Message of the check.
    pub output: String,
    /// The check's name.
    pub name: String,
    /// Duration of all attempts, in nanoseconds.
    #[serde(
        default,
        with = "crate::event::nanoseconds",
        skip_serializing_if = "Duration::is_zero"
    )]
    #[schemars(with = "u64")]
    pub duration: Duration,
}

impl fmt::Display for HealthCheckResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "health check {} {}", self.name, self.status)?;
        if self.tries > 1 {
            write!(f, " after {} tries", self.tries)?;
        }
        if self.output.is_empty() { Ok(()) } else { write!(f, ": {}", self.output) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str) -> HealthCheck {
        HealthCheck { command: Some(command.to_owned()), ..HealthCheck::default() }
    }

    fn problems(check: &HealthCheck) -> Vec<String> {
        check.problems().into_iter().map(|(message, _)| message).collect()
    }

    #[test]
    fn exit_codes_are_health() {
        for (code, health, fails) in [
            (0, Health::Ok, false),
            (1, Health::Warning, false),
            (2, Health::Critical, true),
            (3, Health::Unknown, true),
            (4, Health::Unknown, true),
            (127, Health::Unknown, true),
            (255, Health::Unknown, true),
            (-1, Health::Unknown, true),
        ] {
            assert_eq!(Health::from_exit_code(code), health, "{code}");
            assert_eq!(health.is_failure(), fails, "{health}");
        }
    }

    #[test]
    fn what_is_not_given_has_a_default() {
        let plain = check("/usr/lib/nagios/plugins/check_http -H a/b");
        assert_eq!(plain.name(), "check_http");
        assert_eq!((plain.tries(), plain.try_sleep().as_secs()), (1, 1));
        assert_eq!(plain.timeout(), None);
        assert_eq!(problems(&plain), [""; 0]);
        let named = HealthCheck { name: Some("web".into()), ..plain };
        assert_eq!(named.name(), "web");
        let rules =
            HealthCheck { goss_rules: Some(GossRules::default()), ..HealthCheck::default() };
        assert_eq!((&*rules.name(), rules.rules_timeout().as_secs()), ("goss", 60));
        assert_eq!(problems(&rules), [""; 0]);
    }

    #[test]
    fn everything_wrong_is_told() {
        for (wrong, wanted) in [
            (HealthCheck::default(), "a check needs a `command` or `goss_rules`"),
            (
                HealthCheck { goss_rules: Some(GossRules::default()), ..check("a") },
                "`command` and `goss_rules` cannot both be set",
            ),
            (
                HealthCheck {
                    goss_rules: Some(GossRules::default()),
                    format: Some("nagios".into()),
                    ..HealthCheck::default()
                },
                "format: `nagios` is for commands, rules have `goss`",
            ),
            (check(" "), "command: is empty"),
            (check("a 'b"), "command: Unterminated single-quoted string"),
            (HealthCheck { tries: Some(0), ..check("a") }, "tries: must be at least 1, not 0"),
            (
                HealthCheck { try_sleep: Some("soon".into()), ..check("a") },
                "try_sleep: `soon` is not a duration: write numbers with units, such as `30s`, \
                 `5m` or `1h30m`",
            ),
            (
                HealthCheck { timeout: Some("-1s".into()), ..check("a") },
                "timeout: `-1s` is not a duration: write numbers with units, such as `30s`, `5m` \
                 or `1h30m`",
            ),
            (
                HealthCheck { format: Some("goss".into()), ..check("a") },
                "format: `goss` is for rules, a command has `nagios`",
            ),
            (
                HealthCheck { format: Some("nagois".into()), ..check("a") },
                "format: unknown format `nagois`",
            ),
        ] {
            assert_eq!(problems(&wrong), [wanted]);
        }
        assert_eq!(problems(&HealthCheck { format: Some("nagios".into()), ..check("a") }), [""; 0]);
    }

    #[test]
    fn results_are_numbers_for_machines_and_words_for_people() {
        let mut result = HealthCheckResult {
            status: Health::Critical,
            tries: 3,
            output: "refused".into(),
            name: "check_http".into(),
            duration: Duration::ZERO,
        };
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(json, r#"{"status":2,"tries":3,"output":"refused","name":"check_http"}"#);
        assert_eq!(serde_json::from_str::<HealthCheckResult>(&json).unwrap(), result);
        assert_eq!(result.to_string(), "health check check_http CRITICAL after 3 tries: refused");
        result = HealthCheckResult { tries: 1, output: String::new(), ..result };
        assert_eq!(result.to_string(), "health check check_http CRITICAL");
    }
}
