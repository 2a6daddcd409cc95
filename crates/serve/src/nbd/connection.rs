//! A connection: its handshake, its requests, and their answers.

use super::Export;
use super::admission::Admission;
use super::handshake::{Handshake, OPTION_BYTES_MAX, OPTION_HEADER_BYTES, OptionHeader, Step};
use super::output::ReplySender;
use super::socket::{Input, Socket};
use super::wire::{
    Agreement, COMMAND_READ, ClientCommand, EXTENTS_MAX, NbdError, PAYLOAD_BYTES_MAX,
    REQUEST_BYTES, Reply, RequestHeader,
};
use crate::exchange::{Exchange, RequestFailure, Responder, failure};
use crate::{RequestKind, Served, ServedRequest};
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a client has for the whole handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(30);

/// Bytes that an answer to a block status request is counted with.
const EXTENTS_BYTES: u64 = 8 * EXTENTS_MAX as u64;

/// A connection in the transmission phase.
struct Transmission {
    export: Export,
    exchange: Arc<Exchange<NbdResponder>>,
    output: Arc<ConnectionOutput>,
}

/// Sending side of a connection, as its unanswered requests share it.
struct ConnectionOutput {
    agreed: Agreement,
    sender: ReplySender,
    admission: Arc<Admission>,
}

/// Client of a request that the drive has not answered.
struct NbdResponder {
    output: Arc<ConnectionOutput>,
    header: RequestHeader,
    admitted_bytes: u64,
}

impl Responder for NbdResponder {
    fn respond(self, answer: Result<Vec<u8>, RequestFailure>) {
        let (header, agreed) = (&self.header, self.output.agreed);
        let reply = match answer {
            Ok(data) if header.command == COMMAND_READ => Reply::data(header, agreed, data),
            Ok(_) => Reply::done(header),
            Err(failure) => Reply::error(header, agreed, failure.into()),
        };
        self.output.sender.send(reply, self.admitted_bytes);
    }
}

impl From<RequestFailure> for NbdError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Io => Self::Io,
            RequestFailure::NoMemory => Self::NoMemory,
            RequestFailure::NoSpace => Self::NoSpace,
            RequestFailure::ShutDown => Self::ShutDown,
        }
    }
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
    let output = Arc::new(ConnectionOutput {
        agreed,
        sender: ReplySender::new(Arc::clone(socket), Arc::clone(&admission)),
        admission,
    });
    let transmission = Transmission {
        export,
        exchange: Exchange::new(Arc::clone(served)),
        output: Arc::clone(&output),
    };
    thread::scope(|scope| {
        let sending = thread::Builder::new().name("nbd send".to_owned());
        sending.spawn_scoped(scope, || output.sender.run())?;
        let _closing = Closing(&output.sender);
        let received = transmission.receive(&mut input);
        output.admission.wait_until_empty();
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
    fn receive(&self, input: &mut Input<'_>) -> io::Result<()> {
        loop {
            let mut header = [0; REQUEST_BYTES];
            input.read_exact(&mut header)?;
            let Some(header) = RequestHeader::parse(&header) else {
                return Err(ErrorKind::InvalidData.into());
            };
            if header.data_bytes() > PAYLOAD_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            match header.validate(&self.export, self.output.agreed) {
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
                    self.take(header, request, keep_allocated, input)?;
                }
                Err(error) => {
                    input.discard(header.data_bytes().into())?;
                    self.output.admission.admit(0);
                    self.refuse(&header, error, 0);
                }
            }
        }
    }

    /// Reads the data of a request, and submits it.
    fn take(
        &self,
        header: RequestHeader,
        request: ServedRequest,
        keep_allocated: bool,
        input: &mut Input<'_>,
    ) -> io::Result<()> {
        let admitted_bytes = match request.kind {
            RequestKind::Read | RequestKind::Write => request.bytes,
            _ => 0,
        };
        self.output.admission.admit(admitted_bytes);
        let written_bytes = header.data_bytes() as usize;
        let mut written = Vec::new();
        if written.try_reserve_exact(written_bytes).is_err() {
            let discarded = input.discard(written_bytes as u64);
            self.refuse(&header, NbdError::NoMemory, admitted_bytes);
            return discarded;
        }
        written.resize(written_bytes, 0);
        if let Err(error) = input.read_exact(&mut written) {
            self.output.admission.release(admitted_bytes);
            return Err(error);
        }
        let responder = NbdResponder {
            output: Arc::clone(&self.output),
            header,
            admitted_bytes,
        };
        self.exchange
            .submit(request, &written, keep_allocated, responder);
        Ok(())
    }

    fn refuse(&self, header: &RequestHeader, error: NbdError, admitted_bytes: u64) {
        let reply = Reply::error(header, self.output.agreed, error);
        self.output.sender.send(reply, admitted_bytes);
        self.exchange.served().statistics.add_refused();
    }

    fn answer_block_status(&self, header: &RequestHeader, only_first: bool) {
        self.output.admission.admit(EXTENTS_BYTES);
        let count_max = if only_first { 1 } else { EXTENTS_MAX };
        let served = self.exchange.served();
        let reply = match served.extents(header.offset, header.bytes.into(), count_max) {
            Ok(extents) => Reply::extents(header, &extents),
            Err(error) => Reply::error(header, self.output.agreed, failure(&error).into()),
        };
        self.output.sender.send(reply, EXTENTS_BYTES);
    }
}
