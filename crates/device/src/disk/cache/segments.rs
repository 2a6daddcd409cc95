//! Segments of a read cache.

use super::{AfterRead, AfterWrite, ReadCacheSpecification};

/// The segments of a disk's buffer, each with one run of sectors of the medium. The one
/// that was not used for longest is given up first.
#[derive(Clone, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    /// Their numbers, from the one that was not used for longest; empty ones come first.
    uses: Uses,
    capacity: u64,
    after_read: AfterRead,
    after_write: AfterWrite,
    /// What was looked up last, unless a segment of it has changed since: a command is looked
    /// up when it comes, when it is decoded, and when it was read.
    looked: Option<Looked>,
}

/// What segments are to some sectors.
#[derive(Clone, Copy, Debug)]
struct Looked {
    range: (u64, u64),
    found: Option<Found>,
    /// The first segment that has the first sector, or ends before it.
    goes_on: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    first: u64,
    /// How many it has; 0 of one that is empty.
    sectors: u64,
}

impl Segment {
    /// What was dropped: what is still read for it is of nobody's sectors.
    const DROPPED: Self = Self {
        first: u64::MAX,
        sectors: 0,
    };

    /// Whether it has a sector.
    #[inline]
    fn has(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first) < self.sectors
    }

    #[inline]
    fn end(&self) -> u64 {
        self.first + self.sectors
    }

    /// Gives up sectors at its front until it has no more than that; has them up to `end`.
    #[inline]
    fn set_end(&mut self, end: u64, capacity: u64) {
        if self.first == Self::DROPPED.first {
            return;
        }
        self.first = self.first.max(end.saturating_sub(capacity));
        self.sectors = end - self.first;
    }

    /// Whether it has sectors, and this one or the one before it. One comparison goes first,
    /// since a place is on either side of a segment's ends by chance.
    #[inline]
    fn goes_on_at(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first) <= self.sectors && self.sectors > 0
    }
}

/// What segments have of some sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The segment that has the first one.
    pub segment: usize,
    /// Up to which sector it has them.
    pub until: u64,
}

impl Segments {
    /// Empty segments.
    pub fn new(specification: &ReadCacheSpecification) -> Self {
        Self {
            segments: vec![Segment::default(); specification.segments as usize],
            capacity: u64::from(specification.segment_sectors),
            after_read: specification.after_read,
            after_write: specification.after_write,
            uses: Uses::new(specification.segments as usize),
            looked: None,
        }
    }

    /// The segment that has most of these sectors from the first one on, if any has it.
    #[inline]
    pub fn find(&mut self, range: (u64, u64)) -> Option<Found> {
        self.look_up(range).found
    }

    #[inline]
    fn look_up(&mut self, range: (u64, u64)) -> Looked {
        match self.looked {
            Some(looked) if looked.range == range => looked,
            _ => *self.looked.insert(search(&self.segments, range)),
        }
    }

    /// The run of a segment: its first sector, and the one behind its last.
    pub fn run(&self, segment: usize) -> (u64, u64) {
        let of = &self.segments[segment];
        (of.first, of.end())
    }

    /// Sectors up to `end` were read from a segment.
    pub fn read(&mut self, segment: usize, end: u64) {
        self.touch(segment);
        if self.after_read == AfterRead::Ahead {
            self.change(segment, |of| {
                let until = of.end();
                of.first = of.first.max(end).min(until);
                of.sectors = until - of.first;
            });
        }
    }

    /// The segment that would get sectors.
    pub fn keeps_in(&mut self, range: (u64, u64)) -> Option<usize> {
        self.look_up(range).goes_on.or_else(|| self.uses.oldest())
    }

    /// Keeps sectors that came from the medium: in the segment that they go on from, else
    /// in an empty one, else in the one that was not used for longest. Its number, and
    /// whether they went on; none where nothing is kept.
    #[inline(always)]
    pub fn keep(&mut self, range: (u64, u64)) -> Option<(usize, bool)> {
        let sequential = self.look_up(range).goes_on;
        let segment = match sequential {
            Some(segment) => segment,
            None => self.uses.oldest()?,
        };
        let (first, end) = range;
        if sequential.is_none() {
            self.change(segment, |of| *of = Segment { first, sectors: 0 });
        }
        self.touch(segment);
        self.extend(segment, end);
        Some((segment, sequential.is_some()))
    }

