//! Which files, how much of them, and how I/O reaches them.

use std::sync::Arc;

use super::FileService;
use crate::elsewhere::Elsewhere;

/// A size or a share of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// In bytes.
    Bytes(u64),
    /// Of the target.
    Percent(u32),
}

impl Amount {
    /// The bytes, if the target need not be known.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Percent(_) => None,
        }
    }

    /// The bytes of a target of so many.
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

/// `fallocate`: how a new file gets its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// `none`.
    None,
    /// `native`: if the file system can.
    #[default]
    Native,
    /// `posix`.
    Posix,
    /// `keep`: without a new size.
    Keep,
    /// `truncate`: a new size without blocks.
    Truncate,
}

/// `lockfile`: I/O that excludes that of other jobs on the same file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileLock {
    /// `none`.
    #[default]
    None,
    /// `exclusive`: one I/O at a time.
    Exclusive,
    /// `readwrite`: one write at a time, or several reads.
    ReadWrite,
}

/// Which files a job uses, and what becomes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// `filename`: shared by all clones; empty if it is not given.
    pub names: Arc<[String]>,
    /// `directory`: clones take them in turn; empty if it is not given.
    pub directories: Arc<[String]>,
    /// `filename_format`.
    pub name_format: String,
    /// `nrfiles`.
    pub count: u32,
    /// `openfiles`: at once; `count` where it is nothing.
    pub open_at_once: Option<u32>,
    /// `file_service_type`.
    pub service: FileService,
    /// `filesize`, in bytes: of each file, drawn from the range; the ends are equal for
    /// one size.
    pub size_bytes: Option<(u64, u64)>,
    /// `file_append`: the region begins where the file ends.
    pub appends: bool,
    /// `overwrite`: files are laid out before they are written.
    pub overwrite: bool,
    /// `fallocate`.
    pub allocation: Allocation,
    /// `create_on_open`.
    pub create_on_open: bool,
    /// `create_fsync`: after a file is laid out.
    pub create_fsync: bool,
    /// `create_only`: files are made, and nothing else is done.
    pub only_created: bool,
    /// `allow_file_create`.
    pub may_create: bool,
    /// `pre_read`: read before the job starts.
    pub pre_read: bool,
    /// `invalidate`: the cache of the files is dropped before each pass; never with
    /// `pre_read`.
    pub invalidate: bool,
    /// `unlink`: when the job is done.
    pub unlink: bool,
    /// `unlink_each_loop`.
    pub unlink_each_loop: bool,
    /// `allow_mounted_write`.
    pub allow_mounted_write: bool,
    /// `lockfile`.
    pub lock: FileLock,
    /// `fill_device`: where no space is left, the job ends well.
    pub fills: bool,
}

impl Default for Files {
    fn default() -> Files {
        Files {
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

/// How much of the files is used, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// `size`: of all files of a clone together; all that is there where it is nothing.
    pub size: Option<Amount>,
    /// `io_size`: how much is done; `size` where it is nothing.
    pub io_size: Option<Amount>,
    /// `number_ios`: at most, in each pass.
    pub most_ios: Option<u64>,
    /// `loops`.
    pub loops: u32,
    /// `offset`: where the region begins in each file.
    pub offset: Amount,
    /// `offset_align`, in bytes: of an offset in percent.
    pub offset_align_bytes: u64,
    /// `offset_increment`: how much further each clone begins.
    pub offset_increment: Amount,
    /// The same in zones, as `size=64z`.
    pub in_zones: InZones,
}

/// Sizes in zones, each 0 where the option gives none. As in fio they go before those in
/// bytes, wherever they stand, and are nothing without a `zonesize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InZones {
    /// `size`.
    pub size: u64,
    /// `io_size`.
    pub io_size: u64,
    /// `offset`.
    pub offset: u64,
    /// `offset_increment`.
    pub offset_increment: u64,
    /// `zoneskip`.
    pub skip: u64,
}

impl Default for Target {
    fn default() -> Target {
        Target {
            size: None,
            io_size: None,
            most_ios: None,
            loops: 1,
            offset: Amount::Bytes(0),
            offset_align_bytes: 0,
            offset_increment: Amount::Bytes(0),
            in_zones: InZones::default(),
        }
    }
}

/// `ioengine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// `sync`: lseek and read or write.
    Sync,
    /// `psync`: pread and pwrite, fio's default.
    #[default]
    Psync,
    /// `vsync`.
    Vsync,
    /// `pvsync`.
    Pvsync,
    /// `pvsync2`.
    Pvsync2,
    /// `mmap`.
    Mmap,
    /// `splice`: through a pipe.
    Splice,
    /// `falloc`: fallocate, and no data.
    Falloc,
    /// `ftruncate`: cuts or extends the file to each offset.
    Ftruncate,
    /// `filecreate`: opens files that are not there.
    Filecreate,
    /// `filestat`: stat.
    Filestat,
    /// `filedelete`: unlink.
    Filedelete,
    /// `libaio`: asynchronous with `direct=1` only.
    Libaio,
    /// `posixaio`.
    Posixaio,
    /// `io_uring`.
    IoUring,
    /// `null`: every I/O is done at once.
    Null,
    /// `cpuio`: uses the processor, and does no I/O.
    Cpuio,
}

