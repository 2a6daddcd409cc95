//! A policy that follows what is asked: nobody built it in 1987 ("adaptive
//! algorithms would be nice", seed 001).
//!
//! It knows where the last reads of a drive ended. A read that begins where one
//! of them ended belongs to a sequence, and is read ahead of; any other is
//! saved, for it may be repeated, and nothing is read ahead of it, for the arm
//! is wanted elsewhere. How far ahead is best cannot be told from the reads
//! alone: sectors that go through the cache cost its processor more than those
//! that go from the drive over the bus, and too few lose revolutions. So some
//! distances are tried in turn, each over some reads; the one with which the
//! drive moved most is kept, until what it moves changes.

use super::policy::{AccessClass, Policy};
use diskperf_sim::Time;

/// Sequences of a drive that are remembered: more than programs read at once.
const SEQUENCES: usize = 16;

/// Distances that are tried, in sectors.
const DISTANCES: [u32; 6] = [30, 10, 0, 60, 100, 244];

/// Sectors of sequences over which one is tried: twice the longest distance.
/// What the one before it has left is used up first.
const TRIAL_SECTORS: u64 = 512;
const SETTLING_SECTORS: u64 = 128;

/// Of two distances the shorter is taken, if it is no worse than by this.
const NO_WORSE: f64 = 0.02;

/// What a drive moves has changed if it is off by so much.
const CHANGED: f64 = 0.25;

/// How much one trial more counts.
const NEWS: f64 = 0.1;

/// Trials in a row that must say so: one may have met a seek.
const CHANGED_TRIALS: u32 = 3;

/// What is known of the reads of one drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// The longest unused first.
    sequences: Vec<Sequence>,
    /// By class.
    searches: [Search; 3],
    /// Sectors that the drive was asked for, one way or the other.
    asked_sectors: u64,
}

/// Reads of which each began where the one before it ended.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    end: u64,
    /// Sectors since it was seen to be one.
    length: u64,
}

/// A search for the best distance.
#[derive(Clone, Copy, Debug, Default)]
struct Search {
    /// Sectors a second with each of [`DISTANCES`] that has been tried.
    rates: [Option<f64>; DISTANCES.len()],
    /// The place of the one that is in use.
    place: usize,
    trial: Trial,
    /// Trials in a row after which it was as if something had changed.
    changed: u32,
}

/// A trial under way.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// When what counts began, and what the drive had been asked for then;
    /// zero while the distance before it is used up.
    since: Time,
    asked_sectors: u64,
    /// Sectors of sequences since the trial began.
    sectors: u64,
}

impl Search {
    /// A read of a sequence has come; how far ahead of it to read.
    fn distance(&mut self, now: Time, asked_sectors: u64, sectors: u64) -> u32 {
        if self.trial.sectors >= SETTLING_SECTORS + TRIAL_SECTORS {
            let moved = asked_sectors - self.trial.asked_sectors;
            let span = (now - self.trial.since).seconds();
            self.judge(moved as f64 / span.max(1e-9));
            self.trial = Trial::default();
        }
        let settled = self.trial.sectors >= SETTLING_SECTORS;
        if settled && self.trial.since == Time::ZERO {
            self.trial.since = now;
            self.trial.asked_sectors = asked_sectors;
        }
        self.trial.sectors += sectors;
        DISTANCES[self.place]
    }

    /// A trial has ended with this rate: what is next.
    fn judge(&mut self, rate: f64) {
        let known = self.rates[self.place].unwrap_or(rate);
        let off = (rate / known - 1.0).abs() > CHANGED;
        self.changed = if off { self.changed + 1 } else { 0 };
        if self.changed == CHANGED_TRIALS {
            *self = Self::default();
            return;
        }
        if !off {
            self.rates[self.place] = Some(known + (rate - known) * NEWS);
        }
        if let Some(untried) = self.rates.iter().position(Option::is_none) {
            self.place = untried;
            return;
        }
        self.place = self.best();
    }

    /// The shortest distance that is as good as any.
    fn best(&self) -> usize {
        let rate = |place: usize| self.rates[place].unwrap_or(0.0);
        let most = (0..DISTANCES.len()).map(rate).fold(0.0, f64::max);
        (0..DISTANCES.len())
            .filter(|place| rate(*place) >= most * (1.0 - NO_WORSE))
            .min_by_key(|place| DISTANCES[*place])
            .unwrap_or(0)
    }
}

impl Watch {
    /// What to do for a read that comes now.
    pub(super) fn read(
        &mut self,
        now: Time,
        class: AccessClass,
        (first, end): (u64, u64),
    ) -> Policy {
        self.asked_sectors += end - first;
        let length = self.follow(first, end);
        let sequential = length > 0;
        // A sequence that has just begun may be over as soon.
        let distance = match sequential {
            true => {
                let search = &mut self.searches[class as usize];
                search.distance(now, self.asked_sectors, end - first)
            }
            false => 0,
        };
        Policy {
            search: true,
            save_reads: !sequential,
            ahead_priority: sequential,
            save_writes: false,
            sort_reads: true,
            sort_writes: true,
            across_heads: sequential,
            across_cylinders: sequential,
            ahead_sectors: distance.min(2 * length as u32),
        }
    }

    /// What to do for a write.
    pub(super) fn write(&mut self, sectors: u64) -> Policy {
        self.asked_sectors += sectors;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_read_ahead_of_and_the_rest_is_saved() {
        let mut watch = Watch::default();
        let class = AccessClass::Raw;
        let first = watch.read(Time(0), class, (100, 116));
        assert!(first.save_reads && first.ahead_sectors == 0);
        let second = watch.read(Time(1), class, (116, 132));
        assert!(!second.save_reads && second.ahead_sectors == 30);
        let elsewhere = watch.read(Time(2), class, (9000, 9002));
        assert!(elsewhere.save_reads && elsewhere.ahead_sectors == 0);
        let third = watch.read(Time(3), class, (132, 148));
        assert_eq!(third.ahead_sectors, 30);
    }

    /// Reads in sequence, each of which takes what `took` says for the
    /// distance in use; the distance after so many.
    fn after(reads: u64, watch: &mut Watch, now: &mut u64, took: impl Fn(u32) -> u64) -> u32 {
        let mut ahead = 0;
        for _ in 0..reads {
            let next = watch.sequences.last().map_or(0, |last| last.end);
            ahead = watch
                .read(Time(*now), AccessClass::Raw, (next, next + 16))
                .ahead_sectors;
            *now += took(ahead);
        }
        ahead
    }

    #[test]
    fn the_best_distance_is_found_and_found_again_when_things_change() {
        let mut watch = Watch::default();
        let mut now = 0;
        let best_at =
            |best: u32| move |ahead: u32| if ahead == best { 4_000_000 } else { 6_000_000 };
        assert_eq!(after(300, &mut watch, &mut now, best_at(10)), 10);
        assert_eq!(after(200, &mut watch, &mut now, best_at(10)), 10);
        // Ten sectors are now as slow as the others, and a hundred fast.
        assert_eq!(after(700, &mut watch, &mut now, best_at(100)), 100);
    }

    #[test]
    fn of_equals_the_shortest_is_taken() {
        let mut watch = Watch::default();
        let mut now = 0;
        assert_eq!(after(400, &mut watch, &mut now, |_| 5_000_000), 0);
    }
}
