//! Shingled tracks behind a drive's own firmware (drive-managed SMR): tracks overlap, so a
//! *band* of them is only ever written whole, from its front; a *media cache* of tracks that
//! do not overlap takes what comes at random, and a map says what lies there. When cache or
//! map is full, or nothing else is to be done, a band is *cleaned*: it is read, what the
//! cache has of it is read, and it is written anew. A long sequential write goes to its band
//! at once. (Aghayev and Desnoyers 2015; Feldman and Gibson 2013.)
//!
//! Nothing here knows of time: it says what is to be read and written where.

use super::cache::Extent;
use std::collections::{BTreeMap, VecDeque};

/// Shingled tracks as a catalogue file describes them. Sectors are the medium's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ShingledSpecification {
    /// Sectors of a band.
    pub band_sectors: u32,
    /// Sectors of the media cache, at the outer edge, which hosts do not see.
    pub cache_sectors: u64,
    /// Extents that the map of the cache holds.
    pub map_extents: u32,
    /// How long the arm must have had nothing to do before bands are cleaned, in ms.
    pub idle_ms: f64,
    /// Writes that follow each other go to the next band that they come to the front of,
    /// once there are so many sectors of them.
    pub stream_sectors: u32,
    /// What cleaning reads or writes before commands have a turn.
    pub step_sectors: u32,
}

/// Where neighbouring sectors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// In the media cache, from its first sector; else on their band.
    pub cached: bool,
    /// The first one: of the cache, or as hosts count.
    pub first: u64,
    /// How many.
    pub sectors: u32,
}

/// One step of cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What passes the head.
    pub piece: Piece,
    /// Whether it is written.
    pub write: bool,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bands that were written anew.
    pub bands_cleaned: u64,
    /// Sectors that went to the media cache.
    pub cached_sectors: u64,
    /// Sectors that went to their bands at once.
    pub streamed_sectors: u64,
    /// Sectors that cleaning wrote.
    pub cleaned_sectors: u64,
    /// Sectors that hosts wrote while cache or map was full, whether they went there or not.
    pub past_cache_sectors: u64,
}

/// An extent in the media cache.
#[derive(Clone, Copy, Debug)]
struct Cached {
    end: u64,
    /// Where it is in the log, which is as long as all that was ever appended.
    at: u64,
}

/// A band that is being written anew.
#[derive(Clone, Debug)]
struct Cleaning {
    band: u64,
    /// What was appended from there on is newer.
    before: u64,
    steps: VecDeque<Step>,
    /// The first sector that is written: the band's, unless a stream came so far.
    first: u64,
}

/// The media cache, its map, and what is being cleaned.
#[derive(Clone, Debug)]
pub struct Shingled {
    of: ShingledSpecification,
    sectors: u64,
    /// By first sector, as hosts count; none overlaps another.
    map: BTreeMap<u64, Cached>,
    /// The same by place in the log.
    log: BTreeMap<u64, u64>,
    /// Where the log ends.
    head: u64,
    cleaning: Option<Cleaning>,
    /// Where a stream to a band goes on.
    stream: Option<u64>,
    /// The sector behind the last write, and how many have followed each other up to there.
    run: (u64, u64),
    /// Whether a write waited for the last step of cleaning: from then on each waits sooner or
    /// later, until the drive cleans in an idle period.
    is_full: bool,
    counters: Counters,
}

impl Shingled {
    /// Empty, of a disk of which hosts see so many sectors of the medium.
    pub fn new(of: ShingledSpecification, sectors: u64) -> Self {
        Self {
            of,
            sectors,
            map: BTreeMap::new(),
            log: BTreeMap::new(),
            head: 0,
            cleaning: None,
            stream: None,
            run: (0, 0),
            is_full: false,
            counters: Counters::default(),
        }
    }

    /// Sets whether a write waits for the next step of cleaning.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Sectors of the log from its oldest extent on.
    pub fn used_sectors(&self) -> u64 {
        self.head - self.tail()
    }

    /// Extents in the map.
    pub fn extents(&self) -> usize {
        self.map.len()
    }

    /// Where the oldest extent of the log is.
    fn tail(&self) -> u64 {
        self.log.first_key_value().map_or(self.head, |(at, _)| *at)
    }

    fn band_of(&self, sector: u64) -> u64 {
        sector / u64::from(self.of.band_sectors)
    }

    fn band(&self, band: u64) -> Extent {
        let first = band * u64::from(self.of.band_sectors);
        let end = first + u64::from(self.of.band_sectors);
        Extent {
            first,
            end: end.min(self.sectors),
        }
    }

    /// The first sector from this one on that the cache has; none if it has none.
    pub fn first_cached(&self, from: u64) -> Option<u64> {
        let before = self.map.range(..=from).next_back();
        if before.is_some_and(|(_, of)| of.end > from) {
            return Some(from);
        }
        self.map.range(from..).next().map(|(first, _)| *first)
    }

