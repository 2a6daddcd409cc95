//! Layout `dm_layout_g4`: a tree of repeating patterns.

use super::{PhysicalSector, revolution_fraction};

/// Part of a track that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackRange {
    /// First physical sector of the track with data.
    pub first_cylinder: u32,
    /// Last physical sector of the track with data, inclusive.
    pub last_cylinder: u32,
    /// Physical sectors of the whole track.
    pub sectors_per_track: u32,
}

impl TrackRange {
    fn block_count(&self) -> u64 {
        u64::from(self.last_cylinder - self.first_cylinder) + 1
    }
}

/// Content that an entry of a pattern index repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexedContent {
    /// Part of a track, on one surface.
    Track {
        /// Index into the list `TP` of track parts.
        part: usize,
        /// Head index, which identifies the surface.
        head: u32,
    },
    /// Nested pattern, by the number of an earlier pattern index.
    NestedIndex(usize),
}

/// Entry of a pattern index: content that is repeated over a run of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexEntry {
    /// First block of the entry, relative to the start of its pattern index.
    pub first_block: u64,
    /// Cylinder of the first repetition, relative to that of the pattern index.
    pub cylinder: i64,
    /// Angle of the first repetition relative to that of the pattern index, in revolutions.
    pub start_angle: f64,
    /// Number of blocks in one repetition of the content.
    pub block_count: u64,
    /// Cylinders from one repetition to the next.
    pub cylinder_step: i64,
    /// Angle from one repetition to the next, in revolutions.
    pub angle_step: f64,
    /// Number of blocks in all repetitions of the content.
    pub run_length_blocks: u64,
    /// Content that the entry repeats: part of a track or a nested pattern.
    pub content: IndexedContent,
}

impl IndexEntry {
    fn repetition_count(&self) -> u64 {
        self.run_length_blocks / self.block_count
    }
}

/// Blocks that are relocated to another track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemappedBlocks {
    /// First of the relocated blocks.
    pub first_block: u64,
    /// Number of relocated blocks; at least 1.
    pub block_count: u64,
    /// Cylinder to which the blocks are relocated.
    pub cylinder: u32,
    /// Head to which the blocks are relocated; it identifies the surface.
    pub head: u32,
    /// Physical sector of the first relocated block.
    pub sector: u32,
    /// Physical sectors of the whole track to which the blocks are relocated.
    pub sectors_per_track: u32,
}

/// Layout as a tree of patterns, with slipped sectors and relocated blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedLayout {
    track_ranges: Vec<TrackRange>,
    /// Pattern indices in dependency order: each refers only to earlier ones, and the last is the
    /// root.
    track_indices: Vec<TrackIndex>,
    /// Slips: the block from which on sectors are skipped, and the number of sectors; ascending.
    slips: Vec<(u64, u64)>,
    remaps: Vec<RemappedBlocks>,
}

#[derive(Clone, Debug, PartialEq)]
struct TrackIndex {
    index_entries: Vec<IndexEntry>,
    block_count: u64,
    /// Lowest and highest cylinder, relative to the start of the pattern index.
    cylinder_bounds: (i64, i64),
}

/// Limits for block and cylinder numbers; larger numbers do not belong to a real drive.
const BLOCKS_MAX: u64 = 1 << 60;
const CYLINDERS_MAX: i64 = 100_000_000;
/// Maximum number of entries visited in a search for a location. A tree whose entries form bands of
/// cylinders needs some tens per level.
const SEARCH_ENTRIES_MAX: usize = 1 << 14;

