//! Input that comes when somebody sends it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Whether something can be read, or the end of it, within this time. A signal ends the wait.
///
/// # Errors
///
/// It cannot be waited for.
pub fn is_readable(input: impl AsFd, within: Duration) -> io::Result<bool> {
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
