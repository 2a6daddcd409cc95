//! Daemons that work for a process: what they do with the processor is done for it.
//!
//! A daemon keeps an account of its own, of what its present errand's time went to. The
//! process that it works for is charged with the processor's ticks, and where that process
//! waits for the processor while its own daemons have it, what they do is what it waits
//! for.

use super::{Computer, Process};
use diskperf_sim::{Time, Usage};
use diskperf_timeline::{Request, Stage};
use std::rc::Rc;

/// A part of the processor's time.
#[derive(Clone, Copy)]
pub(super) struct Worked {
    stage: Stage,
    from: Time,
    until: Time,
}

impl Process {
    /// A daemon that works for a process.
    pub(crate) fn working_for(client: &Rc<Self>) -> Rc<Self> {
        client.has_daemons.set(true);
        Rc::new(Self {
            works_for: Some(Rc::clone(client)),
            ..Self::made(client.pid, client.rank)
        })
    }

    /// Whom it works for: itself, unless it is a daemon of another process.
    pub(super) fn client(&self) -> &Self {
        self.works_for.as_deref().unwrap_or(self)
    }

    /// A daemon of its, or somebody whom that asked, has worked up to now.
    pub(in crate::kernel) fn worked_for(&self, now: Time, stage: Stage, usage: Usage) {
        let mut at = now - (usage.work + usage.slowed + usage.interrupted);
        let mut worked = self.worked.borrow_mut();
        for (stage, took) in [
            (stage, usage.work),
            (Stage::MemoryContention, usage.slowed),
            (Stage::Interrupt, usage.interrupted),
        ] {
            let from = at;
            at += took;
            if took > Time::ZERO {
                let until = at;
                worked.push(Worked { stage, from, until });
            }
        }
    }

    /// It gives the processor up: what daemons did before is of no account any more.
    #[inline]
    pub(super) fn forget_worked(&self) {
        if self.has_daemons.get() {
            self.worked.borrow_mut().clear();
        }
    }

    /// Books that others had the processor: its own daemons with what they did, anybody
    /// else as that.
    #[inline]
    pub(in crate::kernel) fn book_cpu_wait(&self, from: Time, to: Time) {
        if self.has_daemons.get() {
            self.book_worked(from, to);
        } else {
            self.book(Stage::CpuWait, to, to - from);
        }
    }

    fn book_worked(&self, from: Time, to: Time) {
        let worked = self.worked.borrow();
        let first = worked.partition_point(|part| part.until <= from);
        let mut at = from;
        for part in worked[first..].iter().take_while(|part| part.from < to) {
            let (begin, end) = (part.from.max(at), part.until.min(to));
            self.book(Stage::CpuWait, begin, begin - at);
            self.book(part.stage, end, end - begin);
            at = end;
        }
        self.book(Stage::CpuWait, to, to - at);
    }

    /// Books `[from, to]` as a daemon spent it that it waited for, whose errand began
    /// before and has lasted until then.
    pub(crate) fn book_daemon(&self, daemon: &Self, from: Time, to: Time) {
        let mut errand = Request::default();
        let opened = diskperf_device::moment(daemon.opened());
        errand.issue(opened);
        for span in daemon.tiling().tiled(opened) {
            errand.mark(span.stage, span.until);
        }
        let (from, to) = (diskperf_device::moment(from), diskperf_device::moment(to));
        let mut at = Time(from.0);
        errand.between(from, to, |stage, ns| {
            let begin = at;
            at += Time(ns);
            match stage {
                Stage::CpuWait => self.book_cpu_wait(begin, at),
                stage => self.book(stage, at, Time(ns)),
            }
        });
    }
}

impl Computer {
    /// As [`Computer::park`], until somebody wakes the process or the moment comes, if
    /// there is one, at which `give_up` says whether nobody has.
    pub(crate) async fn park_until(
        &self,
        process: &Rc<Process>,
        what: &'static str,
        (until, give_up): (Option<Time>, impl Fn() -> bool),
    ) {
        process.forget_worked();
        if let Some(until) = until {
            self.sim.wake_at(until);
        }
        self.release_processor(process);
        while !self.cpus.runs(process) {
            if until.is_some_and(|until| self.sim.now() >= until) && give_up() {
                self.wake(process);
            } else {
                self.sim.wait_in_place(what).await;
            }
        }
        self.come_back(process).await;
    }
}
