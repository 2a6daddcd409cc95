//! Synchronization of the workers of a run: meetings, and notices to each other.

use diskperf_sim::{TaskId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Repeated meeting of a fixed number of workers (a barrier). The caller must wake the tasks that
/// the methods return.
pub struct WorkerRendezvous {
    state: RefCell<RendezvousState>,
}

struct RendezvousState {
    expected_count: usize,
    arrived_tasks: Vec<TaskId>,
    completed_meetings: u64,
    released_at: Time,
    is_broken: bool,
    notice_count: u64,
    listening_tasks: Vec<TaskId>,
}

enum MeetingArrival {
    /// Arrival at a meeting that another worker will never attend.
    BrokenMeeting,
    /// Arrival of the last worker, with the tasks that wait.
    LastToArrive(Vec<TaskId>),
    /// Arrival before other workers, with the number of meetings that ended before.
    BeforeOthers(u64),
}

/// Worker that attends a meeting, with access to the simulation that runs it.
pub(crate) trait Waiter {
    /// Task that executes the worker.
    fn task(&self) -> TaskId;
    /// Current virtual time of the worker's simulation.
    fn now(&self) -> Time;
    /// Sleeps until the worker is woken, or at most until `until`. At this deadline, `give_up`
    /// returns whether the worker was not woken.
    async fn sleep(&self, until: Option<Time>, give_up: impl Fn() -> bool);
    /// Books the time since `from` as think time.
    fn book_think(&self, from: Time);
    fn wake_all(&self, tasks: &[TaskId]);
}

impl WorkerRendezvous {
    /// Waits until all workers have come to the meeting. Returns the time of the last arrival, or
    /// None if a worker will never come.
    pub(crate) async fn attend_meeting(&self, who: &impl Waiter) -> Option<Time> {
        let from = who.now();
        match self.record_arrival(who.task(), from) {
            MeetingArrival::BrokenMeeting => None,
            MeetingArrival::LastToArrive(came) => {
                who.wake_all(&came);
                Some(from)
            }
            MeetingArrival::BeforeOthers(meetings) => {
                who.sleep(None, || false).await;
                who.book_think(from);
                self.released_after(meetings)
            }
        }
    }

    /// Announces that a worker will never come, and releases the workers that wait.
    pub(crate) fn abandon_meeting(&self, who: &impl Waiter) {
        who.wake_all(&self.break_meeting());
        self.give_notice(who);
    }

    /// Gives a notice: wakes the workers that wait for one.
    pub(crate) fn give_notice(&self, who: &impl Waiter) {
        who.wake_all(&self.count_notice());
    }

    /// Waits until more than `seen` notices were given, at most until a deadline.
    pub(crate) async fn await_notice(&self, who: &impl Waiter, (seen, until): (u64, Option<Time>)) {
        let (from, task) = (who.now(), who.task());
        if until.is_some_and(|until| until <= from) || !self.start_listening(task, seen) {
            return;
        }
        who.sleep(until, || self.stop_listening(task)).await;
        who.book_think(from);
    }
}

impl WorkerRendezvous {
    /// Returns a meeting of the given number of workers.
    pub fn new(expected: usize) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(RendezvousState {
                expected_count: expected,
                arrived_tasks: Vec::new(),
                completed_meetings: 0,
                released_at: Time::ZERO,
                is_broken: false,
                notice_count: 0,
                listening_tasks: Vec::new(),
            }),
        })
    }

    pub(crate) fn notice_count(&self) -> u64 {
        self.state.borrow().notice_count
    }

    /// Reports whether a worker has announced that it will never come.
    pub fn is_broken(&self) -> bool {
        self.state.borrow().is_broken
    }

    fn record_arrival(&self, task: TaskId, now: Time) -> MeetingArrival {
        let mut state = self.state.borrow_mut();
        if state.is_broken {
            return MeetingArrival::BrokenMeeting;
        }
        if state.arrived_tasks.len() + 1 < state.expected_count {
            state.arrived_tasks.push(task);
            return MeetingArrival::BeforeOthers(state.completed_meetings);
        }
        state.released_at = now;
        state.completed_meetings += 1;
        MeetingArrival::LastToArrive(std::mem::take(&mut state.arrived_tasks))
    }

    /// Returns the end of the meeting after the first `meetings` ones, or None if it has not ended.
    /// A released worker has met the others, even if one of them fails before it runs again.
    fn released_after(&self, meetings: u64) -> Option<Time> {
        let state = self.state.borrow();
        (state.completed_meetings > meetings).then_some(state.released_at)
    }

    /// Cancels the meeting because a worker will never come. Returns the tasks that need not wait.
    fn break_meeting(&self) -> Vec<TaskId> {
        let mut state = self.state.borrow_mut();
        state.is_broken = true;
        std::mem::take(&mut state.arrived_tasks)
    }

    /// Counts a notice to the workers. Returns the tasks that wait for it.
    fn count_notice(&self) -> Vec<TaskId> {
        let mut state = self.state.borrow_mut();
        state.notice_count += 1;
        std::mem::take(&mut state.listening_tasks)
    }

    /// Registers a worker for the next notice. Returns false if more than `seen` notices were given
    /// before, or if no more will come.
    fn start_listening(&self, task: TaskId, seen: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let waits = !state.is_broken && state.notice_count <= seen;
        if waits {
            state.listening_tasks.push(task);
        }
        waits
    }

    /// Removes a worker from those that wait for a notice. Returns false if a notice had come.
    fn stop_listening(&self, task: TaskId) -> bool {
        let listeners = &mut self.state.borrow_mut().listening_tasks;
        let own = listeners.iter().position(|one| *one == task);
        own.map(|own| listeners.remove(own)).is_some()
    }
}
