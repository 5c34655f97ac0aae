//! The studio: a server for a page in the browser that edits, checks, previews
//! and applies manifests.
