//! Modelled UNIX kernel: 4.2BSD, and the seventh edition that it descends from, structured like the
//! real kernels.
//!
//! A system call is an async function that runs in a process. Code that costs processor time
//! accounts for it (`spend_processor_time`), and code that waits gives the processor to another process (`sleep`).
//! Interrupt handlers are separate tasks.

pub(crate) mod allocate;
mod attributes;
pub(crate) mod bio;
pub(crate) mod block_map;
pub(crate) mod buffers;
pub(crate) mod computer;
pub mod costs;
pub mod driver;
pub mod ffs;
mod file_io;
pub mod files;
pub(crate) mod inode_io;
pub(crate) mod list;
mod meeting;
pub mod minix;
pub mod names;
mod outside;
pub mod pipe;
pub mod process;
pub(crate) mod raw;
pub(crate) mod read_write;
mod rename;
pub(crate) mod ring;
pub mod serial;
mod tracing;
pub(crate) mod update;
pub mod v7;
mod vnode;

use crate::medium::Page;
use crate::parts::Drivers;
use crate::software::RunningKernel;
use buffers::{BlockKey, Buffers};
use computer::Computer;
use ffs::{FastFileSystem, InodeNumber};
use process::Process;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use v7::{V7FileSystems, V7View};

/// UNIX kernel on its computer.
pub struct UnixKernel {
    pub(crate) computer: Computer,
    pub(crate) drivers: Drivers,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) file_systems: FileSystems,
    /// Receiver of each request's completion, indexed by request.
    pub(crate) request_owners: RefCell<Vec<driver::RequestOwner>>,
    /// Raw I/O buffer headers of each volume, and of processes with several transfers in flight.
    pub(crate) raw_headers: RefCell<Vec<raw::RawHeader>>,
}

impl Deref for UnixKernel {
    type Target = Computer;

    #[inline]
    fn deref(&self) -> &Computer {
        &self.computer
    }
}

/// File systems of the mounted volumes; all are of one kind.
pub(crate) enum FileSystems {
    /// Fast file systems of 4.2BSD. Empty if programs use the raw drives.
    FastFileSystem(RefCell<Vec<Mount>>),
    SeventhEdition(V7FileSystems),
}

pub(crate) enum FileSystemView<'a> {
    FastFileSystem(FfsView<'a>),
    SeventhEdition(V7View<'a>),
}

/// Fast file systems of 4.2BSD, with the kernel that uses them.
pub(crate) struct FfsView<'a> {
    unix: &'a UnixKernel,
    mounts: &'a RefCell<Vec<Mount>>,
}

impl Deref for FfsView<'_> {
    type Target = UnixKernel;

    #[inline]
    fn deref(&self) -> &UnixKernel {
        self.unix
    }
}

/// Mounted fast file system. Its index is the number of its volume.
pub(crate) struct Mount {
    pub(crate) file_system: FastFileSystem,
    pub(crate) inodes: BTreeMap<InodeNumber, InodeInCore>,
    /// Whether the superblock has changed since it was last written.
    pub(crate) superblock_modified: bool,
}

#[derive(Default)]
pub(crate) struct InodeInCore {
    /// Number of users of the inode: open files and system calls in progress.
    pub(crate) user_count: u32,
    /// Last block that was read, for the detection of sequential reads.
    pub(crate) last_read_block: u32,
    /// Whether the inode has changed since its block was last written.
    pub(crate) is_modified: bool,
    is_locked: bool,
    waiters: Vec<Rc<Process>>,
}

impl InodeInCore {
    fn has_no_state(&self) -> bool {
        let Self {
            user_count: users,
            last_read_block: last_read,
            is_modified: modified,
            is_locked: locked,
            waiters,
        } = self;
        (*users, *last_read) == (0, 0) && !modified && !locked && waiters.is_empty()
    }
}

/// Reference to an inode of a mounted file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnode {
    pub(crate) volume: u32,
    /// Number of the inode on its volume.
    pub(crate) inode: InodeNumber,
}

impl FfsView<'_> {
    /// Passes a fast file system to a function that reads it, and returns the function's result.
    pub(crate) fn with_file_system<T>(
        &self,
        volume: u32,
        look: impl FnOnce(&FastFileSystem) -> T,
    ) -> T {
        look(&self.mounts.borrow()[volume as usize].file_system)
    }

    /// Passes a fast file system to a function that changes it, and marks it as modified.
    pub(crate) fn with_file_system_mut<T>(
        &self,
        volume: u32,
        change: impl FnOnce(&mut FastFileSystem) -> T,
    ) -> T {
        let mount = &mut self.mounts.borrow_mut()[volume as usize];
        mount.superblock_modified = true;
        change(&mut mount.file_system)
    }
}

