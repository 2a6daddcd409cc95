//! Shingled tracks of a disk: reads in pieces, writes to the media cache, and the cleaning of bands
//! between commands.

use super::super::layout::Place;
use super::super::mechanism::{Parts, Passing};
use super::super::shingled::{Piece, Shingled, ShingledSpecification};
use super::*;
use crate::disk::device::DiskError;
use diskperf_spans::ArmWork;

/// Fill level and traffic of the media cache of a shingled disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaCacheState {
    /// Bytes of the media cache in use, from the oldest extent of its log on.
    pub used_bytes: u64,
    /// Capacity of the media cache, in bytes.
    pub room_bytes: u64,
    /// Extents in the map of the media cache.
    pub extents: u64,
    /// Maximum number of extents in the map.
    pub most_extents: u64,
    /// Bytes written to the media cache.
    pub cached_bytes: u64,
    /// Bytes of sequential writes that went directly to their bands.
    pub streamed_bytes: u64,
    /// Bytes that the cleaning of bands has written.
    pub cleaned_bytes: u64,
    /// Bytes that hosts wrote while the media cache or its map was full.
    pub past_cache_bytes: u64,
    /// Number of bands that cleaning has rewritten.
    pub bands_cleaned: u64,
    /// Total time that the arm spent on cleaning.
    pub cleaning: Time,
}

/// Media cache of a shingled disk, and a model of the arm on the cache's tracks. These tracks are
/// at the outer edge, and hosts do not see them.
#[derive(Clone, Debug)]
pub(super) struct Shingles {
    pub(super) map: Shingled,
    /// Copy of the disk's mechanism that addresses the sectors of the media cache.
    pub(super) cache: Mechanism,
    idle: Time,
    /// Total time of cleaning so far.
    pub(super) cleaned: Time,
}

impl Shingles {
    /// Creates an empty media cache. The first zone of the disk must begin with as many dead
    /// sectors as the cache has.
    pub(super) fn new(
        of: &ShingledSpecification,
        specification: &DiskSpecification,
        sectors: u64,
    ) -> Result<Self, DiskError> {
        let mut mechanism = specification.mechanism.clone();
        if let Some(first) = mechanism.layout.zones.first_mut() {
            first.dead_sectors = 0;
        }
        mechanism.layout.sectors = Some(of.cache_sectors);
        Ok(Self {
            map: Shingled::new(*of, sectors),
            cache: Mechanism::new(&mechanism, Turn::ZERO)?,
            idle: Time((of.idle_ms * 1e6 + 0.5) as u64),
            cleaned: Time::ZERO,
        })
    }

    /// Applies a counterfactual assumption to the mechanism of the media cache.
    pub(super) fn suppose(&mut self, what_if: WhatIf) {
        self.cache = self.cache.clone().supposing(what_if);
    }
}

impl Disk {
    /// Returns the current position of a medium sector, in the media cache or in its band.
    pub(super) fn place_of(&self, sector: u64) -> Place {
        let mut found = None;
        if let Some(shingles) = &self.shingles {
            let one = extent(sector, sector + 1);
            shingles.map.pieces(one, |piece| found = Some(piece));
        }
        match found {
            Some(piece) => self.place_of_piece(&piece),
            None => self.mechanism.layout().locate(sector),
        }
    }

    fn place_of_piece(&self, piece: &Piece) -> Place {
        let shingles = self.shingles.as_ref().filter(|_| piece.cached);
        let layout = shingles.map_or(self.mechanism.layout(), |of| of.cache.layout());
        layout.locate(piece.first)
    }

    /// Reads sectors from the media cache or their bands. `run` is the position of the first
    /// sectors, and is required on a disk without shingled tracks.
    #[inline(always)]
    pub(super) fn read_medium(
        &mut self,
        begins: Time,
        access: &Access,
        run: Option<&Run>,
        tell: impl FnMut(Passing),
    ) -> Parts {
        let Some(shingles) = &self.shingles else {
            let run = run.expect("sectors that stay where they are");
            return self.mechanism.serve_from(begins, access, run, tell);
        };
        let of = extent(access.sector, access.sector + u64::from(access.sectors));
        let mut pieces = Vec::new();
        shingles.map.pieces(of, |piece| pieces.push(piece));
        self.serve_pieces(begins, access, &pieces, tell)
    }

    /// Writes sectors to the media cache or to their bands.
    pub(super) fn write_medium(&mut self, begins: Time, access: &Access) -> Parts {
        let Some(shingles) = &mut self.shingles else {
            return self.mechanism.serve(begins, access, |_| ());
        };
        let of = extent(access.sector, access.sector + u64::from(access.sectors));
        let mut pieces = Vec::new();
        shingles.map.write(of, &mut |piece| pieces.push(piece));
        self.serve_pieces(begins, access, &pieces, |_| ())
    }

