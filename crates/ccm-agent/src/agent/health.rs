//! Health of the agent, as `/healthz` reports it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::schedule::Moment;

/// The loop turns at least this often.
const TURN: Duration = Duration::from_mins(1);

/// What the loop says of itself, read by other threads.
#[derive(Default)]
pub(super) struct HealthState(Mutex<State>);

#[derive(Default)]
struct State {
    turned: Option<Moment>,
    interval: Duration,
    /// Missing sources, with the time since when.
    missing: Vec<(String, Moment)>,
    /// Manifests whose newest version is invalid.
    invalid: BTreeSet<String>,
}

impl HealthState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop has turned.
    pub(super) fn turned(&self, now: Moment) {
        self.state().turned = Some(now);
    }

    /// These manifests or data are not there.
    pub(super) fn set_missing(&self, names: Vec<String>, interval: Duration, now: Moment) {
        let mut state = self.state();
        state.interval = interval;
        let before = std::mem::take(&mut state.missing);
        let since = |name: &String| {
            before.iter().find(|(known, _)| known == name).map_or(now, |(_, since)| *since)
        };
        state.missing = names.into_iter().map(|name| (name.clone(), since(&name))).collect();
    }

    /// Whether the newest version of a manifest is invalid.
    pub(super) fn set_invalid(&self, name: &str, is_invalid: bool) {
        let mut state = self.state();
        if is_invalid {
            state.invalid.insert(name.to_owned());
        } else {
            state.invalid.remove(name);
        }
    }

    /// Everything that is not well.
    pub(super) fn check(&self, now: Moment) -> Result<(), Vec<String>> {
        let state = self.state();
        let mut reasons = Vec::new();
        if let Some(turned) = state.turned
            && now.saturating_sub(turned) > TURN
        {
            let seconds = now.saturating_sub(turned).as_secs();
            reasons.push(format!("the scheduler has not responded for {seconds}s"));
        }
        let limit = state.interval * 2;
        for (name, since) in &state.missing {
            let seconds = now.saturating_sub(*since);
            if seconds > limit {
                reasons.push(format!("{name} has been missing for {}s", seconds.as_secs()));
            }
        }
        let invalid = state.invalid.iter();
        reasons.extend(invalid.map(|name| format!("{name} is invalid and not applied")));
        if reasons.is_empty() { Ok(()) } else { Err(reasons) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_too_long_is_not_well() {
        let at = Duration::from_secs;
        let health = HealthState::default();
        assert_eq!(health.check(at(1000)), Ok(()), "it has not begun");
        health.turned(at(1000));
        assert_eq!(health.check(at(1060)), Ok(()));
        assert!(health.check(at(1061)).unwrap_err()[0].contains("has not responded for 61s"));
        health.set_missing(vec!["m".into()], at(30), at(1000));
        health.set_missing(vec!["m".into(), "d".into()], at(30), at(1050));
        health.turned(at(1061));
        assert_eq!(health.check(at(1061)), Err(vec!["m has been missing for 61s".to_owned()]));
        health.set_missing(Vec::new(), at(30), at(1062));
        assert_eq!(health.check(at(1062)), Ok(()));
        health.set_invalid("m", true);
        assert_eq!(health.check(at(1062)), Err(vec!["m is invalid and not applied".to_owned()]));
        health.set_invalid("m", false);
        assert_eq!(health.check(at(1062)), Ok(()));
    }
}
