//! The recipes of the documentation, in a directory: applied twice, broken,
//! killed, and undone.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ccm_testkit::{markdown, snapshot_of_content};

use crate::TestEnv;
use crate::history::{ok, runs, said};

/// A recipe of the page, for a directory instead of a machine.
struct Recipe {
    env: TestEnv,
    text: String,
}

impl Recipe {
    /// The manifest of this name, without its service: the system tests run that.
    fn new(name: &str, directories: &[&str]) -> Self {
        let env = TestEnv::new();
        let pages = markdown::pages();
        let page = pages.iter().find(|page| page.name == "docs/recipes.md").unwrap();
        let blocks = page.blocks();
        let block = blocks.iter().find(|block| block.attribute("file") == Some(name)).unwrap();
        let mut text = block.text.clone();
        if let Some(at) = text.find("    - service:") {
            text.truncate(at);
        }
        let dir = env.dir().to_str().unwrap().to_owned();
        for (written, used) in [
            ("/srv/", format!("{dir}/t/srv/")),
            ("/etc/", format!("{dir}/t/etc/")),
            ("\"{{ Environ.HOME }}/", format!("\"{dir}/t/home/")),
            ("https://releases.example.net/", format!("file://{dir}/")),
            ("visudo --check", format!("{dir}/visudo --check")),
            ("owner: root", format!("owner: \"{}\"", nix::unistd::geteuid())),
            ("group: root", format!("group: \"{}\"", nix::unistd::getegid())),
        ] {
            text = text.replace(written, &used);
        }
        for directory in directories {
            std::fs::create_dir_all(env.path(directory)).unwrap();
        }
        env.manifest(&text);
        Self { env, text }
    }

    /// Applies the recipe with other values in its data.
    fn with(&self, changes: &[(&str, &str)]) {
        let mut text = self.text.clone();
        for (line, other) in changes {
            let begin = text.find(line).unwrap_or_else(|| panic!("no {line} in {text}"));
            let end = begin + text[begin..].find('\n').unwrap();
            text.replace_range(begin..end, other);
        }
        self.env.manifest(&text);
    }

    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let tree = snapshot_of_content(&self.env.path("t"));
        tree.into_iter().map(|(path, what)| (path, format!("{what:?}"))).collect()
    }

    fn apply(&self) -> Output {
        self.env.run(["apply", "manifest.yaml"])
    }

    fn applies(&self) {
        let output = self.apply();
        assert!(output.status.success(), "{}", said(&output));
    }

    /// Applied twice, and undone.
    fn works(&self) {
        let before = self.tree();
        self.applies();
        let after = self.tree();
        assert_ne!(before, after);
        let output = self.env.run(["apply", "manifest.yaml", "--detailed-exitcodes"]);
        assert_eq!(output.status.code(), Some(0), "stable: {}", said(&output));
        ok(&self.env, ["undo", "--noop"]);
        assert_eq!(self.tree(), after);
        ok(&self.env, ["undo"]);
        assert_eq!(self.tree(), before);
    }

    /// Killed after this time, and applied again: the result is that of a run
    /// that nobody has killed, and all of it can be undone.
    fn survives(&self, after: Duration) {
        let before = self.tree();
        let earlier = runs(&self.env).len();
        let mut command = self.env.command(["apply", "manifest.yaml"]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Another moment of the run each time.
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
        self.applies();
        let killed = self.tree();
        let made = runs(&self.env);
        for run in &made[..made.len() - earlier] {
            let id = run["id"].as_str().unwrap();
            let output = self.env.run(["undo", id]);
            assert!(output.status.success(), "after {after:?}: {}", said(&output));
        }
        assert_eq!(self.tree(), before, "killed after {after:?}");
        self.applies();
        assert_eq!(self.tree(), killed, "killed after {after:?}");
        ok(&self.env, ["undo"]);
    }

    fn survives_kills(&self) {
        for millis in 0..12 {
            self.survives(Duration::from_millis(2 * millis));
        }
    }
}

