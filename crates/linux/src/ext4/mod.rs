//! ext4: its allocator, its journal, and what system calls make of them.

mod allocator;
mod bitmap;
mod calls;
mod checkpoint;
mod commit;
mod direct;
mod directory;
mod extents;
mod geometry;
mod groups;
mod inode;
mod journal;
mod layout;
mod mapping;
mod names;
mod options;
mod preallocation;
mod read;
mod space;
mod sync;
mod timers;
mod unmount;
mod used_blocks;
mod write;
mod writeback;

pub use layout::{Ext4Layout, GroupPlaces};
pub use options::{DataMode, Ext4MakeOptions, Ext4MountOptions, Ext4Options};

use std::collections::{BTreeMap, BTreeSet};

use allocator::{BlockAllocator, BlockRun};
use directory::EntryBlocks;
use extents::TreeChange;
use geometry::{Geometry, ROOT_INODE};
use groups::Groups;
use inode::Inode;
use journal::{Journal, TransactionId};
use timers::Flusher;

use crate::block::{
    Bio, BioContent, BioFlags, BioOperation, DeviceLimits, FileId, MetadataKind, SECTOR_BYTES,
};
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileSystemError};
use crate::stack::ROOT;
use crate::version::{Host, KernelVersion};

/// ext4 file system, mounted.
#[derive(Debug)]
pub struct Ext4 {
    host: Host,
    limits: DeviceLimits,
    options: Ext4Options,
    geometry: Geometry,
    allocator: BlockAllocator,
    journal: Option<Journal>,
    /// Blocks of metadata that have to go home.
    dirty_blocks: BTreeSet<u64>,
    /// Blocks of data that were in the journal and have to go home (data=journal).
    dirty_data_blocks: BTreeSet<u64>,
    /// Kinds of blocks of metadata at no fixed place.
    kinds: BTreeMap<u64, MetadataKind>,
    inodes: BTreeMap<FileId, Inode>,
    /// Files that are truncated or freed at the next mount, last added first.
    orphans: Vec<FileId>,
    /// Inodes that were freed and are not reused while others are free (no journal).
    recently_freed: BTreeSet<u64>,
    /// Whether the path of the mount is in the superblock.
    has_sampled_mount: bool,
    /// Unwritten blocks under writeback: the worker marks them written.
    conversions: Vec<Conversion>,
    next_dirty_order: u64,
    flusher: Flusher,
}

/// Blocks of a file whose data is on the device.
#[derive(Clone, Copy, Debug)]
struct Conversion {
    file: FileId,
    start: u64,
    end: u64,
}

impl Ext4 {
    /// Makes a fresh file system, as mke2fs does, and mounts it.
    ///
    /// # Errors
    /// If the layout of the device's size is not modelled.
    pub fn new(
        host: &Host,
        limits: &DeviceLimits,
        mut options: Ext4Options,
    ) -> Result<Self, FileSystemError> {
        let geometry = Geometry::new(limits.bytes(), &options.make)?;
        // mke2fs makes none on a small device.
        options.make.has_journal = !geometry.journal.is_empty();
        if !options.make.has_journal && options.mount.needs_journal() {
            return Err(FileSystemError::Unsupported {
                file_system: "ext4",
                call: "data= or journal_async_commit without a journal".to_owned(),
                remedy: "leave the option out, or use a device of 2048 blocks or more",
            });
        }
        if options.mount.data == DataMode::Journal {
            options.mount.has_delayed_allocation = false;
        }
        let groups = Groups::new(&geometry, host.processors);
        let journal = options.make.has_journal.then(|| {
            let runs = geometry.journal.clone();
            Journal::new(runs, geometry.block_bytes, geometry.fast_commit_blocks)
        });
        let mut file_system = Self {
            host: *host,
            limits: *limits,
            options,
            allocator: BlockAllocator::new(&geometry, groups, limits.is_rotational),
            journal,
            dirty_blocks: BTreeSet::new(),
            dirty_data_blocks: BTreeSet::new(),
            kinds: BTreeMap::new(),
            inodes: BTreeMap::new(),
            orphans: Vec::new(),
            recently_freed: BTreeSet::new(),
            has_sampled_mount: false,
            conversions: Vec::new(),
            next_dirty_order: 0,
            flusher: Flusher::default(),
            geometry,
        };
        file_system.add_root();
        Ok(file_system)
    }

    fn add_root(&mut self) {
        let mut root = self.new_inode(ROOT_INODE, FileKind::Directory);
        let block = self.geometry.root_block;
        let mut entries = EntryBlocks::new(self.geometry.block_bytes as u32, block);
        entries.insert("lost+found");
        root.entries = Some(entries);
        root.size = self.geometry.block_bytes;
        self.kinds.insert(block, MetadataKind::Directory);
        self.inodes.insert(ROOT, root);
    }

