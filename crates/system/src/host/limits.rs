//! Resource limits of this process. Error messages give every limit with its value and name, so
//! that the user can raise it.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_relative};
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime_dynamic};
use std::io;
use std::path::{Path, PathBuf};

/// Clock of the CPU-time limit. It counts scheduler ticks that found this process running
/// (`CPUCLOCK_PROF`), unlike the exact time of `CLOCK_PROCESS_CPUTIME_ID`.
const PROCESS_TICK_CLOCK: libc::clockid_t = !0 << 3;

/// Reports whether this process has used up its limit of CPU time. The kernel then sends SIGXCPU,
/// raises the limit by a second each time, and finally kills the process.
pub fn is_cpu_time_used_up() -> bool {
    let raised_s = getrlimit(Resource::Cpu).current;
    raised_s.is_some_and(|raised_s| cpu_time_s() + 1 >= raised_s)
}

/// Returns the CPU time of this process in whole seconds, by ticks.
#[allow(unsafe_code)]
fn cpu_time_s() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a structure of the kernel's layout that outlives
    // the call; a clock that the kernel does not know leaves it as it is.
    unsafe { libc::clock_gettime(PROCESS_TICK_CLOCK, &raw mut time) };
    time.tv_sec as u64
}

/// Error for a forbidden system call without which nothing can be measured.
#[derive(Debug, thiserror::Error)]
#[error(
    "{call_name}(2) is forbidden here ({errno}), and diskperf cannot measure without it: a system-call filter blocks it, such as that of a container; allow {call_name}"
)]
pub struct ForbiddenCall {
    call_name: &'static str,
    errno: crate::Errno,
}

/// Checks that this process may read clocks and sleep. The standard library relies on it, and ends
/// the process where a system call filter forbids it.
///
/// # Errors
///
/// The first system call that is refused.
pub fn require_clocks() -> Result<(), ForbiddenCall> {
    let refused = |call| {
        move |errno: rustix::io::Errno| ForbiddenCall {
            call_name: call,
            errno: errno.into(),
        }
    };
    for clock in [
        ClockId::Monotonic,
        ClockId::Realtime,
        // The kernel alone knows these, and not a page that it shares.
        ClockId::ProcessCPUTime,
        ClockId::ThreadCPUTime,
    ] {
        let time = clock_gettime_dynamic(DynamicClockId::Known(clock));
        time.map_err(refused("clock_gettime"))?;
    }
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: 1,
    };
    match clock_nanosleep_relative(ClockId::Monotonic, &moment) {
        NanosleepRelativeResult::Err(errno) => Err(refused("clock_nanosleep")(errno)),
        NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => Ok(()),
    }
}

/// Returns an explanation to append to an error of starting a process or thread: the limits that
/// may be the cause, and a remedy. Empty for other errors.
pub fn explain_thread_start_failure(error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::WouldBlock {
        return String::new();
    }
    let user = getrlimit(Resource::Nproc).current;
    let user = user.map(|most| format!("{most} for this user (`ulimit -u`)"));
    let container = read_pids_max().map(|most| format!("{most} for this container (pids.max)"));
    // A thread has a stack, for which there is no room either.
    let space = getrlimit(Resource::As).current;
    let space = space.map(|bytes| format!("{} MiB of address space (`ulimit -v`)", bytes >> 20));
    let limits: Vec<String> = user.into_iter().chain(container).chain(space).collect();
    let limits = match limits.is_empty() {
        true => "that of the machine (kernel.threads-max)".to_owned(),
        false => limits.join(", "),
    };
    format!(
        ": the limit of processes and threads is reached: {limits}; raise it, or run fewer workers at once"
    )
}

/// Returns the smallest pids.max of the control groups that contain this process.
fn read_pids_max() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().filter_map(parse_pids_group);
    own.flat_map(|(root, group)| {
        let above: Vec<PathBuf> = group.ancestors().map(|part| root.join(part)).collect();
        above
    })
    .filter_map(|directory| std::fs::read_to_string(directory.join("pids.max")).ok())
    .filter_map(|most| most.trim().parse().ok())
    .min()
}

/// Parses a line of /proc/PID/cgroup, such as `8:pids:/a` or `0::/a`. Returns the mount point of
/// the control groups that count processes, and the group below it.
fn parse_pids_group(line: &str) -> Option<(&'static Path, PathBuf)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        "pids" => "/sys/fs/cgroup/pids",
        _ => return None,
    };
    Some((
        Path::new(root),
        PathBuf::from(group.trim_start_matches('/')),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_count_processes_are_found() {
        for (line, expected) in [
            (
                "8:pids:/docker/ab",
                Some(("/sys/fs/cgroup/pids", "docker/ab")),
            ),
            ("0::/user.slice", Some(("/sys/fs/cgroup", "user.slice"))),
            ("0::/", Some(("/sys/fs/cgroup", ""))),
            ("7:blkio:/", None),
            ("", None),
        ] {
            let expected = expected.map(|(root, group)| (Path::new(root), PathBuf::from(group)));
            assert_eq!(parse_pids_group(line), expected, "{line}");
        }
    }

    #[test]
    fn only_a_limit_is_told_as_one() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(explain_thread_start_failure(&missing), "");
        let refused = io::Error::from_raw_os_error(libc::EAGAIN);
        let told = explain_thread_start_failure(&refused);
        assert!(
            told.contains("processes and threads") && told.contains("fewer"),
            "{told}"
        );
    }
}
