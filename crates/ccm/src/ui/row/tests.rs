use ccm_model::{Change, Outcome, Verb};

use super::*;

const THEME: Theme = Theme { has_color: false, is_utf8: true, width: None };

fn event(kind: &'static str, name: &str) -> Event {
    Event { kind: kind.into(), name: name.into(), ..Event::default() }
}

fn changed(kind: &'static str, name: &str, verb: Verb, changes: Vec<Change>) -> Event {
    Event { changed: true, verbs: vec![verb], changes, ..event(kind, name) }
}

fn picture(event: &Event, theme: Theme) -> String {
    let mut text = String::new();
    Row::of_event(event, None).write(&mut text, theme, RowLayout::default());
    text
}

fn absent_to(to: &str) -> Change {
    Change::of("ensure").from("absent").to(to)
}

/// A new file with two lines.
fn new_file() -> Event {
    let changes = vec![
        absent_to("present"),
        Change::of("content").lines((2, 0)),
        Change::of("owner").to("root"),
        Change::of("mode").to("0644"),
    ];
    Event { alias: Some("config".into()), ..changed("file", "/etc/app", Verb::Created, changes) }
}

#[test]
fn rows_tell_what_changed() {
    let change =
        |property: &'static str, from: &str, to: &str| Change::of(property).from(from).to(to);
    let digest = "d".repeat(64);
    let because = || vec![ccm_model::ResourceRef::new("file", "/x")];
    let paths = |names: &[&str]| names.iter().map(|name| format!("/t/{name}")).collect::<Vec<_>>();
    for (event, wanted) in [
        (new_file(), "  + file#/etc/app (config)  content +2, owner root, mode 0644\n"),
        (
            changed(
                "file",
                "/d",
                Verb::Created,
                vec![absent_to("directory"), Change::of("mode").to("0755")],
            ),
            "  + file#/d  directory, mode 0755\n",
        ),
        (
            changed("package", "nginx", Verb::Installed, vec![absent_to("1.22.1")]),
            "  + package#nginx  absent → 1.22.1\n",
        ),
        (
            changed("package", "nginx", Verb::Upgraded, vec![change("ensure", "1.22.0", "1.22.1")]),
            "  ~ package#nginx  1.22.0 → 1.22.1\n",
        ),
        (
            changed("package", "nginx", Verb::Removed, vec![change("ensure", "1.22.1", "absent")]),
            "  - package#nginx  1.22.1\n",
        ),
        (
            changed("file", "/x", Verb::Removed, vec![change("ensure", "present", "absent")]),
            "  - file#/x\n",
        ),
        (
            changed("file", "/x", Verb::Updated, vec![change("mode", "0600", "0644")]),
            "  ~ file#/x  mode 0600 → 0644\n",
        ),
        (
            changed(
                "file",
                "/x",
                Verb::Updated,
                vec![Change::secret("content"), change("mode", "0600", "0644")],
            ),
            "  ~ file#/x\n        content  [redacted]\n        mode     0600 → 0644\n",
        ),
        (
            changed(
                "file",
                "/x",
                Verb::Updated,
                vec![change("content", "sha256:a", "sha256:b").lines((2, 1))],
            ),
            "  ~ file#/x  content +2 −1\n",
        ),
        (
            changed(
                "file",
                "/x",
                Verb::Updated,
                vec![change("content", &format!("sha256:{digest}"), "x")],
            ),
            "  ~ file#/x  content sha256:dddddddddddd… → x\n",
        ),
        (
            changed(
                "scaffold",
                "/t",
                Verb::Rendered,
                vec![
                    Change::of("added").to(paths(&["a", "b", "c", "d", "e"])),
                    Change::of("removed").from(paths(&["f"])),
                ],
            ),
            "  ~ scaffold#/t\n        added    a, b, c and 2 more\n        removed  f\n",
        ),
        (
            changed("exec", "make x", Verb::Executed, vec![Change::of("command").to("make x")]),
            "  » exec#make x\n",
        ),
        (
            changed("exec", "build", Verb::Executed, vec![Change::of("command").to("make x")]),
            "  » exec#build  make x\n",
        ),
        (
            Event {
                refreshed: true,
                because: because(),
                ..changed("service", "nginx", Verb::Restarted, vec![])
            },
            "  ↻ service#nginx  restarted, because file#/x changed\n",
        ),
        (
            Event {
                refreshed: true,
                noop: true,
                because: because(),
                ..changed("service", "nginx", Verb::Reloaded, vec![])
            },
            "  ↻ service#nginx  reload, because file#/x changes  (noop)\n",
        ),
        (
            Event {
                provisional: true,
                noop: true,
                waits_for: vec!["package#haproxy".into()],
                verbs: vec![],
                ..changed("file", "/c", Verb::Created, vec![Change::of("owner").to("haproxy")])
            },
            "  ? file#/c  owner haproxy, provisional: after package#haproxy  (noop)\n",
        ),
        (
            Event {
                provisional: true,
                waits_for: vec!["package#haproxy".into()],
                ..event("file", "/etc/haproxy/old")
            },
            "  ? file#/etc/haproxy/old  stable now; provisional: after package#haproxy\n",
        ),
        (Event { skipped: true, ..event("exec", "x") }, "  · exec#x  skipped by control\n"),
        (
            Event { skipped: true, unmet_requirements: because(), ..event("exec", "x") },
            "  · exec#x  skipped, requires file#/x\n",
        ),
        (event("exec", "x"), "  = exec#x  stable\n"),
        (
            Event {
                failed: true,
                error: vec!["one\ntwo".into(), "three".into()],
                ..event("exec", "x")
            },
            "  ✗ exec#x\n        one\n        two\n        three\n",
        ),
        (
            Event {
                duration: Duration::from_millis(1250),
                ..changed("exec", "x", Verb::Executed, vec![])
            },
            "  » exec#x  (1.2s)\n",
        ),
    ] {
        assert_eq!(picture(&event, THEME), wanted);
    }
}

