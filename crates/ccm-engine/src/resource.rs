//! Resources and types as the engine and the faces see them: without their
//! type parameters.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::path::Path;

use ccm_host::Host;
use ccm_model::{
    Common, Event, Field, Fields as _, Finding, Properties as _, REDACTED, Reader, Required,
    ResourceRef, Span, Stage, TemplateError, Templates, redact_credentials,
};
use ccm_template::Engine;
use ccm_yaml::{Entry, Source};
use serde_json::{Map, Value};

use crate::cli::CommandLine;
use crate::converge::{Outcome, converge};
use crate::nested::{Child, Nowhere};
use crate::resource_type::{
    Context, Detail, Diffs, Ensure, Findings, ProviderDef, ResourceType, State, Trigger,
};
use crate::validate::{Places, check_table};
use crate::{Error, Result};

/// A type in the list of types.
pub trait AnyType: Sync {
    /// Its name in manifests.
    fn name(&self) -> &'static str;
    /// What it is for, one line.
    fn about(&self) -> &'static str;
    /// Its fields, those that all types have first.
    fn fields(&self) -> &'static [Field];
    /// The states that can be asked for.
    fn ensure(&self) -> Ensure;
    /// The names of its providers.
    fn providers(&self) -> Vec<&'static str>;
    /// How it looks at the command line.
    fn command_line(&self) -> CommandLine;
    /// Whether its resources bring resources of their own.
    fn nests(&self) -> bool;
    /// Reads a resource; `span` is where it stands.
    fn declare(
        &self,
        entries: Vec<Entry<'_>>,
        span: Option<Span>,
        reader: &mut Reader,
    ) -> Box<dyn AnyResource>;
    /// Why `ccm status` cannot show one, where it cannot.
    fn no_status(&self) -> Option<&'static str>;
}

/// A resource of any type.
pub trait AnyResource {
    /// Its type.
    fn kind(&self) -> &'static str;
    /// The properties that all types have.
    fn common(&self) -> &Common;
    /// The resources whose change it reacts to.
    fn subscribe(&self) -> &[ResourceRef];
    /// The manifest that it brings, if it does.
    fn child(&self) -> Option<Child<'_>>;
    /// What people call it: `type#name`, without credentials.
    fn display(&self) -> String {
        redact_credentials(&format!("{}#{}", self.kind(), self.common().name)).into_owned()
    }
    /// Whether its name is known: its template has not failed.
    fn has_name(&self) -> bool;
    /// Where it stands in the source.
    fn span(&self) -> Option<Span>;
    /// Where a property stands.
    fn property_span(&self, name: &str) -> Option<Span>;
    /// Where a reference stands in the list that a property is.
    fn reference_span(&self, name: &str, item: usize) -> Option<Span>;
    /// Resolves the templates of a stage.
    fn resolve(&mut self, stage: Stage, templates: &dyn Templates) -> Vec<PropertyError>;
    /// Everything that is wrong when a manifest is resolved.
    fn findings(&self, host: &Host) -> Vec<Finding>;
    /// What is wrong now that deferred templates are resolved.
    fn check_resolved(&self, host: &Host) -> Result<()>;
    /// Its properties, secrets redacted.
    fn properties(&self) -> Value;
    /// Chooses the provider: an index for the calls below, and its name.
    fn select_provider(&self, host: &Host) -> Result<(usize, &'static str)>;
    /// Brings it to its desired state and writes what became of it into the
    /// event. The diff, if one was asked for, is given back.
    fn apply(
        &self,
        provider: usize,
        how: How<'_>,
        event: &mut Event,
    ) -> (Option<String>, Result<()>);
    /// Its current state.
    fn status(&self, host: &Host, working_directory: &Path, templates: &Engine) -> Result<Value>;
}

/// A template that could not be resolved, and the property it is in.
#[derive(Debug)]
pub struct PropertyError {
    /// The property.
    pub property: &'static str,
    /// Where it stands.
    pub span: Option<Span>,
    /// What is wrong.
    pub error: TemplateError,
}

impl PropertyError {
    /// The same as a finding, as close to the part that is wrong as possible.
    pub(crate) fn finding(&self, source: Option<&Source>) -> Finding {
        let place = self.error.place.as_ref();
        let exact = self.span.and_then(|span| place?.within(source?, span));
        let message = match exact {
            Some(_) => format!("{}: {}", self.property, self.error.message),
            None => format!("{}: {}", self.property, self.error),
        };
        Finding::error(exact.or(self.span), message).hint(self.error.hint.clone())
    }
}

/// Resolves the templates of the first phase, and finds everything that is
/// wrong by then. `source` is the text that the resource stands in.
pub(crate) fn resolve_and_check(
    resource: &mut dyn AnyResource,
    templates: &Engine,
    source: Option<&Source>,
) -> Vec<Finding> {
    let failures = resource.resolve(Stage::Parse, templates);
    let failures =
        failures.into_iter().map(|failure| failure.finding(source).of(resource.display()));
    let mut findings: Vec<Finding> = failures.collect();
    findings.extend(resource.findings(templates.host()));
    findings
}

/// How a resource is applied.
pub struct How<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Only say what would be done.
    pub noop: bool,
    /// Which diffs to make.
    pub diffs: Diffs,
    /// What the provider may use.
    pub context: Context<'a>,
}

