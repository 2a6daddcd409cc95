//! Fit of the read and write cache rules.

use super::*;

/// Window as a part of a revolution, and the share of writes in such a window that proves that they
/// do not wait for the platter. The times of waiting writes are spread evenly over a revolution.
const EARLY_WRITE_WINDOW_REV: f64 = 0.25;
const EARLY_WRITE_SHARE_MIN: f64 = 0.5;

impl FitState<'_> {
    /// Determines whether the disk completes writes before they are on the medium. Times of writes
    /// that wait for the platter spread over at least a revolution.
    pub(super) fn fit_write_cache(&mut self) {
        let writes = self.requests.iter();
        let writes = writes.filter(|one| one.request.operation == ValidationOperation::Write);
        let mut times_us: Vec<f64> = writes.map(|write| self.time_to_sector_us(write)).collect();
        if times_us.is_empty() {
            return;
        }
        times_us.sort_by(f64::total_cmp);
        let window_us = EARLY_WRITE_WINDOW_REV * self.period_us();
        let within = |(index, from_us): (usize, &f64)| {
            times_us.partition_point(|time_us| *time_us <= from_us + window_us) - index
        };
        let within = times_us.iter().enumerate().map(within).max().unwrap_or(0);
        let is_early = within as f64 > EARLY_WRITE_SHARE_MIN * times_us.len() as f64;
        match (&mut self.disk.write_cache, is_early) {
            (Some(cache), true) => cache.accepts_appends_only = false,
            (cache @ None, true) => {
                let room = self.disk.read_cache.segment_sectors.max(1);
                *cache = Some(WriteCacheSpecification {
                    sectors_max: room.into(),
                    extents_max: 1,
                    high_water_share: 0.0,
                    destage_idle_ms: 0.0,
                    destage_sectors_max: room,
                    serves_reads: true,
                    accepts_appends_only: false,
                    holds_destaged_extent: true,
                    repeats_overhead_after_wait: false,
                });
            }
            (cache, false) => *cache = None,
        }
        self.add_chosen_parameter("cache.early_writes", is_early);
    }

    pub(super) fn fit_cache(&mut self) {
        let layout = &self.disk.mechanism.layout;
        let zones = layout.zones.iter().map(|zone| zone.sectors_per_track);
        let extents = layout.extents.iter().map(|of| of.sectors_per_track);
        let track = zones.chain(extents).max().unwrap_or(1);
        let is_fast = |placed: &LocatedRequest| self.is_fast(placed);
        let judge = ReadCacheSearch {
            disk: &self.disk,
            placed: self.requests,
            think: self.input.think_position,
            is_fast: &is_fast,
        };
        let chosen = judge.best_rule(&self.input.specified_disk.read_cache, track);
        self.parameters.extend(cache_parameters(&chosen));
        self.disk.read_cache = chosen.read_cache;
    }

    /// Determines whether a read uses the part of its sectors that is in the buffer.
    pub(super) fn choose_partial_hits(&mut self) {
        let mut other = self.disk.clone();
        other.read_cache.uses_partial_hits ^= true;
        self.choose_disk(vec![other]);
        let uses = self.disk.read_cache.uses_partial_hits;
        self.add_chosen_parameter("cache.uses_partial_hits", uses);
    }

    /// Determines how many extents of writes the buffer accepts before a write must wait, whether
    /// one that is being destaged counts, and when the overhead of a write that waits elapses.
    pub(super) fn fit_write_buffer(&mut self) {
        const WRITE_EXTENTS: [u32; 4] = [1, 2, 4, 16];
        let Some(filed) = self.disk.write_cache.clone() else {
            return;
        };
        let mut disks = Vec::new();
        for extents in WRITE_EXTENTS {
            let room = u64::from(extents) * u64::from(filed.destage_sectors_max);
            for (holds, repeats) in [(true, false), (true, true), (false, false), (false, true)] {
                let mut disk = self.disk.clone();
                if repeats {
                    // A wait for the arm is no part of the overhead.
                    disk.overheads.write_ms.reading_ahead_ms = None;
                }
                disk.write_cache = Some(WriteCacheSpecification {
                    extents_max: extents,
                    sectors_max: room.max(filed.sectors_max),
                    holds_destaged_extent: holds,
                    repeats_overhead_after_wait: repeats,
                    ..filed.clone()
                });
                disks.push(disk);
            }
        }
        self.choose_disk(disks);
        let chosen = self.disk.write_cache.as_ref();
        let Some(chosen) = chosen.cloned() else {
            return;
        };
        self.add_chosen_parameter("cache.write_extents", chosen.extents_max);
        self.add_chosen_parameter("cache.holds_destaged", chosen.holds_destaged_extent);
        self.add_chosen_parameter(
            "cache.overhead_after_wait",
            chosen.repeats_overhead_after_wait,
        );
    }
}

fn cache_parameters(chosen: &ChosenReadCache) -> Vec<FittedParameter> {
    let rule = &chosen.read_cache;
    let exact = |name: &str, value: f64| FittedParameter::exact(format!("cache.{name}"), value);
    let flag = |name: &str, value: bool| exact(name, f64::from(value));
    let mut all = vec![
        exact("segments", rule.segments.into()),
        flag(
            "keeps_behind",
            rule.keep_after_read == KeepAfterRead::WholeSegment,
        ),
        flag(
            "write_clears_all",
            rule.keep_after_write == KeepAfterWrite::DropsAll,
        ),
        flag("keeps_written", rule.keeps_written_sectors),
        flag(
            "only_contiguous",
            rule.read_ahead_trigger == ReadAheadTrigger::SequentialRead,
        ),
        flag("goes_on", rule.resumes_after_hit),
        flag("keeps_passing", rule.keeps_passing_sectors),
        flag("joins_unread", rule.joins_unread_sectors),
    ];
    let (tracks, cylinders, is_limited) = match rule.read_ahead_scope {
        ReadAheadScope::None | ReadAheadScope::Limit => (None, None, true),
        ReadAheadScope::TrackEnd => (Some(0.0), None, true),
        ReadAheadScope::CylinderEnd => (None, Some(1.0), true),
        ReadAheadScope::WholeTrack => (Some(1.0), None, false),
        ReadAheadScope::NextTrackEnd => (Some(2.0), None, false),
    };
    all.extend(tracks.map(|tracks| exact("tracks", tracks)));
    all.extend(cylinders.map(|cylinders| exact("cylinders", cylinders)));
    let blocks = match rule.read_ahead_scope {
        ReadAheadScope::None => 0,
        _ => rule.read_ahead_sectors_max.unwrap_or(0),
    };
    if is_limited {
        let ends = (chosen.limits.0.into(), chosen.limits.1.into());
        all.push(FittedParameter::with_interval(
            "cache.read_ahead_blocks",
            blocks.into(),
            ends,
        ));
    }
    all
}
