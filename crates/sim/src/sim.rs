//! The engine: what is due next, and who waits for it.

use crate::queue::{Queue, Rank, TieBreak, Turn, Turns};
use crate::task::{Slot, TaskId};
use crate::time::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// One simulation. `E` is what hardware schedules for itself.
pub struct Sim<E> {
    now: Cell<Time>,
    turns: Turns,
    queue: RefCell<Queue<Due<E>>>,
    /// The turn of the first of the queue.
    next_queued: Cell<Turn>,
    /// What the timer is set for, and its turn if it is set: it is moved far
    /// more often than it runs out.
    timer: Cell<Option<E>>,
    timer_turn: Cell<Turn>,
    /// When the first of both is due: looked at far more often still.
    next_due: Cell<Time>,
    /// Events that something in the foreground may be waiting for.
    foreground_events: Cell<usize>,
    tasks: RefCell<Vec<Slot>>,
    foreground_tasks: Cell<usize>,
    halted: Cell<bool>,
    ready: RefCell<VecDeque<TaskId>>,
    /// How many are ready.
    ready_count: Cell<usize>,
    current: Cell<Option<TaskId>>,
    /// Who events are handed to while a task waits on the spot, if a run says.
    handler: RefCell<Option<Handler<E>>>,
    /// Tasks that are polled while others wait on the spot.
    nested: Cell<usize>,
}

/// Tasks that may be polled on top of each other: each takes room on the stack.
const MOST_NESTED: usize = 8;

/// Who events are handed to.
type Handler<E> = Rc<dyn Fn(E)>;

enum Due<E> {
    Wake(TaskId),
    Event(E),
    /// An event that goes on for ever, such as a clock's tick: alone it does
    /// not keep the simulation alive.
    Background(E),
    /// The end of a [`Sim::run_until`]: time does not jump over it.
    Horizon,
}

/// Nothing can happen any more, and yet a task has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When.
    pub at: Time,
    /// Every task that has not ended.
    pub waiting: Vec<Waiting>,
}

