//! Bios that a Linux kernel makes of sequences of file operations.

use serde::Serialize;

/// Bios of sequences on file systems, in the order of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestListReport {
    /// Lists of each sequence on each file system.
    pub sequences: Vec<SequenceLists>,
}

/// Bios that one sequence makes on one file system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SequenceLists {
    /// Name of the sequence in its file.
    pub sequence: String,
    /// Use that the sequence stands for, as its file says.
    pub profile: String,
    /// File system: `ext4` or `xfs`.
    pub filesystem: String,
    /// Version of the kernel, such as `6.18`.
    pub kernel: String,
    /// Bios of each operation.
    pub operations: Vec<OperationBios>,
    /// Bios of closing all descriptors and unmounting.
    pub unmount: Vec<String>,
}

/// Bios that one operation makes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationBios {
    /// Name of the operation and its arguments.
    pub call: String,
    /// Bios in the order of submission; those that follow before the next operation included.
    pub bios: Vec<String>,
}
