//! Access pattern, block sizes, random distributions and zones of a job.

use std::sync::Arc;

use super::{Direction, PerDirection};

/// Kind of access of a job (fio's option `rw`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadWriteMode {
    /// Reads in ascending order (`rw=read`).
    #[default]
    Read,
    /// Writes in ascending order (`rw=write`).
    Write,
    /// Trims in ascending order (`rw=trim`).
    Trim,
    /// Reads at random offsets (`rw=randread`).
    RandomRead,
    /// Writes at random offsets (`rw=randwrite`).
    RandomWrite,
    /// Trims at random offsets (`rw=randtrim`).
    RandomTrim,
    /// Sequential reads and writes (`rw=rw`). Each direction advances from the start of the file
    /// independently.
    Mixed,
    /// Random reads and writes (`rw=randrw`). Both directions share one random map.
    RandomMixed,
    /// Sequential pairs of a trim and a write of the same block (`rw=trimwrite`).
    TrimWrite,
    /// Random pairs of a trim and a write of the same block (`rw=randtrimwrite`).
    RandomTrimWrite,
}

impl ReadWriteMode {
    /// Returns the directions (read, write, trim) of this kind of access, in fio's order.
    pub fn directions(self) -> &'static [Direction] {
        use Direction::{Read, Trim, Write};
        match self {
            ReadWriteMode::Read | ReadWriteMode::RandomRead => &[Read],
            ReadWriteMode::Write | ReadWriteMode::RandomWrite => &[Write],
            ReadWriteMode::Trim | ReadWriteMode::RandomTrim => &[Trim],
            ReadWriteMode::Mixed | ReadWriteMode::RandomMixed => &[Read, Write],
            ReadWriteMode::TrimWrite | ReadWriteMode::RandomTrimWrite => &[Write, Trim],
        }
    }

    /// Returns the first direction of this kind of access, in fio's order.
    pub fn first_direction(self) -> Direction {
        self.directions()[0]
    }

    /// Reports whether this kind of access includes a direction (read, write or trim).
    pub fn includes(self, direction: Direction) -> bool {
        self.directions().contains(&direction)
    }

    /// Reports whether this kind of access uses random offsets.
    pub fn is_random(self) -> bool {
        match self {
            ReadWriteMode::Read
            | ReadWriteMode::Write
            | ReadWriteMode::Trim
            | ReadWriteMode::Mixed
            | ReadWriteMode::TrimWrite => false,
            ReadWriteMode::RandomRead
            | ReadWriteMode::RandomWrite
            | ReadWriteMode::RandomTrim
            | ReadWriteMode::RandomMixed
            | ReadWriteMode::RandomTrimWrite => true,
        }
    }
}

/// Access pattern of a job: directions and order of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPattern {
    /// Kind of access (`rw`): directions, and sequential or random.
    pub access: ReadWriteMode,
    /// I/Os per random offset, N of `rw=randread:N`; the default 1 draws an offset for each I/O.
    pub sequence_length: u32,
    /// Bytes added to each sequential offset, N of `rw=read:N`; 0 by default.
    pub skip_bytes: i64,
    /// Offsets of the I/Os between two random offsets (`rw_sequencer`).
    pub offset_sequencer: OffsetSequencer,
    /// Share of reads in percent, drawn for each I/O: `rwmixread`, or 100 less `rwmixwrite`.
    pub read_percent: u8,
}

/// Order of the I/Os between two random offsets (`rw_sequencer`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetSequencer {
    /// Sequential: each I/O starts where the previous one ended.
    #[default]
    Sequential,
    /// Identical: each I/O repeats the previous offset.
    Identical,
}

impl Default for AccessPattern {
    fn default() -> AccessPattern {
        AccessPattern {
            access: ReadWriteMode::default(),
            sequence_length: 1,
            skip_bytes: 0,
            offset_sequencer: OffsetSequencer::default(),
            read_percent: 50,
        }
    }
}

/// Block size with its share of all I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedSize {
    /// Size of the block, in bytes.
    pub bytes: u64,
    /// Share of I/Os that have this block size, in percent.
    pub percent: u32,
}

