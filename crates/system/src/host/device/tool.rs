//! The system's own tools (losetup, mkfs, wipefs, ...), which know their
//! subject better than a second implementation would.

use crate::host::limits::why_not_started;
use rustix::io::Errno;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A tool that diskperf runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Attaches and lists loop devices.
    Losetup,
    /// Mounts.
    Mount,
    /// Finds signatures.
    Wipefs,
    /// Has the kernel forget partitions.
    Partx,
    /// Makes ext2.
    MkfsExt2,
    /// Makes ext4.
    MkfsExt4,
    /// Makes XFS.
    MkfsXfs,
    /// Makes btrfs.
    MkfsBtrfs,
    /// Checks ext2 and ext4.
    E2fsck,
    /// Checks XFS.
    XfsRepair,
    /// Checks btrfs.
    Btrfs,
    /// Asks a drive how it fares.
    Smartctl,
}

/// Why a tool did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not there.
    #[error("`{tool}` is not installed: on Debian, `apt-get install {package}` brings it")]
    Missing {
        /// Its name.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The kernel could not start it.
    #[error(
        "`{command}` could not be started: {source}{}",
        why_not_started(source)
    )]
    Start {
        /// The command line.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("`{command}` failed ({status}): {message}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        message: String,
    },
}

impl Tool {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Losetup => "losetup",
            Self::Mount => "mount",
            Self::Wipefs => "wipefs",
            Self::Partx => "partx",
            Self::MkfsExt2 => "mkfs.ext2",
            Self::MkfsExt4 => "mkfs.ext4",
            Self::MkfsXfs => "mkfs.xfs",
            Self::MkfsBtrfs => "mkfs.btrfs",
            Self::E2fsck => "e2fsck",
            Self::XfsRepair => "xfs_repair",
            Self::Btrfs => "btrfs",
            Self::Smartctl => "smartctl",
        }
    }

    /// The Debian package that has it.
    pub fn package(self) -> &'static str {
        match self {
            Self::Losetup | Self::Mount => "mount",
            Self::Wipefs | Self::Partx => "util-linux",
            Self::MkfsExt2 | Self::MkfsExt4 | Self::E2fsck => "e2fsprogs",
            Self::MkfsXfs | Self::XfsRepair => "xfsprogs",
            Self::MkfsBtrfs | Self::Btrfs => "btrfs-progs",
            Self::Smartctl => "smartmontools",
        }
    }

    /// Runs it to its end, whatever its exit code.
    ///
    /// # Errors
    /// It is not installed, or cannot be started.
    pub fn run<A: AsRef<OsStr>>(self, arguments: &[A]) -> Result<Output, ToolError> {
        let mut command = self.command(arguments);
        command.output().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ToolError::Missing {
                tool: self.name(),
                package: self.package(),
            },
            _ => ToolError::Start {
                command: self.command_line(arguments),
                source,
            },
        })
    }

    fn command<A: AsRef<OsStr>>(self, arguments: &[A]) -> Command {
        // An ordinary user's PATH often lacks the directories of these tools.
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin:/usr/bin:/bin";
        let mut command = Command::new(self.name());
        command
            .args(arguments)
            .env("PATH", path)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        die_with_us(&mut command);
        command
    }

    /// What it printed to its standard output, whatever its exit code; `None` of one that
    /// is not installed, or that has not ended after so long, which is then killed.
    pub fn said_within<A: AsRef<OsStr>>(
        self,
        arguments: &[A],
        patience: Duration,
    ) -> Option<String> {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut stdout = child.stdout.take()?;
        let (send, said) = channel();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            // What is not text is no answer.
            let read = stdout.read_to_string(&mut text);
            let _ = send.send(read.ok().map(|_| text));
        });
        let answer = said.recv_timeout(patience).ok().flatten();
        if answer.is_none() {
            let _ = child.kill();
        }
        let _ = child.wait();
        let _ = reader.join();
        answer
    }

    /// Runs it, and gives what it printed to its standard output.
    ///
    /// # Errors
    /// It is not installed, cannot be started, or ends with an exit code other
    /// than 0.
    pub fn run_well<A: AsRef<OsStr>>(self, arguments: &[A]) -> Result<String, ToolError> {
        let output = self.run(arguments)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(ToolError::Failed {
            command: self.command_line(arguments),
            status: output.status,
            message: what_it_said(&output),
        })
    }

    /// The command as a shell would show it.
    pub fn command_line<A: AsRef<OsStr>>(self, arguments: &[A]) -> String {
        let mut line = self.name().to_owned();
        for argument in arguments {
            line += " ";
            line += &argument.as_ref().to_string_lossy();
        }
        line
    }
}

/// Has a tool end when this process is killed. Otherwise losetup would attach a device
/// after `diskperf clean` had removed the image and looked for its devices.
#[allow(unsafe_code)]
fn die_with_us(command: &mut Command) {
    let us = rustix::process::getpid();
    let in_the_child = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Whoever died before that sends no signal any more.
        match rustix::process::getppid() {
            Some(parent) if parent == us => Ok(()),
            _ => Err(Errno::SRCH.into()),
        }
    };
    // SAFETY: Between fork and exec it makes two system calls; it takes no lock and
    // allocates nothing.
    unsafe { command.pre_exec(in_the_child) };
}

/// What a tool printed on both streams, in one piece.
pub fn what_it_said(output: &Output) -> String {
    [&output.stderr, &output.stdout]
        .map(|stream| String::from_utf8_lossy(stream).trim().to_owned())
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
