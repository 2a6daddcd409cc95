//! Asynchronous ring of requests, which gives a process of a historical kernel a queue depth above
//! one. No kernel of the time had this; the extension consists of parts that each kernel has.
//!
//! A separate daemon carries out each request, as `biod` and `nfsd` do for other processes. The
//! daemon sleeps in the kernel until it receives a request, performs read(2), write(2) or fsync(2)
//! at the request's offset, and reports completion. All daemons exist when the ring opens; their
//! creation is not measured.
//!
//! The costs are those of the kernel's routines. The submitting process enters the kernel and looks
//! the file up; the daemon wakes, works and moves the data; the waiting process enters the kernel
//! and wakes. Daemons that use one file exclude each other as processes do, by the lock of an inode
//! or by the single server of Minix.
//!
//! Data read is discarded, and writes always write the same bytes, unless the process lends a
//! slot's contents to its request.

pub(crate) mod unix;

use super::computer::Computer;
use super::process::Process;
use crate::errno::Result;
use crate::ring::{RingRequest, RingSize, RingState};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// Requests of an asynchronous ring, shared between its process and its daemons.
pub(crate) struct DaemonRequests {
    process: Rc<Process>,
    slots: Vec<DaemonSlot>,
    state: RingState,
    /// Number of daemons that are ready for their first request.
    ready_daemon_count: Cell<usize>,
    is_closing: Cell<bool>,
}

struct DaemonSlot {
    daemon: Rc<Process>,
    request: Cell<Option<RingRequest>>,
    is_in_flight: Cell<bool>,
}

impl DaemonRequests {
    pub(crate) fn new(process: &Rc<Process>, size: RingSize) -> Self {
        let slot = |_| DaemonSlot {
            daemon: Process::new_daemon(process),
            request: Cell::new(None),
            is_in_flight: Cell::new(false),
        };
        Self {
            process: Rc::clone(process),
            slots: (0..size.queue_depth).map(slot).collect(),
            state: RingState::new(size),
            ready_daemon_count: Cell::new(0),
            is_closing: Cell::new(false),
        }
    }

    fn slot_state(&self, slot: u32) -> &DaemonSlot {
        &self.slots[slot as usize]
    }

    pub(crate) fn daemon_of_slot(&self, slot: u32) -> &Rc<Process> {
        &self.slot_state(slot).daemon
    }
}

impl Deref for DaemonRequests {
    type Target = RingState;

    fn deref(&self) -> &RingState {
        &self.state
    }
}

impl Computer {
    /// Sleeps until all daemons of a ring wait for their first request.
    pub(crate) async fn wait_for_daemons(&self, ring: &DaemonRequests) {
        while ring.ready_daemon_count.get() < ring.slots.len() {
            let from = self.simulation.now();
            self.wait_for_wake_up(&ring.process, "its ring daemons to start")
                .await;
            ring.process
                .book_cpu_wait(from, ring.process.runnable_since());
        }
    }

    /// Waits as a ring's daemon for the next request of its slot. Returns `None` when the ring
    /// closes.
    pub(crate) async fn next_request(
        &self,
        ring: &DaemonRequests,
        slot: u32,
    ) -> Option<RingRequest> {
        let of = ring.slot_state(slot);
        if ring.ready_daemon_count.get() < ring.slots.len() {
            ring.ready_daemon_count
                .set(ring.ready_daemon_count.get() + 1);
            if ring.ready_daemon_count.get() == ring.slots.len() {
                self.wake_process(&ring.process);
            }
        }
        if !ring.is_closing.get() {
            self.wait_for_wake_up(&of.daemon, "a request").await;
        }
        of.request.take()
    }

    /// Passes a request to the daemon of its slot, and opens the daemon's time account.
    ///
    /// # Panics
    ///
    /// Panics if the slot already has a request in flight, or if the request is larger than the
    /// slot's buffer.
    pub(crate) fn assign_request(&self, ring: &DaemonRequests, request: RingRequest) {
        let slot = ring.slot_state(request.slot);
        assert!(
            !slot.is_in_flight.replace(true),
            "slot {} already has a request in flight",
            request.slot
        );
        ring.admit_request(request);
        slot.request.set(Some(request));
        slot.daemon.open_account(self.simulation.now());
        self.wake_process(&slot.daemon);
    }

    /// Completes a daemon's request, and wakes the process of the ring if the process waits for
    /// this completion.
    pub(crate) fn complete_request(&self, ring: &DaemonRequests, slot: u32, result: Result<usize>) {
        ring.slot_state(slot).is_in_flight.set(false);
        if ring
            .state
            .complete_request(slot, result.map(|bytes| bytes as u32))
        {
            self.wake_process(&ring.process);
        }
    }

    /// Sleeps until at least `at_least` requests are complete or an optional deadline passes.
    /// Without a deadline, waits for no more requests than are in flight.
    pub(crate) async fn wait_for_completions(
        &self,
        ring: &DaemonRequests,
        at_least: usize,
        until: Option<Time>,
    ) {
        let from = self.simulation.now();
        if !ring.begin_completion_wait((at_least, until), from) {
            return;
        }
        let process = &ring.process;
        self.park_until(
            process,
            "its requests",
            (until, || ring.cancel_completion_wait()),
        )
        .await;
        let to = process.runnable_since();
        match ring.woken_by_slot() {
            Some(slot) => process.book_daemon(ring.daemon_of_slot(slot), from, to),
            // Nothing came that it would have waited for.
            None => process.book_stage(Stage::Think, to, to - from),
        }
    }

    /// Ends the daemons of a closed ring. Panics if requests are in flight.
    pub(crate) fn end_daemons(&self, ring: &DaemonRequests) {
        assert!(
            ring.in_flight_count() == 0,
            "a ring has no requests in flight when it closes"
        );
        ring.is_closing.set(true);
        for slot in &ring.slots {
            slot.daemon.open_account(self.simulation.now());
            self.wake_process(&slot.daemon);
        }
    }
}
