//! Physical locations of logical blocks according to a drive's files: pure functions from a block
//! to its location with angle, and back.

mod indexed;
mod mapped;
mod sparing;
mod zoned;

pub use indexed::{IndexEntry, IndexedContent, IndexedLayout, RemappedBlocks, TrackRange};
pub use mapped::{MappedExtent, MappedLayout, MappedTrackZone};
pub use sparing::SparingScheme;
pub use zoned::{CylinderMapping, FaultySector, TrackZone, ZoneError, ZoneLocation, ZonedLayout};

/// Physical location of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhysicalSector {
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
pub enum BlockLayout {
    /// Layout `dm_layout_g1`: zones with skews, spares, slips and defects.
    Zoned(ZonedLayout),
    /// Layout `dm_layout_g2`: a measured list of extents.
    Mapped(MappedLayout),
    /// Layout `dm_layout_g4`: a tree of repeating patterns.
    Indexed(IndexedLayout),
}

impl BlockLayout {
    /// Returns the number of logical blocks.
    pub fn block_count(&self) -> u64 {
        match self {
            BlockLayout::Zoned(layout) => layout.block_count(),
            BlockLayout::Mapped(layout) => layout.block_count(),
            BlockLayout::Indexed(layout) => layout.block_count(),
        }
    }

    /// Returns the physical location of a logical block; `None` beyond the last block.
    pub fn locate_block(&self, block: u64) -> Option<PhysicalSector> {
        match self {
            BlockLayout::Zoned(layout) => layout.locate_block(block),
            BlockLayout::Mapped(layout) => layout.locate_block(block),
            BlockLayout::Indexed(layout) => layout.locate_block(block),
        }
    }

    /// Returns the block at a location; `None` if the location is a spare, is unused, or does not
    /// exist.
    pub fn find_block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        match self {
            BlockLayout::Zoned(layout) => layout.find_block_at(cylinder, head, sector),
            BlockLayout::Mapped(layout) => layout.find_block_at(cylinder, head, sector),
            BlockLayout::Indexed(layout) => layout.find_block_at(cylinder, head, sector),
        }
    }
}

/// Wraps an angle into one revolution.
fn revolution_fraction(revolutions: f64) -> f64 {
    let angle = revolutions.rem_euclid(1.0);
    // A tiny negative number rounds up to 1.
    if angle < 1.0 { angle } else { 0.0 }
}
