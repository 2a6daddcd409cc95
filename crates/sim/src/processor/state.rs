//! State of a processor: stack frames of its process and its interrupt handlers.

use super::{Level, Usage};
use crate::sim::Sim;
use crate::task::TaskId;
use crate::time::Time;
use std::collections::VecDeque;
use strength_reduce::StrengthReducedU64;

pub(super) struct State {
    /// Frame of the process that has the processor, if any.
    pub(super) base: Option<Frame>,
    /// Frames of the interrupt handlers that have been entered, the innermost last.
    pub(super) handlers: Vec<Frame>,
    /// Masked interrupts that are pending, highest level first, and in order of request within a
    /// level. A driver that masks interrupts for seconds accumulates thousands.
    pub(super) pending: VecDeque<(Level, Handler)>,
    /// Time up to which the account of the innermost frame is settled.
    pub(super) since: Time,
    pub(super) busy: Time,
    pub(super) busy_in_handlers: Time,
}

/// Handler of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// Task that enters and leaves the handler.
    Task(TaskId),
    /// No task: the interrupt only consumes the given processor time.
    Cost(Time),
}

pub(super) struct Frame {
    /// Task that executes the frame. None for an interrupt that only consumes time.
    pub(super) task: Option<TaskId>,
    pub(super) level: Level,
    pub(super) working: bool,
    /// Cost of the current piece of work at full speed, in nanoseconds.
    pub(super) cost: u64,
    pub(super) left: u64,
    pub(super) running: Time,
    pub(super) started: Time,
}

/// Full speed, in the unit of [`Processor::set_rate`].
pub(super) const FULL: u64 = 1000;

/// Speed of a processor, as work per time.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub(super) thousandths: u64,
    /// Divisor for work at the current reduced speed, in thousandths. Unused at [`FULL`] speed.
    pub(super) slowed: StrengthReducedU64,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            thousandths: FULL,
            slowed: StrengthReducedU64::new(FULL),
        }
    }
}

impl Rate {
    /// Returns the rate changed to `thousandths`. The divisor of a reduced rate is kept, because
    /// bus traffic slows a processor by the same rate repeatedly.
    pub(super) fn changed(self, thousandths: u64) -> Self {
        let kept = thousandths == FULL || thousandths == self.slowed.get();
        Self {
            thousandths,
            slowed: if kept {
                self.slowed
            } else {
                StrengthReducedU64::new(thousandths)
            },
        }
    }

    /// Returns the duration of work with the given cost at the current rate.
    #[inline]
    pub(super) fn duration(self, cost: u64) -> Time {
        if self.thousandths == FULL {
            Time(cost)
        } else {
            Time((cost * FULL + (self.thousandths - 1)) / self.slowed)
        }
    }
}

impl State {
    #[inline]
    pub(super) fn top(&self) -> Option<&Frame> {
        self.handlers.last().or(self.base.as_ref())
    }

    #[inline]
    pub(super) fn top_mut(&mut self) -> Option<&mut Frame> {
        self.handlers.last_mut().or(self.base.as_mut())
    }

    #[inline]
    pub(super) fn is_innermost(&self, task: TaskId) -> bool {
        self.top().is_some_and(|frame| frame.task == Some(task))
    }

    /// Returns the current interrupt level; only interrupts of a higher level get in.
    #[inline]
    pub(super) fn level(&self) -> Level {
        self.top().map_or(0, |frame| frame.level)
    }

    pub(super) fn has_entered(&self, task: TaskId) -> bool {
        self.handlers.iter().any(|frame| frame.task == Some(task))
    }

    pub(super) fn frame(&self, task: TaskId) -> &Frame {
        self.handlers
            .iter()
            .rev()
            .chain(&self.base)
            .find(|frame| frame.task == Some(task))
            .expect("only who has the processor works on it")
    }

    pub(super) fn frame_mut(&mut self, task: TaskId) -> &mut Frame {
        self.handlers
            .iter_mut()
            .rev()
            .chain(&mut self.base)
            .find(|frame| frame.task == Some(task))
            .expect("only who has the processor works on it")
    }

    pub(super) fn start(&mut self, task: TaskId, cost: Time, now: Time) {
        let frame = self.frame_mut(task);
        assert!(!frame.working, "one piece of work at a time");
        frame.working = true;
        frame.cost = cost.0;
        frame.left = cost.0;
        frame.running = Time::ZERO;
        frame.started = now;
    }

    #[inline]
    pub(super) fn count(&mut self, passed: Time) {
        self.busy += passed;
        if !self.handlers.is_empty() {
            self.busy_in_handlers += passed;
        }
    }

    /// Settles the account of the innermost frame up to now.
    pub(super) fn settle(&mut self, now: Time, rate: u64) {
        // What passed through ([`Processor::interrupt`]) may be ahead.
        let Some(passed) = now.0.checked_sub(self.since.0).map(Time) else {
            return;
        };
        self.since = now;
        let Some(frame) = self.top_mut().filter(|frame| frame.working) else {
            return;
        };
        let done = if rate == FULL {
            passed.0
        } else {
            passed.0 * rate / FULL
        };
        frame.left = frame.left.saturating_sub(done);
        frame.running += passed;
        self.count(passed);
    }

    /// Adds a masked interrupt to the pending ones.
    pub(super) fn request(&mut self, level: Level, handler: Handler) {
        let behind = self.pending.partition_point(|(waits, _)| *waits >= level);
        self.pending.insert(behind, (level, handler));
    }

    /// Enters the handler of the highest pending interrupt if its level is unmasked. Interrupts of
    /// the same level run in order of request.
    pub(super) fn admit<E>(&mut self, sim: &Sim<E>) {
        let level = self.level();
        if self
            .pending
            .front()
            .is_none_or(|(waits, _)| *waits <= level)
        {
            return;
        }
        let Some((level, handler)) = self.pending.pop_front() else {
            return;
        };
        self.handlers.push(match handler {
            Handler::Task(task) => {
                sim.wake(task);
                Frame::new(Some(task), level)
            }
            Handler::Cost(cost) => Frame::costing(level, cost, sim.now()),
        });
    }
}

impl Frame {
    /// Returns the frame of an interrupt that only consumes time and has no task.
    pub(super) fn costing(level: Level, cost: Time, now: Time) -> Self {
        Self {
            working: true,
            cost: cost.0,
            left: cost.0,
            started: now,
            ..Self::new(None, level)
        }
    }

    /// Marks the work of the frame as done. Rounding at rate changes leaves less than a nanosecond
    /// of work for each change, which is dropped.
    pub(super) fn end(&mut self) {
        (self.left, self.working) = (0, false);
    }

    /// Returns the time breakdown of the work that has just ended.
    pub(super) fn usage(&self, now: Time) -> Usage {
        Usage {
            work: Time(self.cost),
            interrupted: (now - self.started) - self.running,
            slowed: self.running - Time(self.cost),
        }
    }

    pub(super) fn new(task: Option<TaskId>, level: Level) -> Self {
        Self {
            task,
            level,
            working: false,
            cost: 0,
            left: 0,
            running: Time::ZERO,
            started: Time::ZERO,
        }
    }
}
