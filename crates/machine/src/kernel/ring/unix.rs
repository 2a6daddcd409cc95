//! Asynchronous ring of 4.2BSD and the seventh edition. Each daemon has its own raw header, so that
//! a drive's queue receives all requests in flight.

use super::super::UnixKernel;
use super::super::file_io::FileTarget;
use super::super::files::UnixSession;
use super::super::process::{ExecutionContext, Process};
use super::super::raw::{OpenRawDevice, RawHeaderId};
use super::DaemonRequests;
use crate::errno::{Errno, Result};
use crate::ring::{RingCompletion, RingOperation, RingRequest, RingSize};
use crate::written::WriteData;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// Asynchronous ring of a UNIX process, with its files and raw headers.
pub(crate) struct UnixRing {
    requests: DaemonRequests,
    files: Vec<RingFile>,
    headers: Vec<RawHeaderId>,
}

/// File of an asynchronous ring. The file stays open as long as the ring.
struct RingFile {
    file_number: usize,
    file_target: FileTarget,
    can_read: bool,
    can_write: bool,
}

impl UnixSession {
    /// Opens an asynchronous ring for some open files.
    ///
    /// # Errors
    ///
    /// [`Errno::DeviceBusy`] if the process has a ring, [`Errno::InvalidArgument`] for a ring without slots,
    /// [`Errno::BadFileDescriptor`] for a file that is not open.
    pub async fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        self.enter_kernel().await;
        let made = self.make_ring(size, files);
        if let Ok(ring) = &made {
            for slot in 0..size.queue_depth {
                let daemon = run_daemon(Rc::clone(&self.kernel), Rc::clone(ring), slot);
                let name = format!("daemon {slot} of process {}", self.process.pid);
                self.kernel.simulation.spawn(name, false, daemon);
            }
            self.kernel.wait_for_daemons(&ring.requests).await;
            self.ring = Some(Rc::clone(ring));
        }
        self.leave_kernel(made.map(|_| ())).await
    }

    fn make_ring(&mut self, size: RingSize, files: &[usize]) -> Result<Rc<UnixRing>> {
        if self.ring.is_some() {
            return Err(Errno::DeviceBusy);
        }
        if size.queue_depth == 0 {
            return Err(Errno::InvalidArgument);
        }
        let mut held = Vec::with_capacity(files.len());
        for number in files {
            let open = self.open_file(*number)?;
            held.push(RingFile {
                file_number: *number,
                file_target: open.target.clone(),
                can_read: open.can_read,
                can_write: open.can_write,
            });
        }
        for file in &held {
            if let FileTarget::File(node) = file.file_target {
                self.kernel
                    .with_core_inode(node, |core| core.user_count += 1);
            }
        }
        Ok(Rc::new(UnixRing {
            requests: DaemonRequests::new(&self.process, size),
            files: held,
            headers: (0..size.queue_depth)
                .map(|_| self.kernel.take_additional_header())
                .collect(),
        }))
    }

    /// Submits requests to the ring's daemons, in order.
    ///
    /// # Errors
    ///
    /// [`Errno::InvalidArgument`] if the process has no ring.
    pub async fn submit_requests(&mut self, requests: &[RingRequest]) -> Result<()> {
        self.enter_kernel().await;
        let submitted = match &self.ring {
            Some(ring) => {
                for request in requests {
                    self.kernel
                        .submit_request(&self.process, ring, *request)
                        .await;
                }
                Ok(())
            }
            None => Err(Errno::InvalidArgument),
        };
        self.leave_kernel(submitted).await
    }

    /// Waits until at least `at_least` requests are complete or an optional deadline passes, and
    /// collects all completions. Without a deadline, waits for no more requests than are in flight.
    ///
    /// # Errors
    ///
    /// [`Errno::InvalidArgument`] if the process has no ring.
    pub async fn reap_completions(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        self.enter_kernel().await;
        let reaped = match &self.ring {
            Some(ring) => {
                let requests = &ring.requests;
                self.kernel
                    .wait_for_completions(requests, at_least, until)
                    .await;
                requests.take_completions(completions);
                Ok(())
            }
            None => Err(Errno::InvalidArgument),
        };
        self.leave_kernel(reaped).await
    }

    /// Returns the contents of a slot's buffer, or `None` without an open ring. The process lends
    /// them with a request and takes them back on completion.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(ring.requests.contents_of_slot(slot))
    }

    /// Returns the number of ring requests in flight.
    pub fn in_flight_count(&self) -> usize {
        let ring = self.ring.as_ref();
        ring.map_or(0, |ring| ring.requests.in_flight_count())
    }

    /// Waits for all requests in flight, then closes the ring.
    pub async fn close_ring(&mut self) {
        let Some(ring) = self.ring.take() else { return };
        self.enter_kernel().await;
        self.kernel
            .wait_for_completions(&ring.requests, usize::MAX, None)
            .await;
        self.kernel.end_daemons(&ring.requests);
        for header in &ring.headers {
            self.kernel.release_additional_header(*header);
        }
        for file in &ring.files {
            if let FileTarget::File(node) = file.file_target {
                self.kernel.close_node(&self.process, node).await;
            }
        }
        self.kernel.return_to_user_mode(&self.process).await;
    }
}

