//! The rule that books each instant of a task's time to a stage.
//!
//! A task runs, is ready to run, or waits. A wait is what the origin of its wake-up did meanwhile:
//! a request's stages, a work item's, or another task's, by the same rule. What no event tells is
//! unattributed.

use crate::activities::{Period, WorkItem};
use crate::chain::{Chain, ChainLink, Purpose, TimedOperation};
use crate::context::Origin;
use crate::history::{History, RingRequestLife};
use crate::identity::{FunctionAddress, KernelDevice, ThreadId};
use crate::threads::{ThreadSpan, ThreadState};
use diskperf_spans::{Nanoseconds, Stage};

/// Tasks and requests that a chain may follow from one to the next.
pub(crate) const DEPTH_MAX: usize = 24;

impl History {
    /// Explains the time of a task in a period.
    pub fn explain_period(&self, thread: ThreadId, period: Period) -> Chain {
        let mut explainer = Explainer::from_history(self);
        explainer.path.push(thread);
        explainer.explain_own_time(thread, period);
        explainer.into_chain(period)
    }

    /// Explains an operation of a task that makes one at a time.
    pub fn explain_operation(&self, operation: &TimedOperation) -> Chain {
        let period = Period {
            start: operation.start,
            end: operation.end,
        };
        self.explain_period(operation.thread, period)
    }

    /// Explains a request of io_uring from its submission to its completion; `None` for one in
    /// flight.
    pub fn explain_ring_request(&self, request: &RingRequestLife) -> Option<Chain> {
        let period = Period {
            start: request.submitted_at,
            end: request.completed_at?,
        };
        let mut explainer = Explainer::from_history(self);
        explainer.explain_ring_request(request, period);
        Some(explainer.into_chain(period))
    }
}

/// Time that is explained, and what it is explained for.
#[derive(Clone, Copy)]
pub(crate) struct Explained {
    pub(crate) period: Period,
    /// Purpose of all inside it; `None` if each part has its own.
    pub(crate) purpose: Option<Purpose>,
}

impl Explained {
    pub(crate) fn within(self, start: Nanoseconds, end: Nanoseconds) -> Self {
        let start = start.clamp(self.period.start, self.period.end);
        let end = end.clamp(start, self.period.end);
        Self {
            period: Period { start, end },
            ..self
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.period.start >= self.period.end
    }
}

/// Wait of a task.
struct ThreadWait<'h> {
    thread: ThreadId,
    span: &'h ThreadSpan,
    /// Span before the wait; `None` at the start of the recording.
    before: Option<&'h ThreadSpan>,
}

pub(crate) struct Explainer<'h> {
    pub(crate) history: &'h History,
    links: Vec<ChainLink>,
    /// Tasks that the chain goes through, the caller first.
    pub(crate) path: Vec<ThreadId>,
    pub(crate) depth: usize,
    is_broken: bool,
}

impl<'h> Explainer<'h> {
    fn from_history(history: &'h History) -> Self {
        Self {
            history,
            links: Vec::new(),
            path: Vec::new(),
            depth: 0,
            is_broken: false,
        }
    }

    fn into_chain(self, period: Period) -> Chain {
        let losses = &self.history.losses;
        let is_lossy = losses
            .iter()
            .any(|loss| loss.start <= period.end && loss.end >= period.start);
        Chain::from_links(period, self.links, is_lossy || self.is_broken)
    }

    fn caller(&self) -> ThreadId {
        self.path.last().copied().unwrap_or_default()
    }

    pub(crate) fn book(&mut self, explained: Explained, stage: Stage, purpose: Purpose) {
        self.book_link(explained, (stage, purpose), (None, None));
    }

    pub(crate) fn book_link(
        &mut self,
        explained: Explained,
        (stage, purpose): (Stage, Purpose),
        (device, function): (Option<KernelDevice>, Option<FunctionAddress>),
    ) {
        if !explained.is_empty() {
            self.links.push(ChainLink {
                start: explained.period.start,
                end: explained.period.end,
                stage,
                purpose: explained.purpose.unwrap_or(purpose),
                thread: self.caller(),
                device,
                function,
            });
        }
    }

