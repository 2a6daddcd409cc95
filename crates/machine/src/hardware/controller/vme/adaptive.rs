//! A policy that follows what is asked: nobody built it in 1987 ("adaptive
//! algorithms would be nice", seed 001).
//!
//! It knows where the last reads of a drive ended. A read that begins where one
//! of them ended belongs to a sequence: it is read ahead of, the further the
//! longer the sequence is and the more of what was read ahead before was used,
//! and reading ahead goes to its end, for the rest will be wanted. Any other
//! read is saved and nothing is read ahead of it: it may be repeated, and the
//! arm is wanted elsewhere.

use super::policy::{AccessClass, MOST_AHEAD_SECTORS, Policy};

/// Sequences of a drive that are remembered: more than programs read at once.
const SEQUENCES: usize = 16;

/// What is known of the reads of one drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// The longest unused first.
    sequences: Vec<Sequence>,
    /// By class.
    ahead: [Usage; 3],
}

/// Reads of which each began where the one before it ended.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    end: u64,
    /// Sectors since it was seen to be one.
    length: u64,
}

/// What became of sectors that were read ahead, the older the less they count.
#[derive(Clone, Copy, Debug)]
struct Usage {
    read: f64,
    used: f64,
}

impl Default for Usage {
    /// Trusted until known better.
    fn default() -> Self {
        Self {
            read: 1.0,
            used: 1.0,
        }
    }
}

/// What one more sector leaves of the weight of all before it.
const MEMORY: f64 = 0.998;

impl Watch {
    /// What to do for a read.
    pub(super) fn read(&mut self, class: AccessClass, first: u64, end: u64) -> Policy {
        let length = self.follow(first, end);
        let usage = self.ahead[class as usize];
        let trust = (usage.used / usage.read).min(1.0);
        // As far ahead as it has come so far, twice over if all was used.
        let ahead = 2.0 * trust * length as f64;
        let sequential = length > 0;
        Policy {
            search: true,
            save_reads: !sequential,
            ahead_priority: sequential,
            save_writes: false,
            sort_reads: true,
            sort_writes: true,
            across_heads: sequential,
            across_cylinders: sequential,
            ahead_sectors: (ahead as u32).min(MOST_AHEAD_SECTORS),
        }
    }

    /// What to do for a write.
    pub(super) fn write(&self) -> Policy {
        Policy {
            search: true,
            sort_writes: true,
            sort_reads: true,
            ..Policy::default()
        }
    }

    /// How long the sequence is that a read goes on with; 0 if it begins one.
    fn follow(&mut self, first: u64, end: u64) -> u64 {
        let goes_on = |sequence: &Sequence| sequence.end == first;
        let length = match self.sequences.iter().position(goes_on) {
            Some(place) => self.sequences.remove(place).length + (end - first),
            None => 0,
        };
        if self.sequences.len() == SEQUENCES {
            self.sequences.remove(0);
        }
        self.sequences.push(Sequence { end, length });
        length
    }

    /// So many sectors were read ahead.
    pub(super) fn count_read(&mut self, class: AccessClass, sectors: u64) {
        let usage = &mut self.ahead[class as usize];
        let kept = MEMORY.powi(sectors.min(10_000) as i32);
        usage.read = usage.read * kept + sectors as f64;
        usage.used *= kept;
    }

    /// So many of those were asked for.
    pub(super) fn count_used(&mut self, class: AccessClass, sectors: u64) {
        self.ahead[class as usize].used += sectors as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_read_ahead_of_and_the_rest_is_saved() {
        let mut watch = Watch::default();
        let class = AccessClass::Raw;
        let first = watch.read(class, 100, 116);
        assert!(first.save_reads && first.ahead_sectors == 0);
        let second = watch.read(class, 116, 132);
        assert!(!second.save_reads && second.ahead_sectors == 32);
        let elsewhere = watch.read(class, 9000, 9002);
        assert_eq!(elsewhere.ahead_sectors, 0);
        let third = watch.read(class, 132, 148);
        assert_eq!(third.ahead_sectors, 64);
        for step in 0..20 {
            watch.read(class, 148 + 16 * step, 164 + 16 * step);
        }
        let long = watch.read(class, 148 + 320, 164 + 320);
        assert_eq!(long.ahead_sectors, MOST_AHEAD_SECTORS);
    }

    #[test]
    fn what_is_not_used_is_trusted_less() {
        let mut watch = Watch::default();
        watch.count_read(AccessClass::Raw, 1000);
        watch.read(AccessClass::Raw, 0, 16);
        let policy = watch.read(AccessClass::Raw, 16, 32);
        assert!(policy.ahead_sectors < 4, "{}", policy.ahead_sectors);
        watch.count_used(AccessClass::Raw, 1000);
        let policy = watch.read(AccessClass::Raw, 32, 48);
        assert!(policy.ahead_sectors > 50, "{}", policy.ahead_sectors);
    }
}
