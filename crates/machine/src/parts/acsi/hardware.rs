//! Disk on the DMA port of an Atari ST (ACSI): an embedded controller that accepts one command at a
//! time, transfers its sectors to memory by DMA while they pass, and interrupts at the end.

use crate::controllers::Controller;
use crate::hardware::drives::Mechanisms;
use crate::hardware::marking::{mark_media_transfer, transfer_and_mark};
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{Stream, Streams, TaskId, Time};
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
    id: Id<Acsi>,
    config: AcsiConfig,
    drives: Mechanisms,
    command: Option<RequestId>,
    interrupts: bool,
    poll_stream: Stream,
    interrupt: Option<TaskId>,
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
    type Event = AcsiEvent;

    fn handle(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        let id = self.command.expect("a command is under way");
        match event {
            AcsiEvent::CommandStart => {
                let ended = self.begin(context, parts, id);
                self.id.schedule(context, ended, AcsiEvent::CommandEnd);
            }
            AcsiEvent::CommandEnd => {
                self.command = None;
                self.interrupts = true;
                let task = self.interrupt.expect("its interrupt is connected");
                context.sim.wake(task);
            }
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        self.interrupts
    }
}

impl Acsi {
    /// Returns an idle ACSI controller with its drives. `number` is its number among all
    /// controllers.
    pub fn new(
        (id, number): (Id<Self>, usize),
        config: AcsiConfig,
        drives: Mechanisms,
        streams: Streams,
    ) -> Self {
        Self {
            id,
            config,
            drives,
            command: None,
            interrupts: false,
            poll_stream: streams.stream(&format!("controller.{number}.poll")),
            interrupt: None,
        }
    }

    /// Clears the interrupt after the driver has handled it.
    pub fn acknowledge(&mut self) {
        self.interrupts = false;
    }

    /// Accepts a command from the driver.
    ///
    /// # Panics
    ///
    /// If a command is in progress.
    pub fn command(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        assert!(
            self.command.is_none() && !self.interrupts,
            "one command at a time"
        );
        let late = self.poll_stream.within(self.config.command_poll_interval);
        let begin = context.now() + self.config.command_delay + late;
        let transfer = &mut parts.requests[id];
        transfer.book_stage(Stage::Command, moment(begin));
        self.command = Some(id);
        self.id.schedule(context, begin, AcsiEvent::CommandStart);
    }

    /// Executes a command: moves the arm and transfers the sectors. Returns the time at which all
    /// sectors are in memory or on the drive.
    fn begin(&self, context: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) -> Time {
        let now = context.now();
        let transfer = &mut parts.requests[id];
        let drive = &mut parts.drives[self.drives.mechanism_for(transfer)];
        let all = (transfer.sector, transfer.sectors);
        let late = Deadline::TransferCommand;
        let (first, passage) = transfer_and_mark(transfer, drive, now, all, late);
        let passed = now + passage.total();
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
