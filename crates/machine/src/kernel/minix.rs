//! Minix: a kernel that only passes messages. The file server, the disk task, the memory task and
//! the system task are processes of their own.
//!
//! A system call of a program is a message to the file server and a reply. The server handles one
//! call at a time. It sends a message to a task when it needs a device and waits for the answer,
//! and so does the program. Only the hardware works in parallel with the process that waits for it:
//! all messages and routines of a call add to the program's time.
//!
//! - `message`: the rendezvous (send, receive, sendrec);
//! - `errand`: the time account of a call that several processes work on;
//! - `tasks` and `disk_task`: memory, copies between processes, the drive;
//! - `server`: calls, and below it `descriptors`, `read_write`, `names`,
//!   `inodes`, `blocks` and `cache`;
//! - `layout` and `check`: the on-disk file system, without time;
//! - `session`: the system call interface of a program, as in the C library.

mod blocks;
pub(crate) mod cache;
mod call_account;
mod check;
mod descriptors;
mod disk_task;
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
use crate::medium::PartitionContents;
use crate::parts::Drivers;
use crate::software::RunningKernel;
use cache::BlockCache;
pub(crate) use cache::CACHED_BLOCK_BYTES;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use inodes::InodesInUse;
use message::{Endpoint, Exchange, MessageParty};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;

pub use check::MinixCheckSummary;
pub(crate) use layout::MinixVolume;
pub use layout::{BLOCK_BYTES, MinixFileSystemParameters, MinixMkfsError, file_capacity_bytes};

/// Processor times of Minix routines on the modelled machine, and the sizes of the Minix cache and
/// its requests.
#[derive(Clone, Debug)]
pub struct MinixConfig {
    /// Processor time to send a message, including the switch to the receiver.
    pub message_time: Time,
    /// Processor time of a system call outside of its work: the C library, and the server's
    /// dispatch and reply.
    pub call_time: Time,
    /// Processor time of a task to decode a message and to answer it, outside of the requested
    /// work.
    pub disk_task_time: Time,
    /// Processor time to find a block in the cache and to release it.
    pub cache_lookup_time: Time,
    /// Processor time to reuse a cache buffer for another block.
    pub buffer_replace_time: Time,
    /// Cache size in blocks.
    pub cache_blocks: u32,
    /// Maximum number of blocks that the file server reads with one request to the disk task for
    /// one call.
    pub blocks_per_request: u32,
    /// Number of blocks that the cache reads ahead of a wanted block.
    pub read_ahead_blocks: u32,
}

/// Running Minix system on its computer.
pub struct MinixKernel {
    computer: Computer,
    pub(crate) config: MinixConfig,
    drivers: Drivers,
    message_exchange: Exchange,
    file_server_state: RefCell<FileServer>,
    /// Program that made the last system call. The clock charges it while the server or a task
    /// runs.
    billed_process: RefCell<Option<Rc<Process>>>,
    message_parties: Vec<MessageParty>,
}

impl Deref for MinixKernel {
    type Target = Computer;

    #[inline]
    fn deref(&self) -> &Computer {
        &self.computer
    }
}

impl DriverKernel for MinixKernel {
    /// Returns the cost of a message, because Minix turns an interrupt into a message.
    fn interrupt_cost(&self) -> Time {
        self.config.message_time
    }

    /// Sends an interrupt message to the disk task, which takes the completed request when the
    /// message arrives.
    fn request_completed(&self, _id: RequestId) {
        self.interrupt_task(Endpoint::DiskTask);
    }
}

struct FileServer {
    cache: BlockCache,
    /// File system of each drive that has one.
    volumes: Vec<MinixVolume>,
    inodes: InodesInUse,
    descriptors: BTreeMap<usize, descriptors::DescriptorTable>,
}

/// Server and tasks that Minix consists of, most urgent first.
const KERNEL_ENDPOINTS: [Endpoint; 4] = [
    Endpoint::DiskTask,
    Endpoint::MemoryTask,
    Endpoint::SystemTask,
    Endpoint::FileServer,
];

impl MinixKernel {
    /// Creates the file systems on the computer's first drives, if `volumes` has any, and the
    /// server and task processes.
    pub(crate) fn new(
        computer: Computer,
        config: MinixConfig,
        drivers: Drivers,
        volumes: Vec<MinixVolume>,
    ) -> Self {
        let mount = |medium: &mut PartitionContents, volume: MinixVolume| {
            let at = |block: u32| u64::from(block) * BLOCK_BYTES as u64;
            volume.write_empty(&mut |block, bytes| medium.write_bytes(at(block), bytes));
            let mut read = |block: u32| {
                let mut bytes = vec![0; BLOCK_BYTES];
                medium.read_bytes(at(block), &mut bytes);
                bytes
            };
            MinixVolume::read_from_drive(&mut read).expect("a file system was made")
        };
        let volumes = computer.volumes.make_file_systems(volumes, mount);
        let exchange = Exchange::default();
        let party = |(number, endpoint): (usize, &Endpoint)| {
            let process = Process::with_rank(usize::MAX - number, endpoint.process_rank());
            exchange.register(*endpoint, &process);
            MessageParty {
                endpoint: *endpoint,
                process,
            }
        };
        let parties = KERNEL_ENDPOINTS.iter().enumerate().map(party).collect();
        Self {
            file_server_state: RefCell::new(FileServer {
                cache: BlockCache::new(config.cache_blocks),
                volumes,
                inodes: InodesInUse::default(),
                descriptors: BTreeMap::new(),
            }),
            computer,
            config,
            drivers,
            message_exchange: exchange,
            billed_process: RefCell::default(),
            message_parties: parties,
        }
    }

    fn find_party(&self, endpoint: Endpoint) -> MessageParty {
        let place = KERNEL_ENDPOINTS.iter().position(|own| *own == endpoint);
        self.message_parties[place.expect("one of Minix's own processes")].clone()
    }
}

impl RunningKernel for MinixKernel {
    fn start_daemons(self: Rc<Self>) {
        self.drivers.start_drivers(&self);
        let spawn = |name: &str, task: Pin<Box<dyn Future<Output = ()>>>| {
            self.simulation.spawn(name, false, task);
        };
        spawn("the disk task", Box::pin(Rc::clone(&self).disk_task()));
        spawn(
            "the memory task",
            Box::pin(Rc::clone(&self).run_memory_task()),
        );
        spawn(
            "the system task",
            Box::pin(Rc::clone(&self).run_system_task()),
        );
        spawn(
            "the file server",
            Box::pin(Rc::clone(&self).run_file_server()),
        );
        spawn("update", Box::pin(Rc::clone(&self).run_update_daemon()));
    }

    fn process_to_charge(&self, found: &Rc<Process>) -> Option<(Rc<Process>, bool)> {
        let own = self
            .message_parties
            .iter()
            .any(|party| party.process.pid == found.pid);
        if own {
            return self
                .billed_process
                .borrow()
                .clone()
                .map(|process| (process, true));
        }
        Some((Rc::clone(found), false))
    }

    fn check_file_system(&self, volume: u32) -> Result<u32, Vec<String>> {
        Ok(self.check_volume(volume)?.open_unlinked_count)
    }

    fn ring_emulation_note(&self) -> &'static str {
        "extension: Minix had no asynchronous I/O; daemons execute the requests, and the file server serves one at a time at any depth"
    }
}
