//! Catalogue layer with the fitted parameters, over the disk that the drive's files describe.

use crate::entry::{EntryWriter, ZONE_COLUMNS};
use diskperf_device::disk::cache::{
    KeepAfterRead, KeepAfterWrite, ReadAheadScope, ReadAheadTrigger, ReadCacheSpecification,
};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::layout::ZoneSpecification;
use diskperf_device::disk::link::ReadDelivery;
use diskperf_device::disk::overheads::OverheadByState;
use diskperf_device::disk::seek::SeekSpecification;

/// Returns the keys in which `fitted` differs from `filed`, as a layer over the entry `name` of the
/// latter.
pub fn render_layer(
    (filed, fitted): (&DiskSpecification, &DiskSpecification),
    name: &str,
    source: &str,
) -> String {
    let description = format!("{name}, with what its trace shows of it.");
    let mut layer = LayerWriter {
        entry: EntryWriter::new_layer(name, &description, source),
    };
    layer.write_mechanism(filed, fitted);
    layer.write_firmware(filed, fitted);
    layer.write_link(filed, fitted);
    layer.write_read_cache(&filed.read_cache, &fitted.read_cache, fitted);
    layer.write_write_cache(filed, fitted);
    layer.entry.into_text()
}

struct LayerWriter {
    entry: EntryWriter,
}

impl LayerWriter {
    fn write_number(&mut self, key: &str, filed: f64, fitted: f64) {
        if filed != fitted {
            self.entry.write_number(key, fitted);
        }
    }

    fn write_optional(&mut self, key: &str, filed: Option<f64>, fitted: Option<f64>) {
        if let Some(value) = fitted.filter(|_| filed != fitted) {
            self.entry.write_number(key, value);
        }
    }

    fn write_integer(&mut self, key: &str, filed: u64, fitted: u64) {
        if filed != fitted {
            self.entry.write_integer(key, fitted);
        }
    }

    fn write_flag(&mut self, key: &str, filed: bool, fitted: bool) {
        if filed != fitted {
            self.entry.write_flag(key, fitted);
        }
    }

    fn write_mechanism(&mut self, filed: &DiskSpecification, fitted: &DiskSpecification) {
        let (old, new) = (&filed.mechanism, &fitted.mechanism);
        if old.period_ns != new.period_ns {
            self.entry.write_number("spindle_rpm", 60e9 / new.period_ns);
        }
        if old.layout.zones != new.layout.zones {
            let rows: Vec<Vec<f64>> = new.layout.zones.iter().map(zone_row).collect();
            self.entry.write_rows("zone_table", ZONE_COLUMNS, &rows);
        }
        self.write_number("head_switch_ms", old.head_switch_ms, new.head_switch_ms);
        self.write_number("write_settle_ms", old.write_settle_ms, new.write_settle_ms);
        for (at, [inward, same_track]) in [
            ["seek_inward_ms", "same_track_ms"],
            ["write_seek_inward_ms", "write_same_track_ms"],
        ]
        .into_iter()
        .enumerate()
        {
            self.write_number(inward, old.inward_ms[at], new.inward_ms[at]);
            self.write_number(same_track, old.same_track_ms[at], new.same_track_ms[at]);
        }
        if old.seek != new.seek {
            self.write_seeks("seek_table", &new.seek);
        }
        if let Some(seek) = new
            .write_seek
            .as_ref()
            .filter(|_| old.write_seek != new.write_seek)
        {
            self.write_seeks("write_seek_table", seek);
        }
        self.write_flag(
            "zero_latency_reads",
            old.zero_latency_reads,
            new.zero_latency_reads,
        );
        self.write_flag(
            "zero_latency_writes",
            old.zero_latency_writes,
            new.zero_latency_writes,
        );
    }

    fn write_seeks(&mut self, key: &str, seek: &SeekSpecification) {
        // What is fitted is a table.
        if let SeekSpecification::Table { points } = seek {
            let row = |(cylinders, ms): &(u32, f64)| vec![f64::from(*cylinders), *ms];
            let rows: Vec<Vec<f64>> = points.iter().map(row).collect();
            self.entry.write_rows(key, "cylinders, ms", &rows);
        }
    }

    fn write_firmware(&mut self, filed: &DiskSpecification, fitted: &DiskSpecification) {
        let (old, new) = (&filed.overheads, &fitted.overheads);
        for (kind, old, new) in [
            ("read_hit", &old.read_hit_ms, &new.read_hit_ms),
            ("read_miss", &old.read_miss_ms, &new.read_miss_ms),
            ("write", &old.write_ms, &new.write_ms),
        ] {
            self.write_overheads(kind, old, new);
        }
        for (key, old, new) in [
            ("write_sector_ms", old.write_sector_ms, new.write_sector_ms),
            (
                "read_completion_ms",
                old.read_completion_ms,
                new.read_completion_ms,
            ),
            (
                "write_completion_ms",
                old.write_completion_ms,
                new.write_completion_ms,
            ),
        ] {
            self.write_number(key, old, new);
        }
    }

    fn write_overheads(&mut self, kind: &str, old: &OverheadByState, new: &OverheadByState) {
        let key = |circumstances: &str| format!("{kind}{circumstances}_ms");
        self.write_number(&key(""), old.after_read_ms, new.after_read_ms);
        let after_write = key("_after_write");
        self.write_number(&after_write, old.after_write_ms, new.after_write_ms);
        self.write_optional(&key("_sequential"), old.sequential_ms, new.sequential_ms);
        let reading_ahead = key("_reading_ahead");
        self.write_optional(&reading_ahead, old.reading_ahead_ms, new.reading_ahead_ms);
    }

