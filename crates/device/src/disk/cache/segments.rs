//! Segments of a disk's read cache, with replacement in LRU order.

use super::{AfterRead, AfterWrite, ReadCacheSpecification};

/// Segments of a disk's read cache, each with one run of contiguous sectors of the medium. A new
/// run replaces the least recently used segment.
#[derive(Clone, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    /// Segment indices in LRU order; empty segments come first.
    uses: Uses,
    capacity: u64,
    after_read: AfterRead,
    after_write: AfterWrite,
    /// Result of the last lookup, kept until an affected segment changes. The drive looks up each
    /// command on arrival, after decoding and after the media read.
    looked: Option<Looked>,
}

#[derive(Clone, Copy, Debug)]
struct Looked {
    range: (u64, u64),
    found: Option<Found>,
    /// First segment that holds the first sector of the range or ends just before it.
    goes_on: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    first: u64,
    sectors: u64,
}

impl Segment {
    /// Dropped segment. A read-ahead that still fills it adds no sectors.
    const DROPPED: Self = Self {
        first: u64::MAX,
        sectors: 0,
    };

    #[inline]
    fn has(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first) < self.sectors
    }

    #[inline]
    fn end(&self) -> u64 {
        self.first + self.sectors
    }

    /// Moves the end of the segment, and drops sectors at its front until no more than `capacity`
    /// remain.
    #[inline]
    fn set_end(&mut self, end: u64, capacity: u64) {
        if self.first == Self::DROPPED.first {
            return;
        }
        self.first = self.first.max(end.saturating_sub(capacity));
        self.sectors = end - self.first;
    }

    /// Tests whether the segment holds this sector or the one just before it. A single comparison
    /// suffices, because a branch on either end would be unpredictable.
    #[inline]
    fn goes_on_at(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first) <= self.sectors && self.sectors > 0
    }
}

/// Cache hit: the segment that holds the leading sectors of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Index of the segment that holds the first sector.
    pub segment: usize,
    /// End (exclusive) of the part of the range that the segment holds.
    pub until: u64,
}

impl Segments {
    /// Creates a read cache of empty segments.
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

    /// Finds the segment that holds the longest leading part of a sector range; `None` on a miss.
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

    /// Returns the sectors that a segment holds: the first one, and the end (exclusive).
    pub fn run(&self, segment: usize) -> (u64, u64) {
        let of = &self.segments[segment];
        (of.first, of.end())
    }

    /// Records a cache hit in a segment up to sector `end`: marks the segment as used and drops
    /// what the settings do not keep.
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

    /// Returns the segment that would receive a range of sectors; `None` without a read cache.
    pub fn keeps_in(&mut self, range: (u64, u64)) -> Option<usize> {
        self.look_up(range).goes_on.or_else(|| self.uses.oldest())
    }

    /// Stores sectors that came from the medium, and returns the segment's index and whether the
    /// sectors continued it. The segment is the one that the sectors continue, else an empty one,
    /// else the least recently used one. Returns `None` without a read cache.
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

    /// Changes a segment, and drops the result of the last lookup if the segment affects it.
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

    /// Extends a segment up to sector `end`. Sectors at its front make room.
    #[inline(always)]
    pub fn extend(&mut self, segment: usize, end: u64) {
        let capacity = self.capacity;
        self.change(segment, |of| of.set_end(of.end().max(end), capacity));
    }

    /// Extends a segment to the front, down to sector `first`, as far as it has room.
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

    /// Applies a write of sectors to the read cache: drops segments as the settings demand.
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

/// LRU list of segment indices: a ring in which each entry links to its neighbours.
#[derive(Clone, Debug)]
struct Uses {
    /// Previous and next index of each entry. The last entry is the head, which links to the most
    /// and the least recently used index.
    links: Vec<(u32, u32)>,
}

impl Uses {
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

    #[inline(always)]
    fn touch(&mut self, number: usize) {
        self.take(number);
        let head = self.head();
        let latest = self.links[head].0;
        self.links[number] = (latest, head as u32);
        self.links[latest as usize].1 = number as u32;
        self.links[head].0 = number as u32;
    }

    /// Marks an index as the least recently used one.
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
