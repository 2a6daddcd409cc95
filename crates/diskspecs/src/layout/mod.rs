//! Where logical blocks lie, as a drive's files say it: pure functions from a block to a
//! place with its angle, and back.

mod indexed;
mod mapped;
mod sparing;
mod zoned;

pub use indexed::{IndexEntry, IndexedLayout, Part, Remap, TrackPart};
pub use mapped::{Extent, MappedLayout, MappedZone};
pub use sparing::Sparing;
pub use zoned::{Faulty, InZone, Mapping, Zone, ZoneError, ZonedLayout};

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Counted from the outermost cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// Within the track, in physical sectors from its first.
    pub sector: u32,
    /// Physical sectors on this track.
    pub sectors_per_track: u32,
    /// Where the sector starts, as a share of a revolution from the index mark: 0 to 1.
    pub angle: f64,
}

/// Where a drive's blocks lie.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// `dm_layout_g1`: zones with skews, spares, slips and defects.
    Zoned(ZonedLayout),
    /// `dm_layout_g2`: a measured list of extents.
    Mapped(MappedLayout),
    /// `dm_layout_g4`: a tree of repeated patterns.
    Indexed(IndexedLayout),
}

impl Layout {
    /// How many logical blocks there are.
    pub fn blocks(&self) -> u64 {
        match self {
            Layout::Zoned(layout) => layout.blocks(),
            Layout::Mapped(layout) => layout.blocks(),
            Layout::Indexed(layout) => layout.blocks(),
        }
    }

    /// Where a block lies; nothing beyond the last one.
    pub fn spot(&self, block: u64) -> Option<Spot> {
        match self {
            Layout::Zoned(layout) => layout.spot(block),
            Layout::Mapped(layout) => layout.spot(block),
            Layout::Indexed(layout) => layout.spot(block),
        }
    }

    /// The block at a place; nothing if the place is spare, dead, or not there.
    pub fn block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        match self {
            Layout::Zoned(layout) => layout.block_at(cylinder, head, sector),
            Layout::Mapped(layout) => layout.block_at(cylinder, head, sector),
            Layout::Indexed(layout) => layout.block_at(cylinder, head, sector),
        }
    }
}

/// An angle within one revolution.
fn turn(revolutions: f64) -> f64 {
    let angle = revolutions.rem_euclid(1.0);
    // A tiny negative number rounds up to 1.
    if angle < 1.0 { angle } else { 0.0 }
}
