//! Trims of a share of the blocks that a clone writes and verifies (`trim_percentage`).

use super::clone::JobClone;
use super::stream::FileIo;
use crate::program::ProgramError;
use crate::random::RandomDraws;
use crate::ring::IoRing;
use diskperf_fio::job::VerifiedTrims;
use diskperf_fio::{Direction, JobDefinition};
use diskperf_system::IoOperation;
use std::collections::VecDeque;

const TRIM_STREAM: u128 = 18;

/// Selection of written blocks that are to be trimmed.
#[derive(Clone, Debug)]
pub(super) struct Trims {
    trim_rule: VerifiedTrims,
    random: RandomDraws,
    /// Blocks that wait for their trim, oldest first.
    pending_trims: VecDeque<FileIo>,
    /// Writes since the last batch of trims.
    writes_in_batch: u32,
}

impl Trims {
    /// Creates the trim selection of a clone, or returns `None` if its job trims nothing.
    pub(super) fn new(job: &JobDefinition, seed: u64) -> Option<Self> {
        job.verify.has_trims().then(|| Self {
            trim_rule: job.verify.verified_trims,
            random: RandomDraws::new(seed, TRIM_STREAM),
            pending_trims: VecDeque::new(),
            writes_in_batch: 0,
        })
    }

    /// Counts a write and draws whether its block is to be trimmed. Returns the blocks of a batch
    /// that is due.
    fn count_write(&mut self, io: FileIo) -> Vec<FileIo> {
        if self.random.draw_below(100) < u64::from(self.trim_rule.percent) {
            self.pending_trims.push_back(io);
        }
        self.writes_in_batch += 1;
        if self.writes_in_batch < self.trim_rule.backlog {
            return Vec::new();
        }
        self.writes_in_batch = 0;
        let batch = match self.trim_rule.batch {
            0 => self.trim_rule.backlog,
            batch => batch,
        };
        let count = self.pending_trims.len().min(batch as usize);
        self.pending_trims.drain(..count).collect()
    }
}

impl JobClone<'_> {
    /// Counts an I/O and returns the blocks to be trimmed after it.
    pub(super) fn due_trims(&mut self, io: &FileIo) -> Vec<FileIo> {
        match &mut self.verified_trims {
            Some(trims) if io.direction == Direction::Write => trims.count_write(*io),
            Some(_) | None => Vec::new(),
        }
    }

    /// Trims blocks. No write to any of them may be in flight.
    pub(super) async fn issue_trims(
        &mut self,
        ring: &mut IoRing<'_>,
        trims: Vec<FileIo>,
    ) -> Result<(), ProgramError> {
        let batch = self.job.engine.submit_batch.max(1) as usize;
        let mut trims = trims.into_iter();
        let next = |clone: &mut Self, ring: &mut IoRing<'_>| {
            let verifier = &mut ring.verifier;
            let trim = trims.find(|io| {
                let verifier = verifier.as_mut();
                verifier
                    .is_some_and(|one| one.record_trim(io.file_index, (io.offset_bytes, io.bytes)))
            });
            trim.map(|io| {
                clone.put_request_step(ring, IoOperation::DiscardRange, io.extent(), None)
            })
            .transpose()
        };
        self.issue_all(ring, batch, next).await
    }
}

/// Describes how the trims of a job are carried out, if the report must mention it.
pub(super) fn describe_limits(job: &JobDefinition) -> Option<String> {
    if job.verify.has_trims() {
        let fio = "fio 3.33 ends with a failed assertion at the first trim";
        return Some(format!("written blocks are trimmed; {fio}"));
    }
    (job.verify.verified_trims.percent > 0).then(|| {
        "no block is trimmed: as in fio, trim_percentage is of writes that are verified, with a trim_backlog".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trims(percent: u8, backlog: u32, batch: u32) -> Trims {
        let mut job = diskperf_fio::JobFile::parse(
            "x.fio",
            "[x]\nsize=1m\nrw=write\nverify=crc32c\n",
            &diskperf_fio::JobEnvironment::default(),
        )
        .expect("a job")
        .jobs
        .remove(0);
        let rule = &mut job.verify.verified_trims;
        (rule.percent, rule.backlog, rule.batch) = (percent, backlog, batch);
        Trims::new(&job, 7).expect("it trims")
    }

    /// Blocks of each batch of a thousand writes.
    fn batches(mut trims: Trims) -> Vec<usize> {
        let io = |number: u64| FileIo {
            direction: Direction::Write,
            file_index: 0,
            offset_bytes: number * 4096,
            bytes: 4096,
        };
        let batches = (0..1000).map(|number| trims.count_write(io(number)).len());
        batches.filter(|count| *count > 0).collect()
    }

    #[test]
    fn a_share_of_the_writes_is_trimmed_in_batches() {
        assert_eq!(batches(trims(100, 100, 0)), [100; 10]);
        assert_eq!(batches(trims(100, 100, 7)), [7; 10]);
        let some: usize = batches(trims(20, 50, 0)).iter().sum();
        assert!((150..=250).contains(&some), "{some} of 1000");
    }
}
