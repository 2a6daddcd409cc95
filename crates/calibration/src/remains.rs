//! Which requests a replay misses, and what was probably wrong.

use crate::model::Answer;
use crate::places::Placed;
use crate::replay::Replayed;
use diskperf_diskspecs::trace::Operation;

/// Why a request is off by more than half a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The drive had it in its buffer, the model did not.
    Held,
    /// The model had it in its buffer, the drive did not.
    NotHeld,
    /// A revolution was missed by one of them only, after a write that had been reported
    /// early: where the arm was is a guess.
    RevolutionAfterEarlyWrite,
    /// A revolution was missed by one of them only: the seek ended near the sector.
    Revolution,
    /// Anything else: a retry, a constant.
    Time,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 5] = [
        Cause::Held,
        Cause::NotHeld,
        Cause::RevolutionAfterEarlyWrite,
        Cause::Revolution,
        Cause::Time,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Held => "read from the buffer by the drive only",
            Cause::NotHeld => "read from the buffer by the model only",
            Cause::RevolutionAfterEarlyWrite => "revolution, after a write reported early",
            Cause::Revolution => "revolution, at the end of a seek",
            Cause::Time => "time",
        }
    }
}

/// Requests that are off by one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remaining {
    /// Why.
    pub cause: Cause,
    /// How many.
    pub requests: usize,
    /// Their share of the squared error.
    pub squared_error_percent: f64,
}

/// Requests off by less are met, in microseconds.
const MET_US: f64 = 500.0;

/// What is left, by cause, of requests that follow `before`.
pub(crate) fn remaining(
    before: Option<&Placed>,
    requests: &[Placed],
    replayed: &[Replayed],
    period_us: f64,
    is_fast: impl Fn(&Placed) -> bool,
) -> Vec<Remaining> {
    let all: f64 = requests
        .iter()
        .zip(replayed)
        .map(|(placed, replayed)| error_us(placed, replayed).powi(2))
        .sum();
    let mut found = Cause::ALL.map(|cause| Remaining {
        cause,
        requests: 0,
        squared_error_percent: 0.0,
    });
    let previous = before.into_iter().chain(requests);
    let skipped = usize::from(before.is_none());
    for ((previous, placed), replayed) in previous
        .zip(&requests[skipped.min(requests.len())..])
        .zip(&replayed[skipped.min(replayed.len())..])
    {
        let error_us = error_us(placed, replayed);
        if error_us.abs() <= MET_US {
            continue;
        }
        let cause = match (placed.request.operation, replayed.answer, is_fast(placed)) {
            (Operation::Read, Answer::Medium, true) => Cause::Held,
            (Operation::Read, Answer::Buffer, false) => Cause::NotHeld,
            (_, Answer::Medium, _) if is_whole(error_us, period_us) => {
                let after_early = previous.request.operation == Operation::Write
                    && previous.request.service_us < period_us / 2.0;
                match after_early {
                    true => Cause::RevolutionAfterEarlyWrite,
                    false => Cause::Revolution,
                }
            }
            _ => Cause::Time,
        };
        let one = &mut found[cause as usize];
        one.requests += 1;
        one.squared_error_percent += 100.0 * error_us * error_us / all.max(f64::MIN_POSITIVE);
    }
    found.into_iter().filter(|one| one.requests > 0).collect()
}

fn error_us(placed: &Placed, replayed: &Replayed) -> f64 {
    replayed.service_us - placed.request.service_us
}

/// Whether an error is nearly of whole revolutions.
fn is_whole(error_us: f64, period_us: f64) -> bool {
    let turns = (error_us / period_us).round();
    turns != 0.0 && (error_us - turns * period_us).abs() <= MET_US
}
