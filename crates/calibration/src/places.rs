//! Requests of a trace with the physical places of their blocks.

use diskperf_device::disk::layout::{self, Layout, ZonePosition};
use diskperf_diskspecs::trace::Request;

/// Physical place of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    /// Cylinder, counted from the outermost.
    pub cylinder: u32,
    /// Head index, which identifies the surface.
    pub head: u32,
    /// Sectors per track at this place.
    pub sectors_per_track: u32,
    /// Angle of the sector according to the drive's files, in revolutions.
    pub filed: f64,
    /// Position in the zone; `None` if the layout has no zone skews.
    pub in_zone: Option<ZonePosition>,
}

impl Place {
    /// Returns the place of a block of the drive.
    pub(crate) fn at(layout: &Layout, block: u64) -> Place {
        let place = layout.position_of(block);
        Place {
            cylinder: place.cylinder,
            head: place.head,
            sectors_per_track: place.sectors_per_track,
            filed: place.start_angle.to_revolutions(),
            in_zone: layout.zone_position_of(block),
        }
    }

    fn is_on_track_of(&self, other: &layout::SectorPosition) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }
}

/// Part of a request that lies on one track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestPiece {
    /// Place of the first block of the part.
    pub place: Place,
    /// Number of the request's blocks on the track.
    pub blocks: u32,
}

/// Request with the places of its blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Request from the trace.
    pub request: Request,
    /// Parts of the request by track, in the order of transfer; at least one.
    pub pieces: Vec<RequestPiece>,
}

impl Placed {
    /// Returns the place of the request's first block.
    pub(crate) fn first(&self) -> &Place {
        &self.pieces[0].place
    }

    /// Returns the block after the request's last one.
    pub(crate) fn end(&self) -> u64 {
        self.request.first_block + u64::from(self.request.blocks)
    }
}

/// Request of a trace that exceeds its drive's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// Index of the request, counted from 1.
    pub request: usize,
    /// First block of the request.
    pub first_block: u64,
    /// Number of blocks of the drive.
    pub blocks: u64,
}

impl std::fmt::Display for Beyond {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Beyond {
            request,
            first_block,
            blocks,
        } = self;
        write!(
            out,
            "request {request} of the trace, at block {first_block}, exceeds the drive's {blocks} blocks"
        )
    }
}

impl std::error::Error for Beyond {}

/// Locates the blocks of a trace's requests.
///
/// # Errors
///
/// First request that exceeds the drive's capacity.
pub(crate) fn place_all(layout: &Layout, requests: &[Request]) -> Result<Vec<Placed>, Beyond> {
    let one = |(index, request): (usize, &Request)| {
        place_request(layout, request).ok_or(Beyond {
            request: index + 1,
            first_block: request.first_block,
            blocks: layout.sectors(),
        })
    };
    requests.iter().enumerate().map(one).collect()
}

fn place_request(layout: &Layout, request: &Request) -> Option<Placed> {
    let end = request.first_block.checked_add(request.blocks.into())?;
    if end > layout.sectors() || request.blocks == 0 {
        return None;
    }
    let mut pieces: Vec<RequestPiece> = Vec::new();
    let mut block = request.first_block;
    while block < end {
        let run = layout.run_at(block);
        let blocks = run.sector_count.min((end - block) as u32);
        match pieces.last_mut() {
            Some(piece) if piece.place.is_on_track_of(&run.position) => piece.blocks += blocks,
            _ => pieces.push(RequestPiece {
                place: Place::at(layout, block),
                blocks,
            }),
        }
        block += u64::from(blocks);
    }
    Some(Placed {
        request: *request,
        pieces,
    })
}
