//! XFS: its allocator, its log, and what system calls make of them.
//!
//! Modelled: the layout of mkfs.xfs 6.1; allocation groups with their trees of free space and of
//! inodes, as long as each is one leaf; delayed allocation with preallocation behind the end;
//! unwritten extents; the log with its items, checkpoints, records and covering; inactivation of
//! unlinked files by a worker; directories up to one node of leaves.
//!
//! Refused by name: devices under 300 MiB or above 4 TiB; files in more than 251 extents; groups
//! with more than 505 free extents or 252 chunks of inodes; directories of more than some 2000
//! blocks; direct I/O that is not aligned to blocks. Leaves of a directory that become short are
//! not joined. There are no real-time devices, quotas, extended attributes, shared blocks, stripes
//! of the data device, trees of reverse mappings, external logs, or writes of the log that nobody
//! waits for, which begin when a checkpoint has 8 MiB.

mod calls;
#[cfg(test)]
mod check;
mod data;
mod directory;
mod directory_block;
mod directory_leaf;
mod directory_node;
mod extent_list;
mod extent_tree;
mod free_space;
mod geometry;
mod inode;
mod inode_space;
mod log;
mod log_items;
mod metadata_reads;
mod names;
mod options;
mod short_tree;
mod space;
mod sync;
mod write;

pub use options::{XfsMakeOptions, XfsMountOptions, XfsOptions};

use std::collections::BTreeMap;

use crate::block::{Bio, BioContent, BioFlags, BioOperation, DeviceLimits, FileId};
use crate::effect::{CallContext, Task};
use crate::file_system::{FileKind, FileSystemError};
use crate::page_cache::PageCache;
use crate::stack::ROOT;
use crate::version::{Host, KernelVersion};
use directory::Directory;
use free_space::{FreeSpace, TreeFull};
use geometry::{BLOCK_BYTES, DEVICE_BYTES_MAX, DEVICE_BYTES_MIN, FreeExtent, XfsGeometry};
use inode::{InodeChange, MKFS_FORK_BYTES, XfsInode};
use inode_space::InodeSpace;
use log::Log;
use metadata_reads::MetadataReads;

/// Allocation group: a part of the device with its own free space and inodes.
#[derive(Clone, Debug)]
struct AllocationGroup {
    space: FreeSpace,
    inodes: InodeSpace,
}

/// Inode without users that a worker is to free, or whose blocks behind the end it is to free.
#[derive(Clone, Copy, Debug)]
struct InactiveFile {
    file: FileId,
    due_ns: u64,
}

/// File with dirty pages.
#[derive(Clone, Copy, Debug)]
struct DirtyFile {
    file: FileId,
    since_ns: u64,
}

/// XFS file system, mounted.
#[derive(Debug)]
pub struct Xfs {
    version: KernelVersion,
    limits: DeviceLimits,
    options: XfsOptions,
    geometry: XfsGeometry,
    groups: Vec<AllocationGroup>,
    log: Log,
    metadata_reads: MetadataReads,
    files: BTreeMap<FileId, XfsInode>,
    /// Group that takes the next directory.
    directory_group: u64,
    /// Files with dirty pages, in the order in which they became dirty.
    dirty_files: Vec<DirtyFile>,
    inactive: Vec<InactiveFile>,
    /// Time of the next run of the log's worker.
    log_worker_ns: u64,
    /// Whether pages were written to the device since the mount.
    has_written_back: bool,
    /// Time of the next run of the flusher, while files are dirty.
    flusher_ns: Option<u64>,
}

/// Period of the log's worker (`fs.xfs.xfssyncd_centisecs`).
const LOG_WORKER_PERIOD_NS: u64 = 30_000_000_000;

impl Xfs {
    /// Makes a fresh file system and mounts it.
    ///
    /// # Errors
    /// If the layout of the device's size is not modelled.
    pub fn new(
        host: &Host,
        limits: &DeviceLimits,
        options: XfsOptions,
    ) -> Result<Self, FileSystemError> {
        check_device(limits)?;
        let geometry = XfsGeometry::new(limits.bytes(), &options.make);
        let mut groups: Vec<AllocationGroup> = (0..geometry.groups())
            .map(|group| AllocationGroup {
                space: FreeSpace::new(&geometry, group),
                inodes: InodeSpace::new(group),
            })
            .collect();
        groups[0].space.reserve(InodeSpace::first_chunk_blocks());
        let logs_superblock_first = host.version >= KernelVersion::V6_18;
        let mut xfs = Self {
            version: host.version,
            limits: *limits,
            options,
            geometry,
            groups,
            log: Log::new(&geometry, &options, logs_superblock_first),
            metadata_reads: MetadataReads::default(),
            files: BTreeMap::new(),
            directory_group: 0,
            dirty_files: Vec::new(),
            inactive: Vec::new(),
            log_worker_ns: LOG_WORKER_PERIOD_NS,
            has_written_back: false,
            flusher_ns: None,
        };
        let mut root = XfsInode::new(InodeSpace::root(), FileKind::Directory, xfs.new_cache(), 0);
        root.names = Directory::new(MKFS_FORK_BYTES);
        xfs.files.insert(ROOT, root);
        Ok(xfs)
    }

