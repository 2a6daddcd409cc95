//! A disk with firmware, a buffer and a link, as the catalogue describes it: by what a
//! data sheet prints, and what is derived from that.

use super::LONGEST_MS;
use super::drive::{DeviceSpecification, DriveSpecification, PartitionSpecification};
use crate::catalogue::Reader;
use crate::hardware::disk::cache::{
    AfterRead, AfterWrite, LimitFrom, ReadAhead, ReadAheadAfter, ReadCacheSpecification,
    WriteCacheSpecification,
};
use crate::hardware::disk::device::{Disk, DiskSpecification, FlushOrder};
use crate::hardware::disk::layout::{DataSheet, LayoutSpecification};
use crate::hardware::disk::link::{Delivery, LinkSpecification};
use crate::hardware::disk::mechanism::MechanismSpecification;
use crate::hardware::disk::overheads::{After, OverheadSpecification};
use crate::hardware::disk::queue::{Distance, Policy, QueueSpecification};
use crate::hardware::disk::seek::SeekSpecification;
use crate::hardware::disk::spindle::Turn;
use crate::kernel::ffs;

/// What the label of a disk says whose tracks its firmware hides.
const LABEL_TRACK_SECTORS: u32 = 63;
const LABEL_TRACKS: u32 = 255;

/// Reads the disk.
pub(super) fn read(reader: &mut Reader<'_>) -> DriveSpecification {
    let sector_bytes = reader.integer(
        "sector_bytes",
        512..=65_536,
        "bytes in a sector, as the host counts them",
    ) as u32;
    let medium_bytes = reader.integer(
        "medium_sector_bytes",
        512..=65_536,
        "bytes in a sector of the medium: what a write does not fill is read first",
    ) as u32;
    if !medium_bytes.is_multiple_of(sector_bytes) {
        let allowed = "a multiple of sector_bytes";
        reader.fail_allowing("medium_sector_bytes", "sectors do not fit into it", allowed);
    }
    let per_medium = (medium_bytes / sector_bytes).max(1);
    let mechanism = read_mechanism(reader, medium_bytes);
    let queue = read_queue(reader);
    let queue_depth = reader.integer("queue_depth", 1..=65_536, "commands that it takes at once");
    let specification = DiskSpecification {
        mechanism,
        sector_bytes,
        sectors_per_medium_sector: per_medium,
        queue_depth: queue_depth as u32,
        queue,
        overheads: read_overheads(reader),
        link: read_link(reader),
        read_cache: read_read_cache(reader, medium_bytes),
        write_cache: read_write_cache(reader, sector_bytes),
        flush: reader.choice(
            "flush",
            &[
                ("drains", FlushOrder::Drains),
                ("queues", FlushOrder::Queues),
            ],
            "whether a flush waits until no other command is under way, or is one among them",
        ),
    };
    let sectors = match Disk::new(&specification, Turn::ZERO) {
        Ok(disk) => disk.sectors(),
        Err(error) => {
            reader.fail("capacity_bytes", &error.to_string());
            1
        }
    };
    if sectors > u64::from(u32::MAX) {
        let allowed = "larger: up to 2^32 - 1 of them are counted";
        reader.fail_allowing("sector_bytes", "the disk has too many sectors", allowed);
    }
    let revolutions_per_second = 1e9 / specification.mechanism.period_ns;
    DriveSpecification {
        device: DeviceSpecification::Disk(Box::new(specification)),
        driver_type: String::new(),
        partitions: vec![PartitionSpecification {
            first_sector: 0,
            label: ffs::Geometry {
                sector_bytes,
                sectors_per_track: LABEL_TRACK_SECTORS,
                tracks_per_cylinder: LABEL_TRACKS,
                partition_sectors: u32::try_from(sectors).unwrap_or(u32::MAX),
                revolutions_per_second: revolutions_per_second as u32,
            },
        }],
    }
}

fn read_mechanism(reader: &mut Reader<'_>, medium_bytes: u32) -> MechanismSpecification {
    let layout = read_layout(reader, medium_bytes);
    let mut time = |key, doc| reader.milliseconds(key, 0.0..=LONGEST_MS, doc) as f64 / 1e6;
    let seek = SeekSpecification::ThreePoints {
        single_cylinder_ms: time("seek_minimum_ms", "from a track to the next, for reads"),
        average_ms: time(
            "seek_average_ms",
            "mean over all pairs of tracks, for reads",
        ),
        full_stroke_ms: time("seek_maximum_ms", "over the full stroke, for reads"),
    };
    let head_switch_ms = time("head_switch_ms", "another head taking over");
    let write_settle_ms = time("write_settle_ms", "what a write waits longer than a read");
    let rpm = reader.number("spindle_rpm", 60.0..=30_000.0, "revolutions per minute");
    MechanismSpecification {
        layout,
        seek,
        head_switch_ms,
        write_settle_ms,
        period_ns: 60e9 / rpm,
        zero_latency_reads: reader.flag(
            "zero_latency_reads",
            "whether a read begins anywhere inside its sectors of a track",
        ),
        zero_latency_writes: reader.flag(
            "zero_latency_writes",
            "whether a write begins anywhere inside its sectors of a track",
        ),
    }
}

