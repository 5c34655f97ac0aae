//! Properties: the desired state of a resource.
//!
//! A type's properties are one struct. The derive reads it:
//!
//! ```
//! use ccm_model::{Common, Fields, Properties};
//!
//! /// Manage greetings
//! #[derive(Clone, Debug, Default, Properties)]
//! struct Greeting {
//!     #[property(common)]
//!     common: Common,
//!     /// What to say
//!     #[property(template = deferred, alias = "words", conflicts("silent"))]
//!     text: Option<String>,
//!     /// Say nothing
//!     silent: bool,
//! }
//!
//! let text = Greeting::FIELDS.iter().find(|field| field.name == "text").unwrap();
//! assert_eq!(text.doc, "What to say");
//! assert_eq!(text.aliases, ["words"]);
//! ```
//!
//! A configuration is a struct too. Its fields have no templates, so they have
//! their defaults and checks as attributes:
//!
//! ```
//! use ccm_model::{Fields, Reader, Settings};
//!
//! #[derive(Debug, Settings)]
//! struct Config {
//!     /// How often to greet
//!     #[property(default = "5m")]
//!     interval: std::time::Duration,
//!     /// Whom to greet
//!     #[property(required, check = |who: &String| match who.as_str() {
//!         "nobody" => Err("greet somebody".to_owned()),
//!         _ => Ok(()),
//!     })]
//!     who: String,
//! }
//!
//! assert_eq!(Config::default().interval.as_secs(), 300);
//! let mut reader = Reader::default();
//! let source = ccm_yaml::Source::new("config.yaml", "who: nobody\nintervall: 1m\n");
//! reader.read_settings::<Config>(ccm_yaml::parse(&source).unwrap());
//! let messages: Vec<_> = reader.findings.iter().map(|found| &found.message).collect();
//! assert_eq!(messages, ["who: greet somebody", "unknown setting `intervall`"]);
//! ```

use ccm_yaml::Node;
use serde::Serialize;
use serde::ser::SerializeMap;

use crate::{
    Field, HealthCheck, Reader, Registration, ResourceRef, SecretValues, Spanned, Stage,
    TemplateError, Templates, property_hint,
};

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// A struct with a table of its fields. Derived.
pub trait Fields {
    /// The table; indices below are indices into it.
    const FIELDS: &'static [Field];

    /// What an entry is called in messages.
    const ENTRY: &'static str = "property";

    /// Sets one field from a node.
    fn set(&mut self, index: usize, node: Node<'_>, reader: &mut Reader);

    /// Advice for an entry that is unknown here and known elsewhere.
    fn hint(name: &str) -> Option<&'static str> {
        property_hint(name)
    }

    /// Resolves the templates of a stage; failures come with the field's index.
    fn resolve(
        &mut self,
        _stage: Stage,
        _templates: &dyn Templates,
        _failures: &mut Vec<(usize, TemplateError)>,
    ) {
    }

    /// Adds the values of the fields that are declared secret.
    fn secrets(&self, _into: &mut SecretValues) {}
}

/// The properties of a resource type. Derived.
pub trait Properties: Fields + Serialize + Default + Clone {
    /// The properties that all types have.
    fn common(&self) -> &Common;

    /// The same, to change.
    fn common_mut(&mut self) -> &mut Common;
}

/// Writes fields into a map that is already open. Derived.
pub trait SerializeFields {
    /// Writes every field that is set, secrets redacted.
    fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// The properties that all types have.
#[derive(Clone, Debug, Default, ccm_macros::Properties)]
pub struct Common {
    /// Name of the resource
    pub name: String,
    /// Desired state
    pub ensure: String,
    /// Another name for references to this resource
    pub alias: Option<String>,
    /// Provider to use; ccm detects it by default
    pub provider: Option<String>,
    /// Resources that must not have failed, as `type#name`
    #[property(value = "TYPE#NAME")]
    pub require: Vec<ResourceRef>,
    /// Words that select the resource in `--only` and `--skip`
    #[property(value = "TAG")]
    pub tags: Vec<String>,
    /// Conditions under which ccm manages the resource
    #[property(template = never)]
    pub control: Option<Control>,
    /// Checks to run after the resource is applied
    pub health_checks: Vec<Spanned<HealthCheck>>,
    /// Services to publish once the resource is in its desired state
    pub register_when_stable: Vec<Spanned<Registration>>,
}

/// Conditions for managing a resource at all.
#[derive(Clone, Debug, Default, ccm_macros::Properties)]
pub struct Control {
    /// Manage only if this expression is true
    #[property(template = never, format = Expression)]
    pub r#if: Option<Spanned<String>>,
    /// Manage unless this expression is true
    #[property(template = never, format = Expression)]
    pub unless: Option<Spanned<String>>,
}

#[cfg(test)]
mod tests {
    use ccm_yaml::{Kind, Source};

