//! Core of the simulation engine: the next event, and the tasks that wait.

use crate::queue::{Queue, QueuePosition, QueuePositionSource, Rank, TieBreak};
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
pub struct Sim<E> {
    now: Cell<Time>,
    positions: QueuePositionSource,
    queue: RefCell<Queue<ScheduledEntry<E>>>,
    next_queued: Cell<QueuePosition>,
    /// Event of the simulation's timer. The timer is stored outside of the queue, because it is
    /// reset far more often than it expires.
    timer: Cell<Option<E>>,
    timer_position: Cell<QueuePosition>,
    /// Time of the next entry or timer expiry. Cached, because it is read even more often than the
    /// timer is set.
    next_due: Cell<Time>,
    /// Number of queued events that a foreground task may wait for.
    foreground_events: Cell<usize>,
    tasks: RefCell<Vec<TaskSlot>>,
    foreground_tasks: Cell<usize>,
    halted: Cell<bool>,
    ready: RefCell<VecDeque<TaskId>>,
    ready_count: Cell<usize>,
    current: Cell<Option<TaskId>>,
    /// Event handler for [`Sim::run_nested`], while such a run is in progress.
    handler: RefCell<Option<EventHandler<E>>>,
    /// Number of tasks that are polled from within another task's wait.
    nested_polls: Cell<usize>,
}

/// Number of tasks that may be polled from within each other's wait. Each level uses stack space.
const NESTED_POLLS_MAX: usize = 8;

type EventHandler<E> = Rc<dyn Fn(E)>;

enum ScheduledEntry<E> {
    Wake(TaskId),
    Event(E),
    /// Event that repeats forever, such as a clock's tick. Alone it does not keep the simulation
    /// running.
    Background(E),
    /// End of a [`Sim::run_until`]; time does not jump beyond it.
    RunEnd,
}

/// Deadlock of a simulation: no event is left, but a task has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Virtual time of the deadlock.
    pub at: Time,
    /// Tasks that had not ended at the time of the deadlock.
    pub waiting: Vec<Waiting>,
}

