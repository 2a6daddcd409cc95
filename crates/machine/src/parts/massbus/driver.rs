//! The driver of MASSBUS disks (hp.c and mba.c of July 1983).
//!
//! With one drive configured on its adaptor a request is given to the drive
//! at once, which finds its own way. With two or more, the drive is first
//! told to search a sector some sectors ahead of the one wanted, so that the
//! channel stays free for the others; when it says that it is there, the
//! transfer follows. Two deadlines come of that: the search must be told
//! before its sector passes, and the transfer before the wanted one does.

use super::hardware::{Done, Massbus};
use crate::driver::disksort::{self, Queue};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::hardware::mechanism::Mechanism;
use crate::id::Id;
use diskperf_device::{Request, RequestId};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

/// How it is decided that a sector on the present cylinder is near enough to
/// transfer without a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionTest {
    /// hp.c 4.18 (March 1981) to 6.2: the head is in the last sectors of the
    /// track, wherever the wanted one is.
    #[default]
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

/// The driver's constants and costs for a drive.
#[derive(Clone, Debug, Default)]
pub struct HpConfig {
    /// See [`PositionTest`].
    pub position_test: PositionTest,
    /// See [`SearchLead`].
    pub lead: SearchLead,
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
    order: QueueOrder,
    /// Of each drive of the computer.
    configs: Vec<HpConfig>,
    /// Of each drive of the computer.
    units: RefCell<Vec<Unit>>,
    /// Its adaptors, and what it knows of each.
    controllers: Vec<Id<Massbus>>,
    adaptors: RefCell<Vec<Adaptor>>,
}

/// A drive, as its driver sees it.
struct Unit {
    /// The place of its adaptor among those of the driver.
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

impl Hp {
    /// The driver of these adaptors, each with the drives that hang on it, and with what
    /// it has for each drive of the computer.
    pub(crate) fn new(
        order: QueueOrder,
        configs: Vec<HpConfig>,
        adaptors: Vec<(Id<Massbus>, Vec<usize>)>,
    ) -> Self {
        let unit = |drive: usize| Unit {
            // A drive of another driver's hangs on none of them, and is never asked for.
            adaptor: adaptors
                .iter()
                .position(|(_, of)| of.contains(&drive))
                .unwrap_or_default(),
            queue: Queue::new(),
            state: State::Idle,
            found: None,
            errors: 0,
        };
        Self {
            order,
            units: RefCell::new((0..configs.len()).map(unit).collect()),
            configs,
            controllers: adaptors.iter().map(|(id, _)| *id).collect(),
            adaptors: RefCell::new(adaptors.iter().map(|_| Adaptor::default()).collect()),
        }
    }
}

impl Driver for Hp {
    type Controller = Massbus;

    fn controllers(&self) -> Vec<Id<Massbus>> {
        self.controllers.clone()
    }

    fn queueing(&self, drive: usize) -> Option<Time> {
        Some(self.configs[drive].strategy)
    }

    fn insert(&self, hardware: &Hardware, id: RequestId) {
        let unit = &mut self.units.borrow_mut()[hardware.requests[id].device];
        disksort::queue(self.order, &mut unit.queue, (hardware, id));
    }

    async fn give(&self, host: &impl DriverHost, drive: usize) {
        let (idle, adaptor) = {
            let unit = &self.units.borrow()[drive];
            (unit.state == State::Idle, unit.adaptor)
        };
        if idle {
            self.start_unit(host, drive).await;
            self.start_channel(host, adaptor).await;
        }
    }

    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Massbus>) {
        let mut adaptors = self.controllers.iter();
        let adaptor = adaptors.position(|id| *id == controller);
        let adaptor = adaptor.expect("the adaptor is one of this driver's");
        let done = host.ask(controller, |massbus, _| massbus.take_done());
        if let Some(done) = done {
            self.transfer_done(host, adaptor, done).await;
        }
        while let Some(place) = host.ask(controller, |massbus, _| massbus.take_attention()) {
            let drive = host.ask(controller, |massbus, _| massbus.drives().drive(place));
            self.found(host, drive);
            self.start_unit(host, drive).await;
        }
        self.start_channel(host, adaptor).await;
    }
}

