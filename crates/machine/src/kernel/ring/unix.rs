//! The ring of 4.2BSD and of the seventh edition. A daemon has a header of its own for
//! transfers past the cache, so that a drive's queue gets to see them all.

use super::super::Unix;
use super::super::file_io::What;
use super::super::files::Session;
use super::super::process::{Context, Process};
use super::super::raw::{HeaderId, Raw};
use super::Requests;
use crate::errno::{Errno, Result};
use crate::ring::{RingCompletion, RingOperation, RingRequest, RingSize};
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// The ring of a process.
pub(crate) struct Ring {
    requests: Requests,
    files: Vec<RingFile>,
    /// Of each slot.
    headers: Vec<HeaderId>,
}

/// A file of a ring: open as long as the ring is.
struct RingFile {
    number: usize,
    what: What,
    read: bool,
    write: bool,
}

/// Several requests under way.
impl Session {
    /// Makes a ring for these open files.
    ///
    /// # Errors
    ///
    /// [`Errno::Busy`] where there is one, [`Errno::Invalid`] for one without slots,
    /// [`Errno::BadFile`] for a file that is not open.
    pub async fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        self.enter().await;
        let made = self.make_ring(size, files);
        if let Ok(ring) = &made {
            for slot in 0..size.depth {
                let daemon = daemon(Rc::clone(&self.kernel), Rc::clone(ring), slot);
                let name = format!("daemon {slot} of process {}", self.process.pid);
                self.kernel.sim.spawn(name, false, daemon);
            }
            self.kernel.await_daemons(&ring.requests).await;
            self.ring = Some(Rc::clone(ring));
        }
        self.leave(made.map(|_| ())).await
    }

    fn make_ring(&mut self, size: RingSize, files: &[usize]) -> Result<Rc<Ring>> {
        if self.ring.is_some() {
            return Err(Errno::Busy);
        }
        if size.depth == 0 {
            return Err(Errno::Invalid);
        }
        let mut held = Vec::with_capacity(files.len());
        for number in files {
            let open = self.file(*number)?;
            held.push(RingFile {
                number: *number,
                what: open.what.clone(),
                read: open.read,
                write: open.write,
            });
        }
        for file in &held {
            if let What::Node(node) = file.what {
                self.kernel.in_core(node, |core| core.users += 1);
            }
        }
        Ok(Rc::new(Ring {
            requests: Requests::new(&self.process, size),
            files: held,
            headers: (0..size.depth).map(|_| self.kernel.new_header()).collect(),
        }))
    }

    /// Hands requests to the daemons, in order.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] without a ring.
    pub async fn submit(&mut self, requests: &[RingRequest]) -> Result<()> {
        self.enter().await;
        let submitted = match &self.ring {
            Some(ring) => {
                for request in requests {
                    self.kernel.submit(&self.process, ring, *request).await;
                }
                Ok(())
            }
            None => Err(Errno::Invalid),
        };
        self.leave(submitted).await
    }

    /// Waits until so many requests are complete, at most until a moment, and takes all
    /// that are. Without a moment, no more are waited for than there are.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] without a ring.
    pub async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        self.enter().await;
        let reaped = match &self.ring {
            Some(ring) => {
                let requests = &ring.requests;
                self.kernel
                    .await_completions(requests, at_least, until)
                    .await;
                requests.take_done(completions);
                Ok(())
            }
            None => Err(Errno::Invalid),
        };
        self.leave(reaped).await
    }

    /// The contents of a slot's buffer, of a ring that is open: lent with a request, and taken
    /// back when it is complete.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(ring.requests.contents(slot))
    }

    /// Requests that are not complete.
    pub fn under_way(&self) -> usize {
        let ring = self.ring.as_ref();
        ring.map_or(0, |ring| ring.requests.under_way())
    }

    /// Waits for what is under way, and does without the ring from then on.
    pub async fn close_ring(&mut self) {
        let Some(ring) = self.ring.take() else { return };
        self.enter().await;
        self.kernel
            .await_completions(&ring.requests, usize::MAX, None)
            .await;
        self.kernel.dismiss(&ring.requests);
        for header in &ring.headers {
            self.kernel.spare_header(*header);
        }
        for file in &ring.files {
            if let What::Node(node) = file.what {
                self.kernel.close_node(&self.process, node).await;
            }
        }
        self.kernel.back_to_user_mode(&self.process).await;
    }
}