    fn new_inode(&self, number: u64, kind: FileKind) -> Inode {
        let is_journalled = self.options.mount.data == DataMode::Journal;
        let has_large_folios = self.host.version.has_ext4_large_folios() && !is_journalled;
        Inode::new(number, kind, self.geometry.block_bytes, has_large_folios)
    }

    fn inode(&self, file: FileId) -> &Inode {
        &self.inodes[&file]
    }

    fn inode_mut(&mut self, file: FileId) -> &mut Inode {
        self.inodes
            .get_mut(&file)
            .expect("a file that is used has an inode")
    }

    /// Whether the data of a file goes through the journal.
    fn is_data_journalled(&self) -> bool {
        self.options.mount.data == DataMode::Journal && self.journal.is_some()
    }

    fn no_space(&self) -> FileSystemError {
        FileSystemError::NoSpace {
            bytes: self.limits.bytes(),
        }
    }

    fn block_sectors(&self) -> u64 {
        self.geometry.block_bytes / SECTOR_BYTES
    }

    /// Bio over blocks of the device.
    fn bio(
        &self,
        operation: BioOperation,
        content: BioContent,
        run: BlockRun,
        flags: BioFlags,
    ) -> Bio {
        Bio {
            operation,
            content,
            sector: run.physical * self.block_sectors(),
            sectors: run.length * self.block_sectors(),
            segments: 1,
            flags,
        }
    }

    fn kind(&self, block: u64) -> MetadataKind {
        let fixed = self.geometry.kind(block);
        fixed
            .or_else(|| self.kinds.get(&block).copied())
            .unwrap_or(MetadataKind::ExtentTree)
    }

    /// Puts a block of metadata into the running transaction, or among the dirty blocks.
    fn dirty_block(&mut self, context: &CallContext<'_>, block: u64) {
        match &mut self.journal {
            Some(journal) => {
                let transaction = journal.join(context.now_ns);
                transaction.add(block);
                self.dirty_blocks.remove(&block);
            }
            None => {
                self.dirty_blocks.insert(block);
                self.flusher.note_metadata(&self.host, context.now_ns);
            }
        }
    }

    /// Number of the running transaction; 0 without a journal.
    fn running_id(&mut self, context: &CallContext<'_>) -> TransactionId {
        self.journal
            .as_mut()
            .map_or(0, |journal| journal.join(context.now_ns).id)
    }

    /// Puts an inode's block into the running transaction.
    fn dirty_inode(&mut self, context: &CallContext<'_>, file: FileId) {
        let block = self.geometry.inode_block(self.inode(file).number);
        self.dirty_block(context, block);
        let id = self.running_id(context);
        let inode = self.inode_mut(file);
        inode.sync_id = id;
        if inode.disk_size != inode.logged_size {
            inode.logged_size = inode.disk_size;
            inode.data_sync_id = id;
        }
    }

    /// Notes that fdatasync must wait for the running transaction.
    fn note_data_change(&mut self, context: &CallContext<'_>, file: FileId) {
        let id = self.running_id(context);
        let inode = self.inode_mut(file);
        inode.sync_id = id;
        inode.data_sync_id = id;
    }

    fn dirty_superblock(&mut self, context: &CallContext<'_>) {
        let block = self.geometry.superblock();
        self.dirty_block(context, block);
    }

    /// Puts the descriptor and, with `has_bitmap`, the block bitmap of a group into the transaction.
    fn dirty_group(&mut self, context: &CallContext<'_>, group: u64, has_bitmap: bool) {
        if has_bitmap {
            let bitmap = self.geometry.block_bitmap(group);
            self.dirty_block(context, bitmap);
        }
        let descriptor = self.geometry.descriptor_block(group);
        self.dirty_block(context, descriptor);
    }

    /// Time stamps change: the inode is dirty if the tick is a new one.
    fn touch(&mut self, context: &CallContext<'_>, file: FileId) {
        let tick = self.host.tick_ns(context.now_ns);
        // From 6.6 on, a new time stamp of a modification counts the inode's version up with it.
        let is_lazy = self.options.mount.is_lazy_time && self.host.version < KernelVersion::V6_12;
        let inode = self.inode_mut(file);
        if inode.modified_ns == Some(tick) && inode.changed_ns == Some(tick) {
            return;
        }
        inode.modified_ns = Some(tick);
        inode.changed_ns = Some(tick);
        inode.is_listed_changed = true;
        self.list_dirty(context, file);
        if is_lazy {
            self.inode_mut(file).has_lazy_time = true;
        } else {
            self.inode_mut(file).has_lazy_time = false;
            self.dirty_inode(context, file);
        }
    }

