//! Verdict on the time of a program on real storage.

use super::super::words::{format_percent, stage_label};
use super::super::{DeviceAccount, OperationAccount, TimeAccount, is_processor_stage};
use super::{BOTTLENECK_SHARE_MIN, MENTION_SHARE_MIN};
use crate::explanation::stored::last_worker_to_end;
use diskperf_timeline::block::BlockOperation;
use diskperf_timeline::units::{format_nanoseconds, format_size};
use diskperf_timeline::{LoadMeasure, Nanoseconds, Repetition, Stage};

/// Minimum unattributed share of the time that the verdict on a program mentions.
const UNATTRIBUTED_SHARE_MIN: f64 = 0.05;

/// Describes the verdict on a program on real storage: the bottleneck, the durations of a call and
/// a request, and the unknown remainder.
pub fn write_storage_verdict(account: &TimeAccount, repetition: &Repetition) -> Vec<String> {
    let workers = repetition.workers.len().max(1);
    let undivided = sum_undivided_time(account, workers);
    let mut sentences = vec![describe_bottleneck(account, workers)];
    sentences.extend(describe_request_cost(account, repetition, undivided));
    sentences.extend(describe_requests(account, repetition));
    sentences.extend(describe_unattributed(account, undivided));
    sentences.extend(describe_durable_time(repetition));
    sentences
}

/// Returns the processor time of the program that is not divided into user and system time, and is
/// therefore unattributed.
fn sum_undivided_time(account: &TimeAccount, workers: usize) -> Nanoseconds {
    let mut entries = account.ledger.entries().iter();
    if entries.any(|entry| is_processor_stage(entry.stage)) {
        return Nanoseconds::ZERO;
    }
    let share = account.utilisation.processor_share.unwrap_or_default() / workers as f64;
    let ns = Nanoseconds((share * account.elapsed.0 as f64) as u64);
    ns.min(account.ledger.stage_duration(Stage::Unattributed))
}

fn describe_bottleneck(account: &TimeAccount, workers: usize) -> String {
    let used = &account.utilisation;
    // Several workers may keep as many processors busy.
    let processor = used.processor_share.unwrap_or_default() / workers as f64;
    let (busy, who) = match workers {
        0 | 1 => (format_percent(processor), "the processor".to_owned()),
        _ => (
            format_percent(processor),
            format!("each of {workers} programs' processors"),
        ),
    };
    let devices = account.device_accounts.iter().zip(&used.drive_shares);
    let busiest = devices.max_by(|one, other| one.1.total_cmp(other.1));
    let Some((device, share)) = busiest else {
        return match processor {
            all if all >= BOTTLENECK_SHARE_MIN => {
                format!("Bottleneck: {who}, busy {busy} of the time.")
            }
            _ => format!(
                "{}; nothing is known about the devices.",
                end_sentence(&format!("{who} is busy {busy} of the time"))
            ),
        };
    };
    let name = &device.device_name;
    let at_device = format_percent(*share);
    let both = used.processor_and_drive_share.map(format_percent);
    let meanwhile = both.map_or_else(String::new, |both| format!(", {both} at the same time"));
    if *share >= BOTTLENECK_SHARE_MIN && *share >= processor {
        return format!(
            "Bottleneck: {name}, busy {at_device} of the time; {who} is busy {busy} of it{meanwhile}."
        );
    }
    if processor >= BOTTLENECK_SHARE_MIN {
        return format!(
            "Bottleneck: {who}, busy {busy} of the time; {name} is busy {at_device} of it{meanwhile}."
        );
    }
    let elapsed = account.elapsed.0.max(1) as f64;
    let ready = account.ledger.stage_duration(Stage::CpuWait).0 as f64 / elapsed;
    if processor + ready >= BOTTLENECK_SHARE_MIN {
        return format!(
            "Bottleneck: {who}, busy {busy} of the time, and for {} of it with other work while the program was ready to run; {name} is busy {at_device}{meanwhile}.",
            format_percent(ready)
        );
    }
    format!(
        "No component is busy all the time: {name} {at_device}, {who} {busy}{meanwhile}; for the rest of the time they wait for each other."
    )
}

