//! Simulated processor that runs one process, which interrupts preempt.
//!
//! Work has a cost: its duration at full speed. Its end is not known when it starts, because
//! interrupts of a higher level preempt it and the speed of the processor may change meanwhile
//! ([`Processors::set_rate`]). The end of the current work is the simulation's only timer; several
//! processors set this timer to the earliest of their ends ([`Processors`]).

mod several;
mod state;

use crate::sim::Simulation;
use crate::task::TaskId;
use crate::time::Time;
use several::WorkEnds;
pub use several::{CpuId, Processors};
use state::{FULL_SPEED, Frame, InterruptHandler, ProcessorRate, ProcessorState};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

/// Interrupt priority level. Level 0 masks no interrupt.
pub type InterruptLevel = u8;

/// Event at the end of the innermost work of a processor. The owner of the engine passes it to
/// [`Processors::complete_work`].
#[derive(Clone, Copy, Debug)]
pub struct WorkCompletion(CpuId);

/// Breakdown of the time that a piece of simulated work needed; the three parts add up to the
/// elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time of the work itself at full speed.
    pub work_time: Time,
    /// Time in which interrupts preempted the work.
    pub interrupted_time: Time,
    /// Additional time because the processor ran below full speed.
    pub slowdown_time: Time,
}

/// Processor with preemption by interrupt level and a variable speed.
pub struct Processor {
    id: CpuId,
    /// End of the current work of every processor. None on a computer with one processor.
    work_ends: Option<Rc<WorkEnds>>,
    state: RefCell<ProcessorState>,
    /// Task of the innermost frame: the task that runs or may run.
    innermost_task: Cell<Option<TaskId>>,
    processor_rate: Cell<ProcessorRate>,
    /// Time worked that is not yet included in `state`.
    unsettled_work: Cell<Time>,
}

impl Processor {
    fn new(id: CpuId, ends: Option<Rc<WorkEnds>>) -> Self {
        Self {
            id,
            work_ends: ends,
            state: RefCell::new(ProcessorState {
                process_frame: None,
                handler_frames: Vec::with_capacity(8),
                pending_interrupts: VecDeque::with_capacity(8),
                settled_until: Time::ZERO,
                busy_time: Time::ZERO,
                handler_busy_time: Time::ZERO,
            }),
            innermost_task: Cell::new(None),
            processor_rate: Cell::new(ProcessorRate::default()),
            unsettled_work: Cell::new(Time::ZERO),
        }
    }
}

impl Processor {
    /// Gives the processor to a process.
    ///
    /// # Panics
    ///
    /// If another process has it.
    pub fn give_processor_to(&self, process: TaskId) {
        let mut state = self.state.borrow_mut();
        assert!(
            state.process_frame.is_none(),
            "two processes on one processor"
        );
        state.process_frame = Some(Frame::new(Some(process), 0));
        if state.handler_frames.is_empty() {
            self.innermost_task.set(Some(process));
        }
    }

    /// Takes the processor from the current process, which gives it up.
    ///
    /// # Panics
    ///
    /// If the process does not have the processor, or has interrupts masked.
    pub fn release_processor<E>(&self, sim: &Simulation<E>) {
        let mut state = self.settled_state(sim.now());
        let frame = state.process_frame.take();
        if state.handler_frames.is_empty() {
            self.innermost_task.set(None);
        }
        let frame = frame.expect("a process without the processor gave it up");
        assert!(
            frame.task == Some(sim.expect_current_task())
                && frame.interrupt_level == 0
                && !frame.is_working,
            "a process gave the processor up in the middle of something"
        );
    }

    /// Returns the process that has the processor.
    #[inline]
    pub fn running_process(&self) -> Option<TaskId> {
        self.state
            .borrow()
            .process_frame
            .as_ref()
            .and_then(|frame| frame.task)
    }
}

