//! The tracks of a drive as its controller formatted them, over the layout of its sectors:
//! interleave, the gap before the index, and bad sectors whose data is elsewhere.
//!
//! Controllers of the time count *slots* from the index on; with skew a track's first
//! sector is not in its first slot.

use diskperf_device::disk::layout::{
    HeadGroups as LayoutHeadGroups, Layout, LayoutError, LayoutSpecification, Place, Run, Sparing,
    TrackOrder, ZoneSpecification,
};
use diskperf_device::disk::spindle::Turn;
use std::ops::Range;

/// Format of a drive. Skews are in slots.
#[derive(Clone, Debug, Default)]
pub struct Format {
    /// Cylinders under the heads.
    pub cylinders: u32,
    /// Heads, which are the tracks of a cylinder.
    pub heads: u32,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Zones, ascending from cylinder 0; at least one.
    pub zones: Vec<Zone>,
    /// Slots of each track that hold no data.
    pub spare_slots: u32,
    /// Slots from a sector to the next one; 1 is no interleave.
    pub interleave: u32,
    /// Turn of each track against the one before it.
    pub track_skew: u32,
    /// Turn of a cylinder's first track against the track before it.
    pub cylinder_skew: u32,
    /// Heads that settle together.
    pub head_groups: Option<HeadGroups>,
    /// Gap between the last slot of a track and the index, as a share of a revolution.
    pub index_gap_share: f64,
    /// Physical sectors that logical ones slip past, which shortens the drive. Counted
    /// from the first slot of the first track on, without spare slots.
    pub slipped: Vec<u64>,
    /// Bad sectors whose data is elsewhere.
    pub revectored: Vec<Revectored>,
}

/// Cylinders with tracks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The first of them.
    pub first_cylinder: u32,
    /// Data sectors of a track.
    pub sectors_per_track: u32,
}

/// Heads that settle together, and what a step to the next group turns a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadGroups {
    /// Heads of a group, at least one; the last group has what is left.
    pub heads: u32,
    /// Slots from a group to the next.
    pub skew: u32,
}

/// Bad sectors that follow each other, and where their data is instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revectored {
    /// The first bad one.
    pub from: u64,
    /// The first of those that have their data: a physical sector in a [`Format`], the
    /// logical sector that would be there in a [`Geometry`].
    pub to: u64,
    /// Sectors of the run.
    pub sectors: u64,
}

impl From<(u64, u64)> for Revectored {
    fn from((from, to): (u64, u64)) -> Self {
        let sectors = 1;
        Self { from, to, sectors }
    }
}

impl Revectored {
    fn bad(&self) -> Range<u64> {
        self.from..self.from + self.sectors
    }

    fn instead(&self) -> Range<u64> {
        self.to..self.to + self.sectors
    }
}

/// Contradictions of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// An interleave of zero, or beyond the track.
    #[error("an interleave is between 1 and the sectors on a track")]
    Interleave,
    /// A first zone that is not at the first cylinder.
    #[error("zones start at cylinder 0, ascend, and lie on the drive")]
    Zones,
    /// What no disk has.
    #[error("{0}")]
    Layout(LayoutError),
    /// A slipped sector beyond the drive.
    #[error("sector {0} is beyond the end of the drive")]
    SlippedBeyond(u64),
    /// A revectored sector, or one for its data, beyond the drive.
    #[error("sector {0} is beyond the end of the drive")]
    Beyond(u64),
    /// Data of two sectors, or of a bad one, at the same place.
    #[error("sector {0} would hold the data of two others, or is bad itself")]
    Shared(u64),
    /// A bad sector with two places for its data.
    #[error("the data of sector {0} are to be in two places")]
    Twice(u64),
}

impl GeometryError {
    /// The catalogue key whose value is wrong.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Interleave => "interleave",
            Self::Layout(LayoutError::Full { .. }) | Self::SlippedBeyond(_) => "slipped_sectors",
            Self::Zones | Self::Layout(_) => "zones",
            Self::Beyond(_) | Self::Shared(_) | Self::Twice(_) => "revectored_sectors",
        }
    }
}

/// Where the sectors of a formatted drive are.
#[derive(Clone, Debug)]
pub struct Geometry {
    layout: Layout,
    sector_bytes: u32,
    /// At least one, by first cylinder.
    tracks: Vec<Tracks>,
    /// Whether sectors are in the slots of their own numbers.
    is_plain: bool,
    has_index_gap: bool,
    /// Runs of bad sectors, by their first sectors.
    revectored: Vec<Revectored>,
}

