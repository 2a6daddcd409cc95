//! A user's program in a process group of its own, so that all of it can be ended.

use super::device::tool::kill_with_parent;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Intervals between two looks at a program: short for one that ends at once.
const POLL_MIN: Duration = Duration::from_micros(500);
const POLL_MAX: Duration = Duration::from_millis(10);

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEnd {
    /// The program ended on its own.
    Exited(ExitStatus),
    /// The program was killed because its time was over.
    TimedOut,
    /// The program was killed because the user ended the run.
    Stopped,
}

/// Running program with all the processes that it has started. A drop kills them.
#[derive(Debug)]
pub struct ChildGroup {
    child: Child,
    group: Pid,
}

impl ChildGroup {
    /// Starts a program in a new process group. The program is killed when the thread that
    /// started it ends.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        kill_with_parent(&mut command);
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        Ok(Self { child, group })
    }

    /// Waits until the program ends, its time is over or `stop` is set, and kills what is left of
    /// the group.
    ///
    /// # Errors
    ///
    /// The kernel does not report the end.
    pub fn wait(mut self, time_max: Option<Duration>, stop: &AtomicBool) -> io::Result<GroupEnd> {
        let start = Instant::now();
        let mut pause = POLL_MIN;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(GroupEnd::Exited(status));
            }
            if stop.load(Ordering::SeqCst) {
                return Ok(GroupEnd::Stopped);
            }
            if time_max.is_some_and(|max| start.elapsed() > max) {
                return Ok(GroupEnd::TimedOut);
            }
            thread::sleep(pause);
            pause = (pause * 3 / 2).min(POLL_MAX);
        }
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        // Without processes there is no group any more.
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> ChildGroup {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        ChildGroup::start(command).unwrap()
    }

    #[test]
    fn a_program_ends_by_itself_by_its_limit_or_by_the_user() {
        let run = AtomicBool::new(false);
        let end = shell("exit 3").wait(None, &run).unwrap();
        assert!(matches!(end, GroupEnd::Exited(status) if status.code() == Some(3)));
        let short = Some(Duration::from_millis(20));
        assert_eq!(
            shell("sleep 1000").wait(short, &run).unwrap(),
            GroupEnd::TimedOut
        );
        let stop = AtomicBool::new(true);
        assert_eq!(
            shell("sleep 1000").wait(None, &stop).unwrap(),
            GroupEnd::Stopped
        );
    }
}