/// Performs the requests of a ring's slot, one after the other, until the ring closes.
async fn run_daemon(kernel: Rc<UnixKernel>, ring: Rc<UnixRing>, slot: u32) {
    let me = Rc::clone(ring.requests.daemon_of_slot(slot));
    me.set_user_mode(false);
    kernel.begin_process(&me).await;
    let mut buffer = Vec::new();
    while let Some(request) = kernel.next_request(&ring.requests, slot).await {
        let result = kernel
            .execute_request(&me, &ring, request, &mut buffer)
            .await;
        kernel.complete_request(&ring.requests, slot, result);
    }
    kernel.end_process(&me);
}

impl UnixKernel {
    /// Charges the processor time that read(2) and write(2) spend before they reach the blocks, and
    /// passes the request to its daemon.
    async fn submit_request(&self, process: &Rc<Process>, ring: &UnixRing, request: RingRequest) {
        match request.operation {
            RingOperation::Read | RingOperation::Write => {
                let cost = self.costs.read_write_time;
                self.spend_processor_time(
                    ExecutionContext::InProcess(process),
                    Stage::SystemCall,
                    cost,
                )
                .await;
            }
            RingOperation::Fsync | RingOperation::Discard => {}
        }
        self.assign_request(&ring.requests, request);
    }

    /// Performs a ring request in its daemon and returns the number of bytes moved.
    async fn execute_request(
        &self,
        me: &Rc<Process>,
        ring: &UnixRing,
        request: RingRequest,
        buffer: &mut Vec<u8>,
    ) -> Result<usize> {
        let (file, what) = ring.file_of_request(request)?;
        match request.operation {
            RingOperation::Read if !file.can_read => Err(Errno::BadFileDescriptor),
            RingOperation::Write if !file.can_write => Err(Errno::BadFileDescriptor),
            RingOperation::Read => {
                let offset = self.transfer_offset(&what, request.offset_bytes)?;
                buffer.resize(request.bytes as usize, 0);
                let read = self.read_file(me, &what, (offset, buffer)).await?;
                ring.requests.store_read_data(request.slot, &buffer[..read]);
                Ok(read)
            }
            RingOperation::Write => {
                let offset = self.transfer_offset(&what, request.offset_bytes)?;
                let contents = ring.requests.contents_of_slot(request.slot).take();
                let data = match contents.get(..request.bytes as usize) {
                    Some(contents) => WriteData::from(contents),
                    None => ring.requests.write_data_of(request),
                };
                let written = self.write_file(me, &what, (offset, data)).await.1;
                ring.requests
                    .contents_of_slot(request.slot)
                    .replace(contents);
                written
            }
            RingOperation::Fsync => self.sync_file(me, &what).await.map(|()| 0),
            RingOperation::Discard => Err(Errno::InvalidArgument),
        }
    }

    /// Returns a request's offset if the open file allows it, by the rules of lseek(2).
    fn transfer_offset(&self, what: &FileTarget, offset: u64) -> Result<u64> {
        match what {
            FileTarget::PipeEnd(_) => Err(Errno::IllegalSeek),
            FileTarget::NullDevice | FileTarget::ZeroDevice => Ok(0),
            FileTarget::File(_) | FileTarget::RawDisk(_)
                if offset > self.target_offset_max(what) =>
            {
                Err(Errno::InvalidArgument)
            }
            FileTarget::File(_) | FileTarget::RawDisk(_) => Ok(offset),
        }
    }
}

impl UnixRing {
    /// Returns the file of a ring request. A raw drive comes with the raw header of the request's
    /// slot.
    fn file_of_request(&self, request: RingRequest) -> Result<(&RingFile, FileTarget)> {
        let file = self
            .files
            .iter()
            .find(|file| file.file_number == request.file_number);
        let file = file.ok_or(Errno::BadFileDescriptor)?;
        let what = match file.file_target {
            FileTarget::RawDisk(raw) => {
                let header = self.headers[request.slot as usize];
                FileTarget::RawDisk(OpenRawDevice {
                    header_id: header,
                    ..raw
                })
            }
            ref what => what.clone(),
        };
        Ok((file, what))
    }
}
