//! Time accounts of Minix system calls that several processes work on.

use super::super::process::{Context, Process};
use super::Minix;
use diskperf_device::{Request, moment};
use diskperf_sim::{Time, Usage};
use diskperf_timeline::{Request as Spans, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// Time account of one system call, passed from process to process with the messages. Each process
/// that works on the call, or waits for it, marks the stage of the elapsed time. The spans cover
/// the caller's wait without gaps.
#[derive(Clone, Default)]
pub(super) struct CallAccount {
    spans: Rc<RefCell<Spans>>,
    /// Program on whose behalf a daemon made the call. Work on the call counts as work for that
    /// program.
    client: Option<Rc<Process>>,
}

impl CallAccount {
    /// Creates the time account of a daemon that works for a program.
    pub(super) fn for_program(program: &Rc<Process>) -> Self {
        Self {
            client: Some(Rc::clone(program)),
            ..Self::default()
        }
    }

    /// Creates a time account that starts now.
    pub(super) fn starting_at(now: Time) -> Self {
        let account = Self::default();
        account.begin(now);
        account
    }

    /// Clears the time account and restarts it now.
    pub(super) fn begin(&self, now: Time) {
        self.spans.borrow_mut().issue(moment(now));
    }

    /// Books the time since the last mark, up to `until`, under a stage.
    pub(super) fn mark(&self, stage: Stage, until: Time) {
        self.spans.borrow_mut().mark(stage, moment(until));
    }

    /// Returns the time up to which the account is complete.
    pub(super) fn marked_until(&self) -> Time {
        Time(self.spans.borrow().marked().0)
    }

    /// Books the stages of a completed drive request that the call has waited for.
    pub(super) fn mark_request(&self, request: &Request) {
        let mut account = self.spans.borrow_mut();
        for span in request.spans.spans() {
            account.mark(span.stage, span.until);
        }
    }

    /// Books the part `[from, to]` of the time account to the process that has waited for the call.
    pub(super) fn book(&self, process: &Process, from: Time, to: Time) {
        process.book_request(&self.spans.borrow(), from, to);
    }
}

impl Minix {
    /// Spends processor time of a Minix server or task on a call, and books it in the call's time
    /// account.
    ///
    /// # Panics
    ///
    /// Panics if the account is not complete up to now.
    pub(super) async fn spend_on_call(
        &self,
        (process, account): (&Process, &CallAccount),
        stage: Stage,
        cost: Time,
    ) {
        let begin = self.sim.now();
        assert!(
            account.marked_until() == begin,
            "the time account of a call has no gaps"
        );
        let slowed = process.booked_time(Stage::MemoryContention);
        self.spend(Context::Process(process), stage, cost).await;
        let slowed = process.booked_time(Stage::MemoryContention) - slowed;
        account.mark(stage, begin + cost);
        account.mark(Stage::MemoryContention, begin + cost + slowed);
        account.mark(Stage::Interrupt, self.sim.now());
        if let Some(client) = &account.client {
            let now = self.sim.now();
            let usage = Usage {
                work: cost,
                slowed,
                interrupted: now - begin - cost - slowed,
            };
            client.record_client_work(now, stage, usage);
        }
    }
}
