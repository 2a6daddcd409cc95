//! A MASSBUS adaptor, and the SMD controllers that look like one: arms move
//! and search at once, data moves for one drive at a time, and the channel is
//! held from the transfer command until the last sector.

use crate::controllers::Controller;
use crate::hardware::drives::Mechanisms;
use crate::hardware::marking::{late_stage, mark_move, mark_passing};
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::WhatIf;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{Stream, Streams, TaskId, Time};
use diskperf_timeline::trace::Counted;
use diskperf_timeline::{Deadline, Stage};

/// When a drive may say that it has found its sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Whenever the sector comes by.
    WhileTransferring,
    /// Only when the sector comes by while no other drive transfers: a
    /// controller that moves data does not watch.
    WhenIdle,
}

/// How an adaptor is built.
#[derive(Clone, Debug)]
pub struct MassbusConfig {
    /// See [`Attention`].
    pub attention: Attention,
    /// How often a controller whose own processor does the searching looks
    /// for a command to search, drive by drive: it acts up to this much for
    /// each drive on it after the command. Zero where searching is wired.
    pub search_poll_per_drive: Time,
    /// How long such a controller takes to act on the command, once it has
    /// found it.
    pub search_command: Time,
    /// From a command to the arm or the channel acting on it.
    pub command: Time,
    /// Whether a sector that is read goes on to memory only when all of it has come and
    /// was checked, while the next one comes: a read ends a sector later than its last
    /// one has passed.
    pub reads_whole_sectors: bool,
    /// How likely a sector is late for memory, or from it, while a process
    /// runs, which writes through its cache at every turn. Handlers of
    /// interrupts move little that is not in the cache.
    pub data_late: f64,
    /// Share of that while none does, of sectors that are written: what is read
    /// need only be handed on, and what is written has to come in time.
    pub data_late_idle_share: f64,
    /// Whether a transfer that is repeated may fail again. It always may, but
    /// where a repetition is supposed to cost no time it could fail for ever.
    pub fails_again: bool,
}

impl MassbusConfig {
    /// The same adaptor, whose deadlines are met where that is supposed; and
    /// where nothing is waited for on a track, the sector does not come round
    /// while the channel is held.
    pub(crate) fn supposing(&self, what_if: WhatIf) -> Self {
        let mut config = self.clone();
        if what_if.deadlines_met {
            config.data_late = 0.0;
        }
        if what_if.no_rotational_latency {
            config.fails_again = false;
        }
        if what_if.deadlines_met || what_if.no_rotational_latency {
            config.attention = Attention::WhileTransferring;
        }
        config
    }
}

/// The adaptor's state.
pub struct Massbus {
    id: Id<Massbus>,
    config: MassbusConfig,
    drives: Mechanisms,
    channel: Option<Channel>,
    /// A transfer that has ended, until the driver has seen it.
    done: Option<Done>,
    /// Of each drive: whether it has found its sector.
    attention: Vec<bool>,
    searches: Vec<Option<Search>>,
    /// When the channel was last taken and let go.
    held: (Time, Time),
    channel_busy: Time,
    late: Stream,
    poll: Stream,
    interrupt: Option<TaskId>,
    data_late_errors: u64,
}

/// What the channel is held for.
#[derive(Clone, Copy, Debug)]
struct Channel {
    transfer: RequestId,
    /// The rate while sectors pass, in bytes per second.
    rate: u64,
    since: Time,
    /// When the first sector has begun to pass, and the last one has passed.
    first_sector: Time,
    passed: Time,
    /// How long after it has passed a sector is in memory.
    behind: Time,
    sectors: u32,
    per_sector: Time,
    /// Whether sectors of it may be late.
    may_be_late: bool,
    moving: bool,
}

/// A transfer that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which.
    pub transfer: RequestId,
    /// Whether a sector was late, and nothing after it was transferred.
    pub data_late: bool,
}

#[derive(Clone, Copy, Debug)]
struct Search {
    transfer: RequestId,
    slot: u32,
    /// When the sector first came by.
    first: Option<Time>,
}

/// What an adaptor schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum MassbusEvent {
    /// A drive, by its place on the adaptor, is at the sector that it was to
    /// search.
    Found(u8),
    /// The first sector of the transfer begins to move.
    FirstSector,
    /// A sector of the transfer has moved that may have been late.
    Sector {
        /// Which.
        number: u32,
        /// It was, if its draw is below the share that is late now.
        draw: f64,
    },
    /// The last sector has moved.
    LastSector,
}

impl Controller for Massbus {
    type Event = MassbusEvent;

    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        match event {
            MassbusEvent::Found(place) => self.found(around, parts, usize::from(place)),
            MassbusEvent::FirstSector => self.first_sector(around, parts),
            MassbusEvent::Sector { number, draw } => self.sector(around, parts, (number, draw)),
            MassbusEvent::LastSector => self.last_sector(around, parts, false),
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        self.done.is_some() || self.attention.contains(&true)
    }