/// A task and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The task's name.
    pub task: String,
    /// What it said it was waiting for.
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
    /// A simulation at time zero with nothing in it.
    pub fn new(tie_break: TieBreak) -> Self {
        Self {
            now: Cell::new(Time::ZERO),
            turns: Turns::new(tie_break),
            queue: RefCell::new(Queue::new()),
            next_queued: Cell::new(Turn::NEVER),
            timer: Cell::new(None),
            timer_turn: Cell::new(Turn::NEVER),
            next_due: Cell::new(Time::NEVER),
            foreground_events: Cell::new(0),
            tasks: RefCell::new(Vec::new()),
            foreground_tasks: Cell::new(0),
            halted: Cell::new(false),
            ready: RefCell::new(VecDeque::new()),
            ready_count: Cell::new(0),
            current: Cell::new(None),
            handler: RefCell::new(None),
            nested: Cell::new(0),
        }
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> Time {
        self.now.get()
    }

    /// How often something was made due so far, whether it still is or not: what a
    /// simulation has cost, and the same wherever it runs.
    #[inline]
    pub fn events(&self) -> u64 {
        self.turns.given()
    }

    /// Has `event` handed to the handler of [`Sim::run`] at the moment `at`.
    ///
    /// # Panics
    ///
    /// When `at` has passed.
    #[inline]
    pub fn schedule(&self, at: Time, event: E) {
        self.foreground_events.set(self.foreground_events.get() + 1);
        self.push(at, Rank::Event, Due::Event(event));
    }

    /// Sets the one timer that may be set anew or stopped before it runs out;
    /// what it was set to before is forgotten.
    ///
    /// # Panics
    ///
    /// When `at` has passed.
    #[inline]
    pub fn set_timer(&self, at: Time, event: E) {
        assert!(
            at >= self.now(),
            "a timer was set to {at}, which has passed"
        );
        self.timer.set(Some(event));
        self.timer_turn.set(self.turns.give(at, Rank::Event));
        self.next_due.set(at.min(self.next_queued.get().at));
    }

    /// Stops the timer.
    #[inline]
    pub fn stop_timer(&self) {
        self.timer_turn.set(Turn::NEVER);
        self.next_due.set(self.next_queued.get().at);
    }

    fn timer_is_set(&self) -> bool {
        self.timer_turn.get() != Turn::NEVER
    }

    /// As [`Sim::schedule`], for an event that repeats for ever: nothing in
    /// the foreground waits for it.
    pub fn schedule_background(&self, at: Time, event: E) {
        self.push(at, Rank::Event, Due::Background(event));
    }

    #[inline]
    fn push(&self, at: Time, rank: Rank, due: Due<E>) {
        assert!(
            at >= self.now(),
            "an event was scheduled for {at}, which has passed"
        );
        let turn = self.turns.give(at, rank);
        self.queue.borrow_mut().push(turn, due);
        self.next_queued.set(self.next_queued.get().min(turn));
        self.next_due.set(self.next_due.get().min(at));
    }

    /// When the next event is due, the background's too: now, if a task is ready;
    /// [`Time::NEVER`], if nothing more can happen. With [`Sim::run_until`], all
    /// that it takes to keep step with a clock on the wall.
    pub fn next_due(&self) -> Time {
        match self.ready_count.get() {
            0 => self.next_due.get(),
            _ => self.now(),
        }
    }

    /// Whether nothing but the timer is due until then, that moment included,
    /// and no task is ready.
    #[inline]
    pub(crate) fn is_quiet_until(&self, to: Time) -> bool {
        self.ready_count.get() == 0 && self.next_queued.get().at > to
    }

    /// Moves time to `to` if nothing is due until then, that moment included,
    /// and no other task is ready. Returns whether it did.
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

/// Tasks.
impl<E> Sim<E> {
    /// Starts a task. The simulation runs until all tasks of the foreground
    /// have ended; one of the background (a daemon) may go on for ever.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        foreground: bool,
        future: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let mut tasks = self.tasks.borrow_mut();
        let id = TaskId::of_place(tasks.len());
        tasks.push(Slot {
            future: Some(Box::pin(future)),
            name: name.into(),
            waiting_for: "its turn",
            woken: false,
            queued: true,
            foreground,
            ended: false,
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

    /// The next task that is ready to be polled.
    fn take_ready(&self) -> Option<TaskId> {
        let count = self.ready_count.get().checked_sub(1)?;
        self.ready_count.set(count);
        self.ready.borrow_mut().pop_front()
    }

    /// The task that is being polled.
    ///
    /// # Panics
    ///
    /// When none is: hardware has no task.
    #[inline]
    pub fn current(&self) -> TaskId {
        self.current.get().expect("only a task may ask which it is")
    }

    /// The running task; none while hardware is served.
    #[inline]
    pub(crate) fn current_task(&self) -> Option<TaskId> {
        self.current.get()
    }

    /// Ends a task's [`Sim::wait`]: the present one, or else its next.
    #[inline]
    pub fn wake(&self, task: TaskId) {
        let mut tasks = self.tasks.borrow_mut();
        let slot = &mut tasks[task.place()];
        slot.woken = true;
        if !slot.queued && !slot.ended {
            slot.queued = true;
            self.make_ready(task);
        }
    }

    /// Waits to be woken. `what` stands in the report of a deadlock. Whoever
    /// waits for something in particular looks whether it is there: a task may
    /// be woken for another reason.
    #[inline]
    pub fn wait(&self, what: &'static str) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(move |_| self.poll_wait(what))
    }

    /// As [`Sim::wait`]; in [`Sim::run_on_the_spot`] the task goes on without being polled
    /// anew where it can.
    #[inline]
    pub fn wait_in_place(&self, what: &'static str) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(move |_| {
            let woken = self.poll_wait(what).is_ready() || self.wait_on_the_spot();
            if woken {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }

    /// One poll of [`Sim::wait`].
    pub(crate) fn poll_wait(&self, what: &'static str) -> Poll<()> {
        let mut tasks = self.tasks.borrow_mut();
        let slot = &mut tasks[self.current().place()];
        if std::mem::take(&mut slot.woken) {
            return Poll::Ready(());
        }
        slot.waiting_for = what;
        Poll::Pending
    }

    /// Waits until the moment `at`; not at all if it has passed. Whatever
    /// hardware does at that moment, it has done.
    pub async fn sleep_until(&self, at: Time) {
        if at <= self.now() || self.try_advance(at) {
            return;
        }
        self.wake_at(at);
        while self.now() < at {
            self.wait_in_place("time to pass").await;
        }
    }

    /// Has the task that asks woken at the moment `at`, whatever it waits for then, once
    /// hardware has done what it does at that moment: a wait that ends of itself.
    ///
    /// # Panics
    ///
    /// When `at` has passed.
    pub fn wake_at(&self, at: Time) {
        self.foreground_events.set(self.foreground_events.get() + 1);
        self.push(at, Rank::Sleeper, Due::Wake(self.current()));
    }

    /// As [`Sim::sleep_until`], for a daemon: nothing in the foreground waits
    /// for it to come round again.
    pub async fn sleep_in_background_until(&self, at: Time, wake: impl FnOnce(TaskId) -> E) {
        let wake = wake(self.current());
        self.push(at, Rank::Sleeper, Due::Background(wake));
        while self.now() < at {
            self.wait("its next round").await;
        }
    }

    fn poll(&self, task: TaskId) {
        let future: Option<Pin<Box<dyn Future<Output = ()>>>> = {
            let mut tasks = self.tasks.borrow_mut();
            let slot = &mut tasks[task.place()];
            slot.queued = false;
            slot.future.take()
        };
        let Some(mut future) = future else { return };
        self.current.set(Some(task));
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        self.current.set(None);
        match polled {
            Poll::Pending => self.tasks.borrow_mut()[task.place()].future = Some(future),
            Poll::Ready(()) => {
                // What the task owned goes while nothing is borrowed.
                drop(future);
                let mut tasks = self.tasks.borrow_mut();
                let slot = &mut tasks[task.place()];
                slot.ended = true;
                if slot.foreground {
                    self.foreground_tasks.set(self.foreground_tasks.get() - 1);
                }
            }
        }
    }
}

/// Running.
impl<E> Sim<E> {
    /// Runs until every task of the foreground has ended, handing each event
    /// to `handle`. Whatever is still under way stays as it is, and goes on
    /// with the next call. Somebody may [halt](Sim::halt) it before.
    ///
    /// # Errors
    ///
    /// [`Deadlock`] when nothing but background events is left and a task of
    /// the foreground still waits.
    pub fn run(&self, mut handle: impl FnMut(E)) -> Result<(), Deadlock> {
        loop {
            while let Some(task) = self.take_ready() {
                self.poll(task);
            }
            if self.is_over() {
                return Ok(());
            }
            if self.is_stuck() {
                return Err(self.deadlock());
            }
            self.step(&mut handle);
        }
    }

    /// As [`Sim::run`]; but a task that waits for the processor, for its work on it or
    /// for its wake-up polls who comes before it from where it waits, as interrupts run
    /// on the stack of what they interrupt. What happens is the same, and in the same
    /// order: only the way out of the task's calls and back is saved, which is longer
    /// than most of what happens meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Sim::run`].
    pub fn run_on_the_spot(&self, handle: impl Fn(E) + 'static) -> Result<(), Deadlock> {
        let handle: Handler<E> = Rc::new(handle);
        *self.handler.borrow_mut() = Some(Rc::clone(&handle));
        let outcome = self.run(|event| handle(event));
        *self.handler.borrow_mut() = None;
        outcome
    }

    /// Goes on with events and with other tasks, as [`Sim::run`] would, until the task that
    /// asks is the next one to be polled, and is; false where that takes the turn of a task
    /// that waits below it, or cannot be seen from here.
    pub(crate) fn wait_on_the_spot(&self) -> bool {
        let handler = self.handler.borrow();
        let Some(handler) = &*handler else {
            return false;
        };
        let task = self.current();
        loop {
            match self.first_ready() {
                Some(first) if first == task => {
                    self.take_ready();
                    let slot = &mut self.tasks.borrow_mut()[task.place()];
                    slot.queued = false;
                    // Its turn may be of a wake-up that it has been told of.
                    if std::mem::take(&mut slot.woken) {
                        return true;
                    }
                }
                Some(first) => {
                    if !self.poll_nested(first) {
                        return false;
                    }
                }
                None if self.is_over() || self.is_stuck() => return false,
                None => {
                    self.current.set(None);
                    self.step(&mut |event| handler(event));
                }
            }
            self.current.set(Some(task));
        }
    }

    /// Moves time on to the end of what the timer is set for, and stops it, if that is what
    /// happens next and the task that asks may wait for it on the spot.
    #[inline]
    pub(crate) fn pass_to_timer(&self) -> bool {
        let timer = self.timer_turn.get();
        let is_next = timer < self.next_queued.get() && self.ready_count.get() == 0;
        if !is_next || self.is_over() || self.handler.borrow().is_none() {
            return false;
        }
        self.now.set(timer.at);
        self.stop_timer();
        // What ends wakes the task, which is told of that and of all before it at once.
        self.tasks.borrow_mut()[self.current().place()].woken = false;
        true
    }

    /// The task that is to be polled next, if one is ready.
    #[inline]
    fn first_ready(&self) -> Option<TaskId> {
        match self.ready_count.get() {
            0 => None,
            _ => self.ready.borrow().front().copied(),
        }
    }

    /// Polls the first of the tasks that are ready while another waits on the spot; false,
    /// with nothing done, where it is one that waits on the spot itself.
    fn poll_nested(&self, first: TaskId) -> bool {
        let nested = self.nested.get();
        let is_below = {
            let slot = &self.tasks.borrow()[first.place()];
            slot.future.is_none() && !slot.ended
        };
        if is_below || nested == MOST_NESTED {
            return false;
        }
        self.take_ready();
        self.nested.set(nested + 1);
        self.poll(first);
        self.nested.set(nested);
        true
    }

    /// Whether nobody in the foreground is left, or somebody has halted it.
    fn is_over(&self) -> bool {
        self.foreground_tasks.get() == 0 || self.halted.get()
    }

    /// Whether nothing is due that a task of the foreground may wait for.
    fn is_stuck(&self) -> bool {
        self.foreground_events.get() == 0 && !self.timer_is_set()
    }

    /// Ends the present [`Sim::run`], and every later one, before the next event.
    pub fn halt(&self) {
        self.halted.set(true);
    }

    /// Runs events, the background's too, up to the moment `until`, which is then
    /// the present one; or until somebody [halts](Sim::halt) it.
    ///
    /// # Panics
    ///
    /// When `until` has passed.
    pub fn run_until(&self, until: Time, mut handle: impl FnMut(E)) {
        assert!(until >= self.now(), "a run until {until}, which has passed");
        let horizon = Turn::last_of(until);
        self.queue.borrow_mut().push(horizon, Due::Horizon);
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

    /// Goes on to what is due next; whether that is the horizon.
    #[inline]
    fn step(&self, handle: &mut impl FnMut(E)) -> bool {
        let (timer, queued) = (self.timer_turn.get(), self.next_queued.get());
        self.now.set(timer.at.min(queued.at));
        if timer < queued {
            self.stop_timer();
            handle(self.timer.take().expect("a timer that is set has an event"));
            return false;
        }
        let due = {
            let mut queue = self.queue.borrow_mut();
            let first = queue.pop().expect("a foreground event is queued");
            self.next_queued.set(queue.next());
            first
        };
        self.next_due.set(timer.at.min(self.next_queued.get().at));
        match due {
            Due::Wake(task) => {
                self.foreground_events.set(self.foreground_events.get() - 1);
                self.wake(task);
            }
            Due::Event(event) => {
                self.foreground_events.set(self.foreground_events.get() - 1);
                handle(event);
            }
            Due::Background(event) => handle(event),
            Due::Horizon => return true,
        }
        false
    }

    fn deadlock(&self) -> Deadlock {
        let tasks = self.tasks.borrow();
        Deadlock {
            at: self.now(),
            waiting: tasks
                .iter()
                .filter(|slot| !slot.ended)
                .map(|slot| Waiting {
                    task: slot.name.clone(),
                    waiting_for: slot.waiting_for,
                })
                .collect(),
        }
    }

    /// Drops every task and every event. Tasks usually own what owns the
    /// simulation; without this, neither would ever go.
    pub fn clear(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        drop(self.handler.take());
        self.queue.borrow_mut().clear();
        self.next_queued.set(Turn::NEVER);
        self.stop_timer();
        self.next_due.set(Time::NEVER);
        self.ready.borrow_mut().clear();
        self.ready_count.set(0);
        self.foreground_tasks.set(0);
        self.foreground_events.set(0);
    }
}
