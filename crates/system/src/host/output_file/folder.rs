//! Creation of directories for output files, by the same rules as the files.

use super::destination::{PathResolver, PathStep, split_reversed};
use super::{OutputError, OutputProblem};
use rustix::io::Errno;
use std::path::Path;

/// Creates a directory and its missing parents.
///
/// Symbolic links are followed by the rule of [`super::OutputFile::open_output`]. Root creates no
/// directory behind another user's link, because the directory would not belong to that user.
///
/// # Errors
///
/// Another user's link is in the way, another kind of file has the name, or the directory cannot be
/// created.
pub fn make_folder(path: &Path) -> Result<(), OutputError> {
    create_missing(path).map_err(|problem| OutputError::new(path, problem))
}

fn create_missing(path: &Path) -> Result<(), OutputProblem> {
    let mut resolver = PathResolver::from_current_directory()?;
    let mut left = split_reversed(path);
    while let Some(part) = left.pop() {
        match resolver.resolve_next(&part, &mut left)? {
            PathStep::EnteredDirectory => {}
            PathStep::MissingEntry => {
                resolver.make_directory(&part)?;
                left.push(part);
            }
            PathStep::NotADirectory(_) => return Err(Errno::NOTDIR.into()),
        }
    }
    resolver.require_trusted_links()
}
