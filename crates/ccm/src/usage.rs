//! Errors in the command line, and flags before the type of `ccm ensure`.

use std::ffi::{OsStr, OsString};

use ccm_engine::type_hint;
use ccm_resources::TYPES;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::error::Error;

/// Flags that other tools have, and what to use instead.
const OTHER_TOOLS: &[(&str, &str)] = &[
    ("--dry-run", "to preview changes, use `--noop` or `ccm plan`"),
    ("--dryrun", "to preview changes, use `--noop` or `ccm plan`"),
    ("--check", "to preview changes, use `--noop` or `ccm plan`"),
    ("--test", "to preview changes, use `--noop` or `ccm plan`"),
    ("--tags", "to apply a part, use `--only TAG`"),
    ("--skip-tags", "to leave out a part, use `--skip TAG`"),
    ("--extra-vars", "to pass data, use `--hiera FILE`; to set a fact, `--fact KEY=VALUE`"),
    ("--become", "run ccm itself as the user that you need, for example with sudo"),
];

/// The error for a command line that people write because of other tools, or
/// because they mistyped; none if the parser's own message is good enough.
pub(crate) fn explain(error: &clap::Error) -> Option<Error> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = text(ContextKind::InvalidArg)?;
            if !given.starts_with('-') {
                return None;
            }
            let of_other_tool = OTHER_TOOLS.iter().find(|(flag, _)| *flag == given);
            let meant = text(ContextKind::SuggestedArg);
            let hint = match (of_other_tool, meant) {
                (Some((_, hint)), _) => (*hint).to_owned(),
                (None, Some(meant)) => format!("did you mean `{meant}`?"),
                (None, None) => "`--help` lists the options".to_owned(),
            };
            Some(Error::usage(format!("unknown option `{given}`"), hint))
        }
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand)?;
            let usage = match error.get(ContextKind::Usage) {
                Some(ContextValue::StyledStr(usage)) => usage.to_string(),
                _ => String::new(),
            };
            if usage.contains("ccm ensure ") {
                let offered = TYPES.iter().filter(|kind| kind.command_line().is_some());
                let names: Vec<&str> = offered.map(|kind| kind.name()).collect();
                let hint = type_hint(&given, &names);
                return Some(Error::usage(format!("unknown resource type `{given}`"), hint));
            }
            let hint = match text(ContextKind::SuggestedSubcommand) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`--help` lists the commands".to_owned(),
            };
            Some(Error::usage(format!("unknown command `{given}`"), hint))
        }
        _ => None,
    }
}

/// Puts flags between `ensure` and the type behind the type: a flag that all types
/// have may come before it too.
pub(crate) fn flags_behind_type(cli: &Command, mut args: Vec<OsString>) -> Vec<OsString> {
    let Some(ensure) = cli.find_subcommand("ensure") else { return args };
    let Some(start) = first_word(cli, &args, 1).filter(|&at| args[at] == "ensure") else {
        return args;
    };
    let is_type = |word: &OsStr| word.to_str().is_some_and(|word| has_name(ensure, word));
    // All types have these; any of them knows how many values a flag takes.
    let Some(sample) = ensure.get_subcommands().find(|kind| kind.get_name() != "api") else {
        return args;
    };
    let begin = start + 1;
    let Some(at) = first_word(sample, &args, begin).filter(|&at| is_type(&args[at])) else {
        return args;
    };
    if at == begin {
        return args;
    }
    let mut early: Vec<OsString> = args.drain(begin..at).collect();
    // `api` has its flags behind `pipe`.
    let words = if args[begin] == "api" { 2 } else { 1 };
    let rest = args.split_off((begin + words).min(args.len()));
    args.append(&mut early);
    args.extend(rest);
    args
}

fn has_name(command: &Command, word: &str) -> bool {
    let mut names = command
        .get_subcommands()
        .flat_map(|sub| std::iter::once(sub.get_name()).chain(sub.get_all_aliases()));
    names.any(|name| name == word)
}

/// The index of the first argument from `from` on that is no flag and no value of
/// one.
fn first_word(command: &Command, args: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(text) = args.get(at).map(|arg| arg.to_string_lossy()) {
        if !text.starts_with('-') || text == "-" || text == "--" {
            return (text != "--").then_some(at);
        }
        let takes_next = !text.contains('=') && takes_value(command, &text);
        at += if takes_next { 2 } else { 1 };
    }
    None
}

fn takes_value(command: &Command, flag: &str) -> bool {
    let arg = match flag.strip_prefix("--") {
        Some(long) => {
            let mut found = command.get_arguments().filter(|arg| {
                arg.get_long().is_some_and(|known| known == long || known.starts_with(long))
            });
            found.next()
        }
        None => flag
            .chars()
            .nth(1)
            .and_then(|short| command.get_arguments().find(|arg| arg.get_short() == Some(short))),
    };
    let needs_next = |arg: &Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    arg.is_some_and(needs_next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(line: &str) -> String {
        let args = line.split(' ').map(OsString::from).collect();
        let mut cli = crate::cli();
        cli.build();
        let words = flags_behind_type(&cli, args);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_before_the_type_go_behind_it() {
        for (given, result) in [
            ("ccm ensure --noop package zsh", "ccm ensure package --noop zsh"),
            ("ccm --debug ensure --noop pkg zsh", "ccm --debug ensure pkg --noop zsh"),
            (
                "ccm ensure --session /tmp/x --alias=a file /a present",
                "ccm ensure file --session /tmp/x --alias=a /a present",
            ),
            ("ccm ensure --noop api pipe --stream", "ccm ensure api pipe --noop --stream"),
            ("ccm ensure --diff file /a", "ccm ensure file --diff /a"),
            ("ccm ensure file --noop /a", "ccm ensure file --noop /a"),
            ("ccm ensure --noop", "ccm ensure --noop"),
            ("ccm ensure --noop nothing x", "ccm ensure --noop nothing x"),
            ("ccm apply --noop ensure", "ccm apply --noop ensure"),
        ] {
            assert_eq!(moved(given), result);
        }
    }
}
