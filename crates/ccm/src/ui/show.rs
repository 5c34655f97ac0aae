//! Which parts of a run are printed, and the current position in it.

/// What a run puts on standard output while it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// Rows as text, as resources are done.
    #[default]
    Rows,
    /// One event per line, as JSON.
    Events,
    /// Nothing: what is printed follows at the end.
    Nothing,
}

/// How many rows there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Failures only.
    Quiet,
    /// Everything that is not stable.
    #[default]
    Normal,
    /// Stable and skipped resources too.
    Verbose,
}

/// How the end of a run is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Failures in full, and a line with counts.
    #[default]
    Summary,
    /// Nothing follows the rows, so each has its error in full.
    None,
    /// The same, and there is one resource only, which always has its row.
    OneResource,
}

/// What is shown of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Show {
    pub(crate) output: Output,
    pub(crate) amount: Amount,
    pub(crate) closing: Closing,
    /// Remember the slowest resources.
    pub(crate) profile: bool,
    /// Output of commands carries the name of its resource.
    pub(crate) names_output: bool,
}

/// A manifest that a resource applies, while it runs.
pub(super) struct Frame {
    pub(super) manifest: String,
    pub(super) has_heading: bool,
}
