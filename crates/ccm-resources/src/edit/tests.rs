//! The decision table, row by row, on real files, as `ccm ensure` would do it.
#![expect(clippy::disallowed_methods, reason = "the tests set their stage")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use ccm_engine::Arguments;
use ccm_model::Event;
use ccm_yaml::Source;

use crate::testing;

/// A directory with a file to edit.
struct Bed {
    dir: tempfile::TempDir,
}

impl Bed {
    fn new(text: &str) -> Self {
        let bed = Self { dir: tempfile::tempdir().unwrap() };
        bed.write("f", text);
        bed
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.at(name), text).unwrap();
        self.chmod(name, 0o644);
    }

    fn chmod(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.at(name)).unwrap()).into_owned()
    }

    /// The properties as a manifest would give them; the file is `f` unless a path
    /// is given.
    fn arguments(&self, properties: &str) -> Arguments {
        let source = Source::new("properties", properties);
        let ccm_yaml::Kind::Mapping(entries) = ccm_yaml::parse(&source).unwrap().kind else {
            panic!("{properties}")
        };
        let mut arguments = Arguments::default();
        arguments.set("name", "block");
        arguments.set("path", self.at("f").to_str().unwrap());
        for entry in entries {
            let key = entry.key.text.into_owned();
            let mut value = entry.value.into_owned();
            if key == "path"
                && let Some(name) = value.scalar().map(|scalar| self.at(&scalar.text))
            {
                value = ccm_yaml::Node::text(name.to_str().unwrap().to_owned());
            }
            arguments.set_data(&key, value);
        }
        arguments
    }

    fn ensure(&self, properties: &str, noop: bool) -> Event {
        testing::ensure("edit", self.arguments(properties), self.dir.path(), noop)
    }

    /// Previews and applies, and checks that both say the same, and that a second
    /// run changes nothing.
    fn apply(&self, properties: &str) -> Event {
        let before = self.at("f").exists().then(|| self.read("f"));
        let planned = self.ensure(properties, true);
        assert_eq!(self.at("f").exists().then(|| self.read("f")), before, "{properties}");
        let event = self.ensure(properties, false);
        assert_eq!(planned.failed, event.failed, "{properties}: {planned:?}");
        assert_eq!(planned.error, event.error, "{properties}");
        assert_eq!(planned.changed, event.changed, "{properties}");
        assert_eq!(planned.changes, event.changes, "{properties}");
        if !event.failed {
            let again = self.ensure(properties, false);
            assert!(!again.changed && !again.failed, "{properties}: {again:?}");
        }
        event
    }
}

fn error(event: &Event) -> &str {
    event.error.first().map_or("", String::as_str)
}

