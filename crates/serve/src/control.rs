//! Control of a served drive while it runs: a Unix socket that takes a line and answers with a
//! line. It does not know what the lines mean.

use crate::ServeError;
use crate::client_threads::ClientThreads;
use crate::unix_socket::SocketFile;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Longest line of a client. A client that sends a longer one is closed.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Control socket of a served drive. Dropping it closes its clients, and removes it.
#[derive(Debug)]
pub struct ControlServer {
    // Ends before the socket goes.
    _clients: ClientThreads,
    _file: SocketFile,
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
        let clients = ClientThreads::start(listener, "control", move |stream| {
            answer_lines(stream, &answer);
        })?;
        Ok(Self {
            _clients: clients,
            _file: file,
        })
    }
}

/// Answers lines until the client ends, or until it sends what is no line of text.
fn answer_lines(stream: &UnixStream, answer: &impl Fn(&str) -> String) {
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
        let mut reply = answer(text.trim_end());
        reply.push('\n');
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
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
