//! One small run per type, each from a state that differs from the desired
//! one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use ccm_testkit::Server;

/// What is run, and how to tell what became of it.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Whether it needs programs of its own in the search path.
    pub(crate) needs_tools: bool,
    pub(crate) set_up: fn(&Path),
    /// Whether the state is the desired one.
    pub(crate) is_desired: fn(&Path) -> Result<(), String>,
    /// Whether each managed file has its old or its new content.
    pub(crate) is_whole: fn(&Path) -> Result<(), String>,
}

pub(crate) fn all() -> Vec<Scenario> {
    let mut scenarios = vec![file(), exec(), scaffold(), apply(), archive()];
    // Fake tools are mounted over the real ones.
    if !ccm_testkit::lacks_root() {
        scenarios.extend([package(), service()]);
    }
    scenarios
}

/// Long enough that half of it could be there.
fn old(name: &str) -> String {
    format!("old {name}\n").repeat(2000)
}

fn new(name: &str) -> String {
    format!("new {name}\n").repeat(2000)
}

fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes a manifest; `@DIR` in it is the directory, `@ME` owner and group.
fn manifest(directory: &Path, name: &str, text: &str) {
    let me =
        format!("owner: \"{}\", group: \"{}\"", nix::unistd::geteuid(), nix::unistd::getegid());
    let text = text.replace("@ME", &me).replace("@DIR", directory.to_str().unwrap());
    write(directory, name, &text);
}

