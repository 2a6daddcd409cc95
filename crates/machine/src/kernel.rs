//! Modelled UNIX kernel: 4.2BSD, and the seventh edition that it descends from, structured like the
//! real kernels.
//!
//! A system call is an async function that runs in a process. Code that costs processor time
//! accounts for it (`spend`), and code that waits gives the processor to another process (`sleep`).
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
use ffs::{FileSystem, InodeNumber};
use process::Process;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use v7::{V7, V7View};

/// UNIX kernel on its computer.
pub struct Unix {
    pub(crate) computer: Computer,
    pub(crate) drivers: Drivers,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) file_systems: FileSystems,
    /// Receiver of each request's completion, indexed by request.
    pub(crate) owners: RefCell<Vec<driver::RequestOwner>>,
    /// Raw I/O buffer headers of each volume, and of processes with several transfers in flight.
    pub(crate) raw_headers: RefCell<Vec<raw::RawHeader>>,
}

impl Deref for Unix {
    type Target = Computer;

    #[inline]
    fn deref(&self) -> &Computer {
        &self.computer
    }
}

/// File systems of the mounted volumes; all are of one kind.
pub(crate) enum FileSystems {
    /// Fast file systems of 4.2BSD. Empty if programs use the raw drives.
    Ffs(RefCell<Vec<Mount>>),
    /// File systems of the seventh edition.
    V7(V7),
}

/// Kind of the file systems, with the kernel that uses them.
pub(crate) enum FileSystemView<'a> {
    Ffs(FfsView<'a>),
    V7(V7View<'a>),
}

/// Fast file systems of 4.2BSD, with the kernel that uses them.
pub(crate) struct FfsView<'a> {
    unix: &'a Unix,
    mounts: &'a RefCell<Vec<Mount>>,
}

impl Deref for FfsView<'_> {
    type Target = Unix;

    #[inline]
    fn deref(&self) -> &Unix {
        self.unix
    }
}

/// Mounted fast file system. Its index is the number of its volume.
pub(crate) struct Mount {
    pub(crate) fs: FileSystem,
    pub(crate) inodes: BTreeMap<InodeNumber, InodeInCore>,
    /// Whether the superblock has changed since it was last written.
    pub(crate) modified: bool,
}

/// In-core inode: the kernel's state of an inode in use.
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
    fn is_blank(&self) -> bool {
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
    /// Number of the volume.
    pub(crate) volume: u32,
    /// Number of the inode on its volume.
    pub(crate) inode: InodeNumber,
}

impl FfsView<'_> {
    /// Passes a fast file system to a function that reads it, and returns the function's result.
    pub(crate) fn with_fs<T>(&self, volume: u32, look: impl FnOnce(&FileSystem) -> T) -> T {
        look(&self.mounts.borrow()[volume as usize].fs)
    }

    /// Passes a fast file system to a function that changes it, and marks it as modified.
    pub(crate) fn with_fs_mut<T>(
        &self,
        volume: u32,
        change: impl FnOnce(&mut FileSystem) -> T,
    ) -> T {
        let mount = &mut self.mounts.borrow_mut()[volume as usize];
        mount.modified = true;
        change(&mut mount.fs)
    }
}

impl Unix {
    /// Returns the file systems together with the kernel.
    #[inline]
    pub(crate) fn file_system_view(&self) -> FileSystemView<'_> {
        match &self.file_systems {
            FileSystems::Ffs(mounts) => FileSystemView::Ffs(FfsView { unix: self, mounts }),
            FileSystems::V7(v7) => FileSystemView::V7(V7View { unix: self, v7 }),
        }
    }

    /// Passes an in-core inode to a function, and returns the function's result.
    pub(crate) fn with_core_inode<T>(
        &self,
        node: Vnode,
        use_it: impl FnOnce(&mut InodeInCore) -> T,
    ) -> T {
        match &self.file_systems {
            FileSystems::Ffs(mounts) => {
                let mount = &mut mounts.borrow_mut()[node.volume as usize];
                use_it(mount.inodes.entry(node.inode).or_default())
            }
            FileSystems::V7(v7) => v7.in_core(node, use_it),
        }
    }

    /// Locks an inode against other processes until [`Unix::unlock`]. Waits while another process
    /// holds the lock.
    pub(crate) async fn lock(&self, process: &Rc<Process>, node: Vnode) {
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
            let from = self.sim.now();
            self.park(process, "an inode that another process uses")
                .await;
            process.book_wait(diskperf_timeline::Stage::BufferWait, from);
        }
    }

    /// Unlocks an inode, and wakes the processes that wait for it.
    pub(crate) fn unlock(&self, node: Vnode) {
        let waiters = self.with_core_inode(node, |core| {
            core.is_locked = false;
            std::mem::take(&mut core.waiters)
        });
        for process in &waiters {
            self.wake(process);
        }
    }

    /// Returns the first sector of a block on its drive.
    pub(crate) fn sector_on_drive(&self, key: BlockKey) -> u64 {
        let partition = self.volumes.partition(key.volume());
        let sector = match self.file_system_view() {
            // Its blocks are sectors.
            FileSystemView::V7(_) => key.fragment(),
            FileSystemView::Ffs(ffs) => {
                let fragment = ffs::Fragment(key.fragment());
                ffs.with_fs(key.volume(), |fs| fs.superblock().sector(fragment))
            }
        };
        partition.first_sector + u64::from(sector)
    }

    /// Returns a shared page of zeroes.
    pub(crate) fn zero_page(&self, bytes: u32) -> Page {
        self.buffers.borrow_mut().pages.zero_page(bytes)
    }
}

impl RunningKernel for Unix {
    fn start(self: Rc<Self>) {
        self.drivers.start(&self);
        let sim = Rc::clone(&self.sim);
        sim.spawn("update", false, self.update());
    }

    fn check(&self, volume: u32) -> Result<u32, Vec<String>> {
        match self.file_system_view() {
            FileSystemView::V7(v7) => Ok(v7.check_volume(volume)?.open_unlinked),
            FileSystemView::Ffs(ffs) => match ffs.with_fs(volume, FileSystem::check) {
                Ok(summary) => Ok(summary.open_unlinked),
                Err(problems) => Err(problems.iter().map(ffs::Problem::to_string).collect()),
            },
        }
    }

    fn ring_note(&self) -> &'static str {
        match self.file_system_view() {
            FileSystemView::Ffs(_) => {
                "extension: this kernel had no asynchronous I/O; daemons execute the requests, those of one file in turn because its inode is locked"
            }
            FileSystemView::V7(_) => {
                "extension: the seventh edition had no asynchronous I/O; daemons execute the requests, those of one file in turn because its inode is locked"
            }
        }
    }
}
