//! Commands on rendered files.

use std::path::Path;

use ccm_engine::{Context, Error, Result};
use ccm_host::{Command, Environment, Exit, Host};
use ccm_model::{FromNode, Node, Reader, Resolve, Shape, TemplateError, Templates, shellquote};
use ccm_yaml::{Entry, Kind};
use serde::{Serialize, Serializer};

use super::glob::Glob;

/// What stands for the path of the file in a command.
const PLACE: &str = "{}";
/// How much a failed command may say in a message.
const LAST_LINES: usize = 5;

/// Patterns of file names with a command for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Post(Vec<(String, String)>);

impl Post {
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(pattern, command)| (pattern.as_str(), command.as_str()))
    }
}

impl FromNode for Post {
    const SHAPE: Shape = Shape::Texts;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        let Kind::Mapping(entries) = node.kind else {
            return reader.wrong_type(&node, "a map from a pattern to a command");
        };
        let pair = |Entry { key, value }: Entry<'_>| {
            reader.read(value).map(|command| (key.text.into_owned(), command))
        };
        Some(Self(entries.into_iter().filter_map(pair).collect()))
    }

    fn is_set(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Resolve for Post {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.0.iter_mut().try_for_each(|(_, command)| command.resolve(templates, keys))
    }
}

impl Serialize for Post {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.entries())
    }
}

/// Runs the commands whose pattern the file's name has, in order.
pub(super) fn run(
    host: &Host,
    post: &[Post],
    file: &Path,
    place: &Path,
    cx: &mut Context<'_>,
) -> Result<()> {
    for (pattern, command) in post.iter().flat_map(Post::entries) {
        if matches(pattern, file)? {
            run_one(host, command, file, place, cx)?;
        }
    }
    Ok(())
}

/// Whether any command is to be run on a file.
pub(super) fn is_for(post: &[Post], place: &Path) -> Result<bool> {
    for (pattern, _) in post.iter().flat_map(Post::entries) {
        if matches(pattern, place)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn matches(pattern: &str, file: &Path) -> Result<bool> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(Glob::parse(pattern).map_err(Error::refused)?.matches(&name))
}

fn run_one(host: &Host, text: &str, file: &Path, place: &Path, cx: &mut Context<'_>) -> Result<()> {
    let failed = |reason: String| {
        Error::refused(format!("post command `{text}` failed for {}: {reason}", place.display()))
    };
    let mut words = shellquote::split(text).map_err(|error| failed(error.to_string()))?;
    let path = file.to_str().ok_or_else(|| failed("its name is not UTF-8".to_owned()))?;
    if words.iter().any(|word| word.contains(PLACE)) {
        for word in &mut words {
            *word = word.replace(PLACE, path);
        }
    } else {
        words.push(path.to_owned());
    }
    let Some((program, args)) = words.split_first() else {
        return Err(failed("it is empty".to_owned()));
    };
    let command = Command::new(program, args)
        .directory(cx.working_directory)
        .environment(Environment::Inherited { add: Vec::new(), path: None });
    let output = host.run(&command, &mut |_, _| {}).map_err(|error| {
        let is_missing = error.is_about_something_missing();
        let by = match &error {
            ccm_host::Error::Unpredictable { by, .. } => Some(std::sync::Arc::clone(by)),
            _ => None,
        };
        match failed(ccm_engine::chain(&error)) {
            Error::Refused { reason, hint } if is_missing => Error::Missing { reason, hint, by },
            refused => refused,
        }
    })?;
    let how = match output.exit {
        Exit::Code(0) => return Ok(()),
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    };
    let words = output.stderr_tail(LAST_LINES);
    Err(failed(if words.is_empty() { how } else { format!("{how}: {words}") }))
}
