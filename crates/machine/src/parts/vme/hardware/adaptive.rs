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
use choice::{CommandKind, PolicyChoice};
use diskperf_device::{Request, RequestId};
use diskperf_sim::Time;
pub(super) use rehearsal::Rehearsal;
use script::{RecordedCommand, Script};
use std::collections::VecDeque;
use std::rc::Rc;

/// Number of sequences per drive that are remembered; more than programs read at the same time.
const SEQUENCES_MAX: usize = 16;

/// Number of commands of a drive that are remembered for a rehearsal.
const HISTORY_COMMANDS_MAX: usize = 256;
/// Remembered commands that only fill the cache at the start of a rehearsal.
const WARMUP_COMMANDS: usize = 32;

const COMMANDS_BETWEEN_REHEARSALS: u64 = 32;

/// Command history of one drive, with the cache policies chosen from it.
#[derive(Debug, Default)]
pub(super) struct CommandHistory {
    reads: Sequences,
    writes: Sequences,
    command_count: u64,
    recorded: VecDeque<(HistoryCommand, RecordedCommand)>,
    undecoded: Vec<HistoryCommand>,
    choice: PolicyChoice,
    /// Number of events in the simulations of rehearsals.
    pub(super) rehearsed_events: u64,
}

#[derive(Clone, Copy, Debug)]
struct HistoryCommand {
    id: RequestId,
    kind: CommandKind,
    /// Length of the sequence that the command continues, in sectors; 0 if it begins one.
    length: u64,
}

impl HistoryCommand {
    /// Returns the cache policy for a command. At the start of a sequence, read-ahead is limited to
    /// twice the length of the sequence.
    fn policy(self, choice: &PolicyChoice) -> Policy {
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
    recent: Vec<Sequence>,
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
    fn record_access(&mut self, number: u64, first: u64, end: u64) -> Sequence {
        let is_continued = |sequence: &Sequence| sequence.end == first;
        let sequence = match self.recent.iter().position(is_continued) {
            Some(place) => {
                let before = self.recent.remove(place);
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
        if self.recent.len() == SEQUENCES_MAX {
            self.recent.remove(0);
        }
        self.recent.push(sequence);
        sequence
    }
}

impl CommandHistory {
    /// Records the arrival of a command, and rehearses policies from time to time.
    pub(super) fn record_arrival(
        &mut self,
        now: Time,
        id: RequestId,
        request: &Request,
        rehearsal: &Rehearsal<'_>,
    ) {
        self.command_count += 1;
        if self
            .command_count
            .is_multiple_of(COMMANDS_BETWEEN_REHEARSALS)
        {
            self.rehearse(rehearsal);
        }
        let end = request.end();
        let sequences = match request.is_write() {
            true => &mut self.writes,
            false => &mut self.reads,
        };
        let Sequence { number, length, .. } =
            sequences.record_access(self.command_count, request.sector, end);
        let kind = match (request.is_write(), length > 0) {
            (false, true) => CommandKind::Sequence(request.hint),
            (false, false) => CommandKind::Other(request.hint),
            (true, true) => CommandKind::WriteSequence,
            (true, false) => CommandKind::WriteOther,
        };
        if self.recorded.len() == HISTORY_COMMANDS_MAX {
            self.recorded.pop_front();
        }
        let recorded = RecordedCommand {
            request: Request {
                operation: request.operation,
                device: 0,
                sector: request.sector,
                sectors: request.sectors,
                hint: request.hint,
                spans: Default::default(),
            },
            sequence: number,
            arrived_at: now,
            ended_at: None,
        };
        let command = HistoryCommand { id, kind, length };
        self.recorded.push_back((command, recorded));
        self.undecoded.push(command);
    }

    /// Returns the policy for an arrived command, and removes the command from the undecoded ones.
    ///
    /// # Panics
    ///
    /// If the command has not arrived.
    pub(super) fn policy(&mut self, id: RequestId) -> Policy {
        let mut undecoded = self.undecoded.iter();
        let place = undecoded.position(|command| command.id == id);
        let place = place.expect("a command comes before it is decoded");
        self.undecoded.remove(place).policy(&self.choice)
    }

    /// Records the end of a command in the drive's history.
    pub(super) fn record_end(&mut self, now: Time, id: RequestId) {
        let mut last = self.recorded.iter_mut().rev();
        if let Some((_, recorded)) = last.find(|(command, _)| command.id == id) {
            recorded.ended_at = Some(now);
        }
    }

    fn rehearse(&mut self, rehearsal: &Rehearsal<'_>) {
        let warmup_count = WARMUP_COMMANDS.min(self.recorded.len() / 4);
        let script = Rc::new(Script::new(
            self.recorded.iter().map(|(_, recorded)| recorded),
            warmup_count,
        ));
        let command: Vec<HistoryCommand> =
            self.recorded.iter().map(|(command, _)| *command).collect();
        let kinds: Vec<CommandKind> = command.iter().map(|command| command.kind).collect();
        self.choice.improve(&kinds, |choice| {
            let policies = command.iter().map(|command| command.policy(choice));
            rehearsal.measure(&script, policies.collect())
        });
        self.rehearsed_events += rehearsal.events.get();
    }
}