    fn write_link(&mut self, filed: &DiskSpecification, fitted: &DiskSpecification) {
        let (old, new) = (&filed.link, &fitted.link);
        let write = |rate: Option<f64>| rate.unwrap_or(0.0) as u64;
        for (key, old, new) in [
            (
                "link_bytes_per_s",
                old.bytes_per_s as u64,
                new.bytes_per_s as u64,
            ),
            (
                "link_write_bytes_per_s",
                write(old.write_bytes_per_s),
                write(new.write_bytes_per_s),
            ),
        ] {
            self.write_integer(key, old, new);
        }
        self.write_number("link_overhead_ms", old.overhead_ms, new.overhead_ms);
        self.write_number("link_reconnect_ms", old.reconnect_ms, new.reconnect_ms);
        if let ReadDelivery::Reconnected { share } = new.read_delivery
            && old.read_delivery != new.read_delivery
        {
            self.entry.write_number("link_read_share", share);
        }
    }

    fn write_read_cache(
        &mut self,
        old: &ReadCacheSpecification,
        new: &ReadCacheSpecification,
        disk: &DiskSpecification,
    ) {
        let bytes = |sectors: u32| u64::from(sectors) * disk.medium_sector_bytes();
        self.write_integer("cache_segments", old.segments.into(), new.segments.into());
        let segment = bytes(new.segment_sectors);
        self.write_integer("segment_bytes", bytes(old.segment_sectors), segment);
        if old.read_ahead_scope != new.read_ahead_scope {
            self.entry.write_word(
                "read_ahead",
                match new.read_ahead_scope {
                    ReadAheadScope::None => "none",
                    ReadAheadScope::TrackEnd => "track_end",
                    ReadAheadScope::WholeTrack => "whole_track",
                    ReadAheadScope::CylinderEnd => "cylinder_end",
                    ReadAheadScope::Limit => "limit",
                    ReadAheadScope::NextTrackEnd => "next_track_end",
                },
            );
        }
        if old.limit_reference != new.limit_reference {
            // The fit counts from the end.
            self.entry.write_word("read_ahead_from", "request_end");
        }
        let most = |of: &ReadCacheSpecification| bytes(of.read_ahead_sectors_max.unwrap_or(0));
        self.write_integer("read_ahead_bytes", most(old), most(new));
        if old.read_ahead_trigger != new.read_ahead_trigger {
            let after = match new.read_ahead_trigger {
                ReadAheadTrigger::AnyRead => "any_read",
                ReadAheadTrigger::SequentialRead => "sequential_read",
            };
            self.entry.write_word("read_ahead_after", after);
        }
        if old.keep_after_read != new.keep_after_read {
            let left = match new.keep_after_read {
                KeepAfterRead::WholeSegment => "all",
                KeepAfterRead::ReadAheadOnly => "ahead",
            };
            self.entry.write_word("segment_after_read", left);
        }
        if old.keep_after_write != new.keep_after_write {
            let what = match new.keep_after_write {
                KeepAfterWrite::DropsOverlapping => "drops_overlapping",
                KeepAfterWrite::DropsAll => "drops_all",
                KeepAfterWrite::Updates => "updates",
            };
            self.entry.write_word("segment_after_write", what);
        }
        for (key, old, new) in [
            (
                "keep_passing_sectors",
                old.keeps_passing_sectors,
                new.keeps_passing_sectors,
            ),
            (
                "read_ahead_after_hit",
                old.resumes_after_hit,
                new.resumes_after_hit,
            ),
            (
                "use_partial_hits",
                old.uses_partial_hits,
                new.uses_partial_hits,
            ),
            (
                "join_unread_sectors",
                old.joins_unread_sectors,
                new.joins_unread_sectors,
            ),
            (
                "keep_written",
                old.keeps_written_sectors,
                new.keeps_written_sectors,
            ),
        ] {
            self.write_flag(key, old, new);
        }
    }

    fn write_write_cache(&mut self, filed: &DiskSpecification, fitted: &DiskSpecification) {
        let (old, new) = (&filed.write_cache, &fitted.write_cache);
        self.write_flag("write_cache", old.is_some(), new.is_some());
        let Some(new) = new else { return };
        let bytes = |sectors: u64| sectors * u64::from(fitted.sector_bytes);
        let old = old.as_ref();
        for (key, old, new) in [
            (
                "write_cache_bytes",
                old.map(|of| bytes(of.sectors_max)),
                bytes(new.sectors_max),
            ),
            (
                "write_cache_extents",
                old.map(|of| of.extents_max.into()),
                new.extents_max.into(),
            ),
            (
                "destage_bytes",
                old.map(|of| bytes(of.destage_sectors_max.into())),
                bytes(new.destage_sectors_max.into()),
            ),
        ] {
            if old != Some(new) {
                self.entry.write_integer(key, new);
            }
        }
        for (key, old, new) in [
            (
                "write_cache_appending_only",
                old.map(|of| of.accepts_appends_only),
                new.accepts_appends_only,
            ),
            (
                "write_cache_holds_destaged",
                old.map(|of| of.holds_destaged_extent),
                new.holds_destaged_extent,
            ),
            (
                "write_cache_overhead_after_wait",
                old.map(|of| of.repeats_overhead_after_wait),
                new.repeats_overhead_after_wait,
            ),
        ] {
            if old != Some(new) {
                self.entry.write_flag(key, new);
            }
        }
    }
}

fn zone_row(zone: &ZoneSpecification) -> Vec<f64> {
    vec![
        f64::from(zone.first_cylinder),
        f64::from(zone.last_cylinder),
        f64::from(zone.sectors_per_track),
        zone.origin_rev,
        zone.track_skew_rev,
        zone.cylinder_skew_rev,
        zone.range_skew_rev,
        zone.dead_sectors as f64,
        zone.spare_sectors as f64,
    ]
}
