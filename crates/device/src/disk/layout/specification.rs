//! A layout as a catalogue file or an importer describes it.

/// Where the sectors of a disk are.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LayoutSpecification {
    /// Surfaces that hold data, each with its head.
    pub surfaces: u32,
    /// Cylinders that the arm can go to. Those in no zone hold nothing, and count in the
    /// distances of seeks.
    pub cylinders: u32,
    /// In which order sectors fill the tracks.
    #[cfg_attr(feature = "serde", serde(default))]
    pub order: TrackOrder,
    /// Where spare sectors are, and what a slip does.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sparing: Sparing,
    /// From the outermost one inwards.
    #[cfg_attr(feature = "serde", serde(default))]
    pub zones: Vec<ZoneSpecification>,
    /// Runs of sectors as they were measured, by their first sector: in place of zones.
    #[cfg_attr(feature = "serde", serde(default))]
    pub extents: Vec<ExtentSpecification>,
    /// The sectors that hosts see, where these are fewer than the zones have room for.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sectors: Option<u64>,
}

/// Neighbouring cylinders with tracks of the same number of sectors.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ZoneSpecification {
    /// The outermost cylinder.
    pub first_cylinder: u32,
    /// The innermost cylinder, which is in the zone.
    pub last_cylinder: u32,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// As many more sectors fit behind these before the index, and hold nothing: no spare
    /// or slip is among them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unused_sectors_per_track: u32,
    /// The angle at which the zone's first track begins, in revolutions.
    #[cfg_attr(feature = "serde", serde(default))]
    pub origin_rev: f64,
    /// How much later each track begins than the one before it, in revolutions.
    #[cfg_attr(feature = "serde", serde(default))]
    pub track_skew_rev: f64,
    /// The same across the end of a cylinder; where the tracks of one surface come first,
    /// across the change of the head.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cylinder_skew_rev: f64,
    /// How much later still the first track of each range of [`Sparing::Range`] begins, in
    /// revolutions: some real disks have this, and no DiskSim file says it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub range_skew_rev: f64,
    /// Groups of heads with a skew of their own.
    #[cfg_attr(feature = "serde", serde(default))]
    pub head_groups: Option<HeadGroups>,
    /// Sectors before the zone's first one that hold nothing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dead_sectors: u64,
    /// Spares of each unit that the sparing scheme has them in: in sectors, and in tracks
    /// under [`Sparing::Tracks`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub spares: u64,
    /// Sectors that are passed over, ascending, by their number among all sectors of the
    /// zone in the order of its tracks; tracks under [`Sparing::Tracks`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub slips: Vec<u64>,
    /// Sectors (under [`Sparing::Tracks`] tracks) and the ones that stand in for them, by
    /// the same numbers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub defects: Vec<(u64, u64)>,
}

/// Heads of a cylinder that settle together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct HeadGroups {
    /// Heads of a group, at least one; the last group has what is left.
    pub heads: u32,
    /// How much later still a track begins for each change of the group before it, counted
    /// head by head over all cylinders of the zone, in revolutions.
    pub skew_rev: f64,
}

/// Neighbouring sectors of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ExtentSpecification {
    /// The first one, as hosts count; the one behind the last of the extent before.
    pub first_sector: u64,
    /// How many.
    pub sectors: u32,
    /// Where they are.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The number of the first one among all sectors of the track.
    pub first_slot: u32,
    /// Sectors of the track, those that hold nothing included.
    pub sectors_per_track: u32,
    /// The angle at which the first one begins, in revolutions.
    pub start_rev: f64,
}

/// In which order sectors fill the tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TrackOrder {
    /// Cylinder by cylinder, heads ascending.
    #[default]
    Cylinders,
    /// Cylinder by cylinder, heads descending on every other one; each zone begins
    /// ascending.
    Serpentine,
    /// The same, heads descending on odd cylinders.
    SerpentineByCylinder,
    /// Many tracks of one surface, then the next surface over the same cylinders, as
    /// disks since about 2000 have it (Wong 2019).
    SeekFirst {
        /// Neighbouring tracks of one surface before the head changes.
        tracks: u32,
        /// How the tracks follow each other from one surface to the next.
        inside: Direction,
        /// How the surfaces follow each other from one band of cylinders to the next.
        surfaces: Direction,
    },
}

/// How something goes on after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Direction {
    /// From the beginning again.
    Forward,
    /// Back the same way, every other time.
    Alternating,
}

/// Where spare sectors are, and what a slip does: the schemes of DiskSim's `g1` layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Sparing {
    /// No spares (0).
    #[default]
    None,
    /// Whole tracks at the end of each zone (1).
    Tracks,
    /// Sectors at the end of each cylinder (2).
    CylinderEnd,
    /// Sectors at the end of each track (3).
    TrackEnd,
    /// Sectors at the end of each cylinder; slips push on to the end (4).
    CylinderEndSlipping,
    /// Sectors at the front of each cylinder (5).
    CylinderFront,
    /// Sectors at the front of each cylinder; slips push on to the end (6).
    CylinderFrontSlipping,
    /// No spares; slips push on to the end (7).
    Slipping,
    /// Sectors at the end of each range of so many cylinders (8).
    Range {
        /// Cylinders of a range.
        cylinders: u32,
    },
    /// Sectors at the end of each zone (9).
    Zone,
    /// Sectors at the end of each zone; slips push on to the end (10).
    ZoneSlipping,
}

