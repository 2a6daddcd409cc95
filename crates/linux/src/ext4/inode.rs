//! Inodes in memory, with what their transactions are.

use super::directory::EntryBlocks;
use super::extents::ExtentTree;
use super::journal::TransactionId;
use super::preallocation::Preallocation;
use crate::file_system::FileKind;
use crate::page_cache::PageCache;

/// Inode in memory, with its pages.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) kind: FileKind,
    pub(super) links: u32,
    /// Size that programs see.
    pub(super) size: u64,
    /// Size that the inode on the device will have (i_disksize).
    pub(super) disk_size: u64,
    /// Size on the device as of the last change of the inode's block.
    pub(super) logged_size: u64,
    pub(super) extents: ExtentTree,
    pub(super) cache: PageCache,
    /// Entries, if it is a directory.
    pub(super) entries: Option<EntryBlocks>,
    pub(super) reserves: Vec<Preallocation>,
    /// Blocks that are dirty and have no place on the device.
    pub(super) delayed_blocks: u64,
    /// Last transaction that changed the inode.
    pub(super) sync_id: TransactionId,
    /// Last transaction that changed what fdatasync must make durable.
    pub(super) data_sync_id: TransactionId,
    /// Tick of the last modification.
    pub(super) modified_ns: Option<u64>,
    /// Tick of the last change of the inode.
    pub(super) changed_ns: Option<u64>,
    /// Tick of the last access.
    pub(super) accessed_ns: Option<u64>,
    /// Whether a time stamp is newer than the transaction's copy (lazytime).
    pub(super) has_lazy_time: bool,
    /// Whether the last close writes delayed blocks, as the file was truncated to nothing.
    pub(super) must_allocate_on_close: bool,
    pub(super) writers: u32,
    /// Place among the inodes that the flusher visits. `None`: it is clean.
    pub(super) dirty_order: Option<u64>,
    /// Whether the inode itself is marked dirty for the flusher (I_DIRTY_SYNC).
    pub(super) is_listed_changed: bool,
    /// Whether a change that fdatasync must see is marked for the flusher (I_DIRTY_DATASYNC).
    pub(super) is_listed_data_changed: bool,
    /// Time at which it became dirty.
    pub(super) dirtied_ns: u64,
}

impl Inode {
    pub(super) fn new(
        number: u64,
        kind: FileKind,
        block_bytes: u64,
        has_large_folios: bool,
    ) -> Self {
        Self {
            number,
            kind,
            links: 1,
            size: 0,
            disk_size: 0,
            logged_size: 0,
            extents: ExtentTree::new(block_bytes),
            cache: PageCache::new(block_bytes, has_large_folios),
            entries: None,
            reserves: Vec::new(),
            delayed_blocks: 0,
            sync_id: 0,
            data_sync_id: 0,
            modified_ns: None,
            changed_ns: None,
            accessed_ns: None,
            has_lazy_time: false,
            must_allocate_on_close: false,
            writers: 0,
            dirty_order: None,
            is_listed_changed: false,
            is_listed_data_changed: false,
            dirtied_ns: 0,
        }
    }
}