#[test]
fn the_decision_table() {
    const ROWS: &[(&str, &str, Result<&str, &str>)] = &[
        // Exactly the line exists, and `match` is unset or matches no other line.
        ("a\nx\n", "{format: line, line: x}", Ok("a\nx\n")),
        ("a\nx\n", "{format: line, line: x, match: ^x}", Ok("a\nx\n")),
        // One line matches.
        ("a\nx 1\n", "{format: line, line: x 2, match: ^x}", Ok("a\nx 2\n")),
        // Several match, no `which`.
        (
            "x 1\na\nx 3\n",
            "{format: line, line: x 2, match: ^x}",
            Err("2 lines match `^x` (1, 3); set `which`"),
        ),
        ("x 1\nx 3\n", "{format: line, line: x 2, match: ^x, which: last}", Ok("x 1\nx 2\n")),
        // None matches.
        ("a\n", "{format: line, line: x 2, match: ^x}", Ok("a\nx 2\n")),
        ("a\nb\n", "{format: line, line: x, after: ^a}", Ok("a\nx\nb\n")),
        ("a\n", "{format: line, line: x, after: ^z}", Err("no line matches `^z` of `after`")),
        ("a\n", "{format: line, line: x, match: ^x, if_missing: skip}", Ok("a\n")),
        (
            "a\n",
            "{format: line, line: x, match: ^x, if_missing: error}",
            Err("no line matches `^x`"),
        ),
        // Both markers once, text equal; text differs.
        (
            "# BEGIN ccm block\nx\n# END ccm block\n",
            "{format: block, block: x}",
            Ok("# BEGIN ccm block\nx\n# END ccm block\n"),
        ),
        (
            "# BEGIN ccm block\ny\n# END ccm block\n",
            "{format: block, block: x}",
            Ok("# BEGIN ccm block\nx\n# END ccm block\n"),
        ),
        // No marker.
        ("a\n", "{format: block, block: x}", Ok("a\n# BEGIN ccm block\nx\n# END ccm block\n")),
        // One marker, several, or wrong order.
        (
            "# BEGIN ccm block\n",
            "{format: block, block: x}",
            Err("the markers of the block are not in order"),
        ),
        // Structured: all equal; otherwise.
        ("[s]\nk=1\n", "{format: ini, set: {s: {k: 1}}}", Ok("[s]\nk=1\n")),
        ("[s]\nk=1\n", "{format: ini, set: {s: {k: 2}}, remove: [/s/l]}", Ok("[s]\nk=2\n")),
        ("[s]\nk=1\nl=1\n", "{format: ini, remove: [/s/l]}", Ok("[s]\nk=1\n")),
        (
            "{\"a\": 1}",
            "{format: json, set: {a: 1}, add: {/l: [x]}}",
            Ok("{\"a\": 1, \"l\": [\"x\"]}"),
        ),
        ("a: 1 # c\n", "{format: yaml, set: {a: {b: 2}}, document: 0}", Ok("a: # c\n  b: 2\n")),
        ("[t]\na = 1\n", "{format: toml, set: {t: {a: '1'}}}", Ok("[t]\na = \"1\"\n")),
        ("a: 1\n", "{format: properties, set: {b: x y}}", Ok("a: 1\nb: x y\n")),
        ("A=1\n", "{format: properties, dialect: shell, set: {A: x y}}", Ok("A='x y'\n")),
        // Absent.
        ("a\nx\n", "{ensure: absent, format: line, line: x}", Ok("a\n")),
        ("a\n", "{ensure: absent, format: line, line: x}", Ok("a\n")),
        ("# BEGIN ccm block\nx\n# END ccm block\n", "{ensure: absent, format: block}", Ok("")),
        ("[s]\nk=1\nl=2\n", "{ensure: absent, format: ini, remove: [/s/k]}", Ok("[s]\nl=2\n")),
        // Binary.
        ("a\0b", "{format: line, line: x}", Err("the file is binary")),
    ];
    for (text, properties, wanted) in ROWS {
        let bed = Bed::new(text);
        let event = bed.apply(properties);
        match wanted {
            Ok(result) => {
                assert!(!event.failed, "{properties}: {}", error(&event));
                assert_eq!(bed.read("f"), *result, "{properties}");
                assert_eq!(event.changed, result != text, "{properties}");
            }
            Err(message) => {
                assert!(error(&event).contains(message), "{properties}: {}", error(&event));
                assert_eq!(bed.read("f"), *text, "{properties}");
            }
        }
    }
}

#[test]
fn a_missing_file() {
    let bed = Bed::new("");
    std::fs::remove_file(bed.at("f")).unwrap();
    let event = bed.apply("{format: line, line: x}");
    let path = bed.at("f");
    let wanted = format!("{} does not exist; set `create: true` or declare a file", path.display());
    assert!(error(&event).ends_with(&wanted), "{}", error(&event));
    let event = bed.apply("{format: line, line: x, ensure: absent}");
    assert!(!event.failed && !event.changed);
    let meta = std::fs::metadata(bed.dir.path()).unwrap();
    let create =
        format!("create: true, owner: '{}', group: '{}', mode: '0640'", meta.uid(), meta.gid());
    let event = bed.apply(&format!("{{format: line, line: x, {create}}}"));
    assert!(!event.failed, "{}", error(&event));
    assert_eq!(bed.read("f"), "x\n");
    assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o7777, 0o640);
    let event = bed.apply(&format!("{{path: no/f, format: line, line: x, {create}}}"));
    assert!(event.failed);
}

