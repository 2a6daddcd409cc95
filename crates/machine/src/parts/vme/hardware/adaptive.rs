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

use super::policy::CachePolicy;
use choice::{CommandKind, PolicyChoice};
use diskperf_device::{Request, RequestId};
use diskperf_sim::Time;
pub(super) use rehearsal::Rehearsal;
use script::{RecordedCommand, RehearsalScript};
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
    read_sequences: AccessSequences,
    write_sequences: AccessSequences,
    command_count: u64,
    recorded_commands: VecDeque<(HistoryCommand, RecordedCommand)>,
    undecoded_commands: Vec<HistoryCommand>,
    policy_choice: PolicyChoice,
    /// Number of events in the simulations of rehearsals.
    pub(super) rehearsed_events: u64,
}

#[derive(Clone, Copy, Debug)]
struct HistoryCommand {
    id: RequestId,
    kind: CommandKind,
    /// Length of the sequence that the command continues, in sectors; 0 if it begins one.
    sector_count: u64,
}

impl HistoryCommand {
    /// Returns the cache policy for a command. At the start of a sequence, read-ahead is limited to
    /// twice the length of the sequence.
    fn policy(self, choice: &PolicyChoice) -> CachePolicy {
        let policy = choice.policy(self.kind);
        // A sequence that has just begun may be over as soon.
        let ahead_sectors = match self.sector_count {
            0 => policy.read_ahead_sectors,
            length => policy.read_ahead_sectors.min(2 * length as u32),
        };
        CachePolicy {
            read_ahead_sectors: ahead_sectors,
            ..policy
        }
    }
}

/// Sequences of accesses, each access of which began at the end of the previous one.
#[derive(Clone, Debug, Default)]
struct AccessSequences {
    /// Remembered sequences, the least recently used first.
    recent_sequences: Vec<AccessSequence>,
}

#[derive(Clone, Copy, Debug)]
struct AccessSequence {
    sequence_number: u64,
    sequence_end: u64,
    /// Length of the sequence of accesses, in sectors, without its first access.
    sector_count: u64,
}

impl AccessSequences {
    /// Records an access. Returns the sequence that it continues or begins.
    fn record_access(&mut self, number: u64, first: u64, end: u64) -> AccessSequence {
        let is_continued = |sequence: &AccessSequence| sequence.sequence_end == first;
        let sequence = match self.recent_sequences.iter().position(is_continued) {
            Some(place) => {
                let before = self.recent_sequences.remove(place);
                AccessSequence {
                    sequence_end: end,
                    sector_count: before.sector_count + (end - first),
                    ..before
                }
            }
            None => AccessSequence {
                sequence_number: number,
                sequence_end: end,
                sector_count: 0,
            },
        };
        if self.recent_sequences.len() == SEQUENCES_MAX {
            self.recent_sequences.remove(0);
        }
        self.recent_sequences.push(sequence);
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
            self.rehearse_policies(rehearsal);
        }
        let end = request.end();
        let sequences = match request.is_write() {
            true => &mut self.write_sequences,
            false => &mut self.read_sequences,
        };
        let AccessSequence {
            sequence_number: number,
            sector_count: length,
            ..
        } = sequences.record_access(self.command_count, request.sector, end);
        let kind = match (request.is_write(), length > 0) {
            (false, true) => CommandKind::SequentialRead(request.hint),
            (false, false) => CommandKind::OtherRead(request.hint),
            (true, true) => CommandKind::SequentialWrite,
            (true, false) => CommandKind::OtherWrite,
        };
        if self.recorded_commands.len() == HISTORY_COMMANDS_MAX {
            self.recorded_commands.pop_front();
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
        let command = HistoryCommand {
            id,
            kind,
            sector_count: length,
        };
        self.recorded_commands.push_back((command, recorded));
        self.undecoded_commands.push(command);
    }

    /// Returns the policy for an arrived command, and removes the command from the undecoded ones.
    ///
    /// # Panics
    ///
    /// If the command has not arrived.
    pub(super) fn policy(&mut self, id: RequestId) -> CachePolicy {
        let mut undecoded = self.undecoded_commands.iter();
        let place = undecoded.position(|command| command.id == id);
        let place = place.expect("a command comes before it is decoded");
        self.undecoded_commands
            .remove(place)
            .policy(&self.policy_choice)
    }

    /// Records the end of a command in the drive's history.
    pub(super) fn record_end(&mut self, now: Time, id: RequestId) {
        let mut last = self.recorded_commands.iter_mut().rev();
        if let Some((_, recorded)) = last.find(|(command, _)| command.id == id) {
            recorded.ended_at = Some(now);
        }
    }

    fn rehearse_policies(&mut self, rehearsal: &Rehearsal<'_>) {
        let warmup_count = WARMUP_COMMANDS.min(self.recorded_commands.len() / 4);
        let script = Rc::new(RehearsalScript::new(
            self.recorded_commands.iter().map(|(_, recorded)| recorded),
            warmup_count,
        ));
        let command: Vec<HistoryCommand> = self
            .recorded_commands
            .iter()
            .map(|(command, _)| *command)
            .collect();
        let kinds: Vec<CommandKind> = command.iter().map(|command| command.kind).collect();
        self.policy_choice.improve_policies(&kinds, |choice| {
            let policies = command.iter().map(|command| command.policy(choice));
            rehearsal.measure_policies(&script, policies.collect())
        });
        self.rehearsed_events += rehearsal.event_count.get();
    }
}
