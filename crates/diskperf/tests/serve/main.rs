//! `diskperf serve`: other programs read, write and verify a modelled drive, the command
//! ends in order, and drives have faults.

mod clients;
mod command;
mod device;
mod faults;
mod kernel;
mod page;
#[path = "../support/mod.rs"]
mod support;

use rustix::process::Signal;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::mpsc::Receiver;
use std::time::Duration;
use support::{Outcome, Process, User, words};

/// Longest wait for the line that says where a drive is served.
const WATCHDOG: Duration = Duration::from_secs(300);

/// A drive of 64 MiB that takes a nanosecond for a request.
const AT_ONCE: &str = "serve fixed --set drive.service_ms=0.000001 --size 64M";

/// A served drive.
struct Serving {
    process: Process,
    /// URI, or path of the file or block device.
    uri: String,
    /// Further lines of standard error. Open, or the command could not say any more.
    lines: Receiver<String>,
}

impl Serving {
    /// Starts the command, and waits until it serves.
    #[track_caller]
    fn start(user: &User, line: &str) -> Self {
        let mut process = user.start(&words(line));
        let lines = process.lines_of_stderr();
        loop {
            let said = lines.recv_timeout(WATCHDOG);
            let said = said.unwrap_or_else(|error| panic!("`{line}` does not serve: {error}"));
            if let Some((_, uri)) = said.split_once(", at ") {
                return Self {
                    process,
                    uri: uri.to_owned(),
                    lines,
                };
            }
            assert!(!said.contains("error"), "`{line}`: {said}");
        }
    }

    fn socket(&self) -> PathBuf {
        let (_, path) = self.uri.split_once("socket=").expect("a Unix socket");
        PathBuf::from(path)
    }

    /// Waits for a line with this text, and returns what follows the text.
    #[track_caller]
    fn line_after(&self, text: &str) -> String {
        loop {
            let said = self.lines.recv_timeout(WATCHDOG);
            let said = said.unwrap_or_else(|error| panic!("no line has `{text}`: {error}"));
            if let Some((_, rest)) = said.split_once(text) {
                return rest.to_owned();
            }
        }
    }

    /// Ends it by a signal.
    #[track_caller]
    fn end(mut self, signal: Signal) -> Outcome {
        self.process.signal(signal);
        self.process.finish()
    }
}

/// Runs a program to its end.
#[track_caller]
fn client(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs a program that must succeed, and returns what it printed.
#[track_caller]
fn expect_success(program: &str, arguments: &[&str]) -> String {
    let output = client(program, arguments);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