    use super::*;
    use crate::resolve::PlainText;

    /// A type for tests
    #[derive(Clone, Debug, Default, ccm_macros::Properties)]
    struct Sample {
        #[property(common)]
        common: Common,
        /// Contents
        #[property(template = deferred, alias = "contents", conflicts("source"))]
        content: Option<String>,
        /// Codes
        returns: Vec<i32>,
        /// A secret
        #[property(secret)]
        password: Option<String>,
        /// A switch
        force: bool,
    }

    fn read(text: &str) -> (Sample, Vec<String>) {
        let source = Source::new("t", text);
        let Kind::Mapping(entries) = ccm_yaml::parse(&source).unwrap().kind else { panic!() };
        let mut reader = Reader::default();
        let mut sample = Sample::default();
        reader.fill(&mut sample, entries);
        let findings = reader
            .findings
            .into_iter()
            .map(|finding| {
                let place = source.position(finding.span.unwrap().start);
                let hint = finding.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                format!("{}:{}: {}{hint}", place.line, place.column, finding.message)
            })
            .collect();
        (sample, findings)
    }

    #[test]
    fn scalars_are_taken_as_written() {
        let (sample, findings) =
            read("name: 5.10\nensure: 0644\ncontents: true\nreturns: [0, 3]\n");
        assert_eq!(findings, [""; 0]);
        assert_eq!(sample.common.name, "5.10");
        assert_eq!(sample.common.ensure, "0644");
        assert_eq!(sample.content.as_deref(), Some("true"));
        assert_eq!(sample.returns, [0, 3]);
    }

    #[test]
    fn null_is_the_same_as_absent() {
        assert_eq!(read("name: x\ncontent: null\n").0.content, None);
        assert_eq!(read("name: x\ncontent:\n").0.content, None);
        assert_eq!(read("name: x\ncontent: ''\n").0.content.as_deref(), Some(""));
    }

    #[test]
    fn everything_wrong_is_found_in_one_pass() {
        let (_, findings) = read(
            "contnet: a\nreturns: [0, x]\nforce: \"true\"\ncontrol: {iff: a}\nrequire: [nope]\n\
             content: a\ncontents: b\nalias: [1]\n",
        );
        assert_eq!(
            findings,
            [
                "1:1: unknown property `contnet` (did you mean `content`?)",
                "2:14: returns: expected a whole number, found a string",
                "3:8: force: expected `true` or `false`, found `true` (write it as unquoted `true` or \
                 `false`)",
                "4:11: control: unknown property `iff` (did you mean `if`?)",
                "5:11: require: `nope` is not a reference: write `type#name`, such as `file#/etc/motd`",
                "7:1: `contents` is the same as `content`; set only one of them",
                "8:8: alias: expected a string, found a list",
            ]
        );
    }

    #[test]
    fn secrets_are_redacted_and_unset_fields_left_out() {
        let (sample, _) = read("name: x\npassword: hunter2\nreturns: [1]\nforce: true\n");
        assert_eq!(
            serde_json::to_string(&sample).unwrap(),
            r#"{"name":"x","returns":[1],"password":"[redacted]","force":true}"#
        );
    }

    #[test]
    fn phases_are_resolved_apart() {
        let (mut sample, _) = read("name: x\ncontent: '{{ a }}'\n");
        let mut failures = Vec::new();
        sample.resolve(Stage::Parse, &PlainText, &mut failures);
        assert!(failures.is_empty());
        sample.resolve(Stage::Apply, &PlainText, &mut failures);
        assert_eq!(Sample::FIELDS[failures[0].0].name, "content");
        let (mut named, _) = read("name: '{{ a }}'\ncontrol: {if: '{{ b }}'}\n");
        failures.clear();
        named.resolve(Stage::Parse, &PlainText, &mut failures);
        assert_eq!(failures.len(), 1);
        assert_eq!(Sample::FIELDS[failures[0].0].name, "name");
    }
}
