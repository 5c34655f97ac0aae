//! Goss rules, evaluated without the `goss` program.
//!
//! Rules say what a machine should be like: `port: {"tcp:80": {listening: true}}`.
//! [`Rules`] reads them, and reports every error with its location. [`Rules::run`]
//! asks the machine through [`ccm_host::Host`] and compares the answers with what
//! the rules expect.
//!
//! ```
//! use ccm_goss::Rules;
//!
//! let source = ccm_yaml::Source::new("rules.yaml", "file: {/etc/passwd: {exists: true}}");
//! let rules = Rules::read(&ccm_yaml::parse(&source).unwrap(), None).unwrap();
//! let report = rules.run(&ccm_host::Host::new(), std::time::Duration::from_secs(5)).unwrap();
//! assert_eq!((report.summary.count, report.summary.failed), (1, 0));
//! ```

mod compile;
mod kinds;
mod matcher;
mod probe;
mod report;
mod rules;
mod run;
mod schema;
mod tree;

pub use kinds::{Attribute, KINDS, RuleKind, Setting, SettingType, ValueType};
pub use matcher::{MATCHERS, MatcherInfo};
pub use report::{Outcome, Report, Summary, TestResult};
pub use rules::{Rules, RulesError, check, warnings};
pub use run::Interrupted;
pub use schema::schema;
