//! Tracks of a drive as its controller formatted them, on top of the layout of its sectors:
//! interleave, the gap before the index, and bad sectors whose data are elsewhere.
//!
//! Controllers of the time count *slots* from the index on; with skew, a track's first sector is
//! not in its first slot.

use diskperf_device::disk::layout::{
    HeadGroups as LayoutHeadGroups, Layout, LayoutError, LayoutSpecification, SectorPosition,
    SectorRun, Sparing, TrackOrder, ZoneSpecification,
};
use diskperf_device::disk::spindle::RotationAngle;
use std::ops::Range;

/// Low-level format of a disk drive. Skews are in slots, the sector positions of a track.
#[derive(Clone, Debug, Default)]
pub struct DiskFormat {
    /// Number of cylinders of the drive.
    pub cylinders: u32,
    /// Number of heads, which is the number of tracks of a cylinder.
    pub heads: u32,
    /// Size of a sector of the drive, in bytes.
    pub sector_bytes: u32,
    /// Zones in ascending order from cylinder 0; at least one.
    pub zones: Vec<TrackZone>,
    /// Spare slots per track, which hold no data.
    pub spare_slots_per_track: u32,
    /// Interleave: slots from a sector to the next one. 1 means no interleave.
    pub interleave_step: u32,
    /// Skew of each track relative to the previous track of the cylinder, in slots.
    pub track_skew_slots: u32,
    /// Skew of a cylinder's first track relative to the previous track, in slots.
    pub cylinder_skew_slots: u32,
    /// Groups of heads with additional skew between the groups, if any.
    pub head_groups: Option<HeadGroups>,
    /// Gap between the last slot of a track and the index, as a share of a revolution.
    pub index_gap_share: f64,
    /// Physical sectors that are skipped by slipping, which reduces the capacity. They count from
    /// the first slot of the first track on, without spare slots.
    pub slipped_sectors: Vec<u64>,
    /// Bad sectors whose data are elsewhere.
    pub revectored_extents: Vec<RevectoredExtent>,
}

/// Zone: cylinders with the same number of sectors per track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackZone {
    /// First cylinder of the zone.
    pub first_cylinder: u32,
    /// Data sectors per track.
    pub sectors_per_track: u32,
}

/// Groups of heads that settle together, with the additional skew between groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadGroups {
    /// Heads per group, at least one. The last group has the remaining heads.
    pub heads_per_group: u32,
    /// Additional skew of the first track of a head group, in slots.
    pub skew_slots: u32,
}

/// Run of bad sectors, and the location of their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevectoredExtent {
    /// First bad sector of the run.
    pub first_bad_sector: u64,
    /// First replacement sector: a physical sector in a [`DiskFormat`], or the logical sector with the
    /// same location in a [`DiskGeometry`].
    pub first_replacement_sector: u64,
    /// Number of sectors in the run of bad sectors.
    pub sector_count: u64,
}

impl From<(u64, u64)> for RevectoredExtent {
    fn from((from, to): (u64, u64)) -> Self {
        let sectors = 1;
        Self {
            first_bad_sector: from,
            first_replacement_sector: to,
            sector_count: sectors,
        }
    }
}

impl RevectoredExtent {
    fn bad_sectors(&self) -> Range<u64> {
        self.first_bad_sector..self.first_bad_sector + self.sector_count
    }

    fn replacement_sectors(&self) -> Range<u64> {
        self.first_replacement_sector..self.first_replacement_sector + self.sector_count
    }
}

/// Contradiction in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// Interleave of zero, or larger than the track.
    #[error("an interleave is between 1 and the sectors on a track")]
    InvalidInterleave,
    /// First zone that does not start at the first cylinder.
    #[error("zones start at cylinder 0, ascend, and lie on the drive")]
    InvalidZones,
    /// Contradiction in the layout of zones and sectors.
    #[error("{0}")]
    InvalidLayout(LayoutError),
    /// Slipped sector beyond the end of the drive.
    #[error("sector {0} is beyond the end of the drive")]
    SlippedBeyondEnd(u64),
    /// Bad sector or replacement sector beyond the end of the drive.
    #[error("sector {0} is beyond the end of the drive")]
    RevectoredBeyondEnd(u64),
    /// Replacement sector that is used twice, or is itself bad.
    #[error("sector {0} is the replacement of two bad sectors, or is bad itself")]
    ReplacementConflict(u64),
    /// Bad sector with two replacement sectors.
    #[error("sector {0} has two replacement sectors")]
    RevectoredTwice(u64),
}

