//! Message passing of Minix by rendezvous: `send`, `receive` and `sendrec`.
//!
//! Messages are not buffered. A message passes when its sender and its receiver are both ready; the
//! first of them waits. Only an interrupt does not wait: it stays pending until its task receives
//! it.

use super::super::pipe::PipeEnd;
use super::super::process::Process;
use super::MinixKernel;
use super::cache::SharedBytes;
use super::call_account::CallAccount;
use crate::calls::{OpenFlags, SeekOrigin};
use crate::errno::Result;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Sender or receiver of Minix messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    /// Hardware, as the sender of interrupt messages.
    Hardware,
    /// Disk task, which controls the drives.
    DiskTask,
    /// Memory task, which has the null device.
    MemoryTask,
    /// System task, which copies between processes.
    SystemTask,
    /// File server, which handles the system calls.
    FileServer,
    /// Program, by its process number.
    UserProgram(usize),
    /// Daemon that performs the requests of one slot of a program's asynchronous ring.
    RingDaemon { program: usize, slot: u32 },
}

impl Endpoint {
    /// Returns the scheduling rank of an endpoint's process. Tasks go before servers, and servers
    /// before programs.
    pub(super) fn process_rank(self) -> u8 {
        match self {
            Self::Hardware | Self::DiskTask | Self::MemoryTask | Self::SystemTask => 2,
            Self::FileServer => 1,
            Self::UserProgram(_) | Self::RingDaemon { .. } => 0,
        }
    }
}

/// Process that exchanges Minix messages, with its endpoint.
#[derive(Clone)]
pub(crate) struct MessageParty {
    pub(super) endpoint: Endpoint,
    pub(super) process: Rc<Process>,
}

/// System call of a program, as a message to the Minix file server. `file` is a descriptor number.
/// `at` is an explicit offset, which leaves the file position unchanged. `memory` is the program's
/// buffer.
pub(super) enum FileServerCall {
    Open {
        path: String,
        how: OpenFlags,
    },
    Read {
        file: usize,
        at: Option<u64>,
        memory: SharedBytes,
    },
    Write {
        file: usize,
        at: Option<u64>,
        memory: SharedBytes,
    },
    Seek {
        file: usize,
        offset: i64,
        from: SeekOrigin,
    },
    FileLength {
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
    /// Change of mode, owner or times of a file: chmod(2), chown(2) and utime(2).
    ChangeAttributes {
        path: String,
    },
    Sync,
    /// System call that Minix does not have.
    NoReply,
    /// Drop of a file's cached blocks, for measurements. Neither this call nor the following ones
    /// exist in Minix.
    DropCachedBlocks {
        path: String,
    },
    DropAllBlocks,
    CachedBytes {
        path: String,
        length: u64,
    },
}

/// Contents of a Minix message.
pub(super) enum MessageBody {
    /// System call of a program to the file server.
    FileServerCall(FileServerCall),
    /// Reply of the file server to a system call.
    Reply(Reply),
    /// Request of the file server to a device's task.
    DeviceRequest(DeviceRequest),
    /// Reply to a device request, with the number of bytes moved.
    DeviceReply(Result<usize>),
    /// Request to the system task to copy this number of bytes between the server and a program.
    CopyRequest(usize),
    /// Reply of the system task after a copy.
    CopyReply,
    /// Interrupt of the hardware for a task.
    Interrupt,
}

/// Reply of the Minix file server to a system call.
pub(super) enum Reply {
    /// Result of the completed call.
    ValueReply(Result<u64>),
    /// Pipe end behind the descriptor. The caller itself performs the transfer and waits for the
    /// other end.
    PipeReply(PipeEnd),
}

/// Device, as the Minix file server addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MinixDevice {
    /// Null device of the memory task, which has no data.
    NullDevice,
    /// Partition of a drive.
    DriveDevice(u32),
}

impl MinixDevice {
    /// Returns the task that controls the device.
    pub(super) fn driver_endpoint(self) -> Endpoint {
        match self {
            Self::NullDevice => Endpoint::MemoryTask,
            Self::DriveDevice(_) => Endpoint::DiskTask,
        }
    }
}

/// Request of the file server to a device: a transfer of consecutive bytes from a position on, to
/// or from several pieces of memory in order.
pub(super) struct DeviceRequest {
    pub(super) device: MinixDevice,
    pub(super) is_write: bool,
    pub(super) position: u64,
    pub(super) buffers: Vec<SharedBytes>,
}