impl IndexedLayout {
    /// Creates a layout from indices, the last of which is the root.
    ///
    /// # Errors
    ///
    /// Index and entry that contradict themselves or others, with the reason. Index and entry are
    /// absent if slips or relocated blocks are wrong.
    pub fn new(
        tracks: Vec<TrackRange>,
        indices: Vec<Vec<IndexEntry>>,
        slips: Vec<(u64, u64)>,
        remaps: Vec<RemappedBlocks>,
    ) -> Result<IndexedLayout, (Option<(usize, usize)>, String)> {
        let mut layout = IndexedLayout {
            track_ranges: tracks,
            track_indices: Vec::new(),
            slips,
            remaps,
        };
        let wrong = |part: &&TrackRange| {
            part.first_cylinder > part.last_cylinder || part.last_cylinder >= part.sectors_per_track
        };
        if let Some(part) = layout.track_ranges.iter().find(wrong) {
            let TrackRange {
                first_cylinder: low,
                last_cylinder: high,
                sectors_per_track: sectors,
            } = part;
            let why =
                format!("sectors {low} to {high} are no part of a track of {sectors} sectors");
            return Err((None, why));
        }
        for (number, entries) in indices.into_iter().enumerate() {
            let index = layout.build_index(entries);
            let index = index.map_err(|(entry, why)| (Some((number, entry)), why))?;
            layout.track_indices.push(index);
        }
        layout.check_slips().map_err(|why| (None, why))?;
        Ok(layout)
    }

    fn build_index(&self, entries: Vec<IndexEntry>) -> Result<TrackIndex, (usize, String)> {
        let mut blocks = 0;
        let mut cylinders = (i64::MAX, i64::MIN);
        for (number, entry) in entries.iter().enumerate() {
            let here = |why: String| (number, why);
            if entry.first_block != blocks {
                let first = entry.first_block;
                return Err(here(format!("it begins at block {first}, not at {blocks}")));
            }
            let own = self.check_entry(entry).map_err(here)?;
            blocks += entry.run_length_blocks;
            if blocks > BLOCKS_MAX {
                return Err(here(format!("{blocks} blocks exceed the limit of a drive")));
            }
            cylinders = (cylinders.0.min(own.0), cylinders.1.max(own.1));
        }
        match entries.is_empty() {
            true => Err((0, "the index has no entries".to_owned())),
            false => Ok(TrackIndex {
                index_entries: entries,
                block_count: blocks,
                cylinder_bounds: cylinders,
            }),
        }
    }

    /// Checks an entry of a pattern index and returns the cylinders that it covers.
    fn check_entry(&self, entry: &IndexEntry) -> Result<(i64, i64), String> {
        let part = match entry.content {
            IndexedContent::Track { part, .. } => {
                let track = self.track_ranges.get(part);
                track.map(|track| (track.block_count(), (0, 0)))
            }
            IndexedContent::NestedIndex(index) => {
                let index = self.track_indices.get(index);
                index.map(|index| (index.block_count, index.cylinder_bounds))
            }
        };
        let (blocks, (low, high)) = part.ok_or("its part is not listed before this entry")?;
        if blocks != entry.block_count {
            let says = entry.block_count;
            return Err(format!("it gives {says} blocks, but its part has {blocks}"));
        }
        if entry.run_length_blocks == 0
            || !entry.run_length_blocks.is_multiple_of(entry.block_count)
        {
            let run = entry.run_length_blocks;
            return Err(format!("{run} blocks are not a multiple of {blocks}"));
        }
        if entry.run_length_blocks > BLOCKS_MAX {
            return Err(format!(
                "{} blocks exceed the limit of a drive",
                entry.run_length_blocks
            ));
        }
        if entry.cylinder.unsigned_abs() > CYLINDERS_MAX as u64 {
            return Err("its cylinder numbers exceed the limit of a drive".to_owned());
        }
        let (step, repetitions) = (entry.cylinder_step, entry.repetition_count());
        if repetitions > 1 && step.unsigned_abs() <= high.abs_diff(low) {
            return Err("its repetitions overlap".to_owned());
        }
        let last = (repetitions as i64 - 1).checked_mul(step);
        let last = last.filter(|last| last.abs() < CYLINDERS_MAX);
        let last = last.ok_or("its cylinder numbers exceed the limit of a drive")?;
        let ends = (
            entry.cylinder + low + last.min(0),
            entry.cylinder + high + last.max(0),
        );
        match ends.0.min(ends.1) < -CYLINDERS_MAX || ends.1 > CYLINDERS_MAX {
            true => Err("its cylinder numbers exceed the limit of a drive".to_owned()),
            false => Ok(ends),
        }
    }

