//! Choice of the offset of the next I/O within one file.

use super::bell::BellDistribution;
use super::map::RandomMap;
use super::zoned::{IoExtent, ZonedFile};
use crate::load::distribution::{AccessDistribution, AccessZone, BlockDraws};
use crate::random::RandomDraws;
use diskperf_fio::job::{self, BlockSizeChoice, OffsetSequencer, RandomGenerator, ZoneMode};
use diskperf_fio::offsets::{FileRegion, SequentialOffsets};
use diskperf_fio::{Direction, JobDefinition, PerDirection};

const OFFSET_STREAM: u128 = 9;

/// Position state of a file, from which the offset of the next I/O follows.
#[derive(Clone, Debug)]
pub(super) struct FileOffsets {
    pub(super) file_region: FileRegion,
    sequential_mode: PerDirection<SequentialOffsets>,
    /// Offset of the last I/O of each direction.
    last_offset_bytes: PerDirection<Option<u64>>,
    zone_options: job::Zones,
    zone_start_bytes: u64,
    /// Zones that accept only sequential writes, if the file has any.
    zoned_file: Option<ZonedFile>,
    random_map: Option<RandomMap>,
    block_popularity: PerDirection<Option<Popularity>>,
    align_bytes: PerDirection<u64>,
    block_bytes_min: PerDirection<u64>,
    random_percent: PerDirection<u8>,
    is_random: bool,
    sequencer: OffsetSequencer,
    random: RandomDraws,
    seed: u64,
}

/// Popularity of blocks, for distributions in which it varies.
#[derive(Clone, Debug)]
enum Popularity {
    BlockDistribution(BlockDraws),
    /// Bell-shaped popularity, scattered over the file like the others.
    BellDistribution(BellDistribution, BlockDraws),
}

impl Popularity {
    fn draw_block(&self, random: &mut RandomDraws) -> u64 {
        match self {
            Self::BlockDistribution(blocks) => blocks.draw_block(random),
            Self::BellDistribution(bell, blocks) => blocks.block_of_rank(bell.draw_rank(random)),
        }
    }
}

/// Offset that was chosen for an I/O, and the rules that apply to the I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenOffset {
    pub(super) offset_bytes: u64,
    /// Whether the I/O takes a block size of random I/O.
    pub(super) is_random: bool,
    /// Whether the map of taken blocks counts the I/O.
    pub(super) is_in_random_map: bool,
}

impl FileOffsets {
    pub(super) fn new(job: &JobDefinition, region: FileRegion, seed: u64) -> Self {
        let each = |of: &dyn Fn(Direction) -> u64| PerDirection {
            read: of(Direction::Read),
            write: of(Direction::Write),
            trim: of(Direction::Trim),
        };
        let least = |direction| job.blocks.choice(direction).bounds_bytes().0.max(1);
        let align_bytes = each(
            &|direction| match *job.blocks.offset_align_bytes.get(direction) {
                0 => least(direction),
                bytes => bytes,
            },
        );
        let skip_bytes = job.pattern.skip_bytes;
        let popular = |direction| new_popularity(job, region, direction);
        let walk = SequentialOffsets::new(region, 1, skip_bytes);
        let mut places = Self {
            file_region: region,
            sequential_mode: PerDirection::uniform(walk),
            last_offset_bytes: PerDirection::default(),
            zone_options: job.zones,
            zone_start_bytes: region.offset_bytes,
            zoned_file: None,
            random_map: None,
            block_popularity: PerDirection {
                read: popular(Direction::Read),
                write: popular(Direction::Write),
                trim: popular(Direction::Trim),
            },
            align_bytes,
            block_bytes_min: each(&least),
            random_percent: job.random.random_percent,
            is_random: job.pattern.access.is_random(),
            sequencer: job.pattern.offset_sequencer,
            random: RandomDraws::new(seed, OFFSET_STREAM),
            seed,
        };
        // fio's lfsr gives each number once, whatever `blockalign` makes of it.
        let is_lfsr = job.random.generator == RandomGenerator::Lfsr;
        if places.is_random && (job.has_random_map() || is_lfsr) {
            places.random_map = Some(places.new_map(job));
        }
        places
    }

