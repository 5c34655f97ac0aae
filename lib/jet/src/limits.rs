//! Limits on the work of a template.

/// How far one rendering may go before it fails with
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Statements and expressions inside one another, across templates and
    /// blocks that use themselves. The stack must have room for them: up to
    /// 2 KiB each in an optimised build, twice that in others.
    pub depth: usize,
    /// Units of work: one for each statement, expression and iteration, and for
    /// every 32 bytes of text moved.
    pub steps: u64,
    /// Bytes written, and the size of any one value that a template builds.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 250, steps: 10_000_000, output: 16 << 20 }
    }
}