impl GeometryError {
    /// Returns the catalogue key whose value is wrong.
    pub fn catalogue_key(&self) -> &'static str {
        match self {
            Self::InvalidInterleave => "interleave",
            Self::InvalidLayout(LayoutError::ZoneFull { .. }) | Self::SlippedBeyondEnd(_) => {
                "slipped_sectors"
            }
            Self::InvalidZones | Self::InvalidLayout(_) => "zones",
            Self::RevectoredBeyondEnd(_)
            | Self::ReplacementConflict(_)
            | Self::RevectoredTwice(_) => "revectored_sectors",
        }
    }
}

/// Location of the sectors of a formatted drive.
#[derive(Clone, Debug)]
pub struct DiskGeometry {
    layout: Layout,
    sector_bytes: u32,
    /// Track formats by first cylinder; at least one.
    zone_tracks: Vec<ZoneTracks>,
    /// Whether each sector of a track is in the slot of its own number, because the format has no
    /// interleave, skew and index gap.
    has_identity_mapping: bool,
    has_index_gap: bool,
    /// Runs of bad sectors, sorted by their first sectors.
    revectored_extents: Vec<RevectoredExtent>,
}

#[derive(Clone, Debug)]
struct ZoneTracks {
    first_cylinder: u32,
    sectors_per_track: u32,
    slots_per_track: u32,
    /// Angle of a slot, in units of 2^-64 of a revolution.
    sector_arc: u64,
    /// Slots from a sector to the next, and sectors per round. None without interleave.
    interleave_rounds: Option<(u32, u32)>,
}

impl DiskGeometry {
    /// Returns the geometry of a format.
    ///
    /// # Errors
    ///
    /// [`GeometryError`] if the format contradicts itself.
    pub fn new(format: &DiskFormat) -> Result<Self, GeometryError> {
        let slots = |zone: &TrackZone| {
            zone.sectors_per_track
                .saturating_add(format.spare_slots_per_track)
        };
        if format
            .zones
            .first()
            .is_some_and(|zone| zone.first_cylinder > 0)
        {
            return Err(GeometryError::InvalidZones);
        }
        let beyond = |zone: &TrackZone| format.interleave_step > slots(zone);
        if format.interleave_step == 0 || format.zones.iter().any(beyond) {
            return Err(GeometryError::InvalidInterleave);
        }
        let mut slipped = format.slipped_sectors.clone();
        slipped.sort_unstable();
        slipped.dedup();
        let layout = format.build_layout(&slipped)?;
        let arcs = RotationAngle::from_revolutions(-format.index_gap_share).0;
        let has_index_gap = arcs > 0;
        let arcs = if has_index_gap { arcs } else { u64::MAX };
        let tracks = |zone: &TrackZone| ZoneTracks {
            first_cylinder: zone.first_cylinder,
            sectors_per_track: zone.sectors_per_track,
            slots_per_track: slots(zone),
            sector_arc: arcs / u64::from(slots(zone)),
            interleave_rounds: match format.interleave_step {
                1 => None,
                step => Some((step, sectors_per_round(zone.sectors_per_track, step))),
            },
        };
        let group_skew = format.head_groups.map_or(0, |groups| groups.skew_slots);
        let is_skewed = (format.track_skew_slots | format.cylinder_skew_slots | group_skew) != 0;
        let mut geometry = Self {
            sector_bytes: format.sector_bytes,
            zone_tracks: format.zones.iter().map(tracks).collect(),
            has_identity_mapping: !is_skewed && !has_index_gap && format.interleave_step == 1,
            has_index_gap,
            revectored_extents: Vec::new(),
            layout,
        };
        geometry.set_revectored_extents(&format.revectored_extents, &slipped)?;
        Ok(geometry)
    }

