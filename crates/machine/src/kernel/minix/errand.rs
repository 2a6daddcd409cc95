//! Where the time of a call goes while other processes work on it.

use super::super::process::{Context, Process};
use super::Minix;
use diskperf_device::{Request, moment};
use diskperf_sim::{Time, Usage};
use diskperf_timeline::{Request as Spans, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// One call, carried from process to process: whoever works on it, or waits
/// with it, marks what the time went to. Its spans tile the time that the
/// caller waits.
#[derive(Clone, Default)]
pub(super) struct Errand {
    spans: Rc<RefCell<Spans>>,
    /// The program whose daemon it is of: what is worked on it is worked for that.
    client: Option<Rc<Process>>,
}

impl Errand {
    /// An errand of a daemon that works for a program.
    pub(super) fn working_for(program: &Rc<Process>) -> Self {
        Self {
            client: Some(Rc::clone(program)),
            ..Self::default()
        }
    }

    /// An errand that starts at a moment.
    pub(super) fn at(now: Time) -> Self {
        let errand = Self::default();
        errand.begin(now);
        errand
    }

    /// Starts over.
    pub(super) fn begin(&self, now: Time) {
        self.spans.borrow_mut().issue(moment(now));
    }

    /// What has passed since the last mark went to `stage`.
    pub(super) fn mark(&self, stage: Stage, until: Time) {
        self.spans.borrow_mut().mark(stage, moment(until));
    }

    /// Up to where it is accounted for.
    pub(super) fn marked(&self) -> Time {
        Time(self.spans.borrow().marked().0)
    }

    /// A request that was waited for.
    pub(super) fn mark_request(&self, request: &Request) {
        let mut errand = self.spans.borrow_mut();
        for span in request.spans.spans() {
            errand.mark(span.stage, span.until);
        }
    }

    /// Books `[from, to]` of it to the process that waited.
    pub(super) fn book(&self, process: &Process, from: Time, to: Time) {
        process.book_request(&self.spans.borrow(), from, to);
    }
}

impl Minix {
    /// A process of Minix's spends processor time on an errand.
    ///
    /// # Panics
    ///
    /// When something before it was not accounted for.
    pub(super) async fn work(
        &self,
        (process, errand): (&Process, &Errand),
        stage: Stage,
        cost: Time,
    ) {
        let begin = self.sim.now();
        assert!(
            errand.marked() == begin,
            "an errand is accounted for at all times"
        );
        let slowed = process.booked(Stage::MemoryContention);
        self.spend(Context::Process(process), stage, cost).await;
        let slowed = process.booked(Stage::MemoryContention) - slowed;
        errand.mark(stage, begin + cost);
        errand.mark(Stage::MemoryContention, begin + cost + slowed);
        errand.mark(Stage::Interrupt, self.sim.now());
        if let Some(client) = &errand.client {
            let now = self.sim.now();
            let usage = Usage {
                work: cost,
                slowed,
                interrupted: now - begin - cost - slowed,
            };
            client.worked_for(now, stage, usage);
        }
    }
}
