//! Groups: adjacent resources whose steps are taken together, by one command
//! instead of one for each.
//!
//! A group is formed at the turn of its first resource. The engine observes and
//! decides its members ahead, records what they are, and lets the provider take
//! all steps. Then each member has its turn as always; only its steps are taken
//! already. What the group could not do, a member does at its turn, so an error
//! belongs to the resource that causes it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use ccm_model::{GroupPlace, ResourceRef, Spanned};

use crate::chain;
use crate::history::GroupMember;
use crate::lifecycle::{LifecycleContext, Repeated};
use crate::manage::{AnyAhead, Foreseen, Turn, names_of};
use crate::manifest_run::ManifestFrame;
use crate::resource::{AnyResource, templates_of};
use crate::resource_type::Trigger;
use crate::run::references;
use crate::selection::Choice;

/// No command gets longer than this many names make it.
const MAX_MEMBERS: usize = 200;

/// The members of a group whose turns are still to come, by their index in the
/// manifest.
#[derive(Default)]
pub(crate) struct Group {
    members: HashMap<usize, TakenAhead>,
    /// The index of the first resource that was not looked at.
    end: usize,
    /// Whether all steps were taken.
    is_done: bool,
    provider: usize,
}

/// What is known of a member at its turn.
pub(crate) struct TakenAhead {
    pub(crate) ahead: AnyAhead,
    pub(crate) place: GroupPlace,
    /// Its share of the time.
    pub(crate) share: Duration,
}

/// A resource that may become a member.
struct Candidate<'a> {
    index: usize,
    resource: &'a dyn AnyResource,
    ahead: AnyAhead,
    kind: &'static str,
}

impl Group {
    /// Whether a resource may begin a group.
    pub(crate) fn is_over(&self, index: usize) -> bool {
        index >= self.end
    }

    pub(crate) fn take(&mut self, index: usize) -> Option<TakenAhead> {
        self.members.remove(&index)
    }

    /// Whether the last member had its turn.
    pub(crate) fn is_at_end(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether members are changed already, and only wait for their turns.
    pub(crate) fn is_owing_turns(&self) -> bool {
        self.is_done && !self.members.is_empty()
    }
}

/// Whether a resource is part of the group that is being formed.
enum Outlook {
    /// It is, if its type agrees.
    Member,
    /// It is not, and the group goes on after it: it will be skipped.
    Out,
    /// The group ends before it.
    End,
}

impl LifecycleContext<'_, '_> {
    /// Forms the group that begins with a resource, and takes its steps. `rest`
    /// are the resources after it.
    pub(crate) fn form_group(
        &mut self,
        first: &dyn AnyResource,
        index: usize,
        rest: &VecDeque<Box<dyn AnyResource>>,
    ) -> Group {
        let mut group = Group { end: index + 1, ..Group::default() };
        let is_off = !self.options.groups || self.frame.mode.health_check_only;
        if is_off || !first.has_groups() {
            return group;
        }
        if !rest.iter().any(|next| next.kind() == first.kind()) {
            return group;
        }
        let host = self.frame.templates.host();
        let Ok((provider, _)) = first.select_provider(host) else { return group };
        group.provider = provider;
        let others = rest.iter().map(|resource| &**resource);
        let resources = || std::iter::once(first).chain(others.clone());
        // One look serves those that come later too, as long as nothing changes.
        let known = resources().filter(|resource| {
            resource.kind() == first.kind() && self.is_wanted(*resource) != Some(false)
        });
        let known = known.map(|resource| resource.common().name.as_str());
        let known: Vec<&str> = known.take(MAX_MEMBERS).collect();
        first.survey(provider, host, self.frame.mode.noop, &known);
        let resources = resources().take_while(|resource| resource.kind() == first.kind());
        let resources: Vec<&dyn AnyResource> = resources.take(MAX_MEMBERS).collect();
        if resources.len() < 2 {
            return group;
        }
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        let mut names = HashSet::new();
        for (at, resource) in resources.into_iter().enumerate() {
            if self.is_apart(resource, index + at, (first, provider)) {
                break;
            }
            let outlook = self.outlook(resource, &names);
            let foreseen = match outlook {
                Outlook::Member => self.foresee(resource, provider),
                Outlook::Out => {
                    group.end = index + at + 1;
                    continue;
                }
                Outlook::End => break,
            };
            match foreseen {
                Some(Foreseen::Together(kind, ahead))
                    if candidates.first().is_none_or(|first| first.kind == kind) =>
                {
                    candidates.push(Candidate { index: index + at, resource, ahead, kind });
                }
                Some(Foreseen::Stable) => {}
                _ => break,
            }
            group.end = index + at + 1;
            // Whether its health is good is known only at its turn.
            if resource.common().health_checks.is_empty() {
                names.extend(references(resource));
            } else if self.frame.fail_on_error {
                break;
            }
        }
        if candidates.len() < 2 {
            return group;
        }
        self.act_together(candidates, &mut group);
        group
    }

