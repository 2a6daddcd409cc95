//! Parser of trace events in the text form that the kernel prints:
//!
//! ```text
//!            dd-22660   [001] ..... 69938.051718: block_bio_queue: 254,0 WS 255159040 + 256 [dd]
//! ```
//!
//! The task's name takes 16 columns and may contain any characters; the other
//! fields may not.

use super::requests::SECTOR_BYTES;
use crate::host::device::DeviceNumber;
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::block::{BlockOperation, SchedulingState, ThreadSwitch};
use std::io;

/// Parsed line of a tracefs trace.
#[derive(Debug, PartialEq)]
pub(super) enum TraceLine {
    BlockLayerEvent(BlockEvent),
    /// Scheduler switch: a recorded thread lost its processor, another one got it, or both.
    ThreadSwitches([Option<ThreadSwitch>; 2]),
    /// Charge of processor time to a recorded thread.
    CpuCharge(CpuCharge),
}

/// Processor time that a thread was charged for, ending at the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuCharge {
    pub(super) time: Nanoseconds,
    pub(super) thread_id: u32,
    pub(super) cpu_time: Nanoseconds,
}

/// State of a bio or request after a block event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BioStep {
    /// Bio that entered the block layer.
    BioQueued,
    RequestIssued,
    /// Request that returned to the queue without completing.
    RequestRequeued,
    /// Request that completed, entirely or in part.
    RequestCompleted,
}

/// Event of the block layer about one bio or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEvent {
    pub(super) time: Nanoseconds,
    pub(super) step: BioStep,
    pub(super) device: DeviceNumber,
    pub(super) operation: BlockOperation,
    pub(super) sector: u64,
    /// Length in sectors of 512 bytes; 0 if no data moves.
    pub(super) sector_count: u64,
}

/// Columns of the task's name and the hyphen that follows it.
const TASK_NAME_COLUMNS: usize = 17;

/// Parses one line of a trace; `None` for a comment or an event of no interest. `thread_name` is the
/// common name of the recorded threads.
pub(super) fn parse_line(line: &[u8], thread_name: &str) -> io::Result<Option<TraceLine>> {
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(None);
    }
    let broken = || {
        let line = String::from_utf8_lossy(line);
        let text = format!("unexpected trace line `{line}`");
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let rest = String::from_utf8_lossy(line.get(TASK_NAME_COLUMNS..).ok_or_else(broken)?);
    // Number, processor, flags, and the time with a colon behind it.
    let mut rest: &str = &rest;
    let mut word = || -> Option<&str> {
        rest = rest.trim_start();
        let end = rest.find(' ')?;
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    };
    let head = (word(), word(), word(), word());
    let (Some(_), Some(processor), Some(_), Some(time)) = head else {
        return Err(broken());
    };
    if !processor.starts_with('[') {
        return Err(broken());
    }
    let at = time.strip_suffix(':').and_then(parse_time);
    let (Some(at), Some((event, fields))) = (at, rest.trim_start().split_once(": ")) else {
        return Err(broken());
    };
    let step = match event {
        "block_bio_queue" => BioStep::BioQueued,
        "block_rq_issue" => BioStep::RequestIssued,
        "block_rq_requeue" => BioStep::RequestRequeued,
        "block_rq_complete" => BioStep::RequestCompleted,
        "sched_switch" => {
            return Ok(Some(TraceLine::ThreadSwitches(parse_switches(
                at,
                fields,
                thread_name,
            ))));
        }
        "sched_waking" => {
            return Ok(Some(TraceLine::ThreadSwitches([
                parse_wake_up(at, fields, thread_name),
                None,
            ])));
        }
        "sched_stat_runtime" => {
            return Ok(parse_cpu_charge(at, fields, thread_name).map(TraceLine::CpuCharge));
        }
        _ => return Ok(None),
    };
    let event = parse_block_event(at, step, fields).ok_or_else(broken)?;
    Ok(Some(TraceLine::BlockLayerEvent(event)))
}

/// Parses a time such as `69938.051718` (seconds and microseconds).
fn parse_time(time: &str) -> Option<Nanoseconds> {
    let (seconds, microseconds) = time.split_once('.')?;
    (microseconds.len() == 6).then_some(())?;
    let seconds: u64 = seconds.parse().ok()?;
    let microseconds: u64 = microseconds.parse().ok()?;
    let seconds_ns = seconds.checked_mul(1_000_000_000)?;
    Some(Nanoseconds(seconds_ns.checked_add(microseconds * 1000)?))
}

