//! Where the workers of a run meet.

use super::Kernel;
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
    /// When the last meeting ended.
    released: Time,
    /// Somebody will never come.
    broken: bool,
}

impl Rendezvous {
    /// A meeting of this many.
    pub fn new(expected: usize) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(State {
                expected,
                came: Vec::new(),
                released: Time::ZERO,
                broken: false,
            }),
        })
    }
}

impl Kernel {
    /// Waits until all have come; the moment at which that was. None if one
    /// will never come.
    pub(crate) async fn meet(&self, process: &Rc<Process>, meeting: &Rendezvous) -> Option<Time> {
        let came = {
            let mut state = meeting.state.borrow_mut();
            if state.broken {
                return None;
            }
            if state.came.len() + 1 == state.expected {
                state.released = self.sim.now();
                std::mem::take(&mut state.came)
            } else {
                state.came.push(Rc::clone(process));
                drop(state);
                let from = self.sim.now();
                self.park(process, "the other workers").await;
                process.book(Stage::Think, process.runnable_at() - from);
                let state = meeting.state.borrow();
                return (!state.broken).then_some(state.released);
            }
        };
        for other in &came {
            self.wake(other);
        }
        Some(self.sim.now())
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
    }
}
