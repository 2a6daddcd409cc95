//! Barriers and notices between the processes of a run's workers.

use super::computer::Computer;
use super::process::Process;
use crate::rendezvous::Waiter;
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Process of a worker that waits for the other workers of a run.
pub(crate) struct ProcessWaiter<'a> {
    computer: &'a Computer,
    process: &'a Rc<Process>,
}

impl Computer {
    /// Returns a process as a worker that can wait for other workers.
    pub(crate) fn process_waiter<'a>(&'a self, process: &'a Rc<Process>) -> ProcessWaiter<'a> {
        ProcessWaiter {
            computer: self,
            process,
        }
    }
}

impl Waiter for ProcessWaiter<'_> {
    fn task(&self) -> TaskId {
        self.process.task_id()
    }

    fn now(&self) -> Time {
        self.computer.simulation.now()
    }

    async fn sleep(&self, until: Option<Time>, give_up: impl Fn() -> bool) {
        let wait = (until, give_up);
        self.computer
            .park_until(self.process, "the other workers", wait)
            .await;
    }

    fn book_think(&self, from: Time) {
        self.process.book_wait(Stage::Think, from);
    }

    fn wake_all(&self, tasks: &[TaskId]) {
        for task in tasks {
            let of_task = |process: &&Rc<Process>| process.task_id() == *task;
            let process = |all: &[Rc<Process>]| all.iter().find(of_task).cloned();
            if let Some(process) = self.computer.cpus.with_processes(process) {
                self.computer.wake_process(&process);
            }
        }
    }
}
