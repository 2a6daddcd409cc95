//! Choice of the offset of the next I/O within one file.

use super::bell::Bell;
use super::map::Map;
use super::zoned::{Extent, ZonedFile};
use crate::load::distribution::{Blocks, Distribution, Zone};
use crate::random::Draws;
use diskperf_fio::job::{self, Generator, Sequencer, Sizes, ZoneMode};
use diskperf_fio::offsets::{Region, Sequential};
use diskperf_fio::{Direction, Job, PerDirection};

const OFFSET_STREAM: u128 = 9;

/// Position state of a file, from which the offset of the next I/O follows.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) region: Region,
    walks: PerDirection<Sequential>,
    /// Offset of the last I/O of each direction.
    starts: PerDirection<Option<u64>>,
    zones: job::Zones,
    zone_start_bytes: u64,
    /// Zones that accept only sequential writes, if the file has any.
    zoned: Option<ZonedFile>,
    map: Option<Map>,
    popular: PerDirection<Option<Popular>>,
    align_bytes: PerDirection<u64>,
    /// Size of the smallest block, by direction.
    least_bytes: PerDirection<u64>,
    percent: PerDirection<u8>,
    is_random: bool,
    sequencer: Sequencer,
    random: Draws,
    seed: u64,
}

/// Popularity of blocks, for distributions in which it varies.
#[derive(Clone, Debug)]
enum Popular {
    Blocks(Blocks),
    /// Bell-shaped popularity, scattered over the file like the others.
    Bell(Bell, Blocks),
}

impl Popular {
    fn draw(&self, random: &mut Draws) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks.draw(random),
            Self::Bell(bell, blocks) => blocks.place(bell.draw(random)),
        }
    }
}

/// Offset that was chosen for an I/O, and the rules that apply to the I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) offset_bytes: u64,
    /// Whether the I/O takes a block size of random I/O.
    pub(super) is_random: bool,
    /// Whether the map of taken blocks counts the I/O.
    pub(super) is_mapped: bool,
}

impl Places {
    pub(super) fn new(job: &Job, region: Region, seed: u64) -> Self {
        let each = |of: &dyn Fn(Direction) -> u64| PerDirection {
            read: of(Direction::Read),
            write: of(Direction::Write),
            trim: of(Direction::Trim),
        };
        let least = |direction| job.blocks.sizes(direction).bounds().0.max(1);
        let align_bytes = each(&|direction| match *job.blocks.align.get(direction) {
            0 => least(direction),
            bytes => bytes,
        });
        let skip_bytes = job.pattern.skip_bytes;
        let popular = |direction| popular(job, region, direction);
        let walk = Sequential::new(region, 1, skip_bytes);
        let mut places = Self {
            region,
            walks: PerDirection::all(walk),
            starts: PerDirection::default(),
            zones: job.zones,
            zone_start_bytes: region.offset_bytes,
            zoned: None,
            map: None,
            popular: PerDirection {
                read: popular(Direction::Read),
                write: popular(Direction::Write),
                trim: popular(Direction::Trim),
            },
            align_bytes,
            least_bytes: each(&least),
            percent: job.random.percent,
            is_random: job.pattern.access.is_random(),
            sequencer: job.pattern.sequencer,
            random: Draws::new(seed, OFFSET_STREAM),
            seed,
        };
        // fio's lfsr gives each number once, whatever `blockalign` makes of it.
        let is_lfsr = job.random.generator == Generator::Lfsr;
        if places.is_random && (job.has_random_map() || is_lfsr) {
            places.map = Some(places.new_map(job));
        }
        places
    }

    /// Creates the map of taken blocks that fits the block sizes. With one block size, the map is a
    /// computed order and takes no memory.
    fn new_map(&self, job: &Job) -> Map {
        let directions = job.pattern.access.directions();
        let sizes: Vec<Sizes> = directions.iter().map(|&of| job.blocks.sizes(of)).collect();
        let only = sizes[0].only();
        let same = sizes.iter().all(|sizes| sizes.only() == only);
        let unit_bytes = job.map_unit_bytes();
        let units = self.part_bytes() / unit_bytes;
        match same && only == Some(unit_bytes) {
            true => Map::of_one_size(units, self.seed),
            false => Map::of_sizes(units),
        }
    }

    /// Sets the zones that accept only sequential writes.
    pub(super) fn with_zones(self, zoned: Option<ZonedFile>) -> Self {
        Self { zoned, ..self }
    }

    /// Returns the length of the zone or of the file region from which offsets are drawn.
    fn part_bytes(&self) -> u64 {
        match self.zones.mode {
            ZoneMode::Strided => self.zones.range_bytes,
            ZoneMode::None | ZoneMode::WritePointers => self.region.used_bytes(),
        }
    }

