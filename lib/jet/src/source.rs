//! The text of a template.

/// The text of one template and the name it goes by in messages.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}
