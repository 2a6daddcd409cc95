//! Sector layout as a catalogue file or an importer describes it.

/// Specification of a disk's sector layout: zones, or measured extents.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LayoutSpecification {
    /// Number of surfaces that hold data, each with its own head.
    #[cfg_attr(feature = "serde", serde(rename = "surfaces"))]
    pub surface_count: u32,
    /// Number of cylinders that the arm can reach. Cylinders outside all zones hold no data, but
    /// count in seek distances.
    #[cfg_attr(feature = "serde", serde(rename = "cylinders"))]
    pub cylinder_count: u32,
    /// Order in which sectors fill the tracks.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "order"))]
    pub track_order: TrackOrder,
    /// Place of spare sectors, and effect of slipped sectors.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sparing: Sparing,
    /// Zones from the outer edge inwards; empty if `extents` are given.
    #[cfg_attr(feature = "serde", serde(default))]
    pub zones: Vec<ZoneSpecification>,
    /// Measured runs of sectors in ascending order, instead of zones.
    #[cfg_attr(feature = "serde", serde(default))]
    pub extents: Vec<ExtentSpecification>,
    /// Number of sectors that hosts see, if the zones have room for more.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "sectors"))]
    pub sector_count: Option<u64>,
}

/// Zone of adjacent cylinders whose tracks have the same number of sectors.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ZoneSpecification {
    /// Outermost cylinder of the zone.
    pub first_cylinder: u32,
    /// Innermost cylinder of the zone (inclusive).
    pub last_cylinder: u32,
    /// Number of usable sectors on a track of the zone.
    pub sectors_per_track: u32,
    /// Number of further sectors that fit on a track before the index mark. These hold no data,
    /// spares or slips.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unused_sectors_per_track: u32,
    /// Angle at which the zone's first track begins, in revolutions.
    #[cfg_attr(feature = "serde", serde(default))]
    pub origin_rev: f64,
    /// Angle by which each track of the zone starts later than the previous one (track skew), in
    /// revolutions.
    #[cfg_attr(feature = "serde", serde(default))]
    pub track_skew_rev: f64,
    /// Angle by which a track starts later than the previous one across the end of a cylinder
    /// (cylinder skew), in revolutions. Under [`TrackOrder::SeekFirst`], the skew across a head
    /// switch.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cylinder_skew_rev: f64,
    /// Additional skew of the first track of each range of [`Sparing::Range`], in revolutions. Some
    /// real disks have it; no DiskSim file states it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub range_skew_rev: f64,
    /// Groups of heads with an additional skew between them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub head_groups: Option<HeadGroups>,
    /// Number of sectors at the start of the zone that hold no data.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dead_sectors: u64,
    /// Number of spares in each unit of the sparing scheme, in sectors; in tracks under
    /// [`Sparing::Tracks`].
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "spares"))]
    pub spare_sectors: u64,
    /// Slipped sectors, which the numbering of logical blocks skips, in ascending order. They are
    /// numbered among all sectors of the zone in track order. Tracks under [`Sparing::Tracks`].
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "slips"))]
    pub slipped_sectors: Vec<u64>,
    /// Pairs of a defective sector and its replacement, numbered as in `slips`. Pairs of tracks
    /// under [`Sparing::Tracks`].
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "defects"))]
    pub remapped_defects: Vec<(u64, u64)>,
}

/// Groups of heads in a cylinder, with an additional skew between groups.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct HeadGroups {
    /// Heads per group, at least one. The last group has the rest.
    #[cfg_attr(feature = "serde", serde(rename = "heads"))]
    pub heads_per_group: u32,
    /// Additional skew of a track for each change of the group before it, in revolutions. Changes
    /// are counted head by head over all cylinders of the zone.
    pub skew_rev: f64,
}

