//! Archives that come in versions: what is predicted, done, taken back, and left
//! by a run that is killed.

use std::process::Command;

use ccm_testkit::{snapshot, snapshot_of_content};
use serde_json::Value;

use crate::TestEnv;
use crate::history::{ok, said};

/// Packs a version, and gives back its checksum.
fn pack(env: &TestEnv, version: &str) -> String {
    env.write(&format!("{version}/app/version"), version);
    env.write(&format!("{version}/app/run"), "#!/bin/sh\n");
    let (archive, source) = (env.path(&format!("{version}.tar")), env.path(version));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=2020-01-01", "-cf"]).arg(&archive).arg("-C").arg(source);
    assert!(tar.arg("app").status().unwrap().success());
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    String::from_utf8(sum.stdout).unwrap()[..64].to_owned()
}

/// Two versions and a manifest of the first.
struct Stage {
    env: TestEnv,
    sums: [String; 2],
}

impl Stage {
    fn new(cleanup: bool) -> Self {
        let env = TestEnv::new();
        let sums = ["v1", "v2"].map(|version| pack(&env, version));
        let stage = Self { env, sums };
        stage.want("v1", cleanup);
        stage
    }

    fn want(&self, version: &str, cleanup: bool) {
        let sum = &self.sums[usize::from(version == "v2")];
        self.env.manifest(&format!(
            r#"ccm: {{resources: [{{archive: [{{"[DIR]/app.tar": {{url: "file://[DIR]/{version}.tar",
                checksum: {sum}, extract_parent: "[DIR]/opt", creates: "[DIR]/opt/app/run",
                cleanup: {cleanup}, [ME]}}}}]}}]}}"#
        ));
    }

    fn version(&self) -> String {
        self.env.read("opt/app/version")
    }

    /// The outcome of a run, or of a preview.
    fn apply(&self, args: &[&str]) -> Value {
        let apply = ["apply", "manifest.yaml", "--json"];
        let output = self.env.command(apply.iter().chain(args)).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
        report["summary"].clone()
    }

    fn is_stable(&self, args: &[&str]) -> bool {
        let summary = self.apply(args);
        assert_eq!(summary["failed"], 0, "{summary}");
        summary["stable"] == 1 && summary["changed"] == 0
    }
}

/// The archive is there, of the old version.
#[test]
fn an_archive_that_stays_is_upgraded() {
    let stage = Stage::new(false);
    assert!(!stage.is_stable(&[]) && stage.is_stable(&[]));
    stage.want("v2", false);
    assert!(!stage.is_stable(&["--noop"]), "predicted");
    assert_eq!(stage.version(), "v1");
    assert!(!stage.is_stable(&[]));
    assert_eq!(stage.version(), "v2");
    assert!(stage.is_stable(&[]) && stage.is_stable(&["--no-state"]));
    ok(&stage.env, ["undo"]);
    assert_eq!(stage.version(), "v1");
    assert!(!stage.is_stable(&[]), "the old archive is back too");
    assert_eq!(stage.version(), "v2");
}

/// The archive is gone; what was extracted is on record.
#[test]
fn an_archive_that_was_cleaned_up_is_upgraded() {
    let stage = Stage::new(true);
    assert!(!stage.is_stable(&[]) && stage.is_stable(&[]));
    stage.want("v2", true);
    let plan = ok(&stage.env, ["plan", "manifest.yaml"]);
    let (old, new) = (&stage.sums[0][..12], &stage.sums[1][..12]);
    assert!(plan.contains(old) && plan.contains(new), "both versions are named: {plan}");
    let before = snapshot(stage.env.state());
    assert!(!stage.is_stable(&["--noop"]));
    assert_eq!(snapshot(stage.env.state()), before, "a preview writes nothing");
    assert!(stage.is_stable(&["--no-state"]), "nothing tells of the old version there");
    assert!(!stage.is_stable(&[]));
    assert_eq!(stage.version(), "v2");
    assert!(!stage.env.path("app.tar").exists());
    assert!(stage.is_stable(&[]));
    // Without a record it is what it was before there were records.
    std::fs::remove_dir_all(stage.env.state().join("extracted")).unwrap();
    stage.want("v1", true);
    assert!(stage.is_stable(&[]));
}

/// After an undo the record says what is there again.
#[test]
fn the_record_is_taken_back_with_the_files() {
    let stage = Stage::new(true);
    assert!(!stage.is_stable(&[]));
    let first = snapshot_of_content(&stage.env.path("opt"));
    stage.want("v2", true);
    assert!(!stage.is_stable(&[]));
    let second = snapshot_of_content(&stage.env.path("opt"));
    ok(&stage.env, ["undo"]);
    assert_eq!(snapshot_of_content(&stage.env.path("opt")), first);
    assert!(!stage.is_stable(&["--noop"]), "the new version is not there");
    stage.want("v1", true);
    assert!(stage.is_stable(&[]), "the old one is");
    // An undo of the undo.
    ok(&stage.env, ["undo"]);
    assert_eq!(snapshot_of_content(&stage.env.path("opt")), second);
    assert!(!stage.is_stable(&["--noop"]));
    stage.want("v2", true);
    assert!(stage.is_stable(&[]));
    // Back to nothing.
    ok(&stage.env, ["undo"]);
    ok(&stage.env, ["undo", &first_run(&stage.env)]);
    assert!(!stage.env.path("opt").exists());
    assert!(!stage.is_stable(&[]));
    assert_eq!(stage.version(), "v2");
}

