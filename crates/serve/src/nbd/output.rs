//! Sending side of a connection.

use super::admission::Admission;
use super::socket::Socket;
use super::wire::Reply;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Replies of a connection. Whoever has one sends it at once; what the socket does not take
/// then is sent by the connection's sending thread ([`Self::run`]), in order.
#[derive(Debug)]
pub(super) struct ReplySender {
    socket: Arc<Socket>,
    admission: Arc<Admission>,
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutputState {
    /// Replies that the socket did not take yet, oldest first.
    backlog: VecDeque<Outgoing>,
    /// Whether the client is gone: replies are forgotten.
    is_broken: bool,
    /// Whether no reply comes any more.
    is_closing: bool,
}

#[derive(Debug)]
struct Outgoing {
    reply: Reply,
    sent_bytes: usize,
    /// Bytes that the request holds of what the connection may have in flight.
    admitted_bytes: u64,
}

impl ReplySender {
    pub(super) fn new(socket: Arc<Socket>, admission: Arc<Admission>) -> Self {
        Self {
            socket,
            admission,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Sends a reply without blocking. The request counts as in flight until the socket has
    /// taken all of it.
    pub(super) fn send(&self, reply: Reply, admitted_bytes: u64) {
        let mut state = self.lock();
        let outgoing = Outgoing {
            reply,
            sent_bytes: 0,
            admitted_bytes,
        };
        state.backlog.push_back(outgoing);
        if state.is_broken || state.backlog.len() == 1 {
            self.send_backlog(&mut state);
        }
        if !state.backlog.is_empty() {
            self.changed.notify_one();
        }
    }

    /// Sends replies that the socket did not take at once, until [`Self::close`].
    pub(super) fn run(&self) {
        loop {
            let mut state = self.lock();
            while state.backlog.is_empty() {
                if state.is_closing {
                    return;
                }
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            // An error comes again when the socket is written.
            let _ = self.socket.wait_until_writable();
            self.send_backlog(&mut self.lock());
        }
    }

    /// Ends [`Self::run`] when the backlog is sent.
    pub(super) fn close(&self) {
        self.lock().is_closing = true;
        self.changed.notify_one();
    }

    /// Sends what the socket takes.
    fn send_backlog(&self, state: &mut OutputState) {
        while let Some(outgoing) = state.backlog.front_mut() {
            let is_sent = match state.is_broken {
                true => Ok(true),
                false => outgoing.send(&self.socket),
            };
            match is_sent {
                Ok(false) => return,
                Ok(true) => {
                    self.admission.release(outgoing.admitted_bytes);
                    state.backlog.pop_front();
                }
                Err(_) => {
                    state.is_broken = true;
                    self.socket.shut_down(Shutdown::Both);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outgoing {
    /// Writes what the socket takes. Returns whether that was all.
    fn send(&mut self, socket: &Socket) -> io::Result<bool> {
        let Reply { head, data } = &self.reply;
        loop {
            let of_head = &head[self.sent_bytes.min(head.len())..];
            let of_data = &data[self.sent_bytes.saturating_sub(head.len())..];
            if of_head.is_empty() && of_data.is_empty() {
                return Ok(true);
            }
            match socket.write_vectored(&[IoSlice::new(of_head), IoSlice::new(of_data)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent_bytes += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
