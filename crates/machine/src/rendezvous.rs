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
pub(crate) enum Arrival {
    /// Somebody will never come.
    Broken,
    /// All have come; these wait.
    Last(Vec<TaskId>),
    /// Others are still to come; so many meetings ended before.
    Early(u64),
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
    pub(crate) fn arrive(&self, task: TaskId, now: Time) -> Arrival {
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
    pub(crate) fn released_after(&self, meetings: u64) -> Option<Time> {
        let state = self.state.borrow();
        (state.ended > meetings).then_some(state.released)
    }

    /// One that was expected will never come: returns those who need not wait.
    pub(crate) fn break_up(&self) -> Vec<TaskId> {
        let mut state = self.state.borrow_mut();
        state.broken = true;
        std::mem::take(&mut state.came)
    }

    /// Gives a notice: returns those who wait for it.
    pub(crate) fn notify(&self) -> Vec<TaskId> {
        let mut state = self.state.borrow_mut();
        state.notices += 1;
        std::mem::take(&mut state.listeners)
    }

    /// Has a worker listen for the next notice; false if there were more than `seen`
    /// before, or no more will come.
    pub(crate) fn listen(&self, task: TaskId, seen: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let waits = !state.broken && state.notices <= seen;
        if waits {
            state.listeners.push(task);
        }
        waits
    }

    /// Listens no more; false if a notice had come.
    pub(crate) fn stop_listening(&self, task: TaskId) -> bool {
        let listeners = &mut self.state.borrow_mut().listeners;
        let own = listeners.iter().position(|one| *one == task);
        own.map(|own| listeners.remove(own)).is_some()
    }
}
