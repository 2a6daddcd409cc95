//! Requests of a trace with the physical places of their blocks.

use diskperf_device::disk::layout::{self, Layout, ZonePosition};
use diskperf_diskspecs::trace::ValidationRequest;

/// Physical place of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BlockAddress {
    /// Cylinder, counted from the outermost.
    pub cylinder: u32,
    /// Head index, which identifies the surface.
    pub head: u32,
    /// Sectors per track at this place.
    pub sectors_per_track: u32,
    /// Angle of the sector according to the drive's files, in revolutions.
    pub specified_angle: f64,
    /// Position in the zone; `None` if the layout has no zone skews.
    pub in_zone: Option<ZonePosition>,
}

impl BlockAddress {
    pub(crate) fn locate(layout: &Layout, block: u64) -> BlockAddress {
        let place = layout.position_of(block);
        BlockAddress {
            cylinder: place.cylinder,
            head: place.head,
            sectors_per_track: place.sectors_per_track,
            specified_angle: place.start_angle.to_revolutions(),
            in_zone: layout.zone_position_of(block),
        }
    }

    fn is_on_same_track(&self, other: &layout::SectorPosition) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }
}

/// Part of a request that lies on one track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestPiece {
    /// Place of the first block of the part.
    pub address: BlockAddress,
    /// Number of the request's blocks on the track.
    pub block_count: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LocatedRequest {
    /// Request from the trace.
    pub request: ValidationRequest,
    /// Parts of the request by track, in the order of transfer; at least one.
    pub track_pieces: Vec<RequestPiece>,
}

impl LocatedRequest {
    /// Returns the place of the request's first block.
    pub(crate) fn first_address(&self) -> &BlockAddress {
        &self.track_pieces[0].address
    }

    /// Returns the block after the request's last one.
    pub(crate) fn end_block(&self) -> u64 {
        self.request.first_block + u64::from(self.request.block_count)
    }
}

/// Request of a trace that exceeds its drive's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestBeyondCapacity {
    /// Index of the request, counted from 1.
    pub request_index: usize,
    /// First block of the request.
    pub first_block: u64,
    /// Number of blocks of the drive.
    pub capacity_blocks: u64,
}

impl std::fmt::Display for RequestBeyondCapacity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RequestBeyondCapacity {
            request_index: request,
            first_block,
            capacity_blocks: blocks,
        } = self;
        write!(
            out,
            "request {request} of the trace, at block {first_block}, exceeds the drive's {blocks} blocks"
        )
    }
}

impl std::error::Error for RequestBeyondCapacity {}

/// Locates the blocks of a trace's requests.
///
/// # Errors
///
/// First request that exceeds the drive's capacity.
pub(crate) fn locate_requests(
    layout: &Layout,
    requests: &[ValidationRequest],
) -> Result<Vec<LocatedRequest>, RequestBeyondCapacity> {
    let one = |(index, request): (usize, &ValidationRequest)| {
        locate_request(layout, request).ok_or(RequestBeyondCapacity {
            request_index: index + 1,
            first_block: request.first_block,
            capacity_blocks: layout.sectors(),
        })
    };
    requests.iter().enumerate().map(one).collect()
}

fn locate_request(layout: &Layout, request: &ValidationRequest) -> Option<LocatedRequest> {
    let end = request
        .first_block
        .checked_add(request.block_count.into())?;
    if end > layout.sectors() || request.block_count == 0 {
        return None;
    }
    let mut pieces: Vec<RequestPiece> = Vec::new();
    let mut block = request.first_block;
    while block < end {
        let run = layout.run_at(block);
        let blocks = run.sector_count.min((end - block) as u32);
        match pieces.last_mut() {
            Some(piece) if piece.address.is_on_same_track(&run.position) => {
                piece.block_count += blocks
            }
            _ => pieces.push(RequestPiece {
                address: BlockAddress::locate(layout, block),
                block_count: blocks,
            }),
        }
        block += u64::from(blocks);
    }
    Some(LocatedRequest {
        request: *request,
        track_pieces: pieces,
    })
}
