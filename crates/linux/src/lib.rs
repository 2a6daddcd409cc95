//! The software of a Linux storage stack without time: state machines that say which bios and
//! requests the page cache, a file system and the block layer make of file operations.
//!
//! A [`stack::Stack`] is a mounted file system with names, descriptors and a clock that its user
//! moves. Each operation returns [`effect::Effects`]: the steps that the calling task and the
//! kernel's own tasks carry out, in order. [`block::DeviceQueue`] turns them into the requests that
//! the driver issues, and [`request_list`] into text and into the core form in which lists of
//! different kernels and devices are compared.
//!
//! ```
//! use diskperf_linux::block::DeviceLimits;
//! use diskperf_linux::ext4::Ext4Options;
//! use diskperf_linux::request_list::describe_bios;
//! use diskperf_linux::sequence::read_operation;
//! use diskperf_linux::stack::{FileSystemOptions, Stack};
//! use diskperf_linux::version::{Host, KernelVersion};
//! use serde_json::json;
//!
//! let host = Host {
//!     version: KernelVersion::V6_18,
//!     ticks_per_second: 250,
//!     processors: 2,
//! };
//! let device = DeviceLimits::loop_device(512 << 20);
//! let options = FileSystemOptions::Ext4(Ext4Options::default());
//! let mut stack = Stack::new(host, device, options)?;
//! let mut lists = Vec::new();
//! for operation in [
//!     json!(["open", "log", "wal", ["creat"]]),
//!     json!(["pwrite", "log", 0, 4096]),
//!     json!(["fsync", "log"]),
//!     json!(["pwrite", "log", 4096, 4096]),
//!     json!(["fdatasync", "log"]),
//! ] {
//!     stack.sleep(20_000_000)?;
//!     let operation = read_operation(&operation).expect("it is an operation");
//!     let effects = stack.run(&operation)?;
//!     lists.push(describe_bios(effects.bios(), |file| stack.label(file)).join(", "));
//! }
//! // Data, the journal's superblock, descriptor and copies, and the commit block behind a flush.
//! assert_eq!(lists[2], "W wal 0+4 s, M jsb 4 sm, J 28 sm, J 4 pfsm");
//! assert_eq!(lists[4], "W wal 4+4 s, J 16 sm, J 4 pfsm");
//! # Ok::<(), diskperf_linux::stack::StackError>(())
//! ```
//!
//! # Modelled
//!
//! - Kernel 6.1, 6.12 and 6.18, by switches in [`version`]. The lists of 6.1 and 6.18 were compared
//!   with those of real kernels; 6.12 was read in its source alone.
//! - The page cache of each file with its folios, read-ahead with fadvise, O_DIRECT, O_SYNC, O_DSYNC,
//!   sync_file_range, fallocate (also punch and zero), truncation, syncfs, FITRIM, unmounting.
//! - ext4 as mke2fs 1.47 makes it on devices of less than 2^32 blocks of 1, 2 or 4 KiB: groups and Orlov's spread of
//!   directories, mballoc with both kinds of preallocation, extents, delayed allocation, unwritten
//!   extents, orphans, directories with an index of one level; the journal in its three modes, with
//!   ordered data, revocations, checkpoints, timers, fast commits, and without barriers.
//! - XFS as mkfs.xfs 6.1 makes it: allocation groups, delayed allocation with preallocation, unwritten
//!   extents, directories up to one node of leaves, the log with its items, checkpoints and covering,
//!   inactivation by a worker, wsync, discard, allocsize and logbsize. The page of [`xfs`] says more.
//! - The block layer under the scheduler `none`: splits, plugs, merges, and the flush machinery.
//!
//! # Not modelled
//!
//! - Time: what a step costs, and what runs meanwhile. Work of the kernel's threads that a call
//!   starts is done when the call returns; where real kernels race, one outcome is chosen.
//! - Limits of dirty pages and throttling, reclaim of memory, mmap, links besides names of files,
//!   extended attributes, quotas, inline data, rmdir.
//! - Reads of ext4's own metadata (bitmaps and directories after the mount).
//! - Trees of extents and indices of directories of more than two levels: refused by name. Such an
//!   error may come in the middle of a call, and what was done before it stays done.
//! - Lack of space at a buffered write: it comes when the blocks are allocated, at writeback. Requests
//!   of very long ranges take a time that grows with their blocks.
//! - Transactions that end because they are as long as the log lets them be.
//! - XFS: real-time devices, stripes, shared blocks, attributes, external logs, and what [`xfs`] names.
//! - The seed of a directory's hash: names are spread by another hash, so which block of a directory
//!   with an index changes may differ from a given real one.
//! - `bigalloc`, external journals, and options that [`ext4::Ext4Options::parse`] refuses by name.
//! - A fast commit is one block: that of more than some twenty files would be longer.

pub mod block;
pub mod effect;
pub mod ext4;
pub mod file_system;
pub mod operation;
pub mod page_cache;
pub mod read_ahead;
pub mod request_list;
pub mod sequence;
pub mod stack;
mod validation;
pub mod version;
pub mod xfs;
