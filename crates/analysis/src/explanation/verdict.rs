//! Verdict on an account of a program's time, in two or three sentences.

mod chains;
mod storage;

pub use chains::write_chain_verdict;
pub use storage::{sort_own_requests_first, write_storage_verdict};

use super::response::ResponseAccount;
use super::words::{describe_late_event, format_bytes, format_percent, format_time_ms};
use super::{DriveAccount, DriveComponent, MissedDeadline, TimeAccount, is_processor_stage};

/// Minimum busy share at which a part of the computer counts as the bottleneck.
const BOTTLENECK_SHARE_MIN: f64 = 0.9;
/// Minimum share of the time at which a stage or a cause is mentioned.
const MENTION_SHARE_MIN: f64 = 0.02;

/// Minimum share of a revolution for which a request's time is also given in revolutions. Below it,
/// two decimals are not enough.
const MISSED_REVOLUTIONS_MENTIONED_MIN: f64 = 0.005;

/// Describes the bottleneck and the main costs of one program, sentence by sentence.
pub fn write_verdict(account: &TimeAccount) -> Vec<String> {
    let mut sentences = vec![describe_bottleneck(account)];
    sentences.extend(
        account
            .response_account
            .as_ref()
            .map(ResponseAccount::describe_response),
    );
    sentences.extend(describe_request_cost(account));
    sentences.extend(account.buffer_hits.and_then(|of| of.describe_hits()));
    if is_limited_by_processor(account) {
        sentences.extend(describe_processor_work(account));
    } else {
        sentences.extend(describe_main_cost(account));
    }
    sentences
}

fn is_limited_by_processor(account: &TimeAccount) -> bool {
    let of_drive = find_busiest_drive(account).map_or(0.0, |drive| {
        account.utilisation.drive_shares[drive.drive_index as usize]
    });
    let processor = account.utilisation.processor_share;
    processor.is_some_and(|share| share >= BOTTLENECK_SHARE_MIN && share >= of_drive)
}

fn find_busiest_drive(account: &TimeAccount) -> Option<&DriveAccount> {
    account
        .drive_accounts
        .iter()
        .min_by_key(|drive| drive.idle_time)
}

fn describe_bottleneck(account: &TimeAccount) -> String {
    let used = &account.utilisation;
    let drive = find_busiest_drive(account);
    let of_drive = drive.map_or(0.0, |drive| used.drive_shares[drive.drive_index as usize]);
    let processor = used.processor_share.map(format_percent);
    let with_processor = |words: &dyn Fn(&str) -> String| {
        let processor = processor.as_deref();
        processor.map_or_else(String::new, words)
    };
    let both = format_percent(used.processor_and_drive_share.unwrap_or_default());
    let Some(drive) = drive else {
        let processor =
            with_processor(&|share| format!(": the processor is busy {share} of the time"));
        return format!("No drive was used{processor}.");
    };
    let beside = with_processor(&|share| format!(", the processor {share}"));
    let meanwhile = with_processor(&|share| {
        format!("; the processor is busy {share}, {both} while a drive is")
    });
    // Of several drives the time at once is with any of them, and may be more
    // than what the busiest has alone.
    let (name, with_any) = match account.drive_accounts.len() {
        1 => ("the drive".to_owned(), "both"),
        _ => (
            format!("drive {}", drive.drive_index + 1),
            "the processor and some drive",
        ),
    };
    let elapsed = account.elapsed.0.max(1) as f64;
    let media = drive.time_parts.gap_passing_time.0 as f64 / elapsed;
    let busy = format_percent(of_drive);
    if !is_limited_by_processor(account)
        && let Some(sentence) = describe_drive_part(account, drive, &name)
    {
        return sentence;
    }
    if is_limited_by_processor(account) {
        return format!(
            "Bottleneck: the processor, busy {} of the time; {name} is busy {busy} of it, {with_any} at once {both}.",
            processor.unwrap_or_default()
        );
    }
    if of_drive >= BOTTLENECK_SHARE_MIN && drive.revolution_ns == 0.0 {
        return format!("Bottleneck: {name}, busy {busy} of the time{meanwhile}.");
    }
    if of_drive >= BOTTLENECK_SHARE_MIN && media >= BOTTLENECK_SHARE_MIN {
        return format!(
            "Bottleneck: {name}, busy {busy} of the time: sectors pass under its heads in {}{meanwhile}.",
            format_percent(media)
        );
    }
    if of_drive >= BOTTLENECK_SHARE_MIN {
        return format!(
            "Bottleneck: {name}, busy {busy} of the time, though data sectors pass under its heads in only {}{meanwhile}.",
            format_percent(media)
        );
    }
    if let Some(full) = used
        .controller_shares
        .iter()
        .find(|one| one.busy_share >= BOTTLENECK_SHARE_MIN)
    {
        return format!(
            "Bottleneck: the controller, busy {} of the time; {name} is busy {busy}{beside}.",
            format_percent(full.busy_share)
        );
    }
    let links = used.link_shares.iter().copied().enumerate();
    let fullest = links.max_by(|one, other| one.1.total_cmp(&other.1));
    if let Some((number, link)) = fullest.filter(|(_, link)| *link >= BOTTLENECK_SHARE_MIN) {
        return format!(
            "Bottleneck: the link of drive {}, busy {} of the time; {name} is busy {busy}{beside}.",
            number + 1,
            format_percent(link)
        );
    }
    match processor {
        Some(processor) => format!(
            "No component is busy all the time: {name} {busy}, the processor {processor}, {with_any} at once {both}; for the rest of the time they wait for each other."
        ),
        None => format!(
            "No component is busy all the time: {name} {busy}; the rest of the time it waits for the program."
        ),
    }
}