    pub(crate) fn book_unknown(&mut self, explained: Explained, purpose: Purpose) {
        self.is_broken |= !explained.is_empty();
        self.book(explained, Stage::Unattributed, purpose);
    }

    /// Explains the time of the task that makes the call. What it does to reclaim memory is one
    /// stage.
    pub(crate) fn explain_own_time(&mut self, thread: ThreadId, period: Period) {
        let explained = Explained {
            period,
            purpose: None,
        };
        let reclaims = self.history.reclaims.get(&thread);
        let mut at = period.start;
        for reclaim in reclaims.map_or(&[][..], Vec::as_slice) {
            if reclaim.end <= at || reclaim.start >= period.end {
                continue;
            }
            let before = explained.within(at, reclaim.start);
            self.explain_spans(thread, before, Purpose::Call);
            let inside = explained.within(before.period.end, reclaim.end);
            self.book(inside, Stage::Reclaim, Purpose::Call);
            at = inside.period.end;
        }
        self.explain_spans(thread, explained.within(at, period.end), Purpose::Call);
    }

    /// Explains the spans of a task, by its states.
    fn explain_spans(&mut self, thread: ThreadId, explained: Explained, purpose: Purpose) {
        if explained.is_empty() {
            return;
        }
        let history = self.history;
        let spans = history.threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = spans.partition_point(|span| span.end <= explained.period.start);
        let mut at = explained.period.start;
        for (index, span) in spans.iter().enumerate().skip(first) {
            if span.start >= explained.period.end {
                break;
            }
            let part = explained.within(at, span.end);
            at = part.period.end;
            let function = self.find_function(thread, part.period.start);
            match span.state {
                ThreadState::Running => {
                    let stage = match self.path.len() {
                        0 | 1 => Stage::SystemCall,
                        _ => Stage::OtherTask,
                    };
                    self.book_link(part, (stage, purpose), (None, function));
                }
                ThreadState::Runnable => {
                    self.book_link(part, (Stage::CpuWait, purpose), (None, function));
                }
                ThreadState::Blocked(origin) => {
                    let before = index.checked_sub(1).map(|before| &spans[before]);
                    let wait = ThreadWait {
                        thread,
                        span,
                        before,
                    };
                    self.explain_wait(&wait, origin, part, purpose);
                }
                ThreadState::Unknown => self.book_unknown(part, purpose),
            }
        }
        self.book_unknown(explained.within(at, explained.period.end), purpose);
    }

    fn find_function(&self, thread: ThreadId, time: Nanoseconds) -> Option<FunctionAddress> {
        let own = self.history.work_by_thread.get(&thread)?;
        let items = &self.history.work_items;
        let begun = own.partition_point(|item| items[*item].period.start <= time);
        let item = &items[*own[..begun].last()?];
        (item.period.end > time).then_some(item.function)
    }

    fn explain_wait(
        &mut self,
        wait: &ThreadWait<'_>,
        origin: Option<Origin>,
        part: Explained,
        purpose: Purpose,
    ) {
        if self.is_tag_wait(wait) {
            self.book(part, Stage::TagWait, purpose);
            return;
        }
        let throttled = self.is_dirty_throttled(wait);
        match origin {
            Some(Origin::Completion(request)) => self.explain_request(request, part),
            _ if throttled => self.book(part, Stage::DirtyThrottle, purpose),
            None => self.book_unknown(part, purpose),
            Some(origin) => self.explain_origin(origin, part, purpose),
        }
    }

    /// Reports whether one of the task's bios waits for a request during the whole wait.
    fn is_tag_wait(&self, wait: &ThreadWait<'_>) -> bool {
        let Some(waits) = self.history.tag_waits.get(&wait.thread) else {
            return false;
        };
        let begun = waits.partition_point(|one| one.start <= wait.span.start);
        let latest = waits[..begun].last();
        latest.is_some_and(|latest| latest.end >= wait.span.end)
    }

