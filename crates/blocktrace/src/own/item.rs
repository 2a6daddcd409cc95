//! Items of a block of diskperf's trace format. The kind of an item determines its bytes.

use crate::record::{DeviceIndex, TraceRecord, TracedOperation};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TraceItem {
    Device {
        number: u32,
        name: Vec<u8>,
    },
    /// Item for the issue of the next request. Requests are numbered in the order of issue.
    Issue(TraceRecord),
    Completion {
        number: u64,
        at_ns: u64,
        errno: u16,
    },
    /// Item for a number of events that the recorder missed.
    LostEvents(u64),
    /// Item for the beginning of a part of the trace. The items up to the next such item belong to
    /// the part.
    PartStart {
        at_ns: u64,
        name: Vec<u8>,
    },
    /// Item for the end of the latest part. It says whether the recorder's results include the
    /// part.
    PartEnd {
        at_ns: u64,
        counts: bool,
    },
    Information {
        name: Vec<u8>,
        value: Vec<u8>,
    },
}

const DEVICE_KIND: u8 = 1;
const ISSUE_KIND: u8 = 2;
const COMPLETION_KIND: u8 = 3;
const LOST_KIND: u8 = 4;
const PART_START_KIND: u8 = 5;
const PART_END_KIND: u8 = 6;
const INFORMATION_KIND: u8 = 7;

const DEVICE_BYTES: usize = 8;
const ISSUE_BYTES: usize = 40;
const COMPLETION_BYTES: usize = 24;
const LOST_BYTES: usize = 16;
const PART_BYTES: usize = 16;
const INFORMATION_BYTES: usize = 8;

const FUA_FLAG: u8 = 1;
const SYNC_FLAG: u8 = 2;
const THINK_TIME_FLAG: u8 = 4;

const EXCLUDED_PART_FLAG: u8 = 1;

/// Maximum length of an item, in bytes.
pub(crate) const ITEM_BYTES_MAX: usize = PART_BYTES + 2 * NAME_BYTES_MAX;
/// Maximum length of a name in bytes: of a device, of a part, or of information on a trace.
pub const NAME_BYTES_MAX: usize = 4096;

const OPERATIONS: [TracedOperation; 5] = [
    TracedOperation::Read,
    TracedOperation::Write,
    TracedOperation::Flush,
    TracedOperation::Discard,
    TracedOperation::WriteZeroes,
];

impl TraceItem {
    pub(crate) fn encode_into(&self, block: &mut Vec<u8>) {
        match self {
            Self::Device { number, name } => {
                block.extend([DEVICE_KIND, 0]);
                block.extend((name.len() as u16).to_le_bytes());
                block.extend(number.to_le_bytes());
                block.extend(name);
            }
            Self::Issue(record) => encode_issue(record, block),
            Self::Completion {
                number,
                at_ns,
                errno,
            } => {
                block.extend([COMPLETION_KIND, 0]);
                block.extend(errno.to_le_bytes());
                block.extend([0; 4]);
                block.extend(number.to_le_bytes());
                block.extend(at_ns.to_le_bytes());
            }
            Self::LostEvents(events) => {
                block.extend([LOST_KIND, 0, 0, 0, 0, 0, 0, 0]);
                block.extend(events.to_le_bytes());
            }
            Self::PartStart { at_ns, name } => {
                block.extend([PART_START_KIND, 0]);
                block.extend((name.len() as u16).to_le_bytes());
                block.extend([0; 4]);
                block.extend(at_ns.to_le_bytes());
                block.extend(name);
            }
            Self::PartEnd { at_ns, counts } => {
                let flags = if *counts { 0 } else { EXCLUDED_PART_FLAG };
                block.extend([PART_END_KIND, flags, 0, 0, 0, 0, 0, 0]);
                block.extend(at_ns.to_le_bytes());
            }
            Self::Information { name, value } => {
                block.extend([INFORMATION_KIND, 0]);
                block.extend((name.len() as u16).to_le_bytes());
                block.extend((value.len() as u32).to_le_bytes());
                block.extend(name);
                block.extend(value);
            }
        }
    }

