//! File system of the seventh edition of UNIX, as in Xenix 1.0. It runs under the system calls, the
//! buffer cache and the drivers of the 4.2BSD kernel, which descends from it.
//!
//! - `layout`: on-disk structures and mkfs; knows no time;
//! - `allocate`: blocks and inodes from the free lists (alloc, free, ialloc);
//! - `inodes`: inodes in core (iget, iput, iupdat, itrunc);
//! - `block_map` and `read_write`: bmap, readi, writei;
//! - `names`: namei, and making and removing names;
//! - `check`: consistency checks of fsck.
//!
//! The cache or the drive holds the bytes of inodes, directories and indirect blocks. The super
//! block and the inodes in use are in core.

mod allocate;
mod block_map;
mod check;
mod inodes;
pub(crate) mod layout;
mod names;
mod read_write;
#[cfg(test)]
mod tests;

use super::buffers::{BlockKey, BufferId};
use super::ffs::InodeNumber;
use super::process::Process;
use super::{InodeInCore, UnixKernel, Vnode};
use crate::medium::Page;
use crate::medium::PartitionContents;
use crate::volumes::Volumes;
use layout::{SUPERBLOCK_BLOCK, V7Inode, V7Superblock};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

pub use check::V7CheckSummary;
pub use layout::{BLOCK_BYTES, V7MkfsError, V7Parameters, file_capacity_bytes};

/// Block size in bytes, in the integer type of the buffer cache.
const BLOCK_BYTES_U32: u32 = BLOCK_BYTES as u32;

/// State of a UNIX kernel that belongs to the seventh edition's file system.
pub(crate) struct V7FileSystems {
    volumes: RefCell<Vec<V7Volume>>,
}

/// Mounted file system of the seventh edition.
pub(crate) struct V7Volume {
    superblock: V7Superblock,
    /// Whether the super block was changed since its last write (`s_fmod`).
    superblock_modified: bool,
    /// Lock of the free list, held while a process reads or writes a block of its chain
    /// (`s_flock`).
    free_list_lock: SleepLock,
    /// Lock of the search for free inodes (`s_ilock`).
    inode_list_lock: SleepLock,
    inodes: BTreeMap<InodeNumber, V7InodeInCore>,
}

impl V7Volume {
    fn free_list_lock(&mut self) -> &mut SleepLock {
        &mut self.free_list_lock
    }

    fn inode_list_lock(&mut self) -> &mut SleepLock {
        &mut self.inode_list_lock
    }
}

/// Lock that admits one process at a time.
#[derive(Default)]
struct SleepLock {
    is_locked: bool,
    waiters: Vec<Rc<Process>>,
}

/// In-core inode of the seventh edition that processes use.
#[derive(Default)]
struct V7InodeInCore {
    /// Contents of the inode; `None` while the inode is being read.
    inode: Option<V7Inode>,
    in_core_state: InodeInCore,
    readers: Vec<Rc<Process>>,
}

impl V7FileSystems {
    /// Makes a seventh edition file system on each medium and mounts it.
    pub(crate) fn new(
        volumes: &Volumes,
        parameters: V7Parameters,
        bytes: impl Iterator<Item = u64>,
    ) -> Self {
        let mount = |medium: &mut PartitionContents, bytes: u64| {
            let at = |block: u32| u64::from(block) * BLOCK_BYTES as u64;
            layout::make_file_system(bytes, parameters, &mut |block, contents| {
                medium.write_bytes(at(block), contents);
            })
            .expect("the specification was checked");
            let mut superblock = [0; BLOCK_BYTES];
            medium.read_bytes(at(SUPERBLOCK_BLOCK), &mut superblock);
            V7Volume {
                superblock: V7Superblock::decode_superblock(&superblock),
                superblock_modified: false,
                free_list_lock: SleepLock::default(),
                inode_list_lock: SleepLock::default(),
                inodes: BTreeMap::new(),
            }
        };
        Self {
            volumes: RefCell::new(volumes.make_file_systems(bytes, mount)),
        }
    }

    pub(crate) fn volume_count(&self) -> usize {
        self.volumes.borrow().len()
    }

    /// Calls a closure with the in-core state of an inode in use. Panics if the inode is not in
    /// core.
    pub(crate) fn with_in_core_inode<T>(
        &self,
        node: Vnode,
        use_it: impl FnOnce(&mut InodeInCore) -> T,
    ) -> T {
        let mut volumes = self.volumes.borrow_mut();
        let inodes = &mut volumes[node.volume as usize].inodes;
        let found = inodes.get_mut(&node.inode);
        use_it(&mut found.expect("an inode in use is in core").in_core_state)
    }
}

