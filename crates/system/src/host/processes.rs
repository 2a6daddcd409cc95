//! Identity of processes, and whether they still run.

use rustix::io::Errno;
use rustix::process::Pid;

/// Returns the identity of this process for later checks whether it still runs: its id and its
/// start time, since ids are reused.
pub(super) fn this_process_identity() -> String {
    let process = std::process::id().to_string();
    let started = process_start_time(&process).unwrap_or_default();
    format!("{process} {started}")
}

/// Reports whether the process with an identity of [`this_process_identity`] still runs.
pub(super) fn is_process_running(owner: &str) -> bool {
    owner.split_once(' ').is_some_and(|(process, at)| {
        let number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        number && process_start_time(process).is_some_and(|started| started == at)
    })
}

/// Returns the start time of a process in kernel ticks: field 22 of its stat file. The second
/// field, in parentheses, may contain anything.
fn process_start_time(process: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// Reports whether a process with this id runs. Any error except "no such process" counts as yes.
pub(super) fn is_process_alive(pid: i32) -> bool {
    Pid::from_raw(pid).is_none_or(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_is_told_from_one_that_does_not() {
        assert!(is_process_running(&this_process_identity()));
        let (number, _) = this_process_identity()
            .split_once(' ')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        assert!(!is_process_running(&format!("{number} 1")));
        assert!(!is_process_running("4194999 1"));
        assert!(!is_process_running(""));
        assert!(!is_process_running("../1 1"));
    }
}
