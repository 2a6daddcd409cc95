//! Where the workers of a run meet, and wait for notices of each other.

use diskperf_sim::{TaskId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// A meeting of a fixed number of workers, again and again. Whoever runs them wakes the
/// tasks that its methods return.
pub struct Rendezvous {
    state: RefCell<State>,
}

struct State {
    expected: usize,
    came: Vec<TaskId>,
    /// Meetings that have ended.
    ended: u64,
    /// The moment at which the last meeting ended.
    released: Time,
    /// Somebody will never come.
    broken: bool,
    /// Notices that were given.
    notices: u64,
    /// Workers that wait for the next one.
    listeners: Vec<TaskId>,
}

/// The outcome of coming to a meeting.
enum Arrival {
    /// Somebody will never come.
    Broken,
    /// All have come; these wait.
    Last(Vec<TaskId>),
    /// Others are still to come; so many meetings ended before.
    Early(u64),
}

/// A worker that comes to a meeting, and whoever runs it.
pub(crate) trait Waiter {
    /// Its task.
    fn task(&self) -> TaskId;
    /// The present moment.
    fn now(&self) -> Time;
    /// Sleeps until it is woken, at most until a moment, at which `give_up` says whether
    /// nobody has woken it.
    async fn sleep(&self, until: Option<Time>, give_up: impl Fn() -> bool);
    /// Books the time since `from` as thinking.
    fn book_think(&self, from: Time);
    /// Wakes other workers, by their tasks.
    fn wake_all(&self, tasks: &[TaskId]);
}

/// Workers that wait.
impl Rendezvous {
    /// Waits until all have come; the moment at which that was. None if one will never come.
    pub(crate) async fn meet(&self, who: &impl Waiter) -> Option<Time> {
        let from = who.now();
        match self.arrive(who.task(), from) {
            Arrival::Broken => None,
            Arrival::Last(came) => {
                who.wake_all(&came);
                Some(from)
            }
            Arrival::Early(meetings) => {
                who.sleep(None, || false).await;
                who.book_think(from);
                self.released_after(meetings)
            }
        }
    }

    /// One that was expected will never come; those who wait need not.
    pub(crate) fn give_up(&self, who: &impl Waiter) {
        who.wake_all(&self.break_up());
        self.give_notice(who);
    }

    /// Wakes the workers that wait for a notice.
    pub(crate) fn give_notice(&self, who: &impl Waiter) {
        who.wake_all(&self.notify());
    }

    /// Waits until more notices than `seen` were given, at most until a moment.
    pub(crate) async fn await_notice(&self, who: &impl Waiter, (seen, until): (u64, Option<Time>)) {
        let (from, task) = (who.now(), who.task());
        if until.is_some_and(|until| until <= from) || !self.listen(task, seen) {
            return;
        }
        who.sleep(until, || self.stop_listening(task)).await;
        who.book_think(from);
    }
}

impl Rendezvous {
    /// A meeting of this many.
    pub fn new(expected: usize) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(State {
                expected,
                came: Vec::new(),
                ended: 0,
                released: Time::ZERO,
                broken: false,
                notices: 0,
                listeners: Vec::new(),
            }),
        })
    }

    /// Notices that were given so far.
    pub(crate) fn notices(&self) -> u64 {
        self.state.borrow().notices
    }

    /// Whether somebody said that it will never come.
    pub fn is_broken(&self) -> bool {
        self.state.borrow().broken
    }

    /// Comes to the meeting.
    fn arrive(&self, task: TaskId, now: Time) -> Arrival {
        let mut state = self.state.borrow_mut();
        if state.broken {
            return Arrival::Broken;
        }
        if state.came.len() + 1 < state.expected {
            state.came.push(task);
            return Arrival::Early(state.ended);
        }
        state.released = now;
        state.ended += 1;
        Arrival::Last(std::mem::take(&mut state.came))
    }

    /// When the meeting ended that came after so many; none if it did not. Who was released
    /// has met the others, even if one of them fails before it runs again.
    fn released_after(&self, meetings: u64) -> Option<Time> {
        let state = self.state.borrow();
        (state.ended > meetings).then_some(state.released)
    }

    /// One that was expected will never come: returns those who need not wait.
    fn break_up(&self) -> Vec<TaskId> {
        let mut state = self.state.borrow_mut();
        state.broken = true;
        std::mem::take(&mut state.came)
    }

    /// Gives a notice: returns those who wait for it.
    fn notify(&self) -> Vec<TaskId> {
        let mut state = self.state.borrow_mut();
        state.notices += 1;
        std::mem::take(&mut state.listeners)
    }

    /// Has a worker listen for the next notice; false if there were more than `seen`
    /// before, or no more will come.
    fn listen(&self, task: TaskId, seen: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let waits = !state.broken && state.notices <= seen;
        if waits {
            state.listeners.push(task);
        }
        waits
    }

    /// Listens no more; false if a notice had come.
    fn stop_listening(&self, task: TaskId) -> bool {
        let listeners = &mut self.state.borrow_mut().listeners;
        let own = listeners.iter().position(|one| *one == task);
        own.map(|own| listeners.remove(own)).is_some()
    }
}
