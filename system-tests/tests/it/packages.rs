//! ccm's own packages, for Debian and as rpm.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use ccm_testkit::lacks_program;

use crate::{Layer, Machine};

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What every package has, beside the binary, manual pages and completions.
const COMMON: [&str; 5] = [
    "/usr/lib/systemd/system/ccm-agent.service",
    "/usr/share/doc/ccm/docs/tour.md",
    "/usr/share/doc/ccm/docs/resources/file.md",
    "/usr/share/doc/ccm/examples/agent/config.yaml",
    "/usr/share/doc/ccm/examples/monitoring/alerts.yaml",
];

/// What lintian says of the binary under test, which is not for release, and
/// of the package, which is not compressed here.
const NOT_FOR_RELEASE: &str = "unstripped-binary-or-object,\
    uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball";

/// A directory that is gone with the value.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ccm-{name}-{}-{number}", std::process::id()));
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
pub(crate) fn make(binary: &Path, directory: &Path) -> Vec<u8> {
    let made = Command::new(format!("{PROJECT}/packaging/deb.sh"))
        .arg(binary)
        .arg(directory)
        .arg("-Znone")
        .env("CCM_LICENSES", licenses(directory))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let name = String::from_utf8(made.stdout).unwrap();
    assert!(name.contains(concat!("/ccm_", env!("CARGO_PKG_VERSION"), "-1_")), "{name}");
    std::fs::read(name.trim()).unwrap()
}

/// The licenses of the libraries in ccm, as `cargo xtask` writes them.
fn licenses(directory: &Path) -> PathBuf {
    let file = directory.join("licenses");
    if !file.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let written = Command::new(cargo)
            .args(["run", "--quiet", "--locked", "--package", "xtask", "--", "licenses"])
            .arg(&file)
            .current_dir(PROJECT)
            .output()
            .unwrap();
        assert!(written.status.success(), "{written:?}");
    }
    file
}