    /// Returns to the start of the file region, with all blocks free. The random stream of offsets
    /// continues.
    pub(super) fn reset(&mut self) {
        for direction in Direction::ALL {
            let walk = self.walks.get_mut(direction);
            walk.enter_zone(self.region.offset_bytes);
        }
        self.starts = PerDirection::default();
        self.zone_start_bytes = self.region.offset_bytes;
        if let Some(map) = &mut self.map {
            map.clear();
        }
        if let Some(zoned) = &mut self.zoned {
            zoned.begin_pass();
        }
    }

    /// Restarts the random stream, so that the same offsets are drawn again.
    pub(super) fn repeat(&mut self) {
        self.random = Draws::new(self.seed, OFFSET_STREAM);
        if let Some(map) = &mut self.map {
            map.repeat(self.seed);
        }
    }

    /// Returns the offset of the next I/O of a direction, or `None` at the end of the file. `draws`
    /// says whether a random job draws this offset.
    pub(super) fn find(&mut self, direction: Direction, draws: bool) -> Option<Found> {
        let found = |offset_bytes, is_random, is_mapped| Found {
            offset_bytes,
            is_random,
            is_mapped,
        };
        let found = match (draws, self.sequencer) {
            (true, _) if self.is_random && self.happens(direction) => {
                let offset = self.drawn(direction)?;
                found(offset, true, true)
            }
            (true, _) if self.is_random => {
                let offset = self.following(direction);
                found(offset.or_else(|| self.drawn(direction))?, false, false)
            }
            (true, _) => found(self.following(direction)?, false, true),
            (false, Sequencer::Sequential) => {
                let offset = self.following(direction);
                found(offset.or_else(|| self.drawn(direction))?, false, false)
            }
            (false, Sequencer::Identical) => {
                let again = self.starts.get(direction);
                found(again.unwrap_or(self.region.offset_bytes), false, false)
            }
        };
        (found.offset_bytes < self.region.file_bytes).then_some(found)
    }

    /// Reports whether a random job draws this offset at random (`percentage_random`).
    fn happens(&mut self, direction: Direction) -> bool {
        match *self.percent.get(direction) {
            100 => true,
            percent => self.random.below(100) < u64::from(percent),
        }
    }

    /// Returns the offset after the last I/O of the direction.
    fn following(&mut self, direction: Direction) -> Option<u64> {
        self.walks.get_mut(direction).position()
    }

    fn drawn(&mut self, direction: Direction) -> Option<u64> {
        let align_bytes = *self.align_bytes.get(direction);
        let places = self.drawn_places(direction)?;
        let place = match (&mut self.map, self.popular.get(direction)) {
            (Some(map), _) => map.next(&mut self.random, places)?,
            (None, Some(blocks)) => blocks.draw(&mut self.random),
            (None, None) => self.random.below(places),
        };
        // Where blocks of another direction are smaller than the step, or all are, the map has
        // units beyond the end: who comes to one is done with the file.
        let at_bytes = place * align_bytes;
        (at_bytes < self.region.length_bytes).then_some(self.zone_start_bytes + at_bytes)
    }

    /// Returns the number of offsets to draw from, or `None` if there are none. The smallest block
    /// fits at each of them.
    fn drawn_places(&self, direction: Direction) -> Option<u64> {
        let align_bytes = *self.align_bytes.get(direction);
        let beyond_bytes = self.least_bytes.get(direction).saturating_sub(align_bytes);
        let bytes = self.part_bytes().saturating_sub(beyond_bytes);
        Some(bytes / align_bytes).filter(|places| *places > 0)
    }

    /// Returns the direction to use for an I/O: a write instead of a read while nothing is written
    /// yet that could be read.
    pub(super) fn readable(&self, direction: Direction) -> Direction {
        let has_written = self.starts.write.is_some();
        match &self.zoned {
            Some(zoned) if direction == Direction::Read && zoned.writes_first(has_written) => {
                Direction::Write
            }
            Some(_) | None => direction,
        }
    }

    /// Places an I/O within the zones that accept only sequential writes. Returns `None` if no zone
    /// accepts it.
    pub(super) fn place(&mut self, direction: Direction, at: Extent) -> Option<Extent> {
        match &mut self.zoned {
            Some(zoned) => zoned.place(direction, at),
            None => Some(at),
        }
    }

    /// Reports whether all requests in flight must complete before the last placed I/O, and clears
    /// the mark.
    pub(super) fn take_drain(&mut self) -> bool {
        self.zoned.as_mut().is_some_and(ZonedFile::take_drain)
    }

    /// Records an I/O that was found at one offset and placed at another, and returns how many
    /// bytes of it to do. For an I/O that the map counts, these are the bytes that no earlier I/O
    /// has taken.
    pub(super) fn take(&mut self, direction: Direction, found: Found, at: Extent) -> u64 {
        let bytes = at.bytes;
        let bytes = match &mut self.map {
            Some(map) if found.is_mapped && self.is_random => {
                let unit_bytes = *self.least_bytes.get(direction);
                map.take(
                    found.offset_bytes - self.zone_start_bytes,
                    bytes,
                    unit_bytes,
                )
            }
            Some(_) | None => bytes,
        };
        *self.starts.get_mut(direction) = Some(at.offset_bytes);
        let walk = self.walks.get_mut(direction);
        walk.go_on_from(at.offset_bytes + bytes);
        if let Some(zoned) = &mut self.zoned {
            zoned.issue(direction, Extent { bytes, ..at });
        }
        bytes
    }

