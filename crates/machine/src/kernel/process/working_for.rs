//! Daemons that work for a process, and the charging of their processor time.
//!
//! A daemon keeps a time account of its own for its current request. The process that it works for
//! is charged with the clock ticks. If that process waits for the processor while its own daemons
//! use it, the work of the daemons is booked as the reason for the wait.

use super::{Computer, Process};
use diskperf_sim::{Time, Usage};
use diskperf_timeline::{RequestTimeline, Stage};
use std::rc::Rc;

/// Interval in which a daemon used the processor, with its stage.
#[derive(Clone, Copy)]
pub(super) struct ClientWork {
    stage: Stage,
    work_start: Time,
    work_end: Time,
}

impl Process {
    pub(crate) fn new_daemon(client: &Rc<Self>) -> Rc<Self> {
        client.has_daemons.set(true);
        Rc::new(Self {
            client: Some(Rc::clone(client)),
            ..Self::new_process(client.pid, client.dispatch_rank)
        })
    }

    /// Returns the process that a daemon works for, or the process itself if it is not a daemon.
    pub(super) fn client(&self) -> &Self {
        self.client.as_deref().unwrap_or(self)
    }

    /// Records processor work that a daemon, or a process working for the daemon, has just finished
    /// for this process.
    pub(in crate::kernel) fn record_client_work(&self, now: Time, stage: Stage, usage: Usage) {
        let mut at = now - (usage.work_time + usage.slowdown_time + usage.interrupted_time);
        let mut worked = self.client_work.borrow_mut();
        for (stage, took) in [
            (stage, usage.work_time),
            (Stage::MemoryContention, usage.slowdown_time),
            (Stage::Interrupt, usage.interrupted_time),
        ] {
            let from = at;
            at += took;
            if took > Time::ZERO {
                let until = at;
                worked.push(ClientWork {
                    stage,
                    work_start: from,
                    work_end: until,
                });
            }
        }
    }

    /// Clears the recorded work of the process's daemons when the process gives up its processor.
    #[inline]
    pub(super) fn clear_client_work(&self) {
        if self.has_daemons.get() {
            self.client_work.borrow_mut().clear();
        }
    }

    /// Books a wait for the processor. Intervals in which the process's own daemons had the
    /// processor count under the stages of their work; all others count as processor wait.
    #[inline]
    pub(in crate::kernel) fn book_cpu_wait(&self, from: Time, to: Time) {
        if self.has_daemons.get() {
            self.book_client_work(from, to);
        } else {
            self.book_stage(Stage::CpuWait, to, to - from);
        }
    }

    fn book_client_work(&self, from: Time, to: Time) {
        let worked = self.client_work.borrow();
        let first = worked.partition_point(|part| part.work_end <= from);
        let mut at = from;
        for part in worked[first..]
            .iter()
            .take_while(|part| part.work_start < to)
        {
            let (begin, end) = (part.work_start.max(at), part.work_end.min(to));
            self.book_stage(Stage::CpuWait, begin, begin - at);
            self.book_stage(part.stage, end, end - begin);
            at = end;
        }
        self.book_stage(Stage::CpuWait, to, to - at);
    }

    /// Books a wait for a daemon over `[from, to]`, under the stages in which the daemon spent that
    /// time. The daemon's request must have begun before `from` and lasted until `to`.
    pub(crate) fn book_daemon(&self, daemon: &Self, from: Time, to: Time) {
        let mut request = RequestTimeline::default();
        let opened = diskperf_device::moment(daemon.account_start());
        request.begin_at(opened);
        for span in daemon.tiling().into_spans(opened) {
            request.mark_stage(span.stage, span.stage_end);
        }
        let (from, to) = (diskperf_device::moment(from), diskperf_device::moment(to));
        let mut at = Time(from.0);
        request.for_each_stage_between(from, to, |stage, ns| {
            let begin = at;
            at += Time(ns);
            match stage {
                Stage::CpuWait => self.book_cpu_wait(begin, at),
                stage => self.book_stage(stage, at, Time(ns)),
            }
        });
    }
}

impl Computer {
    /// Sleeps as [`Computer::wait_for_wake_up`] does, until the process is woken or an optional deadline
    /// passes. At the deadline the process resumes only if `give_up` reports that nobody has woken
    /// it.
    pub(crate) async fn park_until(
        &self,
        process: &Rc<Process>,
        what: &'static str,
        (until, give_up): (Option<Time>, impl Fn() -> bool),
    ) {
        process.clear_client_work();
        if let Some(until) = until {
            self.simulation.wake_current_task_at(until);
        }
        self.release_processor(process);
        while !self.cpus.is_running(process) {
            if until.is_some_and(|until| self.simulation.now() >= until) && give_up() {
                self.wake_process(process);
            } else {
                self.simulation.wait_in_place(what).await;
            }
        }
        self.resume_after_park(process).await;
    }
}
