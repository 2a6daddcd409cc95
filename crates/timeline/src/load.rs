//! What a worker with several requests under way measured of itself in one repetition:
//! each operation's latencies, how late the generator was, and the course over time.

pub(crate) mod compact;

use crate::Nanoseconds;
use crate::histogram::Histogram;
use crate::verified::Verified;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How requests were handed to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring.
    #[default]
    IoUring,
    /// io_uring whose submission queue a thread of the kernel polls (SQPOLL).
    IoUringSqPoll,
    /// A pool of threads with preadv2 and pwritev2.
    Threads,
    /// Copies to and from memory-mapped files.
    Mapped,
    /// Nothing: a request completes as it is submitted. What is left is the cost of
    /// generating load.
    Null,
    /// A model.
    Model,
    /// One system call after the other.
    Calls,
}

/// What one worker's requests took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasure {
    /// How requests were handed to the system.
    pub engine: Engine,
    /// Requests under way at once, at most.
    pub depth: u32,
    /// Requests that read.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub read: OperationMeasure,
    /// Requests that write.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub write: OperationMeasure,
    /// fsync and fdatasync.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub sync: OperationMeasure,
    /// Discards.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub discard: OperationMeasure,
    /// Transactions, of programs that have them: from the first write to the end of the
    /// sync that makes it durable.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub commit: OperationMeasure,
    /// Files that were made: opened, written and closed, without what makes them durable.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub create: OperationMeasure,
    /// stat(2).
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub stat: OperationMeasure,
    /// rename(2).
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub rename: OperationMeasure,
    /// unlink(2).
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub unlink: OperationMeasure,
    /// In open loop: how late after its intended moment each request was issued.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional")]
    pub lag: Option<Histogram>,
    /// In open loop: requests that were issued late because all slots were under way then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_up: u64,
    /// The most requests that were under way at once, of programs that say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deepest: u64,
    /// In open loop: requests that had arrived and were not complete at the end. They are
    /// among the responses with the time that they had waited until then.
    #[serde(default)]
    pub unfinished: u64,
    /// Requests that failed with errors which the program passes over. They are in no other
    /// count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Number of the first of these errors; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_error: u64,
    /// The course over time, in intervals of [`LoadMeasure::interval`] from the start of
    /// the timed part; the last one may be shorter.
    #[serde(default)]
    pub series: Vec<SeriesPoint>,
    /// The length of an interval of the series: of a long one a multiple of what was
    /// asked for.
    #[serde(default)]
    pub interval: Nanoseconds,
    /// Why requests were not handed to the system as they would best be, if so: in words,
    /// as that threads took io_uring's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_note: Option<String>,
    /// How the program came to its end, where a reader must know it: in words, as whether
    /// a job that was to end when it was steady came to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_note: Option<String>,
    /// Blocks that were read back and compared with what was written, of a program that
    /// verifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// What requests of one operation took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationMeasure {
    /// Bytes that they moved.
    pub bytes: u64,
    /// From the start (in open loop the intended one) until the completion was taken.
    /// Its count is that of the requests.
    #[serde(with = "compact")]
    pub response: Histogram,
    /// From the start of the call that submitted it until that call returned: what the
    /// caller could do nothing else in. It is a part of `response`.
    #[serde(with = "compact")]
    pub submit: Histogram,
    /// From the return of the call that submitted it until the completion was taken, of each
    /// request. It is a part of `response`. Runs of early versions have none.
    #[serde(default, with = "compact", skip_serializing_if = "Histogram::is_empty")]
    pub completion: Histogram,
    /// From the start of the first to the end of the last, where a program makes its
    /// operations one kind after the other; 0 where all are made all the time.
    #[serde(default, skip_serializing_if = "Nanoseconds::is_zero")]
    pub span: Nanoseconds,
}

/// One interval of the course over time. What completed in it counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Requests that read.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Requests that write.
    pub writes: u64,
    /// What was done to names: files made, stat(2), rename(2), unlink(2).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub name_calls: u64,
    /// Transactions, of programs that have them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commits: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Responses of the transactions, or where a program has none of all else, to two
    /// significant digits.
    #[serde(with = "compact")]
    pub response: Histogram,
}

impl LoadMeasure {
    /// Reads and writes.
    pub fn requests(&self) -> u64 {
        self.read.count() + self.write.count()
    }

    /// The operations whose rate is the rate of the program, and whose responses are its
    /// responses: those that its client waits for. They are its transactions; of a program
    /// that has none, reads and writes; else what it does to names; else syncs and discards.
    pub fn counted(&self) -> Vec<&OperationMeasure> {
        let ranks = [
            vec![&self.commit],
            vec![&self.read, &self.write],
            vec![&self.create, &self.stat, &self.rename, &self.unlink],
            vec![&self.sync, &self.discard],
        ];
        let mut ranks = ranks.into_iter();
        let some = ranks.find(|rank| rank.iter().any(|one| !one.is_empty()));
        some.unwrap_or_default()
    }

    /// What was done to names: files made, stat(2), rename(2), unlink(2).
    pub fn name_calls(&self) -> u64 {
        let kinds = [&self.create, &self.stat, &self.rename, &self.unlink];
        kinds.iter().map(|kind| kind.count()).sum()
    }

    /// How many requests count.
    pub fn count(&self) -> u64 {
        self.counted().iter().map(|one| one.count()).sum()
    }

    /// The series in intervals of so many of its own; the last one may be of fewer.
    pub fn drawn_together(&self, intervals: usize) -> Cow<'_, [SeriesPoint]> {
        if intervals <= 1 {
            return Cow::Borrowed(&self.series);
        }
        let together = |some: &[SeriesPoint]| {
            let mut all = SeriesPoint::default();
            some.iter().for_each(|one| all.merge(one));
            all
        };
        self.series.chunks(intervals).map(together).collect()
    }

    /// All its operations with their names.
    pub fn operations(&self) -> [(&'static str, &OperationMeasure); 9] {
        [
            ("create", &self.create),
            ("stat", &self.stat),
            ("rename", &self.rename),
            ("unlink", &self.unlink),
            ("read", &self.read),
            ("write", &self.write),
            ("sync", &self.sync),
            ("discard", &self.discard),
            ("commit", &self.commit),
        ]
    }
}

impl SeriesPoint {
    /// Requests that completed in it.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.name_calls
    }

    /// Adds what completed in another interval.
    pub fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.name_calls += other.name_calls;
        self.commits += other.commits;
        self.written_bytes += other.written_bytes;
        self.response.merge(&other.response);
    }
}

impl OperationMeasure {
    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many requests.
    pub fn count(&self) -> u64 {
        self.response.count()
    }

    /// Adds what another worker's requests took.
    pub fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.response.merge(&other.response);
        self.submit.merge(&other.submit);
        self.completion.merge(&other.completion);
        self.span = self.span.max(other.span);
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A compact histogram that may be absent.
mod optional {
    use super::{Histogram, compact};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Compact(#[serde(with = "compact")] Histogram);

    pub(super) fn serialize<S: Serializer>(
        histogram: &Option<Histogram>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let compact = histogram.clone().map(Compact);
        compact.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Histogram>, D::Error> {
        let compact = Option::<Compact>::deserialize(deserializer)?;
        Ok(compact.map(|Compact(histogram)| histogram))
    }
}
