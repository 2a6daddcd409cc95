//! A connection: its handshake, its requests, and their answers.

use super::Export;
use super::admission::Admission;
use super::handshake::{Handshake, OPTION_BYTES_MAX, OPTION_HEADER_BYTES, OptionHeader, Step};
use super::output::ReplySender;
use super::socket::{Input, Socket};
use super::wire::{
    Agreement, ClientCommand, EXTENTS_MAX, NbdError, PAYLOAD_BYTES_MAX, REQUEST_BYTES, Reply,
    RequestHeader,
};
use crate::{Client, Completed, Outcome, RequestKind, Served, ServedRequest};
use diskperf_device::faults::FaultEffects;
use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a client has for the whole handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(30);

/// Bytes that an answer to a block status request is counted with.
const EXTENTS_BYTES: u64 = 8 * EXTENTS_MAX as u64;

/// A connection in the transmission phase.
struct Transmission {
    served: Arc<Served>,
    export: Export,
    agreed: Agreement,
    sender: ReplySender,
    admission: Arc<Admission>,
    /// Requests of which one of two things has happened: the drive completed them, or their
    /// data are read or written.
    halves: Mutex<HashMap<u64, Half>>,
}

enum Half {
    Due(Outcome),
    Ready(Ready),
}

/// A request whose data are read or written.
struct Ready {
    header: RequestHeader,
    kind: RequestKind,
    /// Data of a read, or why the request fails.
    data: Result<Vec<u8>, NbdError>,
    admitted_bytes: u64,
}

/// Serves a client until it disconnects or serving ends.
///
/// # Errors
///
/// The client is gone, or broke the protocol.
pub(super) fn serve(
    served: &Arc<Served>,
    export: Export,
    socket: &Arc<Socket>,
    is_ending: &AtomicBool,
) -> io::Result<()> {
    let mut input = Input::new(socket);
    input.deadline = Instant::now().checked_add(HANDSHAKE_MAX);
    let Some(agreed) = shake_hands(export, socket, &mut input, is_ending)? else {
        return Ok(());
    };
    input.deadline = None;
    served.statistics.add_connection();
    let admission = Arc::new(Admission::default());
    let transmission = Arc::new(Transmission {
        served: Arc::clone(served),
        export,
        agreed,
        sender: ReplySender::new(Arc::clone(socket), Arc::clone(&admission)),
        admission,
        halves: Mutex::default(),
    });
    thread::scope(|scope| {
        let sending = thread::Builder::new().name("nbd send".to_owned());
        sending.spawn_scoped(scope, || transmission.sender.run())?;
        let _closing = Closing(&transmission.sender);
        let received = transmission.receive(&mut input);
        transmission.admission.wait_until_empty();
        received
    })
}

/// Ends the sending thread when the receiving one ends, even by a panic.
struct Closing<'s>(&'s ReplySender);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Answers options until the transmission phase; `None` where the client or the server ends
/// the connection before.
fn shake_hands(
    export: Export,
    socket: &Socket,
    input: &mut Input<'_>,
    is_ending: &AtomicBool,
) -> io::Result<Option<Agreement>> {
    let deadline = input.deadline;
    send_all(socket, &Handshake::greeting(), deadline)?;
    let mut handshake = Handshake::new(export);
    let mut client_flags = [0; 4];
    input.read_exact(&mut client_flags)?;
    if handshake.take_client_flags(u32::from_be_bytes(client_flags)) == Step::Close {
        return Ok(None);
    }
    loop {
        let mut header = [0; OPTION_HEADER_BYTES];
        input.read_exact(&mut header)?;
        let Some(header) = OptionHeader::parse(&header) else {
            return Ok(None);
        };
        let mut reply = Vec::new();
        let step = if header.bytes > OPTION_BYTES_MAX {
            input.discard(header.bytes.into())?;
            Handshake::refuse_long(header.option, &mut reply)
        } else {
            let mut data = vec![0; header.bytes as usize];
            input.read_exact(&mut data)?;
            match is_ending.load(Ordering::Relaxed) {
                true => Handshake::refuse_ending(header.option, &mut reply),
                false => handshake.answer(header.option, &data, &mut reply),
            }
        };
        send_all(socket, &reply, deadline)?;
        match step {
            Step::Continue => {}
            Step::Close => return Ok(None),
            Step::Transmit => return Ok(Some(handshake.agreed())),
        }
    }
}

