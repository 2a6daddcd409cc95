//! Specification of a flash drive, and the errors of an invalid one.

use diskperf_ftl::{
    DataSeparation, DieAllocation, Features, Geometry, ImpossibleSpecification, PreconditionState,
    SlcCache, VictimPolicy,
};
use diskperf_sim::Time;

/// Size of a mapping unit and of a host sector, in bytes.
pub const UNIT_BYTES: u32 = 4096;

/// SLC cache: a part of the drive with one bit per cell, which takes writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcCacheSpecification {
    /// Time to sense a page of the SLC cache.
    pub read_time: Time,
    /// Time to program a page on every plane in the SLC cache.
    pub program_time: Time,
    /// Number of superblocks that always belong to the SLC cache.
    pub fixed_superblocks: u32,
    /// Maximum number of superblocks that join the SLC cache while the drive has unmapped units.
    pub dynamic_superblocks: u32,
    /// Idle time before the drive folds the SLC cache into the main area.
    pub fold_idle_time: Time,
}

/// Geometry of a flash drive: channels, dies, planes, blocks and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashGeometry {
    /// Number of channels, each with its own dies.
    pub channel_count: u32,
    /// Number of dies per channel, over all packages.
    pub dies_per_channel: u32,
    /// Number of planes per die.
    pub planes_per_die: u32,
    /// Number of blocks per plane.
    pub blocks_per_plane: u32,
    /// Number of word lines per block. All pages of a word line are programmed together.
    pub word_lines_per_block: u32,
    /// Number of pages per word line, which is the number of bits per cell.
    pub pages_per_word_line: u32,
    /// Size of a page without its spare bytes, in bytes.
    pub page_bytes: u32,
    /// Spare bytes of a page for error correction, which also cross the channel.
    pub page_spare_bytes: u32,
}

impl FlashGeometry {
    /// Returns the number of dies in the drive.
    pub fn die_count(&self) -> u32 {
        self.channel_count * self.dies_per_channel
    }

    /// Returns the number of mapping units in a page.
    pub fn page_units(&self) -> u32 {
        self.page_bytes / UNIT_BYTES
    }

    /// Returns the number of mapping units in one program of a die.
    pub fn program_units(&self) -> u32 {
        self.planes_per_die * self.pages_per_word_line * self.page_units()
    }
}

/// Durations of a die's array operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayTimes {
    /// Time to sense each page of a word line.
    pub read_time_by_page: Vec<Time>,
    /// Time to program a word line on every plane.
    pub program_time: Time,
    /// Time to erase a block on every plane.
    pub erase_time: Time,
}

/// Suspension of programs and erases for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspensionSpecification {
    /// Time from the arrival of a read until a program is suspended.
    pub program_suspend_time: Time,
    /// Time from the arrival of a read until an erase is suspended.
    pub erase_suspend_time: Time,
    /// Time to resume a suspended program or erase.
    pub resume_time: Time,
    /// Maximum number of suspensions of one operation. After that it runs to its end.
    pub suspensions_max: u32,
}

/// Channel between controller and dies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelSpecification {
    /// Data rate of the channel, in bytes per second.
    pub bytes_per_s: f64,
    /// Time of an operation's command and address on the channel.
    pub command_time: Time,
}

/// Write buffer of a flash drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpecification {
    /// Capacity of the buffer, in mapping units.
    pub unit_count: u32,
    /// Whether the buffer survives a power cut, so that its data are durable.
    pub is_power_protected: bool,
}

/// Journal that makes changes of the map durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSpecification {
    /// Number of pages in the journal's ring.
    pub page_count: u32,
    /// Number of map changes that one page holds.
    pub changes_per_page: u32,
    /// Time to program a word line of the journal's blocks, which may store fewer bits per cell.
    pub program_time: Time,
    /// Number of consecutive programs that make map changes durable.
    pub programs_per_flush: u32,
}

