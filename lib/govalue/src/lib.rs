//! Dynamic values that print, compare and convert as Go's do.
