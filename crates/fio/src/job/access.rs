//! Where I/O goes, and how large it is.

use std::sync::Arc;

use super::{Direction, PerDirection};

/// `rw`: what a job does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// `read`.
    #[default]
    Read,
    /// `write`.
    Write,
    /// `trim`.
    Trim,
    /// `randread`.
    RandomRead,
    /// `randwrite`.
    RandomWrite,
    /// `randtrim`.
    RandomTrim,
    /// `rw`: reads and writes each walk from the front.
    Mixed,
    /// `randrw`: both share one map.
    RandomMixed,
    /// `trimwrite`: each block is trimmed, then written.
    TrimWrite,
    /// `randtrimwrite`.
    RandomTrimWrite,
}

impl Access {
    /// The directions, in fio's order.
    pub fn directions(self) -> &'static [Direction] {
        use Direction::{Read, Trim, Write};
        match self {
            Access::Read | Access::RandomRead => &[Read],
            Access::Write | Access::RandomWrite => &[Write],
            Access::Trim | Access::RandomTrim => &[Trim],
            Access::Mixed | Access::RandomMixed => &[Read, Write],
            Access::TrimWrite | Access::RandomTrimWrite => &[Write, Trim],
        }
    }

    /// The first of its directions.
    pub fn first(self) -> Direction {
        self.directions()[0]
    }

    /// Whether it does this.
    pub fn does(self, direction: Direction) -> bool {
        self.directions().contains(&direction)
    }

    /// Whether the next offset is drawn.
    pub fn is_random(self) -> bool {
        match self {
            Access::Read | Access::Write | Access::Trim | Access::Mixed | Access::TrimWrite => {
                false
            }
            Access::RandomRead
            | Access::RandomWrite
            | Access::RandomTrim
            | Access::RandomMixed
            | Access::RandomTrimWrite => true,
        }
    }
}

/// What a job does, and where the next I/O is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// `rw`.
    pub access: Access,
    /// `rw=randread:N`: an offset is drawn for every Nth I/O; 1 by default.
    pub sequence: u32,
    /// `rw=read:N`: bytes that are added to each sequential offset; 0 by default.
    pub skip_bytes: i64,
    /// `rw_sequencer`: what the I/Os between two drawn offsets do.
    pub sequencer: Sequencer,
    /// `rwmixread`, or 100 less `rwmixwrite`: the share of reads in percent, drawn for
    /// each I/O.
    pub read_percent: u8,
}

/// `rw_sequencer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// They follow one another.
    #[default]
    Sequential,
    /// They repeat the offset.
    Identical,
}

impl Default for Pattern {
    fn default() -> Pattern {
        Pattern {
            access: Access::default(),
            sequence: 1,
            skip_bytes: 0,
            sequencer: Sequencer::default(),
            read_percent: 50,
        }
    }
}

/// A block size and its share of all I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weighted {
    /// In bytes.
    pub bytes: u64,
    /// In percent.
    pub percent: u32,
}

/// `bs`, `bsrange`, `bssplit` and what belongs to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// `bs`, in bytes.
    pub bytes: PerDirection<u64>,
    /// `bsrange`, in bytes: multiples of the smaller bound.
    pub range: PerDirection<Option<(u64, u64)>>,
    /// `bssplit`.
    pub split: PerDirection<Option<Arc<[Weighted]>>>,
    /// `blockalign`, in bytes; 0 where it is not given.
    pub align: PerDirection<u64>,
    /// `bs_unaligned`: any size in a range.
    pub unaligned: bool,
    /// `bs_is_seq_rand`: reads' sizes are of sequential I/O, writes' of random.
    pub by_sequence: bool,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            bytes: PerDirection::all(4096),
            range: PerDirection::default(),
            split: PerDirection::default(),
            align: PerDirection::default(),
            unaligned: false,
            by_sequence: false,
        }
    }
}

/// The sizes of a direction's I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same, in bytes.
    Fixed(u64),
    /// Multiples of the smallest from it to the largest, each as likely.
    Range {
        /// In bytes.
        smallest: u64,
        /// In bytes.
        largest: u64,
    },
    /// Drawn by their shares.
    Split(Arc<[Weighted]>),
}

