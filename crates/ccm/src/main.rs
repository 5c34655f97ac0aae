//! The `ccm` command.

fn main() {}