impl Processor {
    /// Reports whether the processor does any work.
    #[inline]
    pub fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state
            .innermost_frame()
            .is_some_and(|frame| frame.is_working)
    }

    /// Reports whether the given process has the processor and no interrupt handler preempts it.
    #[inline]
    pub fn is_process_running(&self, process: TaskId) -> bool {
        let state = self.state.borrow();
        state.handler_frames.is_empty()
            && state
                .process_frame
                .as_ref()
                .is_some_and(|base| base.task == Some(process))
    }

    /// Returns the processor's busy time so far, and the part of it in interrupt handlers.
    pub fn busy_times<E>(&self, sim: &Simulation<E>) -> (Time, Time) {
        let state = self.settled_state(sim.now());
        (state.busy_time, state.handler_busy_time)
    }

    fn set_rate<E: From<WorkCompletion>>(&self, sim: &Simulation<E>, thousandths: u64) {
        assert!(
            (1..=FULL_SPEED).contains(&thousandths),
            "a rate of {thousandths}"
        );
        let rate = self.processor_rate.get();
        if rate.thousandths == thousandths {
            return;
        }
        let mut state = self.settled_state(sim.now());
        self.processor_rate.set(rate.with_thousandths(thousandths));
        self.reschedule_work_end(&mut state, sim);
    }

    /// Performs work of the current task that costs `cost` at full speed, if no event can interrupt
    /// it. Returns the additional time due to a reduced speed, or None if the work was not done.
    #[inline]
    pub fn try_work<E>(&self, sim: &Simulation<E>, cost: Time) -> Option<Time> {
        if self.innermost_task.get() != sim.current_task() {
            return None;
        }
        let passed = self.processor_rate.get().duration_of_work(cost.0);
        if !sim.try_advance(sim.now() + passed) {
            return None;
        }
        self.unsettled_work.set(self.unsettled_work.get() + passed);
        Some(passed - cost)
    }

    /// Performs work of the current task that costs `cost` at full speed.
    #[inline]
    pub async fn spend_work<E: From<WorkCompletion>>(
        &self,
        sim: &Simulation<E>,
        cost: Time,
    ) -> Usage {
        if let Some(slowed) = self.try_work(sim, cost) {
            return Usage {
                work_time: cost,
                interrupted_time: Time::ZERO,
                slowdown_time: slowed,
            };
        }
        let mut started = false;
        poll_fn(move |_| self.poll_work(sim, &mut started, cost)).await
    }

    /// Polls work that may be interrupted. The caller has tried [`Processor::try_work`] first;
    /// `started` is false at the first poll.
    #[inline(never)]
    pub fn poll_work<E: From<WorkCompletion>>(
        &self,
        sim: &Simulation<E>,
        started: &mut bool,
        cost: Time,
    ) -> Poll<Usage> {
        const WAIT_REASON: &str = "the processor";
        let task = sim.expect_current_task();
        if std::mem::replace(started, true) {
            ready!(sim.poll_wait(WAIT_REASON));
        } else {
            let mut state = self.settled_state(sim.now());
            state.start_work(task, cost, sim.now());
            if state.is_innermost(task) {
                self.reschedule_work_end(&mut state, sim);
            }
        }
        loop {
            // Nothing comes before the end of what this task does.
            if self.innermost_task.get() == Some(task)
                && self.is_first_to_end()
                && sim.advance_to_timer()
            {
                if self.work_ends.is_some() {
                    self.schedule_end(sim, None);
                }
                let mut state = self.settled_state(sim.now());
                let frame = state.innermost_frame_mut().expect("who works has a frame");
                frame.end_work();
                return Poll::Ready(frame.usage(sim.now()));
            }
            // A task may be woken for another reason while it works.
            let state = self.state.borrow();
            let frame = state.frame_of_task(task);
            if !frame.is_working {
                return Poll::Ready(frame.usage(sim.now()));
            }
            drop(state);
            if sim.poll_wait(WAIT_REASON).is_pending() && !sim.wait_nested() {
                return Poll::Pending;
            }
        }
    }

    /// Returns the processor's state, with the account of the innermost frame brought up to now.
    fn settled_state(&self, now: Time) -> RefMut<'_, ProcessorState> {
        let mut state = self.state.borrow_mut();
        // Work that nothing came in between has moved time on without a
        // word to the state.
        let passed = self.unsettled_work.take();
        state.book_busy(passed);
        state.settle_until(now, self.processor_rate.get().thousandths);
        state
    }

    fn reschedule_work_end<E: From<WorkCompletion>>(
        &self,
        state: &mut ProcessorState,
        sim: &Simulation<E>,
    ) {
        self.innermost_task
            .set(state.innermost_frame().and_then(|frame| frame.task));
        let is_working = state.innermost_frame().filter(|frame| frame.is_working);
        let start = state.settled_until.max(sim.now());
        self.schedule_end(
            sim,
            is_working.map(|frame| {
                start
                    + self
                        .processor_rate
                        .get()
                        .duration_of_work(frame.remaining_work)
            }),
        );
    }

    fn is_first_to_end(&self) -> bool {
        let ends = self.work_ends.as_ref();
        ends.is_none_or(|ends| ends.first_end().is_some_and(|(_, id)| id == self.id))
    }

    /// Sets the timer for a new end of the innermost work. None means that the processor has no
    /// work.
    fn schedule_end<E: From<WorkCompletion>>(&self, sim: &Simulation<E>, end: Option<Time>) {
        let first = match &self.work_ends {
            None => end.map(|at| (at, self.id)),
            Some(ends) => {
                ends.set_end(self.id, end);
                ends.first_end()
            }
        };
        match first {
            Some((at, id)) => sim.set_timer(at, WorkCompletion(id).into()),
            None => sim.stop_timer(),
        }
    }

    /// Completes the innermost work of the processor, then wakes its task or leaves its interrupt
    /// handler.
    fn complete_work<E: From<WorkCompletion>>(&self, sim: &Simulation<E>) {
        if self.work_ends.is_some() {
            self.schedule_end(sim, None);
        }
        let mut state = self.settled_state(sim.now());
        let frame = state
            .innermost_frame_mut()
            .expect("work completes on a frame");
        assert!(frame.is_working, "work completed that nobody does");
        frame.end_work();
        match frame.task {
            Some(task) => sim.wake_task(task),
            None => self.leave_innermost(&mut state, sim),
        }
    }

    fn leave_innermost<E: From<WorkCompletion>>(
        &self,
        state: &mut ProcessorState,
        sim: &Simulation<E>,
    ) {
        state.handler_frames.pop();
        state.enter_pending(sim);
        self.reschedule_work_end(state, sim);
        // A process that was given the processor meanwhile may run now.
        if let (true, Some(base)) = (state.handler_frames.is_empty(), &state.process_frame)
            && !base.is_working
            && let Some(task) = base.task
        {
            sim.wake_task(task);
        }
    }
}

