//! A processor: one process at the bottom, interrupts on top of it.
//!
//! Work has a cost in time at full speed. How long it takes is not known when
//! it starts: interrupts of a higher level preempt it, and the rate at which
//! work gets done changes while it runs ([`Processor::set_rate`]). Its end is
//! the simulation's timer, of which there is one: a simulation has one
//! processor.

use crate::clock::Clock;
use crate::sim::Sim;
use crate::task::TaskId;
use crate::time::Time;
use std::cell::{Cell, RefCell, RefMut};

/// An interrupt priority level; 0 lets every interrupt in.
pub type Level = u8;

/// The innermost work has come to its end. The owner of the engine hands it
/// to [`Processor::complete`].
#[derive(Clone, Copy, Debug)]
pub struct Completion(());

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
    /// Who runs, or may.
    innermost: Cell<Option<TaskId>>,
    /// Work done per time, in thousandths of full speed.
    rate: Cell<u64>,
    /// Time worked that `state` has not been told of.
    unsettled: Cell<Time>,
}

struct State {
    /// The process that has the processor, if any.
    base: Option<Frame>,
    /// Handlers that have been entered, the innermost last.
    handlers: Vec<Frame>,
    /// Interrupts that were requested and are masked, in order of request.
    pending: Vec<(Level, Handler)>,
    /// Since when the innermost frame has run at this rate.
    since: Time,
    busy: Time,
    busy_in_handlers: Time,
}

/// Who handles an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handler {
    /// A task, which enters and leaves.
    Task(TaskId),
    /// Nobody: it takes its time and is over.
    Cost(Time),
}

struct Frame {
    /// None of an interrupt that only takes its time.
    task: Option<TaskId>,
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
                since: Time::ZERO,
                busy: Time::ZERO,
                busy_in_handlers: Time::ZERO,
            }),
            innermost: Cell::new(None),
            rate: Cell::new(FULL),
            unsettled: Cell::new(Time::ZERO),
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
        state.base = Some(Frame::new(Some(process), 0));
        if state.handlers.is_empty() {
            self.innermost.set(Some(process));
        }
    }

    /// The process gives the processor up.
    ///
    /// # Panics
    ///
    /// When it does not have it, or has interrupts masked.
    pub fn give_up<E, C: Clock>(&self, sim: &Sim<E, C>) {
        let mut state = self.open(sim.now());
        let frame = state.base.take();
        if state.handlers.is_empty() {
            self.innermost.set(None);
        }
        let frame = frame.expect("a process without the processor gave it up");
        assert!(
            frame.task == Some(sim.current()) && frame.level == 0 && !frame.working,
            "a process gave the processor up in the middle of something"
        );
    }

    /// The process that has the processor.
    #[inline]
    pub fn process(&self) -> Option<TaskId> {
        self.state
            .borrow()
            .base
            .as_ref()
            .and_then(|frame| frame.task)
    }
}