#[test]
fn diffs_do_not_repeat_the_name() {
    let event = changed("file", "/x", Verb::Updated, vec![Change::of("content").lines((1, 1))]);
    let shown = |diff: &str| {
        let mut text = String::new();
        Row::of_event(&event, Some(diff)).write(&mut text, THEME, RowLayout::default());
        text
    };
    let row = "  ~ file#/x  content +1 −1\n";
    let hunk = "        @@ -1 +1 @@\n        -a\n        +b\n";
    assert_eq!(shown("--- /x\n+++ /x\n@@ -1 +1 @@\n-a\n+b\n"), format!("{row}{hunk}"));
    let other = "        --- /y\n        +++ /y\n";
    assert_eq!(shown("--- /y\n+++ /y\n@@ -1 +1 @@\n-a\n+b\n"), format!("{row}{other}{hunk}"));
    assert_eq!(shown("/x: not shown\n"), format!("{row}        /x: not shown\n"));
}

#[test]
fn what_does_not_fit_a_terminal_goes_below() {
    let narrow = Theme { width: Some(40), ..THEME };
    assert_eq!(
        picture(&new_file(), narrow),
        "  + file#/etc/app (config)\n        content +2, owner root, mode\n        0644\n"
    );
    let name = "/srv/www/a/very/long/path/to/some/file.html";
    let long = picture(&event("file", name), narrow);
    assert_eq!(long, "  = file#/srv/www/a/v…/to/some/file.html\n        stable\n");
    assert!(long.lines().all(|line| columns(line) <= 40), "{long}");
    let failed = Event {
        failed: true,
        error: vec!["cannot do this because of several reasons, one of which follows".into()],
        ..event("exec", "x")
    };
    let mut cut = String::new();
    let place = RowLayout { cuts_errors: true, ..RowLayout::default() };
    Row::of_event(&failed, None).write(&mut cut, narrow, place);
    assert_eq!(cut, "  ✗ exec#x\n        cannot do this because of sever…\n");
    let full = picture(&failed, narrow);
    assert_eq!(full.split_whitespace().count(), 13, "{full}");
    assert!(full.lines().all(|line| columns(line) <= 40), "{full}");
}

#[test]
fn names_start_no_new_line_and_colors_are_only_on_signs() {
    let sly = Event { alias: Some("a\x1b[31m".into()), ..event("file", "/a\n  ✗ b") };
    let text = picture(&sly, THEME);
    assert_eq!(text, "  = file#/a\\n  ✗ b (a\\u{1b}[31m)  stable\n");
    let colored = picture(&new_file(), Theme { has_color: true, ..THEME });
    let sign = format!("{GREEN}+{GREEN:#}");
    assert_eq!(colored.replace(&sign, "+"), picture(&new_file(), THEME));
    assert_eq!(Row::of_event(&sly, None).outcome, Outcome::Stable);
}

#[test]
fn plain_terminals_get_plain_signs() {
    let ascii = Theme { is_utf8: false, ..THEME };
    let changes = vec![
        Change::of("mode").from("0600").to("0644"),
        Change::of("content").lines((2, 1)),
        Change::of("checksum").to("e".repeat(64)),
    ];
    let text = picture(&changed("file", "/x", Verb::Updated, changes), ascii);
    assert!(text.is_ascii() && text.contains("+2 -1") && text.contains("->"), "{text}");
}
