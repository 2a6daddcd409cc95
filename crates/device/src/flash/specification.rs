//! What a flash drive is built of, and why there can be none like that.

use diskperf_ftl::{
    Allocation, Features, Geometry, Impossible, Past, Policy, Separation, SlcCache,
};
use diskperf_sim::Time;

/// Bytes that an entry of the map is for, and a sector as the host counts them.
pub const UNIT_BYTES: u32 = 4096;

/// A part of the drive that holds one bit a cell, and takes writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpecification {
    /// Sensing a page there.
    pub read: Time,
    /// Programming a page of every plane.
    pub program: Time,
    /// Superblocks that are always of it.
    pub fixed_superblocks: u32,
    /// The most that join it while the drive has unmapped units.
    pub dynamic_superblocks: u32,
    /// How long nothing is asked of the drive before it folds the cache into the rest.
    pub idle: Time,
}

/// How dies and what is in them are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashGeometry {
    /// Channels, each with dies of its own.
    pub channels: u32,
    /// Dies on each, of all its packages.
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    /// Word lines of a block, which are programmed at once.
    pub word_lines: u32,
    /// Pages of a word line: bits of a cell.
    pub pages_per_word_line: u32,
    /// Data of a page.
    pub page_bytes: u32,
    /// Check bytes of a page, which cross the channel too.
    pub page_spare_bytes: u32,
}

impl FlashGeometry {
    /// All dies.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Units of a page.
    pub fn page_units(&self) -> u32 {
        self.page_bytes / UNIT_BYTES
    }

    /// Units that a die programs at once.
    pub fn program_units(&self) -> u32 {
        self.planes * self.pages_per_word_line * self.page_units()
    }
}

/// What the arrays of a die take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayTimes {
    /// Sensing a page, for each page of a word line.
    pub read: Vec<Time>,
    /// Programming a word line of every plane.
    pub program: Time,
    /// Erasing a block of every plane.
    pub erase: Time,
}

/// How programs and erases stop for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// From a read's coming until a program stands still.
    pub program: Time,
    /// The same of an erase.
    pub erase: Time,
    /// What going on takes.
    pub resume: Time,
    /// How often one operation stops; then it runs through.
    pub most: u32,
}

/// The way between controller and dies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelSpecification {
    /// What it carries.
    pub bytes_per_s: f64,
    /// Command and address of an operation.
    pub command: Time,
}

/// What takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpecification {
    /// Units that it holds.
    pub units: u32,
    /// It survives a power cut: what is in it is durable.
    pub protected: bool,
}

/// How the drive makes changes of its map durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSpecification {
    /// Pages of its ring.
    pub pages: u32,
    /// Changes that one page holds.
    pub changes_per_page: u32,
    /// Programming a word line of its blocks, which may have fewer bits a cell.
    pub program: Time,
    /// Programs, one after the other, that make what was changed durable.
    pub programs: u32,
}

/// The translation layer's parameters beside geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSpecification {
    /// Units that the host can map.
    pub logical_units: u32,
    /// How victims are chosen.
    pub policy: Policy,
    /// Below this many free superblocks, collection begins.
    pub soft_free: u32,
    /// Below this many free superblocks, writes wait for collection.
    pub hard_free: u32,
    /// Static wear levelling begins when erases differ by this much.
    pub wear_threshold: Option<u32>,
    /// Dies that erase at the same time.
    pub dies_erasing: u32,
    /// How the drive was written before.
    pub past: Past,
    /// Units that this past wrote.
    pub filled: u32,
    /// Keep account of what survives a power cut: of the data of each unit, and of what the
    /// journal has. An erase then waits for the journal where a scan would need what it
    /// erases.
    pub power_cuts: bool,
}

/// Between host and drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpecification {
    /// Data that it, and the controller's own way to it, carry toward the host.
    pub read_bytes_per_s: f64,
    /// The same toward the drive.
    pub write_bytes_per_s: f64,
    /// Whether both ways are at the same time.
    pub full_duplex: bool,
    /// What each command keeps it besides.
    pub command: Time,
}

/// What a flush is to the commands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOrder {
    /// None is under way beside it: FLUSH CACHE of SATA.
    Drains,
    /// It is one among them: NVMe.
    Queues,
}

/// How commands come and end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterfaceSpecification {
    /// Commands that the drive takes at once.
    pub queue_depth: u32,
    /// From the doorbell until the controller has the command.
    pub submission: Time,
    /// What each command keeps the controller: it takes none faster.
    pub command: Time,
    /// How long a command takes through the controller, with others beside it.
    pub processing: Time,
    /// Units that one command moves: longer requests are so many commands.
    pub most_units: u32,
    /// The link.
    pub link: LinkSpecification,
    /// From the last data until the host knows.
    pub completion: Time,
    /// What a flush is.
    pub flush: FlushOrder,
}

