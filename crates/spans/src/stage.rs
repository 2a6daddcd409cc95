//! Stages to which the time of a request and of a program is accounted.

/// Stage of a request or of a program: an activity, or a cause of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Stage {
    /// Execution of the program's own instructions.
    User,
    /// Entry to, exit from and work in a system call, except work that has a stage of its own.
    SystemCall,
    /// Copy of data between the program and the kernel.
    Copy,
    /// Zeroing of a newly allocated block.
    Clear,
    /// Allocation of a block in the file system.
    Allocate,
    /// Search for a buffer in the buffer cache, or eviction to make room for one.
    CacheLookup,
    /// Execution of the device driver's instructions.
    Driver,
    /// Handling of other interrupts that preempt the work.
    Interrupt,
    /// Wait for the CPU: the process is ready while another process runs.
    CpuWait,
    /// CPU slowdown by data transfers that compete with the CPU for the memory.
    MemoryContention,
    /// Wait for a free buffer of the kernel.
    BufferWait,
    /// Wait in the driver's queue.
    DriverQueue,
    /// Wait in the controller's queue.
    ControllerQueue,
    /// Wait for the channel, which serves another drive, by a drive that is ready to transfer.
    ChannelWait,
    /// Wait for the bus, which serves another device, by a device that is ready to transfer.
    BusWait,
    /// Command processing by the controller.
    Command,
    /// Seek: movement of the arm to another cylinder.
    Seek,
    /// Settle of the arm on the track after a seek.
    Settle,
    /// Additional settle time of a write compared with a read.
    WriteSettle,
    /// Head switch: selection of another head within the cylinder.
    HeadSwitch,
    /// Rotational latency: wait until the first sector passes under the head.
    RotationalLatency,
    /// Wait of a full revolution for a sector because a deadline was missed.
    MissedRevolution(Deadline),
    /// Media transfer: the sectors pass under the head.
    MediaTransfer,
    /// Bus transfer outside the media transfer.
    BusTransfer,
    /// Service from the cache of a controller or of a drive.
    CacheHit,
    /// Wait for the destage of a drive's write-back cache, due to a flush or for buffer space.
    Destage,
    /// Read of a flash page in the die.
    FlashRead,
    /// Program of a flash page in the die.
    FlashProgram,
    /// Erase of flash blocks in the die.
    FlashErase,
    /// Wait for a flash die that is busy with other work.
    DieWait(DieBusy),
    /// Wait for a page of a flash drive's mapping table that is not in memory.
    MapMiss,
    /// Wait for space in the write buffer of a flash drive.
    BufferFull,
    /// Wait for space in the write buffer while garbage collection keeps the drive from programming
    /// host data.
    Collection,
    /// Repeated read of a flash page whose errors could not be corrected.
    ReadRetry,
    /// Data transfer on the channel between a die and its controller.
    ChannelTransfer,
    /// Error correction of read data in the flash controller.
    Decode,
    /// Wait until changes of a flash drive's mapping table are durable.
    Journal,
    /// Wait for cleaning: the drive rewrites a band of shingled tracks to make room.
    Cleaning,
    /// Wait for a rate limit of a cloud volume or of its instance.
    RateLimit(VolumeLimit),
    /// Completion path, from the end of the transfer until the waiting program continues.
    Completion,
    /// Think time: the program sleeps voluntarily.
    Think,
    /// Wait for a limit on the input and output of the task's cgroup.
    CgroupThrottle,
    /// Wait for a free request of the block layer (a tag), or for its quality of service.
    TagWait,
    /// Wait of a request until its task submits the requests that it collects (a plug).
    PlugWait,
    /// Wait of a flush in the block layer until the device may receive it.
    FlushWait,
    /// Flush of a real device's write cache, inside the device.
    Flush,
    /// Wait of a queued work item for a thread of the kernel.
    WorkQueueWait,
    /// Wait of a task for another one that waits for the first.
    HandOver,
    /// Processor work of another task that is waited for, such as a journal's thread.
    OtherTask,
    /// Sleep of a writer because too many pages are dirty.
    DirtyThrottle,
    /// Reclaim of memory by the task that needs it.
    Reclaim,
    /// Time inside a real device, where stages cannot be observed.
    Device,
    /// Time on a real system that cannot be assigned to a stage.
    Unattributed,
}