/// Tracks of a zone.
#[derive(Clone, Debug)]
struct Tracks {
    first_cylinder: u32,
    sectors: u32,
    slots: u32,
    /// Part of the circle that a slot has.
    arc: u64,
    /// Slots from a sector to the next, and sectors of a round; none without interleave.
    interleave: Option<(u32, u32)>,
}

impl Geometry {
    /// The drive of a format.
    ///
    /// # Errors
    ///
    /// [`GeometryError`] when the format contradicts itself.
    pub fn new(format: &Format) -> Result<Self, GeometryError> {
        let slots = |zone: &Zone| zone.sectors_per_track.saturating_add(format.spare_slots);
        if format
            .zones
            .first()
            .is_some_and(|zone| zone.first_cylinder > 0)
        {
            return Err(GeometryError::Zones);
        }
        let beyond = |zone: &Zone| format.interleave > slots(zone);
        if format.interleave == 0 || format.zones.iter().any(beyond) {
            return Err(GeometryError::Interleave);
        }
        let mut slipped = format.slipped.clone();
        slipped.sort_unstable();
        slipped.dedup();
        let layout = format.layout(&slipped)?;
        let arcs = Turn::of_revolutions(-format.index_gap_share).0;
        let has_index_gap = arcs > 0;
        let arcs = if has_index_gap { arcs } else { u64::MAX };
        let tracks = |zone: &Zone| Tracks {
            first_cylinder: zone.first_cylinder,
            sectors: zone.sectors_per_track,
            slots: slots(zone),
            arc: arcs / u64::from(slots(zone)),
            interleave: match format.interleave {
                1 => None,
                step => Some((step, sectors_per_round(zone.sectors_per_track, step))),
            },
        };
        let group_skew = format.head_groups.map_or(0, |groups| groups.skew);
        let is_skewed = (format.track_skew | format.cylinder_skew | group_skew) != 0;
        let mut geometry = Self {
            sector_bytes: format.sector_bytes,
            tracks: format.zones.iter().map(tracks).collect(),
            is_plain: !is_skewed && !has_index_gap && format.interleave == 1,
            has_index_gap,
            revectored: Vec::new(),
            layout,
        };
        geometry.revector(&format.revectored, &slipped)?;
        Ok(geometry)
    }

    /// Has the data of bad sectors be elsewhere.
    fn revector(&mut self, runs: &[Revectored], slipped: &[u64]) -> Result<(), GeometryError> {
        let end = self.sectors();
        let slipped_before = |at: u64| slipped.partition_point(|bad| *bad < at);
        let mut moved = Vec::with_capacity(runs.len());
        for run in runs {
            let instead = run.instead();
            let (before, passed) = (slipped_before(run.to), slipped_before(instead.end));
            if passed > before {
                return Err(GeometryError::Shared(slipped[before]));
            }
            let run = Revectored {
                to: run.to - before as u64,
                ..*run
            };
            for sectors in [run.bad(), run.instead()] {
                if sectors.end > end {
                    return Err(GeometryError::Beyond(sectors.start.max(end)));
                }
            }
            moved.push(run);
        }
        moved.sort_unstable();
        let bad: Vec<Range<u64>> = moved.iter().map(Revectored::bad).collect();
        let mut instead: Vec<Range<u64>> = moved.iter().map(Revectored::instead).collect();
        instead.sort_unstable_by_key(|sectors| sectors.start);
        if let Some(shared) = shared_within(&instead) {
            return Err(GeometryError::Shared(shared));
        }
        if let Some(twice) = shared_within(&bad) {
            return Err(GeometryError::Twice(twice));
        }
        if let Some(shared) = shared_between(&bad, &instead) {
            return Err(GeometryError::Shared(shared));
        }
        self.revectored = moved;
        Ok(())
    }

    /// The first of these logical sectors that holds the data of a bad one: no data of its
    /// own may be on it.
    pub fn stand_in_among(&self, sectors: Range<u64>) -> Option<u64> {
        let first = |run: &Revectored| {
            let first = run.to.max(sectors.start);
            (first < run.instead().end.min(sectors.end)).then_some(first)
        };
        self.revectored.iter().filter_map(first).min()
    }