/// Component of the computer that may limit the rate.
struct LimitingPart {
    name: String,
    /// Busy share of the component, of the elapsed time.
    busy_share: f64,
    /// Share of the elapsed time in which the component can limit requests. Background work behind
    /// a buffer does not count.
    limited_share: f64,
}

impl LimitingPart {
    fn new(name: String, share: f64) -> Self {
        Self {
            name,
            busy_share: share,
            limited_share: share,
        }
    }
}

/// Describes the bottleneck inside a drive that has a link and a controller of its own; `None`
/// where requests wait for the media of a disk.
fn describe_drive_part(account: &TimeAccount, drive: &DriveAccount, name: &str) -> Option<String> {
    let used = &account.utilisation;
    let link = used.link_shares.get(drive.drive_index as usize).copied()?;
    let share = |part| used.component_share(drive.drive_index, part);
    let awaited = used.awaited_shares.get(drive.drive_index as usize).copied();
    let media = used.drive_shares[drive.drive_index as usize];
    let mut parts = vec![
        LimitingPart::new(format!("the link of drive {}", drive.drive_index + 1), link),
        LimitingPart::new(
            format!("the controller of {name}"),
            share(DriveComponent::Controller)?,
        ),
    ];
    let dies = share(DriveComponent::Dies);
    match dies {
        Some(dies) => {
            let channels = share(DriveComponent::Channels).unwrap_or_default();
            let of_media = |kind: &str, share: f64| LimitingPart {
                limited_share: share.min(media),
                ..LimitingPart::new(format!("the {kind} of {name} (mean of all)"), share)
            };
            parts.extend([of_media("channels", channels), of_media("dies", dies)]);
        }
        None => {
            // Media that requests wait for are named by the arm and the sectors that pass.
            let awaited = awaited.unwrap_or_default();
            if parts.iter().all(|part| part.busy_share <= awaited) {
                return None;
            }
        }
    }
    let processor = used.processor_share;
    parts.extend(processor.map(|share| LimitingPart::new("the processor".to_owned(), share)));
    parts.sort_by(|one, other| other.limited_share.total_cmp(&one.limited_share));
    let list = |parts: &[LimitingPart]| {
        let shares = parts.iter();
        let shares =
            shares.map(|part| format!("{} {}", part.name, format_percent(part.busy_share)));
        shares.collect::<Vec<_>>().join(", ")
    };
    let own_work = match dies {
        Some(dies) if dies > media + MENTION_SHARE_MIN => format!(
            " The dies write the buffered data; requests wait for them for {} of the time.",
            format_percent(media)
        ),
        Some(_) => String::new(),
        None => format!(
            " The arm is busy {} of the time; requests wait for it for {} of the time.",
            format_percent(media),
            format_percent(awaited.unwrap_or_default())
        ),
    };
    let (first, others) = parts.split_first()?;
    Some(match first.limited_share >= BOTTLENECK_SHARE_MIN {
        true => format!(
            "Bottleneck: {}, busy {} of the time; {}.{own_work}",
            first.name,
            format_percent(first.busy_share),
            list(others)
        ),
        false => format!(
            "No component is busy all the time: {}; a request passes through them in turn.{own_work}",
            list(&parts)
        ),
    })
}