    /// Removes the first item from a payload and returns it.
    ///
    /// # Errors
    ///
    /// Returns a description of the error in the item.
    pub(crate) fn decode_next(payload: &mut &[u8]) -> Result<Self, String> {
        let kind = payload.first().copied().unwrap_or_default();
        match kind {
            DEVICE_KIND => {
                let head = take_bytes(payload, DEVICE_BYTES)?;
                let name = take_bytes(payload, usize::from(read_u16(head, 2)))?.to_vec();
                let number = read_u32(head, 4);
                Ok(Self::Device { number, name })
            }
            ISSUE_KIND => decode_issue(take_bytes(payload, ISSUE_BYTES)?),
            COMPLETION_KIND => {
                let item = take_bytes(payload, COMPLETION_BYTES)?;
                Ok(Self::Completion {
                    number: read_u64(item, 8),
                    at_ns: read_u64(item, 16),
                    errno: read_u16(item, 2),
                })
            }
            LOST_KIND => Ok(Self::LostEvents(read_u64(
                take_bytes(payload, LOST_BYTES)?,
                8,
            ))),
            PART_START_KIND => {
                let head = take_bytes(payload, PART_BYTES)?;
                let name = take_bytes(payload, usize::from(read_u16(head, 2)))?.to_vec();
                let at_ns = read_u64(head, 8);
                Ok(Self::PartStart { at_ns, name })
            }
            PART_END_KIND => {
                let item = take_bytes(payload, PART_BYTES)?;
                Ok(Self::PartEnd {
                    at_ns: read_u64(item, 8),
                    counts: item[1] & EXCLUDED_PART_FLAG == 0,
                })
            }
            INFORMATION_KIND => {
                let head = take_bytes(payload, INFORMATION_BYTES)?;
                let name = take_bytes(payload, usize::from(read_u16(head, 2)))?.to_vec();
                let value = take_bytes(payload, read_u32(head, 4) as usize)?.to_vec();
                Ok(Self::Information { name, value })
            }
            other => Err(format!("item kind {other} is unknown")),
        }
    }
}

fn encode_issue(record: &TraceRecord, block: &mut Vec<u8>) {
    let operation = OPERATIONS.iter().position(|one| *one == record.operation);
    let operation = operation.expect("all operations have a number") as u8;
    let flags = [
        (record.fua, FUA_FLAG),
        (record.sync, SYNC_FLAG),
        (record.think_ns.is_some(), THINK_TIME_FLAG),
    ];
    let flags = flags.iter().filter(|(is_set, _)| *is_set);
    block.extend([ISSUE_KIND, operation, flags.map(|(_, flag)| flag).sum(), 0]);
    block.extend(record.device.0.to_le_bytes());
    for long in [
        record.issued_ns,
        record.offset_bytes,
        record.length_bytes,
        record.think_ns.unwrap_or(0),
    ] {
        block.extend(long.to_le_bytes());
    }
}

fn decode_issue(item: &[u8]) -> Result<TraceItem, String> {
    let operation = OPERATIONS.get(usize::from(item[1])).copied();
    let flags = item[2];
    Ok(TraceItem::Issue(TraceRecord {
        operation: operation.ok_or_else(|| format!("operation {} is unknown", item[1]))?,
        fua: flags & FUA_FLAG != 0,
        sync: flags & SYNC_FLAG != 0,
        device: DeviceIndex(read_u32(item, 4)),
        offset_bytes: read_u64(item, 16),
        length_bytes: read_u64(item, 24),
        think_ns: (flags & THINK_TIME_FLAG != 0).then(|| read_u64(item, 32)),
        ..TraceRecord::issued_at(read_u64(item, 8))
    }))
}

/// Removes the first `count` bytes from a payload and returns them.
fn take_bytes<'a>(payload: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (item, rest) = payload
        .split_at_checked(count)
        .ok_or("an item extends past the end of its block")?;
    *payload = rest;
    Ok(item)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

pub(super) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(super) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
