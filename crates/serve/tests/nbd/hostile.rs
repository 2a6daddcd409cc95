//! Clients that break the protocol, go away, or do not take their answers.

use crate::client::{Client, Fixture, SIZE_BYTES, serve_at_once};
use diskperf_serve::nbd::wire::{PAYLOAD_BYTES_MAX, RequestHeader};
use diskperf_serve::nbd::{BYTES_IN_FLIGHT_MAX, CONNECTIONS_MAX};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::{Read, Write};
use std::net::Shutdown;

/// The server still serves another client.
#[track_caller]
fn expect_served(fixture: &Fixture) {
    let mut client = Client::simple(fixture);
    assert_eq!(client.ask(0, 0, (0, 512)).error, 0);
}

#[test]
fn a_wrong_magic_number_closes_the_connection() {
    let fixture = serve_at_once();
    let mut client = fixture.connect();
    client.greet();
    client.send(b"NOT AN OPTION OF THE PROTOCOL");
    assert!(client.is_closed());
    let mut client = Client::simple(&fixture);
    client.send(&[0xff; 28]);
    assert!(client.is_closed());
    let mut client = fixture.connect();
    client.receive(18);
    client.send(&0x8000_0000_u32.to_be_bytes());
    assert!(client.is_closed());
    expect_served(&fixture);
}

#[test]
fn half_a_header_concerns_nobody_else() {
    let fixture = serve_at_once();
    let mut client = Client::simple(&fixture);
    client.send(&[0x25, 0x60, 0x95]);
    expect_served(&fixture);
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert!(client.is_closed());
    // A write whose data never come has no effect.
    let mut client = Client::simple(&fixture);
    client.request(1, 0, 1, (0, 4096));
    client.send(&[9; 100]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert!(client.is_closed());
    let mut client = Client::simple(&fixture);
    assert_eq!(client.read(0, 4096), [0; 4096]);
}

#[test]
fn lengths_are_checked_before_anything_is_allocated() {
    let fixture = serve_at_once();
    let mut client = Client::simple(&fixture);
    client.request(1, 0, 1, (0, u32::MAX));
    assert!(client.is_closed());
    let mut client = Client::simple(&fixture);
    client.request(1, 0, 1, (0, PAYLOAD_BYTES_MAX + 1));
    assert!(client.is_closed());
    let mut client = Client::simple(&fixture);
    assert_eq!(client.ask(0, 0, (0, u32::MAX)).error, 22);
    expect_served(&fixture);
}

#[test]
fn an_option_that_is_too_long_is_read_and_refused() {
    let fixture = serve_at_once();
    let mut client = fixture.connect();
    client.greet();
    client.send_option(6, &vec![0; 1 << 20]);
    assert_eq!(client.receive_option().0, (1 << 31) + 9);
    client.go();
    assert_eq!(client.ask(0, 0, (0, 512)).error, 0);
}

/// What such a client has in flight is bounded: the server stops reading its requests.
#[test]
fn a_client_that_takes_no_answers_is_not_read() {
    let fixture = serve_at_once();
    let mut client = Client::simple(&fixture);
    client.stream.set_nonblocking(true).unwrap();
    let request = RequestHeader {
        flags: 0,
        command: 0,
        cookie: 1,
        offset: 0,
        bytes: SIZE_BYTES as u32,
    };
    let mut sent = 0;
    let mut refused = 0;
    // The socket's own buffer has some thousand requests.
    while refused < 50 {
        match client.stream.write(&request.encode()) {
            Ok(bytes) => sent += bytes,
            Err(_) => {
                refused += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
    }
    let answered = fixture.served.statistics.requests() * SIZE_BYTES;
    assert!(
        answered <= BYTES_IN_FLIGHT_MAX + SIZE_BYTES,
        "{answered} bytes"
    );
    assert!(sent as u64 * SIZE_BYTES > 28 * BYTES_IN_FLIGHT_MAX);
    expect_served(&fixture);
}

#[test]
fn connections_are_bounded() {
    let fixture = serve_at_once();
    let mut clients: Vec<_> = (0..CONNECTIONS_MAX)
        .map(|_| Client::simple(&fixture))
        .collect();
    let mut further = fixture.connect();
    assert!(further.is_closed());
    assert_eq!(clients[0].ask(0, 0, (0, 512)).error, 0);
    drop(clients);
    // A connection that has ended makes room, once its thread has.
    loop {
        let mut client = fixture.connect();
        let mut first = [0];
        if matches!(client.stream.read(&mut first), Ok(1)) {
            break;
        }
    }
}

/// Bytes that begin like the protocol and go on as they like.
fn garbage() -> impl Strategy<Value = (bool, Vec<u8>)> {
    let request = (any::<u16>(), 0_u16..10, any::<u64>(), any::<u32>(), 0_u8..3).prop_map(
        |(flags, command, offset, bytes, small)| {
            let header = RequestHeader {
                flags: flags & 0x1f,
                command,
                cookie: 5,
                offset: if small > 0 {
                    offset % SIZE_BYTES
                } else {
                    offset
                },
                bytes: if small > 1 { bytes % 8192 } else { bytes },
            };
            header.encode().to_vec()
        },
    );
    let option =
        (0_u32..12, prop::collection::vec(any::<u8>(), 0..80)).prop_map(|(option, data)| {
            let head = [option.to_be_bytes(), (data.len() as u32).to_be_bytes()].concat();
            [b"IHAVEOPT", head.as_slice(), &data].concat()
        });
    let any_bytes = prop::collection::vec(any::<u8>(), 0..300);
    let part = prop_oneof![4 => request, 4 => option, 1 => any_bytes];
    let parts = prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat());
    (any::<bool>(), parts)
}

#[test]
fn any_bytes_leave_the_server_alive() {
    let fixture = serve_at_once();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(400));
    let tried = runner.run(&garbage(), |(in_transmission, bytes)| {
        let mut client = match in_transmission {
            true => Client::simple(&fixture),
            false => {
                let mut client = fixture.connect();
                client.greet();
                client
            }
        };
        // The server may have closed the connection.
        let _ = client.stream.write_all(&bytes);
        let _ = client.stream.shutdown(Shutdown::Write);
        let mut answers = Vec::new();
        let _ = client.stream.read_to_end(&mut answers);
        Ok(())
    });
    tried.unwrap();
    assert!(fixture.served.drive.is_running());
    expect_served(&fixture);
}
