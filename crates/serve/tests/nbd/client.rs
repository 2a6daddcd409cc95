//! A client that sends whatever a test wants, and a server for it.

use diskperf_catalogue::Catalogue;
use diskperf_serve::nbd::wire::RequestHeader;
use diskperf_serve::nbd::{Address, Server};
use diskperf_serve::{Served, ServedOptions, resolve_drive};
use diskperf_timeline::Setting;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Longest wait for an answer. Far longer than any answer takes: a test that reaches it fails.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// Size of the drive that tests serve unless they choose another.
pub(crate) const SIZE_BYTES: u64 = 16 << 20;

/// A served drive, its socket, and the directory of both.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) served: Arc<Served>,
    folder: TempDir,
}

impl Fixture {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(&self.path())
    }
}

/// Serves a drive of the catalogue with settings, each `PATH=VALUE`.
pub(crate) fn serve(drive: &str, settings: &[&str], options: &ServedOptions) -> Fixture {
    let folder = tempfile::tempdir().expect("a directory for a socket");
    let settings: Vec<_> = settings
        .iter()
        .map(|text| Setting::parse(text).expect("a setting"))
        .collect();
    let specification = resolve_drive(&Catalogue::embedded(), drive, &settings);
    let specification = specification.unwrap_or_else(|error| panic!("{drive}: {error}"));
    let served = Served::start(&specification, options).expect("the drive is served");
    let served = Arc::new(served);
    let address = Address::Unix(folder.path().join("socket"));
    let server = Server::start(Arc::clone(&served), &address).expect("the server starts");
    Fixture {
        server,
        served,
        folder,
    }
}

/// Serves a drive that takes a nanosecond for a request.
pub(crate) fn serve_at_once() -> Fixture {
    let options = ServedOptions {
        size_bytes: Some(SIZE_BYTES),
        ..ServedOptions::default()
    };
    serve("fixed", &["drive.service_ms=0.000001"], &options)
}

/// An answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) cookie: u64,
    /// 0 of success.
    pub(crate) error: u32,
    /// Type of a structured chunk; none of a simple reply.
    pub(crate) chunk: Option<u16>,
    pub(crate) data: Vec<u8>,
}

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    has_structured_replies: bool,
}

impl Client {
    fn new(path: &std::path::Path) -> Self {
        let stream = UnixStream::connect(path).expect("the server listens");
        stream.set_read_timeout(Some(WATCHDOG)).expect("a timeout");
        Self {
            stream,
            has_structured_replies: false,
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    pub(crate) fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut received = vec![0; bytes];
        let read = self.stream.read_exact(&mut received);
        read.expect("the server answers");
        received
    }

    /// Whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut one = [0];
        match self.stream.read(&mut one) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Takes the greeting, and agrees to leave out the zeroes.
    pub(crate) fn greet(&mut self) {
        assert_eq!(self.receive(18), b"NBDMAGICIHAVEOPT\x00\x03");
        self.send(&3_u32.to_be_bytes());
    }

    pub(crate) fn send_option(&mut self, option: u32, data: &[u8]) {
        let head = [option.to_be_bytes(), (data.len() as u32).to_be_bytes()].concat();
        self.send(&[b"IHAVEOPT", head.as_slice(), data].concat());
    }

    /// Receives a reply to an option: its type and data.
    pub(crate) fn receive_option(&mut self) -> (u32, Vec<u8>) {
        let head = self.receive(20);
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        (number(12), self.receive(number(16) as usize))
    }

    /// Goes on to the transmission phase.
    pub(crate) fn go(&mut self) {
        self.send_option(7, &[0; 6]);
        while self.receive_option().0 != 1 {}
    }

    /// A connection in the transmission phase, with simple replies.
    pub(crate) fn simple(fixture: &Fixture) -> Self {
        let mut client = fixture.connect();
        client.greet();
        client.go();
        client
    }

    /// A connection in the transmission phase, with structured replies and block status.
    pub(crate) fn structured(fixture: &Fixture) -> Self {
        let mut client = fixture.connect();
        client.greet();
        client.send_option(8, b"");
        assert_eq!(client.receive_option().0, 1);
        client.send_option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation");
        assert_eq!(client.receive_option().0, 4);
        assert_eq!(client.receive_option().0, 1);
        client.go();
        client.has_structured_replies = true;
        client
    }

    pub(crate) fn request(
        &mut self,
        command: u16,
        flags: u16,
        cookie: u64,
        (offset, bytes): (u64, u32),
    ) {
        let header = RequestHeader {
            flags,
            command,
            cookie,
            offset,
            bytes,
        };
        self.send(&header.encode());
    }

    pub(crate) fn send_write(&mut self, cookie: u64, offset: u64, flags: u16, data: &[u8]) {
        self.request(1, flags, cookie, (offset, data.len() as u32));
        self.send(data);
    }

    /// Receives an answer, that of a good read having these bytes.
    pub(crate) fn answer(&mut self, read_bytes: usize) -> Answer {
        let magic = self.receive(4);
        if magic == [0x67, 0x44, 0x66, 0x98] {
            let rest = self.receive(12);
            let error = u32::from_be_bytes(rest[..4].try_into().unwrap());
            let data = match error {
                0 => self.receive(read_bytes),
                _ => Vec::new(),
            };
            return Answer {
                cookie: u64::from_be_bytes(rest[4..].try_into().unwrap()),
                error,
                chunk: None,
                data,
            };
        }
        assert_eq!(magic, [0x66, 0x8e, 0x33, 0xef]);
        assert!(self.has_structured_replies, "a chunk that was not agreed");
        let rest = self.receive(16);
        assert_eq!(rest[..2], [0, 1], "the only chunk");
        let chunk = u16::from_be_bytes([rest[2], rest[3]]);
        let length = u32::from_be_bytes(rest[12..].try_into().unwrap());
        let mut data = self.receive(length as usize);
        let error = match chunk {
            32_769 => u32::from_be_bytes(data[..4].try_into().unwrap()),
            _ => 0,
        };
        // The offset of the data.
        if chunk == 1 {
            data.drain(..8);
        }
        Answer {
            cookie: u64::from_be_bytes(rest[4..12].try_into().unwrap()),
            error,
            chunk: Some(chunk),
            data,
        }
    }

    /// Sends a request without data, and receives its answer.
    pub(crate) fn ask(&mut self, command: u16, flags: u16, range: (u64, u32)) -> Answer {
        self.request(command, flags, 77, range);
        let answer = self.answer(match command {
            0 => range.1 as usize,
            _ => 0,
        });
        assert_eq!(answer.cookie, 77);
        answer
    }

    pub(crate) fn write(&mut self, offset: u64, flags: u16, data: &[u8]) -> u32 {
        self.send_write(78, offset, flags, data);
        let answer = self.answer(0);
        assert_eq!(answer.cookie, 78);
        answer.error
    }

    pub(crate) fn read(&mut self, offset: u64, bytes: u32) -> Vec<u8> {
        let answer = self.ask(0, 0, (offset, bytes));
        assert_eq!(answer.error, 0);
        answer.data
    }
}
