//! Pages of a served drive over HTTP, on the loopback alone. It does not know what they show.
//!
//! Nothing can be changed by a request: only GET and HEAD are answered. A name that leads to the
//! loopback could let a page of another site read them, so the host of a request must be the
//! loopback itself.

use crate::ServeError;
use crate::client_threads::ClientThreads;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longest request, with its headers.
const REQUEST_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Headers that a request may have.
const HEADERS_MAX: usize = 64;

/// Time that a client has for sending a whole request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// Time that a client has for taking a whole answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// Headers of every answer: no other site is asked for anything, and nothing is kept.
const HEADERS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'\r\n\
                       X-Content-Type-Options: nosniff\r\n\
                       Cross-Origin-Resource-Policy: same-origin\r\n\
                       Referrer-Policy: no-referrer\r\n\
                       Cache-Control: no-store\r\n\
                       Connection: close\r\n";

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// Type of the body, such as `text/html; charset=utf-8`.
    pub content_type: &'static str,
    /// Body of the answer.
    pub body: String,
}

/// Answer to the path of a request; `None` where there is nothing.
type PageOfPath = dyn Fn(&str) -> Option<HttpResponse> + Send + Sync;

/// Server of pages. Dropping it closes its clients.
#[derive(Debug)]
pub struct HttpServer {
    _clients: ClientThreads,
    address: SocketAddr,
}

impl HttpServer {
    /// Listens at a port of the loopback; port 0 is a free one. `page` answers paths, on any
    /// thread.
    ///
    /// # Errors
    ///
    /// An address beyond the loopback, or a port that is taken.
    pub fn start(
        at: SocketAddr,
        page: impl Fn(&str) -> Option<HttpResponse> + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let listener = listen_on_loopback("--http", at, "the page has no password")?;
        let address = listener.local_addr().unwrap_or(at);
        let clients = ClientThreads::start(listener, "http", move |stream| {
            // A client that is gone, or sends something else, concerns no other one.
            let _ = answer_client(stream, &page);
        })?;
        Ok(Self {
            _clients: clients,
            address,
        })
    }

    /// Address that browsers are given.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// Listens at a port of the loopback without blocking.
///
/// # Errors
///
/// An address beyond the loopback, for the reason, or a port that is taken.
pub(crate) fn listen_on_loopback(
    option: &str,
    at: SocketAddr,
    reason: &str,
) -> Result<TcpListener, ServeError> {
    if !at.ip().is_loopback() {
        return Err(ServeError::Request(format!(
            "{option} {at}: {reason}, and only the loopback is served: give 127.0.0.1:{0} and forward that port, as `ssh -L {0}:127.0.0.1:{0} HOST` does",
            at.port()
        )));
    }
    let listener = TcpListener::bind(at).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AddrInUse => "give another port, or 0 for a free one",
            _ => "give a port above 1023, or 0 for a free one",
        };
        ServeError::Request(format!("{option} {at}: cannot listen: {error}; {remedy}"))
    })?;
    match listener.set_nonblocking(true) {
        Ok(()) => Ok(listener),
        Err(error) => Err(ServeError::Work(format!("{option} {at}: {error}"))),
    }
}

/// Reads one request of a client and sends the answer.
fn answer_client(stream: &TcpStream, page: &PageOfPath) -> io::Result<()> {
    let mut request = TimedStream::new(stream, REQUEST_TIME_MAX);
    let mut head = Vec::new();
    let answer = loop {
        let mut part = [0; 2048];
        let bytes = request.read(&mut part)?;
        if bytes == 0 {
            return Ok(());
        }
        head.extend_from_slice(&part[..bytes]);
        match answer_request(&head, page) {
            Some(answer) => break answer,
            None if head.len() < REQUEST_HEAD_BYTES_MAX => {}
            None => break refuse("431 Request Header Fields Too Large"),
        }
    };
    TimedStream::new(stream, ANSWER_TIME_MAX).write_all(&answer)
}

/// Connection whose reads or writes must all be done at a deadline, however slow the client is.
struct TimedStream<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<'a> TimedStream<'a> {
    fn new(stream: &'a TcpStream, time_max: Duration) -> Self {
        let deadline = Instant::now() + time_max;
        Self { stream, deadline }
    }

    fn time_left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.time_left()?)?;
        self.stream.read(part)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.time_left()?)?;
        self.stream.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns the answer to a request; `None` while its headers are not whole.