/// Zones and skews from the data sheet.
fn read_layout(reader: &mut Reader<'_>, medium_bytes: u32) -> LayoutSpecification {
    let sheet = DataSheet {
        capacity_bytes: reader.integer(
            "capacity_bytes",
            1_000_000..=1_000_000_000_000_000,
            "what hosts see",
        ),
        sector_bytes: medium_bytes,
        heads: reader.integer("heads", 1..=256, "heads, each of a surface") as u32,
        outer_track_bytes: reader.number(
            "outer_track_bytes",
            512.0..=1e9,
            "data on the outermost track",
        ),
        inner_to_outer: reader.number(
            "inner_rate_share",
            0.05..=1.0,
            "the rate of the innermost track, as a share of the outermost one's",
        ),
        zones: reader.integer("recording_zones", 1..=1000, "zones, of as many tracks each") as u32,
        tracks_per_band: reader.integer(
            "tracks_per_band",
            1..=1_000_000,
            "neighbouring tracks of a surface before the head changes",
        ) as u32,
        track_skew_rev: reader.number(
            "track_skew_share",
            0.0..=0.999,
            "how much later a track begins than the one before it, as a share of a revolution",
        ),
        head_skew_rev: reader.number(
            "head_skew_share",
            0.0..=0.999,
            "the same across a change of the head",
        ),
    };
    match sheet.layout() {
        Ok(layout) => layout,
        Err(error) => {
            reader.fail("capacity_bytes", &error.to_string());
            DataSheet {
                capacity_bytes: 4096,
                ..sheet
            }
            .layout()
            .unwrap_or_else(|_| one_sector())
        }
    }
}

/// What stands in for a layout that cannot be.
fn one_sector() -> LayoutSpecification {
    LayoutSpecification {
        surfaces: 1,
        cylinders: 1,
        order: Default::default(),
        sparing: Default::default(),
        zones: vec![crate::hardware::disk::layout::ZoneSpecification {
            sectors_per_track: 1,
            ..Default::default()
        }],
        sectors: None,
    }
}

fn read_queue(reader: &mut Reader<'_>) -> QueueSpecification {
    let policies = [
        ("fcfs", Order::Plain(Policy::Fcfs)),
        ("sstf", Order::Plain(Policy::Sstf)),
        ("look", Order::Plain(Policy::Look)),
        ("c_look", Order::Plain(Policy::CLook)),
        ("v_scan", Order::VScan),
        ("sptf", Order::Plain(Policy::Sptf)),
        ("aged_sptf", Order::AgedSptf),
    ];
    let order = reader.choice(
        "queue_policy",
        &policies,
        "which command the arm goes to next",
    );
    let share = reader.optional_number(
        V_SCAN_SHARE,
        0.0..=1.0,
        "with v_scan, the share of the stroke that is added against the arm's direction",
    );
    let ms_per_s = reader.optional_number(
        AGED_SPTF_MS_PER_S,
        0.0..=1e9,
        "with aged_sptf, what each second of waiting is worth, in ms of positioning",
    );
    let policy = match (order, share, ms_per_s) {
        (Order::Plain(policy), None, None) => policy,
        (Order::VScan, Some(share), None) => Policy::VScan { share },
        (Order::AgedSptf, None, Some(ms_per_s)) => Policy::AgedSptf { ms_per_s },
        (Order::VScan, None, _) => lacking(reader, V_SCAN_SHARE),
        (Order::AgedSptf, _, None) => lacking(reader, AGED_SPTF_MS_PER_S),
        (Order::Plain(_) | Order::AgedSptf, Some(_), _) => refused(reader, V_SCAN_SHARE, "v_scan"),
        (Order::Plain(_) | Order::VScan, _, Some(_)) => {
            refused(reader, AGED_SPTF_MS_PER_S, "aged_sptf")
        }
    };
    QueueSpecification {
        policy,
        distance: Distance::Cylinder,
        age_limit_ms: reader
            .optional_milliseconds(
                "age_limit_ms",
                0.0..=1e6,
                "what waits longer is served first; none if absent",
            )
            .map(|ns| ns as f64 / 1e6),
    }
}

const V_SCAN_SHARE: &str = "v_scan_share";
const AGED_SPTF_MS_PER_S: &str = "aged_sptf_ms_per_s";

/// A policy, whose number is a key of its own.
#[derive(Clone, Copy)]
enum Order {
    Plain(Policy),
    VScan,
    AgedSptf,
}

