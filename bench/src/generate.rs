//! Manifests of many files, and what is in each of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One kibibyte of text, another for every file.
pub(crate) fn content(n: usize) -> String {
    let mut text = String::with_capacity(1024);
    for line in 0..16 {
        let _ = writeln!(text, "setting.{line:02} = value {n:08} {}", "x".repeat(36));
    }
    text.truncate(1023);
    text.push('\n');
    text
}

pub(crate) fn path(directory: &Path, n: usize) -> PathBuf {
    directory.join(format!("file-{n:06}.conf"))
}

/// A manifest that declares `n` files of one kibibyte each in a directory.
pub(crate) fn manifest(directory: &Path, n: usize) -> String {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    declare(directory, n, &user.to_string(), &group.to_string())
}

/// The same manifest with two placeholders in each resource.
pub(crate) fn templated(directory: &Path, n: usize) -> String {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let data = format!("data: {{user: {user}, group: {group}}}\n");
    data + &declare(directory, n, "\"{{ Data.user }}\"", "\"${ lookup('data.group') }\"")
}

fn declare(directory: &Path, n: usize, user: &str, group: &str) -> String {
    let mut text = String::from("ccm:\n  resources:\n    - file:\n");
    for n in 0..n {
        let _ = writeln!(text, "        - {}:", path(directory, n).display());
        let _ = writeln!(text, "            ensure: present\n            owner: {user}");
        let _ = writeln!(text, "            group: {group}\n            mode: \"0644\"");
        text.push_str("            content: |\n");
        for line in content(n).lines() {
            let _ = writeln!(text, "              {line}");
        }
    }
    text
}

/// A manifest of many small files, for edits.
pub(crate) fn small(n: usize) -> String {
    let head =
        "# site\nccm:\n  resources:\n    - file:\n        - defaults: {owner: root, group: root}\n";
    let file = |i: usize| {
        format!(
            "        - {}:\n            content: \"port = {i}\"  # number {i}\n            mode: \
             \"0600\"\n            alias: app{i}\n",
            small_name(i)
        )
    };
    head.to_owned() + &(0..n).map(file).collect::<String>()
}

pub(crate) fn small_name(i: usize) -> String {
    format!("/etc/app/{i:05}.conf")
}

/// Manifests of the same `n` small files.
pub(crate) struct LoopManifests {
    /// In a loop over the data.
    pub(crate) in_loop: String,
    /// One by one, with the placeholders of the loop.
    pub(crate) placeholders: String,
    /// One by one, with the values as they are.
    pub(crate) values: String,
}

pub(crate) fn looped(directory: &Path, n: usize) -> LoopManifests {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let directory = directory.display();
    let head = |block: &str| {
        format!(
            "ccm:\n  resources:\n    - {block}file:\n        - defaults: {{owner: {user}, group: \
             {group}, mode: \"0644\"}}\n"
        )
    };
    let file = |name: &str, port: &str| {
        format!("        - \"{directory}/{name}.conf\": {{content: \"listen {port};\\n\"}}\n")
    };
    let name = |i: usize| format!("site{i:06}");
    let port = |i: usize| (1024 + i % 60_000).to_string();
    let mut data = String::from("data:\n  sites:\n");
    let (mut placeholders, mut values) = (head(""), head(""));
    for i in 0..n {
        let _ = writeln!(data, "    - {{name: {}, port: {}}}", name(i), port(i));
        let member = |member: &str| format!("{{{{ Data.sites[{i}].{member} }}}}");
        placeholders += &file(&member("name"), &member("port"));
        values += &file(&name(i), &port(i));
    }
    let block = "for_each: \"{{ Data.sites }}\"\n      as: site\n      ";
    let in_loop = data.clone() + &head(block) + &file("{{ site.name }}", "{{ site.port }}");
    LoopManifests { in_loop, placeholders: data + &placeholders, values }
}
