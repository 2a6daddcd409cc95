//! Files, target size, I/O engine, synchronization and data content of a job.

use std::sync::Arc;

use super::FileService;
use crate::elsewhere::ForeignEngine;

/// Size in bytes, or as a share of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Amount as a size in bytes.
    Bytes(u64),
    /// Amount as a share of the target, in percent.
    Percent(u32),
}

impl Amount {
    /// Returns the size in bytes if it does not depend on the target.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Percent(_) => None,
        }
    }

    /// Returns the size in bytes for a target of the given size.
    pub fn of(self, target_bytes: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => {
                let bytes = u128::from(target_bytes) * u128::from(percent) / 100;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Method to allocate blocks for a new file (`fallocate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// No allocation of blocks for a new file (`none`).
    None,
    /// Native allocation of the file system, if it supports it (`native`).
    #[default]
    Native,
    /// Allocation by posix_fallocate (`posix`).
    Posix,
    /// Allocation that does not change the file size (`keep`).
    Keep,
    /// File size set without allocated blocks (`truncate`).
    Truncate,
}

/// Lock that excludes concurrent I/O of jobs on the same file (`lockfile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileLock {
    /// No lock between jobs on the same file (`none`).
    #[default]
    None,
    /// Exclusive lock: one I/O at a time.
    Exclusive,
    /// Read-write lock: one write or several reads at a time.
    ReadWrite,
}

/// Files of a job: names, number, creation and removal.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFiles {
    /// File names (`filename`), shared by all clones; empty if the option is not given.
    pub names: Arc<[String]>,
    /// Directories (`directory`), assigned to clones in turn; empty if the option is not given.
    pub directories: Arc<[String]>,
    /// Template for generated file names (`filename_format`).
    pub name_format: String,
    /// Number of files of the job (`nrfiles`).
    pub count: u32,
    /// Maximum number of files open at the same time (`openfiles`); `None` means all files.
    pub open_at_once: Option<u32>,
    /// Selection of the file for the next I/O (`file_service_type`).
    pub service: FileService,
    /// Size of each file in bytes (`filesize`). Each file draws its size from this range; equal
    /// ends mean a fixed size.
    pub size_bytes: Option<(u64, u64)>,
    /// Flag `file_append`: the job's region starts at the end of the file.
    pub appends: bool,
    /// Flag `overwrite`: the job lays files out before it writes to them.
    pub overwrite: bool,
    /// Method to allocate blocks for a new file (`fallocate`).
    pub allocation: Allocation,
    /// Flag `create_on_open`: the job creates files when it opens them.
    pub create_on_open: bool,
    /// Flag `create_fsync`: an fsync follows the layout of each file.
    pub create_fsync: bool,
    /// Flag `create_only`: the job creates its files and does no other I/O.
    pub only_created: bool,
    /// Flag `allow_file_create`: the job may create missing files.
    pub may_create: bool,
    /// Flag `pre_read`: the job reads its files before it starts.
    pub pre_read: bool,
    /// Flag `invalidate`: the page cache of the files is dropped before each pass. False with
    /// `pre_read`.
    pub invalidate: bool,
    /// Flag `unlink`: the job removes its files at its end.
    pub unlink: bool,
    /// Flag `unlink_each_loop`: the job removes its files after each loop.
    pub unlink_each_loop: bool,
    /// Flag `allow_mounted_write`: the job may write to a device with a mounted file system.
    pub allow_mounted_write: bool,
    /// Lock against concurrent I/O on the same file (`lockfile`).
    pub lock: FileLock,
    /// Flag `fill_device`: the job ends without an error when the device is full.
    pub fills: bool,
}

impl Default for JobFiles {
    fn default() -> JobFiles {
        JobFiles {
            names: Arc::from([]),
            directories: Arc::from([]),
            name_format: "$jobname.$jobnum.$filenum".to_owned(),
            count: 1,
            open_at_once: None,
            service: FileService::default(),
            size_bytes: None,
            appends: false,
            overwrite: false,
            allocation: Allocation::default(),
            create_on_open: false,
            create_fsync: true,
            only_created: false,
            may_create: true,
            pre_read: false,
            invalidate: true,
            unlink: false,
            unlink_each_loop: false,
            allow_mounted_write: false,
            lock: FileLock::default(),
            fills: false,
        }
    }
}

/// Size and offset of the region of the files that a job uses, and its number of passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetArea {
    /// Total size of the files of one clone (`size`); `None` means their full size.
    pub size: Option<Amount>,
    /// Amount of I/O to do (`io_size`); `None` means `size`.
    pub io_size: Option<Amount>,
    /// Maximum number of I/Os in each pass (`number_ios`).
    pub most_ios: Option<u64>,
    /// Number of passes over the region (`loops`).
    pub loops: u32,
    /// Start of the region in each file (`offset`).
    pub offset: Amount,
    /// Alignment of an offset given in percent, in bytes (`offset_align`).
    pub offset_align_bytes: u64,
    /// Additional offset of each further clone (`offset_increment`).
    pub offset_increment: Amount,
    /// Sizes and offsets given as numbers of zones, such as `size=64z`.
    pub zoned_amounts: ZonedAmounts,
}

/// Sizes and offsets in zones; 0 if not given. As in fio, they override sizes in bytes, whatever
/// their order in the file, and have no effect without `zonesize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZonedAmounts {
    /// Total size (`size`), in zones.
    pub size: u64,
    /// Amount of I/O (`io_size`), in zones.
    pub io_size: u64,
    /// Start of the region (`offset`), in zones.
    pub offset: u64,
    /// Additional offset of each further clone (`offset_increment`), in zones.
    pub offset_increment: u64,
    /// Gap between two zones (`zoneskip`), in zones.
    pub skip: u64,
}

