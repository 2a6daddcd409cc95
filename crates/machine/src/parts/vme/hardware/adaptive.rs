//! Adaptive cache policy that follows the requests. Nobody built it in 1987 ("adaptive algorithms
//! would be nice", Zachariassen 1987).
//!
//! The controller remembers the last commands of a drive and the ends of the last reads and writes.
//! A command that begins at one of these ends belongs to a sequence; any other command stands
//! alone. From time to time, the controller executes the last commands again on a model of itself
//! ([`rehearsal`]), with other policy bits and read-ahead distances for each kind of command. It
//! continues with the fastest combination ([`choice`]). This way, the controller finds the cost of
//! one program's read-ahead for another, early evictions of a small cache, and lost revolutions,
//! without knowing any of these effects.
//!
//! The rehearsals use none of the modelled processor's time: a board of 1987 could not have done
//! them, but one of today has idle cores.

mod choice;
mod rehearsal;
mod script;

use super::policy::Policy;
use choice::{Choice, Kind};
use diskperf_device::{Request, RequestId};
use diskperf_sim::Time;
pub(super) use rehearsal::Rehearsal;
use script::{Script, Seen};
use std::collections::VecDeque;
use std::rc::Rc;

/// Number of sequences per drive that are remembered; more than programs read at the same time.
const SEQUENCES: usize = 16;

/// Number of commands of a drive that are remembered for a rehearsal.
const REMEMBERED: usize = 256;
/// Remembered commands that only fill the cache at the start of a rehearsal.
const WARM: usize = 32;

const BETWEEN: u64 = 32;

/// Command history of one drive, with the cache policies chosen from it.
#[derive(Debug, Default)]
pub(super) struct Watch {
    reads: Sequences,
    writes: Sequences,
    commands: u64,
    seen: VecDeque<(Asked, Seen)>,
    undecoded: Vec<Asked>,
    choice: Choice,
    /// Number of events in the simulations of rehearsals.
    pub(super) rehearsed_events: u64,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    id: RequestId,
    kind: Kind,
    /// Length of the sequence that the command continues, in sectors; 0 if it begins one.
    length: u64,
}

impl Asked {
    /// Returns the cache policy for a command. At the start of a sequence, read-ahead is limited to
    /// twice the length of the sequence.
    fn policy(self, choice: &Choice) -> Policy {
        let policy = choice.policy(self.kind);
        // A sequence that has just begun may be over as soon.
        let ahead_sectors = match self.length {
            0 => policy.ahead_sectors,
            length => policy.ahead_sectors.min(2 * length as u32),
        };
        Policy {
            ahead_sectors,
            ..policy
        }
    }
}

/// Sequences of accesses, each access of which began at the end of the previous one.
#[derive(Clone, Debug, Default)]
struct Sequences {
    /// Remembered sequences, the least recently used first.
    known: Vec<Sequence>,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    number: u64,
    end: u64,
    /// Length of the sequence of accesses, in sectors, without its first access.
    length: u64,
}

impl Sequences {
    /// Records an access. Returns the sequence that it continues or begins.
    fn follow(&mut self, number: u64, (first, end): (u64, u64)) -> Sequence {
        let goes_on = |sequence: &Sequence| sequence.end == first;
        let sequence = match self.known.iter().position(goes_on) {
            Some(place) => {
                let before = self.known.remove(place);
                Sequence {
                    end,
                    length: before.length + (end - first),
                    ..before
                }
            }
            None => Sequence {
                number,
                end,
                length: 0,
            },
        };
        if self.known.len() == SEQUENCES {
            self.known.remove(0);
        }
        self.known.push(sequence);
        sequence
    }
}

impl Watch {
    /// Records the arrival of a command, and rehearses policies from time to time.
    pub(super) fn come(
        &mut self,
        now: Time,
        (id, request): (RequestId, &Request),
        rehearsal: &Rehearsal<'_>,
    ) {
        self.commands += 1;
        if self.commands.is_multiple_of(BETWEEN) {
            self.rehearse(rehearsal);
        }
        let end = request.end();
        let sequences = match request.is_write() {
            true => &mut self.writes,
            false => &mut self.reads,
        };
        let Sequence { number, length, .. } =
            sequences.follow(self.commands, (request.sector, end));
        let kind = match (request.is_write(), length > 0) {
            (false, true) => Kind::Sequence(request.hint),
            (false, false) => Kind::Other(request.hint),
            (true, true) => Kind::WriteSequence,
            (true, false) => Kind::WriteOther,
        };
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        let seen = Seen {
            request: Request {
                operation: request.operation,
                device: 0,
                sector: request.sector,
                sectors: request.sectors,
                hint: request.hint,
                spans: Default::default(),
            },
            sequence: number,
            arrived: now,
            ended: None,
        };
        let asked = Asked { id, kind, length };
        self.seen.push_back((asked, seen));
        self.undecoded.push(asked);
    }

    /// Returns the policy for an arrived command, and removes the command from the undecoded ones.
    ///
    /// # Panics
    ///
    /// If the command has not arrived.
    pub(super) fn policy(&mut self, id: RequestId) -> Policy {
        let mut undecoded = self.undecoded.iter();
        let place = undecoded.position(|asked| asked.id == id);
        let place = place.expect("a command comes before it is decoded");
        self.undecoded.remove(place).policy(&self.choice)
    }

    /// Records the end of a command in the drive's history.
    pub(super) fn ended(&mut self, now: Time, id: RequestId) {
        let mut last = self.seen.iter_mut().rev();
        if let Some((_, seen)) = last.find(|(asked, _)| asked.id == id) {
            seen.ended = Some(now);
        }
    }

    fn rehearse(&mut self, rehearsal: &Rehearsal<'_>) {
        let warm = WARM.min(self.seen.len() / 4);
        let script = Rc::new(Script::new(self.seen.iter().map(|(_, seen)| seen), warm));
        let asked: Vec<Asked> = self.seen.iter().map(|(asked, _)| *asked).collect();
        let kinds: Vec<Kind> = asked.iter().map(|asked| asked.kind).collect();
        self.choice.improve(&kinds, |choice| {
            let policies = asked.iter().map(|asked| asked.policy(choice));
            rehearsal.took(&script, policies.collect())
        });
        self.rehearsed_events += rehearsal.events.get();
    }
}
