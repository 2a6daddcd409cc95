//! Drive-managed shingled recording (SMR): media cache, its map, and the cleaning of bands.
//!
//! Tracks overlap, so a *band* of tracks is only ever written whole, from its front. A *media
//! cache* of tracks that do not overlap takes random writes, and a map records its contents. When
//! cache or map is full, or the drive is idle, it *cleans* a band: it reads the band and the band's
//! sectors in the cache, and rewrites the band. A long sequential write goes directly to its band.
//! (Aghayev and Desnoyers 2015; Feldman and Gibson 2013.)
//!
//! Nothing here knows of time: the module only decides which sectors to read and write, and where.

use super::cache::Extent;
use std::collections::{BTreeMap, VecDeque};

/// Specification of shingled tracks, from a catalogue file. All sectors are medium sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ShingledSpecification {
    /// Number of sectors in a shingled band.
    pub band_sectors: u32,
    /// Number of sectors in the media cache. It lies at the outer edge, and hosts do not see it.
    pub cache_sectors: u64,
    /// Maximum number of extents in the map of the media cache.
    pub map_extents: u32,
    /// Idle time of the arm before the drive starts to clean bands, in ms.
    pub idle_ms: f64,
    /// Minimum length of a sequential run, in sectors, before its writes go directly to bands. They
    /// do so from the front of the next band on.
    pub stream_sectors: u32,
    /// Number of sectors that one step of cleaning reads or writes before pending commands get
    /// their turn.
    pub step_sectors: u32,
}

/// Contiguous sectors in the media cache or in a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Whether the sectors are in the media cache rather than in their band.
    pub cached: bool,
    /// First sector: counted from the start of the media cache, or as the host counts.
    pub first: u64,
    /// Number of contiguous sectors.
    pub sectors: u32,
}

/// One step of the cleaning of a band: a read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Sectors that the step reads or writes.
    pub piece: Piece,
    /// Whether the cleaning step writes its sectors rather than reads them.
    pub write: bool,
}

/// Traffic counters of a media cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of bands that cleaning has rewritten.
    pub bands_cleaned: u64,
    /// Sectors written to the media cache.
    pub cached_sectors: u64,
    /// Sectors of sequential writes that went directly to their bands.
    pub streamed_sectors: u64,
    /// Sectors that the cleaning of bands has written.
    pub cleaned_sectors: u64,
    /// Sectors that hosts wrote while the cache or its map was full, whether or not they went into
    /// the cache.
    pub past_cache_sectors: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cached {
    end: u64,
    /// Position of the extent in the log. Log positions grow without limit, and wrap around the
    /// cache.
    at: u64,
}

#[derive(Clone, Debug)]
struct Cleaning {
    band: u64,
    /// Log position at the start of the cleaning. Extents from there on are newer than it.
    before: u64,
    steps: VecDeque<Step>,
    /// First sector that the cleaning writes: that of the band, or the end of a stream that wrote
    /// its front.
    first: u64,
}

/// State of a shingled disk: the map of its media cache, and the cleaning in progress.
#[derive(Clone, Debug)]
pub struct Shingled {
    of: ShingledSpecification,
    sectors: u64,
    /// Cached extents by first host sector, without overlaps.
    map: BTreeMap<u64, Cached>,
    /// First sectors of the cached extents by log position.
    log: BTreeMap<u64, u64>,
    /// End of the media cache's log.
    head: u64,
    cleaning: Option<Cleaning>,
    /// Next sector of a sequential stream that writes a band directly.
    stream: Option<u64>,
    /// End of the last write, and the length of the sequential run that ends there, in sectors.
    run: (u64, u64),
    /// Whether a write waited for the last step of cleaning. From then on further writes wait as
    /// well, until the drive cleans in an idle period.
    is_full: bool,
    counters: Counters,
}

impl Shingled {
    /// Creates an empty media cache for a disk whose hosts see `sectors` medium sectors.
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

    /// Returns the traffic counters of the media cache.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the number of log sectors in use, from the oldest extent to the end of the log.
    pub fn used_sectors(&self) -> u64 {
        self.head - self.tail()
    }

    /// Returns the number of extents in the map.
    pub fn extents(&self) -> usize {
        self.map.len()
    }

    /// Returns the log position of the oldest extent.
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

    /// Returns the first sector from `from` on that the media cache holds; `None` if it holds none.
    pub fn first_cached(&self, from: u64) -> Option<u64> {
        let before = self.map.range(..=from).next_back();
        if before.is_some_and(|(_, of)| of.end > from) {
            return Some(from);
        }
        self.map.range(from..).next().map(|(first, _)| *first)
    }

    /// Calls `tell` for each piece of an extent, in order, with its place in the media cache or in
    /// its band.
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

    /// Calls `tell` for the cache sectors of a run of the log: two pieces where the log wraps
    /// around.
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

    /// Tests whether a write of these sectors goes directly to its band.
    fn streams(&self, of: Extent) -> bool {
        let is_front = of.first == self.band(self.band_of(of.first)).first;
        let begins = is_front && self.is_long(of);
        let too_long = of.sectors() > self.of.cache_sectors;
        self.stream == Some(of.first) || begins || too_long
    }

    /// Tests whether these sectors end a sequential run long enough for a direct write to a band.
    fn is_long(&self, of: Extent) -> bool {
        self.run_with(of) >= u64::from(self.of.stream_sectors)
    }

    /// Returns the length of the sequential run that ends with these sectors.
    fn run_with(&self, of: Extent) -> u64 {
        match self.run {
            (end, sectors) if end == of.first => sectors + of.sectors(),
            _ => of.sectors(),
        }
    }

    /// Reports whether the drive must clean a band before it writes these sectors.
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

    /// Tests whether these sectors lie inside a cached extent, with a rest on both sides.
    fn splits(&self, of: Extent) -> bool {
        let before = self.map.range(..of.first).next_back();
        before.is_some_and(|(_, cached)| cached.end > of.end)
    }

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

    /// Reports whether cleaning has work: cached extents, or a band that a stream left incomplete.
    pub fn is_dirty(&self) -> bool {
        self.cleaning.is_some()
            || !self.map.is_empty()
            || self.stream.is_some_and(|at| self.is_inside(at))
    }

    /// Writes sectors to the media cache or directly to their bands, and calls `tell` for each
    /// piece.
    ///
    /// # Panics
    ///
    /// When a band must be cleaned first, or the cache holds more than it has room for.
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

    /// Discards sectors that the host no longer uses. The cache keeps them if the map has no entry
    /// left to split their extent, because a discard is only a hint.
    pub fn forget(&mut self, of: Extent) {
        if !self.splits(of) || self.has_place() {
            self.drop_cached(of);
        }
    }

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

    /// Returns the next step of cleaning. A new cleaning begins with the band that a stream left
    /// incomplete, else with the band of the oldest extent.
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

    /// Plans the cleaning of a band from one of its sectors on.
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

    /// Cuts a piece into steps of limited size.
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

    /// Ends a step of cleaning. After the last step, the band holds its cached sectors, except
    /// those written since the cleaning began.
    ///
    /// # Panics
    ///
    /// When no cleaning is in progress.
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
