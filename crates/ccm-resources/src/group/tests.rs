//! The decisions of the type `group`, by tables, and what previews expect.

use ccm_engine::{Arguments, ResourceType as _, Trigger};
use ccm_host::Host;
use ccm_model::Outcome;
use serde_json::{Value, json};

use super::*;
use crate::testing;

#[expect(clippy::needless_pass_by_value, reason = "`json!` makes it")]
fn want(properties: Value) -> Properties {
    let mut all = json!({"name": "app", "ensure": "present"});
    for (name, value) in properties.as_object().unwrap() {
        all[name] = value.clone();
    }
    testing::properties::<Properties>(&all)
}

fn have(gid: Option<u32>, members: &[&str]) -> State {
    let members = members.iter().map(|member| (*member).to_owned()).collect();
    State { name: "app".into(), provider: "shadow", gid, members, ..State::default() }
}

fn decide(want: &Properties, have: &State) -> Result<Vec<Step<Action>>> {
    Group::decide(want, have, Trigger::Turn)
}

fn said(want: &Properties, have: &State) -> String {
    match decide(want, have) {
        Ok(steps) => steps.iter().map(Group::describe).collect::<Vec<_>>().join(". "),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_row_of_the_table() {
    let absent = have(None, &[]);
    let present = have(Some(2000), &["ann", "bob"]);
    for (properties, have, wanted) in [
        (json!({}), &absent, "Would have created group"),
        (json!({}), &present, ""),
        (json!({"gid": 2000}), &present, ""),
        (json!({"gid": 2001}), &present, "Would have updated the ID of the group"),
        (json!({"members": ["ann"]}), &present, ""),
        (json!({"members": []}), &present, ""),
        (json!({"members": ["ann", "cid"]}), &present, "Would have added 1 member"),
        (
            json!({"members": ["cid"], "members_mode": "exact"}),
            &present,
            "Would have added 1 member. Would have removed 2 members",
        ),
        (json!({"members": [], "members_mode": "exact"}), &present, "Would have removed 2 members"),
        (json!({"members": ["ann", "bob"], "members_mode": "exact"}), &present, ""),
        (
            json!({"gid": 5, "members": ["ann", "bob"]}),
            &absent,
            "Would have created group. Would have added 2 members",
        ),
        (json!({"ensure": "absent"}), &absent, ""),
        (json!({"ensure": "absent"}), &present, "Would have removed group"),
    ] {
        assert_eq!(said(&want(properties.clone()), have), wanted, "{properties}");
    }
}

#[test]
fn what_is_refused() {
    let present = have(Some(2000), &["ann"]);
    let primary = State { primary_of: Some("app".into()), ..present.clone() };
    assert_eq!(
        said(&want(json!({"ensure": "absent"})), &primary),
        "group app is the primary group of user app"
    );
    let taken = State { gid_taken_by: Some("other".into()), ..present.clone() };
    assert_eq!(said(&want(json!({"gid": 5})), &taken), "group other already has the ID 5");
    let free = want(json!({"gid": 5, "non_unique": true}));
    assert_eq!(said(&free, &taken), "Would have updated the ID of the group");
    let new = State { gid: None, ..taken };
    assert_eq!(said(&want(json!({"gid": 5})), &new), "group other already has the ID 5");
    let foreign = State { source: Some("sss".into()), ..present };
    let reason = "group app comes from sss, not from /etc/group";
    assert_eq!(said(&want(json!({})), &foreign), "");
    for properties in [json!({"ensure": "absent"}), json!({"gid": 5}), json!({"members": ["x"]})] {
        assert_eq!(said(&want(properties), &foreign), reason);
    }
    let root = have(Some(0), &[]);
    assert!(said(&want(json!({"gid": 5})), &root).contains("does not change the ID"));
}

#[test]
fn steps_say_what_changes() {
    let steps = decide(
        &want(json!({"gid": 7, "members": ["cid", "ann"], "members_mode": "exact"})),
        &have(Some(2000), &["ann", "bob"]),
    );
    let changes: Vec<Change> = steps.unwrap().into_iter().flat_map(|step| step.changes).collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        changes,
        [
            Change::of("gid").from("2000").to("7"),
            Change::of("members").from(names(&["ann", "bob"])).to(names(&["ann", "bob", "cid"])),
            Change::of("members").from(names(&["ann", "bob", "cid"])).to(names(&["ann", "cid"])),
        ]
    );
    let steps = decide(&want(json!({"gid": 7})), &have(None, &[])).unwrap();
    assert_eq!(steps[0].verb, Verb::Created);
    assert_eq!(steps[0].changes[1], Change::of("gid").to("7"));
}

#[test]
fn what_undo_needs() {
    let former = |properties, have: &State| match Group::former(&want(properties), have) {
        Former::Properties(former) => former,
        other => panic!("{other:?}"),
    };
    let present = have(Some(2000), &["ann"]);
    assert_eq!(former(json!({}), &have(None, &[])), json!({"ensure": "absent"}));
    assert_eq!(former(json!({}), &present), json!({"ensure": "present"}));
    assert_eq!(
        former(json!({"gid": 1, "members": ["bob"]}), &present),
        json!({"ensure": "present", "gid": "2000", "members": ["ann"], "members_mode": "exact"})
    );
    assert_eq!(
        former(json!({"ensure": "absent"}), &present),
        json!({"ensure": "present", "gid": "2000", "members": ["ann"], "members_mode": "exact"})
    );
    assert_eq!(
        former(json!({"ensure": "absent"}), &have(Some(7), &[])),
        json!({"ensure": "present", "gid": "7"})
    );
}

#[test]
fn a_difference_that_remains_is_named() {
    let present = have(Some(2000), &["ann"]);
    for (properties, wanted) in [
        (json!({}), None),
        (json!({"ensure": "absent"}), Some("ensure is present, should be absent")),
        (json!({"gid": 1}), Some("gid is 2000, should be 1")),
        (json!({"members": ["bob"]}), Some("members lack bob")),
        (json!({"members": [], "members_mode": "exact"}), Some("members contain ann, should not")),
    ] {
        assert_eq!(Group::mismatch(&want(properties), &present).as_deref(), wanted);
    }
}

#[test]
fn what_is_wrong_is_found() {
    for (properties, words) in [
        (json!({"name": "Bad Name"}), "is not a group name"),
        (json!({"name": "app", "gid": "x"}), "is not a number from 0 to 4294967293"),
        (json!({"name": "app", "gid": 65535}), "cannot be one"),
        (json!({"name": "app", "gid": 4_294_967_294_u32}), "is not a number"),
        (json!({"name": "app", "members": ["-x"]}), "is not a user name"),
        (json!({"name": "app", "members_mode": "exact"}), "needs `members`"),
        (json!({"name": "app", "members": [], "members_mode": "all"}), "allowed: minimum, exact"),
    ] {
        let message = testing::invalid("group", &properties);
        assert!(message.contains(words), "{properties}: {message}");
    }
}

#[test]
fn a_placeholder_may_give_several_names() {
    let mut want = want(json!({"members": ["ann, bob", "cid"]}));
    Group::settle(&mut want);
    assert_eq!(want.members.unwrap(), ["ann", "bob", "cid"]);
}

/// Previews change nothing, so they may ask the machine itself.
#[test]
fn a_preview_of_a_group_that_nobody_has() {
    if !Host::new().which("groupadd") {
        ccm_testkit::not_run("needs groupadd");
        return;
    }
    let event = testing::request("group", &json!({"name": "ccm-no-such-group"})).unwrap();
    assert_eq!(event.outcome(), Outcome::Create, "{:?}", event.error);
    assert_eq!(event.noop_message.as_deref(), Some("Would have created group"));
    let mut arguments = Arguments::default();
    arguments.set("name", "root");
    let status = testing::status("group", arguments);
    assert_eq!(status["metadata"]["gid"], 0);
    assert_eq!(status["metadata"]["local"], true);
}
