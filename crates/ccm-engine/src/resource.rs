//! Resources and types without their type parameters, as the engine and the
//! commands use them.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use ccm_host::{Host, Reach};
use ccm_model::{
    Common, Event, Field, Fields as _, Finding, Phase, Properties as _, REDACTED, Reader, Required,
    ResourceRef, SecretValues, Span, Stage, TemplateError, Templates, Verb, redact_credentials,
};
use ccm_template::{LoopItem, Resolver};
use ccm_yaml::{Entry, Source};
use serde_json::Value;

use crate::Result;
use crate::cli::CommandLine;
use crate::declare::{Ensure, Findings};
use crate::declared::ManagedPath;
use crate::manage::{AnyAhead, Foreseen, Manage, Turn};
use crate::manifest::Block;
use crate::manifest_run::{Child, Mode};
use crate::validate::{PropertySpans, check_table};

/// A type in the list of types.
pub trait AnyType: Sync {
    /// Its name in manifests.
    fn name(&self) -> &'static str;
    /// What it is for, one line.
    fn about(&self) -> &'static str;
    /// What the name of a resource of this type is, such as a path.
    fn name_doc(&self) -> &'static str;
    /// Its fields, those that all types have first.
    fn fields(&self) -> &'static [Field];
    /// The states that can be asked for.
    fn ensure(&self) -> Ensure;
    /// The names of its providers.
    fn providers(&self) -> Vec<&'static str>;
    /// How it looks at the command line; `None` for one that `ccm ensure` and
    /// the API do not offer.
    fn command_line(&self) -> Option<CommandLine>;
    /// Reads a resource; `span` is where it stands.
    fn declare(
        &self,
        entries: Vec<Entry<'_>>,
        span: Option<Span>,
        reader: &mut Reader,
    ) -> Box<dyn AnyResource>;
    /// Whether the `defaults` of a block set this property of a resource with
    /// this `ensure`.
    fn takes_default(&self, property: &str, ensure: &str) -> bool;
    /// Why `ccm status` cannot show one, where it cannot.
    fn no_status(&self) -> Option<&'static str>;
    /// The properties of a request that makes a resource react to what an undo
    /// restores, from its former state and from what the run did to it.
    fn reaction(&self, former: &Value, verbs: &[Verb]) -> Option<Value>;
}

