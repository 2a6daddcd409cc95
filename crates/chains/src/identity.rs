//! Identities of what kernel events speak of, as the kernel numbers them.

/// Declares identities: numbers that are told apart by their types.
macro_rules! identities {
    ($($(#[$doc:meta])* $name:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

identities! {
    /// Thread number of a task; 0 for the idle task of every processor.
    ThreadId(u32);
    /// Number of a processor.
    CpuNumber(u32);
    /// Address of a block request, unique from its issue to its completion.
    RequestAddress(u64);
    /// Address of a bio, unique from its arrival to its completion.
    BioAddress(u64);
    /// Inode number in its file system.
    FileInode(u64);
    /// Number of a transaction of an ext4 journal.
    TransactionId(u32);
    /// Address of a work item, unique from its queueing to its start.
    WorkAddress(u64);
    /// Address of a kernel function.
    FunctionAddress(u64);
    /// Address of a request of io_uring, unique from its submission to its completion.
    RingRequestAddress(u64);
    /// Number of an operation in a recording.
    OperationNumber(u64);
}

/// Number of a block device as the kernel keeps it: the major number above 20 bits of the minor
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelDevice(pub u32);

impl KernelDevice {
    const MINOR_BITS: u32 = 20;

    /// Builds the number of a device from its major and minor numbers.
    pub const fn from_major_minor(major: u32, minor: u32) -> Self {
        Self(major << Self::MINOR_BITS | minor)
    }

    /// Returns the major number of the device.
    pub const fn major(self) -> u32 {
        self.0 >> Self::MINOR_BITS
    }

    /// Returns the minor number of the device.
    pub const fn minor(self) -> u32 {
        self.0 & ((1 << Self::MINOR_BITS) - 1)
    }
}

impl std::fmt::Display for KernelDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major(), self.minor())
    }
}

/// Operation and flags of a bio or a request (`REQ_OP_*` and `REQ_*`), by meaning: their bits
/// differ between kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestFlags {
    /// Operation on the device.
    pub operation: RequestOperation,
    /// Whether the device's write cache is flushed first (`REQ_PREFLUSH`).
    pub is_preflush: bool,
    /// Whether the data is durable at the completion (`REQ_FUA`).
    pub is_fua: bool,
    /// Whether it is metadata of a file system (`REQ_META`).
    pub is_metadata: bool,
    /// Whether it is read-ahead (`REQ_RAHEAD`).
    pub is_read_ahead: bool,
    /// Whether the request is part of a flush sequence (`RQF_FLUSH_SEQ`); always false for a bio.
    pub is_in_flush_sequence: bool,
}

/// Operation of a bio or a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestOperation {
    /// Read of sectors from the device.
    #[default]
    Read,
    /// Write of sectors to the device.
    Write,
    /// Flush of the device's write cache. The block layer makes this request; a bio asks for it by
    /// `is_preflush`.
    Flush,
    /// Discard of sectors that are no longer needed.
    Discard,
    /// Any other operation, such as writing zeroes.
    Other,
}

/// State of a task at its switch out of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SwitchOutState {
    /// Ready to run: preempted, or it yielded the processor.
    Runnable,
    /// Asleep, and a signal may wake it.
    Interruptible,
    /// Asleep, and no signal wakes it: in most cases it waits for storage or a lock.
    Uninterruptible,
    /// Ended, stopped, or in another state from which only other events lead.
    Other,
}

/// Step of a commit of an ext4 journal, as the journal's thread reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitStep {
    /// The journal's thread takes the transaction.
    Start,
    /// Waits until the open handles of the transaction are closed.
    Locking,
    /// Submits the data that must be durable before the transaction.
    Flushing,
    /// Writes the log blocks, waits for data and log, then writes the commit block.
    Logging,
    /// Everything of the transaction is durable; those that wait are woken next.
    End,
}

/// Kind of a system call that works with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// Read of a file.
    Read,
    /// Write to a file.
    Write,
    /// `fsync` of a file or a directory.
    Fsync,
    /// `fdatasync` of a file.
    Fdatasync,
    /// Submission to a ring of io_uring, or a wait for its completions.
    RingEnter,
    /// Work on names, such as open, rename or unlink.
    Names,
    /// Any other call on files, such as `fallocate`.
    Other,
}

impl CallKind {
    /// Returns the name of the kind, as documents and tables print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::RingEnter => "io_uring_enter",
            Self::Names => "names",
            Self::Other => "other",
        }
    }
}
