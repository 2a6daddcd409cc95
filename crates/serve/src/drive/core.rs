//! The model of a served drive, its queue, and the requests in flight. It has no clock: it is
//! told what time it is.

use super::activity::{ACTIVITY_PERIODS_MAX, ActivityPeriod, arm_periods, take_recorded};
use super::{
    Client, Completed, DriveEvent, Outcome, RequestKind, ServedRequest, TakenEvents, TimedRequest,
};
use diskperf_device::faults::{FaultCompletion, FaultEffects, FaultRequest, Faults};
use diskperf_device::{Completion, Drive, Operation, Refusal};
use diskperf_sim::Time;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// Maximum number of events that wait to be taken. Further ones are counted.
const EVENTS_MAX: usize = 1 << 20;

/// Client and tag that a completion goes to.
#[derive(Clone)]
pub(super) struct Delivery {
    client: Arc<dyn Client>,
    tag: u64,
}

impl Delivery {
    pub(super) fn new(client: &Arc<dyn Client>, tag: u64) -> Self {
        Self {
            client: Arc::clone(client),
            tag,
        }
    }

    pub(super) fn deliver(&self, outcome: Outcome) {
        let tag = self.tag;
        self.client.complete(Completed { tag, outcome });
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Delivery")
            .field("tag", &self.tag)
            .finish()
    }
}

/// Command to the modelled drive, the whole or a part of a request.
#[derive(Clone, Copy, Debug)]
struct DriveCommand {
    /// Index of the request.
    request: usize,
    operation: Operation,
    sector: u64,
    sectors: u32,
}

#[derive(Debug)]
struct InFlightRequest {
    arrival: ArrivedRequest,
    request: FaultRequest,
    effects: FaultEffects,
    /// Commands that have not completed.
    commands_left: usize,
    /// Whether a flush follows the last of them: force unit access of a request that has none
    /// as a command.
    flush_follows: bool,
}

/// Request that a client waits for.
#[derive(Debug)]
struct ArrivedRequest {
    delivery: Delivery,
    arrived: Time,
    /// Number in the order of arrivals.
    number: u64,
    /// Index in the arrivals that are kept.
    index: Option<usize>,
}

/// A request that the model has completed, and that faults hold.
#[derive(Debug)]
struct Held {
    arrival: ArrivedRequest,
    /// Virtual time of its completion without hangs.
    due: Time,
    fails: bool,
}

/// Place of a held request: the virtual time of its release, and a number in the order of the
/// model's completions.
type HeldKey = (Time, u64);

/// The model of a served drive with its requests.
#[derive(Debug)]
pub(super) struct Core {
    drive: Drive,
    faults: Faults,
    held: BTreeMap<HeldKey, Held>,
    held_count: u64,
    requests: Vec<Option<InFlightRequest>>,
    free: Vec<usize>,
    /// Request of each command in the drive, by the place of the command.
    request_of_place: Vec<usize>,
    /// Commands that wait for room in the drive's queue, oldest first.
    commands_awaiting_queue: VecDeque<DriveCommand>,
    completed: Vec<(Delivery, Outcome)>,
    arrivals: Option<Vec<TimedRequest>>,
    arrival_count: u64,
    events: Option<TakenEvents>,
    /// Work of the arm for requests; none unless somebody watches the drive.
    activity: Option<VecDeque<ActivityPeriod>>,
    is_shut_down: bool,
    /// Virtual time until which the drive's thread sleeps.
    pub(super) planned_wake: Time,
}

impl Core {
    pub(super) fn new(drive: Drive, faults: Faults, keeps_arrivals: bool) -> Self {
        Self {
            drive,
            faults,
            held: BTreeMap::new(),
            held_count: 0,
            requests: Vec::new(),
            free: Vec::new(),
            request_of_place: Vec::new(),
            commands_awaiting_queue: VecDeque::new(),
            completed: Vec::new(),
            arrivals: keeps_arrivals.then(Vec::new),
            arrival_count: 0,
            events: None,
            activity: None,
            is_shut_down: false,
            planned_wake: Time::NEVER,
        }
    }

    /// Does all that happens in the drive up to a time. Commands that wait for the queue enter
    /// it when a completion makes room.
    pub(super) fn advance(&mut self, now: Time) {
        while !self.is_shut_down {
            loop {
                let next = self.drive.completions().next();
                let Some(completion) = next else { break };
                self.complete(&completion);
            }
            self.submit_waiting();
            match self.drive.next_due() {
                Some(due) if due <= now => self.drive.run_until(due),
                _ => break,
            }
        }
        self.release(now);
    }

    /// Completes held requests whose time has come.
    fn release(&mut self, now: Time) {
        while let Some(entry) = self.held.first_entry().filter(|first| first.key().0 <= now) {
            let ((due, _), held) = entry.remove_entry();
            let fails = held.fails;
            self.deliver(held.arrival, FaultCompletion { due, fails });
        }
    }