impl Sparing {
    /// The scheme of this number in DiskSim's files, with the `Rangesize for sparing`
    /// that only scheme 8 uses; none of a number that has no scheme.
    pub fn of_disksim(number: u32, range_cylinders: u32) -> Option<Self> {
        Some(match number {
            0 => Self::None,
            1 => Self::Tracks,
            2 => Self::CylinderEnd,
            3 => Self::TrackEnd,
            4 => Self::CylinderEndSlipping,
            5 => Self::CylinderFront,
            6 => Self::CylinderFrontSlipping,
            7 => Self::Slipping,
            8 => Self::Range {
                cylinders: range_cylinders,
            },
            9 => Self::Zone,
            10 => Self::ZoneSlipping,
            _ => return None,
        })
    }

    /// Whether spares or ranges belong to cylinders, which must then be filled one after
    /// the other.
    pub(super) fn by_cylinders(self) -> bool {
        match self {
            Self::CylinderEnd
            | Self::CylinderEndSlipping
            | Self::CylinderFront
            | Self::CylinderFrontSlipping
            | Self::Range { .. } => true,
            Self::None
            | Self::Tracks
            | Self::TrackEnd
            | Self::Slipping
            | Self::Zone
            | Self::ZoneSlipping => false,
        }
    }
}

/// Why a layout cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A number that no disk has.
    Range {
        /// Of what, with its key.
        what: String,
        /// The number.
        value: u64,
        /// The least that is taken.
        least: u64,
        /// The most that is taken.
        most: u64,
    },
    /// An angle that is none.
    Angle {
        /// The zone, from 0.
        zone: usize,
        /// The key.
        key: &'static str,
    },
    /// There is nothing to put sectors in.
    NoZones,
    /// Both kinds of layout.
    ZonesAndExtents,
    /// A measured run that cannot be.
    Extent {
        /// The extent, from 0.
        number: usize,
    },
    /// Zones are not in order.
    Order {
        /// The zone, from 0.
        zone: usize,
        /// Its first cylinder.
        first: u32,
        /// Its last cylinder.
        last: u32,
    },
    /// More is taken away than there is.
    Full {
        /// The zone, from 0.
        zone: usize,
        /// Its sectors.
        room: u64,
        /// What is to be taken away.
        taken: u64,
    },
    /// Slips are not in order, or outside of the zone.
    Slip {
        /// The zone, from 0.
        zone: usize,
        /// The slip.
        slip: u64,
    },
    /// A unit has more slips than spares.
    TooManySlips {
        /// The zone, from 0.
        zone: usize,
        /// A slip in that unit.
        slip: u64,
    },
    /// A defect that is not in the zone, or there twice.
    Defect {
        /// The zone, from 0.
        zone: usize,
        /// What is defective.
        defect: u64,
    },
    /// What stands in is no spare.
    Replacement {
        /// The zone, from 0.
        zone: usize,
        /// What is defective.
        defect: u64,
        /// What stands in for it.
        replacement: u64,
    },
    /// Spares by cylinders, and cylinders that are not filled one after the other.
    SeekFirstSparing,
    /// Hosts are to see more than there is.
    Sectors {
        /// What the zones hold.
        room: u64,
        /// What was asked for.
        asked: u64,
    },
}

impl std::fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Range {
                what,
                value,
                least,
                most,
            } => write!(
                formatter,
                "{what} is {value}, and must be between {least} and {most}"
            ),
            Self::Angle { zone, key } => write!(
                formatter,
                "zone {zone}: `{key}` is not a finite number of revolutions"
            ),
            Self::NoZones => formatter.write_str("a disk needs at least one zone"),
            Self::ZonesAndExtents => {
                formatter.write_str("a disk has zones or extents, and not both")
            }
            Self::Extent { number } => write!(
                formatter,
                "extent {number} is not behind the one before it, not on the disk, or where another is"
            ),
            Self::Order { zone, first, last } => write!(
                formatter,
                "zone {zone} has cylinders {first} to {last}, which are not behind the zone before it, or not on the disk"
            ),
            Self::Full { zone, room, taken } => write!(
                formatter,
                "zone {zone} has {room} sectors, and dead sectors, spares and slips take {taken}"
            ),
            Self::Slip { zone, slip } => write!(
                formatter,
                "zone {zone}: slip {slip} is not after the one before it, or not in the zone"
            ),
            Self::TooManySlips { zone, slip } => write!(
                formatter,
                "zone {zone}: the unit of sector {slip} has more slips than spares"
            ),
            Self::Defect { zone, defect } => write!(
                formatter,
                "zone {zone}: defect {defect} is not in the zone, or is listed twice"
            ),
            Self::Replacement {
                zone,
                defect,
                replacement,
            } => write!(
                formatter,
                "zone {zone}: {replacement}, which stands in for defect {defect}, holds data itself, or stands in twice"
            ),
            Self::SeekFirstSparing => formatter.write_str(
                "spares by cylinders or ranges need tracks that fill cylinder by cylinder",
            ),
            Self::Sectors { room, asked } => write!(
                formatter,
                "the disk has {room} sectors, fewer than the {asked} that hosts are to see"
            ),
        }
    }
}

impl std::error::Error for LayoutError {}