    /// The run stops before the turns of some members; `rest` are the resources from
    /// index `next`. Those that have nothing left to do were changed with the group,
    /// so who subscribes to them owes a reaction.
    pub(crate) fn leave_group(
        &mut self,
        group: &Group,
        rest: &VecDeque<Box<dyn AnyResource>>,
        next: usize,
    ) {
        for index in group.members.keys() {
            let Some(resource) = index.checked_sub(next).and_then(|at| rest.get(at)) else {
                continue;
            };
            let is_left = self.foresee(&**resource, group.provider);
            if !matches!(is_left, Some(Foreseen::Together(..))) {
                let (_, by) = names_of(resource.kind(), resource.common(), self.frame);
                self.record.owed.keep_for_group(&by);
            }
        }
        self.record.owed.end_group(&self.options.host);
    }

    /// Whether a group ends before a resource, whatever its state.
    fn is_apart(
        &self,
        resource: &dyn AnyResource,
        index: usize,
        (first, provider): (&dyn AnyResource, usize),
    ) -> bool {
        let host = self.frame.templates.host();
        resource.kind() != first.kind()
            || self.frame.repeated.contains_key(&index)
            || resource.mode(self.frame.mode) != self.frame.mode
            || resource.select_provider(host).map(|found| found.0).ok() != Some(provider)
    }

    /// Whether a resource is part of a group with those of these names.
    fn outlook(&mut self, resource: &dyn AnyResource, names: &HashSet<String>) -> Outlook {
        if self.choose(resource) != Choice::Chosen {
            return Outlook::Out;
        }
        match self.is_wanted(resource) {
            Some(true) => {}
            Some(false) => return Outlook::Out,
            None => return Outlook::End,
        }
        for reference in &resource.common().require {
            if self.record.is_owing(reference) {
                return Outlook::Out;
            }
            if self.record.is_passed_over(reference) || names.contains(&reference.to_string()) {
                continue;
            }
            match self.last_of(reference) {
                Some((is_met, _)) if is_met => {}
                Some(_) => return Outlook::Out,
                None => return Outlook::End,
            }
        }
        let subscribes = resource.subscribe();
        let reacts = subscribes.iter().any(|reference| {
            let is_passed_over = self.record.is_passed_over(reference);
            !is_passed_over && self.last_of(reference).is_none_or(|(_, has_changed)| has_changed)
        });
        if reacts || self.owed_from_earlier(resource).is_some() {
            Outlook::End
        } else {
            Outlook::Member
        }
    }

    /// Whether a resource that has had its turn counts as met, and whether its
    /// subscribers react.
    fn last_of(&mut self, reference: &ResourceRef) -> Option<(bool, bool)> {
        let last = self.last(reference).ok()?;
        Some((!last.failed && !last.unmet, last.changed || last.provisional))
    }

