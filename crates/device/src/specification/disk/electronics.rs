//! Reader of a disk's firmware overheads and host link.

use super::{TIME_MS_MAX, read_choice_or_default};
use crate::disk::link::{DiskLinkSpecification, ReadDelivery};
use crate::disk::overheads::{OverheadByState, OverheadSpecification};
use diskperf_catalogue::Reader;

/// Reads the firmware overheads of commands from an entry of the catalogue.
pub(super) fn read_overheads(reader: &mut Reader<'_>) -> OverheadSpecification {
    let read_hit = read_overhead_by_state(
        reader,
        ("read_hit_ms", "firmware overhead of a read hit"),
        [
            "read_hit_after_write_ms",
            "read_hit_sequential_ms",
            "read_hit_reading_ahead_ms",
        ],
    );
    let read_miss = read_overhead_by_state(
        reader,
        ("read_miss_ms", "firmware overhead of a read miss"),
        [
            "read_miss_after_write_ms",
            "read_miss_sequential_ms",
            "read_miss_reading_ahead_ms",
        ],
    );
    let write = read_overhead_by_state(
        reader,
        ("write_ms", "firmware overhead of a write or flush"),
        [
            "write_after_write_ms",
            "write_sequential_ms",
            "write_reading_ahead_ms",
        ],
    );
    let sector_doc = "additional firmware overhead per sector of a write; 0 if absent";
    let sector = reader.optional_number("write_sector_ms", 0.0..=TIME_MS_MAX, sector_doc);
    let mut time = |key, doc| reader.milliseconds(key, 0.0..=TIME_MS_MAX, doc) as f64 / 1e6;
    OverheadSpecification {
        read_hit_ms: read_hit,
        read_miss_ms: read_miss,
        write_ms: write,
        write_sector_ms: sector.unwrap_or(0.0),
        read_completion_ms: time(
            "read_completion_ms",
            "time to report the completion of a read to the host",
        ),
        write_completion_ms: time(
            "write_completion_ms",
            "time to report the completion of a write to the host",
        ),
    }
}

/// Reads the overheads of one kind of command: after a read, after a write, sequential to the last
/// command of its kind, and during read-ahead.
fn read_overhead_by_state(
    reader: &mut Reader<'_>,
    (key, doc): (&str, &str),
    [written_key, sequential_key, ahead_key]: [&str; 3],
) -> OverheadByState {
    let after_read_ms = reader.milliseconds(key, 0.0..=TIME_MS_MAX, doc) as f64 / 1e6;
    let mut time = |key: &str, doc: &str| {
        let time = reader.optional_milliseconds(key, 0.0..=TIME_MS_MAX, doc);
        time.map(|ns| ns as f64 / 1e6)
    };
    let after_write = time(
        written_key,
        &format!("{doc} after a write; as after a read if absent"),
    );
    OverheadByState {
        after_read_ms,
        after_write_ms: after_write.unwrap_or(after_read_ms),
        sequential_ms: time(
            sequential_key,
            &format!(
                "{doc} that continues the last command of the same kind; as for others if absent"
            ),
        ),
        reading_ahead_ms: time(
            ahead_key,
            &format!("{doc} during read-ahead; as at other times if absent"),
        ),
    }
}

/// Reads the parameters of the host link from an entry of the catalogue.
pub(super) fn read_link(reader: &mut Reader<'_>) -> DiskLinkSpecification {
    let rate = 1000..=1_000_000_000_000;
    let bytes_per_s = reader.integer(
        "link_bytes_per_s",
        rate.clone(),
        "data rate of the host link",
    ) as f64;
    let write_doc = "data rate of the host link for writes; as for reads if absent";
    let written = reader.optional_integer("link_write_bytes_per_s", rate, write_doc);
    let overhead = reader.milliseconds(
        "link_overhead_ms",
        0.0..=TIME_MS_MAX,
        "overhead of each transfer over the host link",
    );
    let again = reader.optional_number(
        "link_reconnect_ms",
        0.0..=TIME_MS_MAX,
        "time to reconnect to the bus (arbitration and reselection), for reads with link_reads=reconnected and writes without link_holds_writes; 0 if absent",
    );
    DiskLinkSpecification {
        bytes_per_s,
        write_bytes_per_s: written.map(|rate| rate as f64),
        overhead_ms: overhead as f64 / 1e6,
        reconnect_ms: again.unwrap_or(0.0),
        disconnects_for_writes: reader.is_readable("link_holds_writes")
            && reader.flag(
                "link_holds_writes",
                "whether a write transfers its data without the reconnect time of link_reconnect_ms",
            ),
        read_delivery: read_delivery(reader),
    }
}

const LINK_READ_SHARE_KEY: &str = "link_read_share";

fn read_delivery(reader: &mut Reader<'_>) -> ReadDelivery {
    let deliveries = [
        ("in_pieces", ReadDelivery::WhileReading),
        ("held", ReadDelivery::HeldUntilComplete),
        ("reconnected", ReadDelivery::Reconnected { share: 0.0 }),
    ];
    let doc = "host link during a read: shared with other commands (in_pieces: SATA, SAS), held from the start of the read (held), or released and reconnected (reconnected); in_pieces if absent";
    let delivery = read_choice_or_default(reader, "link_reads", &deliveries, doc);
    let share_doc = "share of a read's sectors read from the medium when the drive reconnects to the bus; only with link_reads=reconnected";
    match (
        delivery,
        reader.optional_number(LINK_READ_SHARE_KEY, 0.0..=1.0, share_doc),
    ) {
        (ReadDelivery::Reconnected { .. }, share) => ReadDelivery::Reconnected {
            share: share.unwrap_or(0.0),
        },
        (other, None) => other,
        (other, Some(_)) => {
            let message = "only `link_reads=\"reconnected\"` uses it";
            reader.fail_with_choices(LINK_READ_SHARE_KEY, message, "absent with others");
            other
        }
    }
}
