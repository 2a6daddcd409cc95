//! What a drive's buffer still holds when a read comes.

use std::collections::VecDeque;

use crate::places::Placed;

/// What a read leaves in the buffer beside its own blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many blocks behind the request.
    Ahead(u32),
    /// The rest of its tracks, and the track after them if asked for.
    Tracks {
        /// Reading goes on over the next track.
        and_next: bool,
    },
}

/// What a write does to what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnWrite {
    /// Blocks that are written are no longer those that were read.
    Overlapping,
    /// The buffer is cleared.
    All,
}

/// The rule of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheRule {
    /// How many segments; the least recently used is taken for a new read. 0: no buffer.
    pub segments: u32,
    /// What a read leaves.
    pub extent: Extent,
    /// Blocks before the last read stay.
    pub keeps_behind: bool,
    /// What a write does.
    pub on_write: OnWrite,
    /// Blocks that were written can be read.
    pub keeps_written: bool,
    /// Reading ahead only after a read that follows the one before it.
    pub only_contiguous: bool,
    /// A read from the buffer makes it go on reading ahead.
    pub goes_on: bool,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    from: u64,
    /// One beyond the last block that it holds, or will hold.
    to: u64,
}

/// A segment, the front one, that is being read into.
#[derive(Clone, Copy, Debug)]
struct Filling {
    since_us: f64,
    block: u64,
    block_us: f64,
}

/// What the buffer has of a read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Look {
    /// All of it.
    Held,
    /// All of it, at a time: its last blocks are being read.
    Coming { at_us: f64 },
    /// The first blocks; the rest begins here.
    Partly { missing: u64 },
    /// Nothing.
    Missing,
}

/// A buffer with its contents.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    rule: CacheRule,
    /// The most recently used first.
    segments: VecDeque<Segment>,
    filling: Option<Filling>,
    last_read_end: u64,
    /// Of one track with the skew to the next.
    revolution_us: f64,
}

impl Buffer {
    pub(crate) fn new(rule: CacheRule, revolution_us: f64) -> Buffer {
        Buffer {
            rule,
            segments: VecDeque::new(),
            filling: None,
            last_read_end: 0,
            revolution_us,
        }
    }

    /// Up to where the segment that is being read into is filled, at most to its end.
    pub(crate) fn filled_to(&self, now_us: f64) -> Option<u64> {
        let (front, filling) = (self.segments.front()?, self.filling?);
        let blocks = ((now_us - filling.since_us).max(0.0) / filling.block_us) as u64;
        Some((filling.block + blocks).min(front.to))
    }

    /// Whether reading ahead still runs.
    pub(crate) fn is_filling(&self, now_us: f64) -> bool {
        self.filled_to(now_us)
            .is_some_and(|to| to < self.segments[0].to)
    }

    /// Up to where reading ahead went or goes.
    pub(crate) fn ahead_end(&self) -> Option<u64> {
        self.segments.front().map(|front| front.to)
    }

    pub(crate) fn look(&self, read: &Placed, now_us: f64) -> Look {
        let (first, end) = (read.request.first_block, read.end());
        let filled = self.filled_to(now_us);
        let mut covered = first;
        loop {
            let next = self
                .segments
                .iter()
                .enumerate()
                .find_map(|(index, segment)| {
                    let to = if index == 0 {
                        filled.unwrap_or(segment.to)
                    } else {
                        segment.to
                    };
                    (segment.from <= covered && covered < to).then_some(to)
                });
            match next {
                Some(to) if to >= end => return Look::Held,
                Some(to) => covered = to,
                None => break,
            }
        }
        let front = self.segments.front().filter(|_| self.is_filling(now_us));
        let coming = front.zip(self.filling).filter(|(front, _)| {
            let at_end = filled.is_some_and(|to| covered >= front.from && covered <= to);
            at_end && front.to >= end
        });
        if let Some((_, filling)) = coming {
            let blocks = end - filling.block;
            return Look::Coming {
                at_us: filling.since_us + blocks as f64 * filling.block_us,
            };
        }
        match covered > first {
            true => Look::Partly { missing: covered },
            false => Look::Missing,
        }
    }

    /// The arm is wanted elsewhere: reading ahead stops.
    pub(crate) fn stop(&mut self, now_us: f64) {
        if let Some(to) = self.filled_to(now_us) {
            self.segments[0].to = to;
        }
        self.filling = None;
    }

    /// A read was answered from the buffer.
    pub(crate) fn was_held(&mut self, read: &Placed, now_us: f64) {
        let (first, end) = (read.request.first_block, read.end());
        let holds = |segment: &Segment| segment.from <= first && first < segment.to;
        self.last_read_end = end;
        let Some(index) = self.segments.iter().position(holds) else {
            return;
        };
        if index > 0 {
            self.stop(now_us);
            let used = self.segments.remove(index);
            self.segments.extend(used);
            self.segments.rotate_right(1);
        }
        let front = &mut self.segments[0];
        if !self.rule.keeps_behind {
            front.from = front.from.max(end);
        }
        if let (true, Extent::Ahead(blocks)) = (self.rule.goes_on, self.rule.extent) {
            let limit = end + u64::from(blocks);
            if self.filling.is_none() && limit > front.to {
                let block_us = self.revolution_us / f64::from(read.last().place.sectors_per_track);
                self.filling = Some(Filling {
                    since_us: now_us,
                    block: front.to,
                    block_us,
                });
            }
            self.segments[0].to = limit.max(self.segments[0].to);
        }
    }

    /// A read came from the medium, complete at a time.
    pub(crate) fn was_read(&mut self, read: &Placed, now_us: f64) {
        let (first, end) = (read.request.first_block, read.end());
        let is_contiguous = first == self.last_read_end;
        self.last_read_end = end;
        if self.rule.segments == 0 {
            return;
        }
        let goes_ahead = is_contiguous || !self.rule.only_contiguous;
        let (from, to) = match self.rule.extent {
            Extent::Ahead(blocks) => (first, end + u64::from(blocks)),
            Extent::Tracks { and_next: false } => (read.track_first, read.track_end),
            Extent::Tracks { and_next: true } => (read.track_first, read.next_track_end),
        };
        let from = if self.rule.keeps_behind { from } else { end };
        let to = if goes_ahead { to } else { end };
        self.segments.retain(|old| old.from < from || old.to > to);
        self.segments.push_front(Segment { from, to });
        self.segments.truncate(self.rule.segments as usize);
        let block_us = self.revolution_us / f64::from(read.last().place.sectors_per_track);
        self.filling = Some(Filling {
            since_us: now_us,
            block: end,
            block_us,
        });
    }

    /// Blocks were written.
    pub(crate) fn was_written(&mut self, write: &Placed, now_us: f64) {
        self.stop(now_us);
        let (first, end) = (write.request.first_block, write.end());
        match self.rule.on_write {
            OnWrite::All => self.segments.clear(),
            OnWrite::Overlapping if !self.rule.keeps_written => {
                self.segments
                    .retain(|old| old.to <= first || old.from >= end);
            }
            OnWrite::Overlapping => {}
        }
        if self.rule.keeps_written && self.rule.segments > 0 {
            self.segments.push_front(Segment {
                from: first,
                to: end,
            });
            self.segments.truncate(self.rule.segments as usize);
        }
    }
}