    /// Puts an inode behind those that the flusher visits, if it is not among them.
    fn list_dirty(&mut self, context: &CallContext<'_>, file: FileId) {
        let order = self.next_dirty_order;
        let now_ns = context.now_ns;
        let inode = self.inode_mut(file);
        if inode.dirty_order.is_none() {
            inode.dirty_order = Some(order);
            inode.dirtied_ns = now_ns;
            self.next_dirty_order += 1;
            self.flusher.start(&self.host, now_ns);
        }
    }

    /// Adds a file to the list of orphans, which begins in the superblock.
    fn add_orphan(&mut self, context: &CallContext<'_>, file: FileId) {
        if self.journal.is_none() || self.orphans.contains(&file) {
            return;
        }
        self.orphans.insert(0, file);
        self.dirty_superblock(context);
        self.dirty_inode(context, file);
    }

    /// Removes a file from the list of orphans: the superblock or the file before it changes.
    fn remove_orphan(&mut self, context: &CallContext<'_>, file: FileId) {
        let Some(index) = self.orphans.iter().position(|orphan| *orphan == file) else {
            return;
        };
        self.orphans.remove(index);
        match index.checked_sub(1) {
            None => self.dirty_superblock(context),
            Some(previous) => {
                let previous = self.orphans[previous];
                self.dirty_inode(context, previous);
            }
        }
        self.dirty_inode(context, file);
    }

    /// Frees blocks. Those of metadata, and of data unless data=writeback, wait for the commit.
    fn free_blocks(&mut self, context: &mut CallContext<'_>, run: BlockRun, is_metadata: bool) {
        let mut left = run;
        while left.length > 0 {
            let group = self.geometry.group_of_block(left.physical);
            let end = self.geometry.group_first(group + 1);
            let length = left.length.min(end - left.physical);
            let part = BlockRun { length, ..left };
            self.free_in_group(context, group, part, is_metadata);
            left = BlockRun {
                physical: end,
                length: left.length - length,
            };
        }
    }

    fn free_in_group(
        &mut self,
        context: &mut CallContext<'_>,
        group: u64,
        run: BlockRun,
        is_metadata: bool,
    ) {
        self.dirty_group(context, group, true);
        self.allocator.unmark(run);
        let is_writeback = self.options.mount.data == DataMode::Writeback;
        match &mut self.journal {
            Some(journal) if is_metadata || !is_writeback => {
                journal.join(context.now_ns).freed.push(run);
            }
            _ => {
                if self.options.mount.discards {
                    self.discard(context, run);
                }
                self.allocator.release(run);
            }
        }
    }

    /// Frees a block of metadata: the journal must not write it again.
    fn free_metadata(&mut self, context: &mut CallContext<'_>, block: u64) {
        let is_revoked = self.options.mount.data != DataMode::Journal;
        self.forget(context, block, is_revoked);
        self.kinds.remove(&block);
        self.free_blocks(
            context,
            BlockRun {
                physical: block,
                length: 1,
            },
            true,
        );
    }

    /// Takes a block out of the running transaction and of what has to go home.
    fn forget(&mut self, context: &CallContext<'_>, block: u64, is_revoked: bool) {
        self.dirty_data_blocks.remove(&block);
        self.dirty_blocks.remove(&block);
        if let Some(journal) = &mut self.journal {
            let transaction = journal.join(context.now_ns);
            transaction.remove(block);
            if is_revoked {
                transaction.revoked.insert(block);
            }
            journal.forget(block);
        }
    }

    fn discard(&self, context: &mut CallContext<'_>, run: BlockRun) {
        let flags = BioFlags::default();
        context
            .effects
            .submit(self.bio(BioOperation::Discard, BioContent::None, run, flags));
    }

    /// Applies changes of a file's extent tree to the journal.
    fn apply_tree_change(&mut self, context: &mut CallContext<'_>, change: &TreeChange) {
        for block in &change.dirtied {
            self.kinds.insert(*block, MetadataKind::ExtentTree);
            self.dirty_block(context, *block);
        }
        for block in &change.freed {
            self.free_metadata(context, *block);
        }
    }

    /// Makes the running handle synchronous, where the mount or the directory says so.
    fn end_handle(
        &mut self,
        context: &mut CallContext<'_>,
        is_sync: bool,
    ) -> Result<(), FileSystemError> {
        if is_sync {
            self.commit(context)
        } else {
            Ok(())
        }
    }
}