/// A resource of any type.
pub trait AnyResource: Send {
    /// Its type.
    fn kind(&self) -> &'static str;
    /// The properties that all types have.
    fn common(&self) -> &Common;
    /// The resources whose change it reacts to.
    fn subscribe(&self) -> &[ResourceRef];
    /// Puts resources in the place of references to tags.
    fn expand_tags(&mut self, expand: &dyn Fn(&ResourceRef) -> Vec<ResourceRef>);
    /// Takes note of the block that it stands in.
    fn enter(&mut self, block: &Arc<Block>);
    /// The block that it stands in, if there is one around its type.
    fn block(&self) -> Option<&Arc<Block>>;
    /// The item of a loop that it was made for.
    fn item(&self) -> Option<&Arc<LoopItem>> {
        self.block()?.item.as_ref()
    }
    /// How much it may do in a manifest that may do this much.
    fn mode(&self, above: Mode) -> Mode;
    /// The manifest that it applies, if it applies one.
    fn child(&self) -> Option<Child<'_>>;
    /// Whether applying it can create a file at this absolute path, its child
    /// manifest aside.
    fn can_create(&self, path: &Path) -> bool;
    /// Whether it acts only when a resource changes that it subscribes to.
    fn is_refresh_only(&self) -> bool;
    /// What it may change beyond what a preview records of it.
    fn reach(&self) -> Reach;
    /// The paths that it manages.
    fn managed_paths(&self) -> Vec<ManagedPath>;
    /// The file whose whole content it writes.
    fn whole_file(&self) -> Option<&Path>;
    /// The file of which it changes a part.
    fn part_of(&self) -> Option<&Path>;
    /// Whether it removes what no resource declares.
    fn purges(&self) -> bool;
    /// The file or directory that it reads, as written; no URL.
    fn source(&self) -> Option<&str>;
    /// The errors in it that can be found without the run.
    fn check_source(&self, templates: &Resolver, path: &Path) -> Vec<String>;
    /// Display name: `type#name`, without credentials.
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
    /// The values of its properties that are secret in the whole run.
    fn secrets(&self) -> Vec<String> {
        self.secret_values().run
    }
    /// The values of its properties that are secret.
    fn secret_values(&self) -> SecretValues;
    /// Its properties, those that are secret redacted. Other secrets may be part
    /// of them: the run's redactor takes these out.
    fn properties(&self) -> Value;
    /// Chooses the provider: an index for the calls below, and its name.
    fn select_provider(&self, host: &Host) -> Result<(usize, &'static str)>;
    /// Whether its steps can be taken together with those of its neighbours.
    fn has_groups(&self) -> bool;
    /// See [`Manage::foresee`].
    fn foresee(&self, provider: usize, turn: &mut Turn<'_, '_, '_>) -> Option<Foreseen>;
    /// See [`Manage::survey`].
    fn survey(&self, provider: usize, host: &Host, noop: bool, names: &[&str]);
    /// See [`Manage::former_ahead`].
    fn former_ahead(&self, ahead: &AnyAhead) -> Option<Value>;
    /// See [`Manage::act_together`].
    fn act_together(
        &self,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        group: &mut [&mut AnyAhead],
    ) -> Result<()>;
    /// Manages it, and writes what became of it into the event.
    fn manage(&self, provider: usize, turn: &mut Turn<'_, '_, '_>, event: &mut Event)
    -> Result<()>;
    /// Its current state.
    fn status(&self, host: &Host, working_directory: &Path, templates: &Resolver) -> Result<Value>;
}

/// A template that could not be resolved, and the property it is in.
#[derive(Debug)]
pub struct PropertyError {
    /// The property.
    pub property: &'static str,
    /// Where it stands.
    pub span: Option<Span>,
    /// The error.
    pub error: TemplateError,
}

impl PropertyError {
    /// The same as a finding, as close to the part that is wrong as possible.
    pub fn finding(&self, source: Option<&Source>) -> Finding {
        let place = self.error.place.as_ref();
        let exact = self.span.and_then(|span| place?.within(source?, span));
        let message = match exact {
            Some(_) => format!("{}: {}", self.property, self.error.message),
            None => format!("{}: {}", self.property, self.error),
        };
        Finding::error(exact.or(self.span), message).hint(self.error.hint.clone())
    }
}

/// The templates as a resource sees them: with the variables of its loop.
pub fn templates_of<'t>(resource: &dyn AnyResource, templates: &'t Resolver) -> Cow<'t, Resolver> {
    match resource.item() {
        Some(item) if !templates.item().is_some_and(|known| Arc::ptr_eq(known, item)) => {
            Cow::Owned(templates.with_item(item))
        }
        _ => Cow::Borrowed(templates),
    }
}

/// Resolves the templates of the first phase, and finds everything that is
/// wrong by then. `source` is the text that the resource stands in.
pub(crate) fn resolve_and_check(
    resource: &mut dyn AnyResource,
    templates: &Resolver,
    source: Option<&Source>,
) -> Vec<Finding> {
    let failures = resource.resolve(Stage::Parse, templates);
    let failures =
        failures.into_iter().map(|failure| failure.finding(source).of(resource.display()));
    let mut findings: Vec<Finding> = failures.collect();
    findings.extend(resource.findings(templates.host()));
    findings
}

/// The type of that name in a list.
pub fn find_type(types: &[&'static dyn AnyType], name: &str) -> Option<&'static dyn AnyType> {
    types.iter().copied().find(|kind| {
        let aliases = kind.command_line().map_or(&[][..], |view| view.aliases);
        kind.name() == name || aliases.contains(&name)
    })
}

/// Makes a type an [`AnyType`], for lists of types.
pub struct Erased<T>(PhantomData<fn() -> T>);

impl<T> Erased<T> {
    /// The one value.
    pub const NEW: Self = Self(PhantomData);
}

impl<T: Manage> AnyType for Erased<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn about(&self) -> &'static str {
        T::ABOUT
    }

    fn name_doc(&self) -> &'static str {
        T::NAME_DOC
    }

    fn fields(&self) -> &'static [Field] {
        T::Properties::FIELDS
    }

    fn ensure(&self) -> Ensure {
        T::ENSURE
    }

    fn providers(&self) -> Vec<&'static str> {
        T::providers()
    }

    fn command_line(&self) -> Option<CommandLine> {
        T::COMMAND_LINE
    }

    fn declare(
        &self,
        entries: Vec<Entry<'_>>,
        span: Option<Span>,
        reader: &mut Reader,
    ) -> Box<dyn AnyResource> {
        let mut want = T::Properties::default();
        let known = reader.findings.len();
        let properties = reader.fill(&mut want, entries);
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
        let places = PropertySpans { resource: span, properties, unresolved: Vec::new() };
        Box::new(Declared::<T> { want, places, subscribe: None, block: None })
    }

    fn takes_default(&self, property: &str, ensure: &str) -> bool {
        T::takes_default(property, ensure)
    }

    fn no_status(&self) -> Option<&'static str> {
        T::NO_STATUS
    }

    fn reaction(&self, former: &Value, verbs: &[Verb]) -> Option<Value> {
        <T as Manage>::reaction(former, verbs)
    }
}

/// A resource as it was declared.
struct Declared<T: Manage> {
    want: T::Properties,
    places: PropertySpans,
    /// What it subscribes to, if tags had to be expanded.
    subscribe: Option<Vec<ResourceRef>>,
    block: Option<Arc<Block>>,
}

