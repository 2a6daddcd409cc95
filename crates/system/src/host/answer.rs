//! Messages to standard error from signal handlers.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;

/// Writes the parts of a line to standard error, without waiting. Signal handlers may call it
/// (signal-safety(7)), since it uses only poll(2) and write(2). An unread pipe must not delay the
/// end of a run, so parts that do not fit are dropped.
pub fn write_answer(parts: &[&str]) {
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
