//! Drive-managed shingled recording (SMR): media cache, its map, and the cleaning of bands.
//!
//! Tracks overlap, so a *band* of tracks is only ever written whole, from its front. A *media
//! cache* of tracks that do not overlap takes random writes, and a map records its contents. When
//! cache or map is full, or the drive is idle, it *cleans* a band: it reads the band and the band's
//! sectors in the cache, and rewrites the band. A long sequential write goes directly to its band.
//! (Aghayev and Desnoyers 2015; Feldman and Gibson 2013.)
//!
//! Nothing here knows of time: the module only decides which sectors to read and write, and where.

use super::cache::SectorExtent;
use std::collections::{BTreeMap, VecDeque};

/// Specification of shingled tracks, from a catalogue file. All sectors are medium sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ShingledSpecification {
    /// Number of sectors in a shingled band.
    pub band_sectors: u32,
    /// Number of sectors in the media cache. It lies at the outer edge, and hosts do not see it.
    #[cfg_attr(feature = "serde", serde(rename = "cache_sectors"))]
    pub media_cache_sectors: u64,
    /// Maximum number of extents in the map of the media cache.
    #[cfg_attr(feature = "serde", serde(rename = "map_extents"))]
    pub map_extents_max: u32,
    /// Idle time of the arm before the drive starts to clean bands, in ms.
    #[cfg_attr(feature = "serde", serde(rename = "idle_ms"))]
    pub cleaning_idle_ms: f64,
    /// Minimum length of a sequential run, in sectors, before its writes go directly to bands. They
    /// do so from the front of the next band on.
    #[cfg_attr(feature = "serde", serde(rename = "stream_sectors"))]
    pub stream_sectors_min: u32,
    /// Number of sectors that one step of cleaning reads or writes before pending commands get
    /// their turn.
    #[cfg_attr(feature = "serde", serde(rename = "step_sectors"))]
    pub cleaning_step_sectors: u32,
}

/// Contiguous sectors in the media cache or in a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShingledPiece {
    /// Whether the sectors are in the media cache rather than in their band.
    pub is_cached: bool,
    /// First sector: counted from the start of the media cache, or as the host counts.
    pub first_sector: u64,
    /// Number of contiguous sectors.
    pub sector_count: u32,
}

/// One step of the cleaning of a band: a read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleaningStep {
    /// Sectors that the step reads or writes.
    pub piece: ShingledPiece,
    /// Whether the cleaning step writes its sectors rather than reads them.
    pub is_write: bool,
}

/// Traffic counters of a media cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShingledCounters {
    /// Number of bands that cleaning has rewritten.
    pub cleaned_band_count: u64,
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
struct CachedExtent {
    end_sector: u64,
    /// Position of the extent in the log. Log positions grow without limit, and wrap around the
    /// cache.
    cache_position: u64,
}

#[derive(Clone, Debug)]
struct BandCleaning {
    band_index: u64,
    /// Log position at the start of the cleaning. Extents from there on are newer than it.
    log_head_before: u64,
    steps: VecDeque<CleaningStep>,
    /// First sector that the cleaning writes: that of the band, or the end of a stream that wrote
    /// its front.
    first_sector: u64,
}

/// State of a shingled disk: the map of its media cache, and the cleaning in progress.
#[derive(Clone, Debug)]
pub struct ShingleMap {
    specification: ShingledSpecification,
    sector_count: u64,
    /// Cached extents by first host sector, without overlaps.
    cached_extents: BTreeMap<u64, CachedExtent>,
    /// First sectors of the cached extents by log position.
    extents_by_log_position: BTreeMap<u64, u64>,
    /// End of the media cache's log.
    log_head: u64,
    band_cleaning: Option<BandCleaning>,
    /// Next sector of a sequential stream that writes a band directly.
    stream_end: Option<u64>,
    /// End of the last write, and the length of the sequential run that ends there, in sectors.
    sequential_run: (u64, u64),
    /// Whether a write waited for the last step of cleaning. From then on further writes wait as
    /// well, until the drive cleans in an idle period.
    is_always_full: bool,
    counters: ShingledCounters,
}

impl ShingleMap {
    /// Creates an empty media cache for a disk whose hosts see `sectors` medium sectors.
    pub fn new(of: ShingledSpecification, sectors: u64) -> Self {
        Self {
            specification: of,
            sector_count: sectors,
            cached_extents: BTreeMap::new(),
            extents_by_log_position: BTreeMap::new(),
            log_head: 0,
            band_cleaning: None,
            stream_end: None,
            sequential_run: (0, 0),
            is_always_full: false,
            counters: ShingledCounters::default(),
        }
    }

