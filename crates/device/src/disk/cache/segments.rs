//! Segments of a disk's read cache, with replacement in LRU order.

use super::{KeepAfterRead, KeepAfterWrite, ReadCacheSpecification};

/// Segments of a disk's read cache, each with one run of contiguous sectors of the medium. A new
/// run replaces the least recently used segment.
#[derive(Clone, Debug)]
pub struct SegmentCache {
    segments: Vec<Segment>,
    /// Segment indices in LRU order; empty segments come first.
    usage_order: UsageOrder,
    segment_sectors: u64,
    after_read: KeepAfterRead,
    after_write: KeepAfterWrite,
    /// Result of the last lookup, kept until an affected segment changes. The drive looks up each
    /// command on arrival, after decoding and after the media read.
    last_lookup: Option<SegmentLookup>,
}

#[derive(Clone, Copy, Debug)]
struct SegmentLookup {
    sector_range: (u64, u64),
    hit: Option<SegmentHit>,
    /// First segment that holds the first sector of the range or ends just before it.
    appendable_segment: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    first_sector: u64,
    sector_count: u64,
}

impl Segment {
    /// Dropped segment. A read-ahead that still fills it adds no sectors.
    const EMPTY: Self = Self {
        first_sector: u64::MAX,
        sector_count: 0,
    };

    #[inline]
    fn contains(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first_sector) < self.sector_count
    }

    #[inline]
    fn end(&self) -> u64 {
        self.first_sector + self.sector_count
    }

    /// Moves the end of the segment, and drops sectors at its front until no more than `capacity`
    /// remain.
    #[inline]
    fn set_end(&mut self, end: u64, capacity: u64) {
        if self.first_sector == Self::EMPTY.first_sector {
            return;
        }
        self.first_sector = self.first_sector.max(end.saturating_sub(capacity));
        self.sector_count = end - self.first_sector;
    }

    /// Tests whether the segment holds this sector or the one just before it. A single comparison
    /// suffices, because a branch on either end would be unpredictable.
    #[inline]
    fn continues_at(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first_sector) <= self.sector_count && self.sector_count > 0
    }
}

/// Cache hit: the segment that holds the leading sectors of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHit {
    /// Index of the segment that holds the first sector.
    pub segment_index: usize,
    /// End (exclusive) of the part of the range that the segment holds.
    pub end_sector: u64,
}

impl SegmentCache {
    /// Creates a read cache of empty segments.
    pub fn new(specification: &ReadCacheSpecification) -> Self {
        Self {
            segments: vec![Segment::default(); specification.segments as usize],
            segment_sectors: u64::from(specification.segment_sectors),
            after_read: specification.keep_after_read,
            after_write: specification.keep_after_write,
            usage_order: UsageOrder::new(specification.segments as usize),
            last_lookup: None,
        }
    }

    /// Finds the segment that holds the longest leading part of a sector range; `None` on a miss.
    #[inline]
    pub fn find_segment(&mut self, range: (u64, u64)) -> Option<SegmentHit> {
        self.look_up(range).hit
    }

    #[inline]
    fn look_up(&mut self, range: (u64, u64)) -> SegmentLookup {
        match self.last_lookup {
            Some(looked) if looked.sector_range == range => looked,
            _ => *self
                .last_lookup
                .insert(search_segments(&self.segments, range)),
        }
    }

    /// Returns the sectors that a segment holds: the first one, and the end (exclusive).
    pub fn sector_range(&self, segment: usize) -> (u64, u64) {
        let of = &self.segments[segment];
        (of.first_sector, of.end())
    }

    /// Records a cache hit in a segment up to sector `end`: marks the segment as used and drops
    /// what the settings do not keep.
    pub fn drop_read_sectors(&mut self, segment: usize, end: u64) {
        self.mark_segment_used(segment);
        if self.after_read == KeepAfterRead::ReadAheadOnly {
            self.change_segment(segment, |of| {
                let until = of.end();
                of.first_sector = of.first_sector.max(end).min(until);
                of.sector_count = until - of.first_sector;
            });
        }
    }

    /// Returns the segment that would receive a range of sectors; `None` without a read cache.
    pub fn segment_holding(&mut self, range: (u64, u64)) -> Option<usize> {
        self.look_up(range)
            .appendable_segment
            .or_else(|| self.usage_order.least_recently_used())
    }

    /// Stores sectors that came from the medium, and returns the segment's index and whether the
    /// sectors continued it. The segment is the one that the sectors continue, else an empty one,
    /// else the least recently used one. Returns `None` without a read cache.
    #[inline(always)]
    pub fn keep_range(&mut self, range: (u64, u64)) -> Option<(usize, bool)> {
        let sequential = self.look_up(range).appendable_segment;
        let segment = match sequential {
            Some(segment) => segment,
            None => self.usage_order.least_recently_used()?,
        };
        let (first, end) = range;
        if sequential.is_none() {
            self.change_segment(segment, |of| {
                *of = Segment {
                    first_sector: first,
                    sector_count: 0,
                }
            });
        }
        self.mark_segment_used(segment);
        self.extend_segment(segment, end);
        Some((segment, sequential.is_some()))
    }

