//! A host with nothing but a flash drive: it asks, waits, and pauses.

use crate::hardware::{Operation, Request, RequestId, Requests, moment};
use diskperf_device::WhatIf;
use diskperf_device::flash::device::Flash;
use diskperf_device::flash::device::power::Recovery;
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_sim::{Streams, Time};
use diskperf_timeline::trace::TracedFlash;

/// A flash drive, and who asks it. A sector is a unit of 4 KiB.
#[derive(Clone)]
pub struct Host {
    flash: Flash,
    requests: Requests,
    now: Time,
}

impl Host {
    /// A drive with the past of its specification. `seed` is of what it draws.
    ///
    /// # Panics
    ///
    /// When the specification contradicts itself.
    pub fn new(specification: &FlashSpecification, seed: u64) -> Self {
        let retries = Streams::new(seed).stream("retries");
        let flash = Flash::new(specification, (seed, retries));
        Self {
            flash: flash.unwrap_or_else(|error| panic!("{error}")),
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    /// The same, of whose drive this is supposed.
    pub fn supposing(self, what_if: WhatIf) -> Self {
        Self {
            flash: self.flash.supposing(what_if),
            ..self
        }
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The drive.
    pub fn flash(&self) -> &Flash {
        &self.flash
    }

    /// Has the drive record what it does.
    pub fn record(&mut self) {
        self.flash.record();
    }

    /// What it recorded.
    pub fn take_recorded(&mut self) -> Option<TracedFlash> {
        self.flash.take_recorded(self.now, 0)
    }

    /// The power of the drive fails, and is back at once: nobody asks for anything.
    pub fn power_cut(&mut self) -> Recovery {
        self.requests = Requests::default();
        self.flash.power_cut(self.now)
    }

    /// Requests that were not taken when they were done.
    pub fn under_way(&self) -> usize {
        self.requests.under_way()
    }

    /// Asks for sectors.
    pub fn ask(&mut self, operation: Operation, sector: u64, sectors: u32) -> RequestId {
        let mut request = Request {
            operation,
            sector,
            sectors,
            ..Request::default()
        };
        request.spans.issue(moment(self.now));
        let id = self.requests.issue(request);
        self.flash.take(self.now, &mut self.requests, id);
        id
    }

    /// Goes on to the next event; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.flash.next_event() else {
            return false;
        };
        self.now = next;
        self.flash.advance(next, &mut self.requests);
        true
    }

    /// Goes on to a moment.
    pub fn until(&mut self, until: Time) {
        while self.flash.next_event().is_some_and(|next| next <= until) {
            self.step();
        }
        self.now = until;
    }

    /// Asks for nothing for some time.
    pub fn pause(&mut self, time: Time) {
        self.until(self.now + time);
    }

    /// A request that is done by now.
    pub fn take_done(&mut self) -> Option<(RequestId, Request)> {
        let id = self.flash.take_done()?;
        let request = self.requests.take(id);
        assert!(request.spans.marked() <= moment(self.now), "{request:?}");
        Some((id, request))
    }

    /// The next request that is done, whose time is accounted for to its end.
    ///
    /// # Panics
    ///
    /// When nothing is under way.
    pub fn wait(&mut self) -> (RequestId, Request) {
        loop {
            if let Some(done) = self.take_done() {
                return done;
            }
            assert!(self.step(), "a request that never ends");
        }
    }

    /// Asks, and waits for it.
    ///
    /// # Panics
    ///
    /// When something else is under way.
    pub fn one(&mut self, operation: Operation, sector: u64, sectors: u32) -> Request {
        let asked = self.ask(operation, sector, sectors);
        let (id, request) = self.wait();
        assert_eq!(id, asked, "another request was under way");
        assert_eq!(request.spans.marked(), moment(self.now), "{request:?}");
        request
    }

    /// Goes on until nothing is left to be done.
    pub fn rest(&mut self) {
        while self.step() {}
    }
}