    /// Sets whether a write waits for the next step of cleaning.
    pub fn set_always_full(&mut self, is_full: bool) {
        self.is_always_full = is_full;
    }

    /// Returns the traffic counters of the media cache.
    pub fn counters(&self) -> ShingledCounters {
        self.counters
    }

    /// Returns the number of log sectors in use, from the oldest extent to the end of the log.
    pub fn used_sectors(&self) -> u64 {
        self.log_head - self.log_tail()
    }

    /// Returns the number of extents in the map.
    pub fn extent_count(&self) -> usize {
        self.cached_extents.len()
    }

    /// Returns the log position of the oldest extent.
    fn log_tail(&self) -> u64 {
        self.extents_by_log_position
            .first_key_value()
            .map_or(self.log_head, |(at, _)| *at)
    }

    fn band_of_sector(&self, sector: u64) -> u64 {
        sector / u64::from(self.specification.band_sectors)
    }

    fn band_extent(&self, band: u64) -> SectorExtent {
        let first = band * u64::from(self.specification.band_sectors);
        let end = first + u64::from(self.specification.band_sectors);
        SectorExtent {
            first_sector: first,
            end_sector: end.min(self.sector_count),
        }
    }

    /// Returns the first sector from `from` on that the media cache holds; `None` if it holds none.
    pub fn next_cached_sector(&self, from: u64) -> Option<u64> {
        let before = self.cached_extents.range(..=from).next_back();
        if before.is_some_and(|(_, of)| of.end_sector > from) {
            return Some(from);
        }
        self.cached_extents
            .range(from..)
            .next()
            .map(|(first, _)| *first)
    }

    /// Calls `tell` for each piece of an extent, in order, with its place in the media cache or in
    /// its band.
    pub fn split_into_pieces(&self, of: SectorExtent, mut tell: impl FnMut(ShingledPiece)) {
        let mut at = of.first_sector;
        while at < of.end_sector {
            let before = self.cached_extents.range(..=at).next_back();
            if let Some((first, cached)) = before.filter(|(_, cached)| cached.end_sector > at) {
                let end = cached.end_sector.min(of.end_sector);
                self.split_logged((cached.cache_position + (at - first), end - at), &mut tell);
                at = end;
            } else {
                let next = self
                    .cached_extents
                    .range(at..)
                    .next()
                    .map_or(of.end_sector, |(first, _)| *first);
                let end = next.min(of.end_sector);
                tell(ShingledPiece {
                    is_cached: false,
                    first_sector: at,
                    sector_count: (end - at) as u32,
                });
                at = end;
            }
        }
    }

    /// Calls `tell` for the cache sectors of a run of the log: two pieces where the log wraps
    /// around.
    fn split_logged(&self, (mut at, mut sectors): (u64, u64), tell: &mut dyn FnMut(ShingledPiece)) {
        while sectors > 0 {
            let place = at % self.specification.media_cache_sectors;
            let here = sectors.min(self.specification.media_cache_sectors - place);
            tell(ShingledPiece {
                is_cached: true,
                first_sector: place,
                sector_count: here as u32,
            });
            (at, sectors) = (at + here, sectors - here);
        }
    }

    /// Tests whether a write of these sectors goes directly to its band.
    fn is_streamed(&self, of: SectorExtent) -> bool {
        let is_front = of.first_sector
            == self
                .band_extent(self.band_of_sector(of.first_sector))
                .first_sector;
        let begins = is_front && self.reaches_stream_length(of);
        let too_long = of.sectors() > self.specification.media_cache_sectors;
        self.stream_end == Some(of.first_sector) || begins || too_long
    }

    /// Tests whether these sectors end a sequential run long enough for a direct write to a band.
    fn reaches_stream_length(&self, of: SectorExtent) -> bool {
        self.run_sectors_with(of) >= u64::from(self.specification.stream_sectors_min)
    }

    /// Returns the length of the sequential run that ends with these sectors.
    fn run_sectors_with(&self, of: SectorExtent) -> u64 {
        match self.sequential_run {
            (end, sectors) if end == of.first_sector => sectors + of.sectors(),
            _ => of.sectors(),
        }
    }

    /// Reports whether the drive must clean a band before it writes these sectors.
    pub fn must_clean_before_write(&self, of: SectorExtent) -> bool {
        // What is left of an extent on both sides needs one more place in the map.
        if self.would_split_extent(of) && !self.has_map_entry_free() {
            return true;
        }
        if self.stream_end == Some(of.first_sector) {
            return false;
        }
        // A stream that ended inside a band has left the rest of it to be written anew.
        let is_open = self
            .stream_end
            .is_some_and(|at| self.is_inside_cleaning(at));
        let of_stream = self
            .band_cleaning
            .as_ref()
            .is_some_and(|one| !self.has_whole_band(one));
        if is_open || of_stream {
            return true;
        }
        !self.is_streamed(of)
            && !self.cached_extents.is_empty()
            && !self.has_cache_space(of.sectors())
    }

