//! Shingled tracks of a disk: reads in pieces, writes to the media cache, and the cleaning of bands
//! between commands.

use super::super::layout::SectorPosition;
use super::super::mechanism::{AccessTimes, PassingRun};
use super::super::shingled::{ShingleMap, ShingledPiece, ShingledSpecification};
use super::*;
use crate::disk::device::DiskError;
use diskperf_spans::ArmWork;

/// Fill level and traffic of the media cache of a shingled disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaCacheState {
    /// Bytes of the media cache in use, from the oldest extent of its log on.
    pub used_bytes: u64,
    /// Capacity of the media cache, in bytes.
    pub capacity_bytes: u64,
    /// Extents in the map of the media cache.
    pub extent_count: u64,
    /// Maximum number of extents in the map.
    pub extents_max: u64,
    /// Bytes written to the media cache.
    pub cached_bytes: u64,
    /// Bytes of sequential writes that went directly to their bands.
    pub streamed_bytes: u64,
    /// Bytes that the cleaning of bands has written.
    pub cleaned_bytes: u64,
    /// Bytes that hosts wrote while the media cache or its map was full.
    pub past_cache_bytes: u64,
    /// Number of bands that cleaning has rewritten.
    pub cleaned_band_count: u64,
    /// Total time that the arm spent on cleaning.
    pub cleaning_time: Time,
}

/// Media cache of a shingled disk, and a model of the arm on the cache's tracks. These tracks are
/// at the outer edge, and hosts do not see them.
#[derive(Clone, Debug)]
pub(super) struct ShingledMedia {
    pub(super) shingle_map: ShingleMap,
    /// Copy of the disk's mechanism that addresses the sectors of the media cache.
    pub(super) media_cache_mechanism: Mechanism,
    cleaning_idle_time: Time,
    /// Total time of cleaning so far.
    pub(super) cleaning_time: Time,
}

impl ShingledMedia {
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
        mechanism.layout.sector_count = Some(of.media_cache_sectors);
        Ok(Self {
            shingle_map: ShingleMap::new(*of, sectors),
            media_cache_mechanism: Mechanism::new(&mechanism, RotationAngle::ZERO)?,
            cleaning_idle_time: Time((of.cleaning_idle_ms * 1e6 + 0.5) as u64),
            cleaning_time: Time::ZERO,
        })
    }

    /// Applies a counterfactual assumption to the mechanism of the media cache.
    pub(super) fn set_what_if(&mut self, what_if: WhatIf) {
        self.media_cache_mechanism = self.media_cache_mechanism.clone().with_what_if(what_if);
    }
}

impl Disk {
    /// Returns the current position of a medium sector, in the media cache or in its band.
    pub(super) fn locate_sector(&self, sector: u64) -> SectorPosition {
        let mut found = None;
        if let Some(shingles) = &self.shingles {
            let one = sector_extent(sector, sector + 1);
            shingles
                .shingle_map
                .split_into_pieces(one, |piece| found = Some(piece));
        }
        match found {
            Some(piece) => self.locate_piece(&piece),
            None => self.mechanism.layout().position_of(sector),
        }
    }

    fn locate_piece(&self, piece: &ShingledPiece) -> SectorPosition {
        let shingles = self.shingles.as_ref().filter(|_| piece.is_cached);
        let layout = shingles.map_or(self.mechanism.layout(), |of| {
            of.media_cache_mechanism.layout()
        });
        layout.position_of(piece.first_sector)
    }

    /// Reads sectors from the media cache or their bands. `run` is the position of the first
    /// sectors, and is required on a disk without shingled tracks.
    #[inline(always)]
    pub(super) fn read_medium(
        &mut self,
        begins: Time,
        access: &MediaAccess,
        run: Option<&SectorRun>,
        tell: impl FnMut(PassingRun),
    ) -> AccessTimes {
        let Some(shingles) = &self.shingles else {
            let run = run.expect("sectors that stay where they are");
            return self.mechanism.access_media_at(begins, access, run, tell);
        };
        let of = sector_extent(
            access.first_sector,
            access.first_sector + u64::from(access.sector_count),
        );
        let mut pieces = Vec::new();
        shingles
            .shingle_map
            .split_into_pieces(of, |piece| pieces.push(piece));
        self.access_pieces(begins, access, &pieces, tell)
    }

    /// Writes sectors to the media cache or to their bands.
    pub(super) fn write_medium(&mut self, begins: Time, access: &MediaAccess) -> AccessTimes {
        let Some(shingles) = &mut self.shingles else {
            return self.mechanism.access_media(begins, access, |_| ());
        };
        let of = sector_extent(
            access.first_sector,
            access.first_sector + u64::from(access.sector_count),
        );
        let mut pieces = Vec::new();
        shingles
            .shingle_map
            .write_extent(of, &mut |piece| pieces.push(piece));
        self.access_pieces(begins, access, &pieces, |_| ())
    }

    fn access_pieces(
        &mut self,
        begins: Time,
        access: &MediaAccess,
        pieces: &[ShingledPiece],
        mut tell: impl FnMut(PassingRun),
    ) -> AccessTimes {
        let mut parts = AccessTimes::default();
        let last = pieces.len() - 1;
        for (number, piece) in pieces.iter().enumerate() {
            let access = MediaAccess {
                first_sector: piece.first_sector,
                sector_count: piece.sector_count,
                overhead: match number {
                    0 => access.overhead,
                    _ => Time::ZERO,
                },
                is_first_partial: access.is_first_partial && number == 0,
                is_last_partial: access.is_last_partial && number == last,
                is_write: access.is_write,
            };
            parts += self.access_piece(begins + parts.total(), piece.is_cached, &access, &mut tell);
        }
        parts
    }