    /// Creates the map of taken blocks that fits the block sizes. With one block size, the map is a
    /// computed order and takes no memory.
    fn new_map(&self, job: &JobDefinition) -> RandomMap {
        let directions = job.pattern.access.directions();
        let sizes: Vec<BlockSizeChoice> =
            directions.iter().map(|&of| job.blocks.choice(of)).collect();
        let only = sizes[0].single_bytes();
        let same = sizes.iter().all(|sizes| sizes.single_bytes() == only);
        let unit_bytes = job.map_unit_bytes();
        let units = self.drawn_range_bytes() / unit_bytes;
        match same && only == Some(unit_bytes) {
            true => RandomMap::new_for_one_size(units, self.seed),
            false => RandomMap::new_for_sizes(units),
        }
    }

    /// Sets the zones that accept only sequential writes.
    pub(super) fn with_zones(self, zoned: Option<ZonedFile>) -> Self {
        Self {
            zoned_file: zoned,
            ..self
        }
    }

    fn drawn_range_bytes(&self) -> u64 {
        match self.zone_options.mode {
            ZoneMode::Strided => self.zone_options.range_bytes,
            ZoneMode::None | ZoneMode::WritePointers => self.file_region.used_bytes(),
        }
    }

    /// Returns to the start of the file region, with all blocks free. The random stream of offsets
    /// continues.
    pub(super) fn reset_pass(&mut self) {
        for direction in Direction::ALL {
            let walk = self.sequential_mode.get_mut(direction);
            walk.enter_zone(self.file_region.offset_bytes);
        }
        self.last_offset_bytes = PerDirection::default();
        self.zone_start_bytes = self.file_region.offset_bytes;
        if let Some(map) = &mut self.random_map {
            map.clear_map();
        }
        if let Some(zoned) = &mut self.zoned_file {
            zoned.begin_pass();
        }
    }

    /// Restarts the random stream, so that the same offsets are drawn again.
    pub(super) fn restart_random(&mut self) {
        self.random = RandomDraws::new(self.seed, OFFSET_STREAM);
        if let Some(map) = &mut self.random_map {
            map.clear_with_seed(self.seed);
        }
    }

    /// Returns the offset of the next I/O of a direction, or `None` at the end of the file. `draws`
    /// says whether a random job draws this offset.
    pub(super) fn next_offset(
        &mut self,
        direction: Direction,
        draws: bool,
    ) -> Option<ChosenOffset> {
        let found = |offset_bytes, is_random, is_mapped| ChosenOffset {
            offset_bytes,
            is_random,
            is_in_random_map: is_mapped,
        };
        let found = match (draws, self.sequencer) {
            (true, _) if self.is_random && self.draws_at_random(direction) => {
                let offset = self.draw_offset(direction)?;
                found(offset, true, true)
            }
            (true, _) if self.is_random => {
                let offset = self.sequential_offset(direction);
                found(
                    offset.or_else(|| self.draw_offset(direction))?,
                    false,
                    false,
                )
            }
            (true, _) => found(self.sequential_offset(direction)?, false, true),
            (false, OffsetSequencer::Sequential) => {
                let offset = self.sequential_offset(direction);
                found(
                    offset.or_else(|| self.draw_offset(direction))?,
                    false,
                    false,
                )
            }
            (false, OffsetSequencer::Identical) => {
                let again = self.last_offset_bytes.get(direction);
                found(again.unwrap_or(self.file_region.offset_bytes), false, false)
            }
        };
        (found.offset_bytes < self.file_region.file_bytes).then_some(found)
    }

    /// Reports whether a random job draws this offset at random (`percentage_random`).
    fn draws_at_random(&mut self, direction: Direction) -> bool {
        match *self.random_percent.get(direction) {
            100 => true,
            percent => self.random.draw_below(100) < u64::from(percent),
        }
    }

    /// Returns the offset after the last I/O of the direction.
    fn sequential_offset(&mut self, direction: Direction) -> Option<u64> {
        self.sequential_mode.get_mut(direction).next_offset()
    }

