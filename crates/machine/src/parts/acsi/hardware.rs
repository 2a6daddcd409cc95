//! Disk on the DMA port of an Atari ST (ACSI): an embedded controller that accepts one command at a
//! time, transfers its sectors to memory by DMA while they pass, and interrupts at the end.

use crate::controllers::Controller;
use crate::hardware::drives::MechanismIds;
use crate::hardware::marking::{mark_media_transfer, transfer_and_mark};
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{RandomStream, RandomStreams, TaskId, Time};
use diskperf_timeline::{Deadline, Stage};

/// Parameters of an ACSI controller.
#[derive(Clone, Debug)]
pub struct AcsiConfig {
    /// Time from a command until the controller looks for the sector.
    pub command_delay: Time,
    /// Poll interval of the command register. The controller starts a command up to one interval
    /// later.
    pub command_poll_interval: Time,
}

/// State of an ACSI controller.
pub struct Acsi {
    id: ComponentId<Acsi>,
    config: AcsiConfig,
    drives: MechanismIds,
    active_command: Option<RequestId>,
    has_unacknowledged_interrupt: bool,
    poll_stream: RandomStream,
    interrupt_handler: Option<TaskId>,
}

/// Event that an ACSI controller schedules.
#[derive(Clone, Copy, Debug)]
pub enum AcsiEvent {
    /// Start of a command's execution by the controller.
    CommandStart,
    /// End of the transfer: the last sector is in memory or on the drive.
    CommandEnd,
}

impl Controller for Acsi {
    type ControllerEvent = AcsiEvent;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: Self::ControllerEvent,
    ) {
        let id = self.active_command.expect("a command is under way");
        match event {
            AcsiEvent::CommandStart => {
                let ended = self.begin_command(context, parts, id);
                self.id
                    .schedule_event(context, ended, AcsiEvent::CommandEnd);
            }
            AcsiEvent::CommandEnd => {
                self.active_command = None;
                self.has_unacknowledged_interrupt = true;
                let task = self.interrupt_handler.expect("its interrupt is connected");
                context.sim.wake_task(task);
            }
        }
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, _: &HardwareParts<'_>) -> bool {
        self.has_unacknowledged_interrupt
    }
}

impl Acsi {
    /// Returns an idle ACSI controller with its drives. `number` is its number among all
    /// controllers.
    pub fn new(
        (id, number): (ComponentId<Self>, usize),
        config: AcsiConfig,
        drives: MechanismIds,
        streams: RandomStreams,
    ) -> Self {
        Self {
            id,
            config,
            drives,
            active_command: None,
            has_unacknowledged_interrupt: false,
            poll_stream: streams.named_stream(&format!("controller.{number}.poll")),
            interrupt_handler: None,
        }
    }

    /// Clears the interrupt after the driver has handled it.
    pub fn acknowledge_interrupt(&mut self) {
        self.has_unacknowledged_interrupt = false;
    }

    /// Accepts a command from the driver.
    ///
    /// # Panics
    ///
    /// If a command is in progress.
    pub fn start_command(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        assert!(
            self.active_command.is_none() && !self.has_unacknowledged_interrupt,
            "one command at a time"
        );
        let late = self
            .poll_stream
            .draw_within(self.config.command_poll_interval);
        let begin = context.now() + self.config.command_delay + late;
        let transfer = &mut parts.submitted_requests[id];
        transfer.book_stage(Stage::Command, moment(begin));
        self.active_command = Some(id);
        self.id
            .schedule_event(context, begin, AcsiEvent::CommandStart);
    }

    /// Executes a command: moves the arm and transfers the sectors. Returns the time at which all
    /// sectors are in memory or on the drive.
    fn begin_command(
        &self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) -> Time {
        let now = context.now();
        let transfer = &mut parts.submitted_requests[id];
        let drive = &mut parts.drives[self.drives.mechanism_id_for_request(transfer)];
        let all = (transfer.sector, transfer.sectors);
        let late = Deadline::TransferCommand;
        let (first, passage) = transfer_and_mark(transfer, drive, now, all, late);
        let passed = now + passage.total_time();
        mark_media_transfer(transfer, drive, passed);
        // A sector waits in the controller's buffer until it has passed; the port
        // takes it while the next one passes, and no faster than it can.
        let sector_bytes = u64::from(drive.geometry().sector_bytes());
        let ended = if transfer.is_write() {
            passed
        } else {
            let port = parts
                .bus
                .transfer_time(u64::from(transfer.sectors) * sector_bytes);
            (passed + parts.bus.transfer_time(sector_bytes)).max(first + port)
        };
        transfer.book_stage(Stage::BusTransfer, moment(ended));
        ended
    }
}
