//! The rendezvous: send, receive and sendrec.
//!
//! Nothing is buffered. A message passes when its sender and its receiver have
//! both come to it; who comes first waits. Only an interrupt does not wait: it
//! is remembered until its task asks for it.

use super::super::pipe::PipeEnd;
use super::super::process::Process;
use super::Minix;
use super::cache::Memory;
use super::errand::Errand;
use crate::calls::{From, How};
use crate::errno::Result;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Who sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    /// What interrupts are messages from.
    Hardware,
    /// The disk task.
    Disk,
    /// The memory task.
    Memory,
    /// The system task, which copies between processes.
    System,
    /// The file server.
    FileServer,
    /// A program, by its number.
    Program(usize),
    /// A daemon that works for a program, for one slot of its ring.
    Daemon { program: usize, slot: u32 },
}

impl Endpoint {
    /// Tasks go before servers, and servers before programs.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Hardware | Self::Disk | Self::Memory | Self::System => 2,
            Self::FileServer => 1,
            Self::Program(_) | Self::Daemon { .. } => 0,
        }
    }
}

/// A process that takes part.
#[derive(Clone)]
pub(crate) struct Party {
    pub(super) endpoint: Endpoint,
    pub(super) process: Rc<Process>,
}

/// What programs ask the file server for. A file is the number of a
/// descriptor; `at` is where in it, where that is not its position, which stays; memory
/// is the program's buffer.
pub(super) enum Call {
    Open {
        path: String,
        how: How,
    },
    Read {
        file: usize,
        at: Option<u64>,
        memory: Memory,
    },
    Write {
        file: usize,
        at: Option<u64>,
        memory: Memory,
    },
    Seek {
        file: usize,
        offset: i64,
        from: From,
    },
    Length {
        file: usize,
    },
    Close {
        file: usize,
    },
    CloseAll,
    TakePipe(PipeEnd),
    Stat {
        path: String,
    },
    Unlink {
        path: String,
    },
    Mkdir {
        path: String,
    },
    Rmdir {
        path: String,
    },
    Rename {
        from: String,
        to: String,
    },
    /// chmod(2), chown(2) and utime(2).
    ChangeAttributes {
        path: String,
    },
    Sync,
    /// A call that Minix does not have.
    None,
    /// Not calls of Minix: what an experimenter does to the cache.
    DropCached {
        path: String,
    },
    DropAll,
    Resident {
        path: String,
        length: u64,
    },
}

/// What a message says.
pub(super) enum Body {
    /// A program's call to the file server.
    Call(Call),
    /// Its answer.
    Reply(Reply),
    /// The file server wants something of a device.
    Device(DeviceRequest),
    /// How many bytes that moved.
    Moved(Result<usize>),
    /// Bytes to be copied between the server and a program.
    Copy(usize),
    /// They are.
    Copied,
    /// Hardware wants its task.
    Interrupt,
}

/// The answer to a call.
pub(super) enum Reply {
    /// Its result.
    Done(Result<u64>),
    /// The descriptor is of a pipe, which the caller waits at by itself.
    Pipe(PipeEnd),
}

/// A device, as the server addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// The memory task's device without data.
    Null,
    /// A drive's partition.
    Drive(u32),
}

impl Device {
    /// The task that drives it.
    pub(super) fn task(self) -> Endpoint {
        match self {
            Self::Null => Endpoint::Memory,
            Self::Drive(_) => Endpoint::Disk,
        }
    }
}

/// What the server wants of a device: bytes from a position on, into or out
/// of one piece of memory after the other.
pub(super) struct DeviceRequest {
    pub(super) device: Device,
    pub(super) write: bool,
    pub(super) position: u64,
    pub(super) pieces: Vec<Memory>,
}

/// A message.
pub(super) struct Message {
    pub(super) from: Endpoint,
    pub(super) errand: Errand,
    pub(super) body: Body,
}

/// From whom a message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepts {
    /// Whoever comes.
    Any,
    /// One alone.
    Only(Endpoint),
}

impl Accepts {
    fn takes(self, from: Endpoint) -> bool {
        match self {
            Self::Any => true,
            Self::Only(one) => one == from,
        }
    }
}

/// All who take part, each with who waits for it.
#[derive(Default)]
pub(super) struct Exchange {
    places: RefCell<BTreeMap<Endpoint, Place>>,
}

struct Place {
    process: Rc<Process>,
    /// It waits for a message.
    receiving: Option<Accepts>,
    arrived: Option<Message>,
    /// Those who wait to be heard, in order; whether each waits for an answer
    /// then.
    senders: VecDeque<(Message, bool)>,
    /// An interrupt came while it did something else.
    interrupted: bool,
}

impl Exchange {
    /// A process takes part from now on.
    pub(super) fn register(&self, endpoint: Endpoint, process: &Rc<Process>) {
        let place = Place {
            process: Rc::clone(process),
            receiving: None,
            arrived: None,
            senders: VecDeque::new(),
            interrupted: false,
        };
        let known = self.places.borrow_mut().insert(endpoint, place);
        assert!(known.is_none(), "{endpoint:?} takes part once");
    }

    /// A process takes part no longer.
    pub(super) fn leave(&self, endpoint: Endpoint) {
        self.places.borrow_mut().remove(&endpoint);
    }

