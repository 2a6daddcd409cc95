//! Fuzz target for what clients of a served drive send: a handshake and requests.
//!
//! The bytes go through the parsers, where a panic is seen, and to a server at a socket, which has
//! to go on serving.

use super::{FuzzBody, FuzzTarget};
use diskperf_catalogue::Catalogue;
use diskperf_serve::nbd::handshake::{
    Handshake, OPTION_BYTES_MAX, OPTION_HEADER_BYTES, OptionHeader, Step,
};
use diskperf_serve::nbd::wire::{PAYLOAD_BYTES_MAX, REQUEST_BYTES, RequestHeader};
use diskperf_serve::nbd::{Address, Export, Server};
use diskperf_serve::{Served, ServedOptions, resolve_drive};
use diskperf_timeline::Setting;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Size of the served drive.
const SIZE_BYTES: u64 = 1 << 20;

/// Longest answer of the handshake to one option.
const OPTION_REPLY_BYTES_MAX: usize = 64 * 1024;

const EXPORT: Export = Export {
    size_bytes: SIZE_BYTES,
    preferred_bytes: 4096,
    is_read_only: false,
    is_rotational: false,
};

pub(crate) const NBD_SESSION: FuzzTarget = FuzzTarget {
    name: "nbd_session",
    make_body: nbd_session,
    make_seeds: || {
        let flags = 3_u32.to_be_bytes().to_vec();
        let simple = [flags.clone(), option(1, b"")].concat();
        let structured = [
            flags,
            option(8, b""),
            option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation"),
            option(7, b"\0\0\0\0\0\x01\0\x03"),
        ]
        .concat();
        let write = [request(1, 1, 512), vec![7; 512]].concat();
        let rest = [3, 4, 5, 6, 7].map(|command| request(0, command, 4096));
        let read = request(0, 0, 512);
        vec![
            [simple, write.clone(), read.clone(), request(0, 2, 0)].concat(),
            [structured, write, rest.concat(), read].concat(),
        ]
    },
    keywords: &["IHAVEOPT", "base:allocation"],
};

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn request(flags: u16, command: u16, bytes: u32) -> Vec<u8> {
    let header = RequestHeader {
        flags,
        command,
        cookie: 1,
        offset: 512,
        bytes,
    };
    header.encode().to_vec()
}

fn nbd_session() -> FuzzBody {
    let at_once = [Setting::new("drive.service_ms", "0.000001")];
    let specification = resolve_drive(&Catalogue::embedded(), "fixed", &at_once);
    let options = ServedOptions {
        size_bytes: Some(SIZE_BYTES),
        ..ServedOptions::default()
    };
    let served = Served::start(&specification.expect("the drive is built in"), &options);
    let served = Arc::new(served.expect("a drive without a file is served"));
    let folder = tempfile::tempdir().expect("there is a directory for temporary files");
    let path = folder.path().join("socket");
    let server = Server::start(Arc::clone(&served), &Address::Unix(path.clone()));
    let server = server.expect("a new socket is listened at");
    Box::new(move |bytes| {
        parse_session(bytes);
        // The directory and the server last as long as this.
        let _used = (&folder, &server);
        let mut client = UnixStream::connect(&path).expect("the server listens");
        // The server may close before all is sent.
        let _ = client.write_all(bytes);
        let _ = client.shutdown(Shutdown::Write);
        let mut answers = [0; 4096];
        while matches!(client.read(&mut answers), Ok(1..)) {}
        assert!(served.drive.is_running(), "the drive goes on");
    })
}

/// Parses what a client sends as the server does, without a socket.
fn parse_session(mut bytes: &[u8]) {
    let mut handshake = Handshake::new(EXPORT);
    let Some(flags) = take::<4>(&mut bytes) else {
        return;
    };
    if handshake.take_client_flags(u32::from_be_bytes(flags)) == Step::Close {
        return;
    }
    loop {
        let Some(header) = take::<OPTION_HEADER_BYTES>(&mut bytes) else {
            return;
        };
        let Some(header) = OptionHeader::parse(&header) else {
            return;
        };
        let length = (header.bytes as usize).min(bytes.len());
        let (data, rest) = bytes.split_at(length);
        bytes = rest;
        let mut reply = Vec::new();
        let step = match header.bytes > OPTION_BYTES_MAX {
            true => Handshake::refuse_long(header.option, &mut reply),
            false => handshake.answer(header.option, data, &mut reply),
        };
        assert!(reply.len() <= OPTION_REPLY_BYTES_MAX, "a long answer");
        match step {
            Step::Continue => {}
            Step::Close => return,
            Step::Transmit => break,
        }
    }
    while let Some(header) = take::<REQUEST_BYTES>(&mut bytes) {
        let Some(header) = RequestHeader::parse(&header) else {
            return;
        };
        if header.data_bytes() > PAYLOAD_BYTES_MAX {
            return;
        }
        if header.validate(&EXPORT, handshake.agreed()).is_ok() {
            let end = header.offset.checked_add(header.bytes.into());
            // A flush has no range.
            assert!(header.command == 3 || header.command == 2 || end <= Some(SIZE_BYTES));
        }
        bytes = &bytes[(header.data_bytes() as usize).min(bytes.len())..];
    }
}

/// Removes and returns the first bytes; `None` if there are fewer.
fn take<const COUNT: usize>(bytes: &mut &[u8]) -> Option<[u8; COUNT]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
