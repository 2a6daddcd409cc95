//! Reader of a disk's scheduling policy from the catalogue.

use super::read_choice_or_default;
use crate::disk::queue::{DistanceMeasure, QueuePolicy, QueueSpecification};
use diskperf_catalogue::Reader;

/// Default share of the stroke that V-SCAN adds against the arm's direction. Geist and Daniel 1987
/// recommend it.
pub const V_SCAN_SHARE_DEFAULT: f64 = 0.2;
/// Default credit of aged SPTF for each second in the queue, in ms of positioning time. No manual
/// prints one; this is the length of a long positioning.
pub const AGED_SPTF_MS_PER_S_DEFAULT: f64 = 20.0;

const V_SCAN_SHARE_KEY: &str = "v_scan_share";
const AGED_SPTF_KEY: &str = "aged_sptf_ms_per_s";

/// Reads the scheduling of the arm from an entry of the catalogue.
pub(super) fn read_queue(reader: &mut Reader<'_>) -> QueueSpecification {
    let policies = [
        ("fcfs", PolicyChoice::Plain(QueuePolicy::Fcfs)),
        ("sstf", PolicyChoice::Plain(QueuePolicy::Sstf)),
        ("look", PolicyChoice::Plain(QueuePolicy::Look)),
        ("c_look", PolicyChoice::Plain(QueuePolicy::CLook)),
        ("v_scan", PolicyChoice::VScan),
        ("sptf", PolicyChoice::Plain(QueuePolicy::Sptf)),
        ("aged_sptf", PolicyChoice::AgedSptf),
    ];
    let order = reader.choice(
        "queue_policy",
        &policies,
        "policy by which the drive selects the next command from its queue",
    );
    let share = reader.optional_number(
        V_SCAN_SHARE_KEY,
        0.0..=1.0,
        "share of the stroke that v_scan adds to distances against the arm's direction; 0.2 (Geist and Daniel 1987) if absent",
    );
    let ms_per_s = reader.optional_number(
        AGED_SPTF_KEY,
        0.0..=1e9,
        "credit of aged_sptf for each second in the queue, in ms of positioning time; 20 if absent (a long positioning: no manual states a value)",
    );
    let policy = match (order, share, ms_per_s) {
        (PolicyChoice::Plain(_) | PolicyChoice::AgedSptf, Some(_), _) => {
            refuse_key(reader, V_SCAN_SHARE_KEY, "v_scan")
        }
        (PolicyChoice::Plain(_) | PolicyChoice::VScan, _, Some(_)) => {
            refuse_key(reader, AGED_SPTF_KEY, "aged_sptf")
        }
        (PolicyChoice::Plain(policy), None, None) => policy,
        (PolicyChoice::VScan, share, None) => QueuePolicy::VScan {
            share: share.unwrap_or(V_SCAN_SHARE_DEFAULT),
        },
        (PolicyChoice::AgedSptf, None, ms_per_s) => QueuePolicy::AgedSptf {
            ms_per_s: ms_per_s.unwrap_or(AGED_SPTF_MS_PER_S_DEFAULT),
        },
    };
    QueueSpecification {
        order: policy,
        distance_measure: read_choice_or_default(
            reader,
            "queue_distance",
            &[
                ("cylinder", DistanceMeasure::Cylinder),
                ("sector", DistanceMeasure::Sector),
            ],
            "unit in which the queue policy measures distances",
        ),
        age_limit_ms: reader
            .optional_milliseconds(
                "age_limit_ms",
                0.0..=1e6,
                "time in the queue after which a command is served first; no limit if absent",
            )
            .map(|ns| ns as f64 / 1e6),
    }
}

/// Scheduling policy, without a parameter that has its own key.
#[derive(Clone, Copy)]
enum PolicyChoice {
    Plain(QueuePolicy),
    VScan,
    AgedSptf,
}

/// Reports a parameter that belongs to another policy, and returns a placeholder policy.
fn refuse_key(reader: &mut Reader<'_>, key: &str, policy: &str) -> QueuePolicy {
    let message = format!("only `queue_policy=\"{policy}\"` uses it");
    reader.fail_with_choices(key, &message, "absent with other policies");
    QueuePolicy::Fcfs
}