    fn set_revectored_extents(
        &mut self,
        runs: &[RevectoredExtent],
        slipped: &[u64],
    ) -> Result<(), GeometryError> {
        let end = self.sector_count();
        let slipped_before = |at: u64| slipped.partition_point(|bad| *bad < at);
        let mut moved = Vec::with_capacity(runs.len());
        for run in runs {
            let replacement = run.replacement_sectors();
            let (before, passed) = (
                slipped_before(run.first_replacement_sector),
                slipped_before(replacement.end),
            );
            if passed > before {
                return Err(GeometryError::ReplacementConflict(slipped[before]));
            }
            let run = RevectoredExtent {
                first_replacement_sector: run.first_replacement_sector - before as u64,
                ..*run
            };
            for sectors in [run.bad_sectors(), run.replacement_sectors()] {
                if sectors.end > end {
                    return Err(GeometryError::RevectoredBeyondEnd(sectors.start.max(end)));
                }
            }
            moved.push(run);
        }
        moved.sort_unstable();
        let bad: Vec<Range<u64>> = moved.iter().map(RevectoredExtent::bad_sectors).collect();
        let mut replacement: Vec<Range<u64>> = moved
            .iter()
            .map(RevectoredExtent::replacement_sectors)
            .collect();
        replacement.sort_unstable_by_key(|sectors| sectors.start);
        if let Some(shared) = first_overlapping_sector(&replacement) {
            return Err(GeometryError::ReplacementConflict(shared));
        }
        if let Some(twice) = first_overlapping_sector(&bad) {
            return Err(GeometryError::RevectoredTwice(twice));
        }
        if let Some(shared) = first_common_sector(&bad, &replacement) {
            return Err(GeometryError::ReplacementConflict(shared));
        }
        self.revectored_extents = moved;
        Ok(())
    }

    /// Returns the first sector of a range that is a replacement for a bad sector, and so cannot
    /// hold data of its own.
    pub fn first_replacement_in(&self, sectors: Range<u64>) -> Option<u64> {
        let first = |run: &RevectoredExtent| {
            let first = run.first_replacement_sector.max(sectors.start);
            (first < run.replacement_sectors().end.min(sectors.end)).then_some(first)
        };
        self.revectored_extents.iter().filter_map(first).min()
    }

    /// Number of cylinders of the drive.
    pub fn cylinders(&self) -> u32 {
        self.layout.cylinder_count()
    }

    /// Number of heads, which is the number of tracks of a cylinder.
    pub fn heads(&self) -> u32 {
        self.layout.surface_count()
    }

    /// Size of a sector of the drive, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Returns the number of data sectors per track of a cylinder.
    pub fn sectors_per_track(&self, cylinder: u32) -> u32 {
        self.zone_tracks_of_cylinder(cylinder).sectors_per_track
    }

    /// Returns the number of slots per track of a cylinder, including spare slots.
    pub fn slots_per_track(&self, cylinder: u32) -> u32 {
        self.zone_tracks_of_cylinder(cylinder).slots_per_track
    }

    /// Returns the angle of a slot on a cylinder, in units of 2^-64 of a revolution.
    #[inline]
    pub(super) fn sector_arc(&self, cylinder: u32) -> u64 {
        self.zone_tracks_of_cylinder(cylinder).sector_arc
    }

    /// Minimum number of slots per track over all zones.
    pub fn slots_per_track_min(&self) -> u32 {
        let slots = self.zone_tracks.iter().map(|tracks| tracks.slots_per_track);
        slots.min().expect("a drive has a zone")
    }

    /// Returns the number of a cylinder's first sector, under the assumption that no sector before
    /// it is bad.
    pub fn first_sector(&self, cylinder: u32) -> u64 {
        let ends_at = self
            .zone_tracks
            .iter()
            .skip(1)
            .map(|next| next.first_cylinder);
        let ends_at = ends_at.chain([u32::MAX]);
        let per_head = self.zone_tracks.iter().zip(ends_at).map(|(tracks, end)| {
            let cylinders = end.min(cylinder).saturating_sub(tracks.first_cylinder);
            u64::from(cylinders) * u64::from(tracks.sectors_per_track)
        });
        per_head.sum::<u64>() * u64::from(self.heads())
    }