/// A program that checks a rule as `visudo` does.
fn visudo(recipe: &Recipe) {
    let script = "#!/bin/sh\nsleep 0.01\n! grep -q wrong \"$3\"\n";
    let path = recipe.env.write("visudo", script);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_rule_of_sudo_is_checked_before_it_is_installed() {
    let recipe = Recipe::new("sudoers.yaml", &["t/etc/sudoers.d"]);
    visudo(&recipe);
    recipe.works();
    recipe.survives_kills();
    recipe.applies();
    let good = recipe.tree();
    recipe.with(&[("  rule:", "  rule: wrong")]);
    let output = recipe.apply();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(recipe.tree(), good, "the rule that is installed stays");
    recipe.with(&[]);
    recipe.applies();
    assert_eq!(recipe.tree(), good);
    // Another rule, taken back: the former one is there again.
    recipe.with(&[("  rule:", "  rule: another")]);
    recipe.works();
    assert_eq!(recipe.tree(), good);
}

#[test]
fn hosts_are_made_from_data() {
    let recipe = Recipe::new("vhosts.yaml", &["t/etc/nginx/sites-enabled"]);
    recipe.works();
    recipe.survives_kills();
    // A directory is in the way of one of them; the other one is made.
    let way = recipe.env.path("t/etc/nginx/sites-enabled/shop.conf");
    std::fs::create_dir(&way).unwrap();
    let before = recipe.tree();
    let output = recipe.apply();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(recipe.env.read("t/etc/nginx/sites-enabled/blog.conf").contains("listen 8082;"));
    ok(&recipe.env, ["undo"]);
    assert_eq!(recipe.tree(), before);
    std::fs::remove_dir(&way).unwrap();
    recipe.works();
}

#[test]
fn dotfiles_are_linked() {
    let recipe = Recipe::new("dotfiles.yaml", &["t/home/dotfiles"]);
    for name in ["bashrc", "inputrc", "vimrc"] {
        recipe.env.write(&format!("t/home/dotfiles/{name}"), name);
    }
    // The manifest stands beside the directory, as in a home.
    for (name, text) in [("git/config", "[init]\n"), ("git/ignore", "*.swp\n"), ("plain", "x")] {
        recipe.env.write(&format!("dotfiles/config/{name}"), text);
    }
    recipe.env.write("t/home/.config/own", "of another program");
    recipe.works();
    recipe.survives_kills();
    // A file of the user is not replaced.
    recipe.env.write("t/home/.inputrc", "mine");
    let before = recipe.tree();
    let output = recipe.apply();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(recipe.env.read("t/home/.inputrc"), "mine");
    assert_eq!(recipe.env.read("t/home/.vimrc"), "vimrc");
    assert_eq!(recipe.env.read("t/home/.config/git/config"), "[init]\n");
    assert_eq!(recipe.env.read("t/home/.config/own"), "of another program");
    ok(&recipe.env, ["undo"]);
    assert_eq!(recipe.tree(), before);
}

/// Packs a release, and gives back its checksum.
fn pack(recipe: &Recipe, version: &str) -> String {
    let env = &recipe.env;
    env.write(&format!("{version}/bin/app"), &format!("{version}\n"));
    env.write(&format!("{version}/lib/data"), &"x".repeat(1 << 20));
    let archive = env.path(&format!("app-{version}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(env.path(version)).args(["bin", "lib"]);
    assert!(tar.status().unwrap().success());
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    String::from_utf8(sum.stdout).unwrap()[..64].to_owned()
}

#[test]
fn releases_are_deployed_upgraded_and_taken_back() {
    let mut recipe = Recipe::new("release.yaml", &["t/srv/app"]);
    let sums = ["1", "2"].map(|version| pack(&recipe, version));
    let want =
        |version: &str, sum: &str| [format!("  version: {version}"), format!("  checksum: {sum}")];
    let set = |recipe: &Recipe, version: &str, sum: &str| {
        let [version, sum] = want(version, sum);
        recipe.with(&[("  version:", &version), ("  checksum:", &sum)]);
    };
    set(&recipe, "1", &sums[0]);
    recipe.works();
    recipe.applies();
    let first = recipe.tree();
    // A checksum that is wrong: the symlink stays on the former release.
    set(&recipe, "2", &sums[0]);
    let output = recipe.apply();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(recipe.env.read("t/srv/app/current/bin/app"), "1\n");
    ok(&recipe.env, ["undo"]);
    assert_eq!(recipe.tree(), first);
    set(&recipe, "2", &sums[1]);
    recipe.works();
    assert_eq!(recipe.env.read("t/srv/app/current/bin/app"), "1\n");
    recipe.text = std::fs::read_to_string(recipe.env.path("manifest.yaml")).unwrap();
    // Runs that made the first release are not taken back.
    for millis in 0..12 {
        let fresh = Recipe { env: TestEnv::new(), text: String::new() };
        let from = recipe.env.dir().to_str().unwrap();
        let text = recipe.text.replace(&format!("{from}/t"), "[DIR]/t");
        fresh.env.manifest(&text);
        fresh.env.write("t/srv/app/1/bin/app", "1\n");
        let link = fresh.env.path("t/srv/app/current");
        std::os::unix::fs::symlink(fresh.env.path("t/srv/app/1"), link).unwrap();
        fresh.survives(Duration::from_millis(4 * millis));
        assert_eq!(fresh.env.read("t/srv/app/current/bin/app"), "1\n");
    }
}