/// The type of that name in a list.
pub fn find_type(types: &[&'static dyn AnyType], name: &str) -> Option<&'static dyn AnyType> {
    types
        .iter()
        .copied()
        .find(|kind| kind.name() == name || kind.command_line().aliases.contains(&name))
}

/// Makes a [`ResourceType`] an [`AnyType`], for lists of types.
pub struct Erased<T>(PhantomData<fn() -> T>);

impl<T> Erased<T> {
    /// The one value.
    pub const NEW: Self = Self(PhantomData);
}

impl<T: ResourceType> AnyType for Erased<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn about(&self) -> &'static str {
        T::ABOUT
    }

    fn fields(&self) -> &'static [Field] {
        T::Properties::FIELDS
    }

    fn ensure(&self) -> Ensure {
        T::ENSURE
    }

    fn providers(&self) -> Vec<&'static str> {
        T::PROVIDERS.iter().map(|provider| provider.name).collect()
    }

    fn command_line(&self) -> CommandLine {
        T::COMMAND_LINE
    }

    fn nests(&self) -> bool {
        T::NESTS
    }

    fn declare(
        &self,
        entries: Vec<Entry<'_>>,
        span: Option<Span>,
        reader: &mut Reader,
    ) -> Box<dyn AnyResource> {
        let mut want = T::Properties::default();
        let known = reader.findings.len();
        let properties = reader.fill(&mut want, entries, "property");
        let name = &want.common().name;
        if !name.is_empty() {
            for finding in &mut reader.findings[known..] {
                let named = redact_credentials(&format!("{}#{name}", T::NAME)).into_owned();
                finding.resource.get_or_insert(named);
            }
        }
        let ensure = &mut want.common_mut().ensure;
        if ensure.is_empty() {
            T::ENSURE.default().clone_into(ensure);
        }
        let properties = properties.into();
        let places = Places { resource: span, properties, unresolved: Vec::new() };
        Box::new(Declared::<T> { want, places })
    }

    fn no_status(&self) -> Option<&'static str> {
        T::NO_STATUS
    }
}

/// A resource as it was declared.
struct Declared<T: ResourceType> {
    want: T::Properties,
    places: Places,
}

impl<T: ResourceType> Declared<T> {
    fn reference(&self) -> ResourceRef {
        ResourceRef::new(T::NAME, &*self.want.common().name)
    }

    fn field(name: &str) -> usize {
        let found = T::Properties::FIELDS.iter().position(|field| field.is_called(name));
        found.unwrap_or(usize::MAX)
    }

    fn open(&self, provider: usize, host: &Host) -> Box<T::Provider> {
        (T::PROVIDERS[provider].open)(host)
    }
}