/// Deadline whose miss costs the request a full revolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Deadline {
    /// Search deadline: the search command arrived after its sector had passed.
    Search,
    /// Transfer deadline: the transfer command arrived after the sector had passed.
    TransferCommand,
    /// Data deadline: the bus did not accept a sector in time.
    DataLate,
    /// Channel deadline: the channel served another drive when the sector passed.
    ChannelHeld,
    /// Arrival deadline: the request arrived after its sector had passed.
    ReadAhead,
    /// Interleave deadline: the next sector of the request passed before the controller was ready
    /// for it.
    Interleave,
    /// Partial write of a sector, which first needs a read of the sector.
    PartOfSector,
}

/// Rate limit that makes a request wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum VolumeLimit {
    /// Limit of the volume on requests per second.
    VolumeRequests,
    /// Limit of the volume on bytes per second.
    VolumeBytes,
    /// Limit of the instance on requests per second.
    InstanceRequests,
    /// Limit of the instance on bytes per second.
    InstanceBytes,
}

impl VolumeLimit {
    /// All rate limits, in the order in which they are declared.
    pub const ALL: [Self; 4] = [
        Self::VolumeRequests,
        Self::VolumeBytes,
        Self::InstanceRequests,
        Self::InstanceBytes,
    ];

    /// Reports whether the limit counts bytes; if not, it counts requests.
    pub const fn is_of_bytes(self) -> bool {
        matches!(self, Self::VolumeBytes | Self::InstanceBytes)
    }
}

/// Operation that keeps a flash die busy and makes a read wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DieBusy {
    /// Read of a flash page for the host.
    Read,
    /// Program of a flash page with host data.
    Program,
    /// Erase for garbage collection.
    Erase,
    /// Read or program for garbage collection or other internal work of the drive.
    Collection,
    /// Suspension of a program or an erase, so that reads can proceed.
    Suspension,
    /// Channel transfer only: the die has finished its reads, but their data occupy its registers
    /// until the channel has carried them.
    Channel,
}

impl DieBusy {
    /// All causes that keep a flash die busy, in the order in which they are declared.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Program,
        Self::Erase,
        Self::Collection,
        Self::Suspension,
        Self::Channel,
    ];
}

impl Deadline {
    /// All deadlines whose miss costs a revolution, in the order in which they are declared.
    pub const ALL: [Self; 7] = [
        Self::Search,
        Self::TransferCommand,
        Self::DataLate,
        Self::ChannelHeld,
        Self::ReadAhead,
        Self::Interleave,
        Self::PartOfSector,
    ];
}

impl Stage {
    /// Number of stages. A missed revolution counts once per deadline; a wait for a die counts once
    /// per cause, and a wait for a rate limit once per limit.
    pub const COUNT: usize = 67;