    /// Tests whether these sectors lie inside a cached extent, with a rest on both sides.
    fn would_split_extent(&self, of: SectorExtent) -> bool {
        let before = self.cached_extents.range(..of.first_sector).next_back();
        before.is_some_and(|(_, cached)| cached.end_sector > of.end_sector)
    }

    fn has_map_entry_free(&self) -> bool {
        self.cached_extents.len() < self.specification.map_extents_max as usize
    }

    fn is_inside_cleaning(&self, sector: u64) -> bool {
        sector < self.sector_count
            && !sector.is_multiple_of(u64::from(self.specification.band_sectors))
    }

    fn has_whole_band(&self, cleaning: &BandCleaning) -> bool {
        cleaning.first_sector == self.band_extent(cleaning.band_index).first_sector
    }

    fn has_cache_space(&self, sectors: u64) -> bool {
        // A write inside an extent leaves two of it.
        self.cached_extents.len() + 2 <= self.specification.map_extents_max as usize
            && self.used_sectors() + sectors <= self.specification.media_cache_sectors
    }

    /// Reports whether cleaning has work: cached extents, or a band that a stream left incomplete.
    pub fn has_cached_extents(&self) -> bool {
        self.band_cleaning.is_some()
            || !self.cached_extents.is_empty()
            || self
                .stream_end
                .is_some_and(|at| self.is_inside_cleaning(at))
    }

    /// Writes sectors to the media cache or directly to their bands, and calls `tell` for each
    /// piece.
    ///
    /// # Panics
    ///
    /// When a band must be cleaned first, or the cache holds more than it has room for.
    pub fn write_extent(&mut self, of: SectorExtent, tell: &mut dyn FnMut(ShingledPiece)) {
        assert!(
            !self.must_clean_before_write(of),
            "a band has to be cleaned first"
        );
        let next_band = self
            .band_extent(self.band_of_sector(of.first_sector))
            .end_sector;
        if !self.is_streamed(of) && next_band < of.end_sector && self.reaches_stream_length(of) {
            // What comes before the band's front is not of the stream.
            let (first, end) = (of.first_sector, of.end_sector);
            self.write_extent(
                SectorExtent {
                    first_sector: first,
                    end_sector: next_band,
                },
                tell,
            );
            self.write_extent(
                SectorExtent {
                    first_sector: next_band,
                    end_sector: end,
                },
                tell,
            );
            return;
        }
        if let Some(cleaning) = &self.band_cleaning
            && self.is_streamed(of)
            && self.band_extent(cleaning.band_index).overlaps(of)
        {
            // The stream writes the band itself; what is left of it is cleaned again.
            self.band_cleaning = None;
        }
        self.discard_cached(of);
        if self.is_always_full {
            self.counters.past_cache_sectors += of.sectors();
        }
        let streams = self.is_streamed(of);
        self.sequential_run = (of.end_sector, self.run_sectors_with(of));
        if streams {
            self.stream_end = Some(of.end_sector);
            self.counters.streamed_sectors += of.sectors();
            tell(ShingledPiece {
                is_cached: false,
                first_sector: of.first_sector,
                sector_count: of.sectors() as u32,
            });
            return;
        }
        self.stream_end = None;
        let at = self.log_head;
        self.log_head += of.sectors();
        self.cached_extents.insert(
            of.first_sector,
            CachedExtent {
                end_sector: of.end_sector,
                cache_position: at,
            },
        );
        self.extents_by_log_position.insert(at, of.first_sector);
        self.counters.cached_sectors += of.sectors();
        assert!(
            self.used_sectors() <= self.specification.media_cache_sectors
                && self.cached_extents.len() <= self.specification.map_extents_max as usize,
            "the media cache holds more than it has room for"
        );
        self.split_logged((at, of.sectors()), tell);
    }

    /// Discards sectors that the host no longer uses. The cache keeps them if the map has no entry
    /// left to split their extent, because a discard is only a hint.
    pub fn discard(&mut self, of: SectorExtent) {
        if !self.would_split_extent(of) || self.has_map_entry_free() {
            self.discard_cached(of);
        }
    }

