//! Benchmarks: ccm against a floor program that does only the system calls
//! which the same work needs. Prints ratios; nothing here passes or fails.
//!
//! ```text
//! ccm-bench run PATH/TO/ccm      all of it
//! ccm-bench archive PATH/TO/ccm  unpacking alone
//! ccm-bench plan PATH/TO/ccm     plans against runs, alone
//! ccm-bench loop PATH/TO/ccm     resources of a loop against the same written out, alone
//! ccm-bench edit PATH/TO/ccm     one edit of a large manifest, alone
//! ccm-bench floor check DIR N    the floor, by itself
//! ccm-bench floor create DIR N
//! ccm-bench generate DIR N       a manifest of N files, to standard output
//! ```

#![expect(clippy::print_stdout, reason = "figures are what this is for")]

mod api;
mod archive;
mod floor;
mod generate;
mod measure;
mod packages;
mod report;
mod scaffold;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap_or(10_000);
    let result = match args.as_slice() {
        ["run", ccm] => report::run(Path::new(ccm), report::measure_all),
        ["archive", ccm] => report::run(Path::new(ccm), report::measure_archive),
        ["plan", ccm] => report::run(Path::new(ccm), report::measure_plan),
        ["loop", ccm] => report::run(Path::new(ccm), report::measure_loop),
        ["edit", ccm] => report::run(Path::new(ccm), report::measure_edit),
        ["floor", "check", directory, n] => floor::check(Path::new(directory), number(n)),
        ["floor", "read", directory, n] => floor::read(Path::new(directory), number(n)),
        ["floor", "create", directory, n] => floor::create(Path::new(directory), number(n)),
        ["generate", directory, n] => {
            let manifest = generate::manifest(Path::new(directory), number(n));
            std::io::stdout().write_all(manifest.as_bytes())
        }
        ["measure", command @ ..] => measure::child(command),
        _ => {
            println!(
                "usage: ccm-bench run|archive|plan|loop|edit CCM | floor check|read|create DIR N | generate DIR N"
            );
            return ExitCode::from(64);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