impl Sizes {
    /// The smallest and the largest, in bytes.
    pub fn bounds(&self) -> (u64, u64) {
        match self {
            Sizes::Fixed(bytes) => (*bytes, *bytes),
            Sizes::Range { smallest, largest } => (*smallest, *largest),
            Sizes::Split(parts) => {
                let sizes = || parts.iter().map(|part| part.bytes);
                (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
            }
        }
    }

    /// The one size, if there is only one.
    pub fn only(&self) -> Option<u64> {
        let (smallest, largest) = self.bounds();
        (smallest == largest).then_some(smallest)
    }
}

impl Blocks {
    /// A direction's: a split goes before a range, and that before `bs`, wherever they
    /// stand.
    pub fn sizes(&self, direction: Direction) -> Sizes {
        if let Some(split) = self.split.get(direction) {
            return Sizes::Split(Arc::clone(split));
        }
        match *self.range.get(direction) {
            Some((smallest, largest)) => Sizes::Range { smallest, largest },
            None => Sizes::Fixed(*self.bytes.get(direction)),
        }
    }
}

/// A part of the file and its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Of the accesses.
    pub percent: u8,
    /// How much of the file: percent of `zoned`, bytes of `zoned_abs`.
    pub extent: u64,
}

/// `random_distribution`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// `random`: each block as likely.
    #[default]
    Uniform,
    /// `zipf:theta`. Ranks are scattered over the file.
    Zipf {
        /// Not 1.
        theta: f64,
        /// Where the hottest block is, as a share of the file: scattered without it.
        center: Option<f64>,
    },
    /// `pareto:h`, scattered too.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
    /// `normal:deviation`, in percent of the file.
    Normal {
        /// In percent.
        deviation: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
    /// `zoned`: extents in percent, one after the other.
    Zoned(Arc<[Zone]>),
    /// `zoned_abs`: extents in bytes.
    ZonedBytes(Arc<[Zone]>),
}

/// `random_generator`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generator {
    /// With a map of the blocks that were taken.
    #[default]
    Tausworthe,
    /// A shift register: each block once without a map, for one block size.
    Lfsr,
    /// In 64 bits, for more than 2^32 blocks.
    Tausworthe64,
}

/// What is random.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// `percentage_random`: how many of a random job's offsets are drawn.
    pub percent: PerDirection<u8>,
    /// `norandommap`: blocks may be taken again at once.
    pub no_map: bool,
    /// `softrandommap`: go on without a map where memory does not suffice.
    pub soft_map: bool,
    /// `random_generator`.
    pub generator: Generator,
    /// `random_distribution`.
    pub distribution: PerDirection<Distribution>,
    /// `randseed`.
    pub seed: u64,
    /// `randrepeat`: the same order in every run; all but offsets with `allrandrepeat`.
    pub repeatable: bool,
    /// `allrandrepeat`.
    pub all_repeatable: bool,
}

impl Default for Random {
    fn default() -> Random {
        Random {
            percent: PerDirection::all(100),
            no_map: false,
            soft_map: false,
            generator: Generator::default(),
            distribution: PerDirection::default(),
            seed: 0x89,
            repeatable: true,
            all_repeatable: false,
        }
    }
}

/// `file_service_type`: which file is next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileServiceOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The next one when this is done.
    Sequential,
    /// Any.
    Random,
    /// By Zipf's law.
    Zipf {
        /// Not 1.
        theta: f64,
    },
    /// By Pareto's.
    Pareto {
        /// Between 0 and 1.
        h: f64,
    },
    /// By a normal distribution.
    Normal {
        /// In percent.
        deviation: f64,
    },
}

/// `file_service_type=ORDER:N`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileService {
    /// Which file is next.
    pub order: FileServiceOrder,
    /// After this many I/Os.
    pub after_ios: u32,
}

impl Default for FileService {
    fn default() -> FileService {
        FileService {
            order: FileServiceOrder::default(),
            after_ios: 1,
        }
    }
}

/// `zonemode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneMode {
    /// No zones.
    #[default]
    None,
    /// Some bytes of each zone, then a gap.
    Strided,
    /// `zbd`: each zone is written in order, from its start to its capacity.
    WritePointers,
}

/// `zonemode` and the sizes of its zones, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Whether there are zones.
    pub mode: ZoneMode,
    /// `zonesize`: how much is done in one zone.
    pub size_bytes: u64,
    /// `zonerange`: how long a zone is; `zonesize` where it is 0.
    pub range_bytes: u64,
    /// `zoneskip`: between two zones.
    pub skip_bytes: u64,
}

/// Options of zones that are written in order (`zonemode=zbd`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WritePointers {
    /// `zonecapacity`: bytes of a zone that can be written; all of it where it is 0.
    pub capacity_bytes: u64,
    /// `read_beyond_wp`: reads go behind what was written too.
    pub reads_beyond: bool,
    /// `max_open_zones`: zones of a file that are written at a time; 0 is without limit.
    pub open_max: u32,
    /// `job_max_open_zones`: the same of one job.
    pub job_open_max: u32,
    /// `zone_reset_threshold`: share of the job's bytes that is written before zones are
    /// reset that are not full.
    pub reset_threshold: f64,
    /// `zone_reset_frequency`: share of the writes that then reset their zone.
    pub reset_frequency: f64,
}
