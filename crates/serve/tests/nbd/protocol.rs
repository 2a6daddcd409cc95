//! Options and commands that are right, and those that are refused.

use crate::client::{Client, SIZE_BYTES, serve, serve_at_once};
use diskperf_serve::ServedOptions;

const FUA: u16 = 1;

#[test]
fn an_unknown_option_and_an_unknown_export_leave_the_connection() {
    let fixture = serve_at_once();
    let mut client = fixture.connect();
    client.greet();
    client.send_option(99, b"whatever");
    assert_eq!(client.receive_option().0, (1 << 31) + 1);
    client.send_option(7, b"\0\0\0\x05other\0\0");
    assert_eq!(client.receive_option().0, (1 << 31) + 6);
    client.send_option(3, b"");
    assert_eq!(client.receive_option().0, 2);
    assert_eq!(client.receive_option().0, 1);
    client.go();
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn an_export_is_opened_by_its_name() {
    let fixture = serve_at_once();
    let mut client = fixture.connect();
    client.greet();
    client.send_option(1, b"");
    let answer = client.receive(10);
    assert_eq!(answer[..8], SIZE_BYTES.to_be_bytes());
    assert_eq!(client.write(0, 0, &[1; 512]), 0);
    let mut other = fixture.connect();
    other.greet();
    other.send_option(1, b"other");
    assert!(other.is_closed());
}

#[test]
fn an_aborted_handshake_is_acknowledged() {
    let fixture = serve_at_once();
    let mut client = fixture.connect();
    client.greet();
    client.send_option(2, b"");
    assert_eq!(client.receive_option().0, 1);
    assert!(client.is_closed());
}

#[test]
fn every_command_does_its_work() {
    let fixture = serve_at_once();
    for mut client in [Client::simple(&fixture), Client::structured(&fixture)] {
        let zeroes = client.ask(6, 0, (0, SIZE_BYTES as u32));
        assert_eq!(zeroes.error, 0);
        assert_eq!(client.write(4096, FUA, &[7; 8192]), 0);
        assert_eq!(client.write(5000, 0, b"inside"), 0);
        assert_eq!(client.read(4999, 8), b"\x07inside\x07");
        assert_eq!(client.ask(3, 0, (0, 0)).error, 0);
        assert_eq!(client.ask(5, 0, (4096, 8192)).error, 0);
        assert_eq!(client.ask(4, FUA, (4096, 4096)).error, 0);
        assert_eq!(client.read(4096, 4096), [0; 4096]);
        assert_eq!(client.ask(6, FUA, (8192, 100)).error, 0);
        let expected = [[0; 100].as_slice(), &[7; 100]].concat();
        assert_eq!(client.read(8192, 200), expected);
        // Not even without bytes is a request left without an answer.
        for command in [0, 4, 5, 6] {
            assert_eq!(client.ask(command, 0, (0, 0)).error, 0, "command {command}");
        }
        assert_eq!(client.write(0, 0, b""), 0);
        client.request(2, 0, 0, (0, 0));
        assert!(client.is_closed());
    }
}

#[test]
fn ranges_behind_the_end_are_refused_and_their_data_consumed() {
    let fixture = serve_at_once();
    let mut client = Client::simple(&fixture);
    for offset in [SIZE_BYTES - 511, SIZE_BYTES, u64::MAX - 511] {
        assert_eq!(
            client.ask(0, 0, (offset, 4096)).error,
            22,
            "read at {offset}"
        );
        assert_eq!(client.write(offset, 0, &[1; 4096]), 28, "write at {offset}");
        assert_eq!(
            client.ask(4, 0, (offset, 4096)).error,
            22,
            "trim at {offset}"
        );
        assert_eq!(
            client.ask(6, 0, (offset, 4096)).error,
            28,
            "zero at {offset}"
        );
        assert_eq!(client.read(SIZE_BYTES - 512, 512), [0; 512]);
    }
    assert_eq!(fixture.served.statistics.report().refused, 12);
}

#[test]
fn unknown_flags_and_commands_are_refused() {
    let fixture = serve_at_once();
    let mut client = Client::simple(&fixture);
    assert_eq!(client.ask(0, 1 << 9, (0, 512)).error, 22);
    assert_eq!(client.write(0, 1 << 9, &[1; 512]), 22);
    assert_eq!(client.ask(42, 0, (0, 512)).error, 22);
    assert_eq!(client.ask(7, 0, (0, 512)).error, 22);
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn an_error_of_a_structured_read_is_a_chunk() {
    let fixture = serve_at_once();
    let mut client = Client::structured(&fixture);
    let answer = client.ask(0, 0, (SIZE_BYTES, 512));
    assert_eq!((answer.error, answer.chunk), (22, Some(32_769)));
    let answer = client.ask(0, 4, (0, 512));
    assert_eq!((answer.error, answer.chunk), (0, Some(1)));
}

#[test]
fn a_read_only_drive_refuses_writes_and_consumes_their_data() {
    let options = ServedOptions {
        is_read_only: true,
        ..ServedOptions::default()
    };
    let fixture = serve("fixed", &["drive.service_ms=0.000001"], &options);
    let mut client = Client::simple(&fixture);
    assert_eq!(client.write(0, 0, &[1; 100_000]), 1);
    assert_eq!(client.ask(6, 0, (0, 512)).error, 1);
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn block_status_shows_what_was_written() {
    let fixture = serve_at_once();
    let mut client = Client::structured(&fixture);
    assert_eq!(client.write(1 << 20, 0, &[1; 1 << 20]), 0);
    let extents = |data: &[u8]| -> Vec<(u32, u32)> {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        data[4..]
            .chunks(8)
            .map(|extent| (number(&extent[..4]), number(&extent[4..])))
            .collect()
    };
    let mib = 1 << 20;
    let answer = client.ask(7, 0, (0, SIZE_BYTES as u32));
    assert_eq!(answer.chunk, Some(5));
    assert_eq!(extents(&answer.data), [(mib, 3), (mib, 0), (14 * mib, 3)]);
    let answer = client.ask(7, 8, (0, SIZE_BYTES as u32));
    assert_eq!(extents(&answer.data), [(mib, 3)]);
}

#[test]
fn connections_see_each_others_writes() {
    let fixture = serve_at_once();
    let mut clients = [Client::simple(&fixture), Client::structured(&fixture)];
    for round in 0..20_u8 {
        let (writer, reader) = (usize::from(round % 2), usize::from((round + 1) % 2));
        assert_eq!(clients[writer].write(0, 0, &[round; 4096]), 0);
        assert_eq!(clients[reader].ask(3, 0, (0, 0)).error, 0);
        assert_eq!(clients[reader].read(0, 4096), [round; 4096]);
    }
}

/// The drive serves a read at its actuator's position before one far away that came earlier,
/// or takes them as they come: whatever it does, cookies and bytes belong together.
#[test]
fn answers_come_in_the_order_of_the_model() {
    let options = ServedOptions {
        speed: 10.0,
        ..ServedOptions::default()
    };
    let fixture = serve("sata-7200", &[], &options);
    let mut client = Client::simple(&fixture);
    let places: Vec<u64> = (0..32).map(|n| (n * 7919 % 32) * (1 << 30)).collect();
    for place in &places {
        fixture
            .served
            .data
            .write(*place, &place.to_be_bytes())
            .unwrap();
    }
    for place in &places {
        client.request(0, 0, *place, (*place, 8));
    }
    let mut order = Vec::new();
    for _ in &places {
        let answer = client.answer(8);
        assert_eq!(answer.data, answer.cookie.to_be_bytes());
        order.push(answer.cookie);
    }
    assert_ne!(order, places, "a queue of 32 random reads is reordered");
    let mut sorted = (order, places);
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1);
}

/// Every kind of drive takes every command that it offers.
#[test]
fn every_drive_serves_every_command() {
    for drive in [
        "fixed",
        "sas-10k",
        "sata-7200",
        "sata-consumer",
        "smr-5400",
        "sata-tlc",
        "nvme-tlc",
        "nvme-tlc-plp",
        "nvme-qlc",
        "nvme-zclass",
        "nvme-lowlatency",
    ] {
        let options = ServedOptions {
            speed: 100.0,
            ..ServedOptions::default()
        };
        let fixture = serve(drive, &[], &options);
        let mut client = Client::simple(&fixture);
        let trims = !fixture.served.is_rotational;
        assert_eq!(client.write(1000, 0, &[5; 3000]), 0, "{drive}");
        assert_eq!(client.write(1 << 20, FUA, &[6; 512]), 0, "{drive}");
        assert_eq!(client.read(1000, 3000), [5; 3000], "{drive}");
        assert_eq!(client.ask(3, 0, (0, 0)).error, 0, "{drive}");
        assert_eq!(client.ask(5, 0, (0, 65_536)).error, 0, "{drive}");
        let trim = client.ask(4, FUA, (0, 1 << 20)).error;
        assert_eq!(trim, if trims { 0 } else { 22 }, "{drive}");
        assert_eq!(client.ask(6, FUA, (512, 1 << 20)).error, 0, "{drive}");
        assert_eq!(client.read(1000, 3000), [0; 3000], "{drive}");
    }
}