    fn busy(&self, now: Time) -> Option<(Counted, Time)> {
        Some((Counted::Channel, self.channel_busy(now)))
    }
}

impl Massbus {
    /// An idle adaptor with these drives, of this number among all controllers.
    pub fn new(
        (id, number): (Id<Self>, usize),
        config: MassbusConfig,
        drives: Mechanisms,
        streams: Streams,
    ) -> Self {
        let count = drives.count();
        Self {
            id,
            config,
            drives,
            channel: None,
            done: None,
            attention: vec![false; count],
            searches: vec![None; count],
            held: (Time::ZERO, Time::ZERO),
            channel_busy: Time::ZERO,
            late: streams.stream(&format!("controller.{number}.data_late")),
            poll: streams.stream(&format!("controller.{number}.poll")),
            interrupt: None,
            data_late_errors: 0,
        }
    }

    /// The drives that are configured on it.
    pub fn drives(&self) -> &Mechanisms {
        &self.drives
    }

    /// Whether the channel can take a transfer.
    pub fn is_idle(&self) -> bool {
        self.channel.is_none() && self.done.is_none()
    }

    /// For how long the channel was held up to now.
    pub fn channel_busy(&self, now: Time) -> Time {
        let holding = self.channel.map_or(Time::ZERO, |held| now - held.since);
        self.channel_busy + holding
    }

    /// How many sectors were late.
    pub fn data_late_errors(&self) -> u64 {
        self.data_late_errors
    }

    /// The transfer that has ended, once.
    pub fn take_done(&mut self) -> Option<Done> {
        self.done.take()
    }

    /// The first place whose drive has found its sector, once.
    pub fn take_attention(&mut self) -> Option<usize> {
        let place = self.attention.iter().position(|raised| *raised)?;
        self.attention[place] = false;
        Some(place)
    }

    /// Has a drive move to the transfer's cylinder and say when `slot` comes
    /// by there.
    pub fn search(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
        slot: u32,
    ) {
        let transfer = &mut parts.requests[id];
        let place = self.drives.place(transfer.device);
        let drive = &mut parts.drives[self.drives.at(place)];
        let cylinder = drive.geometry().locate(transfer.sector).cylinder;
        // Where the round of the polling stands when a command comes, nobody
        // knows.
        let round = self.config.search_poll_per_drive.0 * self.drives.count() as u64;
        let noticed = self.poll.within(Time(round)) + self.config.search_command;
        let commanded = around.now() + self.config.command + noticed;
        transfer.mark(Stage::Command, moment(commanded));
        let arm = drive.seek(cylinder, transfer.is_write());
        mark_move(transfer, commanded, arm);
        let arrived = commanded + arm.total();
        let since = drive.last_transfer();
        let found = arrived + drive.await_slot(arrived, slot, (arm, since));
        let stage = late_stage(
            transfer,
            since,
            drive.spindle().period(),
            found,
            arm,
            Deadline::Search,
        );
        transfer.mark(stage, moment(found));
        let search = &mut self.searches[place];
        assert!(search.is_none(), "a drive that searches was told to search");
        *search = Some(Search {
            transfer: id,
            slot,
            first: None,
        });
        self.id
            .schedule(around, found, MassbusEvent::Found(place as u8));
    }

    /// Transfers; the channel is held from now on. `searched` tells when the
    /// drive found the sector before it, if it was told to search.
    ///
    /// # Panics
    ///
    /// When the channel is held already.
    pub fn transfer(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
        searched: Option<Time>,
        repeated: bool,
    ) {
        assert!(self.is_idle(), "one transfer at a time holds the channel");
        let now = around.now();
        let commanded = now + self.config.command;
        let transfer = &mut parts.requests[id];
        transfer.mark(Stage::Command, moment(commanded));
        let drive = &mut parts.drives[self.drives.of(transfer)];
        let since = searched.or(drive.last_transfer());
        let all = (transfer.sector, transfer.sectors);
        let passage = drive.transfer_watched(commanded, all, transfer.is_write(), since);
        mark_move(transfer, commanded, passage.to_track);
        let first_sector = commanded + passage.to_first_sector();
        let stage = if repeated {
            Stage::MissedRevolution(Deadline::DataLate)
        } else {
            let missed = late_stage(
                transfer,
                since,
                drive.spindle().period(),
                first_sector,
                passage.to_track,
                Deadline::TransferCommand,
            );
            self.blame_channel(missed, first_sector, drive.spindle().period())
        };
        transfer.mark(stage, moment(first_sector));
        let passed = commanded + passage.total();
        let bytes = u64::from(transfer.sectors) * u64::from(drive.geometry().sector_bytes());
        let per_sector = Time((passed - first_sector).0 / u64::from(transfer.sectors));
        let behind = match self.config.reads_whole_sectors && !transfer.is_write() {
            true => per_sector,
            false => Time::ZERO,
        };
        self.channel = Some(Channel {
            transfer: id,
            rate: bytes * 1_000_000_000 / (passed - first_sector).0.max(1),
            since: now,
            first_sector,
            passed,
            behind,
            sectors: transfer.sectors,
            per_sector,
            may_be_late: self.config.data_late > 0.0 && (!repeated || self.config.fails_again),
            moving: false,
        });
        self.id
            .schedule(around, first_sector + behind, MassbusEvent::FirstSector);
    }

