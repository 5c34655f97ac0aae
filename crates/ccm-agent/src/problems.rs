//! Logs a lasting problem when it begins, every five minutes, and when it ends.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::schedule::Moment;

/// How often a state that lasts is logged again.
const AGAIN: Duration = Duration::from_mins(5);

/// How bad a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Warning,
    Error,
}

/// What is to be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What the state is about: a manifest, or the name of something.
    pub(crate) subject: String,
    /// `None` when the state has ended.
    pub(crate) severity: Option<Severity>,
    pub(crate) message: String,
}

/// All states that last now.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    states: BTreeMap<(String, &'static str), State>,
}

#[derive(Debug)]
struct State {
    severity: Severity,
    message: String,
    logged: Moment,
}

impl Problems {
    /// A state lasts. Returns what is to be logged: something if it is new, or
    /// has another message.
    pub(crate) fn set(
        &mut self,
        (subject, kind): (&str, &'static str),
        severity: Severity,
        message: String,
        now: Moment,
    ) -> Option<Entry> {
        let key = (subject.to_owned(), kind);
        if let Some(state) = self.states.get_mut(&key)
            && state.message == message
        {
            return None;
        }
        let entry = Entry {
            subject: subject.to_owned(),
            severity: Some(severity),
            message: message.clone(),
        };
        self.states.insert(key, State { severity, message, logged: now });
        Some(entry)
    }

    /// A state has ended, if it was there.
    pub(crate) fn end(
        &mut self,
        (subject, kind): (&str, &'static str),
        message: &str,
    ) -> Option<Entry> {
        self.states.remove(&(subject.to_owned(), kind))?;
        let message = message.to_owned();
        Some(Entry { subject: subject.to_owned(), severity: None, message })
    }

    /// Forgets the states of something that is not there any more.
    pub(crate) fn forget(&mut self, subject: &str) {
        self.states.retain(|(known, _), _| known != subject);
    }

    /// What is to be logged again.
    pub(crate) fn again(&mut self, now: Moment) -> Vec<Entry> {
        let due = self.states.iter_mut().filter(|(_, state)| now >= state.logged + AGAIN);
        due.map(|((subject, _), state)| {
            state.logged = now;
            let message = format!("still: {}", state.message);
            Entry { subject: subject.clone(), severity: Some(state.severity), message }
        })
        .collect()
    }

    /// When to ask for that next.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.states.values().map(|state| state.logged + AGAIN).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_logged_when_it_begins_now_and_then_and_when_it_ends() {
        let at = |minutes| Duration::from_mins(minutes);
        let mut problems = Problems::default();
        let key = ("m", "source");
        let set = |problems: &mut Problems, text: &str, minutes| {
            let entry = problems.set(key, Severity::Error, text.to_owned(), at(minutes));
            entry.map(|entry| entry.message)
        };
        assert_eq!(problems.end(key, "well"), None);
        assert_eq!(set(&mut problems, "bad", 0).as_deref(), Some("bad"));
        assert_eq!(set(&mut problems, "bad", 1), None);
        assert!(problems.again(at(4)).is_empty());
        assert_eq!(problems.next(), Some(at(5)));
        let again: Vec<String> = problems.again(at(5)).into_iter().map(|e| e.message).collect();
        assert_eq!(again, ["still: bad"]);
        assert!(problems.again(at(9)).is_empty());
        assert_eq!(set(&mut problems, "worse", 9).as_deref(), Some("worse"));
        assert_eq!(problems.end(key, "well").unwrap().severity, None);
        assert_eq!(problems.next(), None);
    }
}
