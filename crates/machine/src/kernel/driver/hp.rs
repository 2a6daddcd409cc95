//! The driver of MASSBUS disks (hp.c and mba.c of July 1983).
//!
//! With one drive configured on its adaptor a request is given to the drive
//! at once, which finds its own way. With two or more, the drive is first
//! told to search a sector some sectors ahead of the one wanted, so that the
//! channel stays free for the others; when it says that it is there, the
//! transfer follows. Two deadlines come of that: the search must be told
//! before its sector passes, and the transfer before the wanted one does.

use super::disksort::{self, Queue, QueueOrder, Queued};
use crate::hardware::controller::massbus::{Done, Massbus};
use crate::hardware::{Hardware, Parts, Request, RequestId, Surroundings, moment};
use crate::kernel::Kernel;
use crate::kernel::process::{BIO, Context};
use crate::standstill::{HardError, Standstill};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// How it is decided that a sector on the present cylinder is near enough to
/// transfer without a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionTest {
    /// hp.c 4.18 (March 1981) to 6.2: the head is in the last sectors of the
    /// track, wherever the wanted one is.
    LastSectors,
    /// 6.3 (March 1984): the distance is above the maximum or below the
    /// minimum.
    OutsideWindow,
    /// 7.6 (October 1987): the distance is within both.
    InsideWindow,
}

/// How far ahead a drive is told to search, and when it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchLead {
    /// Sectors between the one searched and the one wanted.
    pub lead_sectors: u32,
    /// Of [`PositionTest::LastSectors`]: how many last sectors.
    pub window_sectors: u32,
    /// Of the other two tests.
    pub minimum_distance_sectors: u32,
    /// Of the other two tests.
    pub maximum_distance_sectors: u32,
}

/// The driver's constants and costs.
#[derive(Clone, Debug)]
pub struct HpConfig {
    /// See [`PositionTest`].
    pub position_test: PositionTest,
    /// Of each drive.
    pub lead: Vec<SearchLead>,
    /// See [`QueueOrder`].
    pub order: QueueOrder,
    /// Queueing a request.
    pub strategy: Time,
    /// Deciding how to start one, and telling the drive.
    pub start: Time,
    /// One map register, which maps 512 bytes.
    pub map_register: Time,
    /// Seeing to a transfer that has ended.
    pub complete: Time,
}

/// The driver.
pub(crate) struct Hp {
    pub(crate) config: HpConfig,
    units: RefCell<Vec<Unit>>,
    adaptors: RefCell<Vec<Adaptor>>,
    /// The number of the first that is its.
    first: usize,
}

/// A drive, as its driver sees it.
struct Unit {
    adaptor: usize,
    queue: Queue,
    state: State,
    /// When it found its sector.
    found: Option<Time>,
    /// How often the transfer of the first of the queue has failed.
    errors: u32,
}

/// A transfer that fails more often is given up (hp.c, hpdtint: `b_errcnt > 27`).
const MOST_ERRORS: u32 = 27;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is being done for the first of the queue, or there is none.
    Idle,
    /// The drive searches for it.
    Positioning,
    /// It waits for the channel, or has it.
    Transferring,
}

/// An adaptor: the drives that wait for its channel, in order.
#[derive(Default)]
struct Adaptor {
    waiting: VecDeque<usize>,
    /// The first of them repeats a transfer that failed.
    repeat: bool,
}

/// Data that one map register maps.
const MAPPED_BYTES: u64 = 512;

impl Hp {
    /// The driver of drives that hang on these adaptors; a drive of another
    /// driver's hangs on none of them, whatever its number is.
    pub(crate) fn new(config: HpConfig, adaptor_of: &[usize]) -> Self {
        let unit = |adaptor: &usize| Unit {
            adaptor: *adaptor,
            queue: Queue::new(),
            state: State::Idle,
            found: None,
            errors: 0,
        };
        let adaptors = adaptor_of.iter().max().map_or(0, |last| last + 1);
        Self {
            config,
            units: RefCell::new(adaptor_of.iter().map(unit).collect()),
            adaptors: RefCell::new((0..adaptors).map(|_| Adaptor::default()).collect()),
            first: adaptor_of.iter().min().copied().unwrap_or(0),
        }
    }

