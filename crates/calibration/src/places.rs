//! A trace's requests with the places of their blocks.

use diskperf_diskspecs::layout::{InZone, Layout};
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
    /// Where a block lies; nothing beyond the drive's last.
    pub(crate) fn of(layout: &Layout, block: u64) -> Option<Place> {
        let spot = layout.spot(block)?;
        let in_zone = match layout {
            Layout::Zoned(zoned) => zoned.in_zone(block),
            Layout::Mapped(_) | Layout::Indexed(_) => None,
        };
        Some(Place {
            cylinder: spot.cylinder,
            head: spot.head,
            sectors_per_track: spot.sectors_per_track,
            filed: spot.angle,
            in_zone,
        })
    }

    fn is_on_track_of(&self, other: &Place) -> bool {
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
    /// The first block of the first track.
    pub track_first: u64,
    /// One beyond the last block of the last track.
    pub track_end: u64,
    /// One beyond the last block of the track after that.
    pub next_track_end: u64,
}

impl Placed {
    /// Of its first block.
    pub(crate) fn first(&self) -> &Place {
        &self.pieces[0].place
    }

    /// Of the first block on its last track.
    pub(crate) fn last(&self) -> &Piece {
        &self.pieces[self.pieces.len() - 1]
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
            blocks: layout.blocks(),
        })
    };
    requests.iter().enumerate().map(one).collect()
}

fn place(layout: &Layout, request: &Request) -> Option<Placed> {
    let end = request.first_block + u64::from(request.blocks);
    if end > layout.blocks() {
        return None;
    }
    let mut pieces = Vec::new();
    let mut block = request.first_block;
    let mut track_end = block;
    while block < end {
        let place = Place::of(layout, block)?;
        track_end = end_of_track(layout, block, &place);
        let blocks = (track_end.min(end) - block) as u32;
        pieces.push(Piece { place, blocks });
        block += u64::from(blocks);
    }
    let next_track_end = match Place::of(layout, track_end) {
        Some(next) => end_of_track(layout, track_end, &next),
        None => track_end,
    };
    Some(Placed {
        request: *request,
        track_first: start_of_track(layout, request.first_block, &pieces[0].place),
        pieces,
        track_end,
        next_track_end,
    })
}

/// One beyond the last block of a block's track.
fn end_of_track(layout: &Layout, block: u64, place: &Place) -> u64 {
    let on_track = |other: u64| Place::of(layout, other).is_some_and(|at| at.is_on_track_of(place));
    let (mut on, mut off) = (block, block + u64::from(place.sectors_per_track));
    while off - on > 1 {
        let middle = on + (off - on) / 2;
        match on_track(middle) {
            true => on = middle,
            false => off = middle,
        }
    }
    on + 1
}

/// The first block of a block's track.
fn start_of_track(layout: &Layout, block: u64, place: &Place) -> u64 {
    let on_track = |other: u64| Place::of(layout, other).is_some_and(|at| at.is_on_track_of(place));
    let longest = u64::from(place.sectors_per_track);
    let (mut off, mut on) = (block.checked_sub(longest), block);
    loop {
        let below = off.map_or(0, |off| off + 1);
        if below == on {
            return on;
        }
        let middle = below + (on - below) / 2;
        match on_track(middle) {
            true => on = middle,
            false => off = Some(middle),
        }
    }
}
