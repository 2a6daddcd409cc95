//! A trace's requests with the places of their blocks.

use diskperf_device::disk::layout::{self, InZone, Layout};
use diskperf_diskspecs::trace::Request;

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    /// Counted from the outermost.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// On its track.
    pub sectors_per_track: u32,
    /// The sector's angle by the drive's files, in revolutions.
    pub filed: f64,
    /// Where it lies in its zone; nothing if the layout has no skews of zones.
    pub in_zone: Option<InZone>,
}

impl Place {
    /// Where a block of the drive lies.
    pub(crate) fn at(layout: &Layout, block: u64) -> Place {
        let place = layout.locate(block);
        Place {
            cylinder: place.cylinder,
            head: place.head,
            sectors_per_track: place.sectors_per_track,
            filed: place.start.revolutions(),
            in_zone: layout.in_zone(block),
        }
    }

    fn is_on_track_of(&self, other: &layout::Place) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }
}

/// What of a request lies on one track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    /// Of its first block.
    pub place: Place,
    /// How many.
    pub blocks: u32,
}

/// A request and where it lies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// The line of the trace.
    pub request: Request,
    /// Tracks in the order in which they are passed; at least one.
    pub pieces: Vec<Piece>,
}

impl Placed {
    /// Of its first block.
    pub(crate) fn first(&self) -> &Place {
        &self.pieces[0].place
    }

    /// One beyond its last block.
    pub(crate) fn end(&self) -> u64 {
        self.request.first_block + u64::from(self.request.blocks)
    }
}

/// A request of a trace that is not on its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// Which request, counted from 1.
    pub request: usize,
    /// Its first block.
    pub first_block: u64,
    /// How many blocks the drive has.
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
            "request {request} of the trace, at block {first_block}, goes beyond the drive's {blocks} blocks"
        )
    }
}

impl std::error::Error for Beyond {}

/// The places of a trace's requests.
///
/// # Errors
///
/// The first request that is not on the drive.
pub(crate) fn placed(layout: &Layout, requests: &[Request]) -> Result<Vec<Placed>, Beyond> {
    let one = |(index, request): (usize, &Request)| {
        place(layout, request).ok_or(Beyond {
            request: index + 1,
            first_block: request.first_block,
            blocks: layout.sectors(),
        })
    };
    requests.iter().enumerate().map(one).collect()
}

fn place(layout: &Layout, request: &Request) -> Option<Placed> {
    let end = request.first_block.checked_add(request.blocks.into())?;
    if end > layout.sectors() || request.blocks == 0 {
        return None;
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut block = request.first_block;
    while block < end {
        let run = layout.run(block);
        let blocks = run.sectors.min((end - block) as u32);
        match pieces.last_mut() {
            Some(piece) if piece.place.is_on_track_of(&run.place) => piece.blocks += blocks,
            _ => pieces.push(Piece {
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