    fn access_piece(
        &mut self,
        begins: Time,
        cached: bool,
        access: &MediaAccess,
        tell: impl FnMut(PassingRun),
    ) -> AccessTimes {
        let Some(shingles) = self.shingles.as_mut().filter(|_| cached) else {
            return self.mechanism.access_media(begins, access, tell);
        };
        let cache = &mut shingles.media_cache_mechanism;
        cache.set_spindle(*self.mechanism.spindle());
        cache.place_arm(self.mechanism.arm_cylinder(), self.mechanism.arm_head());
        let parts = cache.access_media(begins, access, tell);
        self.mechanism
            .place_arm(cache.arm_cylinder(), cache.arm_head());
        // Where something is supposed of the two, it may have been turned.
        self.mechanism.set_spindle(*cache.spindle());
        parts
    }

    /// Drops discarded sectors from the media cache, as far as they fill whole medium sectors.
    pub(super) fn discard_shingled(&mut self, of: SectorExtent) {
        let whole = sector_extent(
            self.medium_sectors.round_up(of.first_sector),
            self.medium_sectors.round_down(of.end_sector),
        );
        if let Some(shingles) = self
            .shingles
            .as_mut()
            .filter(|_| whole.first_sector < whole.end_sector)
        {
            shingles.shingle_map.discard(whole);
        }
    }

    /// Tests whether the drive must clean a band before it writes these sectors of the medium.
    pub(super) fn must_clean_before_write(&self, (first, end): (u64, u64)) -> bool {
        let shingles = self.shingles.as_ref();
        shingles.is_some_and(|of| {
            of.shingle_map
                .must_clean_before_write(sector_extent(first, end))
        })
    }

    /// Returns the time at which the drive starts to clean if no command arrives; `None` if no
    /// cleaning is due.
    pub(super) fn cleaning_due_time(&self) -> Option<Time> {
        let shingles = self.shingles.as_ref()?;
        let is_free = self.queued_views.is_empty() && self.read_ahead.is_none();
        (is_free && shingles.shingle_map.has_cached_extents())
            .then(|| self.idle_since + shingles.cleaning_idle_time)
    }

    /// Starts the next step of cleaning. `is_awaited` tells whether a write waits for it.
    pub(super) fn start_cleaning(&mut self, now: Time, is_awaited: bool) {
        let shingles = self.shingles.as_mut().expect("a disk with bands");
        shingles.shingle_map.set_always_full(is_awaited);
        let step = shingles.shingle_map.next_cleaning_step();
        let access = MediaAccess {
            first_sector: step.piece.first_sector,
            sector_count: step.piece.sector_count,
            is_write: step.is_write,
            ..MediaAccess::default()
        };
        let parts = self.access_piece(now, step.piece.is_cached, &access, |_| ());
        self.add_busy_times(parts);
        let place = |disk: &Self| disk.locate_piece(&step.piece);
        self.begin_background_work((ArmWork::Cleaning, now), (&access, place), (parts, false));
        self.last_transfer = (u64::MAX, now);
        let takes = parts.total();
        self.begin_media_job(now + takes, MediaWork::Clean { takes });
    }

    /// Ends a step of cleaning, and adds its duration to the total.
    pub(super) fn end_cleaning(&mut self, takes: Time) {
        let shingles = self.shingles.as_mut().expect("a disk with bands");
        shingles.shingle_map.complete_cleaning_step();
        shingles.cleaning_time += takes;
    }

    /// Returns the sector at which a read-ahead must stop: `limit`, or the first sector that the
    /// media cache holds elsewhere.
    pub(super) fn shingled_read_ahead_end(&self, from: u64, limit: u64) -> u64 {
        let shingles = self.shingles.as_ref();
        let cached = shingles.and_then(|of| of.shingle_map.next_cached_sector(from));
        cached.map_or(limit, |cached| limit.min(cached))
    }

    /// Returns the fill level and traffic of the media cache; `None` without shingled tracks.
    pub fn media_cache_state(&self) -> Option<MediaCacheState> {
        let shingles = self.shingles.as_ref()?;
        let of = self.specification.shingled.as_ref()?;
        let bytes =
            u64::from(self.sector_bytes()) * self.medium_sectors.sectors_per_medium_sector();
        let counters = shingles.shingle_map.counters();
        Some(MediaCacheState {
            used_bytes: shingles.shingle_map.used_sectors() * bytes,
            capacity_bytes: of.media_cache_sectors * bytes,
            extent_count: shingles.shingle_map.extent_count() as u64,
            extents_max: of.map_extents_max.into(),
            cached_bytes: counters.cached_sectors * bytes,
            streamed_bytes: counters.streamed_sectors * bytes,
            cleaned_bytes: counters.cleaned_sectors * bytes,
            past_cache_bytes: counters.past_cache_sectors * bytes,
            cleaned_band_count: counters.cleaned_band_count,
            cleaning_time: shingles.cleaning_time,
        })
    }

    /// Returns the map of the media cache; `None` without shingled tracks.
    pub fn shingle_map(&self) -> Option<&ShingleMap> {
        self.shingles.as_ref().map(|of| &of.shingle_map)
    }
}
