//! Minix: a kernel that only passes messages, with the file server, the disk
//! task, the memory task and the system task as processes of their own.
//!
//! A system call of a program is a message to the file server and its reply.
//! The server takes one call at a time; what it needs of a device it asks a
//! task for, and waits, and so does the program. Nothing overlaps but the
//! hardware with the one that waits for it: every message and every routine
//! on the way is time that passes for the program.
//!
//! - `message`: the rendezvous (send, receive, sendrec);
//! - `errand`: where the time of a call goes while others work on it;
//! - `tasks` and `disk_task`: memory, copying between processes, the drive;
//! - `server`: calls, and below it `descriptors`, `read_write`, `names`,
//!   `inodes`, `blocks` and `cache`;
//! - `layout` and `check`: the file system as it lies on a drive, without time;
//! - `session`: the program's side, which is what the C library does.

mod blocks;
pub(crate) mod cache;
mod check;
mod descriptors;
mod disk_task;
mod errand;
mod inodes;
pub(crate) mod layout;
pub(crate) mod message;
mod names;
mod read_write;
mod rename;
mod ring;
mod server;
pub(crate) mod session;
mod tasks;
#[cfg(test)]
mod tests;

use super::computer::Computer;
use super::process::Process;
use crate::kernel::driver::DriverKernel;
use crate::medium::Medium;
use crate::parts::Drivers;
use crate::software::RunningKernel;
pub(crate) use cache::CACHED_BLOCK_BYTES;
use cache::Cache;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use inodes::InodeTable;
use message::{Endpoint, Exchange, Party};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;

pub use check::MinixCheck;
pub(crate) use layout::Volume;
pub use layout::{BLOCK_BYTES, MinixParameters, MkfsError, room_bytes};

/// What Minix's routines cost on the machine that it runs on, and its sizes.
#[derive(Clone, Debug)]
pub struct MinixConfig {
    /// Sending a message, with the switch to the one who gets it.
    pub message: Time,
    /// A system call: the library, and the server's way to the call and back.
    pub call: Time,
    /// A task's way from a message to what it asks for, and to the answer.
    pub task: Time,
    /// Looking for a block in the cache, and giving it back.
    pub cache_lookup: Time,
    /// Making a buffer of the cache one's own.
    pub buffer_replace: Time,
    /// Blocks in the cache.
    pub cache_blocks: u32,
    /// Blocks that the server lets the disk task read at once for one call.
    pub blocks_per_request: u32,
    /// Blocks that the cache reads beyond the one that is wanted.
    pub read_ahead_blocks: u32,
}

/// Minix, on its computer.
pub struct Minix {
    computer: Computer,
    pub(crate) config: MinixConfig,
    /// The drivers that the disk task uses.
    drivers: Drivers,
    exchange: Exchange,
    server: RefCell<Server>,
    /// The program that the last call came from: the clock charges it while
    /// a server or a task runs.
    billed: RefCell<Option<Rc<Process>>>,
    parties: Vec<Party>,
}

impl Deref for Minix {
    type Target = Computer;

    #[inline]
    fn deref(&self) -> &Computer {
        &self.computer
    }
}

impl DriverKernel for Minix {
    /// An interrupt is a message too.
    fn interrupt_cost(&self) -> Time {
        self.config.message
    }

    /// The disk task takes the request when its message arrives.
    fn completed(&self, _id: RequestId) {
        self.interrupt_task(Endpoint::Disk);
    }
}

/// What the file server knows.
struct Server {
    cache: Cache,
    /// Of each drive that has a file system.
    volumes: Vec<Volume>,
    inodes: InodeTable,
    /// Descriptors, by process.
    descriptors: BTreeMap<usize, descriptors::Descriptors>,
}

/// The processes that Minix consists of, the most urgent first.
const OWN: [Endpoint; 4] = [
    Endpoint::Disk,
    Endpoint::Memory,
    Endpoint::System,
    Endpoint::FileServer,
];

impl Minix {
    /// Makes file systems on the computer's first media, if there are to be any, and
    /// the processes.
    pub(crate) fn new(
        computer: Computer,
        config: MinixConfig,
        drivers: Drivers,
        volumes: Vec<Volume>,
    ) -> Self {
        let mount = |medium: &mut Medium, volume: Volume| {
            let at = |block: u32| u64::from(block) * BLOCK_BYTES as u64;
            volume.make(&mut |block, bytes| medium.write_bytes(at(block), bytes));
            let mut read = |block: u32| {
                let mut bytes = vec![0; BLOCK_BYTES];
                medium.read_bytes(at(block), &mut bytes);
                bytes
            };
            Volume::read(&mut read).expect("a file system was made")
        };
        let volumes = computer.volumes.make(volumes, mount);
        let exchange = Exchange::default();
        let party = |(number, endpoint): (usize, &Endpoint)| {
            let process = Process::ranked(usize::MAX - number, endpoint.rank());
            exchange.register(*endpoint, &process);
            Party {
                endpoint: *endpoint,
                process,
            }
        };
        let parties = OWN.iter().enumerate().map(party).collect();
        Self {
            server: RefCell::new(Server {
                cache: Cache::new(config.cache_blocks),
                volumes,
                inodes: InodeTable::default(),
                descriptors: BTreeMap::new(),
            }),
            computer,
            config,
            drivers,
            exchange,
            billed: RefCell::default(),
            parties,
        }
    }

    fn party(&self, endpoint: Endpoint) -> Party {
        let place = OWN.iter().position(|own| *own == endpoint);
        self.parties[place.expect("one of Minix's own processes")].clone()
    }
}

impl RunningKernel for Minix {
    fn start(self: Rc<Self>) {
        self.drivers.start(&self);
        let spawn = |name: &str, task: Pin<Box<dyn Future<Output = ()>>>| {
            self.sim.spawn(name, false, task);
        };
        spawn("the disk task", Box::pin(Rc::clone(&self).disk_task()));
        spawn("the memory task", Box::pin(Rc::clone(&self).memory_task()));
        spawn("the system task", Box::pin(Rc::clone(&self).system_task()));
        spawn("the file server", Box::pin(Rc::clone(&self).file_server()));
        spawn("update", Box::pin(Rc::clone(&self).update()));
    }

    fn billed(&self, found: &Rc<Process>) -> Option<(Rc<Process>, bool)> {
        let own = self
            .parties
            .iter()
            .any(|party| party.process.pid == found.pid);
        if own {
            return self.billed.borrow().clone().map(|process| (process, true));
        }
        Some((Rc::clone(found), false))
    }

    fn check(&self, volume: u32) -> Result<u32, Vec<String>> {
        Ok(self.check_volume(volume)?.open_unlinked)
    }

    fn ring_note(&self) -> &'static str {
        "an extension: Minix had no call for several requests under way; daemons carry them out, and its file server takes one at a time, whatever the depth"
    }
}