impl Processor {
    /// Whether anything runs.
    #[inline]
    pub fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state.top().is_some_and(|frame| frame.working)
    }

    /// Whether this process has the processor and no handler is in its way.
    #[inline]
    pub fn runs(&self, process: TaskId) -> bool {
        let state = self.state.borrow();
        state.handlers.is_empty()
            && state
                .base
                .as_ref()
                .is_some_and(|base| base.task == Some(process))
    }

    /// For how long something ran up to now, and how much of it was in
    /// handlers of interrupts.
    pub fn busy<E, C: Clock>(&self, sim: &Sim<E, C>) -> (Time, Time) {
        let state = self.open(sim.now());
        (state.busy, state.busy_in_handlers)
    }

    /// Work gets done at `thousandths` of full speed from now on.
    ///
    /// # Panics
    ///
    /// When that is nothing, or more than full speed.
    pub fn set_rate<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, thousandths: u64) {
        assert!((1..=FULL).contains(&thousandths), "a rate of {thousandths}");
        if self.rate.get() == thousandths {
            return;
        }
        let mut state = self.open(sim.now());
        self.rate.set(thousandths);
        self.reschedule(&mut state, sim);
    }

    /// Does work that costs `cost` at full speed, for the task that asks, if
    /// nothing can come in between.
    #[inline]
    pub fn try_work<E, C: Clock>(&self, sim: &Sim<E, C>, cost: Time) -> Option<Usage> {
        if self.innermost.get() != Some(sim.current()) {
            return None;
        }
        let passed = duration(cost.0, self.rate.get());
        if !sim.try_advance(sim.now() + passed) {
            return None;
        }
        self.unsettled.set(self.unsettled.get() + passed);
        Some(Usage {
            work: cost,
            interrupted: Time::ZERO,
            slowed: passed - cost,
        })
    }

    /// Does work that costs `cost` at full speed, for the task that asks.
    pub async fn work<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, cost: Time) -> Usage {
        if let Some(usage) = self.try_work(sim, cost) {
            return usage;
        }
        let started = sim.now();
        let task = sim.current();
        {
            let mut state = self.open(started);
            let innermost = state.is_innermost(task);
            state.start(task, cost, started);
            if innermost {
                self.reschedule(&mut state, sim);
            }
        }
        // A task may be woken for another reason while it works.
        while self.state.borrow().frame(task).working {
            sim.wait("the processor").await;
        }
        self.usage(task, sim.now())
    }

    /// The state, with the innermost frame's account brought up to now.
    fn open(&self, now: Time) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        // Work that nothing came in between has moved time on without a
        // word to the state.
        let passed = self.unsettled.take();
        state.count(passed);
        state.settle(now, self.rate.get());
        state
    }

    /// Sets the timer to the completion of the innermost frame's work, as of
    /// now.
    fn reschedule<E: From<Completion>, C: Clock>(&self, state: &mut State, sim: &Sim<E, C>) {
        self.innermost.set(state.top().and_then(|frame| frame.task));
        match state.top().filter(|frame| frame.working) {
            Some(frame) => {
                let ends = sim.now() + duration(frame.left, self.rate.get());
                sim.set_timer(ends, Completion(()).into());
            }
            None => sim.stop_timer(),
        }
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

    /// A piece of work has come to its end.
    pub fn complete<E: From<Completion>, C: Clock>(
        &self,
        sim: &Sim<E, C>,
        Completion(()): Completion,
    ) {
        let mut state = self.open(sim.now());
        let frame = state.top_mut().expect("work completes on a frame");
        assert!(frame.working, "work completed that nobody does");
        // What the rounding of a changed rate left over is less than a
        // nanosecond of work for each change.
        frame.left = 0;
        frame.working = false;
        match frame.task {
            Some(task) => sim.wake(task),
            None => self.leave_innermost(&mut state, sim),
        }
    }

    /// The innermost handler is over.
    fn leave_innermost<E: From<Completion>, C: Clock>(&self, state: &mut State, sim: &Sim<E, C>) {
        state.handlers.pop();
        state.admit(sim);
        self.reschedule(state, sim);
        // A process that was given the processor meanwhile may run now.
        if let (true, Some(base)) = (state.handlers.is_empty(), &state.base)
            && !base.working
            && let Some(task) = base.task
        {
            sim.wake(task);
        }
    }
}

