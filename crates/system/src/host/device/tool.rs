//! External tools of the system (losetup, mkfs, wipefs, ...), used because they know their subject
//! better than a second implementation would.

use crate::host::limits::explain_thread_start_failure;
use rustix::io::Errno;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// External tool that diskperf runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalTool {
    /// `losetup`, which attaches and lists loop devices.
    Losetup,
    /// `mount`, which mounts file systems.
    Mount,
    /// `umount`, which unmounts file systems.
    Umount,
    /// `wipefs`, which finds signatures of file systems and partition tables.
    Wipefs,
    /// `partx`, which makes the kernel forget partitions.
    Partx,
    /// `mkfs.ext2`, which creates ext2 file systems.
    MkfsExt2,
    /// `mkfs.ext4`, which creates ext4 file systems.
    MkfsExt4,
    /// `mkfs.xfs`, which creates XFS file systems.
    MkfsXfs,
    /// `mkfs.btrfs`, which creates btrfs file systems.
    MkfsBtrfs,
    /// `e2fsck`, which checks ext2 and ext4.
    E2fsck,
    /// `xfs_repair`, which checks XFS.
    XfsRepair,
    /// `btrfs`, which checks btrfs.
    Btrfs,
    /// `smartctl`, which queries a drive's health.
    Smartctl,
}

/// Reason why an external tool failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// External tool that is not installed.
    #[error("`{tool}` is not installed: on Debian, run `apt-get install {package}`")]
    ToolMissing {
        /// Name of the tool's command.
        tool: &'static str,
        /// Debian package that contains the tool.
        package: &'static str,
    },
    /// External tool that the kernel could not start.
    #[error(
        "`{command}` could not be started: {source}{}",
        explain_thread_start_failure(source)
    )]
    ToolNotStarted {
        /// Command line of the external tool.
        command: String,
        /// Error that the operating system returned.
        source: io::Error,
    },
    /// External tool that ended with an error.
    #[error("`{command}` failed ({status}): {message}")]
    ToolFailed {
        /// Command line of the external tool.
        command: String,
        /// Exit status of the external tool.
        status: ExitStatus,
        /// Output of the external tool, from both streams.
        message: String,
    },
}

impl ExternalTool {
    /// Returns the name of the tool's command.
    pub fn tool_name(self) -> &'static str {
        match self {
            Self::Losetup => "losetup",
            Self::Mount => "mount",
            Self::Umount => "umount",
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

    /// Returns the name of the Debian package that contains the tool.
    pub fn package_name(self) -> &'static str {
        match self {
            Self::Losetup | Self::Mount | Self::Umount => "mount",
            Self::Wipefs | Self::Partx => "util-linux",
            Self::MkfsExt2 | Self::MkfsExt4 | Self::E2fsck => "e2fsprogs",
            Self::MkfsXfs | Self::XfsRepair => "xfsprogs",
            Self::MkfsBtrfs | Self::Btrfs => "btrfs-progs",
            Self::Smartctl => "smartmontools",
        }
    }

    /// Runs the tool until it ends, and returns its output with any exit code.
    ///
    /// # Errors
    ///
    /// The tool is not installed, or cannot be started.
    pub fn run_tool<A: AsRef<OsStr>>(self, arguments: &[A]) -> Result<Output, ToolError> {
        let mut command = self.new_command(arguments);
        command.output().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ToolError::ToolMissing {
                tool: self.tool_name(),
                package: self.package_name(),
            },
            _ => ToolError::ToolNotStarted {
                command: self.command_line(arguments),
                source,
            },
        })
    }

    fn new_command<A: AsRef<OsStr>>(self, arguments: &[A]) -> Command {
        // An ordinary user's PATH often lacks the directories of these tools.
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin:/usr/bin:/bin";
        let mut command = Command::new(self.tool_name());
        command
            .args(arguments)
            .env("PATH", path)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        kill_with_parent(&mut command);
        command
    }

    /// Runs the tool and returns its standard output, with any exit code. `None` if the tool is not
    /// installed, or does not end within the limit, in which case it is killed.
    pub fn run_with_timeout<A: AsRef<OsStr>>(
        self,
        arguments: &[A],
        time_max: Duration,
    ) -> Option<String> {
        let mut command = self.new_command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut stdout = child.stdout.take()?;
        let (send, receiver) = channel();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            // What is not text is no answer.
            let read = stdout.read_to_string(&mut text);
            let _ = send.send(read.ok().map(|_| text));
        });
        let answer = receiver.recv_timeout(time_max).ok().flatten();
        if answer.is_none() {
            let _ = child.kill();
        }
        let _ = child.wait();
        let _ = reader.join();
        answer
    }

    /// Runs the tool and returns its standard output.
    ///
    /// # Errors
    ///
    /// The tool is not installed, cannot be started, or has a non-zero exit code.
    pub fn run_checked<A: AsRef<OsStr>>(self, arguments: &[A]) -> Result<String, ToolError> {
        let output = self.run_tool(arguments)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(ToolError::ToolFailed {
            command: self.command_line(arguments),
            status: output.status,
            message: combine_output(&output),
        })
    }

    /// Formats the tool's command line as a shell would show it.
    pub fn command_line<A: AsRef<OsStr>>(self, arguments: &[A]) -> String {
        let mut line = self.tool_name().to_owned();
        for argument in arguments {
            line += " ";
            line += &argument.as_ref().to_string_lossy();
        }
        line
    }
}

/// Makes a tool end when this process is killed. Otherwise losetup could attach a device after
/// `diskperf clean` had removed the image and searched for its devices.
#[allow(unsafe_code)]
pub(in crate::host) fn kill_with_parent(command: &mut Command) {
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

/// Returns a tool's standard output and standard error as one text.
pub fn combine_output(output: &Output) -> String {
    [&output.stderr, &output.stdout]
        .map(|stream| String::from_utf8_lossy(stream).trim().to_owned())
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