/// The chosen policy lacks its number.
fn lacking(reader: &mut Reader<'_>, key: &str) -> Policy {
    reader.fail("queue_policy", &format!("this policy needs `{key}`"));
    Policy::Fcfs
}

/// A number of another policy.
fn refused(reader: &mut Reader<'_>, key: &str, policy: &str) -> Policy {
    let message = format!("only `queue_policy=\"{policy}\"` has it");
    reader.fail_allowing(key, &message, "absent with other policies");
    Policy::Fcfs
}

fn read_overheads(reader: &mut Reader<'_>) -> OverheadSpecification {
    let mut time = |key, doc| reader.milliseconds(key, 0.0..=LONGEST_MS, doc) as f64 / 1e6;
    OverheadSpecification {
        read_hit: After::both(time("read_hit_ms", "a command that the buffer answers")),
        read_miss: After::both(time("read_miss_ms", "a read that the arm moves for")),
        write: After::both(time("write_ms", "a write, or a flush")),
        read_completion_ms: time("read_completion_ms", "telling the host of a read's end"),
        write_completion_ms: time("write_completion_ms", "telling the host of a write's end"),
    }
}

fn read_link(reader: &mut Reader<'_>) -> LinkSpecification {
    LinkSpecification {
        bytes_per_s: reader.integer(
            "link_bytes_per_s",
            1000..=1_000_000_000_000,
            "data that the link to the host carries",
        ) as f64,
        overhead_ms: reader.milliseconds(
            "link_overhead_ms",
            0.0..=LONGEST_MS,
            "what each transfer over the link takes besides",
        ) as f64
            / 1e6,
        delivery: Delivery::WhileReading,
    }
}

fn read_read_cache(reader: &mut Reader<'_>, medium_bytes: u32) -> ReadCacheSpecification {
    let modes = [
        ("none", ReadAhead::None),
        ("track_end", ReadAhead::TrackEnd),
        ("cylinder_end", ReadAhead::CylinderEnd),
        ("limit", ReadAhead::Limit),
        ("next_track_end", ReadAhead::NextTrackEnd),
    ];
    let after = [
        ("any_read", ReadAheadAfter::AnyRead),
        ("sequential_read", ReadAheadAfter::SequentialRead),
    ];
    let sectors = |bytes: u64| (bytes / u64::from(medium_bytes)).min(u64::from(u32::MAX)) as u32;
    let bytes = 0..=1_000_000_000_000;
    ReadCacheSpecification {
        segments: reader.integer(
            "cache_segments",
            0..=65_536,
            "runs of sectors that the buffer keeps of what was read",
        ) as u32,
        segment_sectors: sectors(reader.integer(
            "segment_bytes",
            bytes.clone(),
            "the most of one of them",
        )),
        read_ahead: reader.choice("read_ahead", &modes, "how far it reads on after a read"),
        read_ahead_after: reader.choice("read_ahead_after", &after, "after which reads"),
        limit_from: LimitFrom::RequestEnd,
        most_ahead_sectors: Some(sectors(reader.integer(
            "read_ahead_bytes",
            bytes,
            "the most that it reads on",
        ))),
        least_ahead_sectors: 0,
        keep_passing_sectors: reader.flag(
            "keep_passing_sectors",
            "whether it keeps sectors that pass before the wanted ones",
        ),
        after_read: AfterRead::All,
        after_write: AfterWrite::DropsOverlapping,
    }
}

fn read_write_cache(reader: &mut Reader<'_>, sector_bytes: u32) -> Option<WriteCacheSpecification> {
    let on = reader.flag(
        "write_cache",
        "whether a write is done when the buffer has it",
    );
    let mut bytes = |key, doc| reader.integer(key, 512..=1_000_000_000_000, doc);
    let room = bytes("write_cache_bytes", "what the buffer takes of writes");
    let destaged = bytes("destage_bytes", "the most that is written at once");
    let extents = reader.integer(
        "write_cache_extents",
        1..=10_000_000,
        "the most runs of sectors that wait to be written",
    );
    let high_water_share = reader.number(
        "write_cache_high_share",
        0.0..=1.0,
        "how full it is when writing shares the arm with reads",
    );
    let idle_ms = reader.milliseconds(
        "destage_idle_ms",
        0.0..=1e6,
        "how long the arm rests before the buffer is written",
    ) as f64
        / 1e6;
    let sectors = |bytes: u64| (bytes / u64::from(sector_bytes)).max(1);
    on.then(|| WriteCacheSpecification {
        most_sectors: sectors(room),
        most_extents: extents as u32,
        high_water_share,
        idle_ms,
        most_destaged_sectors: sectors(destaged).min(u64::from(u32::MAX)) as u32,
        read_hits: true,
    })
}
