//! Items of a block of diskperf's trace format. The kind of an item determines its bytes.

use crate::record::{DeviceIndex, Operation, Record};

/// Item of a block of diskperf's trace format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Item that names a device.
    Device { number: u32, name: Vec<u8> },
    /// Item for the issue of the next request. Requests are numbered in the order of issue.
    Issue(Record),
    /// Item for the completion of the request with this number.
    Completion { number: u64, at_ns: u64, errno: u16 },
    /// Item for a number of events that the recorder missed.
    Lost(u64),
    /// Item for the beginning of a part of the trace. The items up to the next such item belong to
    /// the part.
    PartBegins { at_ns: u64, name: Vec<u8> },
    /// Item for the end of the latest part. It says whether the recorder's results include the
    /// part.
    PartEnds { at_ns: u64, counts: bool },
    /// Item with information on the whole trace.
    About { name: Vec<u8>, value: Vec<u8> },
}

const DEVICE: u8 = 1;
const ISSUE: u8 = 2;
const COMPLETION: u8 = 3;
const LOST: u8 = 4;
const PART_BEGINS: u8 = 5;
const PART_ENDS: u8 = 6;
const ABOUT: u8 = 7;

const DEVICE_BYTES: usize = 8;
const ISSUE_BYTES: usize = 40;
const COMPLETION_BYTES: usize = 24;
const LOST_BYTES: usize = 16;
const PART_BYTES: usize = 16;
const ABOUT_BYTES: usize = 8;

const FUA: u8 = 1;
const SYNC: u8 = 2;
const HAS_THINK: u8 = 4;

const COUNTS_NOT: u8 = 1;

/// Maximum length of an item, in bytes.
pub(crate) const LONGEST: usize = PART_BYTES + 2 * LONGEST_NAME;
/// Maximum length of a name in bytes: of a device, of a part, or of information on a trace.
pub const LONGEST_NAME: usize = 4096;

const OPERATIONS: [Operation; 5] = [
    Operation::Read,
    Operation::Write,
    Operation::Flush,
    Operation::Discard,
    Operation::WriteZeroes,
];

impl Item {
    /// Appends the item to a block.
    pub(crate) fn put(&self, block: &mut Vec<u8>) {
        match self {
            Self::Device { number, name } => {
                block.extend([DEVICE, 0]);
                block.extend((name.len() as u16).to_le_bytes());
                block.extend(number.to_le_bytes());
                block.extend(name);
            }
            Self::Issue(record) => put_issue(record, block),
            Self::Completion {
                number,
                at_ns,
                errno,
            } => {
                block.extend([COMPLETION, 0]);
                block.extend(errno.to_le_bytes());
                block.extend([0; 4]);
                block.extend(number.to_le_bytes());
                block.extend(at_ns.to_le_bytes());
            }
            Self::Lost(events) => {
                block.extend([LOST, 0, 0, 0, 0, 0, 0, 0]);
                block.extend(events.to_le_bytes());
            }
            Self::PartBegins { at_ns, name } => {
                block.extend([PART_BEGINS, 0]);
                block.extend((name.len() as u16).to_le_bytes());
                block.extend([0; 4]);
                block.extend(at_ns.to_le_bytes());
                block.extend(name);
            }
            Self::PartEnds { at_ns, counts } => {
                let flags = if *counts { 0 } else { COUNTS_NOT };
                block.extend([PART_ENDS, flags, 0, 0, 0, 0, 0, 0]);
                block.extend(at_ns.to_le_bytes());
            }
            Self::About { name, value } => {
                block.extend([ABOUT, 0]);
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
    pub(crate) fn take(payload: &mut &[u8]) -> Result<Self, String> {
        let kind = payload.first().copied().unwrap_or_default();
        match kind {
            DEVICE => {
                let head = bytes_of(payload, DEVICE_BYTES)?;
                let name = bytes_of(payload, usize::from(short(head, 2)))?.to_vec();
                let number = word(head, 4);
                Ok(Self::Device { number, name })
            }
            ISSUE => issue(bytes_of(payload, ISSUE_BYTES)?),
            COMPLETION => {
                let item = bytes_of(payload, COMPLETION_BYTES)?;
                Ok(Self::Completion {
                    number: long(item, 8),
                    at_ns: long(item, 16),
                    errno: short(item, 2),
                })
            }
            LOST => Ok(Self::Lost(long(bytes_of(payload, LOST_BYTES)?, 8))),
            PART_BEGINS => {
                let head = bytes_of(payload, PART_BYTES)?;
                let name = bytes_of(payload, usize::from(short(head, 2)))?.to_vec();
                let at_ns = long(head, 8);
                Ok(Self::PartBegins { at_ns, name })
            }
            PART_ENDS => {
                let item = bytes_of(payload, PART_BYTES)?;
                Ok(Self::PartEnds {
                    at_ns: long(item, 8),
                    counts: item[1] & COUNTS_NOT == 0,
                })
            }
            ABOUT => {
                let head = bytes_of(payload, ABOUT_BYTES)?;
                let name = bytes_of(payload, usize::from(short(head, 2)))?.to_vec();
                let value = bytes_of(payload, word(head, 4) as usize)?.to_vec();
                Ok(Self::About { name, value })
            }
            other => Err(format!("there is no item of kind {other}")),
        }
    }
}

fn put_issue(record: &Record, block: &mut Vec<u8>) {
    let operation = OPERATIONS.iter().position(|one| *one == record.operation);
    let operation = operation.expect("all operations have a number") as u8;
    let flags = [
        (record.fua, FUA),
        (record.sync, SYNC),
        (record.think_ns.is_some(), HAS_THINK),
    ];
    let flags = flags.iter().filter(|(is_set, _)| *is_set);
    block.extend([ISSUE, operation, flags.map(|(_, flag)| flag).sum(), 0]);
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

fn issue(item: &[u8]) -> Result<Item, String> {
    let operation = OPERATIONS.get(usize::from(item[1])).copied();
    let flags = item[2];
    Ok(Item::Issue(Record {
        operation: operation.ok_or_else(|| format!("there is no operation {}", item[1]))?,
        fua: flags & FUA != 0,
        sync: flags & SYNC != 0,
        device: DeviceIndex(word(item, 4)),
        offset_bytes: long(item, 16),
        length_bytes: long(item, 24),
        think_ns: (flags & HAS_THINK != 0).then(|| long(item, 32)),
        ..Record::at(long(item, 8))
    }))
}

/// Removes the first `count` bytes from a payload and returns them.
fn bytes_of<'a>(payload: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (item, rest) = payload
        .split_at_checked(count)
        .ok_or("an item goes on past the end of its block")?;
    *payload = rest;
    Ok(item)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

pub(super) fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}