    fn new_cache(&self) -> PageCache {
        PageCache::new(BLOCK_BYTES, self.version.has_large_write_folios())
    }

    fn inode(&self, file: FileId) -> &XfsInode {
        &self.files[&file]
    }

    fn inode_mut(&mut self, file: FileId) -> &mut XfsInode {
        self.files
            .get_mut(&file)
            .expect("the caller names a file that exists")
    }

    fn unsupported(call: String, remedy: &'static str) -> FileSystemError {
        FileSystemError::Unsupported {
            file_system: "XFS",
            call,
            remedy,
        }
    }

    fn no_space(&self) -> FileSystemError {
        FileSystemError::NoSpace {
            bytes: self.limits.bytes(),
        }
    }

    /// Logs a change of an inode in the open checkpoint.
    fn log_inode(&mut self, file: FileId, change: InodeChange) -> Result<(), FileSystemError> {
        if change == InodeChange::Fork && self.inode(file).kind == FileKind::Regular {
            self.log_extent_tree(file)?;
        }
        let checkpoint = self.log.checkpoint();
        let geometry = self.geometry;
        let inode = self.inode_mut(file);
        let fork_bytes = inode.fork_bytes();
        inode.is_fork_logged |= change == InodeChange::Fork;
        inode.is_fork_logged &= fork_bytes > 0;
        inode.note_logged(change, checkpoint);
        inode.has_lazy_times = false;
        let number = inode.number;
        let logged_fork = if inode.is_fork_logged { fork_bytes } else { 0 };
        let cluster = geometry.inode_cluster(number.group, number.index);
        self.metadata_reads.need(cluster);
        self.log.add_inode(number, cluster, logged_fork);
        Ok(())
    }

    /// Writes the open checkpoint and waits. Returns whether there was one.
    fn force_log(&mut self, context: &mut CallContext<'_>) -> bool {
        self.metadata_reads.submit(context.effects);
        if !self.log.force(context.effects) {
            return false;
        }
        let geometry = self.geometry;
        for (group, members) in self.groups.iter_mut().enumerate() {
            let mut freed = members.space.settle_busy();
            freed.retain(|busy| busy.held_data);
            freed.sort_by_key(|busy| busy.extent.first);
            if self.options.mount.discards {
                let caller = context.effects.switch(Task::Worker);
                for busy in freed {
                    context
                        .effects
                        .submit(discard(&geometry, group as u64, busy.extent));
                }
                context.effects.switch(caller);
            }
        }
        if let Some(place) = self.log.push_target() {
            self.write_metadata(context, place);
        }
        true
    }

    fn force_log_of(&mut self, context: &mut CallContext<'_>, file: FileId) -> bool {
        let is_pinned = self.inode(file).is_pinned(self.log.checkpoint());
        is_pinned && self.force_log(context)
    }

    /// Ends a change of names or sizes, which `wsync` makes synchronous.
    fn end_change(&mut self, context: &mut CallContext<'_>) {
        self.metadata_reads.submit(context.effects);
        if self.options.mount.is_wsync {
            self.force_log(context);
        }
    }
}

impl From<TreeFull> for FileSystemError {
    fn from(_: TreeFull) -> Self {
        Xfs::unsupported(
            "more records of free space or inodes in a group than a leaf holds".to_owned(),
            "use fewer files, or fewer holes",
        )
    }
}

/// Returns the discard of an extent of a group.
fn discard(geometry: &XfsGeometry, group: u64, extent: FreeExtent) -> Bio {
    Bio {
        operation: BioOperation::Discard,
        content: BioContent::None,
        sector: geometry.block_sector(group * geometry.group_blocks + extent.first),
        sectors: geometry.block_sector(extent.length),
        segments: 0,
        flags: BioFlags::default(),
    }
}

/// Refuses devices for which the layout is not modelled.
fn check_device(limits: &DeviceLimits) -> Result<(), FileSystemError> {
    let bytes = limits.bytes();
    if (DEVICE_BYTES_MIN..=DEVICE_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let call = format!("a device of {bytes} bytes");
    Err(Xfs::unsupported(call, "use 300 MiB to 4 TiB"))
}
