//! A policy that follows what is asked: nobody built it in 1987 ("adaptive
//! algorithms would be nice", seed 001).
//!
//! It knows where the last reads and writes of a drive ended. A read that begins
//! where one of them ended belongs to a sequence; any other stands alone. What
//! was read is saved, for what was read ahead of one program must not be lost
//! when another one's turn comes. How far ahead is best cannot be told from the
//! reads alone: sectors that go through the cache cost its processor more than
//! those that go from the drive over the bus, too few lose revolutions, and too
//! many keep the arm from others. So distances are tried ([`search`]), for
//! sequences and for the others of each class.

mod search;

use super::policy::{AccessClass, Policy};
use diskperf_sim::Time;
use search::{Kind, Search};

/// Sequences of a drive that are remembered: more than programs read at once.
const SEQUENCES: usize = 16;

/// Commands for which sequences share a drive after one of them was taken up
/// again: more than are served from what was read ahead of one.
const SHARED: u64 = 128;

/// What is known of the commands of one drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    reads: Sequences,
    writes: Sequences,
    /// Commands so far.
    commands: u64,
    /// The number of the last one that took up a sequence again after others.
    resumed: Option<u64>,
    search: Search,
}

/// Accesses of which each began where the one before it ended.
#[derive(Clone, Debug, Default)]
struct Sequences {
    /// The longest unused first.
    known: Vec<Sequence>,
}

/// What an access is to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Followed {
    /// Sectors of the sequence that it goes on with; 0 if it begins one.
    length: u64,
    /// Whether other accesses came in between.
    resumed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    end: u64,
    /// Sectors since it was seen to be one.
    length: u64,
    /// The number of its last access, among all of the drive.
    number: u64,
}

impl Sequences {
    /// Takes note of the access of this number.
    fn follow(&mut self, number: u64, (first, end): (u64, u64)) -> Followed {
        let goes_on = |sequence: &Sequence| sequence.end == first;
        let followed = match self.known.iter().position(goes_on) {
            Some(place) => {
                let before = self.known.remove(place);
                Followed {
                    length: before.length + (end - first),
                    resumed: before.number + 1 < number,
                }
            }
            None => Followed {
                length: 0,
                resumed: false,
            },
        };
        if self.known.len() == SEQUENCES {
            self.known.remove(0);
        }
        self.known.push(Sequence {
            end,
            length: followed.length,
            number,
        });
        followed
    }

    /// Sequences that went on since the access of this number.
    fn live(&self, since: u64) -> u64 {
        let live = |one: &&Sequence| one.length > 0 && one.number >= since;
        self.known.iter().filter(live).count() as u64
    }
}

impl Watch {
    /// What to do for a read that comes now, of a drive with tracks of so many
    /// sectors.
    pub(super) fn read(
        &mut self,
        (now, track_sectors): (Time, u32),
        class: AccessClass,
        (first, end): (u64, u64),
    ) -> Policy {
        self.commands += 1;
        let Followed { length, resumed } = self.reads.follow(self.commands, (first, end));
        let sequential = length > 0;
        if resumed {
            self.resumed = Some(self.commands);
        }
        let shared = |at: u64| self.commands - at < SHARED;
        let kind = match (sequential, self.resumed.is_some_and(shared)) {
            (true, false) => Kind::Stream(class),
            (true, true) => Kind::Shared(class),
            (false, _) => Kind::Other(class),
        };
        let live = self.reads.live(self.commands - self.search.commands());
        let sequences = live * u64::from(sequential);
        self.search
            .count((now, track_sectors), end - first, Some((kind, sequences)));
        let distance = self.search.distance(kind);
        Policy {
            search: true,
            save_reads: true,
            ahead_priority: sequential,
            save_writes: false,
            sort_reads: true,
            sort_writes: true,
            across_heads: true,
            across_cylinders: true,
            // A sequence that has just begun may be over as soon.
            ahead_sectors: match sequential {
                true => distance.min(2 * length as u32),
                false => distance,
            },
        }
    }

    /// What to do for a write.
    pub(super) fn write(
        &mut self,
        (now, track_sectors): (Time, u32),
        (first, end): (u64, u64),
    ) -> Policy {
        self.commands += 1;
        let followed = self.writes.follow(self.commands, (first, end));
        self.search.count((now, track_sectors), end - first, None);
        Policy {
            search: true,
            // What is written in sequence is seldom read soon.
            save_writes: followed.length == 0,
            sort_writes: true,
            sort_reads: true,
            ..Policy::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACK: u32 = 67;

    #[test]
    fn only_a_sequence_is_read_ahead_of_until_something_else_is_found_better() {
        let mut watch = Watch::default();
        let mut read = |now, first, end| {
            let policy = watch.read((Time(now), TRACK), AccessClass::Raw, (first, end));
            policy.ahead_sectors
        };
        assert_eq!(read(0, 100, 116), 0);
        assert_eq!(read(1, 116, 132), 30);
        assert_eq!(read(2, 9000, 9002), 0);
        assert_eq!(read(3, 132, 148), 2 * 32);
    }

    #[test]
    fn what_is_written_here_and_there_is_saved() {
        let mut watch = Watch::default();
        let mut write = |first, end| watch.write((Time(0), TRACK), (first, end)).save_writes;
        assert!(write(100, 116));
        assert!(!write(116, 132));
        assert!(write(9000, 9016));
    }

    /// Reads in sequence, each of which takes what `took` says for the
    /// distance in use; the distance after so many.
    fn after(reads: u64, watch: &mut Watch, now: &mut u64, took: impl Fn(u32) -> u64) -> u32 {
        let mut ahead = 0;
        for _ in 0..reads {
            let next = watch.reads.known.last().map_or(0, |last| last.end);
            let policy = watch.read((Time(*now), TRACK), AccessClass::Raw, (next, next + 16));
            ahead = policy.ahead_sectors;
            *now += took(ahead);
        }
        ahead
    }

    #[test]
    fn the_best_distance_is_found_and_found_again_when_things_change() {
        let mut watch = Watch::default();
        let mut now = 0;
        let best_at =
            |best: u32| move |ahead: u32| 4_000_000 + 20_000 * u64::from(ahead.abs_diff(best));
        assert_eq!(after(400, &mut watch, &mut now, best_at(10)), 10);
        assert_eq!(after(200, &mut watch, &mut now, best_at(10)), 10);
        // Ten sectors are now slower than a hundred.
        assert_eq!(after(900, &mut watch, &mut now, best_at(100)), 100);
    }

    #[test]
    fn of_equals_the_shortest_is_taken() {
        let mut watch = Watch::default();
        let mut now = 0;
        assert_eq!(after(500, &mut watch, &mut now, |_| 5_000_000), 0);
    }
}
