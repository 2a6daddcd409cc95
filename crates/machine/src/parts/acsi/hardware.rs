//! A disk on the DMA port of an Atari ST (ACSI): an embedded controller that
//! takes one command at a time, moves its sectors to memory by DMA while they
//! pass, and interrupts at the end.

use crate::controllers::Controller;
use crate::hardware::drives::Mechanisms;
use crate::hardware::marking::{go_for, mark_passing};
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{Stream, Streams, TaskId, Time};
use diskperf_timeline::{Deadline, Stage};

/// How such a controller is built.
#[derive(Clone, Debug)]
pub struct AcsiConfig {
    /// From a command until it looks for the sector.
    pub command: Time,
    /// How often its processor looks at its command register: it begins up to
    /// this much later.
    pub command_poll: Time,
}

/// The controller's state.
pub struct Acsi {
    id: Id<Acsi>,
    config: AcsiConfig,
    drives: Mechanisms,
    command: Option<RequestId>,
    interrupts: bool,
    poll: Stream,
    interrupt: Option<TaskId>,
}

/// What the controller schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum AcsiEvent {
    /// It begins with the command.
    Begin,
    /// The last sector is in memory, or on the drive.
    End,
}

impl Controller for Acsi {
    type Event = AcsiEvent;

    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        let id = self.command.expect("a command is under way");
        match event {
            AcsiEvent::Begin => {
                let ended = self.begin(around, parts, id);
                self.id.schedule(around, ended, AcsiEvent::End);
            }
            AcsiEvent::End => {
                self.command = None;
                self.interrupts = true;
                let task = self.interrupt.expect("its interrupt is connected");
                around.sim.wake(task);
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
    /// An idle controller with these drives, of this number among all.
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
            poll: streams.stream(&format!("controller.{number}.poll")),
            interrupt: None,
        }
    }

    /// Its interrupt was seen to.
    pub fn acknowledge(&mut self) {
        self.interrupts = false;
    }

    /// Takes a command.
    ///
    /// # Panics
    ///
    /// When one is under way.
    pub fn command(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        assert!(
            self.command.is_none() && !self.interrupts,
            "one command at a time"
        );
        let late = self.poll.within(self.config.command_poll);
        let begin = around.now() + self.config.command + late;
        let transfer = &mut parts.requests[id];
        transfer.mark(Stage::Command, moment(begin));
        self.command = Some(id);
        self.id.schedule(around, begin, AcsiEvent::Begin);
    }

    /// Positions the drive, and lets the sectors pass; when all are where they belong.
    fn begin(&self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) -> Time {
        let now = around.now();
        let transfer = &mut parts.requests[id];
        let drive = &mut parts.drives[self.drives.of(transfer)];
        let all = (transfer.sector, transfer.sectors);
        let late = Deadline::TransferCommand;
        let (first, passage) = go_for((transfer, drive), now, all, late);
        let passed = now + passage.total();
        mark_passing(transfer, drive, passed);
        // A sector waits in the controller's buffer until it has passed; the port
        // takes it while the next one passes, and no faster than it can.
        let sector_bytes = u64::from(drive.geometry().sector_bytes());
        let ended = if transfer.is_write() {
            passed
        } else {
            let port = parts.bus.time(u64::from(transfer.sectors) * sector_bytes);
            (passed + parts.bus.time(sector_bytes)).max(first + port)
        };
        transfer.mark(Stage::BusTransfer, moment(ended));
        ended
    }
}