fn answer_request(head: &[u8], page: &PageOfPath) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some(refuse("400 Bad Request")),
    }
    let mut hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().map(|header| header.value);
    if hosts.next().is_some() || !host.is_some_and(is_loopback_host) {
        return Some(refuse("421 Misdirected Request"));
    }
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Some(refuse("405 Method Not Allowed")),
    };
    let path = request.path.unwrap_or("/");
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let Some(found) = page(path) else {
        return Some(refuse("404 Not Found"));
    };
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n{HEADERS}\r\n",
        found.content_type,
        found.body.len()
    )
    .into_bytes();
    if !is_head {
        answer.extend_from_slice(found.body.as_bytes());
    }
    Some(answer)
}

/// Whether the host of a request, with or without its port, is the loopback.
fn is_loopback_host(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let is_loopback = |text: &str| {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        text.eq_ignore_ascii_case("localhost")
            || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    };
    let named = host.rsplit_once(':').map(|(name, _)| name);
    is_loopback(host) || named.is_some_and(is_loopback)
}

fn refuse(status: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{HEADERS}\r\n{status}\n",
        status.len() + 1
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;
    use std::thread;

    fn page(path: &str) -> Option<HttpResponse> {
        (path == "/there").then(|| HttpResponse {
            content_type: "text/plain",
            body: "it is\n".to_owned(),
        })
    }

    /// Returns what a server answers to these bytes.
    fn ask(address: SocketAddr, sent: &[u8]) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        // The server may close before all is sent.
        let _ = client.write_all(sent);
        let mut received = Vec::new();
        // Unread bytes of a client reset the connection.
        let _ = client.read_to_end(&mut received);
        String::from_utf8(received).unwrap()
    }

    #[test]
    fn only_reads_of_what_is_there_are_answered() {
        let server = HttpServer::start("127.0.0.1:0".parse().unwrap(), page).unwrap();
        let request = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let own = server.address.to_string();
        for (request, status, has_body) in [
            (request("GET /there", &own), "200 OK", true),
            (request("GET /there?x=1", "localhost"), "200 OK", true),
            (request("GET /there", "[::1]:80"), "200 OK", true),
            (request("HEAD /there", &own), "200 OK", false),
            (request("GET /absent", &own), "404 Not", false),
            (request("GET /../there", &own), "404 Not", false),
            (request("POST /there", &own), "405 Method", false),
            (request("GET /there", "example.org"), "421 Mis", false),
            (
                request("GET /there", "127.0.0.1.example.org"),
                "421 Mis",
                false,
            ),
            ("GET /there HTTP/1.1\r\n\r\n".to_owned(), "421 Mis", false),
            (request("GET /there\0", &own), "400 Bad", false),
            (
                format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000)),
                "431 Req",
                false,
            ),
            ("\r\n".repeat(9_000), "431 Req", false),
        ] {
            let answer = ask(server.address, request.as_bytes());
            let expected = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&expected), "{request:.80}: {answer}");
            assert_eq!(answer.ends_with("it is\n"), has_body, "{request:.80}");
            assert!(answer.contains("default-src 'none'"), "{answer}");
        }
    }

    #[test]
    fn a_client_that_sends_or_takes_byte_by_byte_has_no_more_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let slow = thread::spawn(move || {
            while client.write_all(b"x").is_ok() && client.read(&mut [0]).is_ok_and(|got| got > 0) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let is_timeout =
            |error: &io::Error| matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
        // The client sends on only where it gets something.
        let mut writing = TimedStream::new(&server, Duration::from_millis(200));
        let written = loop {
            if let Err(error) = writing.write(&[0; 4096]) {
                break error;
            }
        };
        assert!(is_timeout(&written), "{written}");
        let mut reading = TimedStream::new(&server, Duration::from_millis(200));
        let read = loop {
            match reading.read(&mut [0]) {
                Ok(bytes) => assert_eq!(bytes, 1),
                Err(error) => break error,
            }
        };
        assert!(is_timeout(&read), "{read}");
        server.shutdown(Shutdown::Both).unwrap();
        slow.join().unwrap();
    }

    #[test]
    fn the_server_ends_with_its_clients() {
        let server = HttpServer::start("127.0.0.1:0".parse().unwrap(), page).unwrap();
        let mut idle = TcpStream::connect(server.address).unwrap();
        // Clients are accepted in order: with the answer to a later one, the idle one is connected.
        let answer = ask(server.address, b"GET /there HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
        drop(server);
        assert_eq!(idle.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn nothing_beyond_the_loopback_is_listened_at() {
        for at in ["0.0.0.0:0", "192.0.2.1:1", "[::]:0"] {
            let error = HttpServer::start(at.parse().unwrap(), page).unwrap_err();
            assert!(error.to_string().contains("only the loopback"), "{error}");
        }
    }
}