/// Parameters of the translation layer, except its geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationSpecification {
    /// Logical capacity that the host sees, in mapping units.
    pub logical_units: u32,
    /// Policy that chooses victims of garbage collection.
    pub policy: VictimPolicy,
    /// Number of free superblocks below which garbage collection begins.
    pub soft_free_superblocks: u32,
    /// Number of free superblocks below which writes wait for garbage collection.
    pub hard_free_superblocks: u32,
    /// Difference of erase counts at which static wear levelling begins; `None` disables it.
    pub wear_threshold: Option<u32>,
    /// Maximum number of dies that erase at the same time.
    pub dies_erasing_max: u32,
    /// Precondition state: the way the drive was written before the run.
    pub precondition: PreconditionState,
    /// Number of mapping units that the preconditioning wrote.
    pub filled_share: u32,
    /// Whether power cuts are modelled. The drive then tracks the data of each mapping unit and the
    /// contents of the journal. An erase waits for the journal if recovery would need the data to
    /// be erased.
    pub models_power_cuts: bool,
}

/// Link between host and flash drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashLinkSpecification {
    /// Data rate toward the host, in bytes per second, limited by the link or the controller's own
    /// data path.
    pub read_bytes_per_s: f64,
    /// Data rate toward the drive, in bytes per second, limited by the link or the controller's own
    /// data path.
    pub write_bytes_per_s: f64,
    /// Whether both directions transfer at the same time.
    pub is_full_duplex: bool,
    /// Time of each command on the link, in addition to its data.
    pub command_overhead: Time,
}

/// Effect of a cache flush on other commands in the drive's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashFlushOrder {
    /// The flush runs alone in the queue: FLUSH CACHE of SATA.
    DrainsQueue,
    /// The flush queues like other commands: NVMe.
    QueuesWrites,
}

/// Host interface of a flash drive: queue, controller times and link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterfaceSpecification {
    /// Maximum number of commands in flight in the drive.
    pub queue_depth: u32,
    /// Time from the doorbell write until the controller has the command.
    pub submission_time: Time,
    /// Time for which each command occupies the controller. Its inverse is the maximum command
    /// rate.
    pub command_time: Time,
    /// Latency of a command in the controller. Commands overlap in it.
    pub processing_time_per_unit: Time,
    /// Maximum number of mapping units per command. Longer requests are split.
    pub request_units_max: u32,
    /// Link between host and drive.
    pub link: FlashLinkSpecification,
    /// Time from the last data until the host is notified of the completion.
    pub completion_time: Time,
    /// Effect of a flush on other commands.
    pub flush_order: FlashFlushOrder,
}

/// Specification of a flash drive.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSpecification {
    /// Channels, dies and the structure of dies.
    pub geometry: FlashGeometry,
    /// Durations of sensing, programming and erasing in a die.
    pub times: ArrayTimes,
    /// SLC cache, if the drive has one.
    pub slc_cache: Option<SlcCacheSpecification>,
    /// Whether the medium is written in place, as in 3D XPoint: each logical unit has a fixed place
    /// and is never erased.
    pub writes_in_place: bool,
    /// Whether each plane can sense a page independently of the others.
    pub has_independent_planes: bool,
    /// Whether a plane can sense a page while its last page crosses the channel (cache read).
    pub has_cache_read: bool,
    /// Whether a die can receive the data of a program during the previous program (cache program).
    pub has_cache_program: bool,
    /// Whether a die can sense while it receives the data of a program.
    pub allows_reads_during_data_in: bool,
    /// Suspension of programs and erases for reads; `None` if the drive does not suspend.
    pub suspension: Option<SuspensionSpecification>,
    /// Data rate and command time of each channel.
    pub channel: ChannelSpecification,
    /// Time to correct errors of a page read.
    pub decode_time: Time,
    /// Share of page reads that need a retry.
    pub retry_share: f64,
    /// Write buffer. Without one, a write completes when it is programmed.
    pub buffer: Option<BufferSpecification>,
    /// Journal of map changes.
    pub journal: JournalSpecification,
    /// Number of map pages in memory; `None` keeps the entire map in memory.
    pub map_cache_pages: Option<u32>,
    /// Time of a lookup in the map memory before a read. Relevant for a map in host memory.
    pub map_lookup_time: Time,
    /// Time to trim the entries of one map page.
    pub trim_page_time: Time,
    /// Parameters of the translation layer.
    pub translation: TranslationSpecification,
    /// Parameters of the host interface.
    pub interface: InterfaceSpecification,
}

