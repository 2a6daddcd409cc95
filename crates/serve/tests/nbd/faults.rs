//! Faults, as a client sees them.

use crate::client::{Client, Fixture, SIZE_BYTES, serve};
use diskperf_serve::{RequestKind, ServedOptions, read_faults};
use std::fs;
use std::thread;

const SECTOR: u64 = 512;

/// Drive that takes a nanosecond for a request.
const AT_ONCE: &[&str] = &["drive.service_ms=0.000001"];

/// Serves a drive with the faults of a file.
fn serve_faulty(settings: &[&str], speed: f64, faults: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.toml");
    fs::write(&path, faults).unwrap();
    let faults = read_faults(&[path], 7, SIZE_BYTES / SECTOR);
    let options = ServedOptions {
        size_bytes: Some(SIZE_BYTES),
        speed,
        keeps_arrivals: true,
        faults: faults.unwrap_or_else(|error| panic!("{error}")),
        ..ServedOptions::default()
    };
    serve("fixed", settings, &options)
}

fn strikes(fixture: &Fixture) -> Vec<u64> {
    let states = fixture.served.drive.fault_states();
    states.into_iter().map(|state| state.strikes).collect()
}

/// Returns the error of a request without data to send.
fn error_of(client: &mut Client, command: u16, sector: u64, sectors: u32) -> u32 {
    let range = (sector * SECTOR, sectors * SECTOR as u32);
    client.ask(command, 0, range).error
}

#[test]
fn unreadable_sectors_fail_until_they_are_written() {
    let faults = "[[fault]]\nkind = 'unreadable_sectors'\nfirst_sector = 100\nsectors = 3\n";
    let fixture = serve_faulty(AT_ONCE, 1000.0, faults);
    let mut client = Client::structured(&fixture);
    let failing = |client: &mut Client| -> Vec<u64> {
        (96..108)
            .filter(|at| error_of(client, 0, *at, 1) == 5)
            .collect()
    };
    assert_eq!(failing(&mut client), [100, 101, 102]);
    assert_eq!(error_of(&mut client, 0, 96, 8), 5);
    // A write of a part of a sector has to read the rest.
    assert_eq!(client.write(101 * SECTOR + 7, 0, &[1; 9]), 5);
    assert_eq!(client.write(101 * SECTOR, 0, &[9; 512]), 0);
    assert_eq!(failing(&mut client), [100, 102]);
    assert_eq!(client.read(101 * SECTOR, 512), [9; 512]);
    fixture
        .served
        .drive
        .switch_fault("unreadable_sectors", false);
    assert!(failing(&mut client).is_empty());
    assert!(!fixture.served.drive.switch_fault("other", true));
    // Whatever failed changed nothing.
    assert_eq!(client.read(96 * SECTOR, 5 * 512), [0; 5 * 512]);
}

#[test]
fn lost_torn_and_misdirected_writes_show_old_data_while_the_fault_is_on() {
    for kind in ["lost_write", "torn_write", "misdirected_write"] {
        let fixture = serve_faulty(
            AT_ONCE,
            1.0,
            &format!("[[fault]]\nkind = '{kind}'\non = false\n"),
        );
        let drive = &fixture.served.drive;
        let mut client = Client::simple(&fixture);
        assert_eq!(client.write(0, 0, &[1; 8192]), 0, "{kind}");
        drive.switch_fault(kind, true);
        // Parts of the first and the last sector are new.
        assert_eq!(client.write(700, 0, &[2; 4000]), 0, "{kind}");
        let shown = client.read(0, 8192);
        let new = shown.iter().filter(|byte| **byte == 2).count();
        match kind {
            "torn_write" => {
                assert!((1..4000).contains(&new), "{kind}: {new}");
                assert!((700 + new).is_multiple_of(512), "{kind}: {new}");
            }
            _ => assert!(new == 0 || kind == "misdirected_write", "{kind}: {new}"),
        }
        assert_eq!(shown.iter().filter(|byte| **byte > 2).count(), 0);
        if kind == "misdirected_write" {
            let all = client.read(0, SIZE_BYTES as u32);
            let places: Vec<_> = (0..all.len()).filter(|at| all[*at] == 2).collect();
            assert_eq!(places.len(), 4000);
            assert_ne!(places[0], 700);
            assert_eq!(places[0] % 512, 700 % 512, "sectors move as a whole");
        }
        drive.switch_fault(kind, false);
        let mut expected = vec![1; 8192];
        expected[700..4700].fill(2);
        assert!(client.read(0, 8192) == expected, "{kind}: true data differ");
        // A good write replaces what the fault showed.
        assert_eq!(client.write(0, 0, &[3; 8192]), 0);
        drive.switch_fault(kind, true);
        assert_eq!(client.read(0, 8192), [3; 8192]);
        assert_eq!(strikes(&fixture), [1], "{kind}");
    }
}

