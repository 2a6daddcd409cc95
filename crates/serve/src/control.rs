//! Control of a served drive while it runs: a Unix socket that takes a line and answers with a
//! line. It does not know what the lines mean.

use crate::ServeError;
use crate::unix_socket::SocketFile;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Clients that are connected at the same time. Further ones are closed.
const CLIENTS_MAX: usize = 16;

/// Longest line of a client. A client that sends a longer one is closed.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Interval at which the listening thread looks for clients, and for the end.
const INTERVAL: Duration = Duration::from_millis(20);

/// Answer to a line, without its end.
type Answer = dyn Fn(&str) -> String + Send + Sync;

/// Control socket of a served drive. Dropping it closes its clients, and removes it.
#[derive(Debug)]
pub struct ControlServer {
    shared: Arc<ControlState>,
    thread: Option<JoinHandle<()>>,
    _file: SocketFile,
}

struct ControlState {
    answer: Box<Answer>,
    is_ending: AtomicBool,
    clients: Mutex<Vec<ControlClient>>,
}

struct ControlClient {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl fmt::Debug for ControlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("ControlState");
        shown.field("is_ending", &self.is_ending).finish()
    }
}

impl ControlServer {
    /// Listens at a new socket, which only this user can connect to. Each line of a client is
    /// answered with a line, on any thread.
    ///
    /// # Errors
    ///
    /// A path that is taken, or at which no socket can be made.
    pub fn start(
        path: &Path,
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let (listener, file) = SocketFile::listen("--control", path)?;
        let shared = Arc::new(ControlState {
            answer: Box::new(answer),
            is_ending: AtomicBool::new(false),
            clients: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("control".to_owned());
        let thread = thread
            .spawn(move || of_thread.listen(&listener))
            .map_err(|error| ServeError::Work(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            _file: file,
        })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

impl ControlState {
    fn listen(self: &Arc<Self>, listener: &UnixListener) {
        while !self.is_ending.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => self.connect(stream),
                // Nobody yet, or a client that is gone.
                Err(_) => thread::sleep(INTERVAL),
            }
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        for client in clients.drain(..) {
            // A client that is gone has ended it before.
            let _ = client.stream.shutdown(Shutdown::Both);
            // A panic of the thread has been printed.
            let _ = client.thread.join();
        }
    }

    fn connect(self: &Arc<Self>, stream: UnixStream) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| !client.thread.is_finished());
        let blocking = stream.set_nonblocking(false);
        let (Ok(()), Ok(of_thread)) = (blocking, stream.try_clone()) else {
            return;
        };
        if clients.len() >= CLIENTS_MAX {
            return;
        }
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("control client".to_owned());
        // Without a thread the client is closed.
        let spawned = thread.spawn(move || {
            shared.serve(&of_thread);
            // A client that is gone has ended it before.
            let _ = of_thread.shutdown(Shutdown::Both);
        });
        if let Ok(thread) = spawned {
            clients.push(ControlClient { stream, thread });
        }
    }

    /// Answers lines until the client ends, or until it sends what is no line of text.
    fn serve(&self, stream: &UnixStream) {
        let mut reader = BufReader::new(stream);
        let mut writer = stream;
        loop {
            let mut line = Vec::new();
            let read = (&mut reader)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line);
            let is_whole = line.last() == Some(&b'\n') || (line.len() as u64) < LINE_BYTES_MAX;
            let Ok(text) = std::str::from_utf8(&line) else {
                return;
            };
            if read.is_err() || text.is_empty() || !is_whole {
                return;
            }
            let mut answer = (self.answer)(text.trim_end());
            answer.push('\n');
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn lines_are_answered_until_the_end_and_the_socket_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let server = ControlServer::start(&path, |line| line.to_uppercase()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(ControlServer::start(&path, str::to_owned).is_err());
        let mut idle = UnixStream::connect(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let mut reader = BufReader::new(&client);
        for (sent, expected) in [("one\n", "ONE\n"), ("\n", "\n"), ("two\n", "TWO\n")] {
            (&client).write_all(sent.as_bytes()).unwrap();
            let mut answer = String::new();
            reader.read_line(&mut answer).unwrap();
            assert_eq!(answer, expected);
        }
        drop(server);
        assert_eq!(idle.read(&mut [0; 8]).unwrap(), 0);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_line_of_text_closes_the_client() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let _server = ControlServer::start(&path, str::to_owned).unwrap();
        let long = vec![b'x'; LINE_BYTES_MAX as usize + 1];
        for sent in [&long[..], b"\xff\n"] {
            let mut client = UnixStream::connect(&path).unwrap();
            // The server may close before all is sent.
            let _ = client.write_all(sent);
            let mut received = Vec::new();
            // Unread bytes of a client reset the connection.
            let _ = client.read_to_end(&mut received);
            assert_eq!(received, b"");
        }
    }
}
