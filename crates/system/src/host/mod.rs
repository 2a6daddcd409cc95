//! Host side of the system: real storage on Linux. Only this folder makes system calls.

mod answer;
mod attributes;
pub mod block_events;
mod bpf;
pub mod child_group;
mod clock;
pub mod dead_mounts;
pub mod device;
pub mod environment;
pub mod fresh;
pub mod group_limits;
pub mod hook;
pub mod input;
pub mod interference;
pub mod io_flusher;
pub mod kernel_events;
pub mod limits;
mod listing;
pub mod log_file;
pub mod mounter;
pub mod mounts;
mod names;
mod null;
pub mod output_file;
pub mod page_cache;
mod processes;
pub mod queue_settings;
mod rendezvous;
mod ring;
pub mod safety;
mod usage;
pub mod user_mount;
mod worker;
pub mod workspace;

/// Returns the number of the calling thread.
pub fn current_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Returns the number of the user with whose rights this process runs.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Reports whether this process has the privileges of root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub use answer::write_answer;
pub use clock::CallClock;
pub use names::{DrivePort, HostPorts, ReadAhead};
pub use rendezvous::HostRendezvous;
pub use ring::{EngineNote, RingRequestLog};
pub use usage::process_cpu_time;
pub use worker::{HostWorker, WorkerControl};
