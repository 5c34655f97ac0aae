//! Debian's comparison against the real `dpkg --compare-versions`.

#![expect(
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a test sets its stage by itself"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use ccm_resources::package::version::debian;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

const PAIRS: usize = 20_000;
/// The processes that dpkg's are started from, one for each core or so.
const SHELLS: usize = 2;

/// Asks dpkg whether what we say of each pair holds; prints those where it
/// does not. One question is enough: of less, equal and greater one is true.
const ASK: &str = r#"while read -r a order b; do
    dpkg --compare-versions "$a" "$order" "$b" 2>/dev/null || echo "$a $order $b"
done; echo done"#;

/// Versions that look alike, so that most pairs differ late or not at all.
fn pairs() -> Vec<(String, String)> {
    let part = "[0-9]{1,3}([.+~]{0,2}[0-9a-cA-C]{0,3}){0,4}";
    let version = format!("([0-2]:)?{part}(-{part})?(-[0-9]{{1,2}}[a-c+~]{{0,2}})?");
    let text = |pattern| proptest::string::string_regex(pattern).unwrap();
    // The other of a pair has a little more, less, or something else.
    let strategy = (text(&version), text(&version), text("[0-9a-c.+~]{0,2}"), 0usize..64, 0u8..4);
    let mut runner = TestRunner::default();
    let mut pairs = Vec::with_capacity(PAIRS);
    while pairs.len() < PAIRS {
        let (a, other, edit, at, how) = strategy.new_tree(&mut runner).unwrap().current();
        let b = if how == 0 {
            other
        } else {
            let at = 1 + at % a.len();
            let skip = (at + usize::from(how == 2)).min(a.len());
            format!("{}{edit}{}", &a[..at], &a[skip..])
        };
        // dpkg asks no less of what it compares.
        if debian::Version::parse(&b).is_ok() && !b.ends_with('-') {
            pairs.push((a, b));
        }
    }
    pairs
}

#[test]
fn versions_are_ordered_as_dpkg_orders_them() {
    if ccm_testkit::lacks_program("dpkg") {
        return;
    }
    let pairs = pairs();
    let mut orders = [0; 3];
    let lines: Vec<String> = pairs
        .iter()
        .map(|(a, b)| {
            let order = debian::compare(a, b) as i8;
            orders[(order + 1) as usize] += 1;
            format!("{a} {} {b}\n", ["lt", "eq", "gt"][(order + 1) as usize])
        })
        .collect();
    assert!(orders.iter().all(|&count| count > PAIRS / 50), "lopsided: {orders:?}");
    let shells: Vec<_> = lines
        .chunks(PAIRS.div_ceil(SHELLS))
        .map(|lines| {
            let mut shell = Command::new("sh")
                .args(["-c", ASK])
                .env("LC_ALL", "C")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = shell.stdin.take().unwrap();
            let text = lines.concat();
            let feeder = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
            (shell, feeder)
        })
        .collect();
    for (shell, feeder) in shells {
        feeder.join().unwrap();
        let output = shell.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "dpkg says otherwise");
    }
}
