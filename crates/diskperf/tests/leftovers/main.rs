//! What runs leave where they cannot remove it, and that `diskperf clean` finds
//! it, and nothing else.

mod clean;
mod fuse;
mod settings;
#[path = "../support/mod.rs"]
mod support;

use rustix::process::Signal;
use std::path::{Path, PathBuf};
use support::{Process, User, entries, words};

/// A run that goes on until it is ended.
const ENDLESS: &str = "run write_8192 --on ./target --size 64K --runs 100000 --quiet";

/// Starts it, and waits until it measures.
fn measuring(user: &User) -> Process {
    let before = user.stored().len();
    let mut process = user.start(&words(ENDLESS));
    process.wait_until(|| user.stored().len() > before);
    user.wait_for_repetitions(&mut process, 1);
    process
}

/// Starts it, and kills it; the folder that it left.
fn killed(user: &User) -> PathBuf {
    let mut process = measuring(user);
    process.signal(Signal::KILL);
    process.finish();
    the_folder_in(&user.target())
}

/// The one folder of a run in a directory.
#[track_caller]
fn the_folder_in(directory: &Path) -> PathBuf {
    let names = entries(directory);
    assert_eq!(names.len(), 1, "{names:?}");
    directory.join(&names[0])
}

/// The number of a process that has just ended.
fn dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// A folder as a killed run leaves it.
fn abandoned_folder(directory: &Path) -> PathBuf {
    let folder = directory.join(format!("diskperf-{}-00ff3a", dead_pid()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("diskperf-workspace"), "text").unwrap();
    std::fs::write(folder.join("file"), "text").unwrap();
    folder
}
