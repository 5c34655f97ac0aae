//! How long one edit of a large text takes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test may fail, prints figures and asks the system for the time"
)]

use std::fmt::Write as _;
use std::time::Duration;

use ccm_yaml::Source;
use ccm_yaml::edit::{Document, Operation, Step};

/// 5,000 resources and a megabyte.
fn large() -> String {
    let mut text = String::from("ccm:\n  resources:\n    - file:\n");
    for number in 0..5000 {
        let _ = write!(
            text,
            "        - /srv/app/config/{number:05}/app.conf:\n            # number {number}\n            \
             content: |\n              name = \"{number}\"\n              one line more\n            \
             mode: \"0644\"\n            require: [\"file#/srv/app/config/00000/app.conf\"]\n"
        );
    }
    text
}

/// The time that this thread has had a processor.
fn time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// The shortest time of many: the one with the least of other work beside it.
fn shortest(mut work: impl FnMut()) -> Duration {
    let taken = |_| {
        let begun = time();
        work();
        time().saturating_sub(begun)
    };
    (0..40).map(taken).min().unwrap()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "only a release build is fast")]
fn one_operation_in_a_megabyte_takes_thirty_milliseconds() {
    let text = large();
    let size = text.len() as f64 / 1e6;
    let path = ["ccm", "resources", "0", "file", "2500", "/srv/app/config/02500/app.conf", "mode"];
    let path: Vec<Step> = path
        .into_iter()
        .map(|step| step.parse::<usize>().map_or_else(|_| step.into(), Step::from))
        .collect();
    let set = [Operation::Set { path, value: "0600".into(), beside: None }];
    let parsed = shortest(|| drop(ccm_yaml::parse(&Source::new("m", text.as_str())).unwrap()));
    let read = shortest(|| drop(Document::parse(Source::new("m", text.as_str())).unwrap()));
    let edited = shortest(|| {
        let mut document = Document::parse(Source::new("m", text.as_str())).unwrap();
        assert_eq!(document.apply(&set).unwrap().len(), 1);
    });
    let per_megabyte = |taken: Duration| taken.as_secs_f64() * 1000.0 / size;
    println!(
        "{size:.2} MB; per MB: parsed in {:.1} ms, read for edits in {:.1} ms, edited in {:.1} ms",
        per_megabyte(parsed),
        per_megabyte(read),
        per_megabyte(edited)
    );
    assert!(per_megabyte(edited) <= 30.0, "{:.1} ms per MB", per_megabyte(edited));
}
