//! Health checks, which run after a resource has reached its desired state.

use std::time::Instant;

use ccm_goss::Rules;
use ccm_host::{Command, Environment, Exit, Host, Output, Stream};
use ccm_model::{
    Event, GossRules, Health, HealthCheck, HealthCheckResult, Spanned, Templates,
    redact_credentials,
};
use serde_json::Value;

use crate::{Error, Result, chain};

/// A message is a line for people; a plugin that says more says it in its log.
const LONGEST_MESSAGE: usize = 4096;

/// Runs all checks in order and writes what they say into the event. Only an
/// interrupt keeps the later ones from being asked.
pub(crate) fn check(
    host: &Host,
    templates: &dyn Templates,
    checks: &[Spanned<HealthCheck>],
    event: &mut Event,
) -> Result<()> {
    if checks.is_empty() {
        return Ok(());
    }
    for check in checks {
        let check = &check.value;
        let begin = Instant::now();
        let mut result = match &check.goss_rules {
            None => run(host, check)?,
            Some(rules) => match read_rules(host, templates, rules) {
                Ok(rules) => run_rules(host, check, &rules)?,
                // Rules that cannot be asked say nothing about the resource.
                Err(reason) => {
                    event.failed = true;
                    event.error.push(format!("health check {}: {reason}", check.name()));
                    continue;
                }
            },
        };
        result.duration = begin.elapsed();
        let name = host.redactor().text(&result.name).into_owned();
        tracing::debug!(name, status = %result.status, "health check");
        if result.status.is_failure() {
            event.failed = true;
            event.error.push(result.to_string());
        }
        event.health_check.push(result);
    }
    if let Value::Object(status) = &mut event.status {
        let results = serde_json::to_value(&event.health_check).unwrap_or_default();
        status.insert("health_check".into(), results);
        if event.failed {
            status.insert("stable".into(), false.into());
        }
    }
    Ok(())
}

/// Asks until the answer is OK or there are no tries left.
fn run(host: &Host, check: &HealthCheck) -> Result<HealthCheckResult> {
    let words = check.words().unwrap_or_default();
    let Some((program, args)) = words.split_first() else {
        return Err(Error::refused("a health check has no command"));
    };
    // The command is the user's own, as those of exec are.
    let command = Command::new(program, args)
        .environment(Environment::Inherited { add: Vec::new(), path: None })
        .timeout(check.timeout());
    let mut result = HealthCheckResult { name: check.name().into_owned(), ..Default::default() };
    for tries in 1..=check.tries().max(1) {
        if tries > 1 {
            host.cancel().pause(check.try_sleep());
        }
        let (status, output) = ask(host, &command)?;
        result = HealthCheckResult { status, tries, output, ..result };
        if status == Health::Ok {
            break;
        }
    }
    Ok(result)
}

/// The rules as they are now, with their placeholders resolved.
fn read_rules(host: &Host, templates: &dyn Templates, rules: &GossRules) -> Result<Rules, String> {
    let rules = Rules::read(&rules.node, Some(templates))
        .map_err(|error| format!("goss_rules: {error}"))?;
    host.add_secrets(rules.secrets());
    Ok(rules)
}

/// Runs all tests until none of them fails or there are no tries left.
fn run_rules(host: &Host, check: &HealthCheck, rules: &Rules) -> Result<HealthCheckResult> {
    let mut result = HealthCheckResult { name: check.name().into_owned(), ..Default::default() };
    for tries in 1..=check.tries().max(1) {
        if tries > 1 {
            host.cancel().pause(check.try_sleep());
        }
        let report = rules.run(host, check.rules_timeout()).map_err(|_| {
            Error::from(ccm_host::Error::Interrupted {
                command: format!("health check {}", result.name),
            })
        })?;
        let status = if report.is_ok() { Health::Ok } else { Health::Critical };
        result = HealthCheckResult { status, tries, output: message(&report.output()), ..result };
        if status == Health::Ok {
            break;
        }
    }
    Ok(result)
}

/// One try. What keeps it from answering is an answer too, as the next try may
/// find things otherwise.
fn ask(host: &Host, command: &Command) -> Result<(Health, String)> {
    let mut first = String::new();
    let mut listen = |stream: Stream, line: &str| {
        if stream == Stream::Stdout && first.is_empty() {
            line.trim().clone_into(&mut first);
        }
    };
    match host.run(command, &mut listen) {
        Ok(output) => Ok(judge(&output, &first)),
        Err(error @ ccm_host::Error::Interrupted { .. }) => Err(error.into()),
        Err(error) => {
            let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            Ok((Health::Unknown, message(&format!("{}{hint}", chain(&error)))))
        }
    }
}