/// File system state of the seventh edition, together with the kernel that uses it.
pub(crate) struct V7View<'a> {
    pub(crate) unix: &'a UnixKernel,
    pub(crate) v7: &'a V7FileSystems,
}

impl Deref for V7View<'_> {
    type Target = UnixKernel;

    fn deref(&self) -> &UnixKernel {
        self.unix
    }
}

impl V7View<'_> {
    fn with_volume<T>(&self, volume: u32, use_it: impl FnOnce(&mut V7Volume) -> T) -> T {
        use_it(&mut self.v7.volumes.borrow_mut()[volume as usize])
    }

    /// Calls a closure with the contents of an inode in use. Panics if the inode is not in core.
    pub(crate) fn with_inode<T>(&self, node: Vnode, look: impl FnOnce(&V7Inode) -> T) -> T {
        self.with_volume(node.volume, |volume| {
            let found = volume.inodes.get(&node.inode);
            let inode = found.and_then(|found| found.inode.as_ref());
            look(inode.expect("an inode in use is in core"))
        })
    }

    /// Changes an inode in use through a closure, and marks inode and super block as modified.
    fn with_inode_mut<T>(&self, node: Vnode, change: impl FnOnce(&mut V7Inode) -> T) -> T {
        self.with_volume(node.volume, |volume| {
            volume.superblock_modified = true;
            let found = volume.inodes.get_mut(&node.inode);
            let found = found.expect("an inode in use is in core");
            found.in_core_state.is_modified = true;
            change(found.inode.as_mut().expect("an inode in use was read"))
        })
    }

    fn block_key(volume: u32, block: u32) -> BlockKey {
        BlockKey::new(volume, block)
    }

    async fn read_block(&self, process: &Rc<Process>, volume: u32, block: u32) -> BufferId {
        self.bread(process, Self::block_key(volume, block), BLOCK_BYTES_U32)
            .await
    }

    /// Calls a closure with the contents of a buffer that the caller holds.
    fn with_block<T>(&self, id: BufferId, look: impl FnOnce(&[u8]) -> T) -> T {
        let buffers = self.buffers.borrow();
        let page: Option<&Page> = buffers.buffers[id.0 as usize].page.as_ref();
        look(page.expect("a buffer that was read has contents"))
    }

    /// Acquires a lock of a volume's free lists. Sleeps while another process holds it.
    async fn acquire_lock(
        &self,
        process: &Rc<Process>,
        volume: u32,
        gate: fn(&mut V7Volume) -> &mut SleepLock,
    ) {
        loop {
            let shut = self.with_volume(volume, |volume| {
                let gate = gate(volume);
                if gate.is_locked {
                    gate.waiters.push(Rc::clone(process));
                    return true;
                }
                gate.is_locked = true;
                false
            });
            if !shut {
                return;
            }
            let from = self.simulation.now();
            self.wait_for_wake_up(process, "a free list that another process uses")
                .await;
            process.book_wait(diskperf_timeline::Stage::BufferWait, from);
        }
    }

    fn release_lock(&self, volume: u32, gate: fn(&mut V7Volume) -> &mut SleepLock) {
        let waiters = self.with_volume(volume, |volume| {
            let gate = gate(volume);
            gate.is_locked = false;
            std::mem::take(&mut gate.waiters)
        });
        for process in &waiters {
            self.wake_process(process);
        }
    }

    /// Writes a changed super block, and copies changed inodes into their cached blocks. A sync
    /// does this before it writes the delayed blocks.
    pub(crate) async fn update_volume(&self, process: &Rc<Process>, volume: u32) {
        let bytes = self.with_volume(volume, |volume| {
            std::mem::take(&mut volume.superblock_modified)
                .then(|| volume.superblock.encode_superblock())
        });
        if let Some(bytes) = bytes {
            let key = Self::block_key(volume, SUPERBLOCK_BLOCK);
            let id = self.getblk(process, key, BLOCK_BYTES_U32).await;
            self.buffers.borrow_mut().buffer_mut(id).page = Some(bytes.into());
            self.bwrite(process, id).await;
        }
        let changed = self.with_volume(volume, |volume| {
            let changed = volume
                .inodes
                .iter()
                .filter(|(_, inode)| inode.in_core_state.is_modified);
            changed.map(|(inode, _)| *inode).collect::<Vec<_>>()
        });
        for inode in changed {
            self.write_inode(process, Vnode { volume, inode }).await;
        }
    }
}
