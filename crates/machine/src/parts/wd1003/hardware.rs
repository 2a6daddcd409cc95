//! Disk controller of a PC-AT (WD1003): one command at a time, a small buffer that the processor
//! fills and empties word by word, and an interrupt for each sector.
//!
//! A sector that passes while the buffer is full is not read, and the rest of the command waits a
//! revolution for it. A sector to be written waits in the buffer until its place on the track
//! passes.

use crate::controllers::Controller;
use crate::hardware::drives::MechanismIds;
use crate::hardware::marking::{mark_media_transfer, transfer_and_mark};
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{RandomStream, RandomStreams, TaskId, Time};
use diskperf_timeline::{Deadline, Stage};

/// Parameters of a WD1003 controller: buffer, command time and poll interval.
#[derive(Clone, Debug)]
pub struct Wd1003Config {
    /// Size of the buffer, in sectors.
    pub buffer_sectors: u32,
    /// Time from a command until the controller looks for the sector.
    pub command_delay: Time,
    /// Poll interval of the controller's processor for commands. A command starts up to one
    /// interval later.
    pub command_poll_interval: Time,
}

/// State of a WD1003 controller.
pub struct Wd1003 {
    id: ComponentId<Wd1003>,
    config: Wd1003Config,
    drives: MechanismIds,
    active_command: Option<Wd1003Command>,
    /// Number of sectors that have been read and not yet fetched by the processor.
    buffered_sectors: u32,
    poll_stream: RandomStream,
    interrupt_handler: Option<TaskId>,
}

#[derive(Clone, Debug)]
struct Wd1003Command {
    request_id: RequestId,
    /// Number of sectors of the command that have passed under the head.
    passed_sectors: u32,
    moved_sectors: u32,
    /// Time at which each sector of the command from `from` on has passed.
    sector_pass_times: Vec<Time>,
    first_passing_sector: u32,
    /// Whether the command only waits for space in the buffer, or for a sector to write.
    is_stalled: bool,
}

/// Event that a WD1003 controller schedules.
#[derive(Clone, Copy, Debug)]
pub enum Wd1003Event {
    /// Start of a command's execution by the controller.
    CommandStart,
    /// End of a sector that passes under the head.
    SectorEnd,
}

/// Action that an interrupt of the controller requests from the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorAction {
    /// Fetch of a read sector from the controller's buffer.
    FetchSector {
        /// Request that the controller's interrupt concerns.
        transfer: RequestId,
        /// Whether this is the last sector of the command.
        last: bool,
    },
    /// Supply of the next sector to write into the controller's buffer.
    SupplySector {
        /// Request that the controller's interrupt concerns.
        transfer: RequestId,
    },
    /// No further action, because the last sector has been written.
    AcknowledgeWrite {
        /// Request that the controller's interrupt concerns.
        transfer: RequestId,
    },
}

impl Controller for Wd1003 {
    type ControllerEvent = Wd1003Event;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: Self::ControllerEvent,
    ) {
        match event {
            Wd1003Event::CommandStart => {
                self.seek_sector(context, parts, Deadline::TransferCommand)
            }
            Wd1003Event::SectorEnd => self.handle_sector(context, parts),
        }
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, parts: &HardwareParts<'_>) -> bool {
        self.requested_action(parts).is_some()
    }
}

impl Wd1003 {
    /// Returns an idle WD1003 controller with its drives. `number` is its number among all
    /// controllers.
    pub fn new(
        (id, number): (ComponentId<Self>, usize),
        config: Wd1003Config,
        drives: MechanismIds,
        streams: RandomStreams,
    ) -> Self {
        Self {
            id,
            config,
            drives,
            active_command: None,
            buffered_sectors: 0,
            poll_stream: streams.named_stream(&format!("controller.{number}.poll")),
            interrupt_handler: None,
        }
    }

    /// Reports whether the controller can accept a command.
    pub fn is_idle(&self) -> bool {
        self.active_command.is_none()
    }

    /// Returns the action that the controller requests from the processor now, if any.
    pub fn requested_action(&self, parts: &HardwareParts<'_>) -> Option<ProcessorAction> {
        let command = self.active_command.as_ref()?;
        let transfer = command.request_id;
        let sectors = parts.submitted_requests[transfer].sectors;
        if !parts.submitted_requests[transfer].is_write() {
            let last = command.moved_sectors + 1 == sectors;
            return (self.buffered_sectors > 0)
                .then_some(ProcessorAction::FetchSector { transfer, last });
        }
        if command.passed_sectors == sectors {
            return Some(ProcessorAction::AcknowledgeWrite { transfer });
        }
        let room = command.moved_sectors - command.passed_sectors < self.config.buffer_sectors;
        (command.moved_sectors < sectors && room)
            .then_some(ProcessorAction::SupplySector { transfer })
    }