impl<T: ResourceType> AnyResource for Declared<T> {
    fn kind(&self) -> &'static str {
        T::NAME
    }

    fn common(&self) -> &Common {
        self.want.common()
    }

    fn subscribe(&self) -> &[ResourceRef] {
        T::subscribe(&self.want)
    }

    fn child(&self) -> Option<Child<'_>> {
        T::child(&self.want)
    }

    fn has_name(&self) -> bool {
        !self.places.is_unresolved(Self::field("name"))
    }

    fn span(&self) -> Option<Span> {
        self.places.resource
    }

    fn property_span(&self, name: &str) -> Option<Span> {
        self.places.of(Self::field(name))
    }

    fn reference_span(&self, name: &str, item: usize) -> Option<Span> {
        self.places.of_item(Self::field(name), item)
    }

    fn resolve(&mut self, stage: Stage, templates: &dyn Templates) -> Vec<PropertyError> {
        let mut failures = Vec::new();
        self.want.resolve(stage, templates, &mut failures);
        if stage == Stage::Parse {
            T::settle(&mut self.want);
            self.places.unresolved = failures.iter().map(|(index, _)| *index as u8).collect();
        }
        let located = |(index, error): (usize, TemplateError)| {
            let field = &T::Properties::FIELDS[index];
            PropertyError {
                property: field.name,
                span: self.places.of(index),
                error: if field.secret || field.secret_values { hidden(error) } else { error },
            }
        };
        failures.into_iter().map(located).collect()
    }

    fn findings(&self, host: &Host) -> Vec<Finding> {
        let mut all = check_table::<T>(&self.want, T::Properties::FIELDS, &self.places);
        let mut findings = Findings::new(host);
        T::validate(&self.want, Stage::Parse, &mut findings);
        for found in findings.into_inner() {
            let index = Self::field(found.property);
            if self.places.is_unresolved(index) {
                continue;
            }
            let is_required =
                T::Properties::FIELDS.get(index).is_some_and(|f| f.required != Required::Never);
            // What is missing is said already, not what is wrong with it too.
            if is_required && !self.places.has(index) {
                continue;
            }
            let message = format!("{}: {}", found.property, found.message);
            all.push(Finding::error(self.places.of(index), message).hint(found.hint));
        }
        if !all.is_empty() {
            let name = self.display();
            for finding in &mut all {
                finding.resource = Some(name.clone());
            }
        }
        all
    }

    fn check_resolved(&self, host: &Host) -> Result<()> {
        let mut findings = Findings::new(host);
        T::validate(&self.want, Stage::Apply, &mut findings);
        findings.into_result()
    }

    fn properties(&self) -> Value {
        // Properties are text, numbers, lists and maps: nothing that JSON lacks.
        let mut properties = serde_json::to_value(&self.want).unwrap_or_default();
        for name in T::secrets(&self.want) {
            if let Some(secret) = properties.get_mut(name) {
                *secret = REDACTED.into();
            }
        }
        redact(&mut properties);
        properties
    }

    fn select_provider(&self, host: &Host) -> Result<(usize, &'static str)> {
        let rank = |provider: &ProviderDef<T>| (provider.rank)(host, &self.want);
        if let Some(name) = &self.want.common().provider {
            let index = T::PROVIDERS.iter().position(|provider| provider.name == name);
            let index = index.ok_or_else(|| Error::UnknownProvider {
                name: name.clone(),
                kind: T::NAME,
                known: T::PROVIDERS.iter().map(|provider| provider.name).collect(),
            })?;
            let provider = &T::PROVIDERS[index];
            return match rank(provider) {
                Some(_) => Ok((index, provider.name)),
                None => Err(Error::UnsuitableProvider {
                    name: name.clone(),
                    resource: self.reference(),
                }),
            };
        }
        T::PROVIDERS
            .iter()
            .enumerate()
            .filter_map(|(index, provider)| Some((rank(provider)?, index, provider.name)))
            .min()
            .map(|(_, index, name)| (index, name))
            .ok_or_else(|| Error::NoProvider {
                resource: self.reference(),
                tried: T::PROVIDERS.iter().map(|provider| provider.name).collect(),
            })
    }

    fn apply(
        &self,
        provider: usize,
        mut how: How<'_>,
        event: &mut Event,
    ) -> (Option<String>, Result<()>) {
        let mut on = self.open(provider, how.host);
        let mut outcome = Outcome::default();
        let cx = &mut how.context;
        let result = converge::<T>(&mut on, &self.want, how.noop, how.diffs, cx, &mut outcome);
        event.changed = outcome.changed && result.is_ok();
        event.refreshed = event.changed && outcome.refreshed;
        event.noop_message = outcome.noop_message;
        if let Some(state) = &outcome.state {
            state.ensure().clone_into(&mut event.final_ensure);
            if cx.detail >= Detail::Report {
                event.status = status(T::NAME, state, event, result.is_err());
            }
        }
        (outcome.diff, result)
    }

    fn status(&self, host: &Host, working_directory: &Path, templates: &Engine) -> Result<Value> {
        let (provider, _) = self.select_provider(host)?;
        let mut cx = Context {
            working_directory,
            templates,
            trigger: Trigger::Turn,
            detail: Detail::Inspect,
            output: &mut |_| {},
            nested: &mut Nowhere,
        };
        let state = T::observe(&mut self.open(provider, host), &self.want, &mut cx)?;
        let event = Event {
            name: self.want.common().name.clone(),
            timestamp: host.now(),
            ..Event::default()
        };
        Ok(status(T::NAME, &state, &event, false))
    }
}

/// The same error without the expression, which may contain the secret itself.
fn hidden(error: TemplateError) -> TemplateError {
    let message = "the template cannot be resolved";
    let hint = "ccm does not show expressions of secret properties; test the expression in another property";
    let hint = Some(hint.to_owned());
    TemplateError { place: error.place, hint, ..TemplateError::new(message) }
}

/// Takes credentials out of every URL.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redact_credentials(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(map) => map.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The common fields of a status and those that its type adds.
fn status<S: State>(kind: &str, state: &S, event: &Event, failed: bool) -> Value {
    let mut map = Map::new();
    map.insert("timestamp".into(), event.timestamp.to_string().into());
    map.insert("protocol".into(), format!("io.choria.ccm.v1.resource.{kind}.state").into());
    map.insert("type".into(), kind.into());
    map.insert("name".into(), event.name.as_str().into());
    map.insert("ensure".into(), state.ensure().into());
    map.insert("changed".into(), event.changed.into());
    map.insert("refreshed".into(), event.refreshed.into());
    map.insert("stable".into(), (!event.changed && !failed).into());
    map.insert("noop".into(), event.noop.into());
    if let Some(message) = &event.noop_message {
        map.insert("noop_message".into(), message.as_str().into());
    }
    if let Ok(Value::Object(own)) = serde_json::to_value(state) {
        map.extend(own);
    }
    Value::Object(map)
}
