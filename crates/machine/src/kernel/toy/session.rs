//! A process on the toy kernel: raw drives, and nothing that needs names.

use super::Toy;
use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::kernel::costs::Work;
use crate::kernel::pipe::PipeEnd;
use crate::kernel::process::{Context, Process};
use crate::rendezvous::Rendezvous;
use crate::ring::{RingCompletion, RingOperation, RingRequest, RingSize, RingState};
use crate::written::Written;
use diskperf_device::Operation;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// A process and the drives that it has open.
pub struct ToySession {
    kernel: Rc<Toy>,
    process: Rc<Process>,
    /// Volume and offset of each open drive.
    files: Vec<Option<(u32, u64)>>,
    meeting: Rc<Rendezvous>,
    ring: Option<RingState>,
}

type Done = Result<()>;

impl ToySession {
    pub(crate) async fn begin(
        kernel: &Rc<Toy>,
        number: usize,
        _: Vec<PipeEnd>,
        meeting: &Rc<Rendezvous>,
    ) -> Self {
        let process = Process::new(number);
        kernel.begin(&process).await;
        Self {
            kernel: Rc::clone(kernel),
            process,
            files: Vec::new(),
            meeting: Rc::clone(meeting),
            ring: None,
        }
    }

    pub(crate) async fn end(self) {
        self.kernel.end(&self.process);
    }

    pub(crate) fn now(&self) -> Time {
        self.kernel.sim.now()
    }

    pub(crate) fn open_account(&self) {
        self.process.open_account(self.now());
    }

    pub(crate) fn account(&self) -> Account {
        Account::of(&self.kernel, &self.process)
    }

    fn file(&self, number: usize) -> Result<(u32, u64)> {
        let file = self.files.get(number).copied().flatten();
        file.ok_or(Errno::BadFile)
    }

    /// A call that moves bytes at an offset; how many.
    async fn call(
        &self,
        operation: Operation,
        (volume, offset): (u32, u64),
        bytes: usize,
    ) -> Result<usize> {
        self.process.enter_mode(false);
        let context = Context::Process(&self.process);
        let cost = self.kernel.costs.system_call;
        self.kernel.spend(context, Stage::SystemCall, cost).await;
        let end = (offset + bytes as u64).min(self.kernel.volumes.partition(volume).bytes());
        if end > offset || operation == Operation::Flush {
            let range = offset..end.max(offset);
            let transfer = (volume, operation, range);
            self.kernel.transfer(&self.process, transfer).await;
        }
        self.kernel.back_to_user_mode(&self.process).await;
        Ok(end.saturating_sub(offset) as usize)
    }

    pub(crate) async fn open(&mut self, path: &str, _: How) -> Result<usize> {
        let number = path.strip_prefix("/dev/drive").ok_or(Errno::NoEntry)?;
        let volume = number.parse().map_err(|_| Errno::NoEntry)?;
        if !self.kernel.volumes.has(volume) {
            return Err(Errno::NoEntry);
        }
        self.files.push(Some((volume, 0)));
        Ok(self.files.len() - 1)
    }

    pub(crate) async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        let at = self.file(number)?;
        let moved = self.call(Operation::Read, at, into.len()).await?;
        self.kernel
            .volumes
            .medium(at.0, |medium| medium.read_bytes(at.1, &mut into[..moved]));
        self.files[number] = Some((at.0, at.1 + moved as u64));
        Ok(moved)
    }

    pub(crate) async fn write(&mut self, number: usize, data: Written<'_>) -> Result<usize> {
        let at = self.file(number)?;
        let moved = self.call(Operation::of(true), at, data.len()).await?;
        self.kernel
            .volumes
            .medium(at.0, |medium| medium.write_bytes(at.1, &data[..moved]));
        self.files[number] = Some((at.0, at.1 + moved as u64));
        Ok(moved)
    }

    pub(crate) async fn lseek(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        let (volume, at) = self.file(number)?;
        let base = match from {
            From::Start => 0,
            From::Current => at,
            From::End => self.kernel.volumes.partition(volume).bytes(),
        };
        let to = base.checked_add_signed(offset).ok_or(Errno::Invalid)?;
        self.files[number] = Some((volume, to));
        Ok(to)
    }

    pub(crate) async fn fsync(&mut self, number: usize) -> Done {
        let at = self.file(number)?;
        self.call(Operation::Flush, at, 0).await.map(|_| ())
    }

    pub(crate) async fn close(&mut self, number: usize) -> Done {
        let open = self.files.get_mut(number).and_then(Option::take);
        open.map(|_| ()).ok_or(Errno::BadFile)
    }

    pub(crate) async fn close_all(&mut self) {
        self.files.clear();
    }

    pub(crate) async fn length(&mut self, number: usize) -> Result<u64> {
        let (volume, _) = self.file(number)?;
        Ok(self.kernel.volumes.partition(volume).bytes())
    }
}