    /// Changes a segment. What was looked up stays true unless it is of this one.
    #[inline(always)]
    fn change(&mut self, segment: usize, change: impl FnOnce(&mut Segment)) {
        let of = &mut self.segments[segment];
        let before = *of;
        change(of);
        let is_of = |of: &Segment, looked: &Looked| of.goes_on_at(looked.range.0);
        self.looked = self
            .looked
            .filter(|looked| !is_of(&before, looked) && !is_of(of, looked));
    }

    /// A segment has sectors up to `end` now; its first ones make room.
    #[inline(always)]
    pub fn extend(&mut self, segment: usize, end: u64) {
        let capacity = self.capacity;
        self.change(segment, |of| of.set_end(of.end().max(end), capacity));
    }

    /// A segment has sectors from `first` on now, as far as it has room.
    pub fn extend_front(&mut self, segment: usize, first: u64) {
        let capacity = self.capacity;
        self.change(segment, |of| {
            let end = of.end();
            if of.sectors > 0 {
                of.first = of.first.min(first);
            }
            of.set_end(end, capacity);
        });
    }

    /// Sectors are written.
    pub fn write(&mut self, (first, end): (u64, u64)) {
        let drops = |of: &Segment| match self.after_write {
            AfterWrite::DropsOverlapping => of.first < end && first < of.end(),
            AfterWrite::DropsAll => true,
            AfterWrite::Updates => false,
        };
        for number in 0..self.segments.len() {
            if drops(&self.segments[number]) {
                self.segments[number] = Segment::DROPPED;
                self.uses.forget(number);
            }
        }
        self.looked = None;
    }

    #[inline(always)]
    fn touch(&mut self, segment: usize) {
        self.uses.touch(segment);
    }
}

#[inline(always)]
fn search(segments: &[Segment], (first, end): (u64, u64)) -> Looked {
    let mut looked = Looked {
        range: (first, end),
        found: None,
        goes_on: None,
    };
    for (number, segment) in segments.iter().enumerate() {
        if !segment.goes_on_at(first) {
            continue;
        }
        looked.goes_on = looked.goes_on.or(Some(number));
        let until = segment.end();
        if segment.has(first) && looked.found.is_none_or(|found| found.until < until) {
            let segment = number;
            looked.found = Some(Found { segment, until });
        }
    }
    if let Some(found) = &mut looked.found {
        found.until = found.until.min(end);
    }
    looked
}

/// Numbers in the order of their last uses: a ring in which each knows its neighbours.
#[derive(Clone, Debug)]
struct Uses {
    /// The number before and the one behind each; of the last entry, the latest and the oldest.
    links: Vec<(u32, u32)>,
}

impl Uses {
    /// None of so many was used.
    fn new(count: usize) -> Self {
        let last = count as u32;
        let link = |number: u32| {
            let before = number.checked_sub(1).unwrap_or(last);
            let behind = if number == last { 0 } else { number + 1 };
            (before, behind)
        };
        Self {
            links: (0..=last).map(link).collect(),
        }
    }

    fn head(&self) -> usize {
        self.links.len() - 1
    }

    #[inline]
    fn oldest(&self) -> Option<usize> {
        let oldest = self.links[self.head()].1 as usize;
        (oldest < self.head()).then_some(oldest)
    }

    /// A number was used.
    #[inline(always)]
    fn touch(&mut self, number: usize) {
        self.take(number);
        let head = self.head();
        let latest = self.links[head].0;
        self.links[number] = (latest, head as u32);
        self.links[latest as usize].1 = number as u32;
        self.links[head].0 = number as u32;
    }

    /// A number counts as never used.
    fn forget(&mut self, number: usize) {
        self.take(number);
        let head = self.head();
        let oldest = self.links[head].1;
        self.links[number] = (head as u32, oldest);
        self.links[oldest as usize].0 = number as u32;
        self.links[head].1 = number as u32;
    }

    #[inline]
    fn take(&mut self, number: usize) {
        let (before, behind) = self.links[number];
        self.links[before as usize].1 = behind;
        self.links[behind as usize].0 = before;
    }
}
