//! Directories for output files, made by the rules for the files themselves.

use super::destination::{Step, Way, parts};
use super::{OutputError, OutputProblem};
use rustix::io::Errno;
use std::path::Path;

/// Makes a directory, and those above it, if they are not there.
///
/// Symbolic links are followed by the rule of [`super::OutputFile::open`]. Root
/// makes no directory where another user's link leads: it would not be that user's.
///
/// # Errors
///
/// Another user's link is in the way, something else has the name of a directory,
/// or none can be made.
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
