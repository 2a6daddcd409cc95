//! Runs diskperf, and has one of its operations fail, or the process die of
//! SIGKILL instead of it.

use crate::calls::{Operation, numbers};
use crate::filter::{Asked, Exempt, Listener, ask_about};
use crate::support::Outcome;
use libc::c_int;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a run may take; each takes well under a second.
const HUNG: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(100);

/// Each run reads 8 KiB of /dev/null thousands of times, to see what that costs.
const OVERHEAD: Exempt = Exempt {
    number: libc::SYS_read,
    place: 2,
    value: 8192,
};

/// What becomes of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The errno of this place in the operation's list.
    Errno(usize),
    Kill,
}

/// Which operation does not get through, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) number: usize,
    pub(crate) answer: Answer,
}

/// A run, and what was seen from beneath.
pub(crate) struct Watched {
    pub(crate) outcome: Outcome,
    pub(crate) seen: Seen,
}

/// What was seen from beneath.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) process: Option<i32>,
    /// Whether the process is diskperf by now.
    started: bool,
    /// All of diskperf's own, in order; what its tools do is not counted.
    pub(crate) operations: Vec<Operation>,
    /// The one that did not get through, and what it failed with.
    pub(crate) failed: Option<(Operation, Option<c_int>)>,
    /// What it and its tools changed, or opened for that.
    pub(crate) changed: BTreeSet<PathBuf>,
    pub(crate) hung: bool,
    last: Option<(&'static str, PathBuf)>,
    /// How often each was made; of those that do not only look, in a row.
    times: BTreeMap<(&'static str, PathBuf), u64>,
}

/// Runs a command to its end.
pub(crate) fn watch(mut command: Command, fault: Option<Fault>) -> Watched {
    let what = format!("{command:?}");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let promise = ask_about(&mut command, &numbers(), &OVERHEAD).expect("sockets can be made");
    let (output, seen) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let listener = promise.listener().expect("the filter is installed");
            serve(&listener, fault)
        });
        let child = command.spawn().expect("diskperf starts");
        let output = child.wait_with_output().expect("a child can be waited for");
        (output, serving.join().expect("the listener does not panic"))
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let outcome = Outcome {
        what,
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    };
    Watched { outcome, seen }
}

fn serve(listener: &Listener, fault: Option<Fault>) -> Seen {
    let mut seen = Seen::default();
    let started = Instant::now();
    loop {
        match listener.next(POLL) {
            Asked::AllEnded => return seen,
            Asked::TimedOut => {}
            Asked::Call(call) if !seen.started => {
                // A command around it becomes diskperf in the end.
                let process = *seen.process.get_or_insert(call.thread as i32);
                seen.started =
                    call.thread as i32 == process && Operation::of(&call).starts("diskperf");
                listener.let_pass(call);
            }
            Asked::Call(call) => {
                let operation = Operation::of(&call);
                if operation.changes() {
                    seen.changed.insert(operation.path.clone());
                }
                match seen.fate(call.thread, operation, fault) {
                    Fate::Passes => listener.let_pass(call),
                    Fate::Fails(errno) => listener.fail(call, errno),
                    Fate::Dies => {
                        kill(seen.process);
                        // A child that was about to become a tool outlives it.
                        listener.fail(call, libc::EINTR);
                    }
                }
            }
        }
        if started.elapsed() > HUNG && !seen.hung {
            seen.hung = true;
            kill(seen.process);
        }
    }
}

enum Fate {
    Passes,
    Fails(c_int),
    Dies,
}

impl Seen {
    /// What did not get through, in words.
    pub(crate) fn fault(&self) -> String {
        match &self.failed {
            None => "no fault".to_owned(),
            Some((operation, None)) => format!("{operation}, killed before it"),
            Some((operation, Some(errno))) => {
                let errno = io::Error::from_raw_os_error(*errno);
                format!("{operation}: {errno}")
            }
        }
    }

    fn fate(&mut self, thread: u32, operation: Operation, fault: Option<Fault>) -> Fate {
        // A tool is started by a child: that this fails is diskperf's concern.
        let own = operation.kind.name == "execve" || self.is_own(thread);
        if !own || !operation.counts() {
            return Fate::Passes;
        }
        if !self.is_of_the_sample(&operation) {
            return Fate::Passes;
        }
        self.operations.push(operation.clone());
        match fault {
            Some(fault) if fault.number + 1 == self.operations.len() => {
                let errnos = operation.errnos();
                match fault.answer {
                    Answer::Errno(place) => {
                        let errno = errnos[place % errnos.len()];
                        self.failed = Some((operation, Some(errno)));
                        Fate::Fails(errno)
                    }
                    Answer::Kill => {
                        self.failed = Some((operation, None));
                        Fate::Dies
                    }
                }
            }
            _ => Fate::Passes,
        }
    }

    /// Of calls that look at the same thing again, and of those that do the same as
    /// the one before, as the writes of measured data do: the first, the second, the
    /// fourth, ...
    fn is_of_the_sample(&mut self, operation: &Operation) -> bool {
        let call = (operation.kind.name, operation.path.clone());
        let again = operation.only_looks() || self.last.as_ref() == Some(&call);
        let times = self.times.entry(call.clone()).or_default();
        *times = if again { *times + 1 } else { 1 };
        self.last = Some(call);
        times.is_power_of_two()
    }

    /// Whether a thread is one of the process.
    fn is_own(&self, thread: u32) -> bool {
        let Some(process) = self.process else {
            return false;
        };
        thread as i32 == process || Path::new(&format!("/proc/{process}/task/{thread}")).exists()
    }
}

fn kill(process: Option<i32>) {
    if let Some(process) = process.and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(process, Signal::KILL);
    }
}