impl Default for TargetArea {
    fn default() -> TargetArea {
        TargetArea {
            size: None,
            io_size: None,
            most_ios: None,
            loops: 1,
            offset: Amount::Bytes(0),
            offset_align_bytes: 0,
            offset_increment: Amount::Bytes(0),
            zoned_amounts: ZonedAmounts::default(),
        }
    }
}

/// I/O engine of a job (`ioengine`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Engine `sync`: lseek, then read or write.
    Sync,
    /// Engine `psync`, fio's default: pread and pwrite.
    #[default]
    Psync,
    /// Engine `vsync`: readv and writev.
    Vsync,
    /// Engine `pvsync`: preadv and pwritev.
    Pvsync,
    /// Engine `pvsync2`: preadv2 and pwritev2.
    Pvsync2,
    /// Engine `mmap`: copies from and to mapped files.
    Mmap,
    /// Engine `splice`: transfers data through a pipe.
    Splice,
    /// Engine `falloc`: calls fallocate and transfers no data.
    Falloc,
    /// Engine `ftruncate`: truncates or extends the file to each offset.
    Ftruncate,
    /// Engine `filecreate`: creates missing files by opening them.
    Filecreate,
    /// Engine `filestat`: calls stat on each file.
    Filestat,
    /// Engine `filedelete`: unlinks each file.
    Filedelete,
    /// Engine `libaio`: asynchronous I/O with `direct=1` only.
    Libaio,
    /// Engine `posixaio`: POSIX asynchronous I/O.
    Posixaio,
    /// Engine `io_uring`: asynchronous I/O through submission and completion rings.
    IoUring,
    /// Engine `null`: each I/O completes immediately.
    Null,
    /// Engine `cpuio`: uses the CPU and does no I/O.
    Cpuio,
}

/// Kind of an I/O engine, by the nature of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Data transfer in a call that returns at completion.
    Call,
    /// Data transfer through a queue, with several requests in flight.
    Queue,
    /// Call on an open file that transfers no data.
    FileCall,
    /// Call on a file name that transfers no data.
    NameCall,
    /// Use of the CPU alone, without I/O.
    Processor,
}