impl<T: Manage> Declared<T> {
    fn field(name: &str) -> usize {
        let found = T::Properties::FIELDS.iter().position(|field| field.is_called(name));
        found.unwrap_or(usize::MAX)
    }
}

impl<T: Manage> AnyResource for Declared<T> {
    fn kind(&self) -> &'static str {
        T::NAME
    }

    fn common(&self) -> &Common {
        self.want.common()
    }

    fn subscribe(&self) -> &[ResourceRef] {
        self.subscribe.as_deref().unwrap_or_else(|| T::subscribe(&self.want))
    }

    fn expand_tags(&mut self, expand: &dyn Fn(&ResourceRef) -> Vec<ResourceRef>) {
        let has_tags = |list: &[ResourceRef]| list.iter().any(ResourceRef::is_tag);
        let expanded =
            |list: &[ResourceRef]| list.iter().flat_map(expand).collect::<Vec<ResourceRef>>();
        if has_tags(T::subscribe(&self.want)) {
            self.subscribe = Some(expanded(T::subscribe(&self.want)));
        }
        let require = &mut self.want.common_mut().require;
        if has_tags(require) {
            *require = expanded(require);
        }
    }

    fn enter(&mut self, block: &Arc<Block>) {
        self.want.common_mut().tags.extend(block.tags.iter().cloned());
        self.block = Some(Arc::clone(block));
    }

    fn block(&self) -> Option<&Arc<Block>> {
        self.block.as_ref()
    }

    fn mode(&self, above: Mode) -> Mode {
        T::mode(&self.want, above)
    }

    fn child(&self) -> Option<Child<'_>> {
        T::child(&self.want)
    }

    fn can_create(&self, path: &Path) -> bool {
        T::can_create(&self.want, path)
    }

    fn is_refresh_only(&self) -> bool {
        T::is_refresh_only(&self.want)
    }

    fn reach(&self) -> Reach {
        T::REACH
    }

    fn managed_paths(&self) -> Vec<ManagedPath> {
        T::managed_paths(&self.want)
    }

    fn whole_file(&self) -> Option<&Path> {
        T::whole_file(&self.want)
    }

    fn part_of(&self) -> Option<&Path> {
        T::part_of(&self.want)
    }

    fn purges(&self) -> bool {
        T::purges(&self.want)
    }

    fn source(&self) -> Option<&str> {
        T::source(&self.want)
    }

    fn check_source(&self, templates: &Resolver, path: &Path) -> Vec<String> {
        T::check_source(&self.want, templates, path)
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
        T::settle(&mut self.want);
        if stage == Stage::Parse {
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
            let finding = Finding::error(self.places.of(index), message).hint(found.hint);
            all.push(Finding { severity: found.severity, ..finding });
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

    fn secret_values(&self) -> SecretValues {
        let mut secrets = SecretValues::default();
        self.want.secrets(&mut secrets);
        secrets
    }

    fn properties(&self) -> Value {
        // Properties are text, numbers, lists and maps: nothing that JSON lacks.
        let mut properties = serde_json::to_value(&self.want).unwrap_or_default();
        for name in T::secrets(&self.want) {
            if let Some(secret) = properties.get_mut(name) {
                *secret = REDACTED.into();
            }
        }
        properties
    }

    fn select_provider(&self, host: &Host) -> Result<(usize, &'static str)> {
        T::select_provider(&self.want, host)
    }

    fn has_groups(&self) -> bool {
        T::HAS_GROUPS && T::Properties::FIELDS.iter().all(|field| field.phase != Phase::Deferred)
    }

    fn foresee(&self, provider: usize, turn: &mut Turn<'_, '_, '_>) -> Option<Foreseen> {
        T::foresee(&self.want, provider, turn)
    }

    fn survey(&self, provider: usize, host: &Host, noop: bool, names: &[&str]) {
        T::survey(provider, host, noop, names);
    }

    fn former_ahead(&self, ahead: &AnyAhead) -> Option<Value> {
        T::former_ahead(&self.want, ahead)
    }

    fn act_together(
        &self,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        group: &mut [&mut AnyAhead],
    ) -> Result<()> {
        T::act_together(&self.want, provider, turn, group)
    }

    fn manage(
        &self,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        event: &mut Event,
    ) -> Result<()> {
        T::manage(&self.want, provider, turn, event)
    }

    fn status(&self, host: &Host, working_directory: &Path, templates: &Resolver) -> Result<Value> {
        T::status(&self.want, host, working_directory, templates)
    }
}

/// The same error without the expression, which may contain the secret itself.
fn hidden(error: TemplateError) -> TemplateError {
    let message = "the template cannot be resolved";
    let hint = "ccm does not show expressions of secret properties; test the expression in another property";
    let hint = Some(hint.to_owned());
    TemplateError { place: error.place, hint, ..TemplateError::new(message) }
}