/// Kinds of engines, by what a request is to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Moves data in a call that returns when it is done.
    Call,
    /// Queues it, with others in flight.
    Queue,
    /// Makes a call on an open file, and moves no data.
    FileCall,
    /// Makes a call on the name of a file, and moves no data.
    NameCall,
    /// Uses the processor alone.
    Processor,
}

impl Engine {
    /// fio's name of it.
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

    /// Its kind.
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

    /// Whether it does one I/O at a time, whatever `iodepth` says.
    pub fn is_synchronous(self) -> bool {
        self.kind() != EngineKind::Queue
    }

    /// Whether it makes one call for each file, by its name, and moves no data.
    pub fn is_of_names(self) -> bool {
        self.kind() == EngineKind::NameCall
    }

    /// Whether it makes calls on files and moves no data.
    pub fn is_of_calls(self) -> bool {
        matches!(self.kind(), EngineKind::FileCall | EngineKind::NameCall)
    }

    /// Whether it reads and writes: it has data, and requests that move it.
    pub fn moves_data(self) -> bool {
        matches!(self.kind(), EngineKind::Call | EngineKind::Queue)
    }
}

/// `cpumode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuMode {
    /// `noop`: a loop.
    #[default]
    Loop,
    /// `qsort`: sorts an array.
    Sort,
}

/// Options of the engine cpuio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// `cpuload`: share of the time in which the processor is used, in percent.
    pub load_percent: u32,
    /// `cpuchunks`: length of each use, in microseconds.
    pub chunk_us: u32,
    /// `cpumode`.
    pub mode: CpuMode,
    /// `exit_on_io_done`: the job ends when those that do I/O have ended.
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

/// `io_submit_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitMode {
    /// The worker submits and waits.
    #[default]
    Inline,
    /// Other threads do.
    Offload,
}

/// How I/O is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// `ioengine`, or the one with the same load as [`elsewhere`](Self::elsewhere).
    pub engine: Engine,
    /// `ioengine`, where it sends its I/Os somewhere else than to files and devices.
    pub elsewhere: Option<&'static Elsewhere>,
    /// `iodepth`, as written: a synchronous engine has depth 1.
    pub depth: u32,
    /// `iodepth_batch`: submitted at once; 0 is all that fit.
    pub batch: u32,
    /// `iodepth_batch_complete_min`: taken at once, at least.
    pub complete_min: u32,
    /// `iodepth_batch_complete_max`: at most.
    pub complete_max: Option<u32>,
    /// `iodepth_low`: the depth is filled again when it is here; `depth` where it is
    /// nothing.
    pub depth_low: Option<u32>,
    /// `io_submit_mode`.
    pub submit: SubmitMode,
    /// `serialize_overlap`: an I/O waits for those in flight that overlap it.
    pub serialize_overlap: bool,
    /// `direct`, or not `buffered`.
    pub direct: bool,
    /// `hipri`: completions are polled for.
    pub polled: bool,
    /// `fixedbufs` of io_uring.
    pub fixed_buffers: bool,
    /// `registerfiles` of io_uring.
    pub registered_files: bool,
    /// `sqthread_poll` of io_uring: the kernel takes submissions by itself.
    pub kernel_polls: bool,
    /// Those of cpuio.
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
    /// The depth that is reached at most.
    pub fn depth_reached(&self) -> u32 {
        if self.engine.is_synchronous() && self.submit == SubmitMode::Inline {
            1
        } else {
            self.depth
        }
    }
}

/// `sync`: how files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncFlag {
    /// Writes may be cached.
    #[default]
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// `sync_file_range`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSync {
    /// After each so many writes; 0 is never.
    pub every_writes: u32,
    /// `wait_before`.
    pub wait_before: bool,
    /// `write`.
    pub write: bool,
    /// `wait_after`.
    pub wait_after: bool,
}

/// When data must be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// `sync`.
    pub flag: SyncFlag,
    /// `fsync`: after each so many writes; 0 is never.
    pub fsync_every: u32,
    /// `fdatasync`, as `fsync`.
    pub fdatasync_every: u32,
    /// `end_fsync`: when the job is done; it counts in the runtime.
    pub fsync_at_end: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,
    /// `sync_file_range`.
    pub range: RangeSync,
}

/// What is written, where the store may compress it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// `zero_buffers`.
    pub zeroes: bool,
    /// `refill_buffers`: new data for each write.
    pub refill: bool,
    /// `scramble_buffers`: a little of it new.
    pub scramble: bool,
    /// `buffer_compress_percentage`.
    pub compressible_percent: u8,
    /// `buffer_compress_chunk`, in bytes.
    pub compress_chunk_bytes: u32,
    /// `dedupe_percentage`: writes whose data is that of another write.
    pub duplicate_percent: u8,
    /// `dedupe_mode`.
    pub duplicates: DedupeMode,
    /// `dedupe_working_set_percentage`, of the size.
    pub working_set_percent: u8,
    /// `dedupe_global`: the jobs of a file have one working set.
    pub is_working_set_shared: bool,
}

/// `dedupe_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DedupeMode {
    /// A duplicate is the data of the write beside it.
    #[default]
    Repeat,
    /// A duplicate is drawn from a part of the data.
    WorkingSet,
}

impl Default for Data {
    fn default() -> Data {
        Data {
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