/// Carries the requests of a slot out, one after the other.
async fn daemon(kernel: Rc<Unix>, ring: Rc<Ring>, slot: u32) {
    let me = Rc::clone(ring.requests.daemon(slot));
    me.enter_mode(false);
    kernel.begin(&me).await;
    let mut buffer = Vec::new();
    while let Some(request) = kernel.next_request(&ring.requests, slot).await {
        let result = kernel.carry_out(&me, &ring, request, &mut buffer).await;
        kernel.complete(&ring.requests, slot, result);
    }
    kernel.end(&me);
}

impl Unix {
    /// What read(2) and write(2) do before they come to the blocks, and the hand-over.
    async fn submit(&self, process: &Rc<Process>, ring: &Ring, request: RingRequest) {
        match request.operation {
            RingOperation::Read | RingOperation::Write => {
                let cost = self.costs.read_write;
                self.spend(Context::Process(process), Stage::SystemCall, cost)
                    .await;
            }
            RingOperation::Fsync | RingOperation::Discard => {}
        }
        self.hand_over(&ring.requests, request);
    }

    /// Does what a request wants, as the daemon that has it; how many bytes moved.
    async fn carry_out(
        &self,
        me: &Rc<Process>,
        ring: &Ring,
        request: RingRequest,
        buffer: &mut Vec<u8>,
    ) -> Result<usize> {
        let (file, what) = ring.file(request)?;
        match request.operation {
            RingOperation::Read if !file.read => Err(Errno::BadFile),
            RingOperation::Write if !file.write => Err(Errno::BadFile),
            RingOperation::Read => {
                let offset = self.place(&what, request.offset)?;
                buffer.resize(request.bytes as usize, 0);
                let read = self.read_file(me, &what, (offset, buffer)).await?;
                ring.requests.keep_read(request.slot, &buffer[..read]);
                Ok(read)
            }
            RingOperation::Write => {
                let offset = self.place(&what, request.offset)?;
                let contents = ring.requests.contents(request.slot).take();
                let data = match contents.get(..request.bytes as usize) {
                    Some(contents) => Written::from(contents),
                    None => ring.requests.data(request),
                };
                let written = self.write_file(me, &what, (offset, data)).await.1;
                ring.requests.contents(request.slot).replace(contents);
                written
            }
            RingOperation::Fsync => self.sync_file(me, &what).await.map(|()| 0),
            RingOperation::Discard => Err(Errno::Invalid),
        }
    }

    /// The offset of a request, if what is open has it, as lseek(2) has it.
    fn place(&self, what: &What, offset: u64) -> Result<u64> {
        match what {
            What::Pipe(_) => Err(Errno::IllegalSeek),
            What::Null | What::Zero => Ok(0),
            What::Node(_) | What::Raw(_) if offset > self.most_offset_of(what) => {
                Err(Errno::Invalid)
            }
            What::Node(_) | What::Raw(_) => Ok(offset),
        }
    }
}

impl Ring {
    /// The file of a request, and what it is for its slot.
    fn file(&self, request: RingRequest) -> Result<(&RingFile, What)> {
        let file = self.files.iter().find(|file| file.number == request.file);
        let file = file.ok_or(Errno::BadFile)?;
        let what = match file.what {
            What::Raw(raw) => {
                let header = self.headers[request.slot as usize];
                What::Raw(Raw { header, ..raw })
            }
            ref what => what.clone(),
        };
        Ok((file, what))
    }
}
