//! Answers to signals, written to standard error from their handlers.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;

/// Writes parts of a line to standard error if it takes them now. A handler of a signal may
/// call this (signal-safety(7)): it makes poll(2) and write(2) alone. A pipe that nobody reads
/// must not hold up the end of a run: what it does not take is left out.
pub fn answer(parts: &[&str]) {
    let stderr = io::stderr();
    let mut waiting = [PollFd::new(&stderr, PollFlags::OUT)];
    let is_ready = poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    if !is_ready {
        return;
    }
    for part in parts {
        let _ = rustix::io::write(stderr.as_fd(), part.as_bytes());
    }
}
