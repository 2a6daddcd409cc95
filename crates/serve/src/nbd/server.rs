//! Listening for clients, and the end of serving.

use super::Export;
use super::connection::serve;
use super::socket::{Socket, wait};
use crate::http::listen_on_loopback;
use crate::unix_socket::SocketFile;
use crate::{ServeError, Served};
use rustix::event::PollFlags;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections that are served at the same time. Further ones are closed.
pub const CONNECTIONS_MAX: usize = 64;

/// Interval at which the listening thread sees that serving ends.
const ENDING_INTERVAL: Duration = Duration::from_millis(50);

/// Time that clients have at the end to take their answers.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// Smallest length that clients are told to prefer: a page.
const PREFERRED_BYTES_MIN: u32 = 4096;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A new socket in a file system.
    Unix(PathBuf),
    /// A port of the loopback; port 0 is a free one.
    Tcp(SocketAddr),
}

/// A served drive that listens for clients. Dropping it ends serving.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerState>,
    uri: String,
    /// The socket of a Unix address.
    socket_file: Option<SocketFile>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ServerState {
    served: Arc<Served>,
    export: Export,
    listener: Listener,
    is_ending: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
struct Connection {
    socket: Arc<Socket>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener) => Socket::of_unix(listener.accept()?.0),
            Self::Tcp(listener) => Socket::of_tcp(listener.accept()?.0),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Server {
    /// Listens at an address.
    ///
    /// # Errors
    ///
    /// An address beyond the loopback, a path or port that is taken, or one that cannot be
    /// listened at.
    pub fn start(served: Arc<Served>, address: &Address) -> Result<Self, ServeError> {
        let mut socket_file = None;
        let (listener, uri) = match address {
            Address::Unix(path) => {
                let (listener, file) = SocketFile::listen("--socket", path)?;
                socket_file = Some(file);
                (Listener::Unix(listener), unix_uri(path))
            }
            Address::Tcp(at) => {
                let listener = listen_tcp(*at)?;
                let bound = listener.local_addr().unwrap_or(*at);
                (Listener::Tcp(listener), format!("nbd://{bound}"))
            }
        };
        let export = Export {
            size_bytes: served.size_bytes,
            preferred_bytes: served.sector_bytes.max(PREFERRED_BYTES_MIN),
            is_read_only: served.is_read_only,
            is_rotational: served.is_rotational,
        };
        let shared = Arc::new(ServerState {
            served,
            export,
            listener,
            is_ending: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("nbd listen".to_owned())
            .spawn(move || of_thread.listen())
            .map_err(|error| ServeError::Work(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            shared,
            uri,
            socket_file,
            thread: Some(thread),
        })
    }

    /// Address by which clients connect.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Ends serving: requests in flight are answered with error 108, connections are closed,
    /// and the socket is removed.
    pub fn end(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
        drop(self.socket_file.take());
        self.shared.served.drive.shut_down();
        self.shared.close_connections();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl ServerState {
    fn listen(self: &Arc<Self>) {
        while !self.is_ending.load(Ordering::Relaxed) {
            match wait(self.listener.as_fd(), PollFlags::IN, Some(ENDING_INTERVAL)) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => thread::sleep(ENDING_INTERVAL),
            }
            match self.listener.accept() {
                Ok(socket) => self.connect(socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Too many open files, or a client that is gone: the next one may succeed.
                Err(_) => thread::sleep(ENDING_INTERVAL),
            }
        }
    }

    fn connect(self: &Arc<Self>, socket: Socket) {
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| !connection.thread.is_finished());
        if connections.len() >= CONNECTIONS_MAX {
            return;
        }
        let (shared, socket) = (Arc::clone(self), Arc::new(socket));
        let of_thread = Arc::clone(&socket);
        let connection = move || {
            // A client that breaks the protocol or is gone concerns no other one.
            let _ = serve(&shared.served, shared.export, &of_thread, &shared.is_ending);
            of_thread.shut_down(Shutdown::Both);
        };
        let thread = thread::Builder::new().name("nbd receive".to_owned());
        // Without a thread the connection is closed.
        if let Ok(thread) = thread.spawn(connection) {
            connections.push(Connection { socket, thread });
        }
    }

    /// Has every connection end: first those that read, then, after a while, those whose
    /// clients do not take their answers.
    fn close_connections(&self) {
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for connection in connections.iter() {
            connection.socket.shut_down(Shutdown::Read);
        }
        let deadline = Instant::now() + ENDING_MAX;
        let is_running = |of: &Connection| !of.thread.is_finished();
        while connections.iter().any(is_running) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        for connection in connections.drain(..) {
            connection.socket.shut_down(Shutdown::Both);
            // A panic of the thread has been printed.
            let _ = connection.thread.join();
        }
    }
}

fn listen_tcp(at: SocketAddr) -> Result<TcpListener, ServeError> {
    listen_on_loopback("--tcp", at, "NBD has no password")
}

/// Returns the URI of a socket, bytes that have a meaning in URIs being escaped.
fn unix_uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "nbd+unix:///?socket=".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            _ => write!(uri, "%{byte:02X}").expect("a text grows"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_escapes_the_path() {
        let uri = unix_uri(Path::new("/run/a b&c?d%e/socket"));
        assert_eq!(uri, "nbd+unix:///?socket=/run/a%20b%26c%3Fd%25e/socket");
    }

    #[test]
    fn nothing_beyond_the_loopback_is_served() {
        for at in ["0.0.0.0:10809", "192.0.2.1:1", "[::]:10809"] {
            let error = listen_tcp(at.parse().unwrap()).unwrap_err();
            assert!(error.to_string().contains("only the loopback"), "{error}");
        }
        for at in ["127.0.0.1:0", "127.1.2.3:0"] {
            listen_tcp(at.parse().unwrap()).unwrap();
        }
    }
}
