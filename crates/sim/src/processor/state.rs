//! State of a processor: stack frames of its process and its interrupt handlers.

use super::{InterruptLevel, Usage};
use crate::sim::Simulation;
use crate::task::TaskId;
use crate::time::Time;
use std::collections::VecDeque;
use strength_reduce::StrengthReducedU64;

pub(super) struct ProcessorState {
    /// Frame of the process that has the processor, if any.
    pub(super) process_frame: Option<Frame>,
    /// Frames of the interrupt handlers that have been entered, the innermost last.
    pub(super) handler_frames: Vec<Frame>,
    /// Masked interrupts that are pending, highest level first, and in order of request within a
    /// level. A driver that masks interrupts for seconds accumulates thousands.
    pub(super) pending_interrupts: VecDeque<(InterruptLevel, InterruptHandler)>,
    /// Time up to which the account of the innermost frame is settled.
    pub(super) settled_until: Time,
    pub(super) busy_time: Time,
    pub(super) handler_busy_time: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptHandler {
    /// Task that enters and leaves the handler.
    HandlerTask(TaskId),
    /// No task: the interrupt only consumes the given processor time.
    FixedCost(Time),
}

pub(super) struct Frame {
    /// Task that executes the frame. None for an interrupt that only consumes time.
    pub(super) task: Option<TaskId>,
    pub(super) interrupt_level: InterruptLevel,
    pub(super) is_working: bool,
    /// Cost of the current piece of work at full speed, in nanoseconds.
    pub(super) work_cost: u64,
    pub(super) remaining_work: u64,
    pub(super) run_time: Time,
    pub(super) started_at: Time,
}

/// Full speed, in the unit of [`super::Processors::set_rate`].
pub(super) const FULL_SPEED: u64 = 1000;

/// Speed of a processor, as work per time.
#[derive(Clone, Copy)]
pub(super) struct ProcessorRate {
    pub(super) thousandths: u64,
    /// Divisor for work at the current reduced speed, in thousandths. Unused at [`FULL_SPEED`].
    pub(super) divisor: StrengthReducedU64,
}

impl Default for ProcessorRate {
    fn default() -> Self {
        Self {
            thousandths: FULL_SPEED,
            divisor: StrengthReducedU64::new(FULL_SPEED),
        }
    }
}

impl ProcessorRate {
    /// Returns the rate changed to `thousandths`. The divisor of a reduced rate is kept, because
    /// bus traffic slows a processor by the same rate repeatedly.
    pub(super) fn with_thousandths(self, thousandths: u64) -> Self {
        let kept = thousandths == FULL_SPEED || thousandths == self.divisor.get();
        Self {
            thousandths,
            divisor: if kept {
                self.divisor
            } else {
                StrengthReducedU64::new(thousandths)
            },
        }
    }

    #[inline]
    pub(super) fn duration_of_work(self, cost: u64) -> Time {
        if self.thousandths == FULL_SPEED {
            Time(cost)
        } else {
            Time((cost * FULL_SPEED + (self.thousandths - 1)) / self.divisor)
        }
    }
}

impl ProcessorState {
    #[inline]
    pub(super) fn innermost_frame(&self) -> Option<&Frame> {
        self.handler_frames.last().or(self.process_frame.as_ref())
    }

    #[inline]
    pub(super) fn innermost_frame_mut(&mut self) -> Option<&mut Frame> {
        self.handler_frames
            .last_mut()
            .or(self.process_frame.as_mut())
    }

    #[inline]
    pub(super) fn is_innermost(&self, task: TaskId) -> bool {
        self.innermost_frame()
            .is_some_and(|frame| frame.task == Some(task))
    }

    /// Returns the current interrupt level; only interrupts of a higher level get in.
    #[inline]
    pub(super) fn current_level(&self) -> InterruptLevel {
        self.innermost_frame()
            .map_or(0, |frame| frame.interrupt_level)
    }

    pub(super) fn has_entered(&self, task: TaskId) -> bool {
        self.handler_frames
            .iter()
            .any(|frame| frame.task == Some(task))
    }