/// Rings: one request after the other.
impl ToySession {
    pub(crate) async fn open_ring(&mut self, size: RingSize, _: &[usize]) -> Done {
        self.ring = Some(RingState::new(size));
        Ok(())
    }

    pub(crate) async fn submit(&mut self, requests: &[RingRequest]) -> Done {
        for request in requests {
            let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
            ring.admit(*request);
            let operation = match request.operation {
                RingOperation::Read => Operation::Read,
                RingOperation::Write => Operation::of(true),
                RingOperation::Fsync => Operation::Flush,
                RingOperation::Discard => Operation::Discard,
            };
            let result = match self.file(request.file) {
                Ok((volume, _)) => {
                    let at = (volume, request.offset);
                    self.call(operation, at, request.bytes as usize).await
                }
                Err(errno) => Err(errno),
            };
            let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
            ring.complete(request.slot, result.map(|moved| moved as u32));
        }
        Ok(())
    }

    pub(crate) async fn reap(
        &mut self,
        _: usize,
        _: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Done {
        let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
        ring.take_done(completions);
        Ok(())
    }

    pub(crate) fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        Some(self.ring.as_ref()?.contents(slot))
    }

    pub(crate) fn under_way(&self) -> usize {
        self.ring.as_ref().map_or(0, RingState::under_way)
    }

    pub(crate) async fn close_ring(&mut self) {
        self.ring = None;
    }
}

/// Calls of files with names, which it has not.
macro_rules! absent {
    ($($name:ident($($type:ty),*) -> $returned:ty = $value:expr;)*) => {
        impl ToySession {
            $(pub(crate) async fn $name(&mut self $(, _: $type)*) -> $returned {
                $value
            })*
        }
    };
}
absent! {
    ftruncate(usize, u64) -> Done = Err(Errno::Invalid);
    change_attributes(&str) -> Done = Err(Errno::NoEntry);
    change_open_attributes(usize) -> Done = Err(Errno::Invalid);
    stat(&str) -> Result<u64> = Err(Errno::NoEntry);
    unlink(&str) -> Done = Err(Errno::NoEntry);
    mkdir(&str) -> Done = Err(Errno::NoEntry);
    rmdir(&str) -> Done = Err(Errno::NoEntry);
    rename(&str, &str) -> Done = Err(Errno::NoEntry);
    pipe_end(usize) -> Result<usize> = Err(Errno::BadFile);
    drop_cached(&str) -> Done = Ok(());
    drop_all_caches() -> () = ();
    resident_bytes(&str, u64) -> Result<u64> = Ok(0);
    flush(u32) -> () = ();
}

/// Time, and the others.
impl ToySession {
    pub(crate) async fn sleep_until(&mut self, at: Time) {
        if at > self.now() {
            self.kernel.nap(&self.process, at).await;
        }
    }

    pub(crate) async fn compute(&mut self, span: Time) {
        let context = Context::Process(&self.process);
        self.kernel.spend(context, Stage::User, span).await;
        self.kernel.back_to_user_mode(&self.process).await;
    }

    pub(crate) async fn barrier(&mut self) -> Option<Time> {
        self.meeting.meet(&self.kernel.waiter(&self.process)).await
    }

    pub(crate) fn notices(&self) -> u64 {
        self.meeting.notices()
    }

    pub(crate) fn give_notice(&self) {
        self.meeting.give_notice(&self.kernel.waiter(&self.process));
    }

    pub(crate) async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let waiter = self.kernel.waiter(&self.process);
        self.meeting.await_notice(&waiter, (seen, until)).await;
    }

    pub(crate) fn give_up_meeting(&self) {
        self.meeting.give_up(&self.kernel.waiter(&self.process));
    }

    pub(crate) fn volumes(&self) -> usize {
        0
    }

    pub(crate) fn has_volume(&self, volume: u32) -> bool {
        self.kernel.volumes.has(volume)
    }

    pub(crate) fn time_of(&self, work: Work) -> Time {
        self.kernel.time_of(work)
    }
}
