//! A drive as its files have it: what is replayed beside the fitted one.

use crate::affine::Affine;
use crate::angles::Angles;
use crate::arrival::Arrival;
use crate::cache::{CacheRule, Extent, OnWrite};
use crate::model::{ArmRule, Model};
use diskperf_diskspecs::{AfterMs, Drive, FastWrite, Firmware, ReadAhead};

/// A drive as its files have it, with the period that a trace shows.
pub(crate) fn model(drive: &Drive, period_us: f64) -> Model<'_> {
    let firmware = drive.firmware.unwrap_or_default();
    let crossing_us = drive.read_sector_ms() * 1e3;
    let us = |ms: f64| ms * firmware.overhead_scale * 1e3;
    let per_request_us = us(firmware.per_request_ms);
    let lines = |over: AfterMs, end_ms: f64| {
        let line = |ms: f64| Affine {
            fixed_us: per_request_us + us(ms) + us(end_ms),
            block_us: crossing_us,
        };
        [over.read, over.write, over.read, over.write, over.read].map(line)
    };
    let arrival = |over: AfterMs| {
        let mut arrival = Arrival::default();
        arrival.weights_us[0] = per_request_us + us(over.read);
        arrival.weights_us[1] = us(over.write) - us(over.read);
        arrival
    };
    let is_write_through = firmware.cache.fast_write == FastWrite::None;
    Model {
        drive,
        period_us,
        crossing_us,
        angles: Angles::Filed,
        write_end_us: us(firmware.write_completion_ms) - us(firmware.read_completion_ms),
        is_write_through,
        held: lines(firmware.read_hit, firmware.read_completion_ms),
        early: lines(firmware.write_hit, firmware.write_completion_ms),
        cache: cache(&firmware),
        arm: ArmRule {
            follows_read_ahead: true,
            follows_writes: true,
        },
        read_arrival: arrival(firmware.read_miss),
        write_arrival: arrival(firmware.write_miss),
    }
}

fn cache(firmware: &Firmware) -> CacheRule {
    let cache = &firmware.cache;
    let limit = match cache.read_ahead_most_blocks {
        0 => cache.segment_blocks,
        most => most,
    };
    let extent = match cache.read_ahead {
        ReadAhead::None => Extent::Ahead(0),
        ReadAhead::Track => Extent::Tracks { and_next: false },
        ReadAhead::NextTrack => Extent::Tracks { and_next: true },
        ReadAhead::Cylinder | ReadAhead::Segment => Extent::Ahead(limit),
    };
    CacheRule {
        segments: if cache.is_enabled { cache.segments } else { 0 },
        extent,
        keeps_behind: true,
        on_write: OnWrite::Overlapping,
        keeps_written: cache.read_hits_written,
        only_contiguous: false,
        goes_on: cache.read_ahead_on_idle_hit,
    }
}
