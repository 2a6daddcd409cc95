//! Where a world is not as POSIX has it: what it gives instead.

use diskperf_system::Errno;

/// What a world can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// Bytes of the longest name. Where `cuts_names`, what is longer is cut to
    /// that, and otherwise refused.
    pub(crate) name_bytes: usize,
    pub(crate) cuts_names: bool,
    /// Files and directories can be given other names; otherwise rename is
    /// EINVAL.
    pub(crate) renames: bool,
    /// Files can be cut to any length; otherwise ftruncate is EINVAL.
    pub(crate) truncates: bool,
    /// A directory is read as what it is: entries of 16 bytes. It may be
    /// opened with O_CREAT, too, as long as it is not written.
    pub(crate) reads_directories: bool,
    /// A slash behind a file's name means that it should be a directory.
    pub(crate) minds_slashes: bool,
    /// What unlink says of a directory.
    pub(crate) unlinked_directory: Errno,
    /// There is a `/dev/zero`.
    pub(crate) has_zero: bool,
    /// A write that cannot be finished says how much of it was; otherwise it
    /// fails, and has written that all the same.
    pub(crate) tells_partial_writes: bool,
    /// fsync is of a file; otherwise it is of everything, whatever the
    /// descriptor.
    pub(crate) syncs_files: bool,
    /// There are fchown and fchmod; otherwise they are EINVAL.
    pub(crate) changes_open_files: bool,
    /// Offsets may be as large as the volume's files; otherwise larger.
    pub(crate) offsets_are_of_files: bool,
    /// Offsets of more than 31 bits.
    pub(crate) large_offsets: bool,
}

/// As it should be.
pub(crate) const POSIX: Abilities = Abilities {
    name_bytes: 255,
    cuts_names: false,
    renames: true,
    truncates: true,
    reads_directories: false,
    minds_slashes: true,
    unlinked_directory: Errno::IsDirectory,
    has_zero: true,
    tells_partial_writes: true,
    syncs_files: true,
    changes_open_files: true,
    offsets_are_of_files: true,
    large_offsets: true,
};

/// Minix 1.5.
pub(crate) const MINIX: Abilities = Abilities {
    name_bytes: 14,
    cuts_names: true,
    renames: true,
    truncates: false,
    reads_directories: true,
    minds_slashes: false,
    unlinked_directory: Errno::NotPermitted,
    has_zero: false,
    tells_partial_writes: false,
    syncs_files: false,
    changes_open_files: false,
    offsets_are_of_files: false,
    large_offsets: false,
};

/// Xenix 1.0: calls of the seventh edition, the same as those of Minix, which
/// has one more.
pub(crate) const XENIX: Abilities = Abilities {
    renames: false,
    has_zero: true,
    ..MINIX
};
