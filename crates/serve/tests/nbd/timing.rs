//! Time: never early, and as the model says.

use crate::client::{Client, serve};
use diskperf_catalogue::Catalogue;
use diskperf_device::{Drive, Operation, Unit};
use diskperf_serve::{RequestKind, ServedOptions, TimedRequest, resolve_drive};
use diskperf_sim::{RandomStreams, Time};
use std::time::{Duration, Instant};

#[test]
fn no_answer_is_early() {
    for (speed, wall_ms) in [(1.0, 10), (2.0, 5), (0.5, 20)] {
        let options = ServedOptions {
            speed,
            ..ServedOptions::default()
        };
        let fixture = serve("fixed", &["drive.service_ms=10"], &options);
        let mut client = Client::simple(&fixture);
        for _ in 0..10 {
            let start = Instant::now();
            client.read(0, 4096);
            let elapsed = start.elapsed();
            assert!(
                elapsed >= Duration::from_millis(wall_ms),
                "{elapsed:?} at {speed}"
            );
        }
        // The last one is counted after its answer was sent.
        while fixture.served.statistics.requests() < 10 {
            std::thread::yield_now();
        }
        let report = fixture.served.statistics.report();
        let reads = &report.operations[0];
        assert_eq!((reads.kind, reads.requests), (RequestKind::Read, 10));
        assert!((9.99..10.02).contains(&reads.service_ms_p50), "{reads:?}");
    }
}

/// Requests share one server: the last of eight that come together waits for the others.
#[test]
fn the_queue_is_that_of_the_drive() {
    let settings = ["drive.service_ms=5", "drive.queue_depth=2"];
    let fixture = serve("fixed", &settings, &ServedOptions::default());
    let mut client = Client::simple(&fixture);
    let start = Instant::now();
    for cookie in 0..8 {
        client.request(0, 0, cookie, (0, 512));
    }
    for cookie in 0..8 {
        assert_eq!(client.answer(512).cookie, cookie);
        let elapsed = start.elapsed();
        let due = Duration::from_millis(5 * (cookie + 1));
        assert!(elapsed >= due, "answer {cookie} after {elapsed:?}");
    }
}

/// Returns the completion times of arrivals that are submitted to a drive in virtual time.
/// Requests that find its queue full wait for room.
fn due_in_virtual_time(drive: &mut Drive, arrivals: &[TimedRequest]) -> Vec<Time> {
    let mut due = vec![Time::ZERO; arrivals.len()];
    let mut in_drive = Vec::new();
    let mut take = |drive: &mut Drive, in_drive: &mut Vec<_>| {
        for completion in drive.completions() {
            let place = in_drive.iter().position(|(id, _)| *id == completion.id);
            let (_, index): (_, usize) = in_drive.remove(place.expect("it was submitted"));
            due[index] = completion.completed;
        }
    };
    for (index, arrival) in arrivals.iter().enumerate() {
        drive.run_until(arrival.arrived);
        take(drive, &mut in_drive);
        let operation = match arrival.request.kind {
            RequestKind::Read => Operation::Read,
            RequestKind::Write => Operation::Write {
                fua: arrival.request.fua,
            },
            RequestKind::Flush => Operation::Flush,
            other => panic!("{other:?} was not sent"),
        };
        let sector_bytes = u64::from(drive.device().sector_bytes());
        let sector = arrival.request.offset / sector_bytes;
        let sectors = (arrival.request.bytes / sector_bytes) as u32;
        let id = drive
            .submit(operation, sector, sectors)
            .expect("there is room");
        in_drive.push((id, index));
    }
    while drive.under_way() > 0 && drive.step() {
        take(drive, &mut in_drive);
    }
    due
}

#[test]
fn the_same_arrivals_in_virtual_time_are_due_at_the_same_nanosecond() {
    for name in ["sata-7200", "sas-10k", "nvme-tlc", "fixed"] {
        let options = ServedOptions {
            keeps_arrivals: true,
            ..ServedOptions::default()
        };
        let fixture = serve(name, &[], &options);
        let mut client = Client::simple(&fixture);
        let mut draws = RandomStreams::new(17).named_stream("load");
        let blocks = fixture.served.size_bytes / 4096;
        for round in 0..6 {
            let mut is_read = [false; 16];
            for cookie in 0..16 {
                let offset = draws.draw_below(blocks) * 4096;
                match (draws.draw_below(4), cookie) {
                    (_, 15) => client.request(3, 0, cookie, (0, 0)),
                    (0, _) => client.send_write(cookie, offset, u16::from(round == 0), &[1; 4096]),
                    _ => {
                        is_read[cookie as usize] = true;
                        client.request(0, 0, cookie, (offset, 4096));
                    }
                }
                std::thread::sleep(Duration::from_micros(draws.draw_below(500)));
            }
            for _ in 0..16 {
                let head = client.receive(16);
                assert_eq!(head[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
                let cookie = u64::from_be_bytes(head[8..].try_into().unwrap());
                if is_read[cookie as usize] {
                    client.receive(4096);
                }
            }
        }
        let arrivals = fixture.served.drive.take_arrivals();
        assert_eq!(arrivals.len(), 96, "{name}");
        let specification = resolve_drive(&Catalogue::embedded(), name, &[]).unwrap();
        let streams = RandomStreams::new(options.seed);
        let mut drive = Drive::new(specification.build(&streams, Unit::default()));
        let found = due_in_virtual_time(&mut drive, &arrivals);
        let served: Vec<_> = arrivals
            .iter()
            .map(|arrival| arrival.due.unwrap())
            .collect();
        assert_eq!(found, served, "{name}, seed 17");
    }
}