    /// Where sectors are, in their order.
    pub fn pieces(&self, of: Extent, mut tell: impl FnMut(Piece)) {
        let mut at = of.first;
        while at < of.end {
            let before = self.map.range(..=at).next_back();
            if let Some((first, cached)) = before.filter(|(_, cached)| cached.end > at) {
                let end = cached.end.min(of.end);
                self.logged((cached.at + (at - first), end - at), &mut tell);
                at = end;
            } else {
                let next = self
                    .map
                    .range(at..)
                    .next()
                    .map_or(of.end, |(first, _)| *first);
                let end = next.min(of.end);
                tell(Piece {
                    cached: false,
                    first: at,
                    sectors: (end - at) as u32,
                });
                at = end;
            }
        }
    }

    /// Places of the cache that a run of the log is at: two where it goes round.
    fn logged(&self, (mut at, mut sectors): (u64, u64), tell: &mut dyn FnMut(Piece)) {
        while sectors > 0 {
            let place = at % self.of.cache_sectors;
            let here = sectors.min(self.of.cache_sectors - place);
            tell(Piece {
                cached: true,
                first: place,
                sectors: here as u32,
            });
            (at, sectors) = (at + here, sectors - here);
        }
    }

    /// Whether a write of these sectors goes to its band at once.
    fn streams(&self, of: Extent) -> bool {
        let is_front = of.first == self.band(self.band_of(of.first)).first;
        let begins = is_front && self.is_long(of);
        let too_long = of.sectors() > self.of.cache_sectors;
        self.stream == Some(of.first) || begins || too_long
    }

    /// Whether these sectors end a run that is long enough for a band.
    fn is_long(&self, of: Extent) -> bool {
        self.run_with(of) >= u64::from(self.of.stream_sectors)
    }

    /// Sectors that have followed each other, when these are written too.
    fn run_with(&self, of: Extent) -> u64 {
        match self.run {
            (end, sectors) if end == of.first => sectors + of.sectors(),
            _ => of.sectors(),
        }
    }

    /// Whether a band has to be cleaned before these sectors are written.
    pub fn must_clean(&self, of: Extent) -> bool {
        // What is left of an extent on both sides needs one more place in the map.
        if self.splits(of) && !self.has_place() {
            return true;
        }
        if self.stream == Some(of.first) {
            return false;
        }
        // A stream that ended inside a band has left the rest of it to be written anew.
        let is_open = self.stream.is_some_and(|at| self.is_inside(at));
        let of_stream = self
            .cleaning
            .as_ref()
            .is_some_and(|one| !self.is_whole(one));
        if is_open || of_stream {
            return true;
        }
        !self.streams(of) && !self.map.is_empty() && !self.has_room(of.sectors())
    }

    /// Whether these sectors are in the middle of an extent of the cache.
    fn splits(&self, of: Extent) -> bool {
        let before = self.map.range(..of.first).next_back();
        before.is_some_and(|(_, cached)| cached.end > of.end)
    }

    /// Whether the map takes one more extent.
    fn has_place(&self) -> bool {
        self.map.len() < self.of.map_extents as usize
    }

    fn is_inside(&self, sector: u64) -> bool {
        sector < self.sectors && !sector.is_multiple_of(u64::from(self.of.band_sectors))
    }

    fn is_whole(&self, cleaning: &Cleaning) -> bool {
        cleaning.first == self.band(cleaning.band).first
    }

    fn has_room(&self, sectors: u64) -> bool {
        // A write inside an extent leaves two of it.
        self.map.len() + 2 <= self.of.map_extents as usize
            && self.used_sectors() + sectors <= self.of.cache_sectors
    }

    /// Whether there is something to clean.
    pub fn is_dirty(&self) -> bool {
        self.cleaning.is_some()
            || !self.map.is_empty()
            || self.stream.is_some_and(|at| self.is_inside(at))
    }

    /// Sectors are written: where they go.
    ///
    /// # Panics
    ///
    /// When a band must be cleaned before, or the cache holds more than it has room for.
    pub fn write(&mut self, of: Extent, tell: &mut dyn FnMut(Piece)) {
        assert!(!self.must_clean(of), "a band has to be cleaned first");
        let next_band = self.band(self.band_of(of.first)).end;
        if !self.streams(of) && next_band < of.end && self.is_long(of) {
            // What comes before the band's front is not of the stream.
            let (first, end) = (of.first, of.end);
            self.write(
                Extent {
                    first,
                    end: next_band,
                },
                tell,
            );
            self.write(
                Extent {
                    first: next_band,
                    end,
                },
                tell,
            );
            return;
        }
        if let Some(cleaning) = &self.cleaning
            && self.streams(of)
            && self.band(cleaning.band).overlaps(of)
        {
            // The stream writes the band itself; what is left of it is cleaned again.
            self.cleaning = None;
        }
        self.drop_cached(of);
        if self.is_full {
            self.counters.past_cache_sectors += of.sectors();
        }
        let streams = self.streams(of);
        self.run = (of.end, self.run_with(of));
        if streams {
            self.stream = Some(of.end);
            self.counters.streamed_sectors += of.sectors();
            tell(Piece {
                cached: false,
                first: of.first,
                sectors: of.sectors() as u32,
            });
            return;
        }
        self.stream = None;
        let at = self.head;
        self.head += of.sectors();
        self.map.insert(of.first, Cached { end: of.end, at });
        self.log.insert(at, of.first);
        self.counters.cached_sectors += of.sectors();
        assert!(
            self.used_sectors() <= self.of.cache_sectors
                && self.map.len() <= self.of.map_extents as usize,
            "the media cache holds more than it has room for"
        );
        self.logged((at, of.sectors()), tell);
    }