    fn discard_cached(&mut self, of: SectorExtent) {
        let first = self
            .cached_extents
            .range(..of.first_sector)
            .next_back()
            .filter(|(_, cached)| cached.end_sector > of.first_sector)
            .map_or(of.first_sector, |(first, _)| *first);
        while let Some((first, cached)) = self
            .cached_extents
            .range(first..of.end_sector)
            .find(|(_, cached)| cached.end_sector > of.first_sector)
            .map(|(first, cached)| (*first, *cached))
        {
            self.cached_extents.remove(&first);
            self.extents_by_log_position.remove(&cached.cache_position);
            if first < of.first_sector {
                let end = of.first_sector;
                self.cached_extents.insert(
                    first,
                    CachedExtent {
                        end_sector: end,
                        ..cached
                    },
                );
                self.extents_by_log_position
                    .insert(cached.cache_position, first);
            }
            if cached.end_sector > of.end_sector {
                let at = cached.cache_position + (of.end_sector - first);
                let end = cached.end_sector;
                self.cached_extents.insert(
                    of.end_sector,
                    CachedExtent {
                        end_sector: end,
                        cache_position: at,
                    },
                );
                self.extents_by_log_position.insert(at, of.end_sector);
            }
        }
    }

    /// Returns the next step of cleaning. A new cleaning begins with the band that a stream left
    /// incomplete, else with the band of the oldest extent.
    ///
    /// # Panics
    ///
    /// When there is nothing to clean.
    pub fn next_cleaning_step(&mut self) -> CleaningStep {
        if self.band_cleaning.is_none() {
            let open = self.stream_end.filter(|at| self.is_inside_cleaning(*at));
            self.stream_end = None;
            let first = match open {
                Some(at) => at,
                None => {
                    let (_, oldest) = self
                        .extents_by_log_position
                        .first_key_value()
                        .expect("something to clean");
                    self.band_extent(self.band_of_sector(*oldest)).first_sector
                }
            };
            self.band_cleaning = Some(self.plan_cleaning(first));
        }
        let cleaning = self
            .band_cleaning
            .as_ref()
            .expect("a band is being cleaned");
        *cleaning.steps.front().expect("steps that are left")
    }

    /// Plans the cleaning of a band from one of its sectors on.
    fn plan_cleaning(&self, first: u64) -> BandCleaning {
        let band = self.band_of_sector(first);
        let of = SectorExtent {
            first_sector: first,
            end_sector: self.band_extent(band).end_sector,
        };
        let mut steps = VecDeque::new();
        let whole = ShingledPiece {
            is_cached: false,
            first_sector: of.first_sector,
            sector_count: of.sectors() as u32,
        };
        self.cut_into_steps(whole, false, &mut steps);
        self.split_into_pieces(of, |piece| {
            if piece.is_cached {
                self.cut_into_steps(piece, false, &mut steps);
            }
        });
        self.cut_into_steps(whole, true, &mut steps);
        BandCleaning {
            band_index: band,
            log_head_before: self.log_head,
            steps,
            first_sector: first,
        }
    }

    fn cut_into_steps(
        &self,
        piece: ShingledPiece,
        write: bool,
        steps: &mut VecDeque<CleaningStep>,
    ) {
        let (mut first, mut left) = (piece.first_sector, piece.sector_count);
        while left > 0 {
            let sectors = left.min(self.specification.cleaning_step_sectors);
            steps.push_back(CleaningStep {
                piece: ShingledPiece {
                    first_sector: first,
                    sector_count: sectors,
                    ..piece
                },
                is_write: write,
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
    pub fn complete_cleaning_step(&mut self) {
        let cleaning = self
            .band_cleaning
            .as_mut()
            .expect("a band is being cleaned");
        let step = cleaning.steps.pop_front().expect("a step");
        if step.is_write {
            self.counters.cleaned_sectors += u64::from(step.piece.sector_count);
        }
        if !cleaning.steps.is_empty() {
            return;
        }
        let (band, before, first) = (
            cleaning.band_index,
            cleaning.log_head_before,
            cleaning.first_sector,
        );
        self.band_cleaning = None;
        self.counters.cleaned_band_count += 1;
        let of = SectorExtent {
            first_sector: first,
            end_sector: self.band_extent(band).end_sector,
        };
        let inside: Vec<SectorExtent> = self
            .overlapping_extents(of)
            .filter(|(_, cached)| cached.cache_position < before)
            .map(|(first, cached)| SectorExtent {
                first_sector: first.max(of.first_sector),
                end_sector: cached.end_sector.min(of.end_sector),
            })
            .collect();
        for one in inside {
            self.discard_cached(one);
        }
    }

    fn overlapping_extents(&self, of: SectorExtent) -> impl Iterator<Item = (u64, CachedExtent)> {
        let before = self.cached_extents.range(..of.first_sector).next_back();
        let before = before.filter(move |(_, cached)| cached.end_sector > of.first_sector);
        let inside = self.cached_extents.range(of.first_sector..of.end_sector);
        before
            .into_iter()
            .chain(inside)
            .map(|(first, cached)| (*first, *cached))
    }
}
