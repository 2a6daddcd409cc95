//! Inodes in memory, and what of their changes is in the log.

use crate::file_system::FileKind;
use crate::page_cache::PageCache;
use crate::xfs::directory::Directory;
use crate::xfs::extent_list::ExtentList;
use crate::xfs::extent_tree::{ROOT_BYTES, XfsExtentTree};
use crate::xfs::log_items::InodeNumber;

/// Bytes behind the core of an inode that mkfs.xfs made.
pub(super) const MKFS_FORK_BYTES: u64 = 336;
/// Bytes of those that are left for extents or names in inodes that the kernel makes: where
/// security modules are built in, as in all distributions, it keeps room for their attributes.
pub(super) const FORK_BYTES: u64 = 192;
/// Extents that an inode of a file holds without a tree.
pub(super) const INLINE_EXTENTS_MAX: u64 = FORK_BYTES / EXTENT_RECORD_BYTES;
/// Bytes of an extent's record.
pub(super) const EXTENT_RECORD_BYTES: u64 = 16;

/// Change of an inode, by what the log must hold of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InodeChange {
    /// Time stamps alone, which fdatasync does not wait for.
    Times,
    /// Any other field of the core.
    Core,
    /// Core, and the extents or names behind it.
    Fork,
}

/// Time stamps of a file, in ticks' times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileTimes {
    /// Last read that `relatime` noted.
    pub(super) accessed_ns: u64,
    /// Last change of data or fields.
    pub(super) changed_ns: u64,
}

/// Inode with what the kernel keeps beside it in memory.
#[derive(Clone, Debug)]
pub(super) struct XfsInode {
    /// Number on the device.
    pub(super) number: InodeNumber,
    /// Regular file or directory.
    pub(super) kind: FileKind,
    /// Whether the file has a name.
    pub(super) is_linked: bool,
    /// Size in bytes that programs see.
    pub(super) size: u64,
    /// Size in bytes that the log or the device knows.
    pub(super) disk_size: u64,
    /// Extents of the data.
    pub(super) extents: ExtentList,
    /// Tree of the extents, if the inode does not hold them.
    pub(super) tree: Option<XfsExtentTree>,
    /// Names of a directory.
    pub(super) names: Directory,
    /// Pages of a file's data.
    pub(super) cache: PageCache,
    /// Time stamps that programs see.
    pub(super) times: FileTimes,
    /// Whether time stamps changed that are not logged (`lazytime`).
    pub(super) has_lazy_times: bool,
    /// Whether the file is on the list of dirty files.
    pub(super) is_on_dirty_list: bool,
    /// Whether fallocate gave the file blocks, so that those behind its end stay.
    pub(super) is_preallocated: bool,
    /// Whether the file was truncated and not synced since.
    pub(super) was_truncated: bool,
    /// Whether a close removed blocks behind the end, or left them for dirty data.
    pub(super) was_released: bool,
    /// Whether the fork was logged since the inode was last written in place.
    pub(super) is_fork_logged: bool,
    /// Checkpoint that logs the last change.
    logged_in: Option<u64>,
    /// Checkpoint that logs the last change other than of time stamps.
    data_logged_in: Option<u64>,
    /// Whether other changes than of time stamps were logged since the last sync of this inode.
    has_unsynced_fields: bool,
}

impl XfsInode {
    /// Returns a new inode without data.
    pub(super) fn new(number: InodeNumber, kind: FileKind, cache: PageCache, now_ns: u64) -> Self {
        Self {
            number,
            kind,
            is_linked: true,
            size: 0,
            disk_size: 0,
            extents: ExtentList::default(),
            tree: None,
            names: Directory::new(FORK_BYTES),
            cache,
            times: FileTimes {
                accessed_ns: now_ns,
                changed_ns: now_ns,
            },
            has_lazy_times: false,
            is_on_dirty_list: false,
            is_preallocated: false,
            was_truncated: false,
            was_released: false,
            is_fork_logged: false,
            logged_in: None,
            data_logged_in: None,
            has_unsynced_fields: false,
        }
    }

    /// Bytes of the fork in the log, if it is logged.
    pub(super) fn fork_bytes(&self) -> u64 {
        match self.kind {
            FileKind::Directory if self.names.inline_bytes() > 0 => self.names.inline_bytes(),
            _ if self.tree.is_some() => ROOT_BYTES,
            _ => self.extents.allocated_count() * EXTENT_RECORD_BYTES,
        }
    }

    /// Notes that checkpoint `checkpoint` logs a change.
    pub(super) fn note_logged(&mut self, change: InodeChange, checkpoint: u64) {
        self.logged_in = Some(checkpoint);
        if change != InodeChange::Times {
            self.data_logged_in = Some(checkpoint);
            self.has_unsynced_fields = true;
        }
    }

    /// Whether the open checkpoint holds a change of the inode.
    pub(super) fn is_pinned(&self, checkpoint: u64) -> bool {
        self.logged_in == Some(checkpoint)
    }

    /// Whether fdatasync must force the open checkpoint. Before 6.18 a mark on the inode counts,
    /// which only a sync of this inode clears.
    pub(super) fn needs_data_sync(&self, checkpoint: u64, has_sticky_mark: bool) -> bool {
        if has_sticky_mark {
            self.is_pinned(checkpoint) && self.has_unsynced_fields
        } else {
            self.data_logged_in == Some(checkpoint)
        }
    }

    /// Notes that a sync of this inode forced the log.
    pub(super) fn note_synced(&mut self) {
        self.has_unsynced_fields = false;
    }

    /// Notes that the inode was written in place.
    pub(super) fn note_written_in_place(&mut self) {
        self.is_fork_logged = false;
        self.has_unsynced_fields = false;
    }
}