/// From the kernel.
impl Hp {
    /// Decides what to do for the first request of a drive: queue it for the
    /// channel, or have the drive search.
    async fn start_unit(&self, host: &impl DriverHost, drive: usize) {
        let first = {
            let mut units = self.units.borrow_mut();
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
        let config = &self.configs[drive];
        host.unqueue(first, config.start).await;
        let mut hardware = host.hardware().borrow_mut();
        let adaptor = self.units.borrow()[drive].adaptor;
        let found = self.units.borrow()[drive].found.is_some();
        let id = self.controllers[adaptor];
        let (massbus, mut parts) = hardware.controller(id);
        let searches = massbus.drives().count() > 1 && !found;
        let slot = searches.then(|| {
            let request = &parts.requests[first];
            let mechanism = &parts.drives[massbus.drives().of(request)];
            search_slot(mechanism, request, config)
        });
        match slot.flatten() {
            Some(slot) => {
                massbus.search(&host.surroundings(), &mut parts, first, slot);
            }
            None => {
                self.units.borrow_mut()[drive].state = State::Transferring;
                self.adaptors.borrow_mut()[adaptor].waiting.push_back(drive);
            }
        }
    }

    /// Gives the channel, if it is free, to the first drive that waits.
    async fn start_channel(&self, host: &impl DriverHost, adaptor: usize) {
        let (drive, repeat) = {
            let mut hardware = host.hardware().borrow_mut();
            let mut adaptors = self.adaptors.borrow_mut();
            let state = &mut adaptors[adaptor];
            let massbus = hardware.controllers.get(self.controllers[adaptor]);
            if !massbus.is_idle() {
                return;
            }
            let Some(drive) = state.waiting.pop_front() else {
                return;
            };
            (drive, std::mem::take(&mut state.repeat))
        };
        let (first, found) = {
            let units = self.units.borrow();
            (units[drive].queue[0].request, units[drive].found)
        };
        host.mark(first, Stage::ChannelWait);
        let register = self.configs[drive].map_register;
        host.map(first, register).await;
        let around = host.surroundings();
        host.ask(self.controllers[adaptor], |massbus, parts| {
            massbus.transfer(&around, parts, first, found, repeat);
        });
    }
}

/// The slot to search for; none if the transfer may start at once.
fn search_slot(mechanism: &Mechanism, request: &Request, config: &HpConfig) -> Option<u32> {
    let place = mechanism.geometry().locate(request.sector);
    let slots = place.sectors_per_track;
    let lead = &config.lead;
    let target = (place.sector + slots - lead.lead_sectors % slots) % slots;
    if place.cylinder != mechanism.cylinder() {
        return Some(target);
    }
    let under_head = mechanism.slot_under_head(hardware_now(request));
    let distance = (target + 2 * slots - under_head - 1) % slots;
    let near = match config.position_test {
        PositionTest::LastSectors => under_head + 1 > slots - lead.window_sectors,
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
impl Hp {
    fn found(&self, host: &impl DriverHost, drive: usize) {
        let mut units = self.units.borrow_mut();
        let unit = &mut units[drive];
        let first = unit.queue[0].request;
        let found = host.hardware().borrow().requests[first].spans.marked();
        unit.found = Some(Time(found.0));
    }

    async fn transfer_done(&self, host: &impl DriverHost, adaptor: usize, done: Done) {
        let drive = host.hardware().borrow().requests[done.transfer].device;
        let cost = self.configs[drive].complete;
        host.spend(Stage::Driver, cost).await;
        if done.data_late {
            let errors = {
                let errors = &mut self.units.borrow_mut()[drive].errors;
                *errors += 1;
                *errors
            };
            if errors > MOST_ERRORS {
                host.give_up(done.transfer, errors);
                return;
            }
            // The driver has the whole transfer done again, before any other.
            let mut adaptors = self.adaptors.borrow_mut();
            adaptors[adaptor].waiting.push_front(drive);
            adaptors[adaptor].repeat = true;
            return;
        }
        let id = {
            let mut units = self.units.borrow_mut();
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
        host.completed(id);
        self.start_unit(host, drive).await;
    }
}
