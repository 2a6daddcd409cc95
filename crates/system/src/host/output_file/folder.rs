//! Creation of directories for output files, by the same rules as the files.

use super::destination::{Step, Way, parts};
use super::{OutputError, OutputProblem};
use rustix::io::Errno;
use std::path::Path;

/// Creates a directory and its missing parents.
///
/// Symbolic links are followed by the rule of [`super::OutputFile::open`]. Root creates no
/// directory behind another user's link, because the directory would not belong to that user.
///
/// # Errors
///
/// Another user's link is in the way, another kind of file has the name, or the directory cannot be
/// created.
pub fn make_folder(path: &Path) -> Result<(), OutputError> {
    walk(path).map_err(|problem| OutputError::new(path, problem))
}

fn walk(path: &Path) -> Result<(), OutputProblem> {
    let mut way = Way::from_here()?;
    let mut left = parts(path);
    while let Some(part) = left.pop() {
        match way.step(&part, &mut left)? {
            Step::Inside => {}
            Step::Missing => {
                way.make(&part)?;
                left.push(part);
            }
            Step::NoDirectory(_) => return Err(Errno::NOTDIR.into()),
        }
    }
    way.require_trusted_links()
}