/// Block sizes of a job: `bs`, `bsrange`, `bssplit` and related options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Fixed block size (`bs`) of each direction, in bytes.
    pub fixed_bytes: PerDirection<u64>,
    /// Range of block sizes (`bsrange`) of each direction, in bytes. Sizes are multiples of the
    /// lower bound.
    pub range_bytes: PerDirection<Option<(u64, u64)>>,
    /// Block sizes with their shares (`bssplit`), for each direction; `None` without the option.
    pub weighted_sizes: PerDirection<Option<Arc<[WeightedSize]>>>,
    /// Alignment of offsets (`blockalign`) for each direction, in bytes; 0 if the option is not
    /// given.
    pub offset_align_bytes: PerDirection<u64>,
    /// Flag `bs_unaligned`: block sizes of a range need not be multiples of its lower bound.
    pub allows_unaligned: bool,
    /// Flag `bs_is_seq_rand`: the block size of reads applies to sequential I/O and that of writes
    /// to random I/O.
    pub is_by_sequence: bool,
}

impl Default for BlockSizes {
    fn default() -> BlockSizes {
        BlockSizes {
            fixed_bytes: PerDirection::uniform(4096),
            range_bytes: PerDirection::default(),
            weighted_sizes: PerDirection::default(),
            offset_align_bytes: PerDirection::default(),
            allows_unaligned: false,
            is_by_sequence: false,
        }
    }
}

/// Block sizes of the I/Os of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizeChoice {
    /// Same block size for all I/Os, in bytes.
    Fixed(u64),
    /// Uniform choice among the multiples of the smallest size, up to the largest.
    Range {
        /// Smallest block size in bytes; all sizes are multiples of this one.
        smallest: u64,
        /// Upper bound of the random block sizes, in bytes.
        largest: u64,
    },
    /// Random choice among listed block sizes, weighted by their shares.
    Weighted(Arc<[WeightedSize]>),
}

impl BlockSizeChoice {
    /// Returns the smallest and the largest block size, in bytes.
    pub fn bounds_bytes(&self) -> (u64, u64) {
        match self {
            BlockSizeChoice::Fixed(bytes) => (*bytes, *bytes),
            BlockSizeChoice::Range { smallest, largest } => (*smallest, *largest),
            BlockSizeChoice::Weighted(parts) => {
                let sizes = || parts.iter().map(|part| part.bytes);
                (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
            }
        }
    }

    /// Returns the block size in bytes, if all I/Os have the same one.
    pub fn single_bytes(&self) -> Option<u64> {
        let (smallest, largest) = self.bounds_bytes();
        (smallest == largest).then_some(smallest)
    }
}

impl BlockSizes {
    /// Returns the block sizes of a direction. `bssplit` takes precedence over `bsrange`, and
    /// `bsrange` over `bs`, whatever their order in the file.
    pub fn choice(&self, direction: Direction) -> BlockSizeChoice {
        if let Some(split) = self.weighted_sizes.get(direction) {
            return BlockSizeChoice::Weighted(Arc::clone(split));
        }
        match *self.range_bytes.get(direction) {
            Some((smallest, largest)) => BlockSizeChoice::Range { smallest, largest },
            None => BlockSizeChoice::Fixed(*self.fixed_bytes.get(direction)),
        }
    }
}

/// Zone of a file with its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributionZone {
    /// Share of the accesses that fall into the zone, in percent.
    pub access_percent: u8,
    /// Length of the zone: percent of the file for `zoned`, bytes for `zoned_abs`.
    pub area_extent: u64,
}

/// Distribution of random offsets (`random_distribution`).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OffsetDistribution {
    /// Uniform distribution (`random`): all blocks are equally likely.
    #[default]
    Uniform,
    /// Zipf distribution (`zipf:theta`). Popular blocks are scattered over the file.
    Zipf {
        /// Exponent of the Zipf distribution; 1 is not allowed.
        theta: f64,
        /// Position of the most popular block, as a share of the file; `None` scatters the popular
        /// blocks.
        center: Option<f64>,
    },
    /// Pareto distribution (`pareto:h`). Popular blocks are scattered over the file.
    Pareto {
        /// Shape parameter of the Pareto distribution, between 0 and 1.
        h: f64,
        /// Position of the most popular block, as a share of the file; `None` scatters the popular
        /// blocks.
        center: Option<f64>,
    },
    /// Normal distribution of offsets over the file (`normal:deviation`).
    Normal {
        /// Standard deviation, in percent of the file.
        deviation: f64,
        /// Position of the most popular block, as a share of the file; `None` scatters the popular
        /// blocks.
        center: Option<f64>,
    },
    /// Consecutive zones whose lengths are percentages of the file (`zoned`).
    Zoned(Arc<[DistributionZone]>),
    /// Consecutive zones whose lengths are in bytes (`zoned_abs`).
    ZonedBytes(Arc<[DistributionZone]>),
}

