//! The modelled kernel: 4.2BSD, and the seventh edition that it descends from,
//! written as a kernel is.
//!
//! A system call is an async function that runs in a process; what costs
//! processor time says so (`spend`), what waits gives the processor to
//! somebody else (`sleep`). Interrupt handlers are tasks of their own.

pub(crate) mod allocate;
mod attributes;
pub(crate) mod bio;
pub(crate) mod block_map;
pub(crate) mod buffers;
pub mod costs;
pub mod driver;
pub mod errno;
pub mod ffs;
pub mod files;
pub(crate) mod inode_io;
pub(crate) mod medium;
pub mod minix;
pub mod names;
mod outside;
pub mod pipe;
pub mod process;
pub(crate) mod raw;
pub(crate) mod read_write;
mod rename;
pub mod rendezvous;
pub mod serial;
pub mod statistics;
mod tracing;
pub(crate) mod update;
pub mod v7;
mod vnode;

use crate::event::Event;
use crate::hardware::Hardware;
use crate::parts::AnyDriver;
use crate::standstill::Standstill;
use buffers::{BlockKey, Buffers, Page};
use costs::Costs;
use diskperf_sim::{Processor, Sim, Time};
use ffs::{FileSystem, InodeNumber};
use medium::Medium;
use minix::Minix;
use process::{Process, Scheduler};
use statistics::Statistics;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use v7::V7;

/// The kernel, with the computer that it runs on.
pub struct Kernel {
    pub(crate) sim: Rc<Sim<Event>>,
    pub(crate) processor: Processor,
    pub(crate) hardware: RefCell<Hardware>,
    pub(crate) costs: Costs,
    /// Of the processor, in that of a VAX 11/780.
    pub(crate) speed: f64,
    pub(crate) drivers: Vec<AnyDriver>,
    /// Of each drive, which of the drivers is its.
    pub(crate) driver_of: Vec<usize>,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) media: RefCell<Vec<Medium>>,
    pub(crate) mounts: RefCell<Vec<Mount>>,
    /// Of each volume, mounted or not: a partition that is used.
    pub(crate) partitions: Vec<raw::Partition>,
    pub(crate) scheduler: RefCell<Scheduler>,
    pub(crate) processes: RefCell<Vec<Rc<Process>>>,
    pub(crate) ticks: Cell<u64>,
    pub(crate) serial: serial::Serial,
    /// What the driver's routines took of the processor.
    pub(crate) driver_time: Cell<Time>,
    pub(crate) statistics: RefCell<Statistics>,
    pub(crate) pages: RefCell<medium::Pages>,
    /// What is Minix's, where the kernel is that and not 4.2BSD.
    pub(crate) minix: Option<Minix>,
    /// The file systems of the seventh edition, where the kernel is that.
    pub(crate) v7: Option<V7>,
    /// What is recorded, if anything.
    pub(crate) tracing: Option<RefCell<tracing::Tracing>>,
    /// Why the machine has halted, if it has.
    pub(crate) halted: RefCell<Option<Standstill>>,
    /// Writes that are under way, by volume, and who waits for them to end.
    pub(crate) writing: RefCell<Vec<(usize, Vec<Rc<Process>>)>>,
    /// Who is told of a request's completion, by its place.
    pub(crate) owners: RefCell<Vec<driver::Owner>>,
    /// Of each volume.
    pub(crate) raw_headers: RefCell<Vec<raw::Header>>,
}

/// A mounted file system. Its number is its volume's.
pub(crate) struct Mount {
    pub(crate) fs: FileSystem,
    pub(crate) inodes: BTreeMap<InodeNumber, InodeInCore>,
    /// The superblock was changed since it was written.
    pub(crate) modified: bool,
}

/// What the kernel knows of an inode while somebody uses it.
#[derive(Default)]
pub(crate) struct InodeInCore {
    /// Open files, and calls under way.
    pub(crate) users: u32,
    /// The last block read, for read-ahead.
    pub(crate) last_read: u32,
    /// Changed since its block was last written.
    pub(crate) modified: bool,
    locked: bool,
    waiters: Vec<Rc<Process>>,
}

/// An inode of one of the mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnode {
    /// The volume.
    pub(crate) volume: u32,
    /// Its number there.
    pub(crate) inode: InodeNumber,
}

impl Kernel {
    /// Looks at a file system.
    pub(crate) fn fs<T>(&self, volume: u32, look: impl FnOnce(&FileSystem) -> T) -> T {
        look(&self.mounts.borrow()[volume as usize].fs)
    }

    /// Changes a file system.
    pub(crate) fn change<T>(&self, volume: u32, change: impl FnOnce(&mut FileSystem) -> T) -> T {
        let mount = &mut self.mounts.borrow_mut()[volume as usize];
        mount.modified = true;
        change(&mut mount.fs)
    }

    /// The inode's place in core.
    pub(crate) fn in_core<T>(&self, node: Vnode, use_it: impl FnOnce(&mut InodeInCore) -> T) -> T {
        if let Some(v7) = &self.v7 {
            return v7.in_core(node, use_it);
        }
        let mount = &mut self.mounts.borrow_mut()[node.volume as usize];
        use_it(mount.inodes.entry(node.inode).or_default())
    }

    /// Keeps others off an inode until [`Kernel::unlock`].
    pub(crate) async fn lock(&self, process: &Rc<Process>, node: Vnode) {
        loop {
            let locked = self.in_core(node, |core| {
                if core.locked {
                    core.waiters.push(Rc::clone(process));
                    return true;
                }
                core.locked = true;
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

    /// Lets others at an inode again.
    pub(crate) fn unlock(&self, node: Vnode) {
        let waiters = self.in_core(node, |core| {
            core.locked = false;
            std::mem::take(&mut core.waiters)
        });
        for process in &waiters {
            self.wake(process);
        }
    }

    /// Where a block is on its drive.
    pub(crate) fn sector_on_drive(&self, key: BlockKey) -> u64 {
        let partition = self.partition(key.volume);
        let sector = match &self.v7 {
            // Its blocks are sectors.
            Some(_) => key.fragment,
            None => {
                let fragment = ffs::Fragment(key.fragment);
                self.fs(key.volume, |fs| fs.superblock().sector(fragment))
            }
        };
        partition.first_sector + u64::from(sector)
    }

    /// The time that this machine takes for what takes the machine of speed 1
    /// this long.
    pub(crate) fn at_speed(&self, span: Time) -> Time {
        Time((span.0 as f64 / self.speed + 0.5) as u64)
    }

    /// A page of zeroes.
    pub(crate) fn zeroes(&self, bytes: u32) -> Page {
        self.pages.borrow_mut().zeroes(bytes)
    }
}
