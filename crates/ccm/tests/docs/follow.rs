//! Pages with `console` blocks are followed literally: their files are
//! written, their commands run in order, in one shell, in a fresh home. What
//! they print is what the page says. `CCM_WRITE_DOCS=1` writes it there.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ccm_testkit::markdown::{Block, Page, pages};

/// The home that pages speak of.
const HOME: &str = "/home/ann";
/// The machine that pages speak of.
const MACHINE: &str = "web1";
/// The port that pages speak of.
const NATS_PORT: &str = "4222";
/// Stands for any number of lines.
const ELISION: &str = "…";

/// A command, and what the page says that it prints.
struct Step {
    command: String,
    wanted: String,
    line: usize,
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (number, text) in block.text.lines().enumerate() {
        if let Some(command) = text.strip_prefix("$ ") {
            let line = block.line + 1 + number;
            steps.push(Step { command: command.to_owned(), wanted: String::new(), line });
        } else {
            let step = steps.last_mut().unwrap();
            let part = if goes_on { &mut step.command } else { &mut step.wanted };
            let _ = if goes_on { write!(part, "\n{text}") } else { writeln!(part, "{text}") };
        }
        goes_on = text.ends_with('\\') && steps.last().is_some_and(|step| step.wanted.is_empty());
    }
    steps
}

/// A home whose path is as long as that of the pages, so that what is aligned
/// stays so.
fn home() -> tempfile::TempDir {
    let bytes = HOME.len() - "/tmp/".len();
    tempfile::Builder::new().prefix("").rand_bytes(bytes).tempdir_in("/tmp").unwrap()
}

/// Rows with the owner and the machine that pages speak of.
fn shown(text: &str) -> String {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let user_name = nix::unistd::User::from_uid(user).unwrap().map(|user| user.name);
    let group_name = nix::unistd::Group::from_gid(group).unwrap().map(|group| group.name);
    let mut text = text.replace(&format!("owner {user}, group {group}"), "owner 1000, group 1000");
    if let (Some(user), Some(group)) = (user_name, group_name) {
        text = text.replace(&format!("owner {user}, group {group}"), "owner ann, group ann");
    }
    let uname = rustix::system::uname();
    let name = uname.nodename().to_str().unwrap();
    text.replace(&format!(" on {name}\n"), &format!(" on {MACHINE}\n"))
}

fn uses_nats(page: &Page) -> bool {
    page.text.contains("$ nats-server ")
}

fn free_port() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port().to_string()
}

