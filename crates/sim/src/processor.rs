//! A processor: one process at the bottom, interrupts on top of it.
//!
//! Work has a cost in time at full speed. How long it takes is not known when
//! it starts: interrupts of a higher level preempt it, and the rate at which
//! work gets done changes while it runs ([`Processor::set_rate`]).

use crate::clock::Clock;
use crate::sim::Sim;
use crate::task::TaskId;
use crate::time::Time;
use std::cell::RefCell;

/// An interrupt priority level; 0 lets every interrupt in.
pub type Level = u8;

/// Work that may have come to its end. The owner of the engine hands it to
/// [`Processor::complete`].
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    generation: u64,
}

/// Where the time of one piece of work went; the three add up to the time
/// that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The work itself, at full speed.
    pub work: Time,
    /// Waiting for interrupts that came in between.
    pub interrupted: Time,
    /// What the work took longer because the processor was slowed.
    pub slowed: Time,
}

/// A processor with preemption by level and a rate that may change.
pub struct Processor {
    state: RefCell<State>,
}

struct State {
    /// The process that has the processor, if any.
    base: Option<Frame>,
    /// Handlers that have been entered, the innermost last.
    handlers: Vec<Frame>,
    /// Interrupts that were requested and are masked, in order of request.
    pending: Vec<(Level, TaskId)>,
    /// Work done per time, in thousandths of full speed.
    rate: u64,
    /// Since when the innermost frame has run at this rate.
    since: Time,
    /// Outdates the completions that are still queued.
    generation: u64,
    busy: Time,
    busy_in_handlers: Time,
}

struct Frame {
    task: TaskId,
    level: Level,
    working: bool,
    /// Of the present piece of work: its cost, what is left of it, and for how
    /// long it has been running.
    cost: u64,
    left: u64,
    running: Time,
    started: Time,
}

/// Full speed, in the unit of [`Processor::set_rate`].
const FULL: u64 = 1000;

impl Default for Processor {
    fn default() -> Self {
        Self {
            state: RefCell::new(State {
                base: None,
                handlers: Vec::with_capacity(8),
                pending: Vec::with_capacity(8),
                rate: FULL,
                since: Time::ZERO,
                generation: 0,
                busy: Time::ZERO,
                busy_in_handlers: Time::ZERO,
            }),
        }
    }
}

/// The process at the bottom.
impl Processor {
    /// Gives the processor to a process.
    ///
    /// # Panics
    ///
    /// When another process has it.
    pub fn give(&self, process: TaskId) {
        let mut state = self.state.borrow_mut();
        assert!(state.base.is_none(), "two processes on one processor");
        state.base = Some(Frame::new(process, 0));
    }

    /// The process gives the processor up.
    ///
    /// # Panics
    ///
    /// When it does not have it, or has interrupts masked.
    pub fn give_up<E, C: Clock>(&self, sim: &Sim<E, C>) {
        let frame = self.state.borrow_mut().base.take();
        let frame = frame.expect("a process without the processor gave it up");
        assert!(
            frame.task == sim.current() && frame.level == 0 && !frame.working,
            "a process gave the processor up in the middle of something"
        );
    }

    /// The process that has the processor.
    #[inline]
    pub fn process(&self) -> Option<TaskId> {
        self.state.borrow().base.as_ref().map(|frame| frame.task)
    }
}

impl Processor {
    /// Whether anything runs.
    #[inline]
    pub fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state.top().is_some_and(|frame| frame.working)
    }

    /// Whether a handler has been entered and not yet left.
    pub fn in_handler(&self) -> bool {
        !self.state.borrow().handlers.is_empty()
    }

    /// For how long something ran up to now, and how much of it was in
    /// handlers of interrupts.
    pub fn busy<E, C: Clock>(&self, sim: &Sim<E, C>) -> (Time, Time) {
        let mut state = self.state.borrow_mut();
        state.settle(sim.now());
        (state.busy, state.busy_in_handlers)
    }

    /// Work gets done at `thousandths` of full speed from now on.
    ///
    /// # Panics
    ///
    /// When that is nothing, or more than full speed.
    pub fn set_rate<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, thousandths: u64) {
        assert!((1..=FULL).contains(&thousandths), "a rate of {thousandths}");
        let mut state = self.state.borrow_mut();
        if state.rate == thousandths {
            return;
        }
        state.settle(sim.now());
        state.rate = thousandths;
        state.reschedule(sim);
    }

    /// Does work that costs `cost` at full speed, for the task that asks.
    #[inline]
    pub async fn work<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, cost: Time) -> Usage {
        if cost == Time::ZERO {
            return Usage::default();
        }
        let started = sim.now();
        let task = sim.current();
        {
            let mut state = self.state.borrow_mut();
            let innermost = state.is_innermost(task);
            if innermost {
                let ends = started + state.duration(cost.0);
                if sim.try_advance(ends) {
                    let passed = ends - started;
                    state.count(passed);
                    return Usage {
                        work: cost,
                        interrupted: Time::ZERO,
                        slowed: passed - cost,
                    };
                }
            }
            state.start(task, cost, started);
            if innermost {
                state.since = started;
                state.reschedule(sim);
            }
        }
        // A task may be woken for another reason while it works.
        while self.state.borrow().frame(task).working {
            sim.wait("the processor").await;
        }
        self.usage(task, sim.now())
    }

    fn usage(&self, task: TaskId, now: Time) -> Usage {
        let state = self.state.borrow();
        let frame = state.frame(task);
        Usage {
            work: Time(frame.cost),
            interrupted: (now - frame.started) - frame.running,
            slowed: frame.running - Time(frame.cost),
        }
    }

    /// A piece of work has come to its end, unless it was interrupted or the
    /// rate changed since.
    pub fn complete<E, C: Clock>(&self, sim: &Sim<E, C>, completion: Completion) {
        let mut state = self.state.borrow_mut();
        if completion.generation != state.generation {
            return;
        }
        state.settle(sim.now());
        let frame = state.top_mut().expect("work completes on a frame");
        assert!(frame.working, "work completed that nobody does");
        // What the rounding of a changed rate left over is less than a
        // nanosecond of work for each change.
        frame.left = 0;
        frame.working = false;
        sim.wake(frame.task);
    }
}

