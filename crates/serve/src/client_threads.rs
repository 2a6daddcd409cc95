//! Clients of a listening socket, each with a thread of its own. It does not know what they send.

use crate::ServeError;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Clients that are connected at the same time. Further ones are closed.
const CLIENTS_MAX: usize = 16;

/// Interval at which the listening thread looks for clients, and for the end.
const INTERVAL: Duration = Duration::from_millis(20);

/// Listening socket that does not block.
pub(crate) trait ClientListener: Send + 'static {
    /// Connection to one client.
    type Stream: ClientStream;

    fn accept_client(&self) -> io::Result<Self::Stream>;
}

/// Connection to a client.
pub(crate) trait ClientStream: Send + Sized + 'static {
    /// Lets reads and writes wait, and returns a second handle of the connection.
    fn block_and_clone(&self) -> io::Result<Self>;

    /// Ends reads and writes of all handles.
    fn shut_down(&self);
}

impl ClientListener for UnixListener {
    type Stream = UnixStream;

    fn accept_client(&self) -> io::Result<UnixStream> {
        self.accept().map(|(stream, _)| stream)
    }
}

impl ClientListener for TcpListener {
    type Stream = TcpStream;

    fn accept_client(&self) -> io::Result<TcpStream> {
        self.accept().map(|(stream, _)| stream)
    }
}

impl ClientStream for UnixStream {
    fn block_and_clone(&self) -> io::Result<Self> {
        self.set_nonblocking(false)?;
        self.try_clone()
    }

    fn shut_down(&self) {
        // A client that is gone has ended it before.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl ClientStream for TcpStream {
    fn block_and_clone(&self) -> io::Result<Self> {
        self.set_nonblocking(false)?;
        self.try_clone()
    }

    fn shut_down(&self) {
        // A client that is gone has ended it before.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// Listening thread with those of its clients. Dropping it closes the clients.
#[derive(Debug)]
pub(crate) struct ClientThreads {
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ClientThreads {
    /// Serves each client on a thread of its own, and closes it when `serve` returns. `name` is
    /// that of the listening thread.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(crate) fn start<L: ClientListener>(
        listener: L,
        name: &'static str,
        serve: impl Fn(&L::Stream) + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_ending);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let mut clients = Clients::new(name, serve);
                while !of_thread.load(Ordering::Relaxed) {
                    match listener.accept_client() {
                        Ok(stream) => clients.connect(stream),
                        // Nobody yet, or a client that is gone.
                        Err(_) => thread::sleep(INTERVAL),
                    }
                }
                clients.close();
            })
            .map_err(|error| ServeError::Work(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            is_ending,
            thread: Some(thread),
        })
    }
}

impl Drop for ClientThreads {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Connected clients of one listening socket.
struct Clients<S, F> {
    name: String,
    serve: Arc<F>,
    connected: Vec<ConnectedClient<S>>,
}

struct ConnectedClient<S> {
    stream: S,
    thread: JoinHandle<()>,
}

impl<S: ClientStream, F: Fn(&S) + Send + Sync + 'static> Clients<S, F> {
    fn new(listener: &str, serve: F) -> Self {
        Self {
            name: format!("{listener} client"),
            serve: Arc::new(serve),
            connected: Vec::new(),
        }
    }

    /// Starts the thread of a client. Without a thread, or beyond the limit, it is closed.
    fn connect(&mut self, stream: S) {
        self.connected.retain(|client| !client.thread.is_finished());
        let Ok(of_thread) = stream.block_and_clone() else {
            return;
        };
        if self.connected.len() >= CLIENTS_MAX {
            return;
        }
        let serve = Arc::clone(&self.serve);
        let thread = thread::Builder::new().name(self.name.clone());
        let spawned = thread.spawn(move || {
            serve(&of_thread);
            of_thread.shut_down();
        });
        if let Ok(thread) = spawned {
            self.connected.push(ConnectedClient { stream, thread });
        }
    }

    fn close(self) {
        for client in self.connected {
            client.stream.shut_down();
            // A panic of the thread has been printed.
            let _ = client.thread.join();
        }
    }
}
