//! `command`: the one kind that runs a shell.

use ccm_host::{Command, Environment, Exit, Output};

use super::{Found, Machine, Probe, bytes, chain, number, unknown};
use crate::compile::Entry;

/// More output than this is not looked at.
const LARGEST: usize = 16 << 20;

pub(super) struct Shell<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
    output: Option<Result<Output, String>>,
}

impl<'a> Shell<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine, output: None }
    }

    fn run(&self) -> Result<Output, String> {
        let timeout = self.machine.time(self.entry.timeout())?;
        // The command is the user's own, as those of exec are.
        let command = Command::new("/bin/sh", ["-c", &self.entry.name])
            .environment(Environment::Inherited { add: Vec::new(), path: None })
            .capture(LARGEST)
            .timeout(Some(timeout));
        self.machine.run(&command).map_err(|error| match error {
            ccm_host::Error::Timeout { after, .. } => {
                format!("the command did not finish within {after:?} and was terminated")
            }
            error => chain(&error),
        })
    }
}

impl Probe for Shell<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        if self.output.is_none() {
            self.output = Some(self.run());
        }
        let Some(Ok(output)) = &self.output else {
            let reason = self.output.as_ref().and_then(|output| output.as_ref().err());
            return Err(reason.cloned().unwrap_or_default());
        };
        // The host keeps the end of a stream, and at least this much of it.
        let whole = |stream: &[u8]| match stream.len() {
            ..LARGEST => bytes(stream),
            _ => Err("the output is larger than 16 MiB".to_owned()),
        };
        match (attribute, output.exit) {
            ("exit-status", Exit::Code(code)) => number(code),
            ("exit-status", Exit::Signal(signal)) => {
                Err(format!("the command was killed by signal {signal}"))
            }
            ("stdout", _) => whole(&output.stdout),
            ("stderr", _) => whole(&output.stderr),
            (other, _) => unknown(other),
        }
    }
}