impl Engine {
    /// Returns fio's name of the engine.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Sync => "sync",
            Engine::Psync => "psync",
            Engine::Vsync => "vsync",
            Engine::Pvsync => "pvsync",
            Engine::Pvsync2 => "pvsync2",
            Engine::Mmap => "mmap",
            Engine::Splice => "splice",
            Engine::Falloc => "falloc",
            Engine::Ftruncate => "ftruncate",
            Engine::Filecreate => "filecreate",
            Engine::Filestat => "filestat",
            Engine::Filedelete => "filedelete",
            Engine::Libaio => "libaio",
            Engine::Posixaio => "posixaio",
            Engine::IoUring => "io_uring",
            Engine::Null => "null",
            Engine::Cpuio => "cpuio",
        }
    }

    /// Returns the kind of the engine.
    pub fn kind(self) -> EngineKind {
        match self {
            Engine::Sync
            | Engine::Psync
            | Engine::Vsync
            | Engine::Pvsync
            | Engine::Pvsync2
            | Engine::Mmap
            | Engine::Splice
            | Engine::Null => EngineKind::Call,
            Engine::Libaio | Engine::Posixaio | Engine::IoUring => EngineKind::Queue,
            Engine::Falloc | Engine::Ftruncate => EngineKind::FileCall,
            Engine::Filecreate | Engine::Filestat | Engine::Filedelete => EngineKind::NameCall,
            Engine::Cpuio => EngineKind::Processor,
        }
    }

    /// Reports whether the engine has only one I/O in flight, whatever `iodepth` is.
    pub fn is_synchronous(self) -> bool {
        self.kind() != EngineKind::Queue
    }

    /// Reports whether the engine makes one call for each file by its name, without data transfer.
    pub fn is_of_names(self) -> bool {
        self.kind() == EngineKind::NameCall
    }

    /// Reports whether the engine makes calls on files without data transfer.
    pub fn is_of_calls(self) -> bool {
        matches!(self.kind(), EngineKind::FileCall | EngineKind::NameCall)
    }

    /// Reports whether the engine reads and writes data.
    pub fn moves_data(self) -> bool {
        matches!(self.kind(), EngineKind::Call | EngineKind::Queue)
    }
}

/// CPU load of the engine cpuio (`cpumode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuMode {
    /// CPU load of an empty loop (`noop`).
    #[default]
    Loop,
    /// CPU load of sorting an array (`qsort`).
    Sort,
}

/// Options of the engine cpuio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Share of time in which cpuio uses the CPU, in percent (`cpuload`).
    pub load_percent: u32,
    /// Length of one burst of CPU use, in microseconds (`cpuchunks`).
    pub chunk_us: u32,
    /// Kind of CPU load (`cpumode`).
    pub mode: CpuMode,
    /// Flag `exit_on_io_done`: the cpuio job ends when all jobs that do I/O have ended.
    pub exits_with_io: bool,
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu {
            load_percent: 0,
            chunk_us: 50_000,
            mode: CpuMode::default(),
            exits_with_io: false,
        }
    }
}

/// Thread that submits the I/Os of a job (`io_submit_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitMode {
    /// Submission by the job's own worker, which also waits for completions (`inline`).
    #[default]
    Inline,
    /// Submission by separate threads (`offload`).
    Offload,
}

/// I/O engine, queue depth and submission options of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// I/O engine (`ioengine`), or the supported engine that generates the same load as
    /// [`elsewhere`](Self::elsewhere).
    pub engine: Engine,
    /// I/O engine (`ioengine`) whose I/Os go to something other than files and block devices;
    /// `None` for other engines.
    pub elsewhere: Option<&'static ForeignEngine>,
    /// Queue depth as written (`iodepth`). A synchronous engine has depth 1 whatever this value is.
    pub depth: u32,
    /// Maximum number of I/Os per submission (`iodepth_batch`); 0 submits all that fit into the
    /// queue.
    pub batch: u32,
    /// Minimum number of completions to reap in one call (`iodepth_batch_complete_min`).
    pub complete_min: u32,
    /// Maximum number of completions to reap in one call (`iodepth_batch_complete_max`).
    pub complete_max: Option<u32>,
    /// Queue depth below which the worker refills the queue (`iodepth_low`); `None` means `depth`.
    pub depth_low: Option<u32>,
    /// Thread that submits the I/Os (`io_submit_mode`).
    pub submit: SubmitMode,
    /// Flag `serialize_overlap`: an I/O waits for overlapping I/Os in flight.
    pub serialize_overlap: bool,
    /// Direct I/O without the page cache: `direct`, or the inverse of `buffered`.
    pub direct: bool,
    /// Flag `hipri`: the worker polls for completions.
    pub polled: bool,
    /// Flag `fixedbufs` of io_uring: I/O buffers are registered with the kernel.
    pub fixed_buffers: bool,
    /// Flag `registerfiles` of io_uring: files are registered with the kernel.
    pub registered_files: bool,
    /// Flag `sqthread_poll` of io_uring: a kernel thread polls the submission queue.
    pub kernel_polls: bool,
    /// Options of the engine cpuio.
    pub cpu: Cpu,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            engine: Engine::default(),
            elsewhere: None,
            depth: 1,
            batch: 1,
            complete_min: 1,
            complete_max: None,
            depth_low: None,
            submit: SubmitMode::default(),
            serialize_overlap: false,
            direct: false,
            polled: false,
            fixed_buffers: false,
            registered_files: false,
            kernel_polls: false,
            cpu: Cpu::default(),
        }
    }
}