#[test]
fn directories_devices_and_large_files_are_refused() {
    let bed = Bed::new("");
    std::fs::create_dir(bed.at("d")).unwrap();
    let large = std::fs::OpenOptions::new().write(true).open(bed.at("f")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    for (name, words) in [("d", "directory"), ("f", "larger than")] {
        let event = bed.apply(&format!("{{path: {name}, format: line, line: x}}"));
        assert!(error(&event).contains(words), "{name}: {}", error(&event));
    }
    let properties = "{path: /dev/null, format: line, line: x}".replace("path: /", "path: ../../");
    let mut arguments = bed.arguments(&properties);
    arguments.set("path", "/dev/null");
    let event = testing::ensure("edit", arguments, bed.dir.path(), false);
    assert!(error(&event).contains("device"), "{}", error(&event));
}

#[test]
fn owner_and_mode_stay_and_a_symlink_is_kept() {
    let bed = Bed::new("a\n");
    bed.chmod("f", 0o604);
    symlink("f", bed.at("link")).unwrap();
    let event = bed.apply("{path: link, format: line, line: x}");
    assert!(!event.failed, "{}", error(&event));
    assert!(std::fs::symlink_metadata(bed.at("link")).unwrap().is_symlink());
    assert_eq!(bed.read("f"), "a\nx\n");
    assert_eq!(std::fs::metadata(bed.at("f")).unwrap().mode() & 0o7777, 0o604);
    let real = std::fs::canonicalize(bed.at("f")).unwrap();
    assert_eq!(event.status["metadata"]["path"], real.to_str().unwrap());
}

#[test]
fn in_place_keeps_the_inode() {
    let bed = Bed::new("a\n");
    let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let before = inode(&bed.at("f"));
    bed.apply("{format: line, line: x, write: in_place}");
    assert_eq!(inode(&bed.at("f")), before);
    bed.apply("{format: line, line: y}");
    assert_ne!(inode(&bed.at("f")), before);
    assert_eq!(bed.read("f"), "a\nx\ny\n");
}

#[test]
fn validate_sees_the_new_text_and_keeps_the_old_if_it_fails() {
    let bed = Bed::new("a\n");
    let event = bed.apply("{format: line, line: x, validate: 'grep -q ^y {}'}");
    let path = bed.at("f");
    let wanted = format!("validation failed: grep -q ^y {} exited with code 1", path.display());
    assert!(error(&event).contains(&wanted), "{}", error(&event));
    assert_eq!(bed.read("f"), "a\n");
    let event = bed.apply("{format: line, line: x, validate: 'grep -q ^x {}'}");
    assert!(event.changed, "{}", error(&event));
    assert_eq!(bed.read("f"), "a\nx\n");
    // What is stable is not checked.
    let event = bed.apply("{format: line, line: x, validate: 'grep -q ^z {}'}");
    assert!(!event.failed && !event.changed);
}

#[test]
fn what_noop_says() {
    for (text, properties, said) in [
        ("a\n", "{format: line, line: x}", "Would have inserted 1 line"),
        ("x 1\n", "{format: line, line: x, match: ^x}", "Would have replaced 1 line"),
        ("x\nx\n", "{format: line, line: x, ensure: absent}", "Would have removed 2 lines"),
        (
            "x 1\nx 2\n",
            "{format: line, line: x, match: ^x, which: only}",
            "Would have edited 2 lines",
        ),
        ("", "{format: block, block: x}", "Would have inserted block"),
        (
            "# BEGIN ccm block\n# END ccm block\n",
            "{format: block, block: x}",
            "Would have replaced block",
        ),
        (
            "# BEGIN ccm block\n# END ccm block\n",
            "{format: block, ensure: absent}",
            "Would have removed block",
        ),
        ("", "{format: ini, set: {a: {b: 1, c: 2}}}", "Would have edited 2 keys"),
        ("[a]\nb=1\n", "{format: ini, remove: [/a/b]}", "Would have removed 1 key"),
    ] {
        let event = Bed::new(text).ensure(properties, true);
        assert_eq!(event.noop_message.as_deref(), Some(said), "{properties}");
    }
}

#[test]
fn a_file_that_others_cannot_read_is_not_shown() {
    let shown = |event: &Event| serde_json::to_string(event).unwrap();
    for (mode, secret, is_shown) in [
        (0o644, "", true),
        (0o640, "", false),
        (0o600, "", false),
        (0o600, ", secret: false", true),
        (0o644, ", secret: true", false),
    ] {
        for properties in [
            "{format: line, line: k hunter2, match: ^k",
            "{format: block, block: k hunter2",
            "{format: ini, set: {s: {k: hunter2}}",
        ] {
            let bed = Bed::new("k former3\n");
            bed.chmod("f", mode);
            for event in [
                bed.ensure(&format!("{properties}{secret}}}"), true),
                bed.ensure(&format!("{properties}{secret}}}"), false),
            ] {
                assert!(!event.failed, "{}", error(&event));
                let text = shown(&event);
                assert_eq!(text.contains("hunter2"), is_shown, "{mode:o} {text}");
                assert!(is_shown || !text.contains("former3"), "{text}");
            }
        }
    }
}

#[test]
fn the_status_lists_differences() {
    let bed = Bed::new("[s]\nk=1\n");
    let properties = "{format: ini, set: {s: {k: 2, l: 3}}}";
    let status = testing::status("edit", bed.arguments(properties));
    let metadata = &status["metadata"];
    assert_eq!(metadata["satisfied"], false);
    assert_eq!(metadata["exists"], true);
    assert_eq!(metadata["format"], "ini");
    assert_eq!(metadata["size"], 8);
    assert_eq!(
        metadata["differences"],
        serde_json::json!([
            {"property": "s.k", "from": "1", "to": "2"},
            {"property": "s.l", "to": "3"},
        ])
    );
    bed.apply(properties);
    let status = testing::status("edit", bed.arguments(properties));
    assert_eq!(status["metadata"]["satisfied"], true);
    assert_eq!(status["metadata"]["differences"], serde_json::json!([]));
}

#[test]
fn what_is_not_valid() {
    for (properties, message) in [
        ("{format: line}", "property `line` is required"),
        ("{format: line, line: ''}", "a line cannot be empty"),
        ("{format: line, line: \"a\\nb\"}", "a line cannot contain a line end"),
        ("{format: line, line: x, match: '('}", "error parsing regexp"),
        ("{format: line, line: x, which: first}", "it has no meaning without `match`"),
        ("{format: line, line: x, if_missing: skip}", "it has no meaning without `match`"),
        ("{format: line, line: x, after: a, before: b}", "cannot both be set"),
        ("{format: line, line: x, block: y}", "the format `line` does not have it"),
        ("{format: line, line: x, remove: [/a]}", "the format `line` does not have it"),
        ("{format: line, ensure: absent}", "`line` or `match` is required"),
        ("{format: line, line: x, match: x, which: last, ensure: absent}", "removes all lines"),
        ("{format: block}", "property `block` is required"),
        ("{format: block, block: '# END ccm block'}", "the block contains its own marker line"),
        ("{format: block, block: x, comment: rem}", "unknown comment `rem`"),
        ("{format: ini}", "`set`, `add` or `remove` is required"),
        ("{format: ini, remove: [a]}", "`a` is not a JSON Pointer"),
        ("{format: ini, set: {a: {b: 1}}, remove: [/a/b]}", "`/a/b` is removed and set"),
        ("{format: ini, set: {a: {b: 1}}, ensure: absent}", "sets nothing"),
        ("{format: ini, ensure: absent}", "property `remove` is required"),
        ("{format: json, add: {/a: 1}}", "`/a` needs a list of members"),
        ("{format: ini, add: {/a: [1]}}", "the format `ini` does not have it"),
        ("{format: json, set: {a: 1}, dialect: shell}", "the format `json` does not have it"),
        ("{format: yaml, set: {a: 1}, document: -1}", "must be 0 or more"),
        ("{format: xml, line: x}", "unknown format `xml`"),
        ("{format: line, line: x, create: true}", "`create: true` needs `owner`"),
        ("{format: line, line: x, mode: '0644'}", "it has no meaning without `create: true`"),
        ("{format: line, line: x, validate: 'true'}", "the command does not contain `{}`"),
        ("{format: line, line: x, write: twice}", "unknown way to write `twice`"),
    ] {
        let bed = Bed::new("");
        let arguments = bed.arguments(properties);
        let mut session = ccm_engine::MemorySession::default();
        let made = testing::ensure_in(
            "edit",
            arguments,
            bed.dir.path(),
            true,
            &mut session,
            &mut ccm_engine::NoObserver,
        );
        let reason = match made {
            Ok(event) => event.error.join("\n"),
            Err(reason) => reason,
        };
        assert!(reason.contains(message), "{properties}: {reason}");
    }
}
