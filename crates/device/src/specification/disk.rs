//! Reader of disk specifications from the catalogue: a disk with firmware, a buffer and a link,
//! described by data-sheet values and values derived from them.

mod electronics;
mod measured;
mod queue;
mod shingled;

use crate::disk::cache::{
    KeepAfterRead, KeepAfterWrite, LimitReference, ReadAheadScope, ReadAheadTrigger,
    ReadCacheSpecification, WriteCacheSpecification,
};
use crate::disk::device::{Disk, DiskError, DiskSpecification, FlushOrder};
use crate::disk::layout::{DataSheet, LayoutSpecification};
use crate::disk::mechanism::{MechanismError, MechanismSpecification};
use crate::disk::seek::SeekSpecification;
use crate::disk::spindle::RotationAngle;
use diskperf_catalogue::Reader;
pub use queue::{AGED_SPTF_MS_PER_S_DEFAULT, V_SCAN_SHARE_DEFAULT};

/// Maximum duration of a part of a disk operation in the model, in ms.
const TIME_MS_MAX: f64 = 1000.0;

/// Key of the capacity, from which the data-sheet layout is derived.
const CAPACITY_KEY: &str = "capacity_bytes";
const SEEK_KEYS: [&str; 6] = [
    "seek_table",
    "seek_hpl",
    "seek_constant_ms",
    "seek_average_ms",
    "seek_minimum_ms",
    "seek_maximum_ms",
];

/// Reads the specification of a disk from an entry of the catalogue.
pub(super) fn read(reader: &mut Reader<'_>) -> DiskSpecification {
    let sector_bytes = reader.integer(
        "sector_bytes",
        512..=65_536,
        "size of a logical sector, the unit that the host addresses",
    ) as u32;
    let medium_bytes = reader.integer(
        "medium_sector_bytes",
        512..=65_536,
        "size of a physical sector; a write that covers only part of one reads it first",
    ) as u32;
    if !medium_bytes.is_multiple_of(sector_bytes) {
        let allowed = "a multiple of sector_bytes";
        reader.fail_with_choices(
            "medium_sector_bytes",
            "logical sectors do not fit into physical sectors",
            allowed,
        );
    }
    let per_medium = (medium_bytes / sector_bytes).max(1);
    let shingled = shingled::read_shingled(reader, medium_bytes);
    let hidden_sectors = shingled.map_or(0, |of| of.media_cache_sectors);
    let mechanism = read_mechanism(reader, (medium_bytes, hidden_sectors));
    let queue = queue::read_queue(reader);
    let queue_depth = reader.integer(
        "queue_depth",
        1..=65_536,
        "queue depth: commands that the drive accepts at once",
    );
    let specification = DiskSpecification {
        mechanism,
        sector_bytes,
        sectors_per_medium_sector: per_medium,
        queue_depth: queue_depth as u32,
        queue,
        overheads: electronics::read_overheads(reader),
        link: electronics::read_link(reader),
        read_cache: read_read_cache(reader, medium_bytes),
        write_cache: read_write_cache(reader, sector_bytes),
        flush_order: reader.choice(
            "flush",
            &[
                ("drains", FlushOrder::DrainsQueue),
                ("queues", FlushOrder::QueuesWrites),
            ],
            "whether a flush waits for all commands in flight (drains) or queues (queues)",
        ),
        shingled,
    };
    let sectors = match Disk::new(&specification, RotationAngle::ZERO) {
        Ok(disk) => disk.sectors(),
        Err(error) => {
            reader.fail(key_of_error(&error, reader), &error.to_string());
            1
        }
    };
    if sectors > u64::from(u32::MAX) {
        let allowed = "larger: the model addresses at most 2^32 - 1 sectors";
        reader.fail_with_choices("sector_bytes", "the disk has too many sectors", allowed);
    }
    specification
}

