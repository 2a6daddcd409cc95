//! Core of the simulation engine: the next event, and the tasks that wait.

use crate::queue::{EventQueue, EventRank, QueuePosition, QueuePositionSource, TieBreak};
use crate::task::{TaskId, TaskSlot};
use crate::time::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Simulation with its clock, event queue and tasks. `E` is the type of the events that hardware
/// schedules.
pub struct Simulation<E> {
    now: Cell<Time>,
    position_source: QueuePositionSource,
    event_queue: RefCell<EventQueue<ScheduledEntry<E>>>,
    next_queued_position: Cell<QueuePosition>,
    /// Event of the simulation's timer. The timer is stored outside of the queue, because it is
    /// reset far more often than it expires.
    timer_event: Cell<Option<E>>,
    timer_position: Cell<QueuePosition>,
    /// Time of the next entry or timer expiry. Cached, because it is read even more often than the
    /// timer is set.
    next_due_time: Cell<Time>,
    /// Number of queued events that a foreground task may wait for.
    foreground_event_count: Cell<usize>,
    task_slots: RefCell<Vec<TaskSlot>>,
    foreground_task_count: Cell<usize>,
    is_halted: Cell<bool>,
    ready_tasks: RefCell<VecDeque<TaskId>>,
    ready_count: Cell<usize>,
    current_task: Cell<Option<TaskId>>,
    /// Event handler for [`Simulation::run_nested`], while such a run is in progress.
    event_handler: RefCell<Option<EventHandler<E>>>,
    /// Number of tasks that are polled from within another task's wait.
    nested_poll_count: Cell<usize>,
}

/// Number of tasks that may be polled from within each other's wait. Each level uses stack space.
const NESTED_POLLS_MAX: usize = 8;

type EventHandler<E> = Rc<dyn Fn(E)>;

enum ScheduledEntry<E> {
    WakeTask(TaskId),
    RunEvent(E),
    /// Event that repeats forever, such as a clock's tick. Alone it does not keep the simulation
    /// running.
    BackgroundEvent(E),
    /// End of a [`Simulation::run_until`]; time does not jump beyond it.
    RunEnd,
}

/// Deadlock of a simulation: no event is left, but a task has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Virtual time of the deadlock.
    pub deadlock_time: Time,
    /// Tasks that had not ended at the time of the deadlock.
    pub waiting_tasks: Vec<WaitingTask>,
}

