//! Thread that copies records from the ring while programs write them.

use crate::host::bpf::{BpfMap, RingBufferReader};
use crate::host::clock::monotonic_now;
use diskperf_timeline::Nanoseconds;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two passes over the ring.
const PASS_INTERVAL: Duration = Duration::from_millis(20);
/// Size of all records that are kept, in bytes: some three million events. Later ones are counted
/// as lost, so that a long part takes a bounded amount of memory.
const RECORDED_BYTES_MAX: usize = 160 << 20;

/// Records of one recording.
#[derive(Debug, Default)]
pub(super) struct RecordedBytes {
    /// Records, each after its length of two bytes.
    bytes: Vec<u8>,
    /// Losses that were noticed, in order of time.
    pub(super) losses: Vec<RecordLoss>,
}

/// Loss of records between two passes over the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordLoss {
    pub(super) since: Nanoseconds,
    pub(super) noticed_at: Nanoseconds,
    pub(super) count: u64,
}

impl RecordedBytes {
    /// Adds a record; returns `false` for want of space.
    fn add(&mut self, record: &[u8]) -> bool {
        let Ok(length) = u16::try_from(record.len()) else {
            return false;
        };
        let fits = self.bytes.len() + record.len() <= RECORDED_BYTES_MAX;
        if fits {
            self.bytes.extend(length.to_le_bytes());
            self.bytes.extend(record);
        }
        fits
    }

    /// Returns the records in the order of the ring.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<2>()?;
            let (record, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = behind;
            Some(record)
        })
    }
}

/// Thread that reads the ring until it is told to end.
#[derive(Debug)]
pub(super) struct RingReader {
    thread: JoinHandle<(RecordedBytes, RingBufferReader)>,
    ends: Arc<AtomicBool>,
}

impl RingReader {
    pub(super) fn start(ring: RingBufferReader, losses: &BpfMap) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let mut pass = RingPass {
            ring,
            losses: losses.try_clone()?,
            recorded: RecordedBytes::default(),
            loss_count: 0,
            last_pass_at: monotonic_now(),
        };
        // What an earlier recording left is none of this one.
        pass.ring.read_records(|_| ());
        pass.loss_count = pass.losses.sum_counter(0)?;
        let flag = Arc::clone(&ends);
        let thread = std::thread::Builder::new()
            .name("dp-events".to_owned())
            .spawn(move || {
                while !flag.load(Ordering::Acquire) {
                    std::thread::park_timeout(PASS_INTERVAL);
                    pass.read();
                }
                pass.read();
                (pass.recorded, pass.ring)
            })?;
        Ok(Self { thread, ends })
    }

    pub(super) fn finish(self) -> (RecordedBytes, RingBufferReader) {
        self.ends.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// State of the reading thread.
struct RingPass {
    ring: RingBufferReader,
    losses: BpfMap,
    recorded: RecordedBytes,
    loss_count: u64,
    last_pass_at: Nanoseconds,
}

impl RingPass {
    fn read(&mut self) {
        let mut dropped = 0;
        let recorded = &mut self.recorded;
        // A record that is still being written is read by the next pass.
        self.ring
            .read_records(|record| dropped += u64::from(!recorded.add(record)));
        let now = monotonic_now();
        let counted = self.losses.sum_counter(0).unwrap_or(self.loss_count);
        let count = counted.saturating_sub(self.loss_count) + dropped;
        if count > 0 {
            self.recorded.losses.push(RecordLoss {
                since: self.last_pass_at,
                noticed_at: now,
                count,
            });
        }
        self.loss_count = counted;
        self.last_pass_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_added() {
        let mut recorded = RecordedBytes::default();
        let records: [&[u8]; 3] = [b"", b"abc", &[7; 300]];
        for record in records {
            assert!(recorded.add(record));
        }
        assert!(!recorded.add(&[0; 70_000]), "a length that no record has");
        assert_eq!(recorded.iter().collect::<Vec<_>>(), records);
    }
}