/// Parses a bio event, `254,0 WS 255159040 + 256 [dd]`, or a request event, `254,0 WS 131072 ()
/// 255159040 + 256 be,0,4 [dd]`, which has length and command before the sector.
fn parse_block_event(at: Nanoseconds, step: BioStep, fields: &str) -> Option<BlockEvent> {
    let (before, after) = fields.split_once(" + ")?;
    let sectors: u64 = after.split(' ').next()?.parse().ok()?;
    let mut words = before.split(' ');
    let (major, minor) = words.next()?.split_once(',')?;
    let operation = parse_operation(words.next()?);
    let sector: u64 = words.next_back()?.parse().ok()?;
    // No device has a byte that 64 bits cannot number. What moves no data has a
    // number all the same, which means nothing.
    if sectors > 0 {
        sector.checked_add(sectors)?.checked_mul(SECTOR_BYTES)?;
    }
    Some(BlockEvent {
        time: at,
        step,
        device: DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        },
        operation,
        // Of what moves no data, it is nowhere.
        sector: if sectors == 0 { 0 } else { sector },
        sector_count: sectors,
    })
}

/// Returns the operation that the kernel's `rwbs` letters describe. A leading F requests a cache
/// flush first; the letters after the operation are modifiers.
fn parse_operation(letters: &str) -> BlockOperation {
    let rest = letters.strip_prefix('F').unwrap_or(letters);
    let letters = match rest.chars().next() {
        Some('R' | 'W' | 'F' | 'D' | 'N' | 'Z') => rest,
        _ => letters,
    };
    let how = letters.get(1..).unwrap_or_default();
    match letters.chars().next() {
        Some('R') if how.contains('A') => BlockOperation::ReadAhead,
        Some('R') => BlockOperation::Read,
        Some('W') => BlockOperation::Write,
        Some('F') => BlockOperation::Flush,
        Some('D') => BlockOperation::Discard,
        _ => BlockOperation::Other,
    }
}

/// Parses a switch event: `prev_comm=a prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=b
/// next_pid=8 next_prio=120`.
fn parse_switches(at: Nanoseconds, fields: &str, thread_name: &str) -> [Option<ThreadSwitch>; 2] {
    let left = || {
        let rest = fields.strip_prefix(&format!("prev_comm={thread_name} prev_pid="))?;
        let thread = rest.split(' ').next()?.parse().ok()?;
        let state = rest.split(" prev_state=").nth(1)?;
        let to = match state.starts_with('R') {
            true => SchedulingState::Preempted,
            false => SchedulingState::Waiting,
        };
        Some(ThreadSwitch {
            switch_time: at,
            thread_id: thread,
            new_state: to,
        })
    };
    let came = || {
        let (_, rest) = fields.split_once(&format!(" ==> next_comm={thread_name} next_pid="))?;
        let thread = rest.split(' ').next()?.parse().ok()?;
        let to = SchedulingState::Running;
        Some(ThreadSwitch {
            switch_time: at,
            thread_id: thread,
            new_state: to,
        })
    };
    [left(), came()]
}

/// Parses a wake-up event: `comm=a pid=7 prio=120 target_cpu=001`.
fn parse_wake_up(at: Nanoseconds, fields: &str, thread_name: &str) -> Option<ThreadSwitch> {
    let rest = fields.strip_prefix(&format!("comm={thread_name} pid="))?;
    Some(ThreadSwitch {
        switch_time: at,
        thread_id: rest.split(' ').next()?.parse().ok()?,
        new_state: SchedulingState::Woken,
    })
}

/// Parses a charge of processor time: `comm=a pid=7 runtime=6580 [ns]`. Kernels before Linux 6.7
/// append more fields.
fn parse_cpu_charge(at: Nanoseconds, fields: &str, thread_name: &str) -> Option<CpuCharge> {
    let rest = fields.strip_prefix(&format!("comm={thread_name} pid="))?;
    let (thread, rest) = rest.split_once(" runtime=")?;
    Some(CpuCharge {
        time: at,
        thread_id: thread.parse().ok()?,
        cpu_time: Nanoseconds(rest.split(' ').next()?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests;