    /// How many adaptors it runs.
    pub(crate) fn adaptors_used(&self) -> usize {
        self.adaptors.borrow().len() - self.first
    }
}

/// From the kernel.
impl Kernel {
    pub(super) async fn hp_strategy(&self, hp: &Hp, context: Context<'_>, id: RequestId) {
        let level = self.processor.mask(&self.sim, BIO);
        self.spend(context, Stage::Driver, hp.config.strategy).await;
        let (drive, adaptor, idle) = {
            let mut hardware = self.hardware.borrow_mut();
            let request = &mut hardware.requests[id];
            request.mark(Stage::Driver, moment(self.sim.now()));
            let drive = request.device;
            let unit = &mut hp.units.borrow_mut()[drive];
            disksort::insert(hp.config.order, &mut unit.queue, Queued::of(&hardware, id));
            (drive, unit.adaptor, unit.state == State::Idle)
        };
        if idle {
            self.hp_start_unit(hp, context, drive).await;
            self.hp_start_channel(hp, context, adaptor).await;
        }
        self.unmask(context, level).await;
    }

    /// Decides what to do for the first request of a drive: queue it for the
    /// channel, or have the drive search.
    async fn hp_start_unit(&self, hp: &Hp, context: Context<'_>, drive: usize) {
        let first = {
            let mut units = hp.units.borrow_mut();
            let unit = &mut units[drive];
            let Some(first) = unit.queue.first().map(|queued| queued.request) else {
                unit.state = State::Idle;
                return;
            };
            // Whoever comes in while this takes its time must not start the
            // drive as well.
            if unit.state == State::Idle {
                unit.state = State::Positioning;
                unit.found = None;
            }
            first
        };
        self.mark(first, Stage::DriverQueue);
        self.spend(context, Stage::Driver, hp.config.start).await;
        self.mark(first, Stage::Driver);
        let mut hardware = self.hardware.borrow_mut();
        let adaptor = hp.units.borrow()[drive].adaptor;
        let found = hp.units.borrow()[drive].found.is_some();
        let searches = hardware.controllers[adaptor].massbus().configured() > 1 && !found;
        let slot = searches.then(|| hp_search_slot(&hardware, &hp.config, drive, first));
        match slot.flatten() {
            Some(slot) => {
                let (controller, mut parts) = hardware.controller(adaptor);
                let around = self.surroundings();
                controller
                    .massbus()
                    .search(&around, &mut parts, first, slot);
            }
            None => {
                hp.units.borrow_mut()[drive].state = State::Transferring;
                hp.adaptors.borrow_mut()[adaptor].waiting.push_back(drive);
            }
        }
    }

    /// Gives the channel, if it is free, to the first drive that waits.
    async fn hp_start_channel(&self, hp: &Hp, context: Context<'_>, adaptor: usize) {
        let (drive, repeat) = {
            let mut hardware = self.hardware.borrow_mut();
            let mut adaptors = hp.adaptors.borrow_mut();
            let state = &mut adaptors[adaptor];
            if !hardware.controllers[adaptor].massbus().is_idle() {
                return;
            }
            let Some(drive) = state.waiting.pop_front() else {
                return;
            };
            (drive, std::mem::take(&mut state.repeat))
        };
        let (first, found) = {
            let units = hp.units.borrow();
            (units[drive].queue[0].request, units[drive].found)
        };
        self.mark(first, Stage::ChannelWait);
        let bytes = self.hardware.borrow().bytes(first);
        // One more than the pages: a buffer may start within one.
        let registers = bytes.div_ceil(MAPPED_BYTES) + 1;
        let cost = Time(hp.config.map_register.0 * registers);
        self.spend(context, Stage::Driver, cost).await;
        self.mark(first, Stage::Driver);
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(adaptor);
        let around = self.surroundings();
        controller
            .massbus()
            .transfer(&around, &mut parts, first, found, repeat);
    }
}

