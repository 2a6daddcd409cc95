//! Thread that copies records from the ring while programs write them.

use crate::host::bpf::{BpfMap, RingBufferReader, RingState};
use crate::host::clock::monotonic_now;
use diskperf_timeline::Nanoseconds;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two passes over the ring.
const PASS_INTERVAL: Duration = Duration::from_millis(20);
/// Time after which a record that is still being written is given up.
const BUSY_MAX: Duration = Duration::from_secs(1);
/// Size of all records that are kept, in bytes: some three million events. Later ones are counted
/// as lost, so that a long part takes a bounded amount of memory.
const RECORDED_BYTES_MAX: usize = 160 << 20;

/// Records of one recording.
#[derive(Debug, Default)]
pub(super) struct RecordedBytes {
    /// Records, each after its length of two bytes.
    bytes: Vec<u8>,
    /// Losses that were noticed.
    pub(super) losses: Vec<RecordLoss>,
    started_at: Nanoseconds,
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

    /// Adds a loss that may have been at any time since the start of the recording.
    pub(super) fn add_untimed_loss(&mut self, count: u64) {
        if count > 0 {
            self.losses.push(RecordLoss {
                since: self.started_at,
                noticed_at: monotonic_now(),
                count,
            });
        }
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

/// Thread that reads the ring until it is told to end, or the reader is dropped.
#[derive(Debug)]
pub(super) struct RingReader {
    /// Thread of the passes; `None` once it has ended.
    thread: Option<JoinHandle<RingPass>>,
    ends: Arc<AtomicBool>,
}

impl RingReader {
    /// Starts the thread. An error gives the ring back.
    pub(super) fn start(
        ring: RingBufferReader,
        losses: &BpfMap,
    ) -> Result<Self, (RingBufferReader, io::Error)> {
        let counted = losses.try_clone().and_then(|losses| {
            let count = losses.sum_counter(0)?;
            Ok((losses, count))
        });
        let (losses, loss_count) = match counted {
            Ok(counted) => counted,
            Err(error) => return Err((ring, error)),
        };
        let now = monotonic_now();
        let mut pass = RingPass {
            ring,
            losses,
            recorded: RecordedBytes {
                started_at: now,
                ..RecordedBytes::default()
            },
            loss_count,
            last_pass_at: now,
            drained_at: now,
        };
        // What an earlier recording left is none of this one.
        pass.ring.read_records(|_| ());
        let ends = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ends);
        // The ring stays here until there is a thread for it.
        let (sender, receiver) = std::sync::mpsc::sync_channel::<RingPass>(1);
        let spawned = std::thread::Builder::new()
            .name("dp-events".to_owned())
            .spawn(move || {
                let mut pass = receiver.recv().expect("the sender passes the ring on");
                while !flag.load(Ordering::Acquire) {
                    std::thread::park_timeout(PASS_INTERVAL);
                    pass.read();
                }
                pass.read_rest();
                pass
            });
        match spawned {
            Ok(thread) => {
                sender.send(pass).expect("the thread waits for the ring");
                Ok(Self {
                    thread: Some(thread),
                    ends,
                })
            }
            Err(error) => Err((pass.ring, error)),
        }
    }

    pub(super) fn finish(mut self) -> (RecordedBytes, RingBufferReader) {
        let pass = self.join().expect("a thread that nobody has joined");
        let pass = pass.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (pass.recorded, pass.ring)
    }

    fn join(&mut self) -> Option<std::thread::Result<RingPass>> {
        self.ends.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        Some(thread.join())
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        // A panic of the thread has been reported, and its records are not wanted.
        let _ = self.join();
    }
}

/// State of the reading thread.
#[derive(Debug)]
struct RingPass {
    ring: RingBufferReader,
    losses: BpfMap,
    recorded: RecordedBytes,
    loss_count: u64,
    last_pass_at: Nanoseconds,
    /// Start of the last pass that found no record in the way.
    drained_at: Nanoseconds,
}

impl RingPass {
    fn read(&mut self) -> RingState {
        // A record that is dropped below may be as old as the last pass, and a loss that comes
        // while this one runs may be counted by the next.
        let (since, started_at) = (self.last_pass_at, monotonic_now());
        self.last_pass_at = started_at;
        let mut dropped = 0;
        let recorded = &mut self.recorded;
        // A record that is still being written is read by the next pass.
        let state = self
            .ring
            .read_records(|record| dropped += u64::from(!recorded.add(record)));
        let counted = self.losses.sum_counter(0).unwrap_or(self.loss_count);
        let count = counted.saturating_sub(self.loss_count) + dropped;
        if count > 0 {
            self.recorded.losses.push(RecordLoss {
                since,
                noticed_at: monotonic_now(),
                count,
            });
        }
        self.loss_count = counted;
        if state == RingState::Drained {
            self.drained_at = started_at;
        }
        state
    }

    /// Reads what is left after the programs have ended. A writer that never finishes its record
    /// hides those behind it, which are lost then: at least the one.
    fn read_rest(&mut self) {
        let give_up_at = Instant::now() + BUSY_MAX;
        while self.read() == RingState::RecordBusy {
            if Instant::now() >= give_up_at {
                self.recorded.losses.push(RecordLoss {
                    since: self.drained_at,
                    noticed_at: monotonic_now(),
                    count: 1,
                });
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
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

    #[test]
    fn a_loss_at_an_unknown_time_covers_the_recording() {
        let mut recorded = RecordedBytes {
            started_at: Nanoseconds(7),
            ..RecordedBytes::default()
        };
        recorded.add_untimed_loss(0);
        assert_eq!(recorded.losses, []);
        recorded.add_untimed_loss(3);
        let [loss] = recorded.losses[..] else {
            panic!("one loss, not {:?}", recorded.losses);
        };
        assert_eq!((loss.since, loss.count), (Nanoseconds(7), 3));
        assert!(loss.noticed_at > loss.since);
    }
}
