//! What a limit on losses says of a measurement that ended because it was answered.

use super::*;

/// Measurements of each case.
const CASES: usize = 400;

/// Blocks for which there is time.
const BLOCKS_MAX: usize = 3_000;

/// Share of the speed that may be lost.
const LIMIT: f64 = 0.05;

/// Share of measurements that end with the limit open and time left, where the median of
/// all blocks says that it is answered.
const OPEN_SHARE_BEFORE_MIN: f64 = 0.10;

/// A measurement that has ended.
struct EndedSequence {
    sequence: ConfidenceSequence,
    /// Whether there was time for more blocks.
    has_room: bool,
}

impl EndedSequence {
    fn is_open(&self) -> bool {
        self.has_room && self.sequence.is_slowdown_above(LIMIT).is_none()
    }
}

/// Judges as [`ConfidenceSequence::is_slowdown_above`], by the median of all blocks.
fn judge_by_all_blocks(sequence: &ConfidenceSequence) -> Option<bool> {
    let estimate = sequence.estimate()?;
    let bound = -libm::log1p(-LIMIT);
    if sequence.verdict() == Some(SequenceVerdict::Slower) && estimate.ln_ratio > bound {
        return Some(true);
    }
    (estimate.ln_ratio_max < bound).then_some(false)
}

/// Blocks until both are answered, then those that measure the size, and more of these
/// while the limit is open, if `extends`.
fn measured(
    block: &mut dyn FnMut() -> (f64, bool),
    answered: fn(&ConfidenceSequence) -> Option<bool>,
    extends: bool,
) -> EndedSequence {
    let mut sequence = ConfidenceSequence::new(1, DecisionLimits::default());
    let mut add = |sequence: &mut ConfidenceSequence| {
        let has_room = sequence.block_count() < BLOCKS_MAX;
        if has_room {
            let (ln_ratio, b_second) = block();
            sequence.add_ratio(ln_ratio, b_second);
        }
        has_room
    };
    let mut has_room = true;
    while has_room && (sequence.verdict().is_none() || answered(&sequence).is_none()) {
        has_room = add(&mut sequence);
    }
    sequence.begin_size_phase();
    let is_found = matches!(
        sequence.verdict(),
        Some(SequenceVerdict::Slower | SequenceVerdict::Faster)
    );
    let mut phase = if is_found {
        size_block_count(sequence.block_count())
    } else {
        0
    };
    loop {
        for _ in 0..phase {
            has_room &= add(&mut sequence);
        }
        if !extends || !has_room || sequence.is_slowdown_above(LIMIT).is_some() {
            return EndedSequence { sequence, has_room };
        }
        phase = size_block_count(sequence.block_count());
    }
}

/// Shares of measurements of one difference.
#[derive(Debug)]
struct GateShares {
    open_before: f64,
    open: f64,
    exceeded: f64,
}

fn shares(ln_ratio: f64, deviation: f64) -> GateShares {
    let mut random = Random::new(43);
    let mut block = || (ln_ratio + deviation * random.normal(), random.coin());
    let share = |count: usize| count as f64 / CASES as f64;
    let mut count = |answered, extends, is: &dyn Fn(&EndedSequence) -> bool| {
        let all = (0..CASES).map(|_| measured(&mut block, answered, extends));
        share(all.filter(|one| is(one)).count())
    };
    let answered = |sequence: &ConfidenceSequence| sequence.is_slowdown_above(LIMIT);
    GateShares {
        open_before: count(judge_by_all_blocks, false, &EndedSequence::is_open),
        open: count(answered, true, &EndedSequence::is_open),
        exceeded: count(answered, true, &|one| {
            one.sequence.is_slowdown_above(LIMIT) == Some(true)
        }),
    }
}

/// The limit is 0.051 as a logarithm.
#[test]
fn no_measurement_ends_with_the_limit_open_and_time_left() {
    for (ln_ratio, deviation, exceeded) in [
        (0.0, 0.05, 0.0..=0.01),
        (0.03, 0.05, 0.0..=0.25),
        (0.0513, 0.05, 0.2..=1.0),
        (0.06, 0.05, 0.75..=1.0),
        (0.10, 0.05, 0.99..=1.0),
        (0.06, 0.10, 0.6..=1.0),
    ] {
        let found = shares(ln_ratio, deviation);
        let place = format!("{ln_ratio} with {deviation}: {found:?}");
        eprintln!("{place}");
        assert!(found.open == 0.0, "{place}");
        assert!(exceeded.contains(&found.exceeded), "{place}");
        if (0.05..0.07).contains(&ln_ratio) {
            assert!(found.open_before >= OPEN_SHARE_BEFORE_MIN, "{place}");
        }
    }
}
