//! A drive by itself, of each kind of the catalogue. These fail when a request is lost or
//! done twice, when its time is not booked to its end, when a refusal has an effect, or when
//! two drives of one seed differ.

use diskperf_catalogue::{Catalogue, Component};
use diskperf_device::{Completion, DeviceSpecification, Drive, Operation, Refusal, Unit};
use diskperf_sim::{RandomStreams, Time};
use diskperf_spans::Nanoseconds;

/// Every drive of the catalogue that stands by itself.
fn names() -> Vec<String> {
    let catalogue = Catalogue::embedded();
    let names = catalogue.component_names(Component::Drive).into_iter();
    let names: Vec<String> = names
        .filter(|name| DeviceSpecification::from_catalogue(&catalogue, name).is_ok())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    names
}

fn drive(name: &str, seed: u64) -> Drive {
    let specification = DeviceSpecification::from_catalogue(&Catalogue::embedded(), name);
    let specification = specification.unwrap_or_else(|errors| panic!("{name}: {errors}"));
    Drive::new(specification.build(&RandomStreams::new(seed), Unit::default()))
}

/// A mixed load of all operations, as deep as the drive takes it.
fn load(drive: &mut Drive, seed: u64, requests: usize) -> Vec<Completion> {
    let mut draws = RandomStreams::new(seed).named_stream("load");
    let sectors = drive.device().sectors();
    let mut done = Vec::new();
    for _ in 0..requests {
        let operation = match draws.draw_below(20) {
            0 => Operation::Flush,
            1 => Operation::Discard,
            2 => Operation::WriteZeroes,
            3 => Operation::Write { fua: true },
            4..10 => Operation::from_direction(true),
            _ => Operation::Read,
        };
        let count = 1 + draws.draw_below(16) as u32;
        let sector = draws.draw_below(sectors - u64::from(count));
        loop {
            match drive.submit(operation, sector, count) {
                Ok(_) => break,
                Err(Refusal::QueueFull) => done.extend(drive.next_completion()),
                Err(refusal) => panic!("{refusal}"),
            }
        }
        if draws.draw_below(3) == 0 {
            drive.run_until(drive.now() + Time(draws.draw_below(200_000)));
            done.extend(drive.completions());
        }
    }
    while let Some(completion) = drive.next_completion() {
        done.push(completion);
    }
    done
}

#[test]
fn each_request_is_done_once_and_its_time_is_booked_to_the_end() {
    for name in names() {
        let mut drive = drive(&name, 3);
        let done = load(&mut drive, 11, 400);
        assert_eq!(done.len(), 400, "{name}");
        assert_eq!(drive.under_way(), 0, "{name}");
        for completion in &done {
            let booked = completion.spans().last().map(|span| span.stage_end);
            let ends = Nanoseconds(completion.completed.0);
            assert!(
                booked == Some(ends) || completion.latency() == Time::ZERO,
                "{name}: {completion:?}"
            );
            assert!(completion.completed <= drive.now(), "{name}");
        }
        let order: Vec<Time> = done.iter().map(|of| of.completed).collect();
        assert!(order.is_sorted(), "{name}: {order:?}");
    }
}

#[test]
fn two_drives_of_a_seed_do_the_same() {
    for name in names() {
        let run = || {
            let done = load(&mut drive(&name, 5), 13, 200);
            let times = done.iter().map(|of| (of.sector, of.completed));
            times.collect::<Vec<_>>()
        };
        assert_eq!(run(), run(), "{name}");
    }
}

#[test]
fn a_refusal_says_why_and_has_no_effect() {
    for name in names() {
        let mut drive = drive(&name, 7);
        let of = drive.device().sectors();
        let end = Refusal::BeyondEnd { sectors: of };
        for (sector, sectors, refusal) in [
            (0, 0, Refusal::Empty),
            (of, 1, end),
            (of - 1, 2, end),
            (u64::MAX, 1, end),
        ] {
            assert_eq!(
                drive.submit(Operation::Read, sector, sectors),
                Err(refusal),
                "{name}"
            );
        }
        assert_eq!(
            (drive.under_way(), drive.next_completion().is_none()),
            (0, true),
            "{name}"
        );
        let mut taken = 0_u64;
        while drive.submit(Operation::Read, taken % of, 1).is_ok() {
            taken += 1;
            assert!(taken < 1 << 20, "{name}: a queue without end");
        }
        assert_eq!(
            drive.submit(Operation::Read, 0, 1),
            Err(Refusal::QueueFull),
            "{name}"
        );
        assert_eq!(drive.under_way() as u64, taken, "{name}");
        assert!(drive.next_completion().is_some(), "{name}");
        drive
            .submit(Operation::Flush, u64::MAX, 9)
            .expect("room for one");
    }
}

#[test]
fn running_to_a_moment_that_is_past_changes_nothing() {
    let mut drive = drive("nvme-tlc", 1);
    drive.run_until(Time::from_millis(5));
    drive.run_until(Time::from_millis(1));
    assert_eq!(drive.now(), Time::from_millis(5));
}

#[test]
fn a_bare_mechanism_is_no_drive() {
    let error = DeviceSpecification::from_catalogue(&Catalogue::embedded(), "eagle")
        .expect_err("a disk of 1981");
    assert!(
        error
            .to_string()
            .contains("a disk mechanism needs a controller"),
        "{error}"
    );
    let error = DeviceSpecification::from_catalogue(&Catalogue::embedded(), "nothing")
        .expect_err("no name");
    assert!(error.to_string().contains("nothing"), "{error}");
}

#[test]
fn reads_of_a_written_flash_drive_go_to_its_dies() {
    let catalogue = Catalogue::embedded();
    let fresh = DeviceSpecification::from_catalogue(&catalogue, "nvme-tlc").expect("a flash drive");
    let latency = |of: &DeviceSpecification| {
        let mut drive = Drive::new(of.build(&RandomStreams::new(1), Unit::default()));
        drive.submit(Operation::Read, 4096, 1).expect("room");
        drive.next_completion().expect("one").latency()
    };
    let written = fresh.clone().written_at_random();
    assert!(latency(&written) > latency(&fresh) + Time(20_000));
}