    /// All stages, in the order of [`Stage::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::User,
        Self::SystemCall,
        Self::Copy,
        Self::Clear,
        Self::Allocate,
        Self::CacheLookup,
        Self::Driver,
        Self::Interrupt,
        Self::CpuWait,
        Self::MemoryContention,
        Self::BufferWait,
        Self::DriverQueue,
        Self::ControllerQueue,
        Self::ChannelWait,
        Self::BusWait,
        Self::Command,
        Self::Seek,
        Self::Settle,
        Self::WriteSettle,
        Self::HeadSwitch,
        Self::RotationalLatency,
        Self::MissedRevolution(Deadline::Search),
        Self::MissedRevolution(Deadline::TransferCommand),
        Self::MissedRevolution(Deadline::DataLate),
        Self::MissedRevolution(Deadline::ChannelHeld),
        Self::MissedRevolution(Deadline::ReadAhead),
        Self::MissedRevolution(Deadline::Interleave),
        Self::MissedRevolution(Deadline::PartOfSector),
        Self::MediaTransfer,
        Self::BusTransfer,
        Self::CacheHit,
        Self::Destage,
        Self::FlashRead,
        Self::FlashProgram,
        Self::FlashErase,
        Self::DieWait(DieBusy::Read),
        Self::DieWait(DieBusy::Program),
        Self::DieWait(DieBusy::Erase),
        Self::DieWait(DieBusy::Collection),
        Self::DieWait(DieBusy::Suspension),
        Self::DieWait(DieBusy::Channel),
        Self::MapMiss,
        Self::BufferFull,
        Self::Collection,
        Self::ReadRetry,
        Self::ChannelTransfer,
        Self::Decode,
        Self::Journal,
        Self::Cleaning,
        Self::RateLimit(VolumeLimit::VolumeRequests),
        Self::RateLimit(VolumeLimit::VolumeBytes),
        Self::RateLimit(VolumeLimit::InstanceRequests),
        Self::RateLimit(VolumeLimit::InstanceBytes),
        Self::Completion,
        Self::Think,
        Self::CgroupThrottle,
        Self::TagWait,
        Self::PlugWait,
        Self::FlushWait,
        Self::Flush,
        Self::WorkQueueWait,
        Self::HandOver,
        Self::OtherTask,
        Self::DirtyThrottle,
        Self::Reclaim,
        Self::Device,
        Self::Unattributed,
    ];

    /// Index of the stage in a ledger's table. The stages from
    /// [`Stage::CgroupThrottle`] on occur only on real systems, whose kernels report them.
    #[inline]
    pub const fn index(self) -> usize {
        // Every span of time goes through here: a number for each, and one added to it,
        // are a table to look up, where numbers by two levels would be a jump for each.
        let second = match self {
            Self::MissedRevolution(deadline) => deadline as usize,
            Self::DieWait(busy) => busy as usize,
            Self::RateLimit(limit) => limit as usize,
            _ => 0,
        };
        let stage = match self {
            Self::User => 0,
            Self::SystemCall => 1,
            Self::Copy => 2,
            Self::Clear => 3,
            Self::Allocate => 4,
            Self::CacheLookup => 5,
            Self::Driver => 6,
            Self::Interrupt => 7,
            Self::CpuWait => 8,
            Self::MemoryContention => 9,
            Self::BufferWait => 10,
            Self::DriverQueue => 11,
            Self::ControllerQueue => 12,
            Self::ChannelWait => 13,
            Self::BusWait => 14,
            Self::Command => 15,
            Self::Seek => 16,
            Self::Settle => 17,
            Self::WriteSettle => 18,
            Self::HeadSwitch => 19,
            Self::RotationalLatency => 20,
            Self::MissedRevolution(_) => 21,
            Self::MediaTransfer => 28,
            Self::BusTransfer => 29,
            Self::CacheHit => 30,
            Self::Destage => 31,
            Self::FlashRead => 32,
            Self::FlashProgram => 33,
            Self::FlashErase => 34,
            Self::DieWait(_) => 35,
            Self::MapMiss => 41,
            Self::BufferFull => 42,
            Self::Collection => 43,
            Self::ReadRetry => 44,
            Self::ChannelTransfer => 45,
            Self::Decode => 46,
            Self::Journal => 47,
            Self::Cleaning => 48,
            Self::RateLimit(_) => 49,
            Self::Completion => 53,
            Self::Think => 54,
            Self::CgroupThrottle => 55,
            Self::TagWait => 56,
            Self::PlugWait => 57,
            Self::FlushWait => 58,
            Self::Flush => 59,
            Self::WorkQueueWait => 60,
            Self::HandOver => 61,
            Self::OtherTask => 62,
            Self::DirtyThrottle => 63,
            Self::Reclaim => 64,
            Self::Device => 65,
            Self::Unattributed => 66,
        };
        stage + second
    }

    /// Name of the stage. The name of a missed revolution includes the deadline, and the name of a
    /// wait for a die includes the cause.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::SystemCall => "system_call",
            Self::Copy => "copy",
            Self::Clear => "clear",
            Self::Allocate => "allocate",
            Self::CacheLookup => "cache_lookup",
            Self::Driver => "driver",
            Self::Interrupt => "interrupt",
            Self::CpuWait => "cpu_wait",
            Self::MemoryContention => "memory_contention",
            Self::BufferWait => "buffer_wait",
            Self::DriverQueue => "driver_queue",
            Self::ControllerQueue => "controller_queue",
            Self::ChannelWait => "channel_wait",
            Self::BusWait => "bus_wait",
            Self::Command => "command",
            Self::Seek => "seek",
            Self::Settle => "settle",
            Self::WriteSettle => "write_settle",
            Self::HeadSwitch => "head_switch",
            Self::RotationalLatency => "rotational_latency",
            Self::MissedRevolution(Deadline::Search) => "missed_revolution: search",
            Self::MissedRevolution(Deadline::TransferCommand) => {
                "missed_revolution: transfer_command"
            }
            Self::MissedRevolution(Deadline::DataLate) => "missed_revolution: data_late",
            Self::MissedRevolution(Deadline::ChannelHeld) => "missed_revolution: channel_held",
            Self::MissedRevolution(Deadline::ReadAhead) => "missed_revolution: read_ahead",
            Self::MissedRevolution(Deadline::Interleave) => "missed_revolution: interleave",
            Self::MissedRevolution(Deadline::PartOfSector) => "missed_revolution: part_of_sector",
            Self::MediaTransfer => "media_transfer",
            Self::BusTransfer => "bus_transfer",
            Self::CacheHit => "cache_hit",
            Self::Destage => "destage",
            Self::FlashRead => "flash_read",
            Self::FlashProgram => "flash_program",
            Self::FlashErase => "flash_erase",
            Self::DieWait(DieBusy::Read) => "die_wait: read",
            Self::DieWait(DieBusy::Program) => "die_wait: program",
            Self::DieWait(DieBusy::Erase) => "die_wait: erase",
            Self::DieWait(DieBusy::Collection) => "die_wait: collection",
            Self::DieWait(DieBusy::Suspension) => "die_wait: suspension",
            Self::DieWait(DieBusy::Channel) => "die_wait: channel",
            Self::MapMiss => "map_miss",
            Self::BufferFull => "buffer_full",
            Self::Collection => "collection",
            Self::ReadRetry => "read_retry",
            Self::ChannelTransfer => "channel_transfer",
            Self::Decode => "decode",
            Self::Journal => "journal",
            Self::Cleaning => "cleaning",
            Self::RateLimit(VolumeLimit::VolumeRequests) => "rate_limit: volume_requests",
            Self::RateLimit(VolumeLimit::VolumeBytes) => "rate_limit: volume_bytes",
            Self::RateLimit(VolumeLimit::InstanceRequests) => "rate_limit: instance_requests",
            Self::RateLimit(VolumeLimit::InstanceBytes) => "rate_limit: instance_bytes",
            Self::Completion => "completion",
            Self::Think => "think",
            Self::CgroupThrottle => "cgroup_throttle",
            Self::TagWait => "tag_wait",
            Self::PlugWait => "plug_wait",
            Self::FlushWait => "flush_wait",
            Self::Flush => "flush",
            Self::WorkQueueWait => "work_queue_wait",
            Self::HandOver => "hand_over",
            Self::OtherTask => "other_task",
            Self::DirtyThrottle => "dirty_throttle",
            Self::Reclaim => "reclaim",
            Self::Device => "device",
            Self::Unattributed => "unattributed",
        }
    }
}