    /// What `control` says; `None` if that may be something else at the turn of the
    /// resource, because it calls functions.
    fn is_wanted(&self, resource: &dyn AnyResource) -> Option<bool> {
        let of_block = resource.block().map_or(&[][..], |block| &block.control);
        let controls = of_block.iter().chain(&resource.common().control);
        let templates = templates_of(resource, &self.frame.templates);
        let evaluate = |expression: &Option<Spanned<String>>, unset| match expression {
            None => Some(unset),
            Some(Spanned { value, .. }) if value.contains('(') => None,
            Some(Spanned { value, .. }) => templates.condition(value).ok(),
        };
        for control in controls {
            if !evaluate(&control.r#if, true)? || evaluate(&control.unless, false)? {
                return Some(false);
            }
        }
        Some(true)
    }

    fn foresee(&mut self, resource: &dyn AnyResource, provider: usize) -> Option<Foreseen> {
        self.in_turn(resource, |turn| resource.foresee(provider, turn))
    }

    /// Takes the steps of all members, or foresees them in a preview.
    fn act_together(&mut self, members: Vec<Candidate<'_>>, group: &mut Group) {
        let begin = Instant::now();
        let (noop, provider) = (self.frame.mode.noop, group.provider);
        let host = &self.options.host;
        let Some(first) = members.first().map(|first| first.resource) else { return };
        if noop {
            self.frame.templates.host().begin_prediction(&first.display());
        } else if self.record_group(&members).is_err() {
            // Each of them says why at its turn.
            return self.record.owed.end_group(host);
        }
        let size = members.len();
        let mut members = members;
        let mut aheads: Vec<&mut AnyAhead> =
            members.iter_mut().map(|member| &mut member.ahead).collect();
        let taken = self.in_turn(first, |turn| first.act_together(provider, turn, &mut aheads));
        if let Err(error) = &taken {
            let reason = host.redactor().text(&chain(error)).into_owned();
            tracing::info!("ccm manages {size} resources one by one: {reason}");
        }
        group.is_done = taken.is_ok() && !noop;
        if !noop {
            let names: Vec<&str> =
                members.iter().map(|member| member.resource.common().name.as_str()).collect();
            first.survey(provider, self.frame.templates.host(), noop, &names);
        }
        let share = begin.elapsed() / u32::try_from(size).unwrap_or(u32::MAX);
        for (at, Candidate { index, ahead, .. }) in members.into_iter().enumerate() {
            let place = GroupPlace { index: at, size };
            group.members.insert(index, TakenAhead { ahead, place, share });
        }
    }

    /// Records what the members are, and what those who subscribe to them will owe.
    fn record_group(&mut self, members: &[Candidate<'_>]) -> crate::Result<()> {
        let mut states: Vec<GroupMember> = Vec::new();
        for Candidate { resource, ahead, .. } in members {
            let (kind, common) = (resource.kind(), resource.common());
            let (names, by) = names_of(kind, common, self.frame);
            self.record.owed.before_group_change(&names, &by, self.types, self.options)?;
            if let Some(state) = resource.former_ahead(ahead) {
                states.push((kind, common.name.clone(), self.frame.route.clone(), state));
            }
        }
        self.record.history.before_group(&states, &self.options.host)
    }

    /// Calls `work` with the turn of a resource that has not come yet.
    fn in_turn<R>(
        &mut self,
        resource: &dyn AnyResource,
        work: impl FnOnce(&mut Turn<'_, '_, '_>) -> R,
    ) -> R {
        match resource.item() {
            Some(item) => {
                let frame: ManifestFrame = self.frame.with_item(item);
                self.within(&frame).in_frame(resource, work)
            }
            None => self.in_frame(resource, work),
        }
    }

    fn in_frame<R>(
        &mut self,
        resource: &dyn AnyResource,
        work: impl FnOnce(&mut Turn<'_, '_, '_>) -> R,
    ) -> R {
        let mode = resource.mode(self.frame.mode);
        let key = self.decision_key(resource, Repeated::default());
        work(&mut Turn {
            run: self,
            mode,
            trigger: Trigger::Turn,
            awaited: None,
            key,
            is_chosen: true,
            diff: None,
            kept_diff: None,
            hidden: &[],
            ahead: None,
        })
    }
}