    /// The host has no use for these sectors any more. Where the map has no place for what
    /// would be left on both sides of them, the cache keeps them: a hint may be ignored.
    pub fn forget(&mut self, of: Extent) {
        if !self.splits(of) || self.has_place() {
            self.drop_cached(of);
        }
    }

    /// What the cache has of these sectors is of no use any more.
    fn drop_cached(&mut self, of: Extent) {
        let first = self
            .map
            .range(..of.first)
            .next_back()
            .filter(|(_, cached)| cached.end > of.first)
            .map_or(of.first, |(first, _)| *first);
        while let Some((first, cached)) = self
            .map
            .range(first..of.end)
            .find(|(_, cached)| cached.end > of.first)
            .map(|(first, cached)| (*first, *cached))
        {
            self.map.remove(&first);
            self.log.remove(&cached.at);
            if first < of.first {
                let end = of.first;
                self.map.insert(first, Cached { end, ..cached });
                self.log.insert(cached.at, first);
            }
            if cached.end > of.end {
                let at = cached.at + (of.end - first);
                let end = cached.end;
                self.map.insert(of.end, Cached { end, at });
                self.log.insert(at, of.end);
            }
        }
    }

    /// The next step of cleaning, which begins with the band of the oldest extent, or with
    /// what a stream has left.
    ///
    /// # Panics
    ///
    /// When there is nothing to clean.
    pub fn next_step(&mut self) -> Step {
        if self.cleaning.is_none() {
            let open = self.stream.filter(|at| self.is_inside(*at));
            self.stream = None;
            let first = match open {
                Some(at) => at,
                None => {
                    let (_, oldest) = self.log.first_key_value().expect("something to clean");
                    self.band(self.band_of(*oldest)).first
                }
            };
            self.cleaning = Some(self.plan(first));
        }
        let cleaning = self.cleaning.as_ref().expect("a band is being cleaned");
        *cleaning.steps.front().expect("steps that are left")
    }

    /// The steps of a band, from one of its sectors on.
    fn plan(&self, first: u64) -> Cleaning {
        let band = self.band_of(first);
        let of = Extent {
            first,
            end: self.band(band).end,
        };
        let mut steps = VecDeque::new();
        let whole = Piece {
            cached: false,
            first: of.first,
            sectors: of.sectors() as u32,
        };
        self.cut(whole, false, &mut steps);
        self.pieces(of, |piece| {
            if piece.cached {
                self.cut(piece, false, &mut steps);
            }
        });
        self.cut(whole, true, &mut steps);
        Cleaning {
            band,
            before: self.head,
            steps,
            first,
        }
    }

    /// A piece in steps.
    fn cut(&self, piece: Piece, write: bool, steps: &mut VecDeque<Step>) {
        let (mut first, mut left) = (piece.first, piece.sectors);
        while left > 0 {
            let sectors = left.min(self.of.step_sectors);
            steps.push_back(Step {
                piece: Piece {
                    first,
                    sectors,
                    ..piece
                },
                write,
            });
            (first, left) = (first + u64::from(sectors), left - sectors);
        }
    }

    /// The step is done. After the last one, the band has what the cache had of it, but for
    /// what has come since.
    ///
    /// # Panics
    ///
    /// When nothing is being cleaned.
    pub fn step_done(&mut self) {
        let cleaning = self.cleaning.as_mut().expect("a band is being cleaned");
        let step = cleaning.steps.pop_front().expect("a step");
        if step.write {
            self.counters.cleaned_sectors += u64::from(step.piece.sectors);
        }
        if !cleaning.steps.is_empty() {
            return;
        }
        let (band, before, first) = (cleaning.band, cleaning.before, cleaning.first);
        self.cleaning = None;
        self.counters.bands_cleaned += 1;
        let of = Extent {
            first,
            end: self.band(band).end,
        };
        let inside: Vec<Extent> = self
            .overlapping(of)
            .filter(|(_, cached)| cached.at < before)
            .map(|(first, cached)| Extent {
                first: first.max(of.first),
                end: cached.end.min(of.end),
            })
            .collect();
        for one in inside {
            self.drop_cached(one);
        }
    }

    /// Extents of the cache that have some of these sectors.
    fn overlapping(&self, of: Extent) -> impl Iterator<Item = (u64, Cached)> {
        let before = self.map.range(..of.first).next_back();
        let before = before.filter(move |(_, cached)| cached.end > of.first);
        let inside = self.map.range(of.first..of.end);
        before
            .into_iter()
            .chain(inside)
            .map(|(first, cached)| (*first, *cached))
    }
}