/// Reason why the specification of a flash drive is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum FlashError {
    /// Error in the parameters of the translation layer.
    TranslationLayer(ImpossibleSpecification),
    /// A count, whose key is given, is 0.
    ZeroValue(&'static str),
    /// The page size in bytes is not a multiple of the mapping unit.
    PageSize(u32),
    /// The number of sensing times differs from the number of pages per word line.
    SensingTimeCount {
        /// Number of sensing times in the specification.
        times: usize,
        /// Number of pages per word line in the specification.
        pages: u32,
    },
    /// The buffer is smaller than one program of a die.
    BufferTooSmall {
        /// Capacity of the buffer, in mapping units.
        units: u32,
        /// Size of a program, in mapping units.
        program_units: u32,
    },
    /// The medium is written in place, but its programs have this many mapping units instead of
    /// one.
    InPlaceUnsupported(u32),
    /// The drive has more physical units than a 32-bit number can count.
    TooLarge(u64),
    /// Power cuts are modelled for a medium written in place, which has no journal.
    PowerCutsInPlace,
}

impl std::fmt::Display for FlashError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TranslationLayer(error) => error.fmt(formatter),
            Self::ZeroValue(value) => write!(formatter, "`{value}` is 0, and must be at least 1"),
            Self::PageSize(value) => write!(
                formatter,
                "pages of {value} bytes do not hold whole mapping units of 4096 bytes"
            ),
            Self::SensingTimeCount { times, pages } => write!(
                formatter,
                "{times} read times for {pages} pages per word line"
            ),
            Self::BufferTooSmall {
                units,
                program_units,
            } => write!(
                formatter,
                "a write buffer of {units} mapping units is too small: a die programs {program_units} at once"
            ),
            Self::InPlaceUnsupported(value) => write!(
                formatter,
                "a program of {value} mapping units: a drive that overwrites data in place programs one at a time"
            ),
            Self::TooLarge(value) => write!(
                formatter,
                "{value} mapping units of 4096 bytes: the model addresses at most 4294967294"
            ),
            Self::PowerCutsInPlace => formatter
                .write_str("power cuts are not modelled for a drive that overwrites data in place"),
        }
    }
}

impl std::error::Error for FlashError {}

impl From<ImpossibleSpecification> for FlashError {
    fn from(error: ImpossibleSpecification) -> Self {
        Self::TranslationLayer(error)
    }
}

impl FlashSpecification {
    pub(super) fn translation_geometry(&self) -> Geometry {
        Geometry {
            superblock_count: self.geometry.blocks_per_plane,
            die_count: self.geometry.die_count(),
            units_per_program: self.geometry.program_units(),
            rows_per_superblock: self.geometry.word_lines_per_block,
        }
    }

    /// Returns the number of mapping units in a superblock: a block on every plane of every die.
    pub fn superblock_units(&self) -> u32 {
        let geometry = &self.geometry;
        geometry.die_count() * geometry.program_units() * geometry.word_lines_per_block
    }

    /// Returns the specification of the translation layer, whose random choices `seed` determines.
    pub(super) fn translation_specification(&self, seed: u64) -> diskperf_ftl::Specification {
        diskperf_ftl::Specification {
            geometry: self.translation_geometry(),
            logical_units: self.translation.logical_units,
            policy: self.translation.policy,
            separation: DataSeparation::MovedApart,
            stream_count: 1,
            soft_free_superblocks: self.translation.soft_free_superblocks,
            hard_free_superblocks: self.translation.hard_free_superblocks,
            wear_threshold_erases: self.translation.wear_threshold,
            seed,
        }
    }

    /// Returns the number of mapping units that the drive needs for itself: the journal's ring, and
    /// the map's pages if the map leaves memory.
    fn reserved_units(&self) -> u32 {
        let entries = UNIT_BYTES / 4;
        let pages = self.translation.logical_units.div_ceil(entries);
        self.journal.page_count + self.map_cache_pages.map_or(0, |_| pages)
    }

    /// Returns the channel transfer time for 0 to all mapping units of a page, including spare
    /// bytes.
    pub(super) fn transfer_times(&self) -> Vec<Time> {
        let geometry = &self.geometry;
        let spare = f64::from(geometry.page_spare_bytes) / f64::from(geometry.page_units());
        let unit_bytes = f64::from(UNIT_BYTES) + spare;
        let takes = |units: u32| {
            let bytes = f64::from(units) * unit_bytes;
            Time((bytes * 1e9 / self.channel.bytes_per_s + 0.5) as u64)
        };
        (0..=geometry.page_units()).map(takes).collect()
    }