    /// Accepts a command from the driver.
    pub fn start_command(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        assert!(self.is_idle(), "one command at a time");
        let late = self
            .poll_stream
            .draw_within(self.config.command_poll_interval);
        let begin = context.now() + self.config.command_delay + late;
        let transfer = &mut parts.submitted_requests[id];
        transfer.book_stage(Stage::Command, moment(begin));
        self.active_command = Some(Wd1003Command {
            request_id: id,
            passed_sectors: 0,
            moved_sectors: 0,
            sector_pass_times: Vec::new(),
            first_passing_sector: 0,
            is_stalled: transfer.is_write(),
        });
        if !transfer.is_write() {
            self.id
                .schedule_event(context, begin, Wd1003Event::CommandStart);
        }
    }

    /// Reports to the controller that the processor has fetched a sector from the buffer.
    pub fn note_fetched_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
    ) {
        self.buffered_sectors -= 1;
        let command = self
            .active_command
            .as_mut()
            .expect("a command is under way");
        command.moved_sectors += 1;
        if command.moved_sectors == parts.submitted_requests[command.request_id].sectors {
            self.active_command = None;
        } else if std::mem::take(&mut command.is_stalled) {
            self.seek_sector(context, parts, Deadline::Interleave);
        }
    }

    /// Reports to the controller that the processor has supplied a sector to write.
    pub fn note_supplied_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
    ) {
        let command = self
            .active_command
            .as_mut()
            .expect("a command is under way");
        command.moved_sectors += 1;
        // One that waits in the buffer is written when the one before it is.
        if !std::mem::take(&mut command.is_stalled) {
            return;
        }
        let missed = if command.passed_sectors == 0 {
            Deadline::TransferCommand
        } else {
            Deadline::Interleave
        };
        let id = command.request_id;
        // A command may be brought its first sector before it is acted on.
        let marked = Time(parts.submitted_requests[id].spans.marked_until().0);
        if marked > context.now() {
            self.id
                .schedule_event(context, marked, Wd1003Event::CommandStart);
        } else {
            let now = moment(context.now());
            let request = &mut parts.submitted_requests[id];
            request.book_stage(Stage::BusTransfer, now);
            self.seek_sector(context, parts, missed);
        }
    }

    /// Ends a write command after the processor has been informed that its last sector is written.
    pub fn acknowledge_interrupt(&mut self) {
        self.active_command = None;
    }

    fn seek_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        late: Deadline,
    ) {
        let now = context.now();
        let command = self
            .active_command
            .as_mut()
            .expect("a command is under way");
        let transfer = &mut parts.submitted_requests[command.request_id];
        let drive = &mut parts.drives[self.drives.mechanism_id_for_request(transfer)];
        let sector = transfer.sector + u64::from(command.passed_sectors);
        let left = transfer.sectors - command.passed_sectors;
        transfer_and_mark(transfer, drive, now, (sector, left), late);
        command.sector_pass_times = drive.sector_end_times();
        command.first_passing_sector = command.passed_sectors;
        self.id.schedule_event(
            context,
            command.sector_pass_times[0],
            Wd1003Event::SectorEnd,
        );
    }

    fn handle_sector(&mut self, context: &SimulationContext<'_>, parts: &mut HardwareParts<'_>) {
        let now = context.now();
        let command = self
            .active_command
            .as_mut()
            .expect("a command is under way");
        command.passed_sectors += 1;
        let transfer = &mut parts.submitted_requests[command.request_id];
        mark_media_transfer(
            transfer,
            &mut parts.drives[self.drives.mechanism_id_for_request(transfer)],
            now,
        );
        let task = self.interrupt_handler.expect("its interrupt is connected");
        context.sim.wake_task(task);
        let goes_on = if transfer.is_write() {
            command.moved_sectors > command.passed_sectors
        } else {
            self.buffered_sectors += 1;
            self.buffered_sectors < self.config.buffer_sectors
        };
        if command.passed_sectors == transfer.sectors {
            return;
        }
        if goes_on {
            let next = command.sector_pass_times
                [(command.passed_sectors - command.first_passing_sector) as usize];
            self.id
                .schedule_event(context, next, Wd1003Event::SectorEnd);
        } else {
            // What follows passes unread until there is room, or unwritten
            // until it is there.
            command.is_stalled = true;
            parts.drives[self.drives.mechanism_id_for_request(transfer)]
                .truncate_last_transfer(now);
        }
    }
}
