use super::*;

#[test]
fn decisions() {
    for (ensure, have, wanted) in [
        (PRESENT, None, Some(Verb::Created)),
        (PRESENT, Some("1"), None),
        (PRESENT, Some("2"), Some(Verb::Updated)),
        (ABSENT, None, None),
        (ABSENT, Some("1"), Some(Verb::Removed)),
    ] {
        let mut want = Properties { value: "1".into(), ..Properties::default() };
        want.common.ensure = ensure.into();
        let have = State { value: have.map(str::to_owned) };
        let steps = Setting::decide(&want, &have, Trigger::Turn).unwrap();
        let verbs: Vec<Verb> = steps.iter().map(|step| step.verb).collect();
        assert_eq!(verbs, Vec::from_iter(wanted), "{ensure} {have:?}");
        assert_eq!(Setting::mismatch(&want, &have).is_none(), wanted.is_none());
    }
}
