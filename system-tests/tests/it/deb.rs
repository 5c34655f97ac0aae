//! ccm's own Debian package.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Layer, Machine};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/deb.sh");

/// A directory that is gone with the value.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ccm-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes the package of a binary; not compressed, as that takes its time.
fn make(binary: &Path, directory: &Path) -> Vec<u8> {
    let made = Command::new(SCRIPT)
        .arg(binary)
        .arg(directory)
        .arg("-Znone")
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let name = String::from_utf8(made.stdout).unwrap();
    assert!(name.contains(concat!("/ccm_", env!("CARGO_PKG_VERSION"), "-1_")), "{name}");
    std::fs::read(name.trim()).unwrap()
}

/// Everything where packages put something, and what dpkg knows of them.
fn names(machine: &Machine) -> BTreeSet<String> {
    let script = "find /etc /opt /srv /usr /var/lib/dpkg -xdev ! -path '/var/lib/dpkg/*-old'";
    machine.ok(script).lines().map(str::to_owned).collect()
}

#[test]
fn it_installs_works_and_leaves_nothing() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let directory = Directory::new("deb");
    let package = make(system_tests::ccm(), &directory.0);
    let again = make(system_tests::ccm(), &directory.0);
    assert!(package == again, "the same binary makes another package");
    // Small images leave manual pages out.
    machine.ok("rm -f /etc/dpkg/dpkg.cfg.d/*");
    machine.put_bytes("/root/ccm.deb", &package);
    machine.put(
        "/root/m.yaml",
        "ccm: {resources: [{file: [{/srv/made: {content: hello, owner: root, group: root, mode: \"0640\"}}]}]}\n",
    );
    let before = names(&machine);

    machine.ok("apt-get install -y --no-install-recommends /root/ccm.deb");
    assert_eq!(machine.ok("dpkg-query -W -f '${Status}' ccm"), "install ok installed");
    assert_eq!(machine.ok("dpkg -V ccm"), "", "files differ from their checksums");

    let version = machine.ok("env -i /usr/bin/ccm --version");
    assert!(version.starts_with(concat!("ccm ", env!("CARGO_PKG_VERSION"), " (")), "{version}");
    let ran = machine.run(&["env", "-i", "/usr/bin/ccm", "apply", "/root/m.yaml"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(machine.ok("cat /srv/made; stat -c ' %U %a' /srv/made"), "hello root 640");

    for (shell, file) in [
        ("bash", "/usr/share/bash-completion/completions/ccm"),
        ("zsh", "/usr/share/zsh/vendor-completions/_ccm"),
        ("fish", "/usr/share/fish/vendor_completions.d/ccm.fish"),
    ] {
        machine.ok(&format!("/usr/bin/ccm completion {shell} | cmp - {file}"));
    }
    machine.ok("zcat /usr/share/man/man1/ccm.1.gz | cmp - <(/usr/bin/ccm man)");
    machine.ok("/usr/bin/ccm man --dir /tmp; cd /tmp; test -e ccm-ensure-file.1
        for page in ccm*.1; do zcat /usr/share/man/man1/$page.gz | cmp - $page; done");
    machine.ok("grep -q 'Apache License' /usr/share/doc/ccm/copyright
        zcat /usr/share/doc/ccm/changelog.gz | grep -x '# Changelog'
        zcat /usr/share/doc/ccm/changelog.Debian.gz | grep '^ccm ('");
    if machine.run(&["sh", "-c", "command -v man"]).code == 0 {
        assert_eq!(machine.ok("man -w ccm"), "/usr/share/man/man1/ccm.1.gz");
        assert_eq!(machine.ok("man -w ccm-ensure"), "/usr/share/man/man1/ccm-ensure.1.gz");
    }
    let odd = "dpkg -L ccm | while read -r path; do stat -c '%U:%G %a %F %n' \"$path\"; done |
        grep -vE '^root:root (755 directory|644 regular file) |^root:root 755 .* /usr/bin/ccm$'";
    let odd = machine.sh(odd);
    assert_eq!((odd.code, odd.stdout.as_str()), (1, ""), "owners or modes: {odd:?}");

    machine.ok("apt-get remove -y ccm && dpkg --purge ccm; rm /srv/made");
    assert_eq!(machine.sh("dpkg-query -W ccm").code, 1, "dpkg still knows it");
    let left: Vec<_> = names(&machine).difference(&before).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
}