/// The slot to search for; none if the transfer may start at once.
fn hp_search_slot(
    hardware: &Hardware,
    config: &HpConfig,
    drive: usize,
    first: RequestId,
) -> Option<u32> {
    let request = &hardware.requests[first];
    let drive_state = &hardware.drives[drive];
    let place = drive_state.geometry().locate(request.sector);
    let lead = &config.lead[drive];
    let target = (place.slot + place.slots - lead.lead_sectors % place.slots) % place.slots;
    if place.cylinder != drive_state.cylinder() {
        return Some(target);
    }
    let under_head = drive_state.slot_under_head(hardware_now(request));
    let distance = (target + 2 * place.slots - under_head - 1) % place.slots;
    let near = match config.position_test {
        PositionTest::LastSectors => under_head + 1 > place.slots - lead.window_sectors,
        PositionTest::OutsideWindow => {
            distance > lead.maximum_distance_sectors || distance < lead.minimum_distance_sectors
        }
        PositionTest::InsideWindow => {
            (lead.minimum_distance_sectors..=lead.maximum_distance_sectors).contains(&distance)
        }
    };
    (!near).then_some(target)
}

/// The moment up to which a request has been marked, which is the present one
/// for a driver that has just spent its time on it.
fn hardware_now(request: &Request) -> Time {
    Time(request.spans.marked().0)
}

/// From the adaptor.
impl Kernel {
    /// Serves the interrupts of an adaptor for ever.
    pub(crate) async fn hp_interrupts(self: Rc<Self>, number: usize, adaptor: usize) {
        let super::Driver::Hp(hp) = &self.drivers[number] else {
            panic!("the hp driver serves MASSBUS adaptors")
        };
        loop {
            while !self.massbus(adaptor, |massbus, _| massbus.interrupts()) {
                self.sim.wait("an interrupt of the adaptor").await;
            }
            self.processor.enter(&self.sim, BIO).await;
            self.spend(Context::Handler, Stage::Interrupt, self.costs.interrupt)
                .await;
            let done = self.massbus(adaptor, |massbus, _| massbus.take_done());
            if let Some(done) = done {
                self.hp_transfer_done(hp, adaptor, done).await;
            }
            while let Some(place) = self.massbus(adaptor, |massbus, _| massbus.take_attention()) {
                let drive = self.massbus(adaptor, |massbus, _| massbus.drive(place));
                self.hp_found(hp, drive);
                self.hp_start_unit(hp, Context::Handler, drive).await;
            }
            self.hp_start_channel(hp, Context::Handler, adaptor).await;
            self.processor.leave(&self.sim);
        }
    }

    fn massbus<T>(&self, adaptor: usize, ask: impl FnOnce(&mut Massbus, &mut Parts<'_>) -> T) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(adaptor);
        ask(controller.massbus(), &mut parts)
    }

    fn hp_found(&self, hp: &Hp, drive: usize) {
        let mut units = hp.units.borrow_mut();
        let unit = &mut units[drive];
        let first = unit.queue[0].request;
        let found = self.hardware.borrow().requests[first].spans.marked();
        unit.found = Some(Time(found.0));
    }

    async fn hp_transfer_done(&self, hp: &Hp, adaptor: usize, done: Done) {
        let drive = self.hardware.borrow().requests[done.transfer].device;
        self.spend(Context::Handler, Stage::Driver, hp.config.complete)
            .await;
        if done.data_late {
            let errors = {
                let errors = &mut hp.units.borrow_mut()[drive].errors;
                *errors += 1;
                *errors
            };
            if errors > MOST_ERRORS {
                self.give_up(done.transfer, errors);
                return;
            }
            // The driver has the whole transfer done again, before any other.
            let mut adaptors = hp.adaptors.borrow_mut();
            adaptors[adaptor].waiting.push_front(drive);
            adaptors[adaptor].repeat = true;
            return;
        }
        let id = {
            let mut units = hp.units.borrow_mut();
            let unit = &mut units[drive];
            unit.state = State::Idle;
            unit.found = None;
            unit.errors = 0;
            unit.queue.remove(0).request
        };
        assert!(
            id == done.transfer,
            "the first of the queue was transferred"
        );
        self.completed(id);
        self.hp_start_unit(hp, Context::Handler, drive).await;
    }

    /// Nothing that happens after a hard error is the programs' work.
    fn give_up(&self, transfer: RequestId, tries: u32) {
        let hardware = self.hardware.borrow();
        let transfer = &hardware.requests[transfer];
        self.halt(Standstill::HardError(HardError {
            at: self.sim.now(),
            drive: transfer.device,
            sector: transfer.sector,
            tries,
        }));
    }

    /// What hardware may touch besides itself.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            sim: &self.sim,
            processor: &self.processor,
        }
    }
}