/// Interrupts.
impl Processor {
    /// Enters a handler at this level, for the task that asks, as soon as
    /// nothing of this level or above runs.
    pub async fn enter<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>, level: Level) {
        {
            let mut state = self.open(sim.now());
            if level > state.level() {
                state.handlers.push(Frame::new(Some(sim.current()), level));
                self.reschedule(&mut state, sim);
                return;
            }
            state.pending.push((level, Handler::Task(sim.current())));
        }
        let task = sim.current();
        while !self.state.borrow().has_entered(task) {
            sim.wait("a lower interrupt level").await;
        }
    }

    /// An interrupt that does nothing but take its time.
    pub fn interrupt<E: From<Completion>, C: Clock>(
        &self,
        sim: &Sim<E, C>,
        level: Level,
        cost: Time,
    ) {
        let mut state = self.open(sim.now());
        if level > state.level() {
            state.handlers.push(Frame::costing(level, cost, sim.now()));
            self.reschedule(&mut state, sim);
        } else {
            state.pending.push((level, Handler::Cost(cost)));
        }
    }

    /// Leaves the handler.
    ///
    /// # Panics
    ///
    /// When the task that asks is not in the innermost one.
    pub fn leave<E: From<Completion>, C: Clock>(&self, sim: &Sim<E, C>) {
        let mut state = self.open(sim.now());
        let frame = state.handlers.last().expect("a handler is left once");
        assert!(
            frame.task == Some(sim.current()) && !frame.working,
            "handlers are left from the inside out"
        );
        self.leave_innermost(&mut state, sim);
    }

    /// Raises the level of the process that asks; the level before.
    pub fn mask<E, C: Clock>(&self, sim: &Sim<E, C>, level: Level) -> Level {
        let mut state = self.state.borrow_mut();
        let frame = state.frame_mut(sim.current());
        assert!(level >= frame.level, "a mask does not let more in");
        std::mem::replace(&mut frame.level, level)
    }

    /// Lowers the level of the process that asks. What was masked is let in;
    /// returns when that is over, with how long it took.
    pub async fn unmask<E: From<Completion>, C: Clock>(
        &self,
        sim: &Sim<E, C>,
        level: Level,
    ) -> Time {
        let from = sim.now();
        let task = sim.current();
        {
            let mut state = self.open(sim.now());
            state.frame_mut(task).level = level;
            if !state.pending.is_empty() {
                state.admit(sim);
                self.reschedule(&mut state, sim);
            }
        }
        while !self.runs(task) {
            sim.wait("interrupts that were masked").await;
        }
        sim.now() - from
    }
}

/// How long work of this cost takes at a rate in thousandths.
#[inline]
fn duration(cost: u64, rate: u64) -> Time {
    if rate == FULL {
        Time(cost)
    } else {
        Time((cost * FULL).div_ceil(rate))
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
        self.top().is_some_and(|frame| frame.task == Some(task))
    }

    /// The level below which no interrupt gets in.
    #[inline]
    fn level(&self) -> Level {
        self.top().map_or(0, |frame| frame.level)
    }

    fn has_entered(&self, task: TaskId) -> bool {
        self.handlers.iter().any(|frame| frame.task == Some(task))
    }

    fn frame(&self, task: TaskId) -> &Frame {
        self.handlers
            .iter()
            .rev()
            .chain(&self.base)
            .find(|frame| frame.task == Some(task))
            .expect("only who has the processor works on it")
    }

    fn frame_mut(&mut self, task: TaskId) -> &mut Frame {
        self.handlers
            .iter_mut()
            .rev()
            .chain(&mut self.base)
            .find(|frame| frame.task == Some(task))
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

    #[inline]
    fn count(&mut self, passed: Time) {
        self.busy += passed;
        if !self.handlers.is_empty() {
            self.busy_in_handlers += passed;
        }
    }

    /// Brings the innermost frame's account up to now.
    fn settle(&mut self, now: Time, rate: u64) {
        let passed = now - std::mem::replace(&mut self.since, now);
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
        let (level, handler) = self.pending.remove(first.expect("the highest is there"));
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
    /// A handler that nobody sees to.
    fn costing(level: Level, cost: Time, now: Time) -> Self {
        Self {
            working: true,
            cost: cost.0,
            left: cost.0,
            started: now,
            ..Self::new(None, level)
        }
    }

    fn new(task: Option<TaskId>, level: Level) -> Self {
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