impl Processor {
    /// Enters an interrupt handler at this level for the current task, as soon as no work of this
    /// level or above runs.
    pub async fn enter_handler<E: From<WorkCompletion>>(
        &self,
        sim: &Simulation<E>,
        level: InterruptLevel,
    ) {
        {
            let mut state = self.settled_state(sim.now());
            if level > state.current_level() {
                state
                    .handler_frames
                    .push(Frame::new(Some(sim.expect_current_task()), level));
                self.reschedule_work_end(&mut state, sim);
                return;
            }
            state.add_pending(
                level,
                InterruptHandler::HandlerTask(sim.expect_current_task()),
            );
        }
        let task = sim.expect_current_task();
        while !self.state.borrow().has_entered(task) {
            sim.wait_in_place("a lower interrupt level").await;
        }
    }

    /// Raises several interrupts at the present time that only consume processor time, given as
    /// level and cost, highest level first.
    pub fn run_interrupts<E: From<WorkCompletion>>(
        &self,
        sim: &Simulation<E>,
        interrupts: &[(InterruptLevel, Time)],
    ) {
        let mut state = self.settled_state(sim.now());
        if !self.run_in_one_step(&mut state, sim, interrupts) {
            for (level, cost) in interrupts {
                if *level > state.current_level() {
                    state
                        .handler_frames
                        .push(Frame::with_cost(*level, *cost, sim.now()));
                } else {
                    state.add_pending(*level, InterruptHandler::FixedCost(*cost));
                }
            }
        }
        self.reschedule_work_end(&mut state, sim);
    }

    /// Performs interrupts in a single step if no event can preempt or delay them; the interrupted
    /// work resumes at their end. Returns whether it did.
    fn run_in_one_step<E>(
        &self,
        state: &mut ProcessorState,
        sim: &Simulation<E>,
        interrupts: &[(InterruptLevel, Time)],
    ) -> bool {
        let now = sim.now();
        let rate = self.processor_rate.get();
        let over = now
            + interrupts
                .iter()
                .map(|(_, cost)| rate.duration_of_work(cost.0))
                .sum::<Time>();
        // What other processors do may come in between.
        let admitted = self.work_ends.is_none()
            && state.handler_frames.is_empty()
            && state.pending_interrupts.is_empty()
            && interrupts
                .iter()
                .all(|(level, _)| *level > state.current_level());
        if !admitted || state.settled_until > now || !sim.has_only_timer_until(over) {
            return false;
        }
        state.busy_time += over - now;
        state.handler_busy_time += over - now;
        state.settled_until = over;
        true
    }

    /// Leaves the innermost interrupt handler.
    ///
    /// # Panics
    ///
    /// If the current task is not in the innermost handler.
    pub fn leave_handler<E: From<WorkCompletion>>(&self, sim: &Simulation<E>) {
        let mut state = self.settled_state(sim.now());
        let frame = state.handler_frames.last().expect("a handler is left once");
        assert!(
            frame.task == Some(sim.expect_current_task()) && !frame.is_working,
            "handlers are left from the inside out"
        );
        self.leave_innermost(&mut state, sim);
    }

    /// Raises the interrupt level of the current task. Returns the previous level.
    pub fn mask_interrupts<E>(&self, sim: &Simulation<E>, level: InterruptLevel) -> InterruptLevel {
        let mut state = self.state.borrow_mut();
        let frame = state.frame_of_task_mut(sim.expect_current_task());
        assert!(
            level >= frame.interrupt_level,
            "a mask does not let more in"
        );
        std::mem::replace(&mut frame.interrupt_level, level)
    }

    /// Lowers the interrupt level of the current task and lets pending interrupts run. Returns the
    /// time until they end.
    pub async fn unmask_interrupts<E: From<WorkCompletion>>(
        &self,
        sim: &Simulation<E>,
        level: InterruptLevel,
    ) -> Time {
        let from = sim.now();
        let task = sim.expect_current_task();
        {
            let mut state = self.state.borrow_mut();
            state.frame_of_task_mut(task).interrupt_level = level;
            if state.pending_interrupts.is_empty() && state.is_innermost(task) {
                return Time::ZERO;
            }
        }
        {
            let mut state = self.settled_state(sim.now());
            if !state.pending_interrupts.is_empty() {
                state.enter_pending(sim);
                self.reschedule_work_end(&mut state, sim);
            }
        }
        while !self.is_process_running(task) {
            sim.wait_in_place("interrupts that were masked").await;
        }
        sim.now() - from
    }
}