    /// Cylinders.
    pub fn cylinders(&self) -> u32 {
        self.layout.cylinders()
    }

    /// Heads, which are the tracks of a cylinder.
    pub fn heads(&self) -> u32 {
        self.layout.surfaces()
    }

    /// Bytes in a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Data sectors on a track of a cylinder.
    pub fn sectors_per_track(&self, cylinder: u32) -> u32 {
        self.tracks_of(cylinder).sectors
    }

    /// Slots that turn by on a track of a cylinder, spares included.
    pub fn slots(&self, cylinder: u32) -> u32 {
        self.tracks_of(cylinder).slots
    }

    /// Part of the circle that a slot of a cylinder has.
    #[inline]
    pub(super) fn arc(&self, cylinder: u32) -> u64 {
        self.tracks_of(cylinder).arc
    }

    /// The fewest slots that a track has.
    pub fn slots_min(&self) -> u32 {
        let slots = self.tracks.iter().map(|tracks| tracks.slots);
        slots.min().expect("a drive has a zone")
    }

    /// The number that the first sector of a cylinder has where none before it is bad.
    pub fn first_sector(&self, cylinder: u32) -> u64 {
        let ends = self.tracks.iter().skip(1).map(|next| next.first_cylinder);
        let ends = ends.chain([u32::MAX]);
        let per_head = self.tracks.iter().zip(ends).map(|(tracks, end)| {
            let cylinders = end.min(cylinder).saturating_sub(tracks.first_cylinder);
            u64::from(cylinders) * u64::from(tracks.sectors)
        });
        per_head.sum::<u64>() * u64::from(self.heads())
    }

    /// Logical sectors.
    pub fn sectors(&self) -> u64 {
        self.layout.sectors()
    }

    /// Logical bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.sectors() * u64::from(self.sector_bytes)
    }

    #[inline]
    fn tracks_of(&self, cylinder: u32) -> &Tracks {
        if let [tracks] = &self.tracks[..] {
            return tracks;
        }
        let after = self
            .tracks
            .partition_point(|tracks| tracks.first_cylinder <= cylinder);
        &self.tracks[after - 1]
    }

    /// Where a logical sector is; its number on the track is that of its slot.
    ///
    /// # Panics
    ///
    /// When it is not on the drive.
    #[inline]
    pub fn locate(&self, sector: u64) -> Place {
        self.run(sector).place
    }

    /// The same, and how many follow it slot by slot.
    ///
    /// # Panics
    ///
    /// When it is not on the drive.
    #[inline]
    pub fn run(&self, sector: u64) -> Run {
        let run = match self.revectored.is_empty() {
            true => self.layout.run(sector),
            false => self.run_around_defects(sector),
        };
        match self.is_plain {
            true => run,
            false => self.formatted(run),
        }
    }

    fn run_around_defects(&self, sector: u64) -> Run {
        let next = self.revectored.partition_point(|run| run.from <= sector);
        let before = next.checked_sub(1).map(|run| self.revectored[run]);
        if let Some(moved) = before.filter(|run| run.bad().contains(&sector)) {
            let instead = self.layout.run(moved.to + (sector - moved.from));
            return Run {
                sectors: 1,
                ..instead
            };
        }
        let mut run = self.layout.run(sector);
        if let Some(next) = self.revectored.get(next) {
            run.sectors = (next.from - sector).min(u64::from(run.sectors)) as u32;
        }
        run
    }

    /// The same sectors in their slots.
    fn formatted(&self, run: Run) -> Run {
        let Run {
            place, mut sectors, ..
        } = run;
        let tracks = self.tracks_of(place.cylinder);
        let track = place.start - Turn(place.arc).times(u64::from(place.sector));
        let mut on_track = place.sector;
        if let Some(interleave) = tracks.interleave {
            (on_track, sectors) = (interleaved(place.sector, tracks.sectors, interleave), 1);
        }
        // Skews turn tracks by whole slots, up to the rounding of a share.
        let turned = (track + Turn(place.arc / 2)).0 / place.arc;
        let slot = (turned as u32 + on_track) % tracks.slots;
        if self.has_index_gap {
            // A run ends at the index: behind the last slot is the gap.
            sectors = sectors.min(tracks.slots - slot);
        }
        let place = Place {
            sector: slot,
            start: Turn(tracks.arc * u64::from(slot)),
            arc: tracks.arc,
            ..place
        };
        Run {
            place,
            sectors,
            before: 0,
        }
    }
}