/// Generator of random offsets (`random_generator`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGenerator {
    /// 32-bit Tausworthe generator. A random map records the blocks already used.
    #[default]
    Tausworthe,
    /// Linear feedback shift register. Visits each block once without a random map; needs a single
    /// block size.
    Lfsr,
    /// 64-bit Tausworthe generator, for files of more than 2^32 blocks.
    Tausworthe64,
}

/// Options for random offsets, seeds and the random map.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomAccess {
    /// Share of random offsets in a random job, in percent, for each direction
    /// (`percentage_random`).
    pub random_percent: PerDirection<u8>,
    /// Flag `norandommap`: no random map, so blocks may repeat before all blocks have been used.
    pub has_no_map: bool,
    /// Flag `softrandommap`: the job runs without a random map if memory is short.
    pub may_drop_map: bool,
    /// Generator of random offsets (`random_generator`).
    pub generator: RandomGenerator,
    /// Distribution of random offsets of each direction (`random_distribution`).
    pub distribution: PerDirection<OffsetDistribution>,
    /// Seed of the random generators (`randseed`).
    pub seed: u64,
    /// Flag `randrepeat`: each run repeats the same random offsets. `allrandrepeat` covers the
    /// other random choices.
    pub is_repeatable: bool,
    /// Flag `allrandrepeat`: each run repeats all random choices, not only the offsets.
    pub is_repeatable_for_all: bool,
}

impl Default for RandomAccess {
    fn default() -> RandomAccess {
        RandomAccess {
            random_percent: PerDirection::uniform(100),
            has_no_map: false,
            may_drop_map: false,
            generator: RandomGenerator::default(),
            distribution: PerDirection::default(),
            seed: 0x89,
            is_repeatable: true,
            is_repeatable_for_all: false,
        }
    }
}

/// Selection of the next file of a job with several files (`file_service_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileServiceOrder {
    /// Round robin: the job moves through its files in turn (`roundrobin`).
    #[default]
    RoundRobin,
    /// Files in sequence: a job finishes one file before it starts the next.
    Sequential,
    /// Random file, drawn from a uniform distribution.
    Random,
    /// Random file, drawn from a Zipf distribution.
    Zipf {
        /// Exponent of the Zipf distribution; 1 is not allowed.
        theta: f64,
    },
    /// Random file, drawn from a Pareto distribution.
    Pareto {
        /// Shape parameter of the Pareto distribution, between 0 and 1.
        h: f64,
    },
    /// Random file, drawn from a normal distribution.
    Normal {
        /// Standard deviation, in percent of the number of files.
        deviation: f64,
    },
}

/// Selection of files and I/Os per selected file (`file_service_type=ORDER:N`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileService {
    /// Order in which the job selects its files.
    pub order: FileServiceOrder,
    /// I/Os on one file before the job selects the next file.
    pub ios_per_file: u32,
}

impl Default for FileService {
    fn default() -> FileService {
        FileService {
            order: FileServiceOrder::default(),
            ios_per_file: 1,
        }
    }
}

/// Zone mode of a job (`zonemode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneMode {
    /// Mode without zones: the job uses its whole region.
    #[default]
    None,
    /// Fixed number of bytes in each zone, followed by a gap.
    Strided,
    /// Zoned block device (`zbd`): each zone is written sequentially from its start to its
    /// capacity.
    WritePointers,
}

/// Zone mode (`zonemode`) and zone sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Zone mode: none, strided or sequential-write zones.
    pub mode: ZoneMode,
    /// Bytes transferred in one zone before the job moves to the next (`zonesize`).
    pub size_bytes: u64,
    /// Zone length in bytes (`zonerange`); 0 means the value of `zonesize`.
    pub range_bytes: u64,
    /// Gap between two zones in bytes (`zoneskip`).
    pub skip_bytes: u64,
}

/// Options for zones that are written sequentially (`zonemode=zbd`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WritePointers {
    /// Writable bytes of a zone (`zonecapacity`); 0 means the whole zone.
    pub capacity_bytes: u64,
    /// Flag `read_beyond_wp`: reads may go beyond the write pointer of a zone.
    pub may_read_beyond: bool,
    /// Maximum number of open zones of a file (`max_open_zones`); 0 means no limit.
    pub open_zones_max: u32,
    /// Maximum number of open zones of one job (`job_max_open_zones`); 0 means no limit.
    pub job_open_zones_max: u32,
    /// Share of the job's bytes that must be written before the job resets zones that are not full
    /// (`zone_reset_threshold`).
    pub reset_threshold: f64,
    /// Share of writes that reset their zone once the reset threshold is reached
    /// (`zone_reset_frequency`).
    pub reset_rate: f64,
}