    /// Hands a completed request over, for [`Self::take_completed`].
    fn deliver(&mut self, arrival: ArrivedRequest, completion: FaultCompletion) {
        let FaultCompletion { due, fails } = completion;
        let ArrivedRequest {
            delivery,
            arrived,
            number,
            index,
        } = arrival;
        if let (Some(arrivals), Some(index)) = (&mut self.arrivals, index) {
            arrivals[index].due = Some(due);
        }
        let time = due;
        self.keep_event(DriveEvent::Completed {
            number,
            time,
            fails,
        });
        let outcome = match fails {
            true => Outcome::Failed { arrived, due },
            false => Outcome::Done { arrived, due },
        };
        self.completed.push((delivery, outcome));
    }

    fn keep_event(&mut self, event: DriveEvent) {
        match &mut self.events {
            Some(kept) if kept.events.len() < EVENTS_MAX => kept.events.push(event),
            Some(kept) => kept.lost += 1,
            None => {}
        }
    }

    pub(super) fn keep_events(&mut self) {
        self.events.get_or_insert_default();
    }

    pub(super) fn take_events(&mut self) -> TakenEvents {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Keeps the work of the drive's parts from now on, for [`Self::take_activity`].
    pub(super) fn keep_activity(&mut self) {
        if self.activity.is_none() {
            self.drive.record();
            self.activity = Some(VecDeque::new());
        }
    }

    /// Returns the work of the drive's parts since the last call.
    pub(super) fn take_activity(&mut self) -> Vec<ActivityPeriod> {
        let Some(kept) = &mut self.activity else {
            return Vec::new();
        };
        let mut periods: Vec<_> = std::mem::take(kept).into();
        periods.extend(take_recorded(&mut self.drive));
        periods
    }

    pub(super) fn drive(&self) -> &Drive {
        &self.drive
    }

    pub(super) fn in_flight(&self) -> usize {
        self.requests.len() - self.free.len() + self.held.len()
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Switches a fault, and sets the release of held requests anew. Returns whether there is
    /// such a fault.
    pub(super) fn switch_fault(&mut self, name: &str, is_on: bool, now: Time) -> bool {
        let is_known = self.faults.switch(name, is_on, now);
        for ((_, number), held) in std::mem::take(&mut self.held) {
            let release = self.faults.release(held.due).max(now);
            self.held.insert((release, number), held);
        }
        is_known
    }

    /// Takes a request that arrives now. [`Self::advance`] was called for this time.
    pub(super) fn submit(
        &mut self,
        delivery: Delivery,
        request: ServedRequest,
        now: Time,
    ) -> FaultEffects {
        if self.is_shut_down {
            self.completed.push((delivery, Outcome::ShutDown));
            return FaultEffects::default();
        }
        self.drive.run_until(now);
        let faulty = FaultRequest {
            operation: operation(request),
            offset: request.offset,
            bytes: request.bytes,
        };
        let effects = self.faults.arrive(now, faulty);
        let index = self.arrivals.as_mut().map(|arrivals| {
            arrivals.push(TimedRequest {
                request,
                arrived: now,
                due: None,
            });
            arrivals.len() - 1
        });
        self.arrival_count += 1;
        let arrival = ArrivedRequest {
            delivery,
            arrived: now,
            number: self.arrival_count,
            index,
        };
        self.keep_event(DriveEvent::Arrived {
            number: arrival.number,
            request,
            time: now,
        });
        let in_flight = InFlightRequest {
            arrival,
            request: faulty,
            effects: effects.clone(),
            commands_left: 0,
            flush_follows: request.fua
                && matches!(request.kind, RequestKind::Trim | RequestKind::WriteZeroes),
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.requests[index] = Some(in_flight);
                index
            }
            None => {
                self.requests.push(Some(in_flight));
                self.requests.len() - 1
            }
        };
        let before = self.commands_awaiting_queue.len();
        self.queue_commands(index, request, &effects);
        let commands = self.commands_awaiting_queue.len() - before;
        let in_flight = self.requests[index].as_mut();
        in_flight.expect("it is inserted above").commands_left = commands;
        if commands == 0 {
            self.finish(index, now);
        }
        self.submit_waiting();
        effects
    }

    /// Divides a request into commands of whole sectors that the drive takes.
    fn queue_commands(&mut self, index: usize, request: ServedRequest, effects: &FaultEffects) {
        let operation = match operation(request) {
            _ if effects.is_dead => return,
            Operation::Flush if effects.ignores_durability => return,
            Operation::Write { fua } => Operation::Write {
                fua: fua && !effects.ignores_durability,
            },
            operation => operation,
        };
        let command = |sector, sectors| DriveCommand {
            request: index,
            operation,
            sector,
            sectors,
        };
        if operation == Operation::Flush {
            self.commands_awaiting_queue.push_back(command(0, 0));
            return;
        }
        let device = self.drive.device();
        let sector_bytes = u64::from(device.sector_bytes());
        let moves = matches!(operation, Operation::Read | Operation::Write { .. });
        let bytes_max = device.request_bytes_max().filter(|_| moves);
        let sectors_max =
            bytes_max.map_or(u64::from(u32::MAX), |bytes| bytes as u64 / sector_bytes);
        let (mut sector, end) = match operation {
            // A sector of which a part is to be kept cannot be discarded.
            Operation::Discard => (
                request.offset.div_ceil(sector_bytes),
                (request.offset + request.bytes) / sector_bytes,
            ),
            _ if request.bytes == 0 => return,
            _ => (
                request.offset / sector_bytes,
                (request.offset + request.bytes).div_ceil(sector_bytes),
            ),
        };
        while sector < end {
            let sectors = (end - sector).min(sectors_max);
            let command = command(sector, sectors as u32);
            self.commands_awaiting_queue.push_back(command);
            sector += sectors;
        }
    }

    fn submit_waiting(&mut self) {
        while let Some(command) = self.commands_awaiting_queue.front() {
            let submitted = self
                .drive
                .submit(command.operation, command.sector, command.sectors);
            match submitted {
                Ok(id) => {
                    let place = id.slot();
                    if place >= self.request_of_place.len() {
                        self.request_of_place.resize(place + 1, usize::MAX);
                    }
                    self.request_of_place[place] = command.request;
                    self.commands_awaiting_queue.pop_front();
                }
                Err(Refusal::QueueFull) => return,
                Err(refusal) => unreachable!("the range was checked: {refusal}"),
            }
        }
    }

    /// A command of a request has completed.
    fn complete(&mut self, completion: &Completion) {
        if let Some(kept) = &mut self.activity {
            kept.extend(arm_periods(self.drive.device(), completion));
            let excess = kept.len().saturating_sub(ACTIVITY_PERIODS_MAX);
            kept.drain(..excess);
        }
        let index = self.request_of_place[completion.id.slot()];
        let request = self.requests[index].as_mut();
        let request = request.expect("commands belong to requests in flight");
        request.commands_left -= 1;
        if request.commands_left > 0 {
            return;
        }
        if request.flush_follows {
            request.flush_follows = false;
            request.commands_left = 1;
            self.commands_awaiting_queue.push_back(DriveCommand {
                request: index,
                operation: Operation::Flush,
                sector: 0,
                sectors: 0,
            });
            return;
        }
        self.finish(index, completion.completed);
    }

    fn finish(&mut self, index: usize, due: Time) {
        let request = self.requests[index].take();
        let request = request.expect("a request finishes once");
        self.free.push(index);
        let InFlightRequest {
            arrival,
            request,
            effects,
            ..
        } = request;
        let mut completion = FaultCompletion { due, fails: false };
        if self.faults.is_empty() {
            return self.deliver(arrival, completion);
        }
        completion = self
            .faults
            .complete(request, &effects, arrival.arrived, due);
        let release = self.faults.release(completion.due);
        self.held_count += 1;
        let held = Held {
            arrival,
            due: completion.due,
            fails: completion.fails,
        };
        self.held.insert((release, self.held_count), held);
    }

    /// Returns completions that clients were not told of.
    pub(super) fn take_completed(&mut self) -> Vec<(Delivery, Outcome)> {
        std::mem::take(&mut self.completed)
    }

    /// Returns the arrivals so far; none while requests are in flight, whose completions are
    /// still missing.
    pub(super) fn take_arrivals(&mut self) -> Vec<TimedRequest> {
        let is_idle = self.is_idle();
        match &mut self.arrivals {
            // Requests in flight still write into the list.
            Some(arrivals) if is_idle => std::mem::take(arrivals),
            _ => Vec::new(),
        }
    }

    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.requests.len() && self.held.is_empty()
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        let release = self
            .held
            .first_key_value()
            .map(|((release, _), _)| *release);
        let due = self.drive.next_due();
        due.into_iter().chain(release).min()
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// Ends all requests in flight. The drive stands still from then on.
    pub(super) fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.commands_awaiting_queue.clear();
        let requests = std::mem::take(&mut self.requests).into_iter().flatten();
        let ended = requests.map(|request| (request.arrival.delivery, Outcome::ShutDown));
        self.completed.extend(ended);
        self.free.clear();
        let held = std::mem::take(&mut self.held).into_values();
        let held = held.map(|held| (held.arrival.delivery, Outcome::ShutDown));
        self.completed.extend(held);
    }
}

/// Returns the operation of the drive that a request is.
fn operation(request: ServedRequest) -> Operation {
    match request.kind {
        RequestKind::Read | RequestKind::Cache => Operation::Read,
        RequestKind::Write => Operation::Write { fua: request.fua },
        RequestKind::Flush => Operation::Flush,
        RequestKind::Trim => Operation::Discard,
        RequestKind::WriteZeroes => Operation::WriteZeroes,
    }
}