impl Format {
    /// A drive of one sector, in place of one that contradicts itself.
    pub(crate) fn one_sector() -> Self {
        Self {
            cylinders: 1,
            heads: 1,
            sector_bytes: 512,
            zones: vec![Zone {
                first_cylinder: 0,
                sectors_per_track: 1,
            }],
            interleave: 1,
            ..Self::default()
        }
    }

    /// The layout of slots without interleave and gap, with these slipped sectors.
    fn layout(&self, slipped: &[u64]) -> Result<Layout, GeometryError> {
        let heads = u64::from(self.heads);
        let groups = self.head_groups.unwrap_or(HeadGroups {
            heads: self.heads,
            skew: 0,
        });
        let changes = heads.saturating_sub(1) / u64::from(groups.heads.max(1));
        let per_cylinder = u64::from(self.track_skew) * heads.saturating_sub(1)
            + u64::from(self.cylinder_skew)
            + u64::from(groups.skew) * changes;
        let ends = self.zones.iter().skip(1).map(|next| next.first_cylinder);
        let mut zones = Vec::with_capacity(self.zones.len());
        let (mut slips, mut first) = (slipped, 0);
        for (zone, end) in self.zones.iter().zip(ends.chain([self.cylinders])) {
            let slots = u64::from(zone.sectors_per_track) + u64::from(self.spare_slots);
            let rev = |slots_turned: u64| (slots_turned % slots.max(1)) as f64 / slots as f64;
            let cylinders = u64::from(end.saturating_sub(zone.first_cylinder));
            let next = first + cylinders * heads * u64::from(zone.sectors_per_track);
            let of_zone = slips.partition_point(|slip| *slip < next);
            zones.push(ZoneSpecification {
                first_cylinder: zone.first_cylinder,
                last_cylinder: end.saturating_sub(1),
                sectors_per_track: zone.sectors_per_track,
                unused_sectors_per_track: self.spare_slots,
                origin_rev: rev(per_cylinder * u64::from(zone.first_cylinder)),
                track_skew_rev: rev(u64::from(self.track_skew)),
                cylinder_skew_rev: rev(u64::from(self.cylinder_skew)),
                head_groups: Some(LayoutHeadGroups {
                    heads: groups.heads,
                    skew_rev: rev(u64::from(groups.skew)),
                }),
                slips: slips[..of_zone].iter().map(|slip| slip - first).collect(),
                ..ZoneSpecification::default()
            });
            (slips, first) = (&slips[of_zone..], next);
        }
        if let Some(beyond) = slips.first() {
            return Err(GeometryError::SlippedBeyond(*beyond));
        }
        let specification = LayoutSpecification {
            surfaces: self.heads,
            cylinders: self.cylinders,
            order: TrackOrder::Cylinders,
            sparing: Sparing::Slipping,
            zones,
            extents: Vec::new(),
            sectors: None,
        };
        Layout::new(&specification).map_err(GeometryError::Layout)
    }
}

/// The slot of a track's sector as a formatter chooses it: each lies a step of slots after the
/// one before it, or in the next free slot after that, which it is when the steps have led round
/// to the first.
fn interleaved(sector: u32, sectors: u32, (step, per_round): (u32, u32)) -> u32 {
    let steps = u64::from(sector % per_round) * u64::from(step);
    (steps % u64::from(sectors)) as u32 + sector / per_round
}

/// Sectors after which steps of so many slots lead round to the first.
fn sectors_per_round(sectors: u32, step: u32) -> u32 {
    let (mut common, mut rest) = (sectors, step % sectors);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    sectors / common
}

/// The first sector that two of these have; they ascend.
fn shared_within(ascending: &[Range<u64>]) -> Option<u64> {
    let mut pairs = ascending.windows(2);
    let shared = pairs.find(|pair| pair[0].end > pair[1].start);
    shared.map(|pair| pair[1].start)
}

/// A sector that one of these has and one of the others; these ascend, and no two of
/// them share one.
fn shared_between(ascending: &[Range<u64>], others: &[Range<u64>]) -> Option<u64> {
    others.iter().find_map(|other| {
        let before = ascending.partition_point(|one| one.start < other.end);
        let last = &ascending[before.checked_sub(1)?];
        (last.end > other.start).then(|| last.start.max(other.start))
    })
}