    /// Reports whether offsets are drawn at random.
    pub(super) fn is_random(&self) -> bool {
        self.is_random
    }

    /// Returns the direction that is next when each range is trimmed before it is written. As in
    /// fio, a trim is next if the last trim and the last write began at the same offset.
    pub(super) fn trim_or_write(&self) -> Direction {
        match self.starts.write == self.starts.trim {
            true => Direction::Trim,
            false => Direction::Write,
        }
    }

    /// Returns the offset of the write that follows a trim. fio adds the start of the file region
    /// to the trim's offset, which already contains it.
    pub(super) fn at_trim(&self) -> Option<Found> {
        let trim_bytes = self.starts.trim?;
        let is_within = trim_bytes < self.region.length_bytes;
        let offset_bytes = trim_bytes.checked_add(self.zone_start_bytes)?;
        (is_within && offset_bytes < self.region.file_bytes).then_some(Found {
            offset_bytes,
            is_random: true,
            is_mapped: false,
        })
    }

    /// Enters the next zone once the current one has had its share of bytes. `zone_bytes` counts
    /// the bytes done in the zone, in any file, and is reset.
    pub(super) fn enter_zone(&mut self, direction: Direction, zone_bytes: &mut u64) {
        if let Some(zoned) = &self.zoned {
            let walk = self.walks.get_mut(direction);
            let front_bytes = &mut self.zone_start_bytes;
            if zoned.enter_zone(direction, walk, (front_bytes, *zone_bytes)) {
                *zone_bytes = 0;
                for other in Direction::ALL {
                    self.walks.get_mut(other).move_front(self.zone_start_bytes);
                }
                let walk = self.walks.get_mut(direction);
                walk.enter_zone(self.zone_start_bytes);
            }
        }
        if self.zones.mode != ZoneMode::Strided {
            return;
        }
        let job::Zones {
            size_bytes,
            range_bytes,
            skip_bytes,
            ..
        } = self.zones;
        if *zone_bytes >= size_bytes {
            *zone_bytes = 0;
            self.zone_start_bytes += range_bytes + skip_bytes;
            if self.zone_start_bytes >= self.region.file_bytes {
                self.zone_start_bytes = self.region.offset_bytes;
            }
            for direction in Direction::ALL {
                let walk = self.walks.get_mut(direction);
                walk.enter_zone(self.zone_start_bytes);
            }
        }
        let walk = self.walks.get_mut(direction);
        if walk.last_end_bytes() >= self.zone_start_bytes + range_bytes {
            walk.go_on_from(self.zone_start_bytes);
        }
        // A zone that is shorter than what is done in it is taken again and again.
        if zone_bytes.is_multiple_of(range_bytes.max(1)) {
            for direction in Direction::ALL {
                let walk = self.walks.get_mut(direction);
                walk.enter_zone(self.zone_start_bytes);
            }
            self.starts = PerDirection::default();
            if let Some(map) = &mut self.map {
                map.clear();
            }
        }
    }
}

/// Returns the popularity of the blocks of a file region, or `None` if all blocks are equally
/// popular.
fn popular(job: &Job, region: Region, direction: Direction) -> Option<Popular> {
    let least = job.blocks.sizes(direction).bounds().0.max(1);
    let unit_bytes = match *job.blocks.align.get(direction) {
        0 => least,
        bytes => bytes,
    };
    let bytes = region.used_bytes();
    let count = bytes / unit_bytes;
    let zoned = |zones: &[job::Zone], percent: &dyn Fn(u64) -> f64| {
        let zone = |zone: &job::Zone| Zone::new(zone.percent.into(), percent(zone.extent));
        Distribution::Zoned(zones.iter().map(zone).collect())
    };
    let distribution = match job.random.distribution.get(direction) {
        job::Distribution::Uniform => return None,
        job::Distribution::Normal { deviation, .. } => {
            let scattered = Blocks::new(&Distribution::Uniform, count);
            return Some(Popular::Bell(Bell::new(count, *deviation), scattered));
        }
        job::Distribution::Zipf { theta, .. } => Distribution::Zipf { theta: *theta },
        job::Distribution::Pareto { h, .. } => Distribution::Pareto { h: *h },
        job::Distribution::Zoned(zones) => zoned(zones, &|extent| extent as f64),
        job::Distribution::ZonedBytes(zones) => {
            zoned(zones, &|extent| extent as f64 * 100.0 / bytes.max(1) as f64)
        }
    };
    Some(Popular::Blocks(Blocks::new(&distribution, count)))
}