/// Measured run of contiguous sectors on one track.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ExtentSpecification {
    /// First logical sector of the extent. Must directly follow the previous extent.
    pub first_sector: u64,
    /// Number of sectors in the extent.
    #[cfg_attr(feature = "serde", serde(rename = "sectors"))]
    pub sector_count: u32,
    /// Cylinder on which the extent lies.
    pub cylinder: u32,
    /// Head, and so surface, on which the extent lies.
    pub head: u32,
    /// Number of the extent's first sector among all sectors of the track.
    pub first_slot: u32,
    /// Number of sectors on the track, including those that hold no data.
    pub sectors_per_track: u32,
    /// Angle at which the extent's first sector begins, in revolutions.
    pub start_rev: f64,
}

/// Order in which logical sectors fill the tracks of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TrackOrder {
    /// Sectors fill the tracks cylinder by cylinder, with ascending heads.
    #[default]
    Cylinders,
    /// Cylinder by cylinder, with descending heads on every other cylinder. Each zone begins with
    /// ascending heads.
    Serpentine,
    /// Cylinder by cylinder, with descending heads on odd cylinder numbers.
    SerpentineByCylinder,
    /// Many tracks of one surface, then the next surface over the same cylinders. Disks since about
    /// 2000 use this order (Wong 2019).
    SeekFirst {
        /// Adjacent tracks of one surface that are filled before the head switches.
        tracks: u32,
        inside: HeadDirection,
        /// Order of the surfaces from one band of cylinders to the next.
        surfaces: HeadDirection,
    },
}

/// Direction of a repeated pass over tracks or surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum HeadDirection {
    /// Each pass starts from the beginning again.
    Forward,
    /// Every other pass over tracks or surfaces runs backwards.
    Alternating,
}

/// Place of spare sectors and effect of slips: the schemes of DiskSim's `g1` layout, whose number
/// is in parentheses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Sparing {
    /// The disk has no spare sectors (0).
    #[default]
    None,
    /// Spare tracks at the end of each zone (1).
    Tracks,
    /// Spare sectors at the end of each cylinder (2).
    CylinderEnd,
    /// Spare sectors at the end of each track (3).
    TrackEnd,
    /// Spare sectors at the end of each cylinder; a slip shifts all later sectors of the zone (4).
    CylinderEndSlipping,
    /// Spare sectors at the front of each cylinder (5).
    CylinderFront,
    /// Spare sectors at the front of each cylinder; a slip shifts all later sectors of the zone
    /// (6).
    CylinderFrontSlipping,
    /// No spare sectors; a slip shifts all later sectors of the zone (7).
    Slipping,
    /// Spare sectors at the end of each range of cylinders (8).
    Range { cylinders: u32 },
    /// Spare sectors at the end of each zone (9).
    Zone,
    /// Spare sectors at the end of each zone; a slip shifts all later sectors of the zone (10).
    ZoneSlipping,
}