    fn serve_pieces(
        &mut self,
        begins: Time,
        access: &Access,
        pieces: &[Piece],
        mut tell: impl FnMut(Passing),
    ) -> Parts {
        let mut parts = Parts::default();
        let last = pieces.len() - 1;
        for (number, piece) in pieces.iter().enumerate() {
            let access = Access {
                sector: piece.first,
                sectors: piece.sectors,
                overhead: match number {
                    0 => access.overhead,
                    _ => Time::ZERO,
                },
                part_of_first: access.part_of_first && number == 0,
                part_of_last: access.part_of_last && number == last,
                write: access.write,
            };
            parts += self.serve_piece(begins + parts.total(), piece.cached, &access, &mut tell);
        }
        parts
    }

    fn serve_piece(
        &mut self,
        begins: Time,
        cached: bool,
        access: &Access,
        tell: impl FnMut(Passing),
    ) -> Parts {
        let Some(shingles) = self.shingles.as_mut().filter(|_| cached) else {
            return self.mechanism.serve(begins, access, tell);
        };
        let cache = &mut shingles.cache;
        cache.set_spindle(*self.mechanism.spindle());
        cache.place_arm(self.mechanism.cylinder(), self.mechanism.head());
        let parts = cache.serve(begins, access, tell);
        self.mechanism.place_arm(cache.cylinder(), cache.head());
        // Where something is supposed of the two, it may have been turned.
        self.mechanism.set_spindle(*cache.spindle());
        parts
    }

    /// Drops discarded sectors from the media cache, as far as they fill whole medium sectors.
    pub(super) fn forget_shingled(&mut self, of: Extent) {
        let whole = extent(self.per_medium.up(of.first), self.per_medium.down(of.end));
        if let Some(shingles) = self.shingles.as_mut().filter(|_| whole.first < whole.end) {
            shingles.map.forget(whole);
        }
    }

    /// Tests whether the drive must clean a band before it writes these sectors of the medium.
    pub(super) fn must_clean(&self, (first, end): (u64, u64)) -> bool {
        let shingles = self.shingles.as_ref();
        shingles.is_some_and(|of| of.map.must_clean(extent(first, end)))
    }

    /// Returns the time at which the drive starts to clean if no command arrives; `None` if no
    /// cleaning is due.
    pub(super) fn cleans_at(&self) -> Option<Time> {
        let shingles = self.shingles.as_ref()?;
        let is_free = self.queue.is_empty() && self.ahead.is_none();
        (is_free && shingles.map.is_dirty()).then(|| self.still_since + shingles.idle)
    }

    /// Starts the next step of cleaning. `is_awaited` tells whether a write waits for it.
    pub(super) fn clean_now(&mut self, now: Time, is_awaited: bool) {
        let shingles = self.shingles.as_mut().expect("a disk with bands");
        shingles.map.set_full(is_awaited);
        let step = shingles.map.next_step();
        let access = Access {
            sector: step.piece.first,
            sectors: step.piece.sectors,
            write: step.write,
            ..Access::default()
        };
        let parts = self.serve_piece(now, step.piece.cached, &access, |_| ());
        self.book(parts);
        let place = |disk: &Self| disk.place_of_piece(&step.piece);
        self.works((ArmWork::Cleaning, now), (&access, place), (parts, false));
        self.last_passed = (u64::MAX, now);
        let takes = parts.total();
        self.begin_job(now + takes, Work::Clean { takes });
    }

    /// Ends a step of cleaning, and adds its duration to the total.
    pub(super) fn end_clean(&mut self, takes: Time) {
        let shingles = self.shingles.as_mut().expect("a disk with bands");
        shingles.map.step_done();
        shingles.cleaned += takes;
    }

    /// Returns the sector at which a read-ahead must stop: `limit`, or the first sector that the
    /// media cache holds elsewhere.
    pub(super) fn ahead_until(&self, from: u64, limit: u64) -> u64 {
        let shingles = self.shingles.as_ref();
        let cached = shingles.and_then(|of| of.map.first_cached(from));
        cached.map_or(limit, |cached| limit.min(cached))
    }

    /// Returns the fill level and traffic of the media cache; `None` without shingled tracks.
    pub fn media_cache(&self) -> Option<MediaCacheState> {
        let shingles = self.shingles.as_ref()?;
        let of = self.specification.shingled.as_ref()?;
        let bytes = u64::from(self.sector_bytes()) * self.per_medium.get();
        let counters = shingles.map.counters();
        Some(MediaCacheState {
            used_bytes: shingles.map.used_sectors() * bytes,
            room_bytes: of.cache_sectors * bytes,
            extents: shingles.map.extents() as u64,
            most_extents: of.map_extents.into(),
            cached_bytes: counters.cached_sectors * bytes,
            streamed_bytes: counters.streamed_sectors * bytes,
            cleaned_bytes: counters.cleaned_sectors * bytes,
            past_cache_bytes: counters.past_cache_sectors * bytes,
            bands_cleaned: counters.bands_cleaned,
            cleaning: shingles.cleaned,
        })
    }

    /// Returns the map of the media cache; `None` without shingled tracks.
    pub fn shingled(&self) -> Option<&Shingled> {
        self.shingles.as_ref().map(|of| &of.map)
    }
}
