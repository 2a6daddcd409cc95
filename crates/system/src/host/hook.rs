//! User command that brings the machine into the state to be measured.

use crate::host::limits::explain_thread_start_failure;
use std::io::{self, PipeReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

/// Command line that a shell executes before a measurement.
#[derive(Clone, Debug)]
pub struct HookCommand {
    /// Command-line option that gave the command, such as `--before-a`.
    option_name: &'static str,
    command: String,
}

/// Reason why a hook's command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// Shell that could not be started or waited for.
    #[error(
        "{option} `{command}` could not be run: {source}{}",
        explain_thread_start_failure(source)
    )]
    CommandNotRun {
        /// Command-line option that gave the command, such as `--before-a`.
        option: &'static str,
        /// Command line that the shell executes.
        command: String,
        /// Error that the operating system returned.
        source: io::Error,
    },
    /// Command that ended with an error.
    #[error("{option} `{command}` failed ({status}){said}")]
    CommandFailed {
        /// Command-line option that gave the command, such as `--before-a`.
        option: &'static str,
        /// Command line that the shell executes.
        command: String,
        /// Exit status of the user's command.
        status: ExitStatus,
        /// Last part of the command's output.
        said: String,
    },
    /// End of the run by the user while the command ran.
    #[error("interrupted")]
    StoppedByUser,
}

/// Interval between checks whether the command has ended. It is short relative to the start of a
/// shell.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum wait for a command's last output. A process that it started may keep the pipe open
/// forever.
const OUTPUT_WAIT_MAX: Duration = Duration::from_millis(100);

/// Maximum length of the output in an error message, in bytes; the end of the output is kept.
const SHOWN_OUTPUT_BYTES_MAX: usize = 2048;

impl HookCommand {
    /// Returns the hook for a command line that an option such as `--before-a` gave.
    pub fn new(option: &'static str, command: String) -> Self {
        Self {
            option_name: option,
            command,
        }
    }

    /// Describes the hook by its option and command line, for messages.
    pub fn describe(&self) -> String {
        format!("{} `{}`", self.option_name, self.command)
    }

    /// Runs the command until it ends or `stop` is set.
    ///
    /// # Errors
    ///
    /// The command cannot be started, has a non-zero exit status, or is stopped.
    pub fn run_hook(&self, stop: &AtomicBool) -> Result<(), HookError> {
        let not_run = |source| HookError::CommandNotRun {
            option: self.option_name,
            command: self.command.clone(),
            source,
        };
        let (mut child, printed) = self.start_command().map_err(not_run)?;
        let mut said = Vec::new();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(not_run)? {
                break status;
            }
            if stop.load(Ordering::Relaxed) {
                child.kill().and_then(|()| child.wait()).map_err(not_run)?;
                return Err(HookError::StoppedByUser);
            }
            match printed.recv_timeout(POLL_INTERVAL) {
                Ok(bytes) => append_tail(&mut said, &bytes),
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        };
        if status.success() {
            return Ok(());
        }
        while let Ok(bytes) = printed.recv_timeout(OUTPUT_WAIT_MAX) {
            append_tail(&mut said, &bytes);
        }
        let text = String::from_utf8_lossy(&said);
        Err(HookError::CommandFailed {
            option: self.option_name,
            command: self.command.clone(),
            status,
            said: match text.trim() {
                "" => String::new(),
                text => format!(": {text}"),
            },
        })
    }

    /// Starts the shell. The receiver gets the output of both streams in pieces.
    fn start_command(&self) -> io::Result<(Child, Receiver<Vec<u8>>)> {
        let (reader, writer) = io::pipe()?;
        let child = Command::new("sh")
            .args(["-c", &self.command])
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        Ok((child, read_in_thread(reader)?))
    }
}

/// Reads a pipe in a thread and sends its contents in pieces. The thread reads to the end even if
/// nobody listens any more, so that the writer never blocks.
fn read_in_thread(mut reader: PipeReader) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    Builder::new().spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            let _ = sender.send(buffer[..count].to_vec());
        }
    })?;
    Ok(receiver)
}

fn append_tail(output: &mut Vec<u8>, bytes: &[u8]) {
    output.extend(bytes);
    output.drain(..output.len().saturating_sub(SHOWN_OUTPUT_BYTES_MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(command: &str) -> String {
        let hook = HookCommand::new("--before-a", command.to_owned());
        match hook.run_hook(&AtomicBool::new(false)) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_command_that_fails_says_how_and_what() {
        for (command, expected) in [
            ("true", ""),
            ("echo much; echo more >&2", ""),
            (
                "echo out; echo err >&2; exit 3",
                "--before-a `echo out; echo err >&2; exit 3` failed (exit status: 3): out\nerr",
            ),
            ("false", "--before-a `false` failed (exit status: 1)"),
        ] {
            assert_eq!(error(command), expected);
        }
        // Of much, the end; and a process that stays is not waited for.
        let said = error("sleep 60 & yes | head -c 100000; echo; echo last; kill $!; exit 1");
        assert!(said.ends_with("last"), "{said}");
        assert!(said.len() < 2 * SHOWN_OUTPUT_BYTES_MAX);
    }

    #[test]
    fn a_command_ends_with_the_run() {
        let hook = HookCommand::new("--before-b", "exec sleep 60".to_owned());
        let stopped = hook.run_hook(&AtomicBool::new(true));
        assert!(matches!(stopped, Err(HookError::StoppedByUser)));
    }
}