#[test]
fn rotten_bits_differ_without_an_error_and_are_gone_when_the_fault_is_off() {
    let faults = "[[fault]]\nkind = 'bit_rot'\nper_thousand = 250\nsectors = 1000\n";
    let fixture = serve_faulty(AT_ONCE, 1.0, faults);
    let mut client = Client::simple(&fixture);
    let image = vec![0x5a; 2000 * 512];
    assert_eq!(client.write(0, 0, &image), 0);
    let shown = client.read(0, 2000 * 512);
    let wrong: Vec<_> = (0..shown.len()).filter(|at| shown[*at] != 0x5a).collect();
    assert!((180..320).contains(&wrong.len()), "{}", wrong.len());
    assert!(wrong.iter().all(|at| *at < 1000 * 512));
    assert!(wrong.iter().all(|at| (shown[*at] ^ 0x5a).count_ones() == 1));
    assert!(client.read(0, 2000 * 512) == shown, "the same bits again");
    fixture.served.drive.switch_fault("bit_rot", false);
    assert!(client.read(0, 2000 * 512) == image);
}

/// Service times of single reads, in virtual milliseconds.
fn service_ms(fixture: &Fixture, sectors: &[u64]) -> Vec<u64> {
    let mut client = Client::simple(fixture);
    for sector in sectors {
        client.read(sector * SECTOR, 512);
    }
    while fixture.served.statistics.requests() < sectors.len() as u64 {
        thread::yield_now();
    }
    let arrivals = fixture.served.drive.take_arrivals();
    let service = arrivals.iter().map(|of| of.due.unwrap() - of.arrived);
    service.map(|time| time.0 / 1_000_000).collect()
}

#[test]
fn slow_regions_and_sectors_take_as_long_as_computed() {
    let faults = "[[fault]]\nkind = 'slow_drive'\nfactor = 3\nsectors = 8192\n\
                  [[fault]]\nkind = 'slow_sectors'\ndelay_ms = 70\nfirst_sector = 8000\nsectors = 400\n";
    let fixture = serve_faulty(&["drive.service_ms=10"], 20.0, faults);
    let found = service_ms(&fixture, &[0, 7999, 8000, 8191, 8192, 8399, 8400, 30_000]);
    assert_eq!(found, [30, 30, 100, 100, 80, 80, 10, 10]);
    assert_eq!(strikes(&fixture), [4, 4]);
}

#[test]
fn a_hang_of_forty_seconds_ends_and_leaves_nothing() {
    let faults = "[[fault]]\nkind = 'hang'\nhang_s = 40\nstart_request = 2\n";
    let fixture = serve_faulty(&["drive.service_ms=10"], 1000.0, faults);
    let found = service_ms(&fixture, &[0, 0, 0, 0]);
    assert_eq!(found, [10, 40_000, 10, 10]);
    assert_eq!(strikes(&fixture), [1]);
}

#[test]
fn a_hang_that_is_switched_off_releases_its_requests() {
    // Switched on, it would hold them for weeks.
    let faults = "[[fault]]\nkind = 'hang'\nhang_s = 1e8\n";
    let mut fixture = serve_faulty(AT_ONCE, 1.0, faults);
    let mut client = Client::simple(&fixture);
    for cookie in 0..4 {
        client.request(0, 0, cookie, (0, 512));
    }
    // A refused request is answered when those before it were submitted.
    client.request(42, 0, 99, (0, 0));
    assert_eq!(client.answer(0).cookie, 99);
    fixture.served.drive.switch_fault("hang", false);
    for cookie in 0..4 {
        let answer = client.answer(512);
        assert_eq!((answer.cookie, answer.error), (cookie, 0));
    }
    fixture.served.drive.switch_fault("hang", true);
    client.request(0, 0, 5, (0, 512));
    client.request(42, 0, 99, (0, 0));
    assert_eq!(client.answer(0).cookie, 99);
    fixture.server.end();
    assert_eq!(client.answer(0).error, 108);
}