/// A flash drive.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSpecification {
    /// Dies and what is in them.
    pub geometry: FlashGeometry,
    /// What their arrays take.
    pub times: ArrayTimes,
    /// The part of one bit a cell.
    pub cache: Option<CacheSpecification>,
    /// Whether a unit is always where its number says: written in place, never erased, as
    /// in 3D XPoint.
    pub in_place: bool,
    /// Whether each plane senses by itself.
    pub independent_planes: bool,
    /// Whether a plane senses while its last page crosses the channel.
    pub cache_read: bool,
    /// Whether a die takes the data of a program while it works on the one before.
    pub cache_program: bool,
    /// Whether a die senses while data of a program come to it.
    pub reads_during_data_in: bool,
    /// How programs and erases stop for reads, if they do.
    pub suspension: Option<Suspension>,
    /// Channels.
    pub channel: ChannelSpecification,
    /// Correcting errors of what was read.
    pub decode: Time,
    /// The share of page reads that are done again.
    pub retry_share: f64,
    /// What takes writes; none: a write is done when it is programmed.
    pub buffer: Option<BufferSpecification>,
    /// The journal.
    pub journal: JournalSpecification,
    /// Pages of the map that are in memory; none: all of them.
    pub map_cache_pages: Option<u32>,
    /// Looking an entry up in what is in memory, before a read: of memory of the host's.
    pub map_lookup: Time,
    /// Forgetting the entries of a page of the map.
    pub trim_page: Time,
    /// The translation layer.
    pub layer: LayerSpecification,
    /// The interface.
    pub interface: InterfaceSpecification,
}

/// Why no flash drive is like that.
#[derive(Clone, Debug, PartialEq)]
pub enum FlashError {
    /// Of the translation layer.
    Layer(Impossible),
    /// A count that is not there.
    Zero(&'static str),
    /// Pages do not hold whole units.
    Page(u32),
    /// Not a time for each page.
    Times {
        /// Those that there are.
        times: usize,
        /// Those that there should be.
        pages: u32,
    },
    /// The buffer does not hold what dies program at once.
    Buffer {
        /// Of the buffer.
        units: u32,
        /// Of a program.
        program_units: u32,
    },
    /// Written in place, but not as a unit at a time.
    InPlace(u32),
    /// More than physical units are counted by.
    Large(u64),
    /// What is written in place has no journal.
    PowerCutsInPlace,
}

impl std::fmt::Display for FlashError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Layer(error) => error.fmt(formatter),
            Self::Zero(value) => write!(formatter, "`{value}` is 0, and must be at least 1"),
            Self::Page(value) => write!(
                formatter,
                "pages of {value} bytes: units of 4096 do not fit into them"
            ),
            Self::Times { times, pages } => write!(
                formatter,
                "{times} times of reading for {pages} pages of a word line"
            ),
            Self::Buffer {
                units,
                program_units,
            } => write!(
                formatter,
                "a buffer of {units} units: a die programs {program_units} at once"
            ),
            Self::InPlace(value) => write!(
                formatter,
                "programs of {value} units in place: one each is what there is"
            ),
            Self::Large(value) => write!(
                formatter,
                "{value} units of 4096 bytes: up to 4294967294 are counted"
            ),
            Self::PowerCutsInPlace => formatter
                .write_str("power cuts of a drive that is written in place are not modelled"),
        }
    }
}

impl std::error::Error for FlashError {}

impl From<Impossible> for FlashError {
    fn from(error: Impossible) -> Self {
        Self::Layer(error)
    }
}

impl FlashSpecification {
    /// Geometry as the translation layer has it.
    pub(super) fn layer_geometry(&self) -> Geometry {
        Geometry {
            superblocks: self.geometry.blocks,
            dies: self.geometry.dies(),
            program_units: self.geometry.program_units(),
            rows: self.geometry.word_lines,
        }
    }

    /// Units of a block of every plane of every die.
    pub fn layer_superblock_units(&self) -> u32 {
        let geometry = &self.geometry;
        geometry.dies() * geometry.program_units() * geometry.word_lines
    }

    /// Of the translation layer, whose choices are drawn by `seed`.
    pub(super) fn layer_specification(&self, seed: u64) -> diskperf_ftl::Specification {
        diskperf_ftl::Specification {
            geometry: self.layer_geometry(),
            logical_units: self.layer.logical_units,
            policy: self.layer.policy,
            separation: Separation::Apart,
            streams: 1,
            soft_free: self.layer.soft_free,
            hard_free: self.layer.hard_free,
            wear_threshold: self.layer.wear_threshold,
            seed,
        }
    }

