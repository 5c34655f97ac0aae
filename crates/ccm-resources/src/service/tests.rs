//! The decision table row by row, the words of noop, and what is refused
//! before any command runs. The real systemd is in the system tests.

use ccm_engine::{AnyType as _, Arguments, Erased, ResourceType as _, Step, Trigger};
use ccm_model::{Change, Common, Reader, Verb};

use super::{Action, Order, Properties, Service, State};

fn want(ensure: &str, enable: Option<bool>) -> Properties {
    let common = Common { ensure: ensure.into(), name: "s".into(), ..Common::default() };
    Properties { common, enable, ..Properties::default() }
}

fn state(running: bool, enabled: bool) -> State {
    let words =
        (if running { "active" } else { "failed" }, if enabled { "static" } else { "masked" });
    State { running, enabled, words: (words.0.into(), words.1.into()), ..State::default() }
}

fn decide(want: &Properties, have: &State, why: Trigger) -> Vec<Step<Action>> {
    let steps = Service::decide(want, have, why).unwrap();
    assert!(steps.iter().all(|step| step.action.service == "s"));
    steps
}

fn orders(steps: &[Step<Action>]) -> Vec<Order> {
    steps.iter().map(|step| step.action.order).collect()
}

fn noop(steps: &[Step<Action>]) -> String {
    let texts: Vec<String> = steps.iter().map(Service::describe).collect();
    texts.join(". ")
}

#[test]
fn running_is_decided_by_what_runs_and_what_has_changed() {
    for (ensure, running, why, plan, text) in [
        ("running", true, Trigger::Turn, vec![], ""),
        ("running", false, Trigger::Turn, vec![Order::Start], "Would have started"),
        ("stopped", false, Trigger::Turn, vec![], ""),
        ("stopped", true, Trigger::Turn, vec![Order::Stop], "Would have stopped"),
        ("running", true, Trigger::Refresh, vec![Order::Restart], "Would have restarted"),
        ("running", false, Trigger::Refresh, vec![Order::Start], "Would have started"),
        ("stopped", false, Trigger::Refresh, vec![], ""),
        ("stopped", true, Trigger::Refresh, vec![Order::Stop], "Would have stopped"),
    ] {
        for enabled in [true, false] {
            let have = state(running, enabled);
            let steps = decide(&want(ensure, None), &have, why);
            assert_eq!(orders(&steps), plan, "{ensure}, runs: {running}, {why:?}");
            assert_eq!(noop(&steps), text);
        }
    }
}

#[test]
fn boot_is_decided_by_itself() {
    for (enable, enabled, step) in [
        (Some(true), true, None),
        (Some(true), false, Some(Order::Enable)),
        (Some(false), true, Some(Order::Disable)),
        (Some(false), false, None),
        (None, true, None),
        (None, false, None),
    ] {
        let at_boot = |ensure: &str, running: bool| {
            let want = want(ensure, enable);
            orders(&decide(&want, &state(running, enabled), Trigger::Turn))
        };
        let steps = |now: Option<Order>| now.into_iter().chain(step).collect::<Vec<_>>();
        assert_eq!(at_boot("running", true), steps(None));
        assert_eq!(at_boot("stopped", false), steps(None));
        assert_eq!(at_boot("running", false), steps(Some(Order::Start)));
        assert_eq!(at_boot("stopped", true), steps(Some(Order::Stop)));
    }
    let both = decide(&want("running", Some(true)), &state(false, false), Trigger::Turn);
    assert_eq!(noop(&both), "Would have started. Would have enabled");
    assert_eq!((both[0].verb, both[1].verb), (Verb::Started, Verb::Updated));
    assert_eq!(both[0].changes, [Change::of("ensure").from("stopped").to("running")]);
    assert_eq!(both[1].changes, [Change::of("enable").from(false).to(true)]);
    let off = decide(&want("running", Some(false)), &state(true, true), Trigger::Turn);
    assert_eq!(noop(&off), "Would have disabled");
    let kept = serde_json::to_string(&both).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Step<Action>>>(&kept).unwrap(), both);
}

#[test]
fn only_a_restart_answers_a_trigger() {
    let step = |order| Step::new(Verb::Updated, Action { service: "s".into(), order });
    assert!(Service::is_refresh(&step(Order::Restart)));
    for order in [Order::Start, Order::Stop, Order::Enable, Order::Disable] {
        assert!(!Service::is_refresh(&step(order)), "{order:?}");
    }
}

#[test]
fn what_is_verified() {
    let mut died = state(false, true);
    died.last_words = "cannot bind".into();
    for (want, have, reason) in [
        (want("running", None), state(true, false), None),
        (want("running", Some(false)), state(true, false), None),
        (
            want("running", None),
            died,
            Some("ensure is stopped (failed), should be running\ncannot bind"),
        ),
        (
            want("stopped", None),
            state(true, true),
            Some("ensure is running (active), should be stopped"),
        ),
        (
            want("stopped", Some(false)),
            state(false, true),
            Some("enable is true (static), should be false"),
        ),
        (
            want("running", Some(true)),
            state(true, false),
            Some("enable is false (masked), should be true"),
        ),
    ] {
        assert_eq!(Service::mismatch(&want, &have).as_deref(), reason);
    }
}

#[test]
fn what_is_refused_before_any_command_runs() {
    let problem = |name: &str| {
        let mut arguments = Arguments::default();
        arguments.set("name", name);
        let resource =
            Erased::<Service>::NEW.declare(arguments.into_entries(), None, &mut Reader::default());
        assert_eq!(resource.common().ensure, "running");
        resource.findings(&ccm_host::Host::new()).into_iter().next().map(|finding| finding.message)
    };
    for name in ["httpd", "nginx.service", "my-app_v2"] {
        assert_eq!(problem(name), None, "{name}");
    }
    for name in ["", "app@instance", "app; rm -rf /", "a b", "-a", "a/b", "*", "a\n"] {
        assert!(problem(name).is_some(), "{name:?}");
    }
    assert_eq!(
        problem("app; rm -rf /").unwrap(),
        "name: service name contains dangerous characters: \"app; rm -rf /\""
    );
}
