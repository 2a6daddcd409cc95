//! A trace in a closed loop: one request at a time, each issued after the pause that the
//! trace has, counted from the completion before it.

use crate::model::{Answer, Model, Prepared, State};
use crate::places::Placed;
use diskperf_diskspecs::phase::Think;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// From issue to completion as modelled, in microseconds.
    pub service_us: f64,
    /// How the model answered it.
    pub answer: Answer,
    /// It came while a write that had been reported early was still being written.
    pub waited_for_write: bool,
}

/// Replays requests from the first one on: the first pause is counted from time 0, later
/// ones from modelled completions. Nothing that was measured is used.
pub(crate) fn replay(model: &Model<'_>, placed: &[Placed], think: Think) -> Vec<Replayed> {
    replay_shown(model, placed, think, |_| ())
}

/// A request that was replayed, with the state of the drive when it came.
pub(crate) struct Shown<'s, 'm> {
    /// Counted from 0.
    pub(crate) index: usize,
    pub(crate) placed: &'s Placed,
    pub(crate) state: &'s State<'m>,
    pub(crate) prepared: &'s Prepared,
    pub(crate) issue_us: f64,
    pub(crate) replayed: Replayed,
}

/// As [`replay`], and shows each request to `see`.
pub(crate) fn replay_shown(
    model: &Model<'_>,
    placed: &[Placed],
    think: Think,
    mut see: impl FnMut(&Shown<'_, '_>),
) -> Vec<Replayed> {
    let Some(first) = placed.first() else {
        return Vec::new();
    };
    let mut state = State::new(model, first);
    let mut now_us = 0.0;
    let mut replayed = Vec::with_capacity(placed.len());
    for (index, one) in placed.iter().enumerate() {
        let issue_us = now_us + before_us(one, think);
        let prepared = state.prepare(one, issue_us);
        let (completion_us, answer) = state.modelled(&prepared, one, issue_us);
        let modelled = Replayed {
            service_us: completion_us - issue_us,
            answer,
            waited_for_write: prepared.start_us > issue_us,
        };
        see(&Shown {
            index,
            placed: one,
            state: &state,
            prepared: &prepared,
            issue_us,
            replayed: modelled,
        });
        state.finish(one, issue_us, completion_us, answer);
        replayed.push(modelled);
        now_us = completion_us + after_us(one, think);
    }
    replayed
}

/// Follows requests as they were measured, and shows each to `see` with the state of the
/// drive when it came and its issue; `see` says how it was answered.
pub(crate) fn follow(
    model: &Model<'_>,
    placed: &[Placed],
    think: Think,
    mut see: impl FnMut(&Placed, &Prepared, f64) -> Answer,
) {
    let Some(first) = placed.first() else {
        return;
    };
    let mut state = State::new(model, first);
    let mut now_us = 0.0;
    for one in placed {
        let issue_us = now_us + before_us(one, think);
        let prepared = state.prepare(one, issue_us);
        let answer = see(one, &prepared, issue_us);
        let completion_us = issue_us + one.request.service_us;
        state.finish(one, issue_us, completion_us, answer);
        now_us = completion_us + after_us(one, think);
    }
}

fn before_us(placed: &Placed, think: Think) -> f64 {
    match think {
        Think::Before => placed.request.think_us,
        Think::After => 0.0,
    }
}

fn after_us(placed: &Placed, think: Think) -> f64 {
    match think {
        Think::Before => 0.0,
        Think::After => placed.request.think_us,
    }
}