/// Describes the cost of a block in revolutions of the drive.
fn describe_request_cost(account: &TimeAccount) -> Option<String> {
    let drive = find_busiest_drive(account)?;
    // What does not turn is not counted in revolutions.
    if drive.usual_request_count < 2 || drive.revolution_ns == 0.0 {
        return None;
    }
    let count = drive.request_count as f64;
    let each_ns = account.elapsed.0 as f64 / count;
    // Requests that the buffer answers do not wait for the platter.
    if each_ns < drive.revolution_ns * MISSED_REVOLUTIONS_MENTIONED_MIN {
        return None;
    }
    let in_revolutions = |ns: f64| format!("{:.2}", ns / count / drive.revolution_ns);
    let of = &drive.time_parts;
    let parts = [
        ("media transfer", of.media_transfer_time),
        ("seeking", of.seek_time),
        ("head switches", of.head_switch_time),
        ("rotational latency", of.rotational_latency_time),
        ("missed revolutions", of.missed_revolution_time),
        ("destaging from the drive's buffer", of.destage_time),
        ("cleaning of bands", of.cleaning_time),
        ("reading ahead", of.read_ahead_time),
        ("the drive idle", drive.idle_time),
    ];
    let parts = parts.map(|(name, ns)| (name, ns.0 as f64));
    let elapsed = account.elapsed.0.max(1) as f64;
    let named: Vec<String> = parts
        .iter()
        .filter(|(_, ns)| ns / elapsed >= MENTION_SHARE_MIN)
        .map(|(name, ns)| format!("{} {name}", in_revolutions(*ns)))
        .collect();
    let all_alike = drive.usual_request_count * 10 >= drive.request_count * 9;
    let block = match all_alike {
        true => format!(
            "Each request of {}",
            format_bytes(drive.usual_request_bytes)
        ),
        false => "An average request".to_owned(),
    };
    Some(format!(
        "{block} takes {:.2} revolutions ({}): {}.",
        each_ns / drive.revolution_ns,
        format_time_ms(each_ns),
        named.join(", ")
    ))
}

/// Describes the deadline that costs the most missed revolutions, or else the program's work on the
/// processor.
fn describe_main_cost(account: &TimeAccount) -> Option<String> {
    let requests: u64 = account
        .drive_accounts
        .iter()
        .map(|drive| drive.request_count)
        .sum();
    let worst = account
        .missed_deadlines
        .iter()
        .max_by_key(|missed| missed.lost_ns);
    let elapsed = account.elapsed.0.max(1) as f64 * account.drive_accounts.len().max(1) as f64;
    if let Some(worst) = worst.filter(|worst| worst.lost_ns as f64 / elapsed >= MENTION_SHARE_MIN) {
        return Some(describe_missed(worst, requests));
    }
    describe_processor_work(account)
}

fn describe_processor_work(account: &TimeAccount) -> Option<String> {
    let elapsed = account.elapsed.0.max(1) as f64;
    let ledger = account.ledger.entries().iter();
    let mut work: Vec<_> = ledger
        .filter(|entry| is_processor_stage(entry.stage))
        .collect();
    work.sort_by_key(|entry| std::cmp::Reverse(entry.duration));
    let told: Vec<String> = work
        .iter()
        .take(3)
        .map(|entry| {
            let share = format_percent(entry.duration.0 as f64 / elapsed);
            format!("{} {share}", super::words::stage_label(entry.stage))
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "On the processor the program spends most of its time on {}.",
            told.join(", ")
        )
    })
}

fn describe_missed(worst: &MissedDeadline, requests: u64) -> String {
    let often = format!("In {} of {requests} requests", worst.missed_count);
    let cost = format_time_ms(worst.lost_ns as f64 / worst.missed_count.max(1) as f64);
    match (worst.late_median_ns, worst.late_max_ns) {
        (Some(median), Some(most)) => format!(
            "{often} {} {} after its deadline (the median; at most {}), which costs {cost} each time.",
            describe_late_event(worst.deadline),
            format_time_ms(median as f64),
            format_time_ms(most as f64)
        ),
        _ => format!(
            "{often} {} too late, which costs {cost} each time.",
            describe_late_event(worst.deadline)
        ),
    }
}
