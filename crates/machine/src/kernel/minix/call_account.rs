//! Time accounts of Minix system calls that several processes work on.

use super::super::process::{ExecutionContext, Process};
use super::MinixKernel;
use diskperf_device::{Request, moment};
use diskperf_sim::{Time, Usage};
use diskperf_timeline::{RequestTimeline as Spans, Stage};
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

    pub(super) fn new_at(now: Time) -> Self {
        let account = Self::default();
        account.begin_call(now);
        account
    }

    /// Clears the time account and restarts it now.
    pub(super) fn begin_call(&self, now: Time) {
        self.spans.borrow_mut().begin_at(moment(now));
    }

    /// Books the time since the last mark, up to `until`, under a stage.
    pub(super) fn mark_stage(&self, stage: Stage, until: Time) {
        self.spans.borrow_mut().mark_stage(stage, moment(until));
    }

    pub(super) fn marked_until(&self) -> Time {
        Time(self.spans.borrow().marked_until().0)
    }

    /// Books the stages of a completed drive request that the call has waited for.
    pub(super) fn mark_request(&self, request: &Request) {
        let mut account = self.spans.borrow_mut();
        for span in request.spans.spans() {
            account.mark_stage(span.stage, span.stage_end);
        }
    }

    /// Books the part `[from, to]` of the time account to the process that has waited for the call.
    pub(super) fn book_spans(&self, process: &Process, from: Time, to: Time) {
        process.book_request(&self.spans.borrow(), from, to);
    }
}

impl MinixKernel {
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
        let begin = self.simulation.now();
        assert!(
            account.marked_until() == begin,
            "the time account of a call has no gaps"
        );
        let slowed = process.stage_time(Stage::MemoryContention);
        self.spend_processor_time(ExecutionContext::InProcess(process), stage, cost)
            .await;
        let slowed = process.stage_time(Stage::MemoryContention) - slowed;
        account.mark_stage(stage, begin + cost);
        account.mark_stage(Stage::MemoryContention, begin + cost + slowed);
        account.mark_stage(Stage::Interrupt, self.simulation.now());
        if let Some(client) = &account.client {
            let now = self.simulation.now();
            let usage = Usage {
                work_time: cost,
                slowdown_time: slowed,
                interrupted_time: now - begin - cost - slowed,
            };
            client.record_client_work(now, stage, usage);
        }
    }
}