impl Sparing {
    /// Returns the sparing scheme with a number of DiskSim's files. Only scheme 8 uses the
    /// `Rangesize for sparing`. Returns `None` for an unknown number.
    pub fn from_disksim(number: u32, range_cylinders: u32) -> Option<Self> {
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

    /// Tests whether spares belong to cylinders or ranges of cylinders, which then must be filled
    /// one after the other.
    pub(super) fn counts_in_cylinders(self) -> bool {
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

/// Reason why a sector layout is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A parameter of the layout is out of range.
    OutOfRange {
        /// Name of the parameter, with its key.
        what: String,
        /// Value of the layout parameter that is out of range.
        value: u64,
        /// Minimum valid value of the layout parameter.
        least: u64,
        /// Maximum valid value of the layout parameter.
        most: u64,
    },
    /// An angle is not a finite number.
    AngleOutOfRange {
        /// Index of the zone with the invalid angle, from 0.
        zone: usize,
        /// Key of the angle that is not a finite number.
        key: &'static str,
    },
    /// The layout has neither zones nor extents.
    NoZones,
    /// The layout has both zones and extents.
    ZonesAndExtents,
    /// A measured extent does not follow the previous one, is not on the disk, or overlaps another
    /// one.
    InvalidExtent {
        /// Index of the invalid extent, from 0.
        number: usize,
    },
    /// The zones are not in ascending order of cylinders, or not on the disk.
    ZonesOutOfOrder {
        /// Index of the invalid zone, from 0.
        zone: usize,
        /// First cylinder of the zone that is out of order.
        first: u32,
        /// Last cylinder of the zone that is out of order.
        last: u32,
    },
    /// Dead sectors, spares and slips use up a zone.
    ZoneFull {
        /// Index of the exhausted zone, from 0.
        zone: usize,
        /// Number of physical sectors in the zone.
        room: u64,
        /// Number of dead sectors, spares and slips together.
        taken: u64,
    },
    /// The slips are not in ascending order, or not in the zone.
    InvalidSlip {
        /// Index of the zone with the invalid slip, from 0.
        zone: usize,
        /// Number of the slipped sector that is out of order or not in the zone.
        slip: u64,
    },
    /// A unit of the sparing scheme has more slips than spares.
    TooManySlips {
        /// Index of the zone with too many slips, from 0.
        zone: usize,
        /// Number of a slipped sector in the unit with too many slips.
        slip: u64,
    },
    /// A defect is not in the zone, or is listed twice.
    InvalidDefect {
        /// Index of the zone with the invalid defect, from 0.
        zone: usize,
        /// Number of the defective sector or track.
        defect: u64,
    },
    /// The replacement of a defect is not a spare, or replaces two defects.
    InvalidReplacement {
        /// Index of the zone with the invalid replacement, from 0.
        zone: usize,
        /// Number of the defective sector or track.
        defect: u64,
        /// Number of the sector or track that replaces the defective one.
        replacement: u64,
    },
    /// Spares belong to cylinders or ranges, but the tracks do not fill cylinder by cylinder.
    SeekFirstSparing,
    /// The specification promises hosts more sectors than the layout holds.
    TooFewSectors {
        /// Number of sectors that the zones or extents hold.
        room: u64,
        /// Number of sectors that hosts are to see.
        asked: u64,
    },
}

impl std::fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfRange {
                what,
                value,
                least,
                most,
            } => write!(
                formatter,
                "{what} is {value}, and must be between {least} and {most}"
            ),
            Self::AngleOutOfRange { zone, key } => write!(
                formatter,
                "zone {zone}: `{key}` is not a finite number of revolutions"
            ),
            Self::NoZones => formatter.write_str("a disk needs at least one zone"),
            Self::ZonesAndExtents => {
                formatter.write_str("a disk has zones or extents, and not both")
            }
            Self::InvalidExtent { number } => write!(
                formatter,
                "extent {number} does not follow the one before it, is not on the disk, or overlaps another"
            ),
            Self::ZonesOutOfOrder { zone, first, last } => write!(
                formatter,
                "zone {zone} has cylinders {first} to {last}, which do not follow the zone before it, or are not on the disk"
            ),
            Self::ZoneFull { zone, room, taken } => write!(
                formatter,
                "zone {zone} has {room} sectors, fewer than its {taken} dead sectors, spares and slips"
            ),
            Self::InvalidSlip { zone, slip } => write!(
                formatter,
                "zone {zone}: slip {slip} is not after the one before it, or not in the zone"
            ),
            Self::TooManySlips { zone, slip } => write!(
                formatter,
                "zone {zone}: the sparing unit of sector {slip} has more slips than spares"
            ),
            Self::InvalidDefect { zone, defect } => write!(
                formatter,
                "zone {zone}: defect {defect} is not in the zone, or is listed twice"
            ),
            Self::InvalidReplacement {
                zone,
                defect,
                replacement,
            } => write!(
                formatter,
                "zone {zone}: the replacement {replacement} of defect {defect} holds data, or replaces another defect too"
            ),
            Self::SeekFirstSparing => formatter.write_str(
                "spares by cylinder or range need a track order that fills one cylinder after the other",
            ),
            Self::TooFewSectors { room, asked } => write!(
                formatter,
                "the disk has {room} sectors, fewer than the {asked} that hosts should address"
            ),
        }
    }
}

impl std::error::Error for LayoutError {}
