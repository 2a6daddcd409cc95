//! Script of the last commands with the conditions that each command waited for.
//!
//! A program waits for its earlier requests. A command therefore arrives as long after the end of
//! another command as it did in the recording, and a faster command lets its successors arrive
//! earlier.

use diskperf_device::Request;
use diskperf_sim::Time;

/// Command that arrived at the controller, with its times of arrival and end.
#[derive(Clone, Debug)]
pub(super) struct RecordedCommand {
    pub(super) request: Request,
    /// Number of the sequence of accesses that the command belongs to.
    pub(super) sequence: u64,
    pub(super) arrived_at: Time,
    pub(super) ended_at: Option<Time>,
}

/// Maximum distance, in commands, from a command to the later command that responds to its end. It
/// is above the number of commands in flight.
const RESPONSE_DISTANCE_MAX: usize = 16;

/// Maximum delay after which a command counts as a response to the end of a command of another
/// sequence, as the write of a copy does. It is about the time of a system call and a driver.
const RESPONSE_DELAY_MAX: Time = Time(4_000_000);

/// Commands in the order of their arrival, with the conditions that each waits for.
#[derive(Debug)]
pub(super) struct RehearsalScript {
    pub(super) requests: Vec<Request>,
    /// Commands of the script that wait for the end of each command, by the index of that command.
    pub(super) triggered_by_completion: Vec<Vec<usize>>,
    pub(super) triggered_by_arrival: Vec<Vec<usize>>,
    /// Number of conditions (ends and arrivals of other commands) that each command of the script
    /// waits for.
    pub(super) trigger_counts: Vec<u8>,
    /// Delay of each command of the script after its last condition.
    pub(super) submission_delays: Vec<Time>,
    /// Number of commands that end before the measured time begins.
    pub(super) warmup_count: usize,
}

impl RehearsalScript {
    /// Returns the script of the given commands. The measured time begins at the end of the first
    /// `warmup_count` commands.
    pub(super) fn new<'a>(
        recorded: impl Iterator<Item = &'a RecordedCommand>,
        warmup_count: usize,
    ) -> Self {
        let recorded: Vec<&RecordedCommand> = recorded.collect();
        let mut script = Self {
            requests: recorded.iter().map(|one| one.request.clone()).collect(),
            triggered_by_completion: vec![Vec::new(); recorded.len()],
            triggered_by_arrival: vec![Vec::new(); recorded.len()],
            trigger_counts: vec![0; recorded.len()],
            submission_delays: vec![Time::ZERO; recorded.len()],
            warmup_count,
        };
        let mut has_response = vec![false; recorded.len()];
        for (number, one) in recorded.iter().enumerate() {
            let mut since = recorded[0].arrived_at;
            let earlier = (0..number).rev();
            let mut same = earlier.filter(|other| recorded[*other].sequence == one.sequence);
            if let Some(before) = same.next() {
                script.triggered_by_arrival[before].push(number);
                script.trigger_counts[number] += 1;
                since = recorded[before].arrived_at;
            }
            if let Some((ended_at, before)) = find_trigger(&recorded, &has_response, number) {
                has_response[before] = true;
                script.triggered_by_completion[before].push(number);
                script.trigger_counts[number] += 1;
                since = since.max(ended_at);
            }
            script.submission_delays[number] = one.arrived_at - since;
        }
        script
    }
}

/// Returns the end time and the number of the earlier command to whose end a command responds. A
/// program has some commands in flight, mostly of one sequence, and submits the next one when the
/// first of them has ended and has been processed.
fn find_trigger(
    recorded: &[&RecordedCommand],
    has_response: &[bool],
    number: usize,
) -> Option<(Time, usize)> {
    let one = recorded[number];
    let is_own = |before: usize| recorded[before].sequence == one.sequence;
    let ends_at = || {
        let ended_at = |before: usize| Some((recorded[before].ended_at?, before));
        let ended_at = (0..number).filter_map(ended_at);
        ended_at.filter(|(at, _)| *at <= one.arrived_at)
    };
    let is_open = |before: usize| !has_response[before] && number - before <= RESPONSE_DISTANCE_MAX;
    let open = || ends_at().filter(|(_, before)| is_open(*before));
    let own = open().filter(|(_, before)| is_own(*before)).min();
    let last = open().max();
    let at_once =
        last.filter(|(at, before)| !is_own(*before) && one.arrived_at - *at < RESPONSE_DELAY_MAX);
    match (own, at_once) {
        (Some(own), Some(last)) if last > own => Some(last),
        (Some(own), _) => Some(own),
        (None, _) => open().min().or_else(|| ends_at().max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands of sequences, with the milliseconds at which they came and ended, and
    /// what each waits for: ends, comings, and for how long after these.
    fn list_conditions(recorded: &[(u64, u64, u64)]) -> Vec<(Vec<usize>, Vec<usize>, u64)> {
        let recorded: Vec<RecordedCommand> = recorded
            .iter()
            .map(|(sequence, arrived_at, ended_at)| RecordedCommand {
                request: Request::default(),
                sequence: *sequence,
                arrived_at: Time::from_millis(*arrived_at),
                ended_at: Some(Time::from_millis(*ended_at)),
            })
            .collect();
        let script = RehearsalScript::new(recorded.iter(), 0);
        let of = |lists: &[Vec<usize>], number: usize| {
            let has = |before: &usize| lists[*before].contains(&number);
            (0..lists.len()).filter(has).collect::<Vec<_>>()
        };
        let gap = |number: usize| script.submission_delays[number].0 / 1_000_000;
        let one = |number| {
            let ends_at = of(&script.triggered_by_completion, number);
            (
                ends_at,
                of(&script.triggered_by_arrival, number),
                gap(number),
            )
        };
        (0..recorded.len()).map(one).collect()
    }

    #[test]
    fn the_next_block_of_a_file_waits_for_the_last_but_one() {
        let recorded = [(1, 0, 10), (1, 1, 14), (1, 13, 20), (1, 17, 24)];
        let expected = [
            (vec![], vec![], 0),
            (vec![], vec![0], 1),
            (vec![0], vec![1], 3),
            (vec![1], vec![2], 3),
        ];
        assert_eq!(list_conditions(&recorded), expected);
    }

    #[test]
    fn a_copy_waits_for_its_read_and_then_for_its_write() {
        let recorded = [(1, 0, 10), (2, 11, 20), (1, 21, 30), (2, 31, 40)];
        let expected = [
            (vec![], vec![], 0),
            (vec![0], vec![], 1),
            (vec![1], vec![0], 1),
            (vec![2], vec![1], 1),
        ];
        assert_eq!(list_conditions(&recorded), expected);
    }

    #[test]
    fn of_two_readers_each_waits_for_itself() {
        let recorded = [
            (1, 0, 10),
            (2, 0, 16),
            (1, 30, 40),
            (2, 36, 46),
            (1, 60, 70),
        ];
        let expected = [
            (vec![], vec![], 0),
            (vec![], vec![], 0),
            (vec![0], vec![0], 20),
            (vec![1], vec![1], 20),
            (vec![2], vec![2], 20),
        ];
        assert_eq!(list_conditions(&recorded), expected);
    }
}
