//! Processes that meet, and wait for notices of each other.

use super::computer::Computer;
use super::process::Process;
use crate::rendezvous::{Arrival, Rendezvous};
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl Computer {
    /// Waits until all have come; the moment at which that was. None if one
    /// will never come.
    pub(crate) async fn meet(&self, process: &Rc<Process>, meeting: &Rendezvous) -> Option<Time> {
        let from = self.sim.now();
        match meeting.arrive(process.task(), from) {
            Arrival::Broken => None,
            Arrival::Last(came) => {
                self.wake_all(&came);
                Some(from)
            }
            Arrival::Early(meetings) => {
                self.park(process, "the other workers").await;
                process.book_wait(Stage::Think, from);
                meeting.released_after(meetings)
            }
        }
    }

    /// One that was expected will never come; those who wait need not.
    pub(crate) fn give_up_meeting(&self, meeting: &Rendezvous) {
        self.wake_all(&meeting.break_up());
        self.give_notice(meeting);
    }

    /// Wakes the processes that wait for a notice.
    pub(crate) fn give_notice(&self, meeting: &Rendezvous) {
        self.wake_all(&meeting.notify());
    }

    /// Waits until more notices than `seen` were given, at most until a moment.
    pub(crate) async fn await_notice(
        &self,
        process: &Rc<Process>,
        meeting: &Rendezvous,
        (seen, until): (u64, Option<Time>),
    ) {
        let from = self.sim.now();
        let task = process.task();
        if until.is_some_and(|until| until <= from) || !meeting.listen(task, seen) {
            return;
        }
        let stop_listening = || meeting.stop_listening(task);
        self.park_until(process, "the other workers", (until, stop_listening))
            .await;
        process.book_wait(Stage::Think, from);
    }

    fn wake_all(&self, tasks: &[TaskId]) {
        for task in tasks {
            let of_task = |process: &&Rc<Process>| process.task() == *task;
            let process = |all: &[Rc<Process>]| all.iter().find(of_task).cloned();
            if let Some(process) = self.cpu.processes(process) {
                self.wake(&process);
            }
        }
    }
}
