//! Network services that a run can use: keys, and the registry of services.
//!
//! Other crates implement these traits. A run caches the result of each lookup,
//! so that it sees one consistent state.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use ccm_model::{RegistryEntry, RegistryQuery};

use crate::fetch::OFFLINE;
use crate::lock::Lock;
use crate::{Error, Host, RecordedFetch, Result};

/// Distinct questions in one run.
const MAX_QUESTIONS: usize = 1_000;

/// Answers template functions that ask others.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// The value of a key, as text.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Network`]. Arguments that cannot be right are an error
    /// before anything is sent.
    fn kv_get(&self, bucket: &str, key: &str, host: &Host) -> Result<String>;

    /// The registered services that a query matches, in their order.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Network`].
    fn registrations(&self, query: &RegistryQuery, host: &Host) -> Result<Vec<RegistryEntry>>;
}

/// Where registrations are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    /// Publishes to current subscribers, without acknowledgement.
    Nats,
    /// To a stream, which acknowledges.
    JetStream,
}

/// Tells others where services can be found.
pub trait Publish: fmt::Debug + Send + Sync {
    /// Publishes one entry, and gives up after `patience`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Network`].
    fn publish(
        &self,
        entry: &RegistryEntry,
        to: Registry,
        patience: Duration,
        host: &Host,
    ) -> Result<()>;
}

/// What was asked in a run, with the answers.
#[derive(Default)]
struct Answers(Lock<HashMap<Question, Answer>>);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Question {
    Key(String, String),
    Services(RegistryQuery),
}

type Answer = Result<Found, (String, Option<String>)>;

#[derive(Clone)]
enum Found {
    Text(String),
    Entries(Vec<RegistryEntry>),
}

impl Host {
    /// The value of a key. The first answer in a run is the answer of all of it,
    /// an error too.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Network`].
    pub fn kv_get(&self, bucket: &str, key: &str) -> Result<String> {
        let question = Question::Key(bucket.to_owned(), key.to_owned());
        match self
            .ask(question, "kvGet", |lookup| lookup.kv_get(bucket, key, self).map(Found::Text))?
        {
            Found::Text(text) => Ok(text),
            Found::Entries(_) => Ok(String::new()),
        }
    }

    /// The registered services that a query matches. The first answer in a run
    /// is the answer of all of it, an error too.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Network`].
    pub fn registrations(&self, query: &RegistryQuery) -> Result<Vec<RegistryEntry>> {
        match self.ask(Question::Services(query.clone()), "registrations", |lookup| {
            lookup.registrations(query, self).map(Found::Entries)
        })? {
            Found::Entries(entries) => Ok(entries),
            Found::Text(_) => Ok(Vec::new()),
        }
    }

    /// The publisher of registrations, if there is one.
    pub fn publisher(&self) -> Option<&dyn Publish> {
        self.inner.system.publisher()
    }

    fn ask(
        &self,
        question: Question,
        function: &str,
        find: impl FnOnce(&dyn Lookup) -> Result<Found>,
    ) -> Result<Found> {
        let answers = self.cached::<Answers>();
        // Held while others are asked: whoever asks the same meanwhile gets the
        // same answer.
        let mut answers = answers.0.hold();
        if let Some(known) = answers.get(&question) {
            return known.clone().map_err(|(message, hint)| Error::Network { message, hint });
        }
        if answers.len() >= MAX_QUESTIONS {
            let message = format!("a run makes at most {MAX_QUESTIONS} different lookups");
            return Err(Error::Network { message, hint: None });
        }
        let name = question.name();
        let answer = match self.replayed_fetch(&name).and_then(|text| question.recorded(text)) {
            Some(found) => Ok(found),
            None => match self.inner.system.lookup() {
                Some(_) if self.inner.system.is_offline() => Err(Error::Network {
                    message: format!("{function} needs a network connection, and {OFFLINE}"),
                    hint: None,
                }),
                Some(lookup) => find(lookup),
                None => Err(Error::Network {
                    message: format!(
                        "{function} needs a network connection, and none is configured"
                    ),
                    hint: None,
                }),
            },
        };
        let answer: Answer = answer.map_err(|error| (error.to_string(), error.hint()));
        if let Ok(found) = &answer {
            self.record_fetch(&name, RecordedFetch::Text(found.text()));
        }
        answers.insert(question, answer.clone());
        answer.map_err(|(message, hint)| Error::Network { message, hint })
    }
}