    pub(super) fn frame_of_task(&self, task: TaskId) -> &Frame {
        self.handler_frames
            .iter()
            .rev()
            .chain(&self.process_frame)
            .find(|frame| frame.task == Some(task))
            .expect("only who has the processor works on it")
    }

    pub(super) fn frame_of_task_mut(&mut self, task: TaskId) -> &mut Frame {
        self.handler_frames
            .iter_mut()
            .rev()
            .chain(&mut self.process_frame)
            .find(|frame| frame.task == Some(task))
            .expect("only who has the processor works on it")
    }

    pub(super) fn start_work(&mut self, task: TaskId, cost: Time, now: Time) {
        let frame = self.frame_of_task_mut(task);
        assert!(!frame.is_working, "one piece of work at a time");
        frame.is_working = true;
        frame.work_cost = cost.0;
        frame.remaining_work = cost.0;
        frame.run_time = Time::ZERO;
        frame.started_at = now;
    }

    #[inline]
    pub(super) fn book_busy(&mut self, passed: Time) {
        self.busy_time += passed;
        if !self.handler_frames.is_empty() {
            self.handler_busy_time += passed;
        }
    }

    /// Settles the account of the innermost frame up to now.
    pub(super) fn settle_until(&mut self, now: Time, rate: u64) {
        // What passed through ([`Processor::interrupt`]) may be ahead.
        let Some(passed) = now.0.checked_sub(self.settled_until.0).map(Time) else {
            return;
        };
        self.settled_until = now;
        let Some(frame) = self.innermost_frame_mut().filter(|frame| frame.is_working) else {
            return;
        };
        let done = if rate == FULL_SPEED {
            passed.0
        } else {
            passed.0 * rate / FULL_SPEED
        };
        frame.remaining_work = frame.remaining_work.saturating_sub(done);
        frame.run_time += passed;
        self.book_busy(passed);
    }

    /// Adds a masked interrupt to the pending ones.
    pub(super) fn add_pending(&mut self, level: InterruptLevel, handler: InterruptHandler) {
        let behind = self
            .pending_interrupts
            .partition_point(|(waits, _)| *waits >= level);
        self.pending_interrupts.insert(behind, (level, handler));
    }

    /// Enters the handler of the highest pending interrupt if its level is unmasked. Interrupts of
    /// the same level run in order of request.
    pub(super) fn enter_pending<E>(&mut self, sim: &Simulation<E>) {
        let level = self.current_level();
        if self
            .pending_interrupts
            .front()
            .is_none_or(|(waits, _)| *waits <= level)
        {
            return;
        }
        let Some((level, handler)) = self.pending_interrupts.pop_front() else {
            return;
        };
        self.handler_frames.push(match handler {
            InterruptHandler::HandlerTask(task) => {
                sim.wake_task(task);
                Frame::new(Some(task), level)
            }
            InterruptHandler::FixedCost(cost) => Frame::with_cost(level, cost, sim.now()),
        });
    }
}

impl Frame {
    /// Returns the frame of an interrupt that only consumes time and has no task.
    pub(super) fn with_cost(level: InterruptLevel, cost: Time, now: Time) -> Self {
        Self {
            is_working: true,
            work_cost: cost.0,
            remaining_work: cost.0,
            started_at: now,
            ..Self::new(None, level)
        }
    }

    /// Marks the work of the frame as done. Rounding at rate changes leaves less than a nanosecond
    /// of work for each change, which is dropped.
    pub(super) fn end_work(&mut self) {
        (self.remaining_work, self.is_working) = (0, false);
    }

    /// Returns the time breakdown of the work that has just ended.
    pub(super) fn usage(&self, now: Time) -> Usage {
        Usage {
            work_time: Time(self.work_cost),
            interrupted_time: (now - self.started_at) - self.run_time,
            slowdown_time: self.run_time - Time(self.work_cost),
        }
    }

    pub(super) fn new(task: Option<TaskId>, level: InterruptLevel) -> Self {
        Self {
            task,
            interrupt_level: level,
            is_working: false,
            work_cost: 0,
            remaining_work: 0,
            run_time: Time::ZERO,
            started_at: Time::ZERO,
        }
    }
}