fn send_all(socket: &Socket, mut bytes: &[u8], deadline: Option<Instant>) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write_vectored(&[IoSlice::new(bytes)]) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Err(ErrorKind::TimedOut.into());
                }
                socket.wait_until_writable()?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Transmission {
    /// Reads requests until the client disconnects.
    fn receive(self: &Arc<Self>, input: &mut Input<'_>) -> io::Result<()> {
        let client: Arc<dyn Client> = Arc::clone(self) as Arc<dyn Client>;
        for tag in 0.. {
            let mut header = [0; REQUEST_BYTES];
            input.read_exact(&mut header)?;
            let Some(header) = RequestHeader::parse(&header) else {
                return Err(ErrorKind::InvalidData.into());
            };
            if header.data_bytes() > PAYLOAD_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            match header.validate(&self.export, self.agreed) {
                Ok(ClientCommand::Disconnect) => return Ok(()),
                Ok(ClientCommand::BlockStatus { only_first }) => {
                    self.answer_block_status(&header, only_first);
                }
                Ok(ClientCommand::Drive {
                    kind,
                    fua,
                    keep_allocated,
                }) => {
                    let request = ServedRequest {
                        kind,
                        offset: header.offset,
                        bytes: header.bytes.into(),
                        fua,
                    };
                    let taken = Taken {
                        tag,
                        header,
                        request,
                        keep_allocated,
                    };
                    self.take(&client, &taken, input)?;
                }
                Err(error) => {
                    input.discard(header.data_bytes().into())?;
                    self.admission.admit(0);
                    self.refuse(&header, error, 0);
                }
            }
        }
        Ok(())
    }

    /// Submits a request to the drive, and reads or writes its data meanwhile.
    fn take(
        &self,
        client: &Arc<dyn Client>,
        taken: &Taken,
        input: &mut Input<'_>,
    ) -> io::Result<()> {
        let (kind, header) = (taken.request.kind, &taken.header);
        let admitted_bytes = match kind {
            RequestKind::Read | RequestKind::Write => taken.request.bytes,
            _ => 0,
        };
        self.admission.admit(admitted_bytes);
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(admitted_bytes as usize).is_err() {
            let discarded = input.discard(header.data_bytes().into());
            self.refuse(header, NbdError::NoMemory, admitted_bytes);
            return discarded;
        }
        bytes.resize(admitted_bytes as usize, 0);
        if kind == RequestKind::Write
            && let Err(error) = input.read_exact(&mut bytes)
        {
            self.admission.release(admitted_bytes);
            return Err(error);
        }
        let effects = self.served.drive.submit(client, taken.tag, taken.request);
        let data = self.move_data(taken, bytes, &effects);
        let ready = Ready {
            header: *header,
            kind,
            data: data.map_err(error_number),
            admitted_bytes,
        };
        self.meet(taken.tag, Half::Ready(ready));
        Ok(())
    }

    /// Reads or writes the data of a request. Returns those of a read.
    fn move_data(
        &self,
        taken: &Taken,
        mut bytes: Vec<u8>,
        effects: &FaultEffects,
    ) -> io::Result<Vec<u8>> {
        let served = &self.served;
        let ServedRequest {
            kind,
            offset,
            bytes: length,
            ..
        } = taken.request;
        match kind {
            RequestKind::Read => served.read(offset, &mut bytes, effects).map(|()| bytes),
            RequestKind::Write => served.write(offset, &bytes, effects).map(|()| Vec::new()),
            RequestKind::Trim | RequestKind::WriteZeroes => served
                .zero(offset, length, taken.keep_allocated, effects)
                .map(|()| Vec::new()),
            RequestKind::Flush | RequestKind::Cache => Ok(Vec::new()),
        }
    }

    /// Answers a request once the drive has completed it and its data are moved, whichever
    /// comes second.
    fn meet(&self, tag: u64, half: Half) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(other) = halves.remove(&tag) else {
            halves.insert(tag, half);
            return;
        };
        drop(halves);
        match (half, other) {
            (Half::Due(outcome), Half::Ready(ready)) | (Half::Ready(ready), Half::Due(outcome)) => {
                self.answer(outcome, ready);
            }
            _ => unreachable!("a request completes once and is ready once"),
        }
    }

    fn answer(&self, outcome: Outcome, ready: Ready) {
        let (header, statistics) = (&ready.header, &self.served.statistics);
        let error = |error| Reply::error(header, self.agreed, error);
        let reply = match (outcome, ready.data) {
            (Outcome::ShutDown, _) => error(NbdError::ShutDown),
            (Outcome::Failed { .. }, _) => error(NbdError::Io),
            (_, Err(number)) => error(number),
            (Outcome::Done { arrived, due }, Ok(data)) => {
                let reply = match ready.kind {
                    RequestKind::Read => Reply::data(header, self.agreed, data),
                    _ => Reply::done(header),
                };
                let bytes = match ready.kind {
                    RequestKind::Flush => 0,
                    _ => header.bytes.into(),
                };
                self.sender.send(reply, ready.admitted_bytes);
                let due_instant = self.served.drive.clock().instant(due);
                let lateness = Instant::now().saturating_duration_since(due_instant);
                statistics.add(ready.kind, bytes, due - arrived, lateness);
                return;
            }
        };
        self.sender.send(reply, ready.admitted_bytes);
        statistics.add_failed(ready.kind);
    }

    fn refuse(&self, header: &RequestHeader, error: NbdError, admitted_bytes: u64) {
        let reply = Reply::error(header, self.agreed, error);
        self.sender.send(reply, admitted_bytes);
        self.served.statistics.add_refused();
    }

    fn answer_block_status(&self, header: &RequestHeader, only_first: bool) {
        self.admission.admit(EXTENTS_BYTES);
        let count_max = if only_first { 1 } else { EXTENTS_MAX };
        let served = &self.served;
        let reply = match served.extents(header.offset, header.bytes.into(), count_max) {
            Ok(extents) => Reply::extents(header, &extents),
            Err(error) => Reply::error(header, self.agreed, error_number(error)),
        };
        self.sender.send(reply, EXTENTS_BYTES);
    }
}

/// A request as it was read, but for its data.
struct Taken {
    tag: u64,
    header: RequestHeader,
    request: ServedRequest,
    keep_allocated: bool,
}

impl Client for Transmission {
    fn complete(&self, completed: Completed) {
        self.meet(completed.tag, Half::Due(completed.outcome));
    }
}

fn error_number(error: io::Error) -> NbdError {
    match error.kind() {
        ErrorKind::OutOfMemory => NbdError::NoMemory,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => NbdError::NoSpace,
        _ => NbdError::Io,
    }
}