impl Question {
    /// What a saved plan keeps the answer under.
    fn name(&self) -> String {
        match self {
            Self::Key(bucket, key) => format!("kvGet {bucket} {key}"),
            Self::Services(query) => format!("registrations {}", query.filter_subject()),
        }
    }

    /// The answer as a saved plan has it.
    fn recorded(&self, recorded: RecordedFetch) -> Option<Found> {
        let RecordedFetch::Text(text) = recorded else { return None };
        match self {
            Self::Key(..) => Some(Found::Text(text)),
            Self::Services(_) => RegistryEntry::list(&text).ok().map(Found::Entries),
        }
    }
}

impl Found {
    /// What a saved plan keeps.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Entries(entries) => {
                let payloads: Vec<String> = entries.iter().map(RegistryEntry::payload).collect();
                format!("[{}]", payloads.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Cancel, System};

    /// Counts, and answers with the count; fails for the key `bad`.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Lookup for Counting {
        fn kv_get(&self, bucket: &str, key: &str, _: &Host) -> Result<String> {
            let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            if key == "bad" {
                let message = format!("no key in {bucket} at try {count}");
                return Err(Error::Network { message, hint: Some("put it".to_owned()) });
            }
            Ok(count.to_string())
        }

        fn registrations(&self, _: &RegistryQuery, _: &Host) -> Result<Vec<RegistryEntry>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_run_asks_once_and_remembers_errors_too() {
        let lookup = Arc::new(Counting::default());
        let system = System::default().with_lookup(lookup.clone());
        let host = system.begin(Cancel::default());
        for _ in 0..3 {
            assert_eq!(host.kv_get("B", "k").unwrap(), "1");
            let error = host.kv_get("B", "bad").unwrap_err();
            assert_eq!(error.to_string(), "no key in B at try 2");
            assert_eq!(error.hint().as_deref(), Some("put it"));
            assert!(host.registrations(&RegistryQuery::default()).unwrap().is_empty());
        }
        assert_eq!(lookup.0.load(Ordering::Relaxed), 3);
        let other_run = system.begin(Cancel::default());
        assert_eq!(other_run.kv_get("B", "k").unwrap(), "4");
    }

    #[test]
    fn a_run_asks_a_bounded_number_of_questions() {
        let lookup = Arc::new(Counting::default());
        let host = System::default().with_lookup(lookup).begin(Cancel::default());
        for key in 0..MAX_QUESTIONS {
            host.kv_get("B", &key.to_string()).unwrap();
        }
        let error = host.kv_get("B", "more").unwrap_err();
        assert_eq!(error.to_string(), "a run makes at most 1000 different lookups");
        assert_eq!(host.kv_get("B", "0").unwrap(), "1", "what is known stays known");
    }

    #[test]
    fn without_a_network_the_error_says_so() {
        let error = Host::new().kv_get("B", "k").unwrap_err();
        assert_eq!(error.to_string(), "kvGet needs a network connection, and none is configured");
    }

    #[test]
    fn an_offline_system_asks_nobody() {
        let lookup = Arc::new(Counting::default());
        let host = System::default().with_lookup(lookup).offline().begin(Cancel::default());
        let error = host.kv_get("B", "k").unwrap_err().to_string();
        let wanted = "kvGet needs a network connection, and ccm makes no connection in a check";
        assert_eq!(error, wanted);
    }

    #[test]
    fn a_saved_plan_gives_the_answers_back() {
        let lookup = Arc::new(Counting::default());
        let system = System::default().with_lookup(lookup.clone());
        let host = system.begin(Cancel::default());
        host.record_sources();
        host.kv_get("B", "k").unwrap();
        host.registrations(&RegistryQuery::default()).unwrap();
        let again = system.begin(Cancel::default());
        let _replay = again.replay(&host.recorded_sources()).unwrap();
        assert_eq!(again.kv_get("B", "k").unwrap(), "1");
        assert!(again.registrations(&RegistryQuery::default()).unwrap().is_empty());
        assert_eq!(lookup.0.load(Ordering::Relaxed), 2);
    }
}