    fn draw_offset(&mut self, direction: Direction) -> Option<u64> {
        let align_bytes = *self.align_bytes.get(direction);
        let places = self.drawable_offset_count(direction)?;
        let place = match (&mut self.random_map, self.block_popularity.get(direction)) {
            (Some(map), _) => map.find_next_free_unit(&mut self.random, places)?,
            (None, Some(blocks)) => blocks.draw_block(&mut self.random),
            (None, None) => self.random.draw_below(places),
        };
        // Where blocks of another direction are smaller than the step, or all are, the map has
        // units beyond the end: who comes to one is done with the file.
        let at_bytes = place * align_bytes;
        (at_bytes < self.file_region.length_bytes).then_some(self.zone_start_bytes + at_bytes)
    }

    /// Returns the number of offsets to draw from, or `None` if there are none. The smallest block
    /// fits at each of them.
    fn drawable_offset_count(&self, direction: Direction) -> Option<u64> {
        let align_bytes = *self.align_bytes.get(direction);
        let beyond_bytes = self
            .block_bytes_min
            .get(direction)
            .saturating_sub(align_bytes);
        let bytes = self.drawn_range_bytes().saturating_sub(beyond_bytes);
        Some(bytes / align_bytes).filter(|places| *places > 0)
    }

    /// Returns the direction to use for an I/O: a write instead of a read while nothing is written
    /// yet that could be read.
    pub(super) fn readable_direction(&self, direction: Direction) -> Direction {
        let has_written = self.last_offset_bytes.write.is_some();
        match &self.zoned_file {
            Some(zoned) if direction == Direction::Read && zoned.must_write_first(has_written) => {
                Direction::Write
            }
            Some(_) | None => direction,
        }
    }

    /// Places an I/O within the zones that accept only sequential writes. Returns `None` if no zone
    /// accepts it.
    pub(super) fn place_in_zones(
        &mut self,
        direction: Direction,
        at: IoExtent,
    ) -> Option<IoExtent> {
        match &mut self.zoned_file {
            Some(zoned) => zoned.place_io(direction, at),
            None => Some(at),
        }
    }

    /// Reports whether all requests in flight must complete before the last placed I/O, and clears
    /// the mark.
    pub(super) fn take_drain(&mut self) -> bool {
        self.zoned_file.as_mut().is_some_and(ZonedFile::take_drain)
    }

    /// Records an I/O that was found at one offset and placed at another, and returns how many
    /// bytes of it to do. For an I/O that the map counts, these are the bytes that no earlier I/O
    /// has taken.
    pub(super) fn take_offset(
        &mut self,
        direction: Direction,
        found: ChosenOffset,
        at: IoExtent,
    ) -> u64 {
        let bytes = at.bytes;
        let bytes = match &mut self.random_map {
            Some(map) if found.is_in_random_map && self.is_random => {
                let unit_bytes = *self.block_bytes_min.get(direction);
                map.take_block(
                    found.offset_bytes - self.zone_start_bytes,
                    bytes,
                    unit_bytes,
                )
            }
            Some(_) | None => bytes,
        };
        *self.last_offset_bytes.get_mut(direction) = Some(at.offset_bytes);
        let walk = self.sequential_mode.get_mut(direction);
        walk.continue_from(at.offset_bytes + bytes);
        if let Some(zoned) = &mut self.zoned_file {
            zoned.record_issue(direction, IoExtent { bytes, ..at });
        }
        bytes
    }

    pub(super) fn is_random(&self) -> bool {
        self.is_random
    }

    /// Returns the direction that is next when each range is trimmed before it is written. As in
    /// fio, a trim is next if the last trim and the last write began at the same offset.
    pub(super) fn next_trim_or_write(&self) -> Direction {
        match self.last_offset_bytes.write == self.last_offset_bytes.trim {
            true => Direction::Trim,
            false => Direction::Write,
        }
    }

    /// Returns the offset of the write that follows a trim. fio adds the start of the file region
    /// to the trim's offset, which already contains it.
    pub(super) fn offset_after_trim(&self) -> Option<ChosenOffset> {
        let trim_bytes = self.last_offset_bytes.trim?;
        let is_within = trim_bytes < self.file_region.length_bytes;
        let offset_bytes = trim_bytes.checked_add(self.zone_start_bytes)?;
        (is_within && offset_bytes < self.file_region.file_bytes).then_some(ChosenOffset {
            offset_bytes,
            is_random: true,
            is_in_random_map: false,
        })
    }

