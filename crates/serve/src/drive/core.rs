//! The model of a served drive, its queue, and the requests in flight. It has no clock: it is
//! told what time it is.

use super::{Arrival, Client, Completed, Outcome, RequestKind, ServedRequest};
use diskperf_device::{Completion, Drive, Operation, Refusal};
use diskperf_sim::Time;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

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

/// A command of the drive that is part of a request.
#[derive(Clone, Copy, Debug)]
struct Command {
    /// Index of the request.
    request: usize,
    operation: Operation,
    sector: u64,
    sectors: u32,
}

#[derive(Debug)]
struct InFlight {
    delivery: Delivery,
    arrived: Time,
    /// Commands that have not completed.
    commands_left: usize,
    /// Whether a flush follows the last of them: force unit access of a request that has none
    /// as a command.
    flush_follows: bool,
    /// Index in the arrivals that are kept.
    arrival: Option<usize>,
}

/// The model of a served drive with its requests.
#[derive(Debug)]
pub(super) struct Core {
    drive: Drive,
    requests: Vec<Option<InFlight>>,
    free: Vec<usize>,
    /// Request of each command in the drive, by the place of the command.
    request_of_place: Vec<usize>,
    /// Commands that wait for room in the drive's queue, oldest first.
    commands_awaiting_queue: VecDeque<Command>,
    completed: Vec<(Delivery, Outcome)>,
    arrivals: Option<Vec<Arrival>>,
    is_shut_down: bool,
    /// Virtual time until which the drive's thread sleeps.
    pub(super) planned_wake: Time,
}

impl Core {
    pub(super) fn new(drive: Drive, keeps_arrivals: bool) -> Self {
        Self {
            drive,
            requests: Vec::new(),
            free: Vec::new(),
            request_of_place: Vec::new(),
            commands_awaiting_queue: VecDeque::new(),
            completed: Vec::new(),
            arrivals: keeps_arrivals.then(Vec::new),
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
                _ => return,
            }
        }
    }

    /// Takes a request that arrives now. [`Self::advance`] was called for this time.
    pub(super) fn submit(&mut self, delivery: Delivery, request: ServedRequest, now: Time) {
        if self.is_shut_down {
            self.completed.push((delivery, Outcome::ShutDown));
            return;
        }
        self.drive.run_until(now);
        let arrival = self.arrivals.as_mut().map(|arrivals| {
            arrivals.push(Arrival {
                request,
                arrived: now,
                due: None,
            });
            arrivals.len() - 1
        });
        let in_flight = InFlight {
            delivery,
            arrived: now,
            commands_left: 0,
            flush_follows: request.fua
                && matches!(request.kind, RequestKind::Trim | RequestKind::WriteZeroes),
            arrival,
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
        self.queue_commands(index, request);
        let commands = self.commands_awaiting_queue.len() - before;
        let in_flight = self.requests[index].as_mut();
        in_flight.expect("it is inserted above").commands_left = commands;
        if commands == 0 {
            self.finish(index, now);
        }
        self.submit_waiting();
    }

    /// Divides a request into commands of whole sectors that the drive takes.
    fn queue_commands(&mut self, index: usize, request: ServedRequest) {
        let operation = match request.kind {
            RequestKind::Read | RequestKind::Cache => Operation::Read,
            RequestKind::Write => Operation::Write { fua: request.fua },
            RequestKind::Flush => Operation::Flush,
            RequestKind::Trim => Operation::Discard,
            RequestKind::WriteZeroes => Operation::WriteZeroes,
        };
        let command = |sector, sectors| Command {
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
            self.commands_awaiting_queue.push_back(Command {
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
        if let (Some(arrivals), Some(arrival)) = (&mut self.arrivals, request.arrival) {
            arrivals[arrival].due = Some(due);
        }
        let outcome = Outcome::Done {
            arrived: request.arrived,
            due,
        };
        self.completed.push((request.delivery, outcome));
    }

    /// Returns completions that clients were not told of.
    pub(super) fn take_completed(&mut self) -> Vec<(Delivery, Outcome)> {
        std::mem::take(&mut self.completed)
    }

    /// Returns the arrivals so far; none while requests are in flight, whose completions are
    /// still missing.
    pub(super) fn take_arrivals(&mut self) -> Vec<Arrival> {
        let is_idle = self.is_idle();
        match &mut self.arrivals {
            // Requests in flight still write into the list.
            Some(arrivals) if is_idle => std::mem::take(arrivals),
            _ => Vec::new(),
        }
    }

    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.requests.len()
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.drive.next_due()
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// Ends all requests in flight. The drive stands still from then on.
    pub(super) fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.commands_awaiting_queue.clear();
        let requests = std::mem::take(&mut self.requests).into_iter().flatten();
        let ended = requests.map(|request| (request.delivery, Outcome::ShutDown));
        self.completed.extend(ended);
        self.free.clear();
    }
}
