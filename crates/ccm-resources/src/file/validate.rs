//! The command that checks content before it is written.

use std::path::Path;
use std::time::Duration;

use ccm_engine::{Error, Findings, Result, chain};
use ccm_host::{Attributes, Command, Environment, Exit, Host, Output};
use ccm_model::shellquote;

/// What stands for the path of the staged file in a command.
const PLACE: &str = "{}";
const TIMEOUT: Duration = Duration::from_mins(1);
/// How much a failed command may say in a message.
const LAST_LINES: usize = 5;

/// Finds what is wrong with the command that a property `validate` is.
pub(crate) fn check(command: &str, findings: &mut Findings) {
    match shellquote::split(command) {
        Err(error) => findings.add("validate", error.to_string()),
        Ok(words) if !words.iter().skip(1).any(|word| word.contains(PLACE)) => {
            let hint = "`{}` stands for the path of the file, as in `visudo -cf {}`";
            findings.add_with_hint("validate", "the command does not contain `{}`", hint);
        }
        Ok(_) => {}
    }
}

/// Runs the command on a private copy with the final content, owner and mode.
pub(crate) fn run(
    host: &Host,
    text: &str,
    path: &Path,
    content: ccm_host::Content<'_>,
    attributes: &Attributes,
) -> Result<()> {
    let directory = host.temporary_directory("ccm-validate-")?;
    let staged = directory.path().join(path.file_name().unwrap_or_default());
    host.replace_unsynced(&staged, content, attributes)?;
    let before = digest(host, &staged)?;
    let words = shellquote::split(text).map_err(|error| Error::refused(error.to_string()))?;
    let place = staged.to_string_lossy();
    let words: Vec<String> = words.iter().map(|word| word.replace(PLACE, &place)).collect();
    let shown = text.replace(PLACE, &path.to_string_lossy());
    let Some((program, arguments)) = words.split_first() else {
        return Err(Error::refused("validation failed: the command is empty"));
    };
    let command = Command::new(program, arguments)
        .environment(Environment::System)
        .directory("/")
        .timeout(Some(TIMEOUT))
        .query();
    let output = host.run(&command, &mut |_, _| {}).map_err(|error| {
        let is_missing = error.is_about_something_missing();
        let by = match &error {
            ccm_host::Error::Unpredictable { by, .. } => Some(std::sync::Arc::clone(by)),
            _ => None,
        };
        let reason = format!("validation failed: {shown}: {}", chain(&error));
        if is_missing { Error::Missing { reason, hint: None, by } } else { Error::refused(reason) }
    })?;
    if output.exit != Exit::Code(0) {
        let mut reason = format!("validation failed: {shown} {}", output.exit);
        if let Some(words) = last_words(host, &output, attributes) {
            reason = format!("{reason}: {}", words.replace(&*place, &path.to_string_lossy()));
        }
        return Err(failed(host, reason, &shown));
    }
    // A copy that is gone or no file any more is changed too.
    if digest(host, &staged).ok() != Some(before) {
        let reason = format!("validation failed: {shown} changed the file");
        return Err(Error::refused(reason));
    }
    Ok(())
}

fn digest(host: &Host, path: &Path) -> Result<ccm_host::Digest> {
    let (file, stat) = host.open(path)?;
    Ok(host.digest(&file, path, stat.size)?)
}

/// The end of the output, unless it may tell what others must not read.
fn last_words(host: &Host, output: &Output, attributes: &Attributes) -> Option<String> {
    if attributes.mode & 0o004 == 0 {
        return None;
    }
    let error = output.stderr_tail(LAST_LINES);
    let words = if error.is_empty() {
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    } else {
        error
    };
    let is_plain = host.redactor().text(&words) == words.as_str();
    (is_plain && !words.is_empty()).then_some(words)
}

/// In a preview, the command may succeed once earlier resources have changed
/// what it reads.
fn failed(host: &Host, reason: String, command: &str) -> Error {
    let supplier = host.suppliers().last().map(|supplier| std::sync::Arc::clone(&supplier.origin));
    match supplier.or_else(|| host.predicted_in(command, Path::new("/"))) {
        Some(by) => Error::Missing { reason, hint: None, by: Some(by) },
        None => Error::refused(reason),
    }
}