    /// Enters the next zone once the current one has had its share of bytes. `zone_bytes` counts
    /// the bytes done in the zone, in any file, and is reset.
    pub(super) fn enter_zone(&mut self, direction: Direction, zone_bytes: &mut u64) {
        if let Some(zoned) = &self.zoned_file {
            let walk = self.sequential_mode.get_mut(direction);
            let front_bytes = &mut self.zone_start_bytes;
            if zoned.enter_zone(direction, walk, (front_bytes, *zone_bytes)) {
                *zone_bytes = 0;
                for other in Direction::ALL {
                    self.sequential_mode
                        .get_mut(other)
                        .set_origin(self.zone_start_bytes);
                }
                let walk = self.sequential_mode.get_mut(direction);
                walk.enter_zone(self.zone_start_bytes);
            }
        }
        if self.zone_options.mode != ZoneMode::Strided {
            return;
        }
        let job::Zones {
            size_bytes,
            range_bytes,
            skip_bytes,
            ..
        } = self.zone_options;
        if *zone_bytes >= size_bytes {
            *zone_bytes = 0;
            self.zone_start_bytes += range_bytes + skip_bytes;
            if self.zone_start_bytes >= self.file_region.file_bytes {
                self.zone_start_bytes = self.file_region.offset_bytes;
            }
            for direction in Direction::ALL {
                let walk = self.sequential_mode.get_mut(direction);
                walk.enter_zone(self.zone_start_bytes);
            }
        }
        let walk = self.sequential_mode.get_mut(direction);
        if walk.last_end_bytes() >= self.zone_start_bytes + range_bytes {
            walk.continue_from(self.zone_start_bytes);
        }
        // A zone that is shorter than what is done in it is taken again and again.
        if zone_bytes.is_multiple_of(range_bytes.max(1)) {
            for direction in Direction::ALL {
                let walk = self.sequential_mode.get_mut(direction);
                walk.enter_zone(self.zone_start_bytes);
            }
            self.last_offset_bytes = PerDirection::default();
            if let Some(map) = &mut self.random_map {
                map.clear_map();
            }
        }
    }
}

/// Returns the popularity of the blocks of a file region, or `None` if all blocks are equally
/// popular.
fn new_popularity(
    job: &JobDefinition,
    region: FileRegion,
    direction: Direction,
) -> Option<Popularity> {
    let least = job.blocks.choice(direction).bounds_bytes().0.max(1);
    let unit_bytes = match *job.blocks.offset_align_bytes.get(direction) {
        0 => least,
        bytes => bytes,
    };
    let bytes = region.used_bytes();
    let count = bytes / unit_bytes;
    let zoned = |zones: &[job::DistributionZone], percent: &dyn Fn(u64) -> f64| {
        let zone = |zone: &job::DistributionZone| {
            AccessZone::new(zone.access_percent.into(), percent(zone.area_extent))
        };
        AccessDistribution::Zoned(zones.iter().map(zone).collect())
    };
    let distribution = match job.random.distribution.get(direction) {
        job::OffsetDistribution::Uniform => return None,
        job::OffsetDistribution::Normal { deviation, .. } => {
            let scattered = BlockDraws::new(&AccessDistribution::Uniform, count);
            return Some(Popularity::BellDistribution(
                BellDistribution::new(count, *deviation),
                scattered,
            ));
        }
        job::OffsetDistribution::Zipf { theta, .. } => AccessDistribution::Zipf { theta: *theta },
        job::OffsetDistribution::Pareto { h, .. } => AccessDistribution::Pareto { h: *h },
        job::OffsetDistribution::Zoned(zones) => zoned(zones, &|extent| extent as f64),
        job::OffsetDistribution::ZonedBytes(zones) => {
            zoned(zones, &|extent| extent as f64 * 100.0 / bytes.max(1) as f64)
        }
    };
    Some(Popularity::BlockDistribution(BlockDraws::new(
        &distribution,
        count,
    )))
}