/// Returns the key that an error message should name. Prefers a key that the user set, then any
/// given key of the seek time or layout.
fn key_of_error(error: &DiskError, reader: &Reader<'_>) -> &'static str {
    let keys: &[&'static str] = match error {
        DiskError::Mechanism(MechanismError::Seek(_)) => &SEEK_KEYS,
        DiskError::Mechanism(MechanismError::WriteSeek(_)) => {
            return measured::WRITE_SEEK_TABLE_KEY;
        }
        DiskError::Mechanism(MechanismError::Layout(_)) => &[
            measured::ZONE_TABLE_KEY,
            measured::EXTENT_TABLE_KEY,
            CAPACITY_KEY,
        ],
        DiskError::Mechanism(MechanismError::OutOfRange { key, .. })
        | DiskError::OutOfRange { key, .. } => return key,
    };
    let set = keys.iter().find(|key| reader.is_set(key));
    let given = || keys.iter().find(|key| reader.is_readable(key));
    set.or_else(given).copied().unwrap_or(CAPACITY_KEY)
}

fn read_mechanism(
    reader: &mut Reader<'_>,
    (medium_bytes, hidden_sectors): (u32, u64),
) -> MechanismSpecification {
    let layout = match measured::has_measured_layout(reader) {
        true => measured::read_layout(reader),
        false => read_layout(reader, medium_bytes, hidden_sectors),
    };
    let seek = measured::read_seek(reader).unwrap_or_else(|| read_three_points(reader));
    let mut time = |key, least, doc| reader.number(key, least..=TIME_MS_MAX, doc);
    let head_switch_ms = time("head_switch_ms", 0.0, "head switch time");
    let write_settle_ms = time(
        "write_settle_ms",
        -TIME_MS_MAX,
        "additional settle time of a write compared with a read",
    );
    let rpm = reader.number(
        "spindle_rpm",
        60.0..=30_000.0,
        "spindle speed in revolutions per minute",
    );
    MechanismSpecification {
        layout,
        seek,
        head_switch_ms,
        write_settle_ms,
        write_seek: measured::read_write_seek(reader),
        inward_ms: ["seek_inward_ms", "write_seek_inward_ms"].map(|key| {
            let range = -TIME_MS_MAX..=TIME_MS_MAX;
            let doc =
                "additional time of an inward seek compared with an outward seek; 0 if absent";
            reader.optional_number(key, range, doc).unwrap_or(0.0)
        }),
        same_track_ms: ["same_track_ms", "write_same_track_ms"].map(|key| {
            let doc = "delay of a command for the track that the arm is already on; 0 if absent";
            let time = reader.optional_number(key, 0.0..=TIME_MS_MAX, doc);
            time.unwrap_or(0.0)
        }),
        period_ns: 60e9 / rpm,
        zero_latency_reads: reader.flag(
            "zero_latency_reads",
            "whether a read can start at any of its sectors on a track (zero-latency access)",
        ),
        zero_latency_writes: reader.flag(
            "zero_latency_writes",
            "whether a write can start at any of its sectors on a track (zero-latency access)",
        ),
    }
}

fn read_three_points(reader: &mut Reader<'_>) -> SeekSpecification {
    let mut time = |key, doc| reader.milliseconds(key, 0.0..=TIME_MS_MAX, doc) as f64 / 1e6;
    SeekSpecification::ThreePoints {
        single_cylinder_ms: time("seek_minimum_ms", "track-to-track seek time of reads"),
        average_ms: time(
            "seek_average_ms",
            "mean seek time of reads over all pairs of tracks",
        ),
        full_stroke_ms: time("seek_maximum_ms", "full-stroke seek time of reads"),
    }
}

/// Derives zones and skews from data-sheet values. The first `hidden_sectors` sectors of the medium
/// are not visible to hosts.
fn read_layout(
    reader: &mut Reader<'_>,
    medium_bytes: u32,
    hidden_sectors: u64,
) -> LayoutSpecification {
    let capacity_bytes = reader.integer(
        CAPACITY_KEY,
        1_000_000..=1_000_000_000_000_000,
        "capacity that hosts can address",
    );
    let sheet = DataSheet {
        capacity_bytes: capacity_bytes + hidden_sectors * u64::from(medium_bytes),
        sector_bytes: medium_bytes,
        head_count: reader.integer("heads", 1..=256, "heads, one per recording surface") as u32,
        outer_track_bytes: reader.number(
            "outer_track_bytes",
            512.0..=1e9,
            "data capacity of the outermost track",
        ),
        inner_to_outer_ratio: reader.number(
            "inner_rate_share",
            0.05..=1.0,
            "media rate of the innermost track, as a share of the outermost track's",
        ),
        zone_count: reader.integer(
            "recording_zones",
            1..=1000,
            "recording zones, all with the same number of tracks",
        ) as u32,
        tracks_per_band: reader.integer(
            "tracks_per_band",
            1..=1_000_000,
            "adjacent tracks that one surface fills before the next head takes over",
        ) as u32,
        track_skew_rev: reader.number(
            "track_skew_share",
            0.0..=0.999,
            "track skew between adjacent tracks of a surface, as a share of a revolution",
        ),
        head_skew_rev: reader.number(
            "head_skew_share",
            0.0..=0.999,
            "track skew across a head switch, as a share of a revolution",
        ),
    };
    match sheet.build_layout() {
        Ok(mut layout) => {
            layout.zones[0].dead_sectors = hidden_sectors;
            layout.sector_count = layout.sector_count.map(|all| all - hidden_sectors);
            layout
        }
        Err(error) => {
            reader.fail(CAPACITY_KEY, &error.to_string());
            DataSheet {
                capacity_bytes: 4096,
                ..sheet
            }
            .build_layout()
            .unwrap_or_else(|_| placeholder_layout())
        }
    }
}

fn placeholder_layout() -> LayoutSpecification {
    LayoutSpecification {
        surface_count: 1,
        cylinder_count: 1,
        track_order: Default::default(),
        sparing: Default::default(),
        zones: vec![crate::disk::layout::ZoneSpecification {
            sectors_per_track: 1,
            ..Default::default()
        }],
        extents: Vec::new(),
        sector_count: None,
    }
}

/// Reads a choice with a default, because most entries omit it.
fn read_choice_or_default<T: Clone + Default>(
    reader: &mut Reader<'_>,
    key: &str,
    choices: &[(&str, T)],
    doc: &str,
) -> T {
    match reader.is_readable(key) {
        true => reader.choice(key, choices, doc),
        false => T::default(),
    }
}

fn read_read_cache(reader: &mut Reader<'_>, medium_bytes: u32) -> ReadCacheSpecification {
    let modes = [
        ("none", ReadAheadScope::None),
        ("track_end", ReadAheadScope::TrackEnd),
        ("whole_track", ReadAheadScope::WholeTrack),
        ("cylinder_end", ReadAheadScope::CylinderEnd),
        ("limit", ReadAheadScope::Limit),
        ("next_track_end", ReadAheadScope::NextTrackEnd),
    ];
    let after = [
        ("any_read", ReadAheadTrigger::AnyRead),
        ("sequential_read", ReadAheadTrigger::SequentialRead),
    ];
    let limits = [
        ("request_end", LimitReference::RequestEnd),
        ("request_start", LimitReference::RequestStart),
    ];
    let left = [
        ("all", KeepAfterRead::WholeSegment),
        ("ahead", KeepAfterRead::ReadAheadOnly),
    ];
    let written = [
        ("drops_overlapping", KeepAfterWrite::DropsOverlapping),
        ("drops_all", KeepAfterWrite::DropsAll),
        ("updates", KeepAfterWrite::Updates),
    ];
    let sectors = |bytes: u64| (bytes / u64::from(medium_bytes)).min(u64::from(u32::MAX)) as u32;
    let bytes = 0..=1_000_000_000_000;
    ReadCacheSpecification {
        segments: reader.integer(
            "cache_segments",
            0..=65_536,
            "read-cache segments, each of which holds one run of consecutive sectors",
        ) as u32,
        segment_sectors: sectors(reader.integer(
            "segment_bytes",
            bytes.clone(),
            "maximum size of a read-cache segment",
        )),
        read_ahead_scope: reader.choice(
            "read_ahead",
            &modes,
            "point up to which the drive reads ahead after a read",
        ),
        read_ahead_trigger: reader.choice(
            "read_ahead_after",
            &after,
            "reads after which the drive reads ahead",
        ),
        limit_reference: read_choice_or_default(
            reader,
            "read_ahead_from",
            &limits,
            "position from which read_ahead_bytes counts",
        ),
        read_ahead_sectors_max: Some(sectors(reader.integer(
            "read_ahead_bytes",
            bytes,
            "maximum length of a read-ahead",
        ))),
        read_ahead_sectors_min: sectors(
            reader
                .optional_integer(
                    "read_ahead_least_bytes",
                    0..=1_000_000_000_000,
                    "minimum length of a read-ahead, even when another command waits; 0 if absent",
                )
                .unwrap_or(0),
        ),
        keeps_passing_sectors: reader.flag(
            "keep_passing_sectors",
            "whether the cache keeps sectors that pass under the head before the requested ones",
        ),
        keep_after_read: read_choice_or_default(
            reader,
            "segment_after_read",
            &left,
            "part of a cache segment that stays cached after a read hit",
        ),
        keep_after_write: read_choice_or_default(
            reader,
            "segment_after_write",
            &written,
            "effect of a write on read-cache segments",
        ),
        resumes_after_hit: !reader.is_readable("read_ahead_after_hit")
            || reader.flag(
                "read_ahead_after_hit",
                "whether read-ahead continues after a cache hit",
            ),
        uses_partial_hits: !reader.is_readable("use_partial_hits")
            || reader.flag(
                "use_partial_hits",
                "whether a read whose first sectors are in the buffer reads only the others",
            ),
        joins_unread_sectors: !reader.is_readable("join_unread_sectors")
            || reader.flag(
                "join_unread_sectors",
                "whether a read waits for a read-ahead that has yet to come to its first sector",
            ),
        keeps_written_sectors: reader.is_readable("keep_written")
            && reader.flag(
                "keep_written",
                "whether written sectors also fill a read-cache segment for later reads",
            ),
    }
}

fn read_write_cache(reader: &mut Reader<'_>, sector_bytes: u32) -> Option<WriteCacheSpecification> {
    let on = reader.flag(
        "write_cache",
        "whether a write completes once it is in the write cache (write-back)",
    );
    let appending_only = reader.is_readable("write_cache_appending_only")
        && reader.flag(
            "write_cache_appending_only",
            "whether only a write that continues a pending one completes before it is on the medium",
        );
    let holds_destaged = reader.is_readable("write_cache_holds_destaged")
        && reader.flag(
            "write_cache_holds_destaged",
            "whether an extent occupies the write cache until its destage ends",
        );
    let overhead_after_wait = reader.is_readable("write_cache_overhead_after_wait")
        && reader.flag(
            "write_cache_overhead_after_wait",
            "whether a write has its overhead after it has waited for the write cache and the read-ahead",
        );
    let mut bytes = |key, doc| reader.integer(key, 512..=1_000_000_000_000, doc);
    let room = bytes("write_cache_bytes", "capacity of the write cache");
    let destaged = bytes("destage_bytes", "maximum size of one destage write");
    let extents = reader.integer(
        "write_cache_extents",
        1..=10_000_000,
        "maximum number of extents in the write cache",
    );
    let high_water_share = reader.number(
        "write_cache_high_share",
        0.0..=1.0,
        "fill level of the write cache, as a share, at which destaging shares the arm with reads",
    );
    let idle_ms = reader.milliseconds(
        "destage_idle_ms",
        0.0..=1e6,
        "idle time of the arm before the drive destages the write cache",
    ) as f64
        / 1e6;
    let read_hits = !reader.is_readable("write_cache_read_hits")
        || reader.flag(
            "write_cache_read_hits",
            "whether the write cache answers reads of sectors not yet destaged; yes if absent",
        );
    let sectors = |bytes: u64| (bytes / u64::from(sector_bytes)).max(1);
    on.then(|| WriteCacheSpecification {
        sectors_max: sectors(room),
        extents_max: extents as u32,
        high_water_share,
        destage_idle_ms: idle_ms,
        destage_sectors_max: sectors(destaged).min(u64::from(u32::MAX)) as u32,
        serves_reads: read_hits,
        accepts_appends_only: appending_only,
        holds_destaged_extent: holds_destaged,
        repeats_overhead_after_wait: overhead_after_wait,
    })
}