    fn check_slips(&self) -> Result<(), String> {
        let Some(root) = self.track_indices.last() else {
            return Err("the layout has no index".to_owned());
        };
        if root.cylinder_bounds.0 < 0 {
            return Err("the index has cylinders below 0".to_owned());
        }
        if !self.slips.is_sorted_by(|a, b| a.0 < b.0) {
            return Err("the slips do not ascend".to_owned());
        }
        if self.slips.iter().any(|slip| slip.0 > BLOCKS_MAX) {
            return Err("a slip is outside the drive".to_owned());
        }
        let slipped = self
            .slips
            .iter()
            .try_fold(0_u64, |sum, slip| sum.checked_add(slip.1));
        if slipped.is_none_or(|slipped| slipped > root.block_count) {
            return Err("there are more slipped blocks than blocks".to_owned());
        }
        let end = |remap: &RemappedBlocks| remap.first_block.saturating_add(remap.block_count);
        if !self.remaps.is_sorted_by(|a, b| end(a) <= b.first_block) {
            return Err("the remaps do not ascend, or overlap".to_owned());
        }
        let leaves_track = |remap: &&RemappedBlocks| {
            let end = u64::from(remap.sector).saturating_add(remap.block_count);
            remap.block_count == 0 || end > u64::from(remap.sectors_per_track)
        };
        match self.remaps.iter().find(leaves_track) {
            Some(remap) => Err(format!(
                "the remap of {} is not on a track",
                remap.first_block
            )),
            None => Ok(()),
        }
    }

    /// Returns the number of pattern indices.
    pub fn index_count(&self) -> usize {
        self.track_indices.len()
    }

    /// Returns the number of logical blocks.
    pub fn block_count(&self) -> u64 {
        let slipped: u64 = self.slips.iter().map(|slip| slip.1).sum();
        self.track_indices
            .last()
            .map_or(0, |root| root.block_count - slipped)
    }

    /// Returns the physical location of a logical block.
    pub fn locate_block(&self, block: u64) -> Option<PhysicalSector> {
        if block >= self.block_count() {
            return None;
        }
        let index = self
            .remaps
            .partition_point(|remap| remap.first_block <= block);
        if let Some(remap) = index.checked_sub(1).map(|index| &self.remaps[index])
            && block - remap.first_block < remap.block_count
        {
            return Some(self.locate_remapped(remap, (block - remap.first_block) as u32));
        }
        let passed = self.slips.iter().take_while(|slip| slip.0 <= block);
        let position = block + passed.map(|slip| slip.1).sum::<u64>();
        self.locate_in_tree(position)
    }

    fn locate_remapped(&self, remap: &RemappedBlocks, within: u32) -> PhysicalSector {
        let sector = remap.sector + within;
        // A track without data of the tree has no angle of its own.
        let origin = self.find_entry(remap.cylinder, remap.head, None);
        let origin = origin.map_or(0.0, |found| found.start_angle);
        let share = f64::from(sector) / f64::from(remap.sectors_per_track);
        PhysicalSector {
            cylinder: remap.cylinder,
            head: remap.head,
            sector,
            sectors_per_track: remap.sectors_per_track,
            angle: revolution_fraction(origin + share),
        }
    }

    fn locate_in_tree(&self, mut block: u64) -> Option<PhysicalSector> {
        let (mut cylinder, mut angle) = (0_i64, 0.0);
        let mut index = self.track_indices.last()?;
        loop {
            let at = index
                .index_entries
                .partition_point(|entry| entry.first_block <= block);
            let entry = &index.index_entries[at.checked_sub(1)?];
            let within = block - entry.first_block;
            let repetition = within / entry.block_count;
            block = within % entry.block_count;
            cylinder += entry.cylinder + repetition as i64 * entry.cylinder_step;
            // Whole revolutions are dropped on the way, or the small part is lost.
            angle = revolution_fraction(
                angle
                    + entry.start_angle
                    + revolution_fraction(entry.angle_step) * repetition as f64,
            );
            match entry.content {
                IndexedContent::NestedIndex(child) => index = &self.track_indices[child],
                IndexedContent::Track { part, head } => {
                    let track = &self.track_ranges[part];
                    let sector = track.first_cylinder + block as u32;
                    let share = f64::from(sector) / f64::from(track.sectors_per_track);
                    return Some(PhysicalSector {
                        cylinder: u32::try_from(cylinder).ok()?,
                        head,
                        sector,
                        sectors_per_track: track.sectors_per_track,
                        angle: revolution_fraction(angle + share),
                    });
                }
            }
        }
    }

