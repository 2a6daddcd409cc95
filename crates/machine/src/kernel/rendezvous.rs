//! Where the workers of a run meet, and wait for notices of each other.

use super::computer::Computer;
use super::process::Process;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// A meeting of a fixed number of processes, again and again.
pub struct Rendezvous {
    state: RefCell<State>,
}

struct State {
    expected: usize,
    came: Vec<Rc<Process>>,
    /// Meetings that have ended.
    ended: u64,
    /// When the last meeting ended.
    released: Time,
    /// Somebody will never come.
    broken: bool,
    /// Notices that were given.
    notices: u64,
    /// Processes that wait for the next one.
    listeners: Vec<Rc<Process>>,
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
}

impl Computer {
    /// Waits until all have come; the moment at which that was. None if one
    /// will never come.
    pub(crate) async fn meet(&self, process: &Rc<Process>, meeting: &Rendezvous) -> Option<Time> {
        let (came, meetings) = {
            let mut state = meeting.state.borrow_mut();
            if state.broken {
                return None;
            }
            let all_came = state.came.len() + 1 == state.expected;
            if all_came {
                state.released = self.sim.now();
                state.ended += 1;
            } else {
                state.came.push(Rc::clone(process));
            }
            let came = all_came.then(|| std::mem::take(&mut state.came));
            (came, state.ended)
        };
        if let Some(came) = came {
            for other in &came {
                self.wake(other);
            }
            return Some(self.sim.now());
        }
        let from = self.sim.now();
        self.park(process, "the other workers").await;
        process.book_wait(Stage::Think, from);
        // Who was released has met the others, even if one of them fails
        // before it runs again.
        let state = meeting.state.borrow();
        (state.ended > meetings).then_some(state.released)
    }

    /// One that was expected will never come; those who wait need not.
    pub(crate) fn give_up_meeting(&self, meeting: &Rendezvous) {
        let came = {
            let mut state = meeting.state.borrow_mut();
            state.broken = true;
            std::mem::take(&mut state.came)
        };
        for other in &came {
            self.wake(other);
        }
        self.give_notice(meeting);
    }

    /// Wakes the processes that wait for a notice.
    pub(crate) fn give_notice(&self, meeting: &Rendezvous) {
        let listeners = {
            let mut state = meeting.state.borrow_mut();
            state.notices += 1;
            std::mem::take(&mut state.listeners)
        };
        for listener in &listeners {
            self.wake(listener);
        }
    }

    /// Waits until more notices than `seen` were given, at most until a moment.
    pub(crate) async fn await_notice(
        &self,
        process: &Rc<Process>,
        meeting: &Rendezvous,
        (seen, until): (u64, Option<Time>),
    ) {
        let from = self.sim.now();
        {
            let mut state = meeting.state.borrow_mut();
            let is_due = until.is_some_and(|until| until <= from);
            if state.broken || state.notices > seen || is_due {
                return;
            }
            state.listeners.push(Rc::clone(process));
        }
        let stop_listening = || {
            let listeners = &mut meeting.state.borrow_mut().listeners;
            let own = listeners.iter().position(|one| Rc::ptr_eq(one, process));
            own.map(|own| listeners.remove(own)).is_some()
        };
        self.park_until(process, "the other workers", (until, stop_listening))
            .await;
        process.book_wait(Stage::Think, from);
    }
}
