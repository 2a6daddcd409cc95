//! Where time goes: the stages of a request and of a program.

/// What a request, or a program, is doing or waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Stage {
    /// The program's own instructions.
    User,
    /// Entering, leaving and working on a system call, unless a stage of its
    /// own says more.
    SystemCall,
    /// Moving data between the program and the kernel.
    Copy,
    /// Zeroing a new block.
    Clear,
    /// Choosing and booking a block.
    Allocate,
    /// Finding a buffer, or making room for one.
    CacheLookup,
    /// The driver's instructions.
    Driver,
    /// Interrupts of others that came in between.
    Interrupt,
    /// Ready to run while another process does.
    CpuWait,
    /// What the processor took longer because data moved over its memory.
    MemoryContention,
    /// Waiting for a buffer that is free.
    BufferWait,
    /// In the driver's queue.
    DriverQueue,
    /// In the controller's queue.
    ControllerQueue,
    /// Ready to transfer while the channel serves another drive.
    ChannelWait,
    /// Ready to transfer while the bus serves another.
    BusWait,
    /// The controller working on a command.
    Command,
    /// The arm moving.
    Seek,
    /// The arm coming to rest.
    Settle,
    /// What a write waits longer than a read for the arm to rest.
    WriteSettle,
    /// Another head taking over.
    HeadSwitch,
    /// Waiting for a sector to come by.
    RotationalLatency,
    /// Waiting for a sector to come by again, for a deadline was missed.
    MissedRevolution(Deadline),
    /// Sectors passing under the head.
    MediaTransfer,
    /// Data on the bus, where that is not while sectors pass.
    BusTransfer,
    /// Served from a controller's cache, or a drive's.
    CacheHit,
    /// Waiting until what a drive's cache holds is on the medium: for a flush, or for room.
    Destage,
    /// Flash being read.
    FlashRead,
    /// Flash being programmed.
    FlashProgram,
    /// Flash being erased.
    FlashErase,
    /// Waiting for a die that does something else.
    DieWait(DieBusy),
    /// Waiting for a page of a flash drive's map that is not in memory.
    MapMiss,
    /// Waiting for room in a flash drive's buffer of writes.
    BufferFull,
    /// The same while the drive programs nothing for the host, as it must collect first.
    Collection,
    /// A page being sensed again, as its errors could not be corrected.
    ReadRetry,
    /// Data on the channel between a die and its controller.
    ChannelTransfer,
    /// A controller correcting errors of what was read.
    Decode,
    /// Waiting until changes of a flash drive's map are durable.
    Journal,
    /// A drive making room: a band of shingled tracks being written anew.
    Cleaning,
    /// From the end of the transfer until the one who waits knows.
    Completion,
    /// Asleep of its own will.
    Think,
    /// Inside a real device.
    Device,
    /// On a real system, what cannot be told apart.
    Unattributed,
}

/// A deadline whose missing costs a revolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Deadline {
    /// The search command came after its sector had passed.
    Search,
    /// The transfer command came after the sector had passed.
    TransferCommand,
    /// The bus did not take a sector in time.
    DataLate,
    /// The channel was with another drive when the sector came by.
    ChannelHeld,
    /// The request itself was not there yet when its sector came by.
    ReadAhead,
    /// The next sector of the request came by too soon.
    Interleave,
    /// A part of a sector was written, which had to be read first.
    PartOfSector,
}

/// What a die does that a read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DieBusy {
    /// Reads for the host.
    Read,
    /// A program of what the host wrote.
    Program,
    /// An erase, which garbage collection began.
    Erase,
    /// Reads and programs of garbage collection, or another of the drive's own.
    Collection,
    /// A program or an erase coming to stand still for reads.
    Suspension,
    /// Nothing but data of earlier reads, which keep registers until the channel has carried
    /// them.
    Channel,
}

impl DieBusy {
    /// All of them.
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
    /// All of them.
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
    /// How many stages there are, a missed revolution counted once for each
    /// deadline, waiting for a die once for each reason.
    pub const COUNT: usize = 53;

    /// All of them, in the order of [`Stage::index`].
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
        Self::Completion,
        Self::Think,
        Self::Device,
        Self::Unattributed,
    ];

    /// The place of this stage in a table of a ledger. The last two only a real
    /// system has: a model knows where its time went.
    #[inline]
    pub const fn index(self) -> usize {
        // Every span of time goes through here: a number for each, and one added to it,
        // are a table to look up, where numbers by two levels would be a jump for each.
        let second = match self {
            Self::MissedRevolution(deadline) => deadline as usize,
            Self::DieWait(busy) => busy as usize,
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
            Self::Completion => 49,
            Self::Think => 50,
            Self::Device => 51,
            Self::Unattributed => 52,
        };
        stage + second
    }

    /// Its name; of a missed revolution, with the deadline, of waiting for a die, with what
    /// that did.
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
            Self::Completion => "completion",
            Self::Think => "think",
            Self::Device => "device",
            Self::Unattributed => "unattributed",
        }
    }
}