    /// Number of logical sectors of the drive.
    pub fn sector_count(&self) -> u64 {
        self.layout.sectors()
    }

    /// Capacity of the drive, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.sector_count() * u64::from(self.sector_bytes)
    }

    #[inline]
    fn zone_tracks_of_cylinder(&self, cylinder: u32) -> &ZoneTracks {
        if let [tracks] = &self.zone_tracks[..] {
            return tracks;
        }
        let after = self
            .zone_tracks
            .partition_point(|tracks| tracks.first_cylinder <= cylinder);
        &self.zone_tracks[after - 1]
    }

    /// Returns the location of a logical sector. The sector number of the location is that of its
    /// slot.
    ///
    /// # Panics
    ///
    /// If the sector is not on the drive.
    #[inline]
    pub fn locate_sector(&self, sector: u64) -> SectorPosition {
        self.run_from_sector(sector).position
    }

    /// Returns the location of a logical sector, and the number of sectors in consecutive slots
    /// from there on.
    ///
    /// # Panics
    ///
    /// If the sector is not on the drive.
    #[inline]
    pub fn run_from_sector(&self, sector: u64) -> SectorRun {
        let run = match self.revectored_extents.is_empty() {
            true => self.layout.run_at(sector),
            false => self.run_around_defects(sector),
        };
        match self.has_identity_mapping {
            true => run,
            false => self.apply_format_to_run(run),
        }
    }

    fn run_around_defects(&self, sector: u64) -> SectorRun {
        let next = self
            .revectored_extents
            .partition_point(|run| run.first_bad_sector <= sector);
        let before = next.checked_sub(1).map(|run| self.revectored_extents[run]);
        if let Some(moved) = before.filter(|run| run.bad_sectors().contains(&sector)) {
            let replacement = self
                .layout
                .run_at(moved.first_replacement_sector + (sector - moved.first_bad_sector));
            return SectorRun {
                sector_count: 1,
                ..replacement
            };
        }
        let mut run = self.layout.run_at(sector);
        if let Some(next) = self.revectored_extents.get(next) {
            run.sector_count =
                (next.first_bad_sector - sector).min(u64::from(run.sector_count)) as u32;
        }
        run
    }

    /// Converts a run of sectors from the plain layout to the slots of the format.
    fn apply_format_to_run(&self, run: SectorRun) -> SectorRun {
        let SectorRun {
            position: place,
            sector_count: mut sectors,
            ..
        } = run;
        let tracks = self.zone_tracks_of_cylinder(place.cylinder);
        let track =
            place.start_angle - RotationAngle(place.sector_angle).times(u64::from(place.sector));
        let mut on_track = place.sector;
        if let Some(interleave) = tracks.interleave_rounds {
            (on_track, sectors) = (
                slot_with_interleave(place.sector, tracks.sectors_per_track, interleave),
                1,
            );
        }
        // Skews turn tracks by whole slots, up to the rounding of a share.
        let turned = (track + RotationAngle(place.sector_angle / 2)).0 / place.sector_angle;
        let slot = (turned as u32 + on_track) % tracks.slots_per_track;
        if self.has_index_gap {
            // A run ends at the index: behind the last slot is the gap.
            sectors = sectors.min(tracks.slots_per_track - slot);
        }
        let place = SectorPosition {
            sector: slot,
            start_angle: RotationAngle(tracks.sector_arc * u64::from(slot)),
            sector_angle: tracks.sector_arc,
            ..place
        };
        SectorRun {
            position: place,
            sector_count: sectors,
            sectors_before: 0,
        }
    }
}

impl DiskFormat {
    /// Returns the format of a drive with a single sector, as a substitute for a format that
    /// contradicts itself.
    pub(crate) fn new_single_sector() -> Self {
        Self {
            cylinders: 1,
            heads: 1,
            sector_bytes: 512,
            zones: vec![TrackZone {
                first_cylinder: 0,
                sectors_per_track: 1,
            }],
            interleave_step: 1,
            ..Self::default()
        }
    }

