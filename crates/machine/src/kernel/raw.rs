//! Raw access to drives past the buffer cache (`physio`). Whole sectors move directly between the
//! drive and the process.

use super::UnixKernel;
use super::driver::RequestOwner;
use super::process::{ExecutionContext, Process};
use crate::errno::{Errno, Result};
use diskperf_device::{AccessHint, Operation, Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::{RequestTimeline as Spans, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// Volume open for raw access, with the header that its transfers use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRawDevice {
    pub(crate) volume: u32,
    pub(crate) header_id: RawHeaderId,
    /// Whether a completed write is on the medium (force unit access).
    pub(crate) is_dsync: bool,
}

/// Index of a raw transfer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawHeaderId(usize);

/// Data of a raw transfer, with its direction.
pub(crate) enum RawData<'a> {
    /// Buffer of the process that receives data from the drive.
    ReadBuffer(&'a mut [u8]),
    /// Data of the process that goes to the drive.
    WriteData(&'a [u8]),
}

impl RawData<'_> {
    fn byte_count(&self) -> usize {
        match self {
            Self::ReadBuffer(into) => into.len(),
            Self::WriteData(data) => data.len(),
        }
    }
}

/// Longest raw transfer of a drive without a limit of its own, in bytes (4.2BSD `minphys`). The
/// kernel splits longer calls.
const TRANSFER_BYTES_MAX: usize = 63 << 10;

impl UnixKernel {
    /// Reads or writes at an offset of a drive's partition and returns the number of bytes moved,
    /// which is smaller at the end of the partition. Fails with `Invalid` for partial sectors, with
    /// `Busy` for a write to a mounted volume, and with `NoSpace` for a write behind the end.
    pub(crate) async fn transfer_raw(
        &self,
        process: &Rc<Process>,
        raw: OpenRawDevice,
        (offset, mut data): (u64, RawData<'_>),
    ) -> Result<usize> {
        let volume = raw.volume;
        let partition = self.volumes.partition(volume);
        let sector_bytes = u64::from(partition.sector_bytes);
        let whole = |bytes: u64| bytes.is_multiple_of(sector_bytes);
        if !whole(offset) || !whole(data.byte_count() as u64) {
            return Err(Errno::InvalidArgument);
        }
        let writes = matches!(data, RawData::WriteData(_));
        if writes && self.mounted_count() > volume as usize {
            return Err(Errno::DeviceBusy);
        }
        if writes && data.byte_count() > 0 && offset >= partition.size_bytes() {
            return Err(Errno::NoSpace);
        }
        let left = partition.size_bytes().saturating_sub(offset);
        let wanted = data
            .byte_count()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        // In whole sectors, however long these are.
        let sector = partition.sector_bytes as usize;
        let most = self.raw_transfer_bytes_max(partition.drive) / sector * sector;
        let most = most.max(sector);
        let mut done = 0;
        while done < wanted {
            let bytes = most.min(wanted - done);
            let at = offset + done as u64;
            self.transfer_raw_part(process, (raw, writes), (at, bytes))
                .await;
            let part = done..done + bytes;
            self.volumes
                .with_contents(volume, |medium| match &mut data {
                    RawData::ReadBuffer(into) => medium.read_bytes(at, &mut into[part]),
                    RawData::WriteData(data) => medium.write_bytes(at, &data[part]),
                });
            done += bytes;
        }
        Ok(done)
    }

    fn raw_transfer_bytes_max(&self, drive: usize) -> usize {
        let hardware = self.hardware.borrow();
        hardware
            .drives
            .drive_at(drive)
            .request_bytes_max()
            .unwrap_or(TRANSFER_BYTES_MAX)
    }

    /// Performs one raw transfer of whole sectors, from its queueing until the process resumes.
    async fn transfer_raw_part(
        &self,
        process: &Rc<Process>,
        (raw, write): (OpenRawDevice, bool),
        (offset, bytes): (u64, usize),
    ) {
        let partition = self.volumes.partition(raw.volume);
        let operation = match write {
            true => Operation::Write { fua: raw.is_dsync },
            false => Operation::Read,
        };
        let request = Request {
            operation,
            device: partition.drive,
            sector: partition.first_sector + offset / u64::from(partition.sector_bytes),
            sectors: bytes as u32 / partition.sector_bytes,
            hint: AccessHint::Raw,
            ..Request::default()
        };
        assert!(
            request.sectors * partition.sector_bytes == bytes as u32,
            "a raw transfer moves whole sectors"
        );
        if !write {
            process.count_storage_read(bytes as u32);
        }
        self.submit_raw_request(process, raw.header_id, request)
            .await;
    }

    /// Flushes the write-back cache of a raw drive to its medium. Does nothing if the drive has no
    /// such cache.
    pub(super) async fn flush_raw(&self, process: &Rc<Process>, raw: OpenRawDevice) {
        let drive = self.volumes.partition(raw.volume).drive;
        if !self
            .hardware
            .borrow()
            .drives
            .drive_at(drive)
            .has_write_back_cache()
        {
            return;
        }
        let request = Request {
            operation: Operation::Flush,
            device: drive,
            hint: AccessHint::Raw,
            ..Request::default()
        };
        self.submit_raw_request(process, raw.header_id, request)
            .await;
    }

    /// Performs one request through a raw header, from its queueing until the process resumes.
    async fn submit_raw_request(
        &self,
        process: &Rc<Process>,
        header: RawHeaderId,
        mut request: Request,
    ) {
        self.reserve_header(process, header).await;
        request.spans.begin_at(moment(self.simulation.now()));
        let id = self.issue_request(request, RequestOwner::RawRequest(header), true);
        self.queue_request(ExecutionContext::InProcess(process), id)
            .await;
        self.wait_for_raw(process, header).await;
        let waiters = self.with_header(header, |header| {
            header.is_busy = false;
            std::mem::take(&mut header.waiters)
        });
        for process in &waiters {
            self.wake_process(process);
        }
    }

    fn with_header<T>(
        &self,
        RawHeaderId(number): RawHeaderId,
        use_it: impl FnOnce(&mut RawHeader) -> T,
    ) -> T {
        use_it(&mut self.raw_headers.borrow_mut()[number])
    }

    /// Returns raw access to a volume through the volume's own header. 4.2BSD has one for each
    /// drive (`rhpbuf`).
    pub(super) fn volume_header(volume: u32) -> OpenRawDevice {
        let header = RawHeaderId(volume as usize);
        OpenRawDevice {
            volume,
            header_id: header,
            is_dsync: false,
        }
    }

    /// Returns an additional raw header, for a process with several transfers in flight.
    pub(super) fn take_additional_header(&self) -> RawHeaderId {
        let mut headers = self.raw_headers.borrow_mut();
        let number = headers.iter().position(|header| header.is_released);
        let number = number.unwrap_or_else(|| {
            headers.push(RawHeader::default());
            headers.len() - 1
        });
        headers[number].is_released = false;
        RawHeaderId(number)
    }

    /// Releases an additional raw header for reuse. Panics if a transfer uses it.
    pub(super) fn release_additional_header(&self, id: RawHeaderId) {
        self.with_header(id, |header| {
            assert!(!header.is_busy, "a header in use is not spare");
            header.is_released = true;
        });
    }

    /// Reserves a raw header for one transfer. Sleeps while another transfer uses the header.
    async fn reserve_header(&self, process: &Rc<Process>, id: RawHeaderId) {
        loop {
            let taken = self.with_header(id, |header| {
                if header.is_busy {
                    header.waiters.push(Rc::clone(process));
                    return false;
                }
                header.is_busy = true;
                header.completed_spans = None;
                true
            });
            if taken {
                return;
            }
            let from: Time = self.simulation.now();
            self.wait_for_wake_up(process, "a drive's raw transfer")
                .await;
            process.book_wait(Stage::BufferWait, from);
        }
    }

    /// Sleeps until the transfer of a raw header is complete.
    async fn wait_for_raw(&self, process: &Rc<Process>, id: RawHeaderId) {
        let from = self.simulation.now();
        let done = self.with_header(id, |header| {
            let done = header.completed_spans.is_some();
            if !done {
                header.waiters.push(Rc::clone(process));
            }
            done
        });
        if done {
            return;
        }
        self.wait_for_wake_up(process, "a transfer").await;
        self.with_header(id, |header| {
            let spent = header.completed_spans.as_ref();
            let spent = spent.expect("a woken process finds its transfer complete");
            process.book_request(spent, from, process.runnable_since());
        });
    }

    /// Completes a raw transfer and wakes its process, which then moves the data.
    pub(super) fn complete_raw(&self, id: RawHeaderId, request: Request) {
        self.count_completed_request(None, &request, true);
        let waiters = self.with_header(id, |header| {
            header.completed_spans = Some(request.spans);
            std::mem::take(&mut header.waiters)
        });
        for process in &waiters {
            self.wake_process(process);
        }
    }
}

/// Header of a raw transfer, which bypasses the buffer cache. One transfer at a time uses it.
#[derive(Default)]
pub(crate) struct RawHeader {
    is_busy: bool,
    /// Whether the header is free for reuse by any process.
    is_released: bool,
    /// Time of the completed transfer by stage; `None` while the transfer is in flight.
    completed_spans: Option<Spans>,
    /// Processes that wait for the header or for its transfer.
    waiters: Vec<Rc<Process>>,
}

pub(crate) fn new_raw_headers(volumes: usize) -> RefCell<Vec<RawHeader>> {
    RefCell::new((0..volumes).map(|_| RawHeader::default()).collect())
}