/// Minix message with its sender and the time account of its call.
pub(super) struct Message {
    pub(super) sender: Endpoint,
    pub(super) account: CallAccount,
    pub(super) body: MessageBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptedSenders {
    AnySender,
    /// Messages from this sender only.
    OnlySender(Endpoint),
}

impl AcceptedSenders {
    fn includes(self, from: Endpoint) -> bool {
        match self {
            Self::AnySender => true,
            Self::OnlySender(one) => one == from,
        }
    }
}

/// All processes that exchange messages, each with its waiting senders.
#[derive(Default)]
pub(super) struct Exchange {
    mailboxes: RefCell<BTreeMap<Endpoint, Mailbox>>,
}

struct Mailbox {
    process: Rc<Process>,
    /// Senders that the process accepts while it waits for a message; `None` while it does not
    /// wait.
    awaited_senders: Option<AcceptedSenders>,
    arrived_message: Option<Message>,
    /// Waiting messages in order. The flag tells whether the sender then waits for an answer.
    waiting_senders: VecDeque<(Message, bool)>,
    has_pending_interrupt: bool,
}

impl Exchange {
    /// Adds a process to the message exchange. Panics if its endpoint exists already.
    pub(super) fn register(&self, endpoint: Endpoint, process: &Rc<Process>) {
        let place = Mailbox {
            process: Rc::clone(process),
            awaited_senders: None,
            arrived_message: None,
            waiting_senders: VecDeque::new(),
            has_pending_interrupt: false,
        };
        let known = self.mailboxes.borrow_mut().insert(endpoint, place);
        assert!(known.is_none(), "{endpoint:?} is registered once");
    }

    /// Removes a process from the message exchange.
    pub(super) fn unregister(&self, endpoint: Endpoint) {
        self.mailboxes.borrow_mut().remove(&endpoint);
    }

    /// Delivers a message if its receiver waits for it, and returns the receiver's process, which
    /// the caller must wake. Queues the message otherwise.
    fn offer_message(&self, to: Endpoint, message: Message, answered: bool) -> Option<Rc<Process>> {
        let mut places = self.mailboxes.borrow_mut();
        let place = places.get_mut(&to).expect("the receiver is registered");
        if place
            .awaited_senders
            .is_some_and(|accepts| accepts.includes(message.sender))
        {
            place.awaited_senders = None;
            place.arrived_message = Some(message);
            return Some(Rc::clone(&place.process));
        }
        place.waiting_senders.push_back((message, answered));
        None
    }

    /// Reports whether a sender's message is still queued at a receiver.
    fn is_queued(&self, to: Endpoint, from: Endpoint) -> bool {
        let places = self.mailboxes.borrow();
        let senders = places.get(&to).map(|place| &place.waiting_senders);
        senders.is_some_and(|all| all.iter().any(|(message, _)| message.sender == from))
    }

    /// Takes the first pending message that the receiver accepts. Returns the sender's process too
    /// if it must be woken.
    fn take_message(
        &self,
        me: Endpoint,
        accepts: AcceptedSenders,
    ) -> Option<(Message, Option<Rc<Process>>)> {
        let mut places = self.mailboxes.borrow_mut();
        let place = places.get_mut(&me).expect("the receiver is registered");
        if place.has_pending_interrupt && accepts.includes(Endpoint::Hardware) {
            place.has_pending_interrupt = false;
            return Some((interrupt_message(), None));
        }
        let heard = |(message, _): &(Message, bool)| accepts.includes(message.sender);
        let first = place.waiting_senders.iter().position(heard)?;
        let (message, answered) = place.waiting_senders.remove(first).expect("it was found");
        let sender = (!answered).then(|| Rc::clone(&places[&message.sender].process));
        Some((message, sender))
    }

    fn await_message(&self, me: Endpoint, accepts: AcceptedSenders) {
        let mut places = self.mailboxes.borrow_mut();
        let place = places.get_mut(&me).expect("the receiver is registered");
        assert!(
            place.awaited_senders.is_none(),
            "{me:?} waits for one message"
        );
        place.awaited_senders = Some(accepts);
    }

    fn take_arrived_message(&self, me: Endpoint) -> Message {
        let mut places = self.mailboxes.borrow_mut();
        let place = places.get_mut(&me).expect("the receiver is registered");
        place
            .arrived_message
            .take()
            .expect("a woken receiver has a message")
    }

