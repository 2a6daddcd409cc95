//! Where and how one worker runs its program.

use crate::company::Company;
use diskperf_timeline::Nanoseconds;

/// What a worker's program works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Files in a directory of the drive's file system.
    Directory,
    /// The drive itself.
    Device,
    /// One file of the user's, which is only read.
    File,
}

/// An end of the pipe between the two workers of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// Bytes come out.
    Read,
    /// Bytes go in.
    Write,
}

/// Where a program copies to that goes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The number of its mount, or of the drive.
    pub number: u32,
    /// A file system, or a drive by itself.
    pub medium: Medium,
}

/// One worker of a plan.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its number among the workers of its program on its drive, from 0.
    pub index: u32,
    /// Its drive, from 0.
    pub drive: u32,
    /// Files in a directory, the drive itself, or one file.
    pub medium: Medium,
    /// The directory of the drive's file system that its files are in, with a
    /// `/` at its end; empty for the topmost.
    pub folder: &'static str,
    /// What stands for "another file system", or for another partition where
    /// programs have these by themselves; absent where the plan has none.
    pub other: Option<Other>,
    /// Bytes that the program moves in one repetition.
    pub size_bytes: u64,
    /// Whether its files are opened with O_DIRECT.
    pub direct: bool,
    /// The seed of its random choices.
    pub seed: u64,
    /// CPU time that the program uses after each call, in user mode.
    pub think: Nanoseconds,
    /// Its seat among the workers that run at the same time on its drive.
    pub company: Company,
}

impl Worker {
    /// The end that it has of the pipe between the first two workers of its drive, if
    /// its program has one.
    pub(crate) fn pipe_end(&self) -> PipeEnd {
        if self.index == 0 {
            PipeEnd::Write
        } else {
            PipeEnd::Read
        }
    }

    /// The name of one of its files; on a device or a file of the user's, that
    /// itself.
    pub(crate) fn file(&self, name: &str) -> String {
        match self.medium {
            Medium::Directory => format!("/mnt{}/{}{name}", self.drive, self.folder),
            Medium::Device | Medium::File => format!("/dev/drive{}", self.drive),
        }
    }

    /// The file that the programs of Kridle and McKusick 1983 share, as in the paper's script:
    /// what one writes another reads or writes over.
    pub(crate) fn shared_file(&self) -> String {
        self.file("tst2")
    }
}
