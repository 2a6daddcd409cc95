//! Which processes still run.

use rustix::io::Errno;
use rustix::process::Pid;

/// Whether a process of this number runs; any other answer than "no such
/// process" counts as yes.
pub(super) fn is_alive(pid: i32) -> bool {
    Pid::from_raw(pid).is_none_or(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}
