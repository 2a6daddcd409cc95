//! Files of `catalogue/` that are embedded in the program, as listed by the build script.

/// Embedded files as pairs of path below `catalogue/` and content, sorted by path.
pub(crate) const EMBEDDED_FILES: &[(&str, &str)] =
    include!(concat!(env!("OUT_DIR"), "/catalogue_files.rs"));
