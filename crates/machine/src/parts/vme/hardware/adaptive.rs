//! A policy that follows what is asked: nobody built it in 1987 ("adaptive
//! algorithms would be nice", Zachariassen 1987).
//!
//! It remembers the last commands of a drive, and knows where the last reads and
//! writes ended: a command that begins where one of them ended belongs to a sequence,
//! any other stands alone. From time to time it carries out the last commands again,
//! on a model of itself ([`rehearsal`]), with other bits and distances for each kind of
//! command, and goes on with what would have taken the least time ([`choice`]). What
//! one program's reads ahead cost another, what a small cache forgets too soon and
//! where a revolution is lost all show there; none of it has to be known.
//!
//! The rehearsals take none of the modelled processor's time: a board of 1987 could
//! not have had them, one of today has idle cores.

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

/// Sequences of a drive that are remembered: more than programs read at once.
const SEQUENCES: usize = 16;

/// Commands that are remembered, and of these such as only fill the cache when they
/// are carried out again.
const REMEMBERED: usize = 256;
const WARM: usize = 32;

/// Commands from one search to the next.
const BETWEEN: u64 = 32;

/// What is known of the commands of one drive.
#[derive(Debug, Default)]
pub(super) struct Watch {
    reads: Sequences,
    writes: Sequences,
    /// Commands so far.
    commands: u64,
    /// The last of them, and what came of them.
    seen: VecDeque<(Asked, Seen)>,
    /// Those that have come and not been decoded.
    undecoded: Vec<Asked>,
    choice: Choice,
    /// Events of the simulations in which policies were tried out.
    pub(super) rehearsed_events: u64,
}

/// What a command is to those before it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: RequestId,
    kind: Kind,
    /// Sectors of the sequence that it goes on with; 0 if it begins one.
    length: u64,
}

impl Asked {
    /// What is done for it.
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

/// Accesses of which each began where the one before it ended.
#[derive(Clone, Debug, Default)]
struct Sequences {
    /// The longest unused first.
    known: Vec<Sequence>,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// Its first access, of all of the drive.
    number: u64,
    end: u64,
    /// Sectors since it was seen to be one.
    length: u64,
}

impl Sequences {
    /// Takes note of an access of this number; the sequence that it goes on with, or
    /// begins.
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
    /// A command has come.
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

    /// What to do for a command, once.
    ///
    /// # Panics
    ///
    /// When it has not come.
    pub(super) fn policy(&mut self, id: RequestId) -> Policy {
        let mut undecoded = self.undecoded.iter();
        let place = undecoded.position(|asked| asked.id == id);
        let place = place.expect("a command comes before it is decoded");
        self.undecoded.remove(place).policy(&self.choice)
    }

    /// A command has ended.
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