#[test]
fn a_dead_drive_answers_everything_with_an_error() {
    let faults = "[[fault]]\nkind = 'death'\nstart_request = 3\n";
    let fixture = serve_faulty(AT_ONCE, 1.0, faults);
    let mut client = Client::simple(&fixture);
    assert_eq!(client.write(0, 0, &[4; 512]), 0);
    assert_eq!(client.read(0, 512), [4; 512]);
    assert_eq!(client.write(0, 0, &[5; 512]), 5);
    for command in [0, 3, 4, 5, 6] {
        assert_eq!(error_of(&mut client, command, 0, 1), 5, "command {command}");
    }
    let report = fixture.served.statistics.report();
    let failed: u64 = report.operations.iter().map(|of| of.failed).sum();
    assert!(failed >= 5, "{report:?}");
    fixture.served.drive.switch_fault("death", false);
    assert_eq!(client.read(0, 512), [4; 512]);
}

#[test]
fn errors_strike_their_operation_alone() {
    let faults = "[[fault]]\nkind = 'error'\nper_thousand = 1000\noperations = ['flush']\n";
    let fixture = serve_faulty(AT_ONCE, 1.0, faults);
    let mut client = Client::simple(&fixture);
    assert_eq!(client.write(0, 0, &[4; 512]), 0);
    assert_eq!(error_of(&mut client, 3, 0, 0), 5);
    assert_eq!(client.read(0, 512), [4; 512]);
}

/// On a disk a flush waits for the medium. One that lies takes no time, and neither does force
/// unit access: the write goes to the cache.
#[test]
fn a_lying_flush_takes_no_time() {
    let faults = "[[fault]]\nkind = 'lying_flush'\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.toml");
    fs::write(&path, faults).unwrap();
    let mut flush_ms = Vec::new();
    for paths in [&[][..], &[path][..]] {
        let options = ServedOptions {
            speed: 10.0,
            faults: read_faults(paths, 1, 1000).unwrap(),
            ..ServedOptions::default()
        };
        let fixture = serve("sata-7200", &[], &options);
        let mut client = Client::simple(&fixture);
        for round in 0..5 {
            assert_eq!(client.write(round * 100_000_000_000, 0, &[1; 4096]), 0);
            assert_eq!(client.ask(3, 0, (0, 0)).error, 0);
        }
        while fixture.served.statistics.requests() < 10 {
            thread::yield_now();
        }
        let report = fixture.served.statistics.report();
        let flushes = report
            .operations
            .iter()
            .find(|of| of.kind == RequestKind::Flush);
        flush_ms.push(flushes.unwrap().service_ms_p50);
    }
    assert!(flush_ms[0] > 1.0 && flush_ms[1] < 0.001, "{flush_ms:?}");
}

#[test]
fn the_same_requests_are_struck_the_same() {
    let run = |seed: u64| {
        let faults = format!(
            "seed = {seed}\n[[fault]]\nkind = 'error'\nper_thousand = 200\n\
             [[fault]]\nkind = 'lost_write'\nper_thousand = 300\n\
             [[fault]]\nkind = 'misdirected_write'\nper_thousand = 100\n"
        );
        let fixture = serve_faulty(AT_ONCE, 1.0, &faults);
        let mut client = Client::simple(&fixture);
        for at in 0..60 {
            client.write(at * 4096, 0, &[at as u8; 4096]);
        }
        let taken = fixture.served.drive.take_strikes().strikes;
        let of = |strike: &diskperf_device::faults::Strike| {
            (strike.request, strike.fault, strike.effect.name())
        };
        let strikes: Vec<_> = taken.iter().map(of).collect();
        fixture.served.drive.switch_fault("error", false);
        (strikes, client.read(0, SIZE_BYTES as u32))
    };
    let (strikes, image) = run(3);
    assert!(strikes.len() > 10, "{strikes:?}");
    let (again, same_image) = run(3);
    assert_eq!(strikes, again);
    assert!(image == same_image, "images differ");
    assert_ne!(strikes, run(4).0);
}
