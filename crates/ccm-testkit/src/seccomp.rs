//! Commands in a sandbox that blocks system calls, as container managers do.

use std::path::Path;
use std::process::Command;

use crate::{is_root, lacks_program};

/// The number of `openat2`, the same on every architecture.
const OPENAT2: u32 = 437;

/// What `openat2` answers in a sandbox: kernels before Linux 5.6, and container
/// managers that do not know the call.
pub const OPENAT2_ERRORS: [(&str, i32); 2] = [("ENOSYS", 38), ("EPERM", 1)];

/// A command that runs a program where `openat2` fails with an error number; the
/// caller adds the arguments. `directory` is for the filter's file. `None` if the
/// test has to return because `bwrap` is missing.
pub fn without_openat2(errno: i32, program: &Path, directory: &Path) -> Option<Command> {
    if lacks_program("bwrap") {
        return None;
    }
    let file = directory.join(format!("openat2-{errno}.bpf"));
    std::fs::write(&file, filter(errno)).unwrap();
    let mut command = Command::new("sh");
    // bwrap reads the filter from a descriptor that it inherits.
    command.args(["-c", "filter=$1; shift; exec bwrap --seccomp 3 \"$@\" 3<\"$filter\"", "sh"]);
    command.arg(file).args(["--dev-bind", "/", "/", "--die-with-parent"]);
    if is_root() {
        command.args(["--cap-add", "ALL"]);
    }
    command.arg("--").arg(program);
    Some(command)
}

/// A filter for seccomp: a program for the kernel's packet filter that looks at
/// the number of the system call.
fn filter(errno: i32) -> Vec<u8> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const FAIL_WITH: u32 = 0x0005_0000;
    let instructions = [
        (LOAD_WORD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, OPENAT2),
        (RETURN, 0, 0, FAIL_WITH | errno.unsigned_abs()),
        (RETURN, 0, 0, ALLOW),
    ];
    let mut bytes = Vec::new();
    for (code, if_true, if_false, value) in instructions {
        bytes.extend(code.to_ne_bytes());
        bytes.extend([if_true, if_false]);
        bytes.extend(value.to_ne_bytes());
    }
    bytes
}
