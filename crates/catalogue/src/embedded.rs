//! The files of `catalogue/`, as the build script listed them.

/// Path below `catalogue/` and content, sorted by path.
pub(crate) const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalogue_files.rs"));
