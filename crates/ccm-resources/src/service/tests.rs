//! The decision table row by row, the words of noop, and what is refused
//! before any command runs. The real systemd is in the system tests.

use ccm_engine::{AnyType as _, Arguments, Erased, ResourceType as _, Step, Trigger};
use ccm_model::{Change, Common, Reader, Verb};

use super::{Action, Manager, Order, Properties, Service, State};

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
fn a_reload_takes_the_place_of_a_restart_where_it_can() {
    for (ensure, running, lacks_reload, why, plan, text) in [
        ("running", true, false, Trigger::Refresh, Some(Order::Reload), "Would have reloaded"),
        ("running", true, true, Trigger::Refresh, Some(Order::Restart), "Would have restarted"),
        ("running", true, false, Trigger::Turn, None, ""),
        ("running", false, false, Trigger::Refresh, Some(Order::Start), "Would have started"),
        ("stopped", true, false, Trigger::Refresh, Some(Order::Stop), "Would have stopped"),
        ("stopped", false, false, Trigger::Refresh, None, ""),
    ] {
        let want = Properties { reload: true, ..want(ensure, None) };
        let have = State { lacks_reload, ..state(running, true) };
        let steps = decide(&want, &have, why);
        assert_eq!(orders(&steps), Vec::from_iter(plan), "{ensure}, runs: {running}, {why:?}");
        assert_eq!(noop(&steps), text);
    }
    let want = Properties { reload: true, ..want("running", None) };
    let steps = decide(&want, &state(true, true), Trigger::Refresh);
    assert_eq!(steps[0].verb, Verb::Reloaded);
}

/// Without the user's word that the first boot follows, nothing that should run
/// counts as done.
#[test]
fn without_systemd_nothing_can_be_started() {
    let offline = |enabled| State { manager: Manager::Offline, ..state(false, enabled) };
    for why in [Trigger::Turn, Trigger::Refresh] {
        for enable in [None, Some(true), Some(false)] {
            let error = Service::decide(&want("running", enable), &offline(true), why).unwrap_err();
            assert_eq!(error.to_string(), "cannot start s: systemd is not running here");
            assert!(error.hint().unwrap().contains("--offline"), "{error:?}");
        }
        assert_eq!(orders(&decide(&want("stopped", None), &offline(true), why)), []);
        let disabled = decide(&want("stopped", Some(false)), &offline(true), why);
        assert_eq!(orders(&disabled), [Order::Disable]);
    }
    assert!(Service::mismatch(&want("running", None), &offline(true)).is_some());
}

#[test]
fn what_is_left_to_the_first_boot() {
    for (ensure, reload, running, why, left) in [
        ("running", false, false, Trigger::Turn, Some("start")),
        ("running", false, false, Trigger::Refresh, Some("start")),
        ("running", false, true, Trigger::Turn, None),
        ("running", false, true, Trigger::Refresh, Some("restart")),
        ("running", true, true, Trigger::Refresh, Some("reload")),
        ("stopped", false, true, Trigger::Turn, Some("stop")),
        ("stopped", false, false, Trigger::Refresh, None),
    ] {
        for manager in [Manager::Online, Manager::Offline] {
            for (enable, enabled, plan) in [
                (Some(true), false, Some(Order::Enable)),
                (Some(false), true, Some(Order::Disable)),
                (Some(true), true, None),
                (None, false, None),
            ] {
                let want = Properties { reload, ..want(ensure, enable) };
                let have = State { manager, is_deferred: true, ..state(running, enabled) };
                assert_eq!(orders(&decide(&want, &have, why)), Vec::from_iter(plan), "{ensure}");
                assert_eq!(Service::deferred(&want, &have, why), Vec::from_iter(left), "{ensure}");
                let wrong = enable.filter(|&enable| enable != enabled);
                let mismatch = Service::mismatch(&want, &have);
                assert_eq!(mismatch.is_some(), wrong.is_some(), "{ensure}: {mismatch:?}");
                let online = State { is_deferred: false, ..have };
                assert_eq!(Service::deferred(&want, &online, why), [""; 0]);
            }
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
fn only_restarts_and_reloads_answer_a_trigger() {
    let step = |order| Step::new(Verb::Updated, Action { service: "s".into(), order });
    assert!(Service::is_refresh(&step(Order::Restart)));
    assert!(Service::is_refresh(&step(Order::Reload)));
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
    for name in ["httpd", "nginx.service", "my-app_v2", "getty@tty1", "app@blue.service"] {
        assert_eq!(problem(name), None, "{name}");
    }
    for name in ["", "app@", "@instance", "app; rm -rf /", "a b", "-a", "a/b", "*", "a\n"] {
        assert!(problem(name).is_some(), "{name:?}");
    }
    assert_eq!(
        problem("app; rm -rf /").unwrap(),
        "name: service name contains dangerous characters: \"app; rm -rf /\""
    );
}
