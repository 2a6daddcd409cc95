//! Disk task of Minix. It handles one request at a time, from its message to the drive's interrupt
//! and the reply.

use super::MinixKernel;
use super::call_account::CallAccount;
use super::message::{
    AcceptedSenders, DeviceRequest, Endpoint, MessageBody, MessageParty, MinixDevice,
};
use crate::driver::DriverHost;
use crate::errno::{Errno, Result};
use crate::hardware::{Hardware, SimulationContext};
use crate::kernel::driver::DriverKernel;
use crate::parts::PartDriver;
use diskperf_device::{Operation, Request, RequestId, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// Longest transfer of one command, in bytes. The DMA chip counts sectors of 512 bytes in eight
/// bits.
const COMMAND_BYTES_MAX: u64 = 255 * 512;

/// Read-ahead buffer of the disk task: data of the last drive read, beyond the requested part.
#[derive(Default)]
struct ReadAheadBlocks {
    drive: u32,
    position: u64,
    bytes: Vec<u8>,
}

impl ReadAheadBlocks {
    fn covers_range(&self, drive: u32, position: u64, bytes: u64) -> bool {
        let end = self.position + self.bytes.len() as u64;
        self.drive == drive && self.position <= position && position + bytes <= end
    }

    fn overlaps_range(&self, drive: u32, position: u64, bytes: u64) -> bool {
        let end = self.position + self.bytes.len() as u64;
        self.drive == drive && self.position < position + bytes && position < end
    }
}

/// Sectors that move between a drive and memory.
#[derive(Clone, Copy)]
struct SectorTransfer {
    drive: u32,
    /// First byte on the partition of the drive.
    position: u64,
    bytes: u64,
    is_write: bool,
}

/// Context of the disk task while it runs a driver.
struct DiskTask<'a> {
    kernel: &'a MinixKernel,
    task_party: &'a MessageParty,
    account: &'a CallAccount,
}

impl DriverHost for DiskTask<'_> {
    fn hardware(&self) -> &RefCell<Hardware> {
        &self.kernel.hardware
    }

    fn surroundings(&self) -> SimulationContext<'_> {
        self.kernel.simulation_context()
    }

    fn spend_processor_time(&self, stage: Stage, cost: Time) -> impl Future<Output = ()> {
        let own = (&*self.task_party.process, self.account);
        self.kernel.spend_on_call(own, stage, cost)
    }

    fn complete_request(&self, id: RequestId) {
        self.kernel.request_completed(id);
    }

    fn fail_request(&self, id: RequestId, tries: u32) {
        self.kernel.halt_after_hard_error(id, tries);
    }
}

impl MinixKernel {
    /// Runs the disk task, which receives device requests, serves them and replies. It never ends.
    pub(crate) async fn disk_task(self: Rc<Self>) {
        let me = self.find_party(Endpoint::DiskTask);
        self.begin_process(&me.process).await;
        let mut ahead = ReadAheadBlocks::default();
        loop {
            let message = self.receive_message(&me, AcceptedSenders::AnySender).await;
            let MessageBody::DeviceRequest(request) = message.body else {
                panic!("the disk task serves only drives")
            };
            let cost = self.config.disk_task_time;
            self.spend_on_call((&me.process, &message.account), Stage::Driver, cost)
                .await;
            let moved = self
                .serve_disk_request(&me, &message.account, &request, &mut ahead)
                .await;
            self.send_message(
                &me,
                message.sender,
                &message.account,
                MessageBody::DeviceReply(moved),
            )
            .await;
        }
    }