impl EngineOptions {
    /// Returns the highest queue depth that the job can reach.
    pub fn depth_reached(&self) -> u32 {
        if self.engine.is_synchronous() && self.submit == SubmitMode::Inline {
            1
        } else {
            self.depth
        }
    }
}

/// Flag with which files are opened for durable writes (`sync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncFlag {
    /// No flag for durable writes: writes may be cached.
    #[default]
    None,
    /// Open flag O_SYNC: data and metadata are durable after each write.
    Sync,
    /// Open flag O_DSYNC: data are durable after each write.
    Dsync,
}

/// Calls of sync_file_range (option `sync_file_range`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSync {
    /// Writes between two calls of sync_file_range; 0 means no calls.
    pub every_writes: u32,
    /// Flag `wait_before` of sync_file_range.
    pub wait_before: bool,
    /// Flag `write` of sync_file_range.
    pub write: bool,
    /// Flag `wait_after` of sync_file_range.
    pub wait_after: bool,
}

/// Options that make written data durable: open flags, syncs and their frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// Open flag for durable writes (`sync`).
    pub flag: SyncFlag,
    /// Writes between two fsync calls (`fsync`); 0 means no calls.
    pub fsync_every: u32,
    /// Writes between two fdatasync calls (`fdatasync`); 0 means no calls.
    pub fdatasync_every: u32,
    /// Flag `end_fsync`: an fsync at the end of the job, which counts toward the run time.
    pub fsync_at_end: bool,
    /// Flag `fsync_on_close`: an fsync when a file is closed.
    pub fsync_on_close: bool,
    /// Calls of sync_file_range (option `sync_file_range`).
    pub range: RangeSync,
}

/// Content of written data, which matters when the store compresses or deduplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenData {
    /// Flag `zero_buffers`: the job writes zeroes.
    pub zeroes: bool,
    /// Flag `refill_buffers`: each write has new data.
    pub refill: bool,
    /// Flag `scramble_buffers`: each write changes a small part of its data.
    pub scramble: bool,
    /// Compressible share of the data, in percent (`buffer_compress_percentage`).
    pub compressible_percent: u8,
    /// Chunk in which the data is compressible to the given share, in bytes
    /// (`buffer_compress_chunk`).
    pub compress_chunk_bytes: u32,
    /// Share of writes that duplicate the data of another write, in percent (`dedupe_percentage`).
    pub duplicate_percent: u8,
    /// Source of duplicate data (`dedupe_mode`).
    pub duplicates: DedupeMode,
    /// Working set from which duplicates come, in percent of the size
    /// (`dedupe_working_set_percentage`).
    pub working_set_percent: u8,
    /// Flag `dedupe_global`: all jobs of a file share one dedupe working set.
    pub is_working_set_shared: bool,
}

/// Source of duplicate data (`dedupe_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DedupeMode {
    /// Duplicates repeat the data of an adjacent write (`repeat`).
    #[default]
    Repeat,
    /// Duplicates are chosen at random from a working set of the data (`working_set`).
    WorkingSet,
}

impl Default for WrittenData {
    fn default() -> WrittenData {
        WrittenData {
            zeroes: false,
            refill: false,
            scramble: true,
            compressible_percent: 0,
            compress_chunk_bytes: 512,
            duplicate_percent: 0,
            duplicates: DedupeMode::default(),
            working_set_percent: 5,
            is_working_set_shared: false,
        }
    }
}
