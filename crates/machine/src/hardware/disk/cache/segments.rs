//! Segments of a read cache.

use super::{AfterRead, AfterWrite, ReadCacheSpecification};

/// The segments of a disk's buffer, each with one run of sectors of the medium. The one
/// that was not used for longest is given up first.
#[derive(Clone, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    capacity: u64,
    after_read: AfterRead,
    after_write: AfterWrite,
    uses: u64,
    /// What was looked for last, and found, since segments have changed: a command is looked
    /// up when it comes and when it is decoded.
    looked: Option<((u64, u64), Option<Found>)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    first: u64,
    /// `first` of one that is empty.
    end: u64,
    /// The number of its last use; 0 of one that is empty.
    used: u64,
}

impl Segment {
    /// Whether it has a sector: one comparison, since a place is on either side of a
    /// segment's ends by chance.
    #[inline]
    fn has(&self, sector: u64) -> bool {
        sector.wrapping_sub(self.first) < self.end - self.first
    }

    /// Whether it has sectors, and this one or the one behind its last.
    #[inline]
    fn goes_on_at(&self, sector: u64) -> bool {
        let sectors = self.end - self.first;
        sector.wrapping_sub(self.first) <= sectors && sectors > 0
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
            uses: 0,
            looked: None,
        }
    }

    /// The segment that has most of these sectors from the first one on, if any has it.
    #[inline]
    pub fn find(&mut self, range: (u64, u64)) -> Option<Found> {
        match self.looked {
            Some((looked, found)) if looked == range => found,
            _ => {
                let found = self.search(range);
                self.looked = Some((range, found));
                found
            }
        }
    }

    fn search(&self, (first, end): (u64, u64)) -> Option<Found> {
        let mut found: Option<Found> = None;
        for (number, segment) in self.segments.iter().enumerate() {
            if segment.has(first) && found.is_none_or(|found| found.until < segment.end) {
                found = Some(Found {
                    segment: number,
                    until: segment.end,
                });
            }
        }
        found.map(|found| Found {
            until: found.until.min(end),
            ..found
        })
    }

    /// The run of a segment: its first sector, and the one behind its last.
    pub fn run(&self, segment: usize) -> (u64, u64) {
        let of = &self.segments[segment];
        (of.first, of.end)
    }

    /// Sectors up to `end` were read from a segment.
    pub fn read(&mut self, segment: usize, end: u64) {
        self.touch(segment);
        let of = &mut self.segments[segment];
        if self.after_read == AfterRead::Ahead {
            self.looked = None;
            of.first = of.first.max(end).min(of.end);
        }
    }

    /// Keeps sectors that came from the medium: in the segment that they go on from, else
    /// in an empty one, else in the one that was not used for longest. Its number, and
    /// whether they went on; none where nothing is kept.
    pub fn keep(&mut self, (first, end): (u64, u64)) -> Option<(usize, bool)> {
        let sequential = self.segments.iter().position(|of| of.goes_on_at(first));
        let segment = match sequential {
            Some(segment) => segment,
            None => self.oldest()?,
        };
        self.looked = None;
        if sequential.is_none() {
            (self.segments[segment].first, self.segments[segment].end) = (first, first);
        }
        self.touch(segment);
        self.extend(segment, end);
        Some((segment, sequential.is_some()))
    }

    /// The segment that was not used for longest, the first of several.
    fn oldest(&self) -> Option<usize> {
        // One number for both: the least of many comes without a branch that nobody foresees.
        let count = self.segments.len() as u64;
        let numbered = (0..).zip(&self.segments);
        let least = numbered
            .map(|(number, of)| of.used * count + number)
            .min()?;
        Some((least % count) as usize)
    }

    /// A segment has sectors up to `end` now; its first ones make room.
    pub fn extend(&mut self, segment: usize, end: u64) {
        self.looked = None;
        let of = &mut self.segments[segment];
        of.end = of.end.max(end);
        of.first = of.first.max(of.end.saturating_sub(self.capacity));
    }

    /// A segment has sectors from `first` on now, as far as it has room.
    pub fn extend_front(&mut self, segment: usize, first: u64) {
        self.looked = None;
        let of = &mut self.segments[segment];
        of.first = of
            .first
            .min(first)
            .max(of.end.saturating_sub(self.capacity));
    }

    /// Sectors are written.
    pub fn write(&mut self, (first, end): (u64, u64)) {
        let drops = |of: &Segment| match self.after_write {
            AfterWrite::DropsOverlapping => of.first < end && first < of.end,
            AfterWrite::DropsAll => true,
            AfterWrite::Updates => false,
        };
        for of in self.segments.iter_mut().filter(|of| drops(of)) {
            *of = Segment::default();
        }
        self.looked = None;
    }

    fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.segments[segment].used = self.uses;
    }
}