fn end_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Describes the duration of a call by stages.
fn describe_request_cost(
    account: &TimeAccount,
    repetition: &Repetition,
    undivided: Nanoseconds,
) -> Option<String> {
    let worker = last_worker_to_end(repetition)?;
    // What is done to names is no read and no write, and takes most of the time.
    let name_calls = worker
        .load_measure
        .as_ref()
        .map_or(0, LoadMeasure::name_call_count);
    let calls = if name_calls > 0 {
        name_calls
    } else {
        worker.call_count
    };
    if calls == 0 {
        return None;
    }
    let each = |ns: Nanoseconds| format_nanoseconds(Nanoseconds(ns.0 / calls));
    let mut entries: Vec<(Nanoseconds, String)> = vec![(undivided, "on the processor".to_owned())];
    for entry in account.ledger.entries() {
        let ns = match entry.stage {
            Stage::Unattributed => entry.duration.since(undivided),
            _ => entry.duration,
        };
        entries.push((ns, stage_label(entry.stage)));
    }
    entries.retain(|(ns, _)| ns.0 as f64 / account.elapsed.0.max(1) as f64 >= MENTION_SHARE_MIN);
    entries.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let told: Vec<String> = entries
        .iter()
        .map(|(ns, what)| format!("{} {what}", each(*ns)))
        .collect();
    let of = match (worker.read_bytes + worker.written_bytes) / calls {
        _ if name_calls > 0 => " on names, including the sync that makes it durable,".to_owned(),
        0 => String::new(),
        size => format!(" of {}", format_size(size)),
    };
    let who = match calls {
        1 => format!("The one call{of}"),
        _ => format!("Each of {calls} calls{of}"),
    };
    Some(format!(
        "{who} takes {} on average: {}.",
        each(account.elapsed),
        told.join(", ")
    ))
}

/// Moves the requests that a program may have caused before those of other processes, since the
/// events cover the whole machine.
pub fn sort_own_requests_first(account: &mut TimeAccount, repetition: &Repetition) {
    for device in &mut account.device_accounts {
        let operations = &mut device.operation_accounts;
        operations.sort_by_key(|one| !may_issue(repetition, one.operation));
    }
}

/// Tests whether a program with this amount of reads and writes may have caused requests of a kind.
fn may_issue(repetition: &Repetition, operation: BlockOperation) -> bool {
    match operation {
        BlockOperation::Read | BlockOperation::ReadAhead => {
            repetition.sum_over_workers(|worker| worker.read_bytes) > 0
        }
        BlockOperation::Write | BlockOperation::Flush | BlockOperation::Discard => {
            repetition.sum_over_workers(|worker| worker.written_bytes) > 0
        }
        BlockOperation::Other => false,
    }
}

/// Describes the requests that keep a device busy the longest, preferring those that the program
/// may have caused.
pub(super) fn describe_requests(account: &TimeAccount, repetition: &Repetition) -> Option<String> {
    let all = account.device_accounts.iter().flat_map(|device| {
        let of_device = device.operation_accounts.iter();
        of_device.map(move |operation| (device, operation))
    });
    let cost = |(_, one): &(&DeviceAccount, &OperationAccount)| {
        u128::from(one.request_count) * u128::from(one.device_ns.median)
    };
    let own = |(_, one): &(&DeviceAccount, &OperationAccount)| may_issue(repetition, one.operation);
    let (device, one) = all.max_by_key(|one| (own(one), cost(one)))?;
    let time = |ns| format_nanoseconds(Nanoseconds(ns));
    let size = match one.request_bytes.median {
        0 => String::new(),
        size => format!(" of {}", format_size(size)),
    };
    Some(format!(
        "A {} request{size} ({} of them) waits {} in the queue and takes {} at {} (medians; one in a hundred exceeds {} and {}), and {} are in service at once on average.",
        one.operation.name(),
        one.request_count,
        time(one.queue_ns.median),
        time(one.device_ns.median),
        device.device_name,
        time(one.queue_ns.p99),
        time(one.device_ns.p99),
        format_args!("{:.1}", device.at_device_mean.unwrap_or_default())
    ))
}

fn describe_unattributed(account: &TimeAccount, undivided: Nanoseconds) -> Option<String> {
    let elapsed = account.elapsed.0.max(1) as f64;
    let waiting = account
        .ledger
        .stage_duration(Stage::Unattributed)
        .since(undivided);
    let share = waiting.0 as f64 / elapsed;
    if share < UNATTRIBUTED_SHARE_MIN {
        return None;
    }
    let observed = account
        .device_accounts
        .iter()
        .any(|one| one.at_device_mean.is_some());
    let what = match observed {
        true => {
            "while no device has a request: for a lock, a timer or another process, which the events do not distinguish"
        }
        false => "for something that was not recorded",
    };
    Some(format!(
        "For {} of the time the program waits {what}.",
        format_percent(share)
    ))
}

/// Describes the writes that became durable after the program's last call; `None` for a program
/// that did not write.
pub(super) fn describe_durable_time(repetition: &Repetition) -> Option<String> {
    let (elapsed, durable) = (repetition.elapsed_time(), repetition.durable_time()?);
    let more = durable.since(elapsed);
    (more.0 as f64 >= MENTION_SHARE_MIN * elapsed.0 as f64).then(|| {
        format!(
            "After the last call it took {} more until all data was durable; the ledger does not include this.",
            format_nanoseconds(more)
        )
    })
}