    pub(super) fn translation_features(&self) -> Features {
        Features {
            system_units: self.reserved_units(),
            allocation: DieAllocation::PreferredDie,
            slc_cache: self.slc_cache.map(|cache| SlcCache {
                bits_per_cell: self.geometry.pages_per_word_line,
                fixed_superblocks: cache.fixed_superblocks,
                dynamic_superblocks: cache.dynamic_superblocks,
            }),
            parity_stripe_programs: None,
            tracks_power_cuts: self.translation.models_power_cuts,
            // What survives a power cut has an address.
            anonymous_precondition: !self.translation.models_power_cuts
                && !matches!(
                    self.translation.precondition,
                    PreconditionState::Fresh | PreconditionState::Sequential
                ),
        }
    }

    /// Validates the specification of the flash drive.
    ///
    /// # Errors
    ///
    /// [`FlashError`] with the first invalid parameter.
    pub fn validate(&self) -> Result<(), FlashError> {
        let geometry = &self.geometry;
        if geometry.page_bytes == 0 || !geometry.page_bytes.is_multiple_of(UNIT_BYTES) {
            return Err(FlashError::PageSize(geometry.page_bytes));
        }
        let counts = [
            ("channels", geometry.channel_count),
            ("dies_per_channel", geometry.dies_per_channel),
            ("planes", geometry.planes_per_die),
            ("blocks_per_plane", geometry.blocks_per_plane),
            ("word_lines", geometry.word_lines_per_block),
            ("pages_per_word_line", geometry.pages_per_word_line),
            ("queue_depth", self.interface.queue_depth),
            ("most_units", self.interface.request_units_max),
            ("journal_pages", self.journal.page_count),
            ("journal_changes_per_page", self.journal.changes_per_page),
            ("journal_programs", self.journal.programs_per_flush),
            ("dies_erasing", self.translation.dies_erasing_max),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(FlashError::ZeroValue(name));
        }
        let factors = [
            geometry.channel_count,
            geometry.dies_per_channel,
            geometry.planes_per_die,
            geometry.blocks_per_plane,
            geometry.word_lines_per_block,
            geometry.pages_per_word_line,
            geometry.page_units(),
        ];
        let units = (factors.iter()).fold(1u64, |product, factor| {
            product.saturating_mul(u64::from(*factor))
        });
        if units >= u64::from(u32::MAX) {
            return Err(FlashError::TooLarge(units));
        }
        let (times, pages) = (
            self.times.read_time_by_page.len(),
            geometry.pages_per_word_line,
        );
        if times != pages as usize {
            return Err(FlashError::SensingTimeCount { times, pages });
        }
        let program_units = geometry.program_units();
        if self.writes_in_place && program_units != 1 {
            return Err(FlashError::InPlaceUnsupported(program_units));
        }
        if self.writes_in_place && self.translation.models_power_cuts {
            return Err(FlashError::PowerCutsInPlace);
        }
        if let Some(buffer) = self
            .buffer
            .filter(|buffer| buffer.unit_count < program_units)
        {
            let units = buffer.unit_count;
            return Err(FlashError::BufferTooSmall {
                units,
                program_units,
            });
        }
        self.translation_specification(0)
            .check_with(&self.translation_features())?;
        Ok(())
    }

    /// Returns the memory of the drive's tables before the run, in bytes: map, reverse map and one
    /// bit for each mapping unit written in order. Other tables grow when they are used.
    pub fn memory_bytes(&self) -> u64 {
        let written = match self.translation.precondition {
            PreconditionState::Sequential => u64::from(self.translation.filled_share),
            PreconditionState::Fresh
            | PreconditionState::Random
            | PreconditionState::HotCold { .. }
            | PreconditionState::Zipf { .. } => 0,
        };
        written * 8 + written / 8
    }

    /// Tests whether a die can sense a host read while program data arrive. This suspends a program
    /// that has not begun, so it requires a die that suspends programs.
    pub(super) fn suspends_data_in_for_reads(&self) -> bool {
        self.allows_reads_during_data_in
            && self.suspension.is_some_and(|rule| rule.suspensions_max > 0)
    }

    /// Reports whether the drive was written before the run.
    pub fn has_prior_writes(&self) -> bool {
        self.translation.precondition != PreconditionState::Fresh
    }

    /// Returns the capacity of the write buffer, in bytes.
    pub fn buffer_bytes(&self) -> u64 {
        let units = self.buffer.map_or(0, |buffer| buffer.unit_count);
        u64::from(units) * u64::from(UNIT_BYTES)
    }
}