    /// Units of the drive's own: the journal's ring, and the map's pages where they leave
    /// memory.
    fn system_units(&self) -> u32 {
        let entries = UNIT_BYTES / 4;
        let pages = self.layer.logical_units.div_ceil(entries);
        self.journal.pages + self.map_cache_pages.map_or(0, |_| pages)
    }

    /// What so many units of a page take on a channel, with their check bytes: from none to
    /// all of a page.
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

    /// What the translation layer does besides.
    pub(super) fn features(&self) -> Features {
        Features {
            system_units: self.system_units(),
            allocation: Allocation::NextFree,
            cache: self.cache.map(|cache| SlcCache {
                bits: self.geometry.pages_per_word_line,
                fixed_superblocks: cache.fixed_superblocks,
                dynamic_superblocks: cache.dynamic_superblocks,
            }),
            parity: None,
            power_cuts: self.layer.power_cuts,
            // What survives a power cut has an address.
            anonymous: !self.layer.power_cuts
                && !matches!(self.layer.past, Past::Fresh | Past::Sequential),
        }
    }

    /// Whether there can be such a drive.
    ///
    /// # Errors
    ///
    /// [`FlashError`] with the first number that there is none with.
    pub fn check(&self) -> Result<(), FlashError> {
        let geometry = &self.geometry;
        if geometry.page_bytes == 0 || !geometry.page_bytes.is_multiple_of(UNIT_BYTES) {
            return Err(FlashError::Page(geometry.page_bytes));
        }
        let counts = [
            ("channels", geometry.channels),
            ("dies_per_channel", geometry.dies_per_channel),
            ("planes", geometry.planes),
            ("blocks_per_plane", geometry.blocks),
            ("word_lines", geometry.word_lines),
            ("pages_per_word_line", geometry.pages_per_word_line),
            ("queue_depth", self.interface.queue_depth),
            ("most_units", self.interface.most_units),
            ("journal_pages", self.journal.pages),
            ("journal_changes_per_page", self.journal.changes_per_page),
            ("journal_programs", self.journal.programs),
            ("dies_erasing", self.layer.dies_erasing),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(FlashError::Zero(name));
        }
        let factors = [
            geometry.channels,
            geometry.dies_per_channel,
            geometry.planes,
            geometry.blocks,
            geometry.word_lines,
            geometry.pages_per_word_line,
            geometry.page_units(),
        ];
        let units = (factors.iter()).fold(1u64, |product, factor| {
            product.saturating_mul(u64::from(*factor))
        });
        if units >= u64::from(u32::MAX) {
            return Err(FlashError::Large(units));
        }
        let (times, pages) = (self.times.read.len(), geometry.pages_per_word_line);
        if times != pages as usize {
            return Err(FlashError::Times { times, pages });
        }
        let program_units = geometry.program_units();
        if self.in_place && program_units != 1 {
            return Err(FlashError::InPlace(program_units));
        }
        if self.in_place && self.layer.power_cuts {
            return Err(FlashError::PowerCutsInPlace);
        }
        if let Some(buffer) = self.buffer.filter(|buffer| buffer.units < program_units) {
            let units = buffer.units;
            return Err(FlashError::Buffer {
                units,
                program_units,
            });
        }
        self.layer_specification(0).check_with(&self.features())?;
        Ok(())
    }

    /// Memory of its tables before programs touch it: the map, its inverse and a bit, of
    /// each unit that was written in order. Others take memory when they are touched.
    pub fn memory_bytes(&self) -> u64 {
        let written = match self.layer.past {
            Past::Sequential => u64::from(self.layer.filled),
            Past::Fresh | Past::Random | Past::HotCold { .. } | Past::Zipf { .. } => 0,
        };
        written * 8 + written / 8
    }

    /// Whether a read for the host is sensed while data of a program come to its die: that is
    /// how a program stops that has not begun, which a die that never stops one does not do.
    pub(super) fn reads_stop_data_in(&self) -> bool {
        self.reads_during_data_in && self.suspension.is_some_and(|rule| rule.most > 0)
    }

    /// Whether it was written before anything is asked of it.
    pub fn was_written(&self) -> bool {
        self.layer.past != Past::Fresh
    }

    /// What its buffer holds, in bytes.
    pub fn buffer_bytes(&self) -> u64 {
        let units = self.buffer.map_or(0, |buffer| buffer.units);
        u64::from(units) * u64::from(UNIT_BYTES)
    }
}
