//! The manifests of the documentation, on a machine that nobody keeps.

use ccm_testkit::markdown::pages;

use crate::{Layer, Machine, Stable};

/// The blocks that make users and groups, by page.
const BLOCKS: [(&str, &[&str]); 2] = [
    ("docs/resources/user.md", &["team.yaml", "service-account.yaml", "restricted-key.yaml"]),
    ("docs/from-ansible-puppet.md", &["accounts.yaml"]),
];

#[test]
fn what_the_pages_show_works_twice() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("mkdir -p /srv; useradd --create-home cid");
    for (name, files) in BLOCKS {
        let page = pages().into_iter().find(|page| page.name == name).unwrap();
        for file in files {
            let block =
                page.blocks().into_iter().find(|block| block.attribute("file") == Some(file));
            let text = block.unwrap_or_else(|| panic!("{name} has no {file}")).text;
            let preview = machine.noop(&text);
            let report = machine.apply(&text);
            assert_eq!(report.errors(), "", "{name}: {file}");
            assert_eq!(preview.outcomes(), report.outcomes(), "{name}: {file}");
            let again = machine.apply(&text);
            assert!(again.outcomes().iter().all(|outcome| *outcome == Stable), "{file}: {again:?}");
        }
    }
    assert_eq!(machine.ok("id -Gn bob"), "bob ops audit");
    assert_eq!(machine.ok("id -u ann; getent group ops | cut -d: -f3"), "2001\n2000");
    assert_eq!(machine.sh("getent passwd cid").code, 2);
    assert!(machine.read("/home/ann/.ssh/authorized_keys").starts_with("restrict ssh-ed25519"));
    assert_eq!(machine.ok("stat -c %U:%G /srv/app"), "app:app");
}
