//! Waiting for input that arrives at unknown times.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Reports whether input can be read, or its end is reached, within the given time. A signal ends
/// the wait.
///
/// # Errors
///
/// Waiting for the input fails.
pub fn is_input_readable(input: impl AsFd, within: Duration) -> io::Result<bool> {
    let mut waited_for = [PollFd::new(&input, PollFlags::IN)];
    let within = Timespec {
        tv_sec: within.as_secs() as i64,
        tv_nsec: i64::from(within.subsec_nanos()),
    };
    match poll(&mut waited_for, Some(&within)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
