//! Connected sockets, of both kinds, that never block a write.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes that are read from a socket at once: many requests without data.
const BUFFER_BYTES: usize = 64 * 1024;

/// A connection to a client. Reads and writes return [`ErrorKind::WouldBlock`].
#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(super) fn of_unix(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::Unix(stream))
    }

    pub(super) fn of_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Answers are small, and nothing follows them.
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    pub(super) fn write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&*stream).write_vectored(parts),
            Self::Tcp(stream) => (&*stream).write_vectored(parts),
        }
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&*stream).read(bytes),
            Self::Tcp(stream) => (&*stream).read(bytes),
        }
    }

    /// Ends reading, or both ways. Threads that wait for the socket return.
    pub(super) fn shut_down(&self, how: Shutdown) {
        // A client that is gone has ended it before.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// Waits until the socket can be written, or is closed.
    pub(super) fn wait_until_writable(&self) -> io::Result<()> {
        wait(self.as_fd(), PollFlags::OUT, None).map(|_| ())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// Waits for a file descriptor, for this long at most. Returns whether it is ready.
pub(super) fn wait(
    fd: BorrowedFd<'_>,
    flags: PollFlags,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reading side of a socket, with a buffer.
#[derive(Debug)]
pub(super) struct Input<'s> {
    socket: &'s Socket,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Instant after which reading fails; none after the handshake.
    pub(super) deadline: Option<Instant>,
}

impl<'s> Input<'s> {
    pub(super) fn new(socket: &'s Socket) -> Self {
        Self {
            socket,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            deadline: None,
        }
    }

    /// Fills `into`. The end of the stream is [`ErrorKind::UnexpectedEof`].
    pub(super) fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            let left = &mut into[filled..];
            if self.start == self.end && left.len() >= BUFFER_BYTES {
                filled += read_some(self.socket, left, self.deadline)?;
                continue;
            }
            let buffered = self.buffered()?;
            let bytes = buffered.len().min(left.len());
            left[..bytes].copy_from_slice(&buffered[..bytes]);
            self.start += bytes;
            filled += bytes;
        }
        Ok(())
    }

    /// Reads bytes that nobody wants.
    pub(super) fn discard(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let discarded = (self.buffered()?.len() as u64).min(bytes);
            self.start += discarded as usize;
            bytes -= discarded;
        }
        Ok(())
    }

    /// Returns what is in the buffer, at least one byte.
    fn buffered(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            self.end = read_some(self.socket, &mut self.buffer, self.deadline)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }
}

fn read_some(socket: &Socket, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
    loop {
        match socket.read(into) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => return Ok(bytes),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(ErrorKind::TimedOut.into());
        }
        wait(socket.as_fd(), PollFlags::IN, left)?;
    }
}