    /// Changes a segment, and drops the result of the last lookup if the segment affects it.
    #[inline(always)]
    fn change_segment(&mut self, segment: usize, change: impl FnOnce(&mut Segment)) {
        let of = &mut self.segments[segment];
        let before = *of;
        change(of);
        let is_of = |of: &Segment, looked: &SegmentLookup| of.continues_at(looked.sector_range.0);
        self.last_lookup = self
            .last_lookup
            .filter(|looked| !is_of(&before, looked) && !is_of(of, looked));
    }

    /// Extends a segment up to sector `end`. Sectors at its front make room.
    #[inline(always)]
    pub fn extend_segment(&mut self, segment: usize, end: u64) {
        let capacity = self.segment_sectors;
        self.change_segment(segment, |of| of.set_end(of.end().max(end), capacity));
    }

    /// Extends a segment to the front, down to sector `first`, as far as it has room.
    pub fn extend_segment_front(&mut self, segment: usize, first: u64) {
        let capacity = self.segment_sectors;
        self.change_segment(segment, |of| {
            let end = of.end();
            if of.sector_count > 0 {
                of.first_sector = of.first_sector.min(first);
            }
            of.set_end(end, capacity);
        });
    }

    /// Applies a write of sectors to the read cache: drops segments as the settings demand.
    pub fn apply_write(&mut self, (first, end): (u64, u64)) {
        let drops = |of: &Segment| match self.after_write {
            KeepAfterWrite::DropsOverlapping => of.first_sector < end && first < of.end(),
            KeepAfterWrite::DropsAll => true,
            KeepAfterWrite::Updates => false,
        };
        for number in 0..self.segments.len() {
            if drops(&self.segments[number]) {
                self.segments[number] = Segment::EMPTY;
                self.usage_order.move_to_back(number);
            }
        }
        self.last_lookup = None;
    }

    #[inline(always)]
    fn mark_segment_used(&mut self, segment: usize) {
        self.usage_order.move_to_front(segment);
    }
}

#[inline(always)]
fn search_segments(segments: &[Segment], (first, end): (u64, u64)) -> SegmentLookup {
    let mut looked = SegmentLookup {
        sector_range: (first, end),
        hit: None,
        appendable_segment: None,
    };
    for (number, segment) in segments.iter().enumerate() {
        if !segment.continues_at(first) {
            continue;
        }
        looked.appendable_segment = looked.appendable_segment.or(Some(number));
        let until = segment.end();
        if segment.contains(first) && looked.hit.is_none_or(|found| found.end_sector < until) {
            let segment = number;
            looked.hit = Some(SegmentHit {
                segment_index: segment,
                end_sector: until,
            });
        }
    }
    if let Some(found) = &mut looked.hit {
        found.end_sector = found.end_sector.min(end);
    }
    looked
}

/// LRU list of segment indices: a ring in which each entry links to its neighbours.
#[derive(Clone, Debug)]
struct UsageOrder {
    /// Previous and next index of each entry. The last entry is the head, which links to the most
    /// and the least recently used index.
    neighbour_links: Vec<(u32, u32)>,
}

impl UsageOrder {
    fn new(count: usize) -> Self {
        let last = count as u32;
        let link = |number: u32| {
            let before = number.checked_sub(1).unwrap_or(last);
            let behind = if number == last { 0 } else { number + 1 };
            (before, behind)
        };
        Self {
            neighbour_links: (0..=last).map(link).collect(),
        }
    }

    fn list_head(&self) -> usize {
        self.neighbour_links.len() - 1
    }

    #[inline]
    fn least_recently_used(&self) -> Option<usize> {
        let oldest = self.neighbour_links[self.list_head()].1 as usize;
        (oldest < self.list_head()).then_some(oldest)
    }

    #[inline(always)]
    fn move_to_front(&mut self, number: usize) {
        self.unlink(number);
        let head = self.list_head();
        let latest = self.neighbour_links[head].0;
        self.neighbour_links[number] = (latest, head as u32);
        self.neighbour_links[latest as usize].1 = number as u32;
        self.neighbour_links[head].0 = number as u32;
    }

    /// Marks an index as the least recently used one.
    fn move_to_back(&mut self, number: usize) {
        self.unlink(number);
        let head = self.list_head();
        let oldest = self.neighbour_links[head].1;
        self.neighbour_links[number] = (head as u32, oldest);
        self.neighbour_links[oldest as usize].0 = number as u32;
        self.neighbour_links[head].1 = number as u32;
    }

    #[inline]
    fn unlink(&mut self, number: usize) {
        let (before, behind) = self.neighbour_links[number];
        self.neighbour_links[before as usize].1 = behind;
        self.neighbour_links[behind as usize].0 = before;
    }
}