impl UnixKernel {
    #[inline]
    pub(crate) fn file_system_view(&self) -> FileSystemView<'_> {
        match &self.file_systems {
            FileSystems::FastFileSystem(mounts) => {
                FileSystemView::FastFileSystem(FfsView { unix: self, mounts })
            }
            FileSystems::SeventhEdition(v7) => {
                FileSystemView::SeventhEdition(V7View { unix: self, v7 })
            }
        }
    }

    /// Passes an in-core inode to a function, and returns the function's result.
    pub(crate) fn with_core_inode<T>(
        &self,
        node: Vnode,
        use_it: impl FnOnce(&mut InodeInCore) -> T,
    ) -> T {
        match &self.file_systems {
            FileSystems::FastFileSystem(mounts) => {
                let mount = &mut mounts.borrow_mut()[node.volume as usize];
                use_it(mount.inodes.entry(node.inode).or_default())
            }
            FileSystems::SeventhEdition(v7) => v7.with_in_core_inode(node, use_it),
        }
    }

    /// Locks an inode against other processes until [`UnixKernel::unlock_inode`]. Waits while another process
    /// holds the lock.
    pub(crate) async fn lock_inode(&self, process: &Rc<Process>, node: Vnode) {
        loop {
            let locked = self.with_core_inode(node, |core| {
                if core.is_locked {
                    core.waiters.push(Rc::clone(process));
                    return true;
                }
                core.is_locked = true;
                false
            });
            if !locked {
                return;
            }
            let from = self.simulation.now();
            self.wait_for_wake_up(process, "an inode that another process uses")
                .await;
            process.book_wait(diskperf_timeline::Stage::BufferWait, from);
        }
    }

    /// Unlocks an inode, and wakes the processes that wait for it.
    pub(crate) fn unlock_inode(&self, node: Vnode) {
        let waiters = self.with_core_inode(node, |core| {
            core.is_locked = false;
            std::mem::take(&mut core.waiters)
        });
        for process in &waiters {
            self.wake_process(process);
        }
    }

    /// Returns the first sector of a block on its drive.
    pub(crate) fn sector_on_drive(&self, key: BlockKey) -> u64 {
        let partition = self.volumes.partition(key.volume());
        let sector = match self.file_system_view() {
            // Its blocks are sectors.
            FileSystemView::SeventhEdition(_) => key.fragment(),
            FileSystemView::FastFileSystem(ffs) => {
                let fragment = ffs::FragmentAddress(key.fragment());
                ffs.with_file_system(key.volume(), |fs| {
                    fs.superblock().first_sector_of_fragment(fragment)
                })
            }
        };
        partition.first_sector + u64::from(sector)
    }

    pub(crate) fn zero_page(&self, bytes: u32) -> Page {
        self.buffers.borrow_mut().pages.zero_page(bytes)
    }
}

impl RunningKernel for UnixKernel {
    fn start_daemons(self: Rc<Self>) {
        self.drivers.start_drivers(&self);
        let sim = Rc::clone(&self.simulation);
        sim.spawn("update", false, self.run_update_daemon());
    }

    fn check_file_system(&self, volume: u32) -> Result<u32, Vec<String>> {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => Ok(v7.check_volume(volume)?.open_unlinked_count),
            FileSystemView::FastFileSystem(ffs) => {
                match ffs.with_file_system(volume, FastFileSystem::check_consistency) {
                    Ok(summary) => Ok(summary.open_unlinked_count),
                    Err(problems) => Err(problems
                        .iter()
                        .map(ffs::ConsistencyProblem::to_string)
                        .collect()),
                }
            }
        }
    }

    fn ring_emulation_note(&self) -> &'static str {
        match self.file_system_view() {
            FileSystemView::FastFileSystem(_) => {
                "extension: this kernel had no asynchronous I/O; daemons execute the requests, those of one file in turn because its inode is locked"
            }
            FileSystemView::SeventhEdition(_) => {
                "extension: the seventh edition had no asynchronous I/O; daemons execute the requests, those of one file in turn because its inode is locked"
            }
        }
    }
}