    /// Returns the layout of the slots with the given slipped sectors, without interleave and index
    /// gap.
    fn build_layout(&self, slipped: &[u64]) -> Result<Layout, GeometryError> {
        let heads = u64::from(self.heads);
        let groups = self.head_groups.unwrap_or(HeadGroups {
            heads_per_group: self.heads,
            skew_slots: 0,
        });
        let changes = heads.saturating_sub(1) / u64::from(groups.heads_per_group.max(1));
        let per_cylinder = u64::from(self.track_skew_slots) * heads.saturating_sub(1)
            + u64::from(self.cylinder_skew_slots)
            + u64::from(groups.skew_slots) * changes;
        let ends_at = self.zones.iter().skip(1).map(|next| next.first_cylinder);
        let mut zones = Vec::with_capacity(self.zones.len());
        let (mut slips, mut first) = (slipped, 0);
        for (zone, end) in self.zones.iter().zip(ends_at.chain([self.cylinders])) {
            let slots = u64::from(zone.sectors_per_track) + u64::from(self.spare_slots_per_track);
            let rev = |slots_turned: u64| (slots_turned % slots.max(1)) as f64 / slots as f64;
            let cylinders = u64::from(end.saturating_sub(zone.first_cylinder));
            let next = first + cylinders * heads * u64::from(zone.sectors_per_track);
            let of_zone = slips.partition_point(|slip| *slip < next);
            zones.push(ZoneSpecification {
                first_cylinder: zone.first_cylinder,
                last_cylinder: end.saturating_sub(1),
                sectors_per_track: zone.sectors_per_track,
                unused_sectors_per_track: self.spare_slots_per_track,
                origin_rev: rev(per_cylinder * u64::from(zone.first_cylinder)),
                track_skew_rev: rev(u64::from(self.track_skew_slots)),
                cylinder_skew_rev: rev(u64::from(self.cylinder_skew_slots)),
                head_groups: Some(LayoutHeadGroups {
                    heads_per_group: groups.heads_per_group,
                    skew_rev: rev(u64::from(groups.skew_slots)),
                }),
                slipped_sectors: slips[..of_zone].iter().map(|slip| slip - first).collect(),
                ..ZoneSpecification::default()
            });
            (slips, first) = (&slips[of_zone..], next);
        }
        if let Some(beyond) = slips.first() {
            return Err(GeometryError::SlippedBeyondEnd(*beyond));
        }
        let specification = LayoutSpecification {
            surface_count: self.heads,
            cylinder_count: self.cylinders,
            track_order: TrackOrder::Cylinders,
            sparing: Sparing::Slipping,
            zones,
            extents: Vec::new(),
            sector_count: None,
        };
        Layout::new(&specification).map_err(GeometryError::InvalidLayout)
    }
}

/// Returns the slot of a sector with interleave. As in a formatter, each sector is `step` slots
/// after the previous one. When the steps lead back to the first slot, the next free slot follows.
fn slot_with_interleave(sector: u32, sectors: u32, (step, per_round): (u32, u32)) -> u32 {
    let steps = u64::from(sector % per_round) * u64::from(step);
    (steps % u64::from(sectors)) as u32 + sector / per_round
}

/// Returns the number of sectors after which steps of `step` slots lead back to the first slot.
fn sectors_per_round(sectors: u32, step: u32) -> u32 {
    let (mut common, mut rest) = (sectors, step % sectors);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    sectors / common
}

/// Returns the first sector that two ranges of an ascending list share, if any.
fn first_overlapping_sector(ascending: &[Range<u64>]) -> Option<u64> {
    let mut pairs = ascending.windows(2);
    let shared = pairs.find(|pair| pair[0].end > pair[1].start);
    shared.map(|pair| pair[1].start)
}

/// Returns a sector that is in both lists of ranges, if any. The first list is ascending and
/// without overlaps.
fn first_common_sector(ascending: &[Range<u64>], others: &[Range<u64>]) -> Option<u64> {
    others.iter().find_map(|other| {
        let before = ascending.partition_point(|one| one.start < other.end);
        let last = &ascending[before.checked_sub(1)?];
        (last.end > other.start).then(|| last.start.max(other.start))
    })
}
