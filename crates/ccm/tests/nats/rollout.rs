//! The page about rollouts: canaries with two object names, two buckets, and
//! hierarchical data.

use ccm_testkit::nats::lacks_nats;

use crate::bed::{Bed, tarball};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rollout");

/// An example, for a directory and the user of the test.
fn example(bed: &Bed, name: &str) -> String {
    let text = std::fs::read_to_string(format!("{DIRECTORY}/{name}")).unwrap();
    let directory = bed.env.path("app");
    text.replace("/srv/app", directory.to_str().unwrap())
        .replace("owner: root", &format!("owner: \"{}\"", nix::unistd::geteuid()))
        .replace("group: root", &format!("group: \"{}\"", nix::unistd::getegid()))
}

/// What a machine of a ring has after it applied an object.
fn release(bed: &Bed, ring: Option<&str>, args: &[&str]) -> String {
    let mut command = bed.env.command(["apply"]);
    command.args(args);
    if let Some(ring) = ring {
        command.args(["--fact", &format!("ring={ring}")]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    bed.env.read("app/release")
}

#[test]
fn two_object_names_and_two_buckets() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    let old = example(&bed, "manifest.yaml");
    let new = old.replace("1.4.2", "1.5.0");
    assert_ne!(old, new);
    let (old, new) = (tarball(&old), tarball(&new));
    for bucket in ["MANIFESTS", "CANARY", "FLEET"] {
        wire.make_object_bucket(bucket, 1);
    }
    let ways = [
        (("MANIFESTS", "web-canary.tar.gz"), ("MANIFESTS", "web.tar.gz")),
        (("CANARY", "web.tar.gz"), ("FLEET", "web.tar.gz")),
    ];
    for (canary, fleet) in ways {
        let url = |(bucket, name): (&str, &str)| format!("obj://{bucket}/{name}");
        let (for_canary, for_fleet) = (url(canary), url(fleet));
        wire.put_object(canary.0, canary.1, &old);
        wire.put_object(fleet.0, fleet.1, &old);
        let fleet_has = |bed: &Bed| release(bed, None, &[&for_fleet]);
        let canary_has = |bed: &Bed| release(bed, Some("canary"), &[&for_canary]);
        assert_eq!(canary_has(&bed), "release=1.4.2 ring=canary\n");
        assert_eq!(fleet_has(&bed), "release=1.4.2 ring=fleet\n");
        wire.put_object(canary.0, canary.1, &new);
        assert_eq!(canary_has(&bed), "release=1.5.0 ring=canary\n");
        assert_eq!(fleet_has(&bed), "release=1.4.2 ring=fleet\n");
        wire.put_object(fleet.0, fleet.1, &new);
        assert_eq!(fleet_has(&bed), "release=1.5.0 ring=fleet\n");
        // And back.
        wire.put_object(fleet.0, fleet.1, &old);
        assert_eq!(fleet_has(&bed), "release=1.4.2 ring=fleet\n");
    }
}

#[test]
fn hierarchical_data() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_object_bucket("MANIFESTS", 1);
    wire.make_bucket("ROLLOUT", 1);
    wire.put_object("MANIFESTS", "web.tar.gz", &tarball(&example(&bed, "manifest.yaml")));
    let document = example(&bed, "data.yaml");
    let args = ["obj://MANIFESTS/web.tar.gz", "--hiera", "kv://ROLLOUT/web"];
    wire.put("ROLLOUT", "web", document.as_bytes());
    assert_eq!(release(&bed, Some("canary"), &args), "release=1.5.0 ring=canary\n");
    assert_eq!(release(&bed, None, &args), "release=1.4.2 ring=fleet\n");
    assert_eq!(release(&bed, Some("staging"), &args), "release=1.4.2 ring=fleet\n");
    let wider =
        document.replace("1.4.2", "1.5.0").replace("  ring:canary: {release: \"1.5.0\"}\n", "");
    let wider = wider.replace("overrides:\n", "overrides: {}\n");
    wire.put("ROLLOUT", "web", wider.as_bytes());
    assert_eq!(release(&bed, None, &args), "release=1.5.0 ring=fleet\n");
    assert_eq!(release(&bed, Some("canary"), &args), "release=1.5.0 ring=canary\n");
}