    /// Hands a message over if its receiver waits for it, or leaves it with
    /// those who wait to be heard. The process to be woken, if it passed.
    fn offer(&self, to: Endpoint, message: Message, answered: bool) -> Option<Rc<Process>> {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(&to).expect("the receiver takes part");
        if place
            .receiving
            .is_some_and(|accepts| accepts.takes(message.from))
        {
            place.receiving = None;
            place.arrived = Some(message);
            return Some(Rc::clone(&place.process));
        }
        place.senders.push_back((message, answered));
        None
    }

    /// Whether the sender's message was still not heard.
    fn waits(&self, to: Endpoint, from: Endpoint) -> bool {
        let places = self.places.borrow();
        let senders = places.get(&to).map(|place| &place.senders);
        senders.is_some_and(|all| all.iter().any(|(message, _)| message.from == from))
    }

    /// A message that is there, with the process that may go on for it.
    fn take(&self, me: Endpoint, accepts: Accepts) -> Option<(Message, Option<Rc<Process>>)> {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(&me).expect("the receiver takes part");
        if place.interrupted && accepts.takes(Endpoint::Hardware) {
            place.interrupted = false;
            return Some((interrupt(), None));
        }
        let heard = |(message, _): &(Message, bool)| accepts.takes(message.from);
        let first = place.senders.iter().position(heard)?;
        let (message, answered) = place.senders.remove(first).expect("it was found");
        let sender = (!answered).then(|| Rc::clone(&places[&message.from].process));
        Some((message, sender))
    }

    fn await_message(&self, me: Endpoint, accepts: Accepts) {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(&me).expect("the receiver takes part");
        assert!(place.receiving.is_none(), "{me:?} waits for one message");
        place.receiving = Some(accepts);
    }

    fn arrived(&self, me: Endpoint) -> Message {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(&me).expect("the receiver takes part");
        place.arrived.take().expect("who is woken has a message")
    }

    /// An interrupt for a task. The process to be woken, if it waits for it.
    fn interrupt(&self, task: Endpoint) -> Option<Rc<Process>> {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(&task).expect("the task takes part");
        if place
            .receiving
            .is_some_and(|accepts| accepts.takes(Endpoint::Hardware))
        {
            place.receiving = None;
            place.arrived = Some(interrupt());
            return Some(Rc::clone(&place.process));
        }
        place.interrupted = true;
        None
    }
}

fn interrupt() -> Message {
    Message {
        from: Endpoint::Hardware,
        errand: Errand::default(),
        body: Body::Interrupt,
    }
}

impl Minix {
    /// Sends a message; returns when it was taken.
    pub(super) async fn send(&self, me: &Party, to: Endpoint, errand: &Errand, body: Body) {
        let own = (&*me.process, errand);
        self.work(own, Stage::SystemCall, self.config.message).await;
        let message = Message {
            from: me.endpoint,
            errand: errand.clone(),
            body,
        };
        match self.exchange.offer(to, message, false) {
            Some(receiver) => self.wake(&receiver),
            None => {
                while self.exchange.waits(to, me.endpoint) {
                    self.park(&me.process, "its message to be taken").await;
                }
                errand.mark(Stage::BufferWait, self.sim.now());
            }
        }
    }

    /// Takes a message from one of those who are accepted; waits for it.
    pub(super) async fn receive(&self, me: &Party, accepts: Accepts) -> Message {
        let exchange = &self.exchange;
        if let Some((message, sender)) = exchange.take(me.endpoint, accepts) {
            if let Some(sender) = sender {
                self.wake(&sender);
            }
            if message.from != Endpoint::Hardware {
                // It waited while this process did something else.
                message.errand.mark(Stage::BufferWait, self.sim.now());
            }
            return message;
        }
        exchange.await_message(me.endpoint, accepts);
        self.park(&me.process, "a message").await;
        let message = exchange.arrived(me.endpoint);
        if message.from != Endpoint::Hardware {
            message.errand.mark(Stage::CpuWait, self.sim.now());
        }
        message
    }

    /// Sends a message and waits for the answer: one step, so that the one
    /// who answers never finds the sender still sending.
    pub(super) async fn sendrec(
        &self,
        me: &Party,
        to: Endpoint,
        errand: &Errand,
        body: Body,
    ) -> Body {
        let cost = self.config.message;
        self.work((&me.process, errand), Stage::SystemCall, cost)
            .await;
        let answer = self.exchange_messages(me, to, errand, body).await;
        errand.mark(Stage::CpuWait, self.sim.now());
        answer
    }

    /// The same, where the cost of sending has been paid.
    pub(super) async fn exchange_messages(
        &self,
        me: &Party,
        to: Endpoint,
        errand: &Errand,
        body: Body,
    ) -> Body {
        let exchange = &self.exchange;
        let message = Message {
            from: me.endpoint,
            errand: errand.clone(),
            body,
        };
        exchange.await_message(me.endpoint, Accepts::Only(to));
        if let Some(receiver) = exchange.offer(to, message, true) {
            self.wake(&receiver);
        }
        self.park(&me.process, "the answer to its message").await;
        exchange.arrived(me.endpoint).body
    }

    /// An interrupt becomes a message for a task.
    pub(crate) fn interrupt_task(&self, task: Endpoint) {
        if let Some(process) = self.exchange.interrupt(task) {
            self.wake(&process);
        }
    }
}