/// Interrupts.
impl Processor {
    /// Enters a handler at this level, for the task that asks, as soon as
    /// nothing of this level or above runs.
    pub async fn enter<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, level: Level) {
        {
            let mut state = self.state.borrow_mut();
            if level > state.level() {
                state.settle(sim.now());
                state.handlers.push(Frame::new(sim.current(), level));
                state.reschedule(sim);
                return;
            }
            state.pending.push((level, sim.current()));
        }
        let task = sim.current();
        while !self.state.borrow().has_entered(task) {
            sim.wait("a lower interrupt level").await;
        }
    }

    /// Leaves the handler.
    ///
    /// # Panics
    ///
    /// When the task that asks is not in the innermost one.
    pub fn leave<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>) {
        let mut state = self.state.borrow_mut();
        state.settle(sim.now());
        let frame = state.handlers.pop().expect("a handler is left once");
        assert!(
            frame.task == sim.current() && !frame.working,
            "handlers are left from the inside out"
        );
        state.admit(sim);
        state.reschedule(sim);
    }

    /// Raises or lowers the level of the task that asks; the one before.
    /// Lowering it lets in what was masked.
    pub fn mask<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, level: Level) -> Level {
        let mut state = self.state.borrow_mut();
        let frame = state.frame_mut(sim.current());
        let before = std::mem::replace(&mut frame.level, level);
        if level < before && !state.pending.is_empty() {
            state.settle(sim.now());
            state.admit(sim);
            state.reschedule(sim);
        }
        before
    }
}

impl State {
    #[inline]
    fn top(&self) -> Option<&Frame> {
        self.handlers.last().or(self.base.as_ref())
    }

    #[inline]
    fn top_mut(&mut self) -> Option<&mut Frame> {
        self.handlers.last_mut().or(self.base.as_mut())
    }

    #[inline]
    fn is_innermost(&self, task: TaskId) -> bool {
        self.top().is_some_and(|frame| frame.task == task)
    }

    /// The level below which no interrupt gets in.
    #[inline]
    fn level(&self) -> Level {
        self.top().map_or(0, |frame| frame.level)
    }

    fn has_entered(&self, task: TaskId) -> bool {
        self.handlers.iter().any(|frame| frame.task == task)
    }

    fn frame(&self, task: TaskId) -> &Frame {
        self.handlers
            .iter()
            .rev()
            .chain(&self.base)
            .find(|frame| frame.task == task)
            .expect("only who has the processor works on it")
    }

    fn frame_mut(&mut self, task: TaskId) -> &mut Frame {
        self.handlers
            .iter_mut()
            .rev()
            .chain(&mut self.base)
            .find(|frame| frame.task == task)
            .expect("only who has the processor works on it")
    }

    fn start(&mut self, task: TaskId, cost: Time, now: Time) {
        let frame = self.frame_mut(task);
        assert!(!frame.working, "one piece of work at a time");
        frame.working = true;
        frame.cost = cost.0;
        frame.left = cost.0;
        frame.running = Time::ZERO;
        frame.started = now;
    }

    /// How long work of this cost takes at the present rate.
    #[inline]
    fn duration(&self, cost: u64) -> Time {
        if self.rate == FULL {
            Time(cost)
        } else {
            Time((cost * FULL).div_ceil(self.rate))
        }
    }

    #[inline]
    fn count(&mut self, passed: Time) {
        self.busy += passed;
        if !self.handlers.is_empty() {
            self.busy_in_handlers += passed;
        }
    }

    /// Brings the innermost frame's account up to now.
    fn settle(&mut self, now: Time) {
        let passed = now - std::mem::replace(&mut self.since, now);
        let rate = self.rate;
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

    /// Queues the completion of the innermost frame's work as of now.
    fn reschedule<E: From<Completion>, C: Clock>(&mut self, sim: &Sim<E, C>) {
        self.generation += 1;
        let Some(frame) = self.top().filter(|frame| frame.working) else {
            return;
        };
        let completion = Completion {
            generation: self.generation,
        };
        sim.schedule(sim.now() + self.duration(frame.left), completion.into());
    }

    /// Enters the highest interrupt that waits, if it may; of equal ones the
    /// first.
    fn admit<E, C: Clock>(&mut self, sim: &Sim<E, C>) {
        let Some(highest) = self.pending.iter().map(|(level, _)| *level).max() else {
            return;
        };
        if highest <= self.level() {
            return;
        }
        let first = self.pending.iter().position(|(level, _)| *level == highest);
        let (level, task) = self.pending.remove(first.expect("the highest is there"));
        self.handlers.push(Frame::new(task, level));
        sim.wake(task);
    }
}

impl Frame {
    fn new(task: TaskId, level: Level) -> Self {
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