    /// A transfer command that was late because another drive had the channel
    /// when the sector came by says so.
    fn blame_channel(&self, stage: Stage, first_sector: Time, period: Time) -> Stage {
        let missed = Stage::MissedRevolution(Deadline::TransferCommand);
        let (taken, freed) = self.held;
        match first_sector.0.checked_sub(period.0) {
            Some(passed) if stage == missed && (taken.0..freed.0).contains(&passed) => {
                Stage::MissedRevolution(Deadline::ChannelHeld)
            }
            _ => stage,
        }
    }

    fn found(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, place: usize) {
        let now = around.now();
        let search = self.searches[place].as_mut().expect("the drive searches");
        let transfer = &mut parts.requests[search.transfer];
        if search.first.replace(now).is_some() {
            let held = Stage::MissedRevolution(Deadline::ChannelHeld);
            transfer.mark(held, moment(now));
        }
        if self.config.attention == Attention::WhenIdle && self.channel.is_some() {
            // It is not noticed; the sector comes round again.
            let slot = search.slot;
            let drive = &parts.drives[self.drives.of(transfer)];
            let again = now + Time(1);
            let again = again + drive.until_slot(again, slot);
            self.id
                .schedule(around, again, MassbusEvent::Found(place as u8));
            return;
        }
        self.searches[place] = None;
        self.attention[place] = true;
        self.raise(around);
    }

    fn first_sector(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let channel = self.channel.as_mut().expect("the channel is held");
        channel.moving = true;
        parts.bus.start(around, channel.rate);
        self.sectors_from(around, 1);
    }

    /// One sector of buffer is all there is: a sector that the memory, busy
    /// with the processor, does not give or take in time is late. Goes on to
    /// the next sector, from this one on, that may be; whether it is depends
    /// on whether a process has the processor when it has passed.
    fn sectors_from(&mut self, around: &Surroundings<'_>, number: u32) {
        let channel = self.channel.expect("the channel is held");
        let may_be_late = channel.may_be_late;
        let mut last = number..channel.sectors.max(2);
        let risk = last.find_map(|number| {
            let draw = may_be_late.then(|| self.late.share())?;
            (draw < self.config.data_late).then_some((number, draw))
        });
        match risk {
            Some((number, draw)) => {
                let passing = Time(channel.per_sector.0 * u64::from(number));
                let at = channel.first_sector + passing + channel.behind;
                self.id
                    .schedule(around, at, MassbusEvent::Sector { number, draw });
            }
            None => {
                let at = channel.passed + channel.behind;
                self.id.schedule(around, at, MassbusEvent::LastSector);
            }
        }
    }

    fn sector(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, at: (u32, f64)) {
        let (number, draw) = at;
        let channel = self.channel.expect("the channel is held");
        let write = parts.requests[channel.transfer].is_write();
        let idle = match write {
            true => self.config.data_late * self.config.data_late_idle_share,
            false => 0.0,
        };
        if around.processors.has_process() || draw < idle {
            self.data_late_errors += 1;
            self.last_sector(around, parts, true);
        } else {
            self.sectors_from(around, number + 1);
        }
    }

    fn last_sector(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, data_late: bool) {
        let now = around.now();
        let channel = self.channel.take().expect("the channel is held");
        assert!(channel.moving, "the last sector came before the first");
        parts.bus.stop(around, channel.rate);
        self.channel_busy += now - channel.since;
        self.held = (channel.since, now);
        let transfer = &mut parts.requests[channel.transfer];
        let drive = &mut parts.drives[self.drives.of(transfer)];
        if data_late {
            drive.cut_short(now);
            let late = Stage::MissedRevolution(Deadline::DataLate);
            transfer.mark(late, moment(now));
        } else {
            mark_passing(transfer, drive, channel.passed);
            if channel.behind > Time::ZERO {
                transfer.mark(Stage::BusTransfer, moment(now));
            }
        }
        self.done = Some(Done {
            transfer: channel.transfer,
            data_late,
        });
        self.raise(around);
    }

    fn raise(&self, around: &Surroundings<'_>) {
        let task = self
            .interrupt
            .expect("the adaptor's interrupt is connected");
        around.sim.wake(task);
    }
}