/// What both packages promise of the agent: its unit is there, known, and does
/// nothing until someone wants it.
fn check_common(machine: &Machine) {
    for file in COMMON {
        assert!(machine.has(file), "{file}");
    }
    let unit = machine.ok("cat /usr/lib/systemd/system/ccm-agent.service");
    assert!(unit.contains("\nExecStart=/usr/bin/ccm agent\n"), "{unit}");
    assert_eq!(machine.sh("systemctl is-enabled ccm-agent").stdout, "disabled");
    assert_eq!(machine.sh("systemctl is-active ccm-agent").stdout, "inactive");
    let verified = machine.sh("systemd-analyze verify --man=no ccm-agent.service");
    let about_us = verified.stderr.lines().filter(|line| line.contains("ccm-agent"));
    assert_eq!(about_us.collect::<Vec<_>>(), [""; 0], "{verified:?}");
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
    check_common(&machine);
    machine.ok("zgrep -q 'Permission is hereby granted' /usr/share/doc/ccm/LICENSES.third-party.gz
        zgrep -q '^serde ' /usr/share/doc/ccm/LICENSES.third-party.gz");
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

    machine.ok("systemctl --quiet enable ccm-agent");
    machine.ok("apt-get remove -y ccm && dpkg --purge ccm; rm /srv/made");
    assert_eq!(machine.sh("dpkg-query -W ccm").code, 1, "dpkg still knows it");
    let left: Vec<_> = names(&machine).difference(&before).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// From a release on the loopback interface, as `install.sh` finds it anywhere, to
/// the first plan; with an agent that runs.
#[test]
fn the_script_installs_upgrades_and_leaves_nothing() {
    if lacks_program("busybox") || lacks_program("strip") {
        return;
    }
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let directory = Directory::new("script");
    let binary = directory.0.join("ccm");
    let mut strip = Command::new("strip");
    assert!(strip.arg("-o").arg(&binary).arg(system_tests::ccm()).status().unwrap().success());
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let made = Command::new(format!("{PROJECT}/packaging/tar.sh"))
        .arg(&binary)
        .args([&target, directory.0.to_str().unwrap()])
        .env("CCM_LICENSES", licenses(&directory.0))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let archive = std::fs::read(String::from_utf8(made.stdout).unwrap().trim()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let first = format!("ccm-{version}-{target}");
    machine.put_bytes(&format!("/root/release/{first}.tar.gz"), &archive);
    machine.put_bytes("/root/install.sh", &std::fs::read(format!("{PROJECT}/install.sh")).unwrap());
    // The next version is the same program, and has another page.
    machine.ok(&format!(
        "cd /root/release; tar -xzf {first}.tar.gz; mv {first} ccm-99.0.0-{target}
         mv ccm-99.0.0-{target}/share/man/man1/ccm-ensure.1.gz \
            ccm-99.0.0-{target}/share/man/man1/ccm-renamed.1.gz
         tar -czf ccm-99.0.0-{target}.tar.gz ccm-99.0.0-{target}; rm -r ccm-99.0.0-{target}
         sha256sum *.tar.gz > SHA256SUMS; busybox httpd -p 127.0.0.1:8000 -h /root/release
         umount /usr/local/bin/ccm; rm /usr/local/bin/ccm"
    ));
    machine.put("/root/m.yaml", "ccm: {resources: [{exec: [{echo first: {}}]}]}\n");
    let before = names(&machine);
    // No compiler and nothing of its tools in the path.
    let script = |args: &str| {
        format!(
            "env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
             CCM_DOWNLOAD=http://127.0.0.1:8000 sh /root/install.sh {args}"
        )
    };

    let begin = std::time::Instant::now();
    let said = machine.ok(&script(&format!("--version {version}")));
    assert!(said.contains(&format!("Installed ccm {version} (")), "{said}");
    let plan = machine.ok("env -i HOME=/root /usr/local/bin/ccm plan /root/m.yaml");
    assert!(plan.contains("1 to run"), "{plan}");
    let took = begin.elapsed();
    assert!(took.as_secs() < 30, "{took:?}");
    machine.ok("cmp <(/usr/local/bin/ccm man) <(zcat /usr/local/share/man/man1/ccm.1.gz)");

    machine.put("/etc/choria/ccm/config.yaml", "manifests: [/root/m.yaml]\nsplay: 0\n");
    machine.ok("systemctl --quiet enable --now ccm-agent");
    let pid = || machine.ok("systemctl show --property=MainPID --value ccm-agent");
    let old = pid();
    let said = machine.ok(&script("--version 99.0.0"));
    assert!(said.contains(&format!("Replacing ccm {version} (")), "{said}");
    assert!(machine.has("/usr/local/share/man/man1/ccm-renamed.1.gz"));
    ccm_testkit::wait_until("the agent of the next version", || {
        machine.sh("systemctl is-active ccm-agent").stdout == "active" && pid() != old
    });

    let said = machine.ok(&script("--uninstall"));
    assert!(said.contains("Removed ccm from /usr/local."), "{said}");
    assert_eq!(machine.sh("systemctl is-active ccm-agent").stdout, "inactive");
    let left: Vec<_> = names(&machine).difference(&before).cloned().collect();
    assert_eq!(left, ["/etc/choria", "/etc/choria/ccm", "/etc/choria/ccm/config.yaml"]);
    let gone: Vec<_> = before.difference(&names(&machine)).cloned().collect();
    assert_eq!(gone, [""; 0], "directories that were there");
}

/// A command in an overlay can do what it likes. In a machine, as the host would be
/// the one that learns of a mistake.
#[test]
fn what_a_command_does_in_an_overlay_stays_there() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let script = std::fs::read(format!("{PROJECT}/packaging/overlay.sh")).unwrap();
    machine.put_bytes("/root/overlay.sh", &script);
    machine.ok("mkdir /srv/work");
    let look = || {
        machine
            .ok("stat -c '%n %F %a %t:%T' /dev/* /etc/passwd /usr/sbin/*; ls -A / /etc /run /tmp;
             grep -c . /proc/self/mountinfo; ps -C sleep -o args= || true")
    };
    let before = look();
    let ran = machine.sh("cd /srv/work && bash /root/overlay.sh -- bash -c '
            chmod 0 /dev/null /dev/zero; rm -f /dev/* 2> /srv/work/errors
            rm -rf /etc /usr/share /run/*; echo x > /srv/lost; echo x > kept
            sleep 1000 & mount -t tmpfs x /srv/work/..'; echo $?");
    assert!(ran.stdout.ends_with('0'), "{ran:?}");
    assert_eq!(look(), before);
    assert!(machine.has("/srv/work/kept") && !machine.has("/srv/lost"), "{ran:?}");
}

#[test]
fn lintian_has_no_complaints() {
    if lacks_program("lintian") {
        return;
    }
    let directory = Directory::new("lintian");
    let package = make(system_tests::ccm(), &directory.0);
    let file = directory.0.join("ccm.deb");
    std::fs::write(&file, package).unwrap();
    let checked = Command::new("lintian")
        .args(["--allow-root", "--fail-on", "error,warning", "--suppress-tags", NOT_FOR_RELEASE])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.trim().is_empty(), "{checked:?}");
}

/// Made and installed in the machine, as that has rpm and dnf.
#[test]
fn the_rpm_installs_works_and_leaves_nothing() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    let directory = Directory::new("rpm");
    let licenses = licenses(&directory.0);
    machine.put_bytes("/root/licenses", &std::fs::read(licenses).unwrap());
    let project = Command::new("tar")
        .args(["--create", "--directory", PROJECT])
        .args(["LICENSE", "CHANGELOG.md", "packaging", "docs", "examples"])
        .output()
        .unwrap();
    assert!(project.status.success(), "{project:?}");
    machine.put_bytes("/root/project.tar", &project.stdout);
    machine.ok("mkdir /root/project; tar -C /root/project -xf /root/project.tar");
    let make = |directory: &str| {
        machine.ok(&format!(
            "CCM_LICENSES=/root/licenses SOURCE_DATE_EPOCH=1700000000 \
             /root/project/packaging/rpm.sh /usr/local/bin/ccm {directory} w0.gzdio"
        ))
    };
    let package = make("/root/a");
    assert!(package.starts_with(concat!("/root/a/ccm-", env!("CARGO_PKG_VERSION"), "-1.")));
    let again = make("/root/b");
    machine.ok(&format!("cmp {package} {again}"));

    // This machine is Debian's, so no rpm has its shell and libraries.
    machine.ok(&format!(
        "{{ printf 'Name: base\\nVersion: 1\\nRelease: 1\\nSummary: x\\nLicense: x\\nBuildArch: noarch\\n'
           rpm -qp --requires {package} | grep -v '^rpmlib(' | sort -u | sed 's/^/Provides: /'
           printf '%%%%description\\nx\\n%%%%files\\n'; }} > /root/base.spec
         rpmbuild -bb --quiet --define '_rpmdir /root/base' /root/base.spec
         dnf -q install -y /root/base/noarch/base-1-1.noarch.rpm"
    ));
    let before = names(&machine);
    machine.ok(&format!("dnf -q install -y {package}"));
    assert_eq!(machine.ok("rpm -V ccm"), "");
    check_common(&machine);
    let version = machine.ok("env -i /usr/bin/ccm --version");
    assert!(version.starts_with(concat!("ccm ", env!("CARGO_PKG_VERSION"), " (")), "{version}");
    machine.ok("zcat /usr/share/man/man1/ccm.1.gz | cmp - <(/usr/bin/ccm man)
        /usr/bin/ccm completion zsh | cmp - /usr/share/zsh/site-functions/_ccm
        grep -q 'Apache License' /usr/share/licenses/ccm/LICENSE
        zgrep -q '^serde ' /usr/share/licenses/ccm/LICENSES.third-party.gz");

    machine.ok("systemctl --quiet enable ccm-agent");
    machine.ok("dnf -q remove -y ccm");
    let left: Vec<_> = names(&machine).difference(&before).cloned().collect();
    let is_of_dnf = |path: &String| path.starts_with("/var/lib");
    assert!(left.iter().all(is_of_dnf), "{left:?}");
}