fn first_run(env: &TestEnv) -> String {
    let runs = crate::history::runs(env);
    runs.last().unwrap()["id"].as_str().unwrap().to_owned()
}

/// A plan of an upgrade is of that upgrade: from one version to another.
#[test]
fn a_saved_plan_upgrades_what_it_has_seen() {
    let stage = Stage::new(true);
    assert!(!stage.is_stable(&[]));
    stage.want("v2", true);
    let save = ["plan", "manifest.yaml", "--out", "web.plan"];
    ok(&stage.env, save);
    ok(&stage.env, ["apply", "web.plan"]);
    assert_eq!(stage.version(), "v2");
    // Done already, the same plan no longer holds.
    let output = stage.env.run(["apply", "web.plan"]);
    assert!(!output.status.success(), "{}", said(&output));
    // Without the record there is nothing to upgrade.
    stage.want("v1", true);
    ok(&stage.env, save);
    std::fs::remove_dir_all(stage.env.state().join("extracted")).unwrap();
    let output = stage.env.run(["apply", "web.plan"]);
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(stage.version(), "v2");
}

/// Wherever a run dies, the next one ends with the wanted version, and the
/// record never claims one that is not there.
#[test]
fn a_killed_upgrade_is_repeated() {
    let stage = Stage::new(true);
    assert!(!stage.is_stable(&[]));
    // What each of the moments leaves: the marker, or the old record.
    let record = || {
        let folder = std::fs::read_dir(stage.env.state().join("extracted")).unwrap();
        let entry = folder.map(|entry| entry.unwrap().path()).next().unwrap();
        (entry.clone(), std::fs::read(&entry).unwrap())
    };
    let (path, old) = record();
    stage.want("v2", true);
    assert!(!stage.is_stable(&[]));
    let (_, new) = record();
    assert_ne!(old, new);
    // Everything in place and the record not yet written.
    std::fs::write(&path, &old).unwrap();
    assert!(!stage.is_stable(&[]), "it is extracted once more");
    assert_eq!(record().1, new);
    // Written, and the extraction not yet complete.
    stage.env.write("opt/app/version", "half");
    let subject = stage.env.path("opt/app/run");
    let digest = Command::new("sh")
        .args(["-c", "printf %s \"$1\" | sha256sum", "sh", subject.to_str().unwrap()])
        .output()
        .unwrap();
    let marker = &String::from_utf8(digest.stdout).unwrap()[..24];
    stage.env.write(&format!("opt/.ccm-incomplete-{marker}"), "");
    assert!(!stage.is_stable(&[]));
    assert_eq!(stage.version(), "v2");
    assert!(stage.is_stable(&[]));
}

/// Damage costs the knowledge of the version, and nothing else.
#[test]
fn a_damaged_record_is_reported_and_set_aside() {
    let stage = Stage::new(true);
    assert!(!stage.is_stable(&[]));
    let folder = stage.env.state().join("extracted");
    let name = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().file_name();
    std::fs::write(folder.join(&name), "{").unwrap();
    stage.want("v2", true);
    let output = stage.env.run(["apply", "manifest.yaml", "--noop"]);
    assert!(said(&output).contains("is damaged"), "{}", said(&output));
    assert!(folder.join(&name).exists(), "a preview leaves it alone");
    let output = stage.env.run(["apply", "manifest.yaml"]);
    assert!(output.status.success() && said(&output).contains("is damaged"), "{}", said(&output));
    let aside = folder.join(format!("{}.damaged", name.to_str().unwrap()));
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{");
    assert!(stage.is_stable(&[]), "as without a record");
}

/// Bundles have links to libraries of the system, and sometimes helpers that run
/// as root.
#[test]
fn links_that_lead_outside_and_setuid_programs() {
    let env = TestEnv::new();
    env.write("b/app/run", "#!/bin/sh\n");
    env.write("b/app/helper", "#!/bin/sh\n");
    std::os::unix::fs::symlink("/usr/lib", env.path("b/app/lib")).unwrap();
    let pack = "chmod 4755 b/app/helper && tar -cf b.tar -C b app";
    assert!(
        Command::new("sh").args(["-c", pack]).current_dir(env.dir()).status().unwrap().success()
    );
    let apply = |more: &str| {
        env.manifest(&format!(
            r#"ccm: {{resources: [{{archive: [{{"[DIR]/app.tar": {{url: "file://[DIR]/b.tar",
                extract_parent: "[DIR]/opt", creates: "[DIR]/opt/app/run", {more} [ME]}}}}]}}]}}"#
        ));
        env.run(["apply", "manifest.yaml"])
    };
    let output = apply("");
    assert!(!output.status.success() && said(&output).contains("setuid"), "{}", said(&output));
    assert!(said(&output).contains("allow_setuid"), "{}", said(&output));
    assert!(!env.path("opt").exists());
    let output = apply("allow_setuid: true,");
    assert!(output.status.success(), "{}", said(&output));
    let helper = std::fs::metadata(env.path("opt/app/helper")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&helper) & 0o7777, 0o4755);
    let link = std::fs::read_link(env.path("opt/app/lib")).unwrap();
    assert_eq!(link, std::path::Path::new("/usr/lib"));
    ok(&env, ["undo"]);
    assert!(!env.path("opt").exists());
}