    /// Delivers an interrupt to a task that waits for it, and returns the task's process, which the
    /// caller must wake. Marks the interrupt as pending otherwise.
    fn deliver_interrupt(&self, task: Endpoint) -> Option<Rc<Process>> {
        let mut places = self.mailboxes.borrow_mut();
        let place = places.get_mut(&task).expect("the task is registered");
        if place
            .awaited_senders
            .is_some_and(|accepts| accepts.includes(Endpoint::Hardware))
        {
            place.awaited_senders = None;
            place.arrived_message = Some(interrupt_message());
            return Some(Rc::clone(&place.process));
        }
        place.has_pending_interrupt = true;
        None
    }
}

fn interrupt_message() -> Message {
    Message {
        sender: Endpoint::Hardware,
        account: CallAccount::default(),
        body: MessageBody::Interrupt,
    }
}

impl MinixKernel {
    /// Sends a Minix message. Returns when the receiver has taken it.
    pub(super) async fn send_message(
        &self,
        me: &MessageParty,
        to: Endpoint,
        account: &CallAccount,
        body: MessageBody,
    ) {
        let own = (&*me.process, account);
        self.spend_on_call(own, Stage::SystemCall, self.config.message_time)
            .await;
        let message = Message {
            sender: me.endpoint,
            account: account.clone(),
            body,
        };
        match self.message_exchange.offer_message(to, message, false) {
            Some(receiver) => self.wake_process(&receiver),
            None => {
                while self.message_exchange.is_queued(to, me.endpoint) {
                    self.wait_for_wake_up(&me.process, "the receipt of its message")
                        .await;
                }
                account.mark_stage(Stage::BufferWait, self.simulation.now());
            }
        }
    }

    /// Receives a Minix message from an accepted sender, and waits for one if none is pending.
    pub(super) async fn receive_message(
        &self,
        me: &MessageParty,
        accepts: AcceptedSenders,
    ) -> Message {
        let exchange = &self.message_exchange;
        if let Some((message, sender)) = exchange.take_message(me.endpoint, accepts) {
            if let Some(sender) = sender {
                self.wake_process(&sender);
            }
            if message.sender != Endpoint::Hardware {
                // It waited while this process did something else.
                message
                    .account
                    .mark_stage(Stage::BufferWait, self.simulation.now());
            }
            return message;
        }
        exchange.await_message(me.endpoint, accepts);
        self.wait_for_wake_up(&me.process, "a message").await;
        let message = exchange.take_arrived_message(me.endpoint);
        if message.sender != Endpoint::Hardware {
            message
                .account
                .mark_stage(Stage::CpuWait, self.simulation.now());
        }
        message
    }

    /// Sends a Minix message and waits for the answer. Both are one step, so that the receiver
    /// never answers a process that is still sending.
    pub(super) async fn send_and_receive(
        &self,
        me: &MessageParty,
        to: Endpoint,
        account: &CallAccount,
        body: MessageBody,
    ) -> MessageBody {
        let cost = self.config.message_time;
        self.spend_on_call((&me.process, account), Stage::SystemCall, cost)
            .await;
        let answer = self.exchange_messages(me, to, account, body).await;
        account.mark_stage(Stage::CpuWait, self.simulation.now());
        answer
    }

    /// Sends a Minix message and waits for the answer, without spending the processor time of
    /// sending. The caller has spent it before.
    pub(super) async fn exchange_messages(
        &self,
        me: &MessageParty,
        to: Endpoint,
        account: &CallAccount,
        body: MessageBody,
    ) -> MessageBody {
        let exchange = &self.message_exchange;
        let message = Message {
            sender: me.endpoint,
            account: account.clone(),
            body,
        };
        exchange.await_message(me.endpoint, AcceptedSenders::OnlySender(to));
        if let Some(receiver) = exchange.offer_message(to, message, true) {
            self.wake_process(&receiver);
        }
        self.wait_for_wake_up(&me.process, "the reply to its message")
            .await;
        exchange.take_arrived_message(me.endpoint).body
    }

    pub(crate) fn interrupt_task(&self, task: Endpoint) {
        if let Some(process) = self.message_exchange.deliver_interrupt(task) {
            self.wake_process(&process);
        }
    }
}
