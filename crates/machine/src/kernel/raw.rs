//! Drives by themselves, past the buffer cache (physio): whole sectors, moved
//! straight between the drive and the process.

use super::Unix;
use super::driver::Owner;
use super::process::{Context, Process};
use crate::errno::{Errno, Result};
use diskperf_device::{Hint, Operation, Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::{Request as Spans, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// A volume by itself, and the header that a transfer of it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub(crate) volume: u32,
    pub(crate) header: HeaderId,
    /// Whether a write is on the medium when it is complete (force unit access).
    pub(crate) dsync: bool,
}

/// A header, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderId(usize);

/// What is moved for a process.
pub(crate) enum Data<'a> {
    /// From the drive.
    Read(&'a mut [u8]),
    /// To the drive.
    Write(&'a [u8]),
}

impl Data<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Read(into) => into.len(),
            Self::Write(data) => data.len(),
        }
    }
}

/// The most that one transfer of a bare mechanism moves (4.2BSD minphys): longer calls are
/// cut.
const MOST_BYTES: usize = 63 << 10;

impl Unix {
    /// Reads or writes at an offset of a drive's partition; how much, which is
    /// less than all at its end.
    pub(crate) async fn raw(
        &self,
        process: &Rc<Process>,
        raw: Raw,
        (offset, mut data): (u64, Data<'_>),
    ) -> Result<usize> {
        let volume = raw.volume;
        let partition = self.volumes.partition(volume);
        let sector_bytes = u64::from(partition.sector_bytes);
        let whole = |bytes: u64| bytes.is_multiple_of(sector_bytes);
        if !whole(offset) || !whole(data.len() as u64) {
            return Err(Errno::Invalid);
        }
        let writes = matches!(data, Data::Write(_));
        if writes && self.mounted() > volume as usize {
            return Err(Errno::Busy);
        }
        if writes && data.len() > 0 && offset >= partition.bytes() {
            return Err(Errno::NoSpace);
        }
        let left = partition.bytes().saturating_sub(offset);
        let wanted = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        // In whole sectors, however long these are.
        let sector = partition.sector_bytes as usize;
        let most = self.most_bytes(partition.drive) / sector * sector;
        let most = most.max(sector);
        let mut done = 0;
        while done < wanted {
            let bytes = most.min(wanted - done);
            let at = offset + done as u64;
            self.raw_transfer(process, (raw, writes), (at, bytes)).await;
            let part = done..done + bytes;
            self.volumes.medium(volume, |medium| match &mut data {
                Data::Read(into) => medium.read_bytes(at, &mut into[part]),
                Data::Write(data) => medium.write_bytes(at, &data[part]),
            });
            done += bytes;
        }
        Ok(done)
    }

    /// The most that one transfer of a drive moves.
    fn most_bytes(&self, drive: usize) -> usize {
        let hardware = self.hardware.borrow();
        hardware
            .drives
            .get(drive)
            .most_bytes()
            .unwrap_or(MOST_BYTES)
    }

    /// One transfer, from its queueing until the process knows of its end.
    async fn raw_transfer(
        &self,
        process: &Rc<Process>,
        (raw, write): (Raw, bool),
        (offset, bytes): (u64, usize),
    ) {
        let partition = self.volumes.partition(raw.volume);
        let operation = match write {
            true => Operation::Write { fua: raw.dsync },
            false => Operation::Read,
        };
        let request = Request {
            operation,
            device: partition.drive,
            sector: partition.first_sector + offset / u64::from(partition.sector_bytes),
            sectors: bytes as u32 / partition.sector_bytes,
            hint: Hint::Raw,
            ..Request::default()
        };
        assert!(
            request.sectors * partition.sector_bytes == bytes as u32,
            "a raw transfer moves whole sectors"
        );
        if !write {
            process.count_storage_read(bytes as u32);
        }
        self.raw_request(process, raw.header, request).await;
    }

    /// Has all that was written to a drive on its medium, where the drive keeps some of it
    /// in a cache.
    pub(super) async fn flush_raw(&self, process: &Rc<Process>, raw: Raw) {
        let drive = self.volumes.partition(raw.volume).drive;
        if !self.hardware.borrow().drives.get(drive).keeps_writes() {
            return;
        }
        let request = Request {
            operation: Operation::Flush,
            device: drive,
            hint: Hint::Raw,
            ..Request::default()
        };
        self.raw_request(process, raw.header, request).await;
    }

    /// One request, from its queueing until the process knows of its end.
    async fn raw_request(&self, process: &Rc<Process>, header: HeaderId, mut request: Request) {
        self.take_header(process, header).await;
        request.spans.issue(moment(self.sim.now()));
        let id = self.issue(request, Owner::Raw(header), true);
        self.strategy(Context::Process(process), id).await;
        self.wait_for_raw(process, header).await;
        let waiters = self.header(header, |header| {
            header.busy = false;
            std::mem::take(&mut header.waiters)
        });
        for process in &waiters {
            self.wake(process);
        }
    }

    fn header<T>(&self, HeaderId(number): HeaderId, use_it: impl FnOnce(&mut Header) -> T) -> T {
        use_it(&mut self.raw_headers.borrow_mut()[number])
    }

    /// A volume with its own header: 4.2BSD has one for each drive (`rhpbuf`).
    pub(super) fn through(volume: u32) -> Raw {
        let header = HeaderId(volume as usize);
        Raw {
            volume,
            header,
            dsync: false,
        }
    }

    /// A header besides, for one who has several transfers under way.
    pub(super) fn new_header(&self) -> HeaderId {
        let mut headers = self.raw_headers.borrow_mut();
        let number = headers.iter().position(|header| header.spare);
        let number = number.unwrap_or_else(|| {
            headers.push(Header::default());
            headers.len() - 1
        });
        headers[number].spare = false;
        HeaderId(number)
    }

    /// Gives such a header back.
    pub(super) fn spare_header(&self, id: HeaderId) {
        self.header(id, |header| {
            assert!(!header.busy, "a header in use is not spare");
            header.spare = true;
        });
    }

    /// Takes a header: who wants another transfer through it waits.
    async fn take_header(&self, process: &Rc<Process>, id: HeaderId) {
        loop {
            let taken = self.header(id, |header| {
                if header.busy {
                    header.waiters.push(Rc::clone(process));
                    return false;
                }
                header.busy = true;
                header.done = None;
                true
            });
            if taken {
                return;
            }
            let from: Time = self.sim.now();
            self.park(process, "a drive's raw transfer").await;
            process.book_wait(Stage::BufferWait, from);
        }
    }

    /// Sleeps until the transfer that has the header is done.
    async fn wait_for_raw(&self, process: &Rc<Process>, id: HeaderId) {
        let from = self.sim.now();
        let done = self.header(id, |header| {
            let done = header.done.is_some();
            if !done {
                header.waiters.push(Rc::clone(process));
            }
            done
        });
        if done {
            return;
        }
        self.park(process, "a transfer").await;
        self.header(id, |header| {
            let spent = header.done.as_ref();
            let spent = spent.expect("who waits for a transfer is woken when it is done");
            process.book_request(spent, from, process.runnable_at());
        });
    }

    /// A raw transfer has ended. Its process moves the data.
    pub(super) fn raw_done(&self, id: HeaderId, request: Request) {
        self.count_request(None, &request, true);
        let waiters = self.header(id, |header| {
            header.done = Some(request.spans);
            std::mem::take(&mut header.waiters)
        });
        for process in &waiters {
            self.wake(process);
        }
    }
}

/// A header for transfers past the cache.
#[derive(Default)]
pub(crate) struct Header {
    busy: bool,
    /// Nobody's, for whoever wants one.
    spare: bool,
    /// Where the time of the transfer that has it went, once it is done.
    done: Option<Spans>,
    /// Who waits for the header, or for the transfer that has it.
    waiters: Vec<Rc<Process>>,
}

/// A header for each volume.
pub(crate) fn headers(volumes: usize) -> RefCell<Vec<Header>> {
    RefCell::new((0..volumes).map(|_| Header::default()).collect())
}