    /// Reports whether a task was about to sleep in the span before its wait, since too many pages
    /// are dirty.
    fn is_dirty_throttled(&self, wait: &ThreadWait<'_>) -> bool {
        let throttles = self.history.dirty_throttles.get(&wait.thread);
        let (Some(throttles), Some(before)) = (throttles, wait.before) else {
            return false;
        };
        let begun = throttles.partition_point(|time| *time <= before.end);
        let latest = throttles[..begun].last();
        latest.is_some_and(|time| *time >= before.start)
    }

    /// Explains a time by what an origin did meanwhile.
    pub(crate) fn explain_origin(&mut self, origin: Origin, part: Explained, purpose: Purpose) {
        if part.is_empty() {
            return;
        }
        match origin {
            Origin::Completion(request) => self.explain_request(request, part),
            Origin::Timer => self.book(part, Stage::Think, purpose),
            // The event that would tell what the interrupt was for is missing.
            Origin::Interrupt => self.book_unknown(part, purpose),
            Origin::Thread { thread, work } => {
                let history = self.history;
                match work.map(|work| &history.work_items[work]) {
                    Some(item) if item.thread == thread => self.explain_work(item, part),
                    _ => self.explain_other_task(thread, part),
                }
            }
        }
    }

    /// Explains a wait for a work item: who queued it, its wait for a worker, and the worker.
    fn explain_work(&mut self, item: &WorkItem, part: Explained) {
        if self.path.contains(&item.thread) || self.depth >= DEPTH_MAX {
            self.book(part, Stage::HandOver, Purpose::Worker);
            return;
        }
        let mut at = part.period.start;
        if let Some(queued) = item.queued {
            let before = part.within(at, queued.time);
            self.depth += 1;
            self.explain_origin(queued.origin, before, Purpose::Worker);
            self.depth -= 1;
            let waiting = part.within(before.period.end, item.period.start);
            let link = (Stage::WorkQueueWait, Purpose::Worker);
            self.book_link(waiting, link, (None, Some(item.function)));
            at = waiting.period.end;
        }
        let serving = part.within(at, part.period.end);
        self.follow(item.thread, serving, Purpose::Worker);
    }

    /// Explains a time by the states of another task.
    fn explain_other_task(&mut self, thread: ThreadId, part: Explained) {
        let history = self.history;
        // Of a journal's thread: the transaction that is waited for is the latest one that began.
        let begun = history
            .commits
            .partition_point(|commit| commit.started_at() < part.period.end);
        let mut begun = history.commits[..begun].iter().rev();
        let latest = begun.find(|commit| commit.thread == thread);
        match latest {
            None => self.follow(thread, part, Purpose::OtherTask),
            Some(commit) => {
                let earlier = part.within(part.period.start, commit.started_at());
                let mut others = begun.filter(|other| other.thread == thread);
                let is_committing = others
                    .next()
                    .and_then(|other| other.ended_at())
                    .is_some_and(|end| end > earlier.period.start);
                let purpose = is_committing.then_some(Purpose::EarlierCommit);
                let before = Explained {
                    purpose: earlier.purpose.or(purpose),
                    ..earlier
                };
                self.follow(thread, before, Purpose::Commit);
                let own = part.within(before.period.end, part.period.end);
                self.follow(thread, own, Purpose::Commit);
            }
        }
    }

    pub(crate) fn follow(&mut self, thread: ThreadId, part: Explained, purpose: Purpose) {
        if self.path.contains(&thread) || self.depth >= DEPTH_MAX {
            self.book(part, Stage::HandOver, purpose);
            return;
        }
        self.path.push(thread);
        self.depth += 1;
        self.explain_spans(thread, part, purpose);
        self.depth -= 1;
        self.path.pop();
    }
}