/// Runs everything that a page shows; the outputs in order.
fn follow(page: &Page, directory: &Path) -> Vec<String> {
    // What a page starts in the background ends with it.
    let end = "trap 'kill $(jobs -p) 2> /dev/null' EXIT";
    let mut script = format!("exec 2>&1 </dev/null\n{end}\ncd\n");
    for block in page.blocks() {
        if let Some(name) = block.attribute("file") {
            let _ = writeln!(script, "mkdir -p \"$(dirname {name})\"");
            let _ = write!(script, "cat > {name} <<'END OF FILE'\n{}END OF FILE\n", block.text);
        }
        if block.language == "console" {
            for step in steps(&block) {
                // What the next command may ask for is the code of this one.
                let mark = "status=$?; printf '\\n@@\\n'; (exit $status)";
                let _ = write!(script, "{}\n{mark}\n", step.command);
            }
        }
    }
    let home = home();
    let home = home.path();
    // A page that starts a server gets a port of its own.
    let port = free_port();
    if uses_nats(page) {
        script = script.replace(NATS_PORT, &port);
    }
    let tools = ccm_testkit::nats::program();
    let tools = tools.as_deref().and_then(Path::parent);
    let tools = tools.map(|tools| format!("{}:", tools.display())).unwrap_or_default();
    let temporary = directory.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let path = directory.join("script");
    std::fs::write(&path, script).unwrap();
    let binary = crate::binary();
    let programs = binary.parent().unwrap();
    let output = Command::new("bash")
        .arg("--norc")
        .arg(&path)
        .env_clear()
        .env("PATH", format!("{}:{tools}/usr/local/bin:/usr/bin:/bin", programs.display()))
        .env("HOME", home)
        .env("TMPDIR", &temporary)
        .env("LC_ALL", "C.UTF-8")
        .env("CCM_STATE_DIR", directory.join("state"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(home.to_str().unwrap(), HOME).replace(&port, NATS_PORT);
    let text = shown(&text.replace(temporary.to_str().unwrap(), "/tmp"));
    let mut outputs: Vec<String> = text.split("\n@@\n").map(str::to_owned).collect();
    outputs.pop();
    outputs
}

/// What differs from run to run, replaced.
fn steady(line: &str) -> String {
    let word = |word: &str| {
        let (key, value) = word.rsplit_once('=').unwrap_or(("", word));
        let bare = value.trim_matches(['\'', '"', ',', ':']);
        let begins = bare.starts_with(|c: char| c.is_ascii_digit());
        let is_time = begins && bare.ends_with('s') && bare.len() < 12;
        let is_date = begins && bare.ends_with('Z') && bare.contains('T');
        let is_id = bare.len() == 27 && bare.chars().all(|c| c.is_ascii_alphanumeric());
        if let Some((before, _)) = bare.split_once("/ccm-session-") {
            return format!("{before}/[…]");
        }
        let is_run = bare.len() == 19
            && bare.chars().enumerate().all(|(at, c)| match at {
                8 | 15 => c == '-',
                _ => c.is_ascii_digit(),
            });
        if is_time || is_date || is_id || is_run { format!("{key}[…]") } else { word.to_owned() }
    };
    let line = ccm_testkit::without_time(line);
    let line = line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    for name in ["owner: ", "group: ", "duration: "] {
        if let Some(at) = line.find(name) {
            return format!("{}[…]", &line[..at + name.len()]);
        }
    }
    // A change of owner or group says whose it is now.
    match line.rsplit_once("to: ") {
        Some((before, "ann" | "root" | "nobody" | "nogroup")) => format!("{before}to: […]"),
        _ => line,
    }
}

/// Whether the output is what was wanted, line by line.
fn agrees(wanted: &[String], found: &[String]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first == ELISION => {
            (0..=found.len()).any(|skipped| agrees(rest, &found[skipped..]))
        }
        Some((first, rest)) => found.first() == Some(first) && agrees(rest, &found[1..]),
    }
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(steady).collect()
}

/// Pages on which ccm starts itself, or knows another ccm by its process. Where an
/// emulator runs the binary, that process is the emulator.
const NOT_EMULATED: [&str; 2] = ["docs/agent.md", "docs/when-a-run-dies.md"];

#[test]
fn what_pages_show_is_what_happens() {
    let is_writing = std::env::var_os("CCM_WRITE_DOCS").is_some();
    let is_emulated = std::env::var_os("CCM_BINARY_IS_EMULATED").is_some();
    let mut followed = Vec::new();
    let mut problems = String::new();
    for page in pages() {
        let blocks = page.blocks();
        let steps: Vec<Step> =
            blocks.iter().filter(|block| block.language == "console").flat_map(steps).collect();
        if steps.is_empty() || uses_nats(&page) && ccm_testkit::nats::lacks_nats() {
            continue;
        }
        if is_emulated && NOT_EMULATED.contains(&page.name.as_str()) {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let outputs = follow(&page, directory.path());
        assert_eq!(outputs.len(), steps.len(), "{}: the shell gave up: {outputs:?}", page.name);
        let mut text: Vec<String> = page.text.lines().map(str::to_owned).collect();
        for (step, output) in steps.iter().zip(&outputs).rev() {
            if agrees(&lines(&step.wanted), &lines(output)) {
                continue;
            }
            let begin = step.line - 1 + step.command.lines().count();
            let end = begin + step.wanted.lines().count();
            text.splice(begin..end, output.trim_end().lines().map(str::to_owned));
            let place = page.at(step.line);
            let _ = write!(problems, "{place}: {} says\n{output}\n", step.command);
        }
        if is_writing {
            std::fs::write(&page.path, text.join("\n") + "\n").unwrap();
        }
        followed.push(page.name);
    }
    assert!(followed.contains(&"docs/tour.md".to_owned()), "{followed:?}");
    assert!(is_writing || problems.is_empty(), "{problems}");
}

#[test]
fn times_are_masked_and_words_are_not() {
    assert_eq!(
        steady("Applied x.yaml in 12ms: 3 stable ensure=is"),
        "Applied x.yaml in […] 3 stable ensure=is"
    );
    assert_eq!(steady("  » exec#x  true  (1.2s)"), "  » exec#x  true");
    assert_eq!(steady("  » exec#x  (noop)"), "  » exec#x  (noop)");
    assert_eq!(steady("undo of 20261117-115402-001"), "undo of […]");
    assert_eq!(steady("  event_id: '3MAeT8fqjpa34YugSKtQStISlkR'"), "  event_id: […]");
    let all = |text: &[&str]| text.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    assert!(agrees(&all(&["a", "…", "d"]), &all(&["a", "b", "c", "d"])));
    assert!(!agrees(&all(&["a", "…", "d"]), &all(&["a", "b"])));
}