/// Whether a file holds just this.
fn holds(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    match fs::read_to_string(directory.join(name)) {
        Ok(found) if found == text => Ok(()),
        Ok(found) => Err(format!("{name} has other content, {} bytes", found.len())),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn is_absent(directory: &Path, name: &str) -> Result<(), String> {
    match directory.join(name).symlink_metadata() {
        Ok(_) => Err(format!("{name} is there")),
        Err(_) => Ok(()),
    }
}

fn has_mode(directory: &Path, name: &str, mode: u32) -> Result<(), String> {
    match fs::metadata(directory.join(name)) {
        Ok(found) if found.permissions().mode() & 0o7777 == mode => Ok(()),
        Ok(found) => Err(format!("{name} has mode {:04o}", found.permissions().mode() & 0o7777)),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// Whether a file has one of these contents, or is not there if it need not be.
fn is_one_of(directory: &Path, name: &str, texts: &[&str], may_lack: bool) -> Result<(), String> {
    match fs::read_to_string(directory.join(name)) {
        Ok(found) if texts.contains(&&*found) => Ok(()),
        Err(_) if may_lack => Ok(()),
        Ok(found) => Err(format!("{name} has neither content, {} bytes", found.len())),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn file() -> Scenario {
    Scenario {
        name: "file",
        needs_tools: false,
        set_up: |directory| {
            write(directory, "f/replaced", &old("replaced"));
            write(directory, "f/stable", &new("stable"));
            write(directory, "f/gone", "gone");
            write(directory, "f/tree/a/b", "deep");
            write(directory, "f/mode", "mode");
            write(directory, "source", &new("copied"));
            let mode = |mode| fs::Permissions::from_mode(mode);
            fs::set_permissions(directory.join("f/mode"), mode(0o644)).unwrap();
            fs::set_permissions(directory.join("f/stable"), mode(0o600)).unwrap();
            let content = |name: &str| serde_json::to_string(&new(name)).unwrap();
            let text = format!(
                "ccm:\n  resources:\n    - file:\n        - defaults: {{@ME, mode: \"0600\"}}\n        \
                 - @DIR/f/replaced: {{content: {}}}\n        - @DIR/f/stable: {{content: {}}}\n        \
                 - @DIR/f/made: {{content: {}}}\n        - @DIR/f/copied: {{source: @DIR/source}}\n        \
                 - @DIR/f/mode: {{mode: \"0640\"}}\n        - @DIR/f/gone: {{ensure: absent}}\n        \
                 - @DIR/f/tree: {{ensure: absent, force: true}}\n        - @DIR/f/dir: {{ensure: \
                 directory, mode: \"0750\"}}\n",
                content("replaced"),
                content("stable"),
                content("made"),
            );
            manifest(directory, "manifest.yaml", &text);
        },
        is_desired: |directory| {
            for name in ["replaced", "stable", "made", "copied"] {
                holds(directory, &format!("f/{name}"), &new(name))?;
                has_mode(directory, &format!("f/{name}"), 0o600)?;
            }
            has_mode(directory, "f/mode", 0o640)?;
            has_mode(directory, "f/dir", 0o750)?;
            is_absent(directory, "f/gone")?;
            is_absent(directory, "f/tree")
        },
        is_whole: |directory| {
            for (name, may_lack) in
                [("replaced", false), ("stable", false), ("made", true), ("copied", true)]
            {
                let texts = [&*old(name), &*new(name)];
                is_one_of(directory, &format!("f/{name}"), &texts, may_lack)?;
            }
            is_one_of(directory, "f/mode", &["mode"], false)
        },
    }
}

fn exec() -> Scenario {
    Scenario {
        name: "exec",
        needs_tools: false,
        set_up: |directory| {
            write(directory, "source", &new("copied"));
            manifest(
                directory,
                "manifest.yaml",
                "ccm: {resources: [{exec: [{copy: {command: cp @DIR/source @DIR/copied, unless: cmp \
                 -s @DIR/source @DIR/copied}}, {link: {provider: shell, command: \"ln @DIR/copied @DIR/linked\", \
                 unless: test -e @DIR/linked, onlyif: test -e @DIR/copied}}, {react: {command: \
                 \"touch @DIR/reacted\", refresh_only: true, subscribe: [\"exec#link\"]}}]}]}",
            );
        },
        is_desired: |directory| {
            holds(directory, "copied", &new("copied"))?;
            holds(directory, "linked", &new("copied"))
        },
        // What a command leaves half done is its own.
        is_whole: |_| Ok(()),
    }
}

fn scaffold() -> Scenario {
    Scenario {
        name: "scaffold",
        needs_tools: false,
        set_up: |directory| {
            write(directory, "templates/a.txt", &new("a").replace("new", "[[ data.word ]]"));
            write(directory, "templates/sub/b.txt", &new("b"));
            write(directory, "templates/c.sh", "exit 0\n");
            write(directory, "target/a.txt", &old("a"));
            write(directory, "target/stray", "stray");
            manifest(
                directory,
                "manifest.yaml",
                "ccm: {resources: [{scaffold: [{@DIR/target: {source: templates, purge: true, \
                 data: {word: new}, post: [{\"*.sh\": \"chmod 755 {}\"}]}}]}]}",
            );
        },
        is_desired: |directory| {
            holds(directory, "target/a.txt", &new("a"))?;
            holds(directory, "target/sub/b.txt", &new("b"))?;
            holds(directory, "target/c.sh", "exit 0\n")?;
            has_mode(directory, "target/c.sh", 0o755)?;
            is_absent(directory, "target/stray")
        },
        is_whole: |directory| {
            is_one_of(directory, "target/a.txt", &[&old("a"), &new("a")], false)?;
            is_one_of(directory, "target/sub/b.txt", &[&new("b")], true)?;
            is_one_of(directory, "target/c.sh", &["exit 0\n"], true)
        },
    }
}

fn apply() -> Scenario {
    Scenario {
        name: "apply",
        needs_tools: false,
        set_up: |directory| {
            write(directory, "f/inner", &old("inner"));
            manifest(
                directory,
                "child.yaml",
                "data: {name: other}\nccm: {resources: [{file: [{@DIR/f/inner: {content: \"{{ \
                 repeat('new ' + Data.name + '\\\\n', 2000) }}\", @ME, mode: \"0600\"}}]}]}",
            );
            manifest(
                directory,
                "manifest.yaml",
                "data: {name: inner}\nccm: {resources: [{apply: [child.yaml]}, {file: \
                 [{@DIR/f/outer: {content: outer, @ME, mode: \"0600\", require: \
                 [\"apply#child.yaml\"]}}]}]}",
            );
        },
        is_desired: |directory| {
            holds(directory, "f/inner", &new("inner"))?;
            holds(directory, "f/outer", "outer")
        },
        is_whole: |directory| {
            is_one_of(directory, "f/inner", &[&old("inner"), &new("inner")], false)?;
            is_one_of(directory, "f/outer", &["outer"], true)
        },
    }
}

/// A tarball of two files, made once, and a server that has it.
static TARBALL: LazyLock<Server> = LazyLock::new(|| {
    let stage = tempfile::tempdir().unwrap();
    write(stage.path(), "app/a.txt", &new("a"));
    write(stage.path(), "app/sub/b.txt", &new("b"));
    let status = Command::new("tar")
        .args(["-czf", "app.tgz", "app"])
        .current_dir(stage.path())
        .status()
        .unwrap();
    assert!(status.success());
    let body = fs::read(stage.path().join("app.tgz")).unwrap();
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
            .into_bytes();
    answer.extend(body);
    Server::with_bytes(answer)
});

fn archive() -> Scenario {
    Scenario {
        name: "archive",
        needs_tools: false,
        set_up: |directory| {
            write(directory, "out/app/a.txt", &old("a"));
            let url = format!("http://{}/app.tgz", TARBALL.address);
            let text = "ccm: {resources: [{archive: [{@DIR/app.tgz: {url: \"URL\", extract_parent: \
                        @DIR/out, creates: @DIR/out/app/sub/b.txt, @ME}}]}]}";
            manifest(directory, "manifest.yaml", &text.replace("URL", &url));
        },
        is_desired: |directory| {
            holds(directory, "out/app/a.txt", &new("a"))?;
            holds(directory, "out/app/sub/b.txt", &new("b"))
        },
        is_whole: |directory| {
            is_one_of(directory, "out/app/a.txt", &[&old("a"), &new("a")], false)?;
            is_one_of(directory, "out/app/sub/b.txt", &[&new("b")], true)
        },
    }
}

/// A program for the search path of a scenario.
fn tool(directory: &Path, name: &str, script: &str) {
    let script = script.replace("@DIR", directory.to_str().unwrap());
    let path = format!("tools/{name}");
    write(directory, &path, &format!("#!/bin/sh\nset -e\n{script}\n"));
    fs::set_permissions(directory.join(path), fs::Permissions::from_mode(0o755)).unwrap();
}

const INSTALLED: &str = "dpkg 1.0 amd64 installed\nccm-test 5.9 amd64 installed\n";

fn package() -> Scenario {
    Scenario {
        name: "package",
        needs_tools: true,
        set_up: |directory| {
            write(directory, "status", "dpkg 1.0 amd64 installed\n");
            tool(directory, "dpkg-query", "cat @DIR/status");
            write(directory, "installed", INSTALLED);
            tool(
                directory,
                "apt-get",
                "cp @DIR/installed @DIR/next\nmv @DIR/next @DIR/status\necho installed",
            );
            manifest(
                directory,
                "manifest.yaml",
                "ccm: {resources: [{package: [{ccm-test: {ensure: present, provider: apt}}]}]}",
            );
        },
        is_desired: |directory| holds(directory, "status", INSTALLED),
        is_whole: |_| Ok(()),
    }
}

fn service() -> Scenario {
    Scenario {
        name: "service",
        needs_tools: true,
        set_up: |directory| {
            write(directory, "active", "active\n");
            write(directory, "enabled", "disabled\n");
            write(directory, "inactive", "inactive\n");
            write(directory, "yes", "enabled\n");
            tool(
                directory,
                "systemctl",
                "case $1 in\nis-active) cat @DIR/active;;\nis-enabled) cat @DIR/enabled;;\n\
                 stop) mv @DIR/inactive @DIR/active;;\n\
                 enable) mv @DIR/yes @DIR/enabled;;\nesac",
            );
            manifest(
                directory,
                "manifest.yaml",
                "ccm: {resources: [{service: [{ccm-test: {ensure: stopped, enable: true}}]}]}",
            );
        },
        is_desired: |directory| {
            holds(directory, "active", "inactive\n")?;
            holds(directory, "enabled", "enabled\n")
        },
        is_whole: |_| Ok(()),
    }
}