/// Task in a deadlock, with the reason of its wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Name of the task.
    pub task: String,
    /// Description of the event that the task waits for, as given to [`Sim::wait`].
    pub waiting_for: &'static str,
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "deadlock at {}:", self.at)?;
        for waiting in &self.waiting {
            write!(
                formatter,
                " {} waits for {};",
                waiting.task, waiting.waiting_for
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Deadlock {}

impl<E> Sim<E> {
    /// Returns an empty simulation at time zero.
    pub fn new(tie_break: TieBreak) -> Self {
        Self {
            now: Cell::new(Time::ZERO),
            positions: QueuePositionSource::new(tie_break),
            queue: RefCell::new(Queue::new()),
            next_queued: Cell::new(QueuePosition::NEVER),
            timer: Cell::new(None),
            timer_position: Cell::new(QueuePosition::NEVER),
            next_due: Cell::new(Time::NEVER),
            foreground_events: Cell::new(0),
            tasks: RefCell::new(Vec::new()),
            foreground_tasks: Cell::new(0),
            halted: Cell::new(false),
            ready: RefCell::new(VecDeque::new()),
            ready_count: Cell::new(0),
            current: Cell::new(None),
            handler: RefCell::new(None),
            nested_polls: Cell::new(0),
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
    pub fn events(&self) -> u64 {
        self.positions.issued_count()
    }

    /// Schedules `event` for the handler of [`Sim::run`] at time `at`.
    ///
    /// # Panics
    ///
    /// If `at` has passed.
    #[inline]
    pub fn schedule(&self, at: Time, event: E) {
        self.foreground_events.set(self.foreground_events.get() + 1);
        self.push(at, Rank::Event, ScheduledEntry::Event(event));
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
        self.timer.set(Some(event));
        self.timer_position
            .set(self.positions.issue(at, Rank::Event));
        self.next_due.set(at.min(self.next_queued.get().at));
    }

    /// Stops the simulation's timer.
    #[inline]
    pub fn stop_timer(&self) {
        self.timer_position.set(QueuePosition::NEVER);
        self.next_due.set(self.next_queued.get().at);
    }

    fn timer_is_set(&self) -> bool {
        self.timer_position.get() != QueuePosition::NEVER
    }

    /// Schedules an event that repeats forever. It differs from [`Sim::schedule`] in that no
    /// foreground task waits for the event.
    pub fn schedule_background(&self, at: Time, event: E) {
        self.push(at, Rank::Event, ScheduledEntry::Background(event));
    }

    #[inline]
    fn push(&self, at: Time, rank: Rank, due: ScheduledEntry<E>) {
        assert!(
            at >= self.now(),
            "an event was scheduled for {at}, which has passed"
        );
        let position = self.positions.issue(at, rank);
        self.queue.borrow_mut().push(position, due);
        self.next_queued.set(self.next_queued.get().min(position));
        self.next_due.set(self.next_due.get().min(at));
    }

    /// Returns the time of the next event, including background events. Now if a task is ready;
    /// [`Time::NEVER`] if no event is left. Together with [`Sim::run_until`] it suffices to keep
    /// step with a wall clock.
    pub fn next_due(&self) -> Time {
        match self.ready_count.get() {
            0 => self.next_due.get(),
            _ => self.now(),
        }
    }

    /// Reports whether only the timer is due up to and including `to`, and no task is ready.
    #[inline]
    pub(crate) fn has_only_timer_until(&self, to: Time) -> bool {
        self.ready_count.get() == 0 && self.next_queued.get().at > to
    }

    /// Advances time to `to` if no event is due up to and including `to`, and no other task is
    /// ready. Returns whether it did.
    #[inline]
    pub fn try_advance(&self, to: Time) -> bool {
        if self.next_due.get() <= to || self.ready_count.get() > 0 {
            return false;
        }
        debug_assert!(to >= self.now());
        self.now.set(to);
        true
    }
}

impl<E> Sim<E> {
    /// Starts a task. The simulation runs until all foreground tasks have ended; a background task
    /// (a daemon) may run forever.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        foreground: bool,
        future: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let mut tasks = self.tasks.borrow_mut();
        let id = TaskId::from_index(tasks.len());
        tasks.push(TaskSlot {
            future: Some(Box::pin(future)),
            name: name.into(),
            waiting_for: "its turn",
            was_woken: false,
            is_ready: true,
            foreground,
            has_ended: false,
        });
        if foreground {
            self.foreground_tasks.set(self.foreground_tasks.get() + 1);
        }
        drop(tasks);
        self.make_ready(id);
        id
    }

    fn make_ready(&self, task: TaskId) {
        self.ready.borrow_mut().push_back(task);
        self.ready_count.set(self.ready_count.get() + 1);
    }

    fn take_ready(&self) -> Option<TaskId> {
        let count = self.ready_count.get().checked_sub(1)?;
        self.ready_count.set(count);
        self.ready.borrow_mut().pop_front()
    }

    /// Returns the task that is being polled.
    ///
    /// # Panics
    ///
    /// If no task is polled, as during a hardware event.
    #[inline]
    pub fn current(&self) -> TaskId {
        self.current.get().expect("only a task may ask which it is")
    }

    /// Returns the task that is being polled, or None during a hardware event.
    #[inline]
    pub(crate) fn current_task(&self) -> Option<TaskId> {
        self.current.get()
    }

    /// Wakes a task: ends its current [`Sim::wait`], or its next one if it does not wait.
    #[inline]
    pub fn wake(&self, task: TaskId) {
        let mut tasks = self.tasks.borrow_mut();
        let slot = &mut tasks[task.index()];
        slot.was_woken = true;
        if !slot.is_ready && !slot.has_ended {
            slot.is_ready = true;
            self.make_ready(task);
        }
    }

    /// Waits until the current task is woken. `reason` appears in a deadlock report. A task may be
    /// woken for another reason, so the caller must check its condition.
    #[inline]
    pub fn wait(&self, reason: &'static str) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(move |_| self.poll_wait(reason))
    }

    /// Waits as [`Sim::wait`] does, but resumes without a new poll where [`Sim::run_nested`]
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

    /// Performs one poll of [`Sim::wait`] for the current task.
    pub(crate) fn poll_wait(&self, reason: &'static str) -> Poll<()> {
        let mut tasks = self.tasks.borrow_mut();
        let slot = &mut tasks[self.current().index()];
        if std::mem::take(&mut slot.was_woken) {
            return Poll::Ready(());
        }
        slot.waiting_for = reason;
        Poll::Pending
    }

    /// Waits until time `at`, after all hardware events of that time. Returns at the current time
    /// if `at` has passed.
    pub async fn sleep_until(&self, at: Time) {
        if at <= self.now() || self.try_advance(at) {
            return;
        }
        self.wake_at(at);
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
    pub fn wake_at(&self, at: Time) {
        self.foreground_events.set(self.foreground_events.get() + 1);
        self.push(at, Rank::Sleeper, ScheduledEntry::Wake(self.current()));
    }

    /// Waits like [`Sim::sleep_until`], for a daemon: no foreground task depends on the wake-up.
    pub async fn sleep_in_background_until(&self, at: Time, wake: impl FnOnce(TaskId) -> E) {
        let wake = wake(self.current());
        self.push(at, Rank::Sleeper, ScheduledEntry::Background(wake));
        while self.now() < at {
            self.wait("its next round").await;
        }
    }

    fn poll(&self, task: TaskId) {
        let future: Option<Pin<Box<dyn Future<Output = ()>>>> = {
            let mut tasks = self.tasks.borrow_mut();
            let slot = &mut tasks[task.index()];
            slot.is_ready = false;
            slot.future.take()
        };
        let Some(mut future) = future else { return };
        self.current.set(Some(task));
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        self.current.set(None);
        match polled {
            Poll::Pending => self.tasks.borrow_mut()[task.index()].future = Some(future),
            Poll::Ready(()) => {
                // What the task owned goes while nothing is borrowed.
                drop(future);
                let mut tasks = self.tasks.borrow_mut();
                let slot = &mut tasks[task.index()];
                slot.has_ended = true;
                if slot.foreground {
                    self.foreground_tasks.set(self.foreground_tasks.get() - 1);
                }
            }
        }
    }
}

impl<E> Sim<E> {
    /// Runs until every foreground task has ended, and passes each event to `handle`. Pending
    /// events remain, and continue with the next call. [`Sim::halt`] ends the run early.
    ///
    /// # Errors
    ///
    /// [`Deadlock`] if only background events are left and a foreground task still waits.
    pub fn run(&self, mut handle: impl FnMut(E)) -> Result<(), Deadlock> {
        loop {
            while let Some(task) = self.take_ready() {
                self.poll(task);
            }
            if self.has_ended() {
                return Ok(());
            }
            if self.is_deadlocked() {
                return Err(self.deadlock());
            }
            self.step(&mut handle);
        }
    }

    /// Runs as [`Sim::run`] does, but a task that waits for the processor or for a wake-up polls
    /// the tasks due before it from within its own wait, as interrupts run on the stack of the code
    /// they interrupt. Events and their order are the same. This saves the return through the
    /// task's calls and back, which costs more than most of the events in between.
    ///
    /// # Errors
    ///
    /// The errors of [`Sim::run`].
    pub fn run_nested(&self, handle: impl Fn(E) + 'static) -> Result<(), Deadlock> {
        let handle: EventHandler<E> = Rc::new(handle);
        *self.handler.borrow_mut() = Some(Rc::clone(&handle));
        let outcome = self.run(|event| handle(event));
        *self.handler.borrow_mut() = None;
        outcome
    }

    /// Processes events and other tasks from within a wait, as [`Sim::run`] would, until the
    /// current task is woken. Returns false if the next task to poll waits below on the stack, or
    /// if the run cannot continue here.
    pub(crate) fn wait_nested(&self) -> bool {
        let handler = self.handler.borrow();
        let Some(handler) = &*handler else {
            return false;
        };
        let task = self.current();
        loop {
            match self.first_ready() {
                Some(first) if first == task => {
                    self.take_ready();
                    let slot = &mut self.tasks.borrow_mut()[task.index()];
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
                    self.current.set(None);
                    self.step(&mut |event| handler(event));
                }
            }
            self.current.set(Some(task));
        }
    }

    /// Advances time to the timer's expiry and stops the timer, if that is the next event and the
    /// current run allows waits within a task. Returns whether it did.
    #[inline]
    pub(crate) fn advance_to_timer(&self) -> bool {
        let timer = self.timer_position.get();
        let is_next = timer < self.next_queued.get() && self.ready_count.get() == 0;
        if !is_next || self.has_ended() || self.handler.borrow().is_none() {
            return false;
        }
        self.now.set(timer.at);
        self.stop_timer();
        // What ends wakes the task, which is told of that and of all before it at once.
        self.tasks.borrow_mut()[self.current().index()].was_woken = false;
        true
    }

    #[inline]
    fn first_ready(&self) -> Option<TaskId> {
        match self.ready_count.get() {
            0 => None,
            _ => self.ready.borrow().front().copied(),
        }
    }

    /// Polls the first ready task from within another task's wait. Returns false without a poll if
    /// that task itself waits below on the stack, or if the nesting limit is reached.
    fn poll_nested(&self, first: TaskId) -> bool {
        let nested_polls = self.nested_polls.get();
        let is_below = {
            let slot = &self.tasks.borrow()[first.index()];
            slot.future.is_none() && !slot.has_ended
        };
        if is_below || nested_polls == NESTED_POLLS_MAX {
            return false;
        }
        self.take_ready();
        self.nested_polls.set(nested_polls + 1);
        self.poll(first);
        self.nested_polls.set(nested_polls);
        true
    }

    fn has_ended(&self) -> bool {
        self.foreground_tasks.get() == 0 || self.halted.get()
    }

    /// Reports whether no event is due that a foreground task may wait for.
    fn is_deadlocked(&self) -> bool {
        self.foreground_events.get() == 0 && !self.timer_is_set()
    }

    /// Halts the simulation: ends the current [`Sim::run`] and every later one before the next
    /// event.
    pub fn halt(&self) {
        self.halted.set(true);
    }

    /// Runs all events, including background events, up to time `until`, and advances the clock to
    /// it. [`Sim::halt`] ends the run early.
    ///
    /// # Panics
    ///
    /// If `until` has passed.
    pub fn run_until(&self, until: Time, mut handle: impl FnMut(E)) {
        assert!(until >= self.now(), "a run until {until}, which has passed");
        let horizon = QueuePosition::after_all_at(until);
        self.queue
            .borrow_mut()
            .push(horizon, ScheduledEntry::RunEnd);
        self.next_queued.set(self.next_queued.get().min(horizon));
        self.next_due.set(self.next_due.get().min(until));
        loop {
            while let Some(task) = self.take_ready() {
                self.poll(task);
            }
            if self.halted.get() {
                return;
            }
            if self.step(&mut handle) {
                return;
            }
        }
    }

    /// Processes the next event. Returns true if it is the end of a [`Sim::run_until`].
    #[inline]
    fn step(&self, handle: &mut impl FnMut(E)) -> bool {
        let (timer, queued) = (self.timer_position.get(), self.next_queued.get());
        self.now.set(timer.at.min(queued.at));
        if timer < queued {
            self.stop_timer();
            handle(self.timer.take().expect("a timer that is set has an event"));
            return false;
        }
        let due = {
            let mut queue = self.queue.borrow_mut();
            let first = queue.pop().expect("a foreground event is queued");
            self.next_queued.set(queue.next_position());
            first
        };
        self.next_due.set(timer.at.min(self.next_queued.get().at));
        match due {
            ScheduledEntry::Wake(task) => {
                self.foreground_events.set(self.foreground_events.get() - 1);
                self.wake(task);
            }
            ScheduledEntry::Event(event) => {
                self.foreground_events.set(self.foreground_events.get() - 1);
                handle(event);
            }
            ScheduledEntry::Background(event) => handle(event),
            ScheduledEntry::RunEnd => return true,
        }
        false
    }

    fn deadlock(&self) -> Deadlock {
        let tasks = self.tasks.borrow();
        Deadlock {
            at: self.now(),
            waiting: tasks
                .iter()
                .filter(|slot| !slot.has_ended)
                .map(|slot| Waiting {
                    task: slot.name.clone(),
                    waiting_for: slot.waiting_for,
                })
                .collect(),
        }
    }

    /// Drops all tasks and events. Tasks usually own the owner of the simulation; without this
    /// call, the reference cycle is never freed.
    pub fn clear(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        drop(self.handler.take());
        self.queue.borrow_mut().clear();
        self.next_queued.set(QueuePosition::NEVER);
        self.stop_timer();
        self.next_due.set(Time::NEVER);
        self.ready.borrow_mut().clear();
        self.ready_count.set(0);
        self.foreground_tasks.set(0);
        self.foreground_events.set(0);
    }
}