/// What an answer means: the exit code, and the first line up to `|`, behind
/// which plugins put figures for programs.
fn judge(output: &Output, first: &str) -> (Health, String) {
    let (said, _figures) = first.split_once('|').unwrap_or((first, ""));
    let said = match said.trim() {
        "" => output.stderr_tail(1),
        said => said.to_owned(),
    };
    match output.exit {
        Exit::Code(code) => (Health::from_exit_code(code), message(&said)),
        Exit::Signal(signal) => {
            let ended = format!("the command was killed by signal {signal}");
            let said = if said.is_empty() { ended } else { format!("{ended}: {said}") };
            (Health::Unknown, message(&said))
        }
    }
}

fn message(text: &str) -> String {
    let text = redact_credentials(text.trim());
    if text.len() <= LONGEST_MESSAGE {
        return text.into_owned();
    }
    let end = (0..=LONGEST_MESSAGE).rev().find(|&at| text.is_char_boundary(at));
    format!("{}…", &text[..end.unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> HealthCheck {
        let command = format!("/bin/sh -c {}", ccm_model::shellquote::quote(script));
        HealthCheck {
            command: Some(command),
            try_sleep: Some("10ms".into()),
            ..HealthCheck::default()
        }
    }

    #[test]
    fn answers_are_judged_by_code_and_first_line() {
        for (exit, first, stderr, health, said) in [
            (Exit::Code(0), "OK - up | time=1", "", Health::Ok, "OK - up"),
            (Exit::Code(1), "slow", "noise", Health::Warning, "slow"),
            (Exit::Code(2), "", "a\nrefused\n", Health::Critical, "refused"),
            (Exit::Code(3), " | x=1", "", Health::Unknown, ""),
            (Exit::Code(7), "odd", "", Health::Unknown, "odd"),
            (Exit::Signal(9), "", "", Health::Unknown, "the command was killed by signal 9"),
            (
                Exit::Signal(6),
                "oops",
                "",
                Health::Unknown,
                "the command was killed by signal 6: oops",
            ),
            (
                Exit::Code(0),
                "http://me:pw@host is up",
                "",
                Health::Ok,
                "http://[redacted]@host is up",
            ),
        ] {
            let output = Output { exit, stdout: Vec::new(), stderr: stderr.into() };
            assert_eq!(judge(&output, first), (health, said.to_owned()), "{exit:?} {first:?}");
        }
    }

    #[test]
    fn a_check_is_tried_until_it_is_ok() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tries");
        let script = format!("echo x >> {0}; test $(wc -l < {0}) -ge 3", file.display());
        let host = Host::new();
        let patient = HealthCheck { tries: Some(5), ..sh(&script) };
        let result = run(&host, &patient).unwrap();
        assert_eq!((result.status, result.tries), (Health::Ok, 3));
        let failing = HealthCheck { tries: Some(2), ..sh("echo down; exit 2") };
        let result = run(&host, &failing).unwrap();
        assert_eq!((result.status, result.tries), (Health::Critical, 2));
        assert_eq!(result.output, "down");
    }

    #[test]
    fn what_cannot_answer_is_unknown() {
        let host = Host::new();
        let slow = HealthCheck { timeout: Some("100ms".into()), ..sh("sleep 20") };
        let result = run(&host, &slow).unwrap();
        assert_eq!(result.status, Health::Unknown);
        assert!(result.output.contains("exceeded its timeout of 100ms"), "{}", result.output);
        let missing =
            HealthCheck { command: Some("no-such-plugin -H x".into()), ..HealthCheck::default() };
        let result = run(&host, &missing).unwrap();
        assert_eq!((result.status, result.name.as_str()), (Health::Unknown, "no-such-plugin"));
        assert!(result.output.starts_with("command not found"), "{}", result.output);
    }

    #[test]
    fn messages_are_bounded() {
        let result = run(&Host::new(), &sh("head -c 100000 /dev/zero | tr '\\0' 'é'; exit 1"));
        assert!(result.unwrap().output.len() <= LONGEST_MESSAGE + '…'.len_utf8());
    }
}