/// Task in a deadlock, with the reason of its wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTask {
    /// Name of the task.
    pub task_name: String,
    /// Description of the event that the task waits for, as given to [`Simulation::wait_for_wake_up`].
    pub wait_reason: &'static str,
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "deadlock at {}:", self.deadlock_time)?;
        for waiting in &self.waiting_tasks {
            write!(
                formatter,
                " {} waits for {};",
                waiting.task_name, waiting.wait_reason
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Deadlock {}

impl<E> Simulation<E> {
    /// Returns an empty simulation at time zero.
    pub fn new(tie_break: TieBreak) -> Self {
        Self {
            now: Cell::new(Time::ZERO),
            position_source: QueuePositionSource::new(tie_break),
            event_queue: RefCell::new(EventQueue::new()),
            next_queued_position: Cell::new(QueuePosition::NEVER),
            timer_event: Cell::new(None),
            timer_position: Cell::new(QueuePosition::NEVER),
            next_due_time: Cell::new(Time::NEVER),
            foreground_event_count: Cell::new(0),
            task_slots: RefCell::new(Vec::new()),
            foreground_task_count: Cell::new(0),
            is_halted: Cell::new(false),
            ready_tasks: RefCell::new(VecDeque::new()),
            ready_count: Cell::new(0),
            current_task: Cell::new(None),
            event_handler: RefCell::new(None),
            nested_poll_count: Cell::new(0),
        }
    }

    /// Current virtual time of the simulation.
    #[inline]
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// Number of queue positions handed out so far, for events that are still pending or not. It
    /// measures the cost of a simulation, and is the same on every computer.
    #[inline]
    pub fn event_count(&self) -> u64 {
        self.position_source.issued_count()
    }

    /// Schedules `event` for the handler of [`Simulation::run_to_end`] at time `at`.
    ///
    /// # Panics
    ///
    /// If `at` has passed.
    #[inline]
    pub fn schedule(&self, at: Time, event: E) {
        self.foreground_event_count
            .set(self.foreground_event_count.get() + 1);
        self.push_entry(at, EventRank::Event, ScheduledEntry::RunEvent(event));
    }

    /// Sets the simulation's only timer, which may be reset or stopped before it expires. A
    /// previous setting is dropped.
    ///
    /// # Panics
    ///
    /// If `at` has passed.
    #[inline]
    pub fn set_timer(&self, at: Time, event: E) {
        assert!(
            at >= self.now(),
            "a timer was set to {at}, which has passed"
        );
        self.timer_event.set(Some(event));
        self.timer_position
            .set(self.position_source.issue_position(at, EventRank::Event));
        self.next_due_time
            .set(at.min(self.next_queued_position.get().event_time));
    }

    /// Stops the simulation's timer.
    #[inline]
    pub fn stop_timer(&self) {
        self.timer_position.set(QueuePosition::NEVER);
        self.next_due_time
            .set(self.next_queued_position.get().event_time);
    }

    fn timer_is_set(&self) -> bool {
        self.timer_position.get() != QueuePosition::NEVER
    }

    /// Schedules an event that repeats forever. It differs from [`Simulation::schedule`] in that no
    /// foreground task waits for the event.
    pub fn schedule_background(&self, at: Time, event: E) {
        self.push_entry(at, EventRank::Event, ScheduledEntry::BackgroundEvent(event));
    }

    #[inline]
    fn push_entry(&self, at: Time, rank: EventRank, due: ScheduledEntry<E>) {
        assert!(
            at >= self.now(),
            "an event was scheduled for {at}, which has passed"
        );
        let position = self.position_source.issue_position(at, rank);
        self.event_queue.borrow_mut().push_event(position, due);
        self.next_queued_position
            .set(self.next_queued_position.get().min(position));
        self.next_due_time.set(self.next_due_time.get().min(at));
    }

    /// Returns the time of the next event, including background events. Now if a task is ready;
    /// [`Time::NEVER`] if no event is left. Together with [`Simulation::run_until`] it suffices to keep
    /// step with a wall clock.
    pub fn next_due_time(&self) -> Time {
        match self.ready_count.get() {
            0 => self.next_due_time.get(),
            _ => self.now(),
        }
    }

    /// Reports whether only the timer is due up to and including `to`, and no task is ready.
    #[inline]
    pub(crate) fn has_only_timer_until(&self, to: Time) -> bool {
        self.ready_count.get() == 0 && self.next_queued_position.get().event_time > to
    }

    /// Advances time to `to` if no event is due up to and including `to`, and no other task is
    /// ready. Returns whether it did.
    #[inline]
    pub fn try_advance(&self, to: Time) -> bool {
        if self.next_due_time.get() <= to || self.ready_count.get() > 0 {
            return false;
        }
        debug_assert!(to >= self.now());
        self.now.set(to);
        true
    }
}

impl<E> Simulation<E> {
    /// Starts a task. The simulation runs until all foreground tasks have ended; a background task
    /// (a daemon) may run forever.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        foreground: bool,
        future: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let mut tasks = self.task_slots.borrow_mut();
        let id = TaskId::from_index(tasks.len());
        tasks.push(TaskSlot {
            future: Some(Box::pin(future)),
            name: name.into(),
            wait_reason: "its turn",
            was_woken: false,
            is_ready: true,
            is_foreground: foreground,
            has_ended: false,
        });
        if foreground {
            self.foreground_task_count
                .set(self.foreground_task_count.get() + 1);
        }
        drop(tasks);
        self.make_task_ready(id);
        id
    }

    fn make_task_ready(&self, task: TaskId) {
        self.ready_tasks.borrow_mut().push_back(task);
        self.ready_count.set(self.ready_count.get() + 1);
    }

    fn take_ready(&self) -> Option<TaskId> {
        let count = self.ready_count.get().checked_sub(1)?;
        self.ready_count.set(count);
        self.ready_tasks.borrow_mut().pop_front()
    }

    /// Returns the task that is being polled.
    ///
    /// # Panics
    ///
    /// If no task is polled, as during a hardware event.
    #[inline]
    pub fn expect_current_task(&self) -> TaskId {
        self.current_task
            .get()
            .expect("only a task may ask which it is")
    }

    /// Returns the task that is being polled, or None during a hardware event.
    #[inline]
    pub(crate) fn current_task(&self) -> Option<TaskId> {
        self.current_task.get()
    }

    /// Wakes a task: ends its current [`Simulation::wait_for_wake_up`], or its next one if it does not wait.
    #[inline]
    pub fn wake_task(&self, task: TaskId) {
        let mut tasks = self.task_slots.borrow_mut();
        let slot = &mut tasks[task.index()];
        slot.was_woken = true;
        if !slot.is_ready && !slot.has_ended {
            slot.is_ready = true;
            self.make_task_ready(task);
        }
    }

    /// Waits until the current task is woken. `reason` appears in a deadlock report. A task may be
    /// woken for another reason, so the caller must check its condition.
    #[inline]
    pub fn wait_for_wake_up(&self, reason: &'static str) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(move |_| self.poll_wait(reason))
    }

    /// Waits as [`Simulation::wait_for_wake_up`] does, but resumes without a new poll where [`Simulation::run_nested`]
    /// allows it.
    #[inline]
    pub fn wait_in_place(&self, reason: &'static str) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(move |_| {
            let is_woken = self.poll_wait(reason).is_ready() || self.wait_nested();
            if is_woken {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }

    /// Performs one poll of [`Simulation::wait_for_wake_up`] for the current task.
    pub(crate) fn poll_wait(&self, reason: &'static str) -> Poll<()> {
        let mut tasks = self.task_slots.borrow_mut();
        let slot = &mut tasks[self.expect_current_task().index()];
        if std::mem::take(&mut slot.was_woken) {
            return Poll::Ready(());
        }
        slot.wait_reason = reason;
        Poll::Pending
    }

    /// Waits until time `at`, after all hardware events of that time. Returns at the current time
    /// if `at` has passed.
    pub async fn sleep_until(&self, at: Time) {
        if at <= self.now() || self.try_advance(at) {
            return;
        }
        self.wake_current_task_at(at);
        while self.now() < at {
            self.wait_in_place("time to pass").await;
        }
    }

    /// Schedules a wake-up of the current task at time `at`, after the hardware events of that
    /// time, so that a wait can have a deadline.
    ///
    /// # Panics
    ///
    /// If `at` has passed.
    pub fn wake_current_task_at(&self, at: Time) {
        self.foreground_event_count
            .set(self.foreground_event_count.get() + 1);
        self.push_entry(
            at,
            EventRank::Sleeper,
            ScheduledEntry::WakeTask(self.expect_current_task()),
        );
    }

    /// Waits like [`Simulation::sleep_until`], for a daemon: no foreground task depends on the wake-up.
    pub async fn sleep_in_background_until(&self, at: Time, wake: impl FnOnce(TaskId) -> E) {
        let wake = wake(self.expect_current_task());
        self.push_entry(
            at,
            EventRank::Sleeper,
            ScheduledEntry::BackgroundEvent(wake),
        );
        while self.now() < at {
            self.wait_for_wake_up("its next round").await;
        }
    }

    fn poll_task(&self, task: TaskId) {
        let future: Option<Pin<Box<dyn Future<Output = ()>>>> = {
            let mut tasks = self.task_slots.borrow_mut();
            let slot = &mut tasks[task.index()];
            slot.is_ready = false;
            slot.future.take()
        };
        let Some(mut future) = future else { return };
        self.current_task.set(Some(task));
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        self.current_task.set(None);
        match polled {
            Poll::Pending => self.task_slots.borrow_mut()[task.index()].future = Some(future),
            Poll::Ready(()) => {
                // What the task owned goes while nothing is borrowed.
                drop(future);
                let mut tasks = self.task_slots.borrow_mut();
                let slot = &mut tasks[task.index()];
                slot.has_ended = true;
                if slot.is_foreground {
                    self.foreground_task_count
                        .set(self.foreground_task_count.get() - 1);
                }
            }
        }
    }
}

impl<E> Simulation<E> {
    /// Runs until every foreground task has ended, and passes each event to `handle`. Pending
    /// events remain, and continue with the next call. [`Simulation::halt_run`] ends the run early.
    ///
    /// # Errors
    ///
    /// [`Deadlock`] if only background events are left and a foreground task still waits.
    pub fn run_to_end(&self, mut handle: impl FnMut(E)) -> Result<(), Deadlock> {
        loop {
            while let Some(task) = self.take_ready() {
                self.poll_task(task);
            }
            if self.has_ended() {
                return Ok(());
            }
            if self.is_deadlocked() {
                return Err(self.describe_deadlock());
            }
            self.run_next_event(&mut handle);
        }
    }

    /// Runs as [`Simulation::run_to_end`] does, but a task that waits for the processor or for a wake-up polls
    /// the tasks due before it from within its own wait, as interrupts run on the stack of the code
    /// they interrupt. Events and their order are the same. This saves the return through the
    /// task's calls and back, which costs more than most of the events in between.
    ///
    /// # Errors
    ///
    /// The errors of [`Simulation::run_to_end`].
    pub fn run_nested(&self, handle: impl Fn(E) + 'static) -> Result<(), Deadlock> {
        let handle: EventHandler<E> = Rc::new(handle);
        *self.event_handler.borrow_mut() = Some(Rc::clone(&handle));
        let outcome = self.run_to_end(|event| handle(event));
        *self.event_handler.borrow_mut() = None;
        outcome
    }

    /// Processes events and other tasks from within a wait, as [`Simulation::run_to_end`] would, until the
    /// current task is woken. Returns false if the next task to poll waits below on the stack, or
    /// if the run cannot continue here.
    pub(crate) fn wait_nested(&self) -> bool {
        let handler = self.event_handler.borrow();
        let Some(handler) = &*handler else {
            return false;
        };
        let task = self.expect_current_task();
        loop {
            match self.first_ready() {
                Some(first) if first == task => {
                    self.take_ready();
                    let slot = &mut self.task_slots.borrow_mut()[task.index()];
                    slot.is_ready = false;
                    // Its turn may be of a wake-up that it has been told of.
                    if std::mem::take(&mut slot.was_woken) {
                        return true;
                    }
                }
                Some(first) => {
                    if !self.poll_nested(first) {
                        return false;
                    }
                }
                None if self.has_ended() || self.is_deadlocked() => return false,
                None => {
                    self.current_task.set(None);
                    self.run_next_event(&mut |event| handler(event));
                }
            }
            self.current_task.set(Some(task));
        }
    }

    /// Advances time to the timer's expiry and stops the timer, if that is the next event and the
    /// current run allows waits within a task. Returns whether it did.
    #[inline]
    pub(crate) fn advance_to_timer(&self) -> bool {
        let timer = self.timer_position.get();
        let is_next = timer < self.next_queued_position.get() && self.ready_count.get() == 0;
        if !is_next || self.has_ended() || self.event_handler.borrow().is_none() {
            return false;
        }
        self.now.set(timer.event_time);
        self.stop_timer();
        // What ends wakes the task, which is told of that and of all before it at once.
        self.task_slots.borrow_mut()[self.expect_current_task().index()].was_woken = false;
        true
    }

    #[inline]
    fn first_ready(&self) -> Option<TaskId> {
        match self.ready_count.get() {
            0 => None,
            _ => self.ready_tasks.borrow().front().copied(),
        }
    }

    /// Polls the first ready task from within another task's wait. Returns false without a poll if
    /// that task itself waits below on the stack, or if the nesting limit is reached.
    fn poll_nested(&self, first: TaskId) -> bool {
        let nested_polls = self.nested_poll_count.get();
        let is_below = {
            let slot = &self.task_slots.borrow()[first.index()];
            slot.future.is_none() && !slot.has_ended
        };
        if is_below || nested_polls == NESTED_POLLS_MAX {
            return false;
        }
        self.take_ready();
        self.nested_poll_count.set(nested_polls + 1);
        self.poll_task(first);
        self.nested_poll_count.set(nested_polls);
        true
    }

    fn has_ended(&self) -> bool {
        self.foreground_task_count.get() == 0 || self.is_halted.get()
    }

    /// Reports whether no event is due that a foreground task may wait for.
    fn is_deadlocked(&self) -> bool {
        self.foreground_event_count.get() == 0 && !self.timer_is_set()
    }

    /// Halts the simulation: ends the current [`Simulation::run_to_end`] and every later one before the next
    /// event.
    pub fn halt_run(&self) {
        self.is_halted.set(true);
    }

    /// Runs all events, including background events, up to time `until`, and advances the clock to
    /// it. [`Simulation::halt_run`] ends the run early.
    ///
    /// # Panics
    ///
    /// If `until` has passed.
    pub fn run_until(&self, until: Time, mut handle: impl FnMut(E)) {
        assert!(until >= self.now(), "a run until {until}, which has passed");
        let horizon = QueuePosition::after_all_at(until);
        self.event_queue
            .borrow_mut()
            .push_event(horizon, ScheduledEntry::RunEnd);
        self.next_queued_position
            .set(self.next_queued_position.get().min(horizon));
        self.next_due_time.set(self.next_due_time.get().min(until));
        loop {
            while let Some(task) = self.take_ready() {
                self.poll_task(task);
            }
            if self.is_halted.get() {
                return;
            }
            if self.run_next_event(&mut handle) {
                return;
            }
        }
    }

    /// Processes the next event. Returns true if it is the end of a [`Simulation::run_until`].
    #[inline]
    fn run_next_event(&self, handle: &mut impl FnMut(E)) -> bool {
        let (timer, queued) = (self.timer_position.get(), self.next_queued_position.get());
        self.now.set(timer.event_time.min(queued.event_time));
        if timer < queued {
            self.stop_timer();
            handle(
                self.timer_event
                    .take()
                    .expect("a timer that is set has an event"),
            );
            return false;
        }
        let due = {
            let mut queue = self.event_queue.borrow_mut();
            let first = queue.pop_first().expect("a foreground event is queued");
            self.next_queued_position.set(queue.next_position());
            first
        };
        self.next_due_time.set(
            timer
                .event_time
                .min(self.next_queued_position.get().event_time),
        );
        match due {
            ScheduledEntry::WakeTask(task) => {
                self.foreground_event_count
                    .set(self.foreground_event_count.get() - 1);
                self.wake_task(task);
            }
            ScheduledEntry::RunEvent(event) => {
                self.foreground_event_count
                    .set(self.foreground_event_count.get() - 1);
                handle(event);
            }
            ScheduledEntry::BackgroundEvent(event) => handle(event),
            ScheduledEntry::RunEnd => return true,
        }
        false
    }

    fn describe_deadlock(&self) -> Deadlock {
        let tasks = self.task_slots.borrow();
        Deadlock {
            deadlock_time: self.now(),
            waiting_tasks: tasks
                .iter()
                .filter(|slot| !slot.has_ended)
                .map(|slot| WaitingTask {
                    task_name: slot.name.clone(),
                    wait_reason: slot.wait_reason,
                })
                .collect(),
        }
    }

    /// Drops all tasks and events. Tasks usually own the owner of the simulation; without this
    /// call, the reference cycle is never freed.
    pub fn drop_all(&self) {
        let tasks = std::mem::take(&mut *self.task_slots.borrow_mut());
        drop(tasks);
        drop(self.event_handler.take());
        self.event_queue.borrow_mut().clear();
        self.next_queued_position.set(QueuePosition::NEVER);
        self.stop_timer();
        self.next_due_time.set(Time::NEVER);
        self.ready_tasks.borrow_mut().clear();
        self.ready_count.set(0);
        self.foreground_task_count.set(0);
        self.foreground_event_count.set(0);
    }
}