    /// Serves one device request. Returns the number of bytes moved, which is smaller at the end of
    /// the partition. Fails with `Invalid` for partial sectors.
    async fn serve_disk_request(
        &self,
        me: &MessageParty,
        account: &CallAccount,
        request: &DeviceRequest,
        ahead: &mut ReadAheadBlocks,
    ) -> Result<usize> {
        let MinixDevice::DriveDevice(drive) = request.device else {
            panic!("the disk task serves only drives")
        };
        let partition = self.volumes.partition(drive);
        let driver = self.drivers.driver_of_drive(partition.drive);
        let asked: u64 = request
            .buffers
            .iter()
            .map(|piece| piece.borrow().len() as u64)
            .sum();
        let sector = u64::from(partition.sector_bytes);
        if !request.position.is_multiple_of(sector) || !asked.is_multiple_of(sector) {
            return Err(Errno::InvalidArgument);
        }
        let left = partition.size_bytes().saturating_sub(request.position);
        let bytes = asked.min(left);
        if bytes == 0 {
            return Ok(0);
        }
        let transfer = SectorTransfer {
            drive,
            position: request.position,
            bytes,
            is_write: request.is_write,
        };
        if request.is_write {
            if ahead.overlaps_range(drive, request.position, bytes) {
                ahead.bytes.clear();
            }
            self.read_with_ahead((me, driver), account, transfer).await;
            self.write_medium(transfer, request);
            return Ok(bytes as usize);
        }
        let read_ahead = u64::from(driver.read_bytes_min());
        let wanted = read_ahead.next_multiple_of(sector).min(left);
        if !ahead.covers_range(drive, request.position, bytes) {
            if wanted <= bytes {
                // Nothing to keep: the data goes where it is wanted.
                self.read_with_ahead((me, driver), account, transfer).await;
                self.read_medium(transfer, request);
                return Ok(bytes as usize);
            }
            let with_ahead = SectorTransfer {
                bytes: wanted,
                ..transfer
            };
            self.read_with_ahead((me, driver), account, with_ahead)
                .await;
            ahead.drive = drive;
            ahead.position = request.position;
            ahead.bytes.resize(wanted as usize, 0);
            self.volumes.with_contents(drive, |medium| {
                medium.read_bytes(request.position, &mut ahead.bytes);
            });
        }
        let own = (&*me.process, account);
        self.spend_on_call(own, Stage::Copy, self.costs.copy_time(bytes as usize))
            .await;
        self.read_medium(transfer, request);
        Ok(bytes as usize)
    }

    /// Moves sectors between the drive and memory, in commands no longer than the DMA chip can
    /// count.
    async fn read_with_ahead(
        &self,
        (me, driver): (&MessageParty, &PartDriver),
        account: &CallAccount,
        transfer: SectorTransfer,
    ) {
        let sector = u64::from(self.volumes.partition(transfer.drive).sector_bytes);
        let most = (COMMAND_BYTES_MAX / sector * sector).max(sector);
        let mut done = 0;
        while done < transfer.bytes {
            let part = most.min(transfer.bytes - done);
            self.run_command(
                (me, driver),
                account,
                SectorTransfer {
                    position: transfer.position + done,
                    bytes: part,
                    ..transfer
                },
            )
            .await;
            done += part;
        }
    }

    /// Performs one drive command, from the submission to the interrupt.
    async fn run_command(
        &self,
        (me, driver): (&MessageParty, &PartDriver),
        account: &CallAccount,
        transfer: SectorTransfer,
    ) {
        let SectorTransfer {
            drive,
            position,
            bytes,
            is_write,
        } = transfer;
        let partition = self.volumes.partition(drive);
        let task = DiskTask {
            kernel: self,
            task_party: me,
            account,
        };
        if let Some(cost) = driver.queueing_cost(partition.drive) {
            task.spend_processor_time(Stage::Driver, cost).await;
        }
        let sector_bytes = u64::from(partition.sector_bytes);
        let mut request = Request {
            operation: Operation::from_direction(is_write),
            device: partition.drive,
            sector: partition.first_sector + position / sector_bytes,
            sectors: (bytes / sector_bytes) as u32,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.simulation.now()));
        let id = self.hardware.borrow_mut().submitted_requests.issue(request);
        self.record_issue(id, true);
        if let (false, Some(program)) = (is_write, &*self.billed_process.borrow()) {
            program.count_storage_read(bytes as u32);
        }
        driver.accept_request(&task, id).await;
        let hardware = AcceptedSenders::OnlySender(Endpoint::Hardware);
        let MessageBody::Interrupt = self.receive_message(me, hardware).await.body else {
            panic!("hardware interrupts")
        };
        let request = self.take_completed(id);
        account.mark_request(&request);
        self.count_completed_request(None, &request, true);
    }

    fn read_medium(&self, transfer: SectorTransfer, request: &DeviceRequest) {
        let (drive, mut at) = (transfer.drive, transfer.position);
        let mut left = transfer.bytes as usize;
        for piece in &request.buffers {
            let mut piece = piece.borrow_mut();
            let run = left.min(piece.len());
            let part = &mut piece[..run];
            self.volumes
                .with_contents(drive, |medium| medium.read_bytes(at, part));
            at += run as u64;
            left -= run;
        }
    }

    fn write_medium(&self, transfer: SectorTransfer, request: &DeviceRequest) {
        let (drive, mut at) = (transfer.drive, transfer.position);
        let mut left = transfer.bytes as usize;
        for piece in &request.buffers {
            let piece = piece.borrow();
            let run = left.min(piece.len());
            let part = &piece[..run];
            self.volumes
                .with_contents(drive, |medium| medium.write_bytes(at, part));
            at += run as u64;
            left -= run;
        }
    }
}
