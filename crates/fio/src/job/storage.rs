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
    pub fn resolve_bytes(self, target_bytes: u64) -> u64 {
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
pub enum FileAllocation {
    /// No allocation of blocks for a new file (`none`).
    None,
    /// Native allocation of the file system, if it supports it (`native`).
    #[default]
    Native,
    /// Allocation by posix_fallocate (`posix`).
    Posix,
    /// Allocation that does not change the file size (`keep`).
    KeepSize,
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
    pub open_files_max: Option<u32>,
    /// Selection of the file for the next I/O (`file_service_type`).
    pub service: FileService,
    /// Size of each file in bytes (`filesize`). Each file draws its size from this range; equal
    /// ends mean a fixed size.
    pub size_bytes: Option<(u64, u64)>,
    /// Flag `file_append`: the job's region starts at the end of the file.
    pub is_appended: bool,
    /// Flag `overwrite`: the job lays files out before it writes to them.
    pub is_overwritten: bool,
    /// Method to allocate blocks for a new file (`fallocate`).
    pub allocation: FileAllocation,
    /// Flag `create_on_open`: the job creates files when it opens them.
    pub creates_on_open: bool,
    /// Flag `create_fsync`: an fsync follows the layout of each file.
    pub syncs_on_create: bool,
    /// Flag `create_only`: the job creates its files and does no other I/O.
    pub creates_only: bool,
    /// Flag `allow_file_create`: the job may create missing files.
    pub may_create: bool,
    /// Flag `pre_read`: the job reads its files before it starts.
    pub is_pre_read: bool,
    /// Flag `invalidate`: the page cache of the files is dropped before each pass. False with
    /// `pre_read`.
    pub invalidates_cache: bool,
    /// Flag `unlink`: the job removes its files at its end.
    pub unlinks_at_end: bool,
    /// Flag `unlink_each_loop`: the job removes its files after each loop.
    pub unlinks_each_loop: bool,
    /// Flag `allow_mounted_write`: the job may write to a device with a mounted file system.
    pub allows_mounted_write: bool,
    /// Lock against concurrent I/O on the same file (`lockfile`).
    pub lock: FileLock,
    /// Flag `fill_device`: the job ends without an error when the device is full.
    pub fills_device: bool,
}

impl Default for JobFiles {
    fn default() -> JobFiles {
        JobFiles {
            names: Arc::from([]),
            directories: Arc::from([]),
            name_format: "$jobname.$jobnum.$filenum".to_owned(),
            count: 1,
            open_files_max: None,
            service: FileService::default(),
            size_bytes: None,
            is_appended: false,
            is_overwritten: false,
            allocation: FileAllocation::default(),
            creates_on_open: false,
            syncs_on_create: true,
            creates_only: false,
            may_create: true,
            is_pre_read: false,
            invalidates_cache: true,
            unlinks_at_end: false,
            unlinks_each_loop: false,
            allows_mounted_write: false,
            lock: FileLock::default(),
            fills_device: false,
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
    pub ios_max: Option<u64>,
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
            ios_max: None,
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
pub enum IoEngine {
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

impl IoEngine {
    /// Returns fio's name of the engine.
    pub fn name(self) -> &'static str {
        match self {
            IoEngine::Sync => "sync",
            IoEngine::Psync => "psync",
            IoEngine::Vsync => "vsync",
            IoEngine::Pvsync => "pvsync",
            IoEngine::Pvsync2 => "pvsync2",
            IoEngine::Mmap => "mmap",
            IoEngine::Splice => "splice",
            IoEngine::Falloc => "falloc",
            IoEngine::Ftruncate => "ftruncate",
            IoEngine::Filecreate => "filecreate",
            IoEngine::Filestat => "filestat",
            IoEngine::Filedelete => "filedelete",
            IoEngine::Libaio => "libaio",
            IoEngine::Posixaio => "posixaio",
            IoEngine::IoUring => "io_uring",
            IoEngine::Null => "null",
            IoEngine::Cpuio => "cpuio",
        }
    }

    /// Returns the kind of the engine.
    pub fn kind(self) -> EngineKind {
        match self {
            IoEngine::Sync
            | IoEngine::Psync
            | IoEngine::Vsync
            | IoEngine::Pvsync
            | IoEngine::Pvsync2
            | IoEngine::Mmap
            | IoEngine::Splice
            | IoEngine::Null => EngineKind::Call,
            IoEngine::Libaio | IoEngine::Posixaio | IoEngine::IoUring => EngineKind::Queue,
            IoEngine::Falloc | IoEngine::Ftruncate => EngineKind::FileCall,
            IoEngine::Filecreate | IoEngine::Filestat | IoEngine::Filedelete => {
                EngineKind::NameCall
            }
            IoEngine::Cpuio => EngineKind::Processor,
        }
    }

    /// Reports whether the engine has only one I/O in flight, whatever `iodepth` is.
    pub fn is_synchronous(self) -> bool {
        self.kind() != EngineKind::Queue
    }

    /// Reports whether the engine makes one call for each file by its name, without data transfer.
    pub fn acts_on_names(self) -> bool {
        self.kind() == EngineKind::NameCall
    }

    /// Reports whether the engine makes calls on files without data transfer.
    pub fn acts_on_files(self) -> bool {
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
pub struct CpuLoad {
    /// Share of time in which cpuio uses the CPU, in percent (`cpuload`).
    pub load_percent: u32,
    /// Length of one burst of CPU use, in microseconds (`cpuchunks`).
    pub chunk_us: u32,
    /// Kind of CPU load (`cpumode`).
    pub mode: CpuMode,
    /// Flag `exit_on_io_done`: the cpuio job ends when all jobs that do I/O have ended.
    pub exits_with_io: bool,
}

impl Default for CpuLoad {
    fn default() -> CpuLoad {
        CpuLoad {
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
    /// [`foreign_engine`](Self::foreign_engine).
    pub engine: IoEngine,
    /// I/O engine (`ioengine`) whose I/Os go to something other than files and block devices;
    /// `None` for other engines.
    pub foreign_engine: Option<&'static ForeignEngine>,
    /// Queue depth as written (`iodepth`). A synchronous engine has depth 1 whatever this value is.
    pub depth: u32,
    /// Maximum number of I/Os per submission (`iodepth_batch`); 0 submits all that fit into the
    /// queue.
    pub submit_batch: u32,
    /// Minimum number of completions to reap in one call (`iodepth_batch_complete_min`).
    pub completions_min: u32,
    /// Maximum number of completions to reap in one call (`iodepth_batch_complete_max`).
    pub completions_max: Option<u32>,
    /// Queue depth below which the worker refills the queue (`iodepth_low`); `None` means `depth`.
    pub depth_low: Option<u32>,
    /// Thread that submits the I/Os (`io_submit_mode`).
    pub submit: SubmitMode,
    /// Flag `serialize_overlap`: an I/O waits for overlapping I/Os in flight.
    pub serializes_overlap: bool,
    /// Direct I/O without the page cache: `direct`, or the inverse of `buffered`.
    pub is_direct: bool,
    /// Flag `hipri`: the worker polls for completions.
    pub is_polled: bool,
    /// Flag `fixedbufs` of io_uring: I/O buffers are registered with the kernel.
    pub has_fixed_buffers: bool,
    /// Flag `registerfiles` of io_uring: files are registered with the kernel.
    pub has_registered_files: bool,
    /// Flag `sqthread_poll` of io_uring: a kernel thread polls the submission queue.
    pub has_kernel_polling: bool,
    /// Options of the engine cpuio.
    pub cpu_load: CpuLoad,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            engine: IoEngine::default(),
            foreign_engine: None,
            depth: 1,
            submit_batch: 1,
            completions_min: 1,
            completions_max: None,
            depth_low: None,
            submit: SubmitMode::default(),
            serializes_overlap: false,
            is_direct: false,
            is_polled: false,
            has_fixed_buffers: false,
            has_registered_files: false,
            has_kernel_polling: false,
            cpu_load: CpuLoad::default(),
        }
    }
}

impl EngineOptions {
    /// Returns the highest queue depth that the job can reach.
    pub fn effective_depth(&self) -> u32 {
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
    pub writes_per_sync: u32,
    /// Flag `wait_before` of sync_file_range.
    pub waits_before: bool,
    /// Flag `write` of sync_file_range.
    pub starts_write: bool,
    /// Flag `wait_after` of sync_file_range.
    pub waits_after: bool,
}

/// Options that make written data durable: open flags, syncs and their frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncOptions {
    /// Open flag for durable writes (`sync`).
    pub open_flag: SyncFlag,
    /// Writes between two fsync calls (`fsync`); 0 means no calls.
    pub writes_per_fsync: u32,
    /// Writes between two fdatasync calls (`fdatasync`); 0 means no calls.
    pub writes_per_fdatasync: u32,
    /// Flag `end_fsync`: an fsync at the end of the job, which counts toward the run time.
    pub syncs_at_end: bool,
    /// Flag `fsync_on_close`: an fsync when a file is closed.
    pub syncs_on_close: bool,
    /// Calls of sync_file_range (option `sync_file_range`).
    pub range_sync: RangeSync,
}

/// Content of written data, which matters when the store compresses or deduplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenData {
    /// Flag `zero_buffers`: the job writes zeroes.
    pub is_zeroed: bool,
    /// Flag `refill_buffers`: each write has new data.
    pub is_refilled: bool,
    /// Flag `scramble_buffers`: each write changes a small part of its data.
    pub is_scrambled: bool,
    /// Compressible share of the data, in percent (`buffer_compress_percentage`).
    pub compressible_percent: u8,
    /// Chunk in which the data is compressible to the given share, in bytes
    /// (`buffer_compress_chunk`).
    pub compress_chunk_bytes: u32,
    /// Share of writes that duplicate the data of another write, in percent (`dedupe_percentage`).
    pub duplicate_percent: u8,
    /// Source of duplicate data (`dedupe_mode`).
    pub dedupe_mode: DedupeMode,
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
    RepeatPrevious,
    /// Duplicates are chosen at random from a working set of the data (`working_set`).
    WorkingSet,
}

impl Default for WrittenData {
    fn default() -> WrittenData {
        WrittenData {
            is_zeroed: false,
            is_refilled: false,
            is_scrambled: true,
            compressible_percent: 0,
            compress_chunk_bytes: 512,
            duplicate_percent: 0,
            dedupe_mode: DedupeMode::default(),
            working_set_percent: 5,
            is_working_set_shared: false,
        }
    }
}
