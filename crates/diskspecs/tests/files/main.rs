//! Files as people have them: what is read of them, and what is refused with its place.

mod changed;
mod hostile;
mod keys;
mod taken;

use diskperf_diskspecs::{Errors, ImportedSpecification, SpecificationFiles, import};
use std::collections::BTreeMap;

const PARTS: [(&str, &str); 4] = [
    ("small.parv", include_str!("../data/small.parv")),
    ("small.diskspecs", include_str!("../data/small.diskspecs")),
    ("small.model", include_str!("../data/small.model")),
    ("small.seek", include_str!("../data/small.seek")),
];

/// The small drive's files.
pub(crate) fn small() -> BTreeMap<String, String> {
    let parts = PARTS.map(|(name, content)| (name.to_owned(), content.to_owned()));
    parts.into()
}

/// The small drive, with a piece of one of its files replaced.
pub(crate) fn changed(file: &str, piece: &str, by: &str) -> Result<ImportedSpecification, Errors> {
    let mut files = small();
    let content = files.get_mut(file).expect("a file");
    assert!(content.contains(piece), "{file} has no {piece}");
    *content = content.replacen(piece, by, 1);
    import("small.parv", &SpecificationFiles::Memory(files))
}
