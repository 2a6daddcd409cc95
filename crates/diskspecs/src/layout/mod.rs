//! Physical locations of logical blocks according to a drive's files: pure functions from a block
//! to its location with angle, and back.

mod indexed;
mod mapped;
mod sparing;
mod zoned;

pub use indexed::{IndexEntry, IndexedLayout, IndexedPart, Remap, TrackRange};
pub use mapped::{Extent, MappedLayout, MappedZone};
pub use sparing::Sparing;
pub use zoned::{FaultySector, Mapping, Zone, ZoneError, ZoneLocation, ZonedLayout};

/// Physical location of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Cylinder, counted from the outermost.
    pub cylinder: u32,
    /// Head index, which identifies the surface.
    pub head: u32,
    /// Physical sector on the track, counted from the track's first.
    pub sector: u32,
    /// Physical sectors on this track.
    pub sectors_per_track: u32,
    /// Start angle of the sector as a share of a revolution from the index mark, from 0 to 1.
    pub angle: f64,
}

/// Mapping of logical blocks to physical locations of a drive.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// Layout `dm_layout_g1`: zones with skews, spares, slips and defects.
    Zoned(ZonedLayout),
    /// Layout `dm_layout_g2`: a measured list of extents.
    Mapped(MappedLayout),
    /// Layout `dm_layout_g4`: a tree of repeating patterns.
    Indexed(IndexedLayout),
}

impl Layout {
    /// Returns the number of logical blocks.
    pub fn blocks(&self) -> u64 {
        match self {
            Layout::Zoned(layout) => layout.blocks(),
            Layout::Mapped(layout) => layout.blocks(),
            Layout::Indexed(layout) => layout.blocks(),
        }
    }

    /// Returns the physical location of a logical block; `None` beyond the last block.
    pub fn spot(&self, block: u64) -> Option<Spot> {
        match self {
            Layout::Zoned(layout) => layout.spot(block),
            Layout::Mapped(layout) => layout.spot(block),
            Layout::Indexed(layout) => layout.spot(block),
        }
    }

    /// Returns the block at a location; `None` if the location is a spare, is unused, or does not
    /// exist.
    pub fn block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        match self {
            Layout::Zoned(layout) => layout.block_at(cylinder, head, sector),
            Layout::Mapped(layout) => layout.block_at(cylinder, head, sector),
            Layout::Indexed(layout) => layout.block_at(cylinder, head, sector),
        }
    }
}

/// Wraps an angle into one revolution.
fn to_revolution_fraction(revolutions: f64) -> f64 {
    let angle = revolutions.rem_euclid(1.0);
    // A tiny negative number rounds up to 1.
    if angle < 1.0 { angle } else { 0.0 }
}
