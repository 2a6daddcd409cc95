//! Worker of a program: its drive, its files and its settings.

use crate::company::WorkerGroupMember;
use diskperf_timeline::Nanoseconds;

/// Kind of target that a worker's program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Files in a directory of the drive's file system.
    Directory,
    /// Drive as a device, without a file system.
    Device,
    /// Single file that the user supplied. Programs only read it.
    File,
}

/// End of the pipe between the two workers of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// Read end of the pipe.
    Read,
    /// Write end of the pipe.
    Write,
}

/// Second target, for programs that copy to another file system or partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondTarget {
    /// Number of the mount or of the drive.
    pub drive_number: u32,
    /// Kind of the second target: a file system or a bare drive.
    pub medium: Medium,
}

/// Worker of a plan, which runs a program on one drive.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Index of the worker among the workers of its program on its drive, from 0.
    pub worker_index: u32,
    /// Index of the worker's drive, from 0.
    pub drive_index: u32,
    /// Kind of target: files in a directory, the drive itself, or one file.
    pub medium: Medium,
    /// Directory of the worker's files within the drive's file system, with a `/` at its end. Empty
    /// for the top directory.
    pub file_folder: &'static str,
    /// Second target, which stands for "another file system", or for another partition if programs
    /// use bare partitions. `None` if the plan has no second target.
    pub second_target: Option<SecondTarget>,
    /// Bytes that the program moves in one repetition.
    pub size_bytes: u64,
    /// Whether the worker's files are opened with O_DIRECT.
    pub direct_io: bool,
    /// Seed of the worker's random choices.
    pub random_seed: u64,
    /// CPU time that the program uses after each call, in user mode.
    pub think_time: Nanoseconds,
    /// Handle through which the worker coordinates with the other workers of its drive.
    pub worker_group: WorkerGroupMember,
}

impl Worker {
    /// Returns the worker's end of the pipe between the first two workers of its drive. It is
    /// meaningless if the program uses no pipe.
    pub(crate) fn pipe_end(&self) -> PipeEnd {
        if self.worker_index == 0 {
            PipeEnd::Write
        } else {
            PipeEnd::Read
        }
    }

    /// Returns the path of a worker's file. On a device, or for a file that the user supplied, it
    /// is the path of that target.
    pub(crate) fn file_path(&self, name: &str) -> String {
        match self.medium {
            Medium::Directory => format!("/mnt{}/{}{name}", self.drive_index, self.file_folder),
            Medium::Device | Medium::File => format!("/dev/drive{}", self.drive_index),
        }
    }

    /// Returns the path of the file that the programs of Kridle and McKusick 1983 share, as in the
    /// paper's script: one program reads or overwrites the file that another wrote.
    pub(crate) fn shared_file_path(&self) -> String {
        self.file_path("tst2")
    }
}