    /// Returns the logical block at a physical location.
    pub fn find_block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let is_at = |remap: &&RemappedBlocks| {
            let same_track = (remap.cylinder, remap.head) == (cylinder, head);
            let within = sector.checked_sub(remap.sector).map(u64::from);
            same_track && within.is_some_and(|within| within < remap.block_count)
        };
        if let Some(remap) = self.remaps.iter().find(is_at) {
            return Some(remap.first_block + u64::from(sector - remap.sector));
        }
        let position = self
            .find_entry(cylinder, head, Some(sector))?
            .first_position;
        let mut passed = 0;
        for &(at, count) in &self.slips {
            if position < at + passed {
                break;
            }
            if position < at + passed + count {
                return None;
            }
            passed += count;
        }
        let block = position - passed;
        let moved = |remap: &RemappedBlocks| {
            let within = block.checked_sub(remap.first_block);
            within.is_some_and(|within| within < remap.block_count)
        };
        (!self.remaps.iter().any(moved)).then_some(block)
    }

    /// Finds the track of a location in the tree, and the sector on it if one is given.
    fn find_entry(&self, cylinder: u32, head: u32, sector: Option<u32>) -> Option<LocatedEntry> {
        let root = self.track_indices.len().checked_sub(1)?;
        let mut open = vec![(
            root,
            i64::from(cylinder),
            LocatedEntry {
                first_position: 0,
                start_angle: 0.0,
            },
        )];
        let mut looks = 0;
        while let Some((index, cylinder, base)) = open.pop() {
            for entry in &self.track_indices[index].index_entries {
                looks += 1;
                if looks > SEARCH_ENTRIES_MAX {
                    return None;
                }
                let (low, high) = match entry.content {
                    IndexedContent::Track { .. } => (0, 0),
                    IndexedContent::NestedIndex(child) => self.track_indices[child].cylinder_bounds,
                };
                let Some(repetition) = repetition_at(entry, cylinder, low, high) else {
                    continue;
                };
                let turned = revolution_fraction(entry.angle_step) * repetition as f64;
                let here = LocatedEntry {
                    first_position: base.first_position
                        + entry.first_block
                        + repetition as u64 * entry.block_count,
                    start_angle: revolution_fraction(base.start_angle + entry.start_angle + turned),
                };
                let from = cylinder - entry.cylinder - repetition * entry.cylinder_step;
                match entry.content {
                    IndexedContent::NestedIndex(child) => open.push((child, from, here)),
                    IndexedContent::Track { part, head: own } if own == head => {
                        let track = &self.track_ranges[part];
                        match sector {
                            None => return Some(here),
                            Some(sector)
                                if (track.first_cylinder..=track.last_cylinder)
                                    .contains(&sector) =>
                            {
                                let position =
                                    here.first_position + u64::from(sector - track.first_cylinder);
                                return Some(LocatedEntry {
                                    first_position: position,
                                    ..here
                                });
                            }
                            Some(_) => {}
                        }
                    }
                    IndexedContent::Track { .. } => {}
                }
            }
        }
        None
    }
}

#[derive(Clone, Copy)]
struct LocatedEntry {
    /// Block number before slips are subtracted.
    first_position: u64,
    start_angle: f64,
}

/// Returns the repetition of a pattern entry that covers a cylinder, if there is one.
fn repetition_at(entry: &IndexEntry, cylinder: i64, low: i64, high: i64) -> Option<i64> {
    let from_first = cylinder - entry.cylinder;
    let last = entry.repetition_count() as i64 - 1;
    let repetition = match entry.cylinder_step {
        0 => 0,
        step if step > 0 => (from_first - low).div_euclid(step),
        step => (high - from_first).div_euclid(-step),
    };
    // A single repetition may cover more cylinders than a step.
    let repetition = if last == 0 { 0 } else { repetition };
    let within = from_first - repetition * entry.cylinder_step;
    let covers = (0..=last).contains(&repetition) && (low..=high).contains(&within);
    covers.then_some(repetition)
}
