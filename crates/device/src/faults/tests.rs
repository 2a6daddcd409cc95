use super::*;
use std::ops::Range;

const SECTOR: u64 = 512;
const SECTORS: u64 = 1000;

fn fault(kind: FaultKind) -> FaultSpecification {
    FaultSpecification {
        name: "it".to_owned(),
        kind,
        is_on: true,
        seed: 5,
        sectors: 0..SECTORS,
        operations: vec![OperationKind::Read, OperationKind::Write],
        start: FaultStart::Time(Time::ZERO),
        length: FaultLength::Unlimited,
    }
}

fn faults(specifications: &[FaultSpecification]) -> Faults {
    Faults::new(specifications, SECTORS, SECTOR as u32)
}

fn request(operation: Operation, sectors: Range<u64>) -> FaultRequest {
    FaultRequest {
        operation,
        offset: sectors.start * SECTOR,
        bytes: (sectors.end - sectors.start) * SECTOR,
    }
}

fn read(sectors: Range<u64>) -> FaultRequest {
    request(Operation::Read, sectors)
}

fn write(sectors: Range<u64>) -> FaultRequest {
    request(Operation::Write { fua: false }, sectors)
}

const UNREADABLE: FaultKind = FaultKind::UnreadableSectors {
    runs: None,
    retry: Time(300),
    reassignment: Time(70),
};

#[test]
fn unreadable_sectors_fail_exactly_until_they_are_written() {
    let bad = FaultSpecification {
        sectors: 100..108,
        ..fault(UNREADABLE)
    };
    let mut faults = faults(&[bad]);
    let fails = |faults: &mut Faults| -> Vec<u64> {
        (0..SECTORS)
            .filter(|at| faults.arrive(Time::ZERO, read(*at..at + 1)).fails)
            .collect()
    };
    assert_eq!(fails(&mut faults), (100..108).collect::<Vec<_>>());
    let failed = faults.arrive(Time::ZERO, read(90..101));
    assert_eq!((failed.fails, failed.delay), (true, Time(300)));
    // Writing a part of a sector needs the rest of it.
    let part = FaultRequest {
        bytes: 100,
        ..write(101..102)
    };
    assert!(faults.arrive(Time::ZERO, part).fails);
    let healed = faults.arrive(Time::ZERO, write(98..103));
    assert_eq!((healed.fails, healed.delay), (false, Time(70)));
    assert_eq!(fails(&mut faults), (103..108).collect::<Vec<_>>());
    assert_eq!(
        faults.arrive(Time::ZERO, write(98..103)).delay,
        Time::ZERO,
        "healed sectors are as fast as others"
    );
    assert!(faults.switch("it", false, Time::ZERO));
    assert!(fails(&mut faults).is_empty());
}

#[test]
fn runs_are_placed_by_the_seed_within_the_range() {
    let runs = Some(SectorRuns {
        count: 3,
        sectors: 4,
    });
    let kind = FaultKind::SlowSectors {
        runs,
        delay: Time(9),
    };
    let place = |seed| {
        let specification = FaultSpecification {
            seed,
            sectors: 500..600,
            ..fault(kind)
        };
        let mut faults = faults(&[specification]);
        let is_slow = |at: &u64| faults.arrive(Time::ZERO, read(*at..at + 1)).delay == Time(9);
        (0..SECTORS).filter(is_slow).collect::<Vec<_>>()
    };
    let first = place(1);
    assert!(first.len() >= 4 && first.len() <= 12, "{first:?}");
    assert!(first.iter().all(|at| (500..600).contains(at)), "{first:?}");
    assert_eq!(first, place(1));
    assert_ne!(first, place(2));
}

#[test]
fn a_slow_third_of_the_addresses_has_the_computed_mean() {
    let slow = FaultSpecification {
        sectors: 0..SECTORS / 4,
        ..fault(FaultKind::SlowDrive { factor: 3.0 })
    };
    let mut faults = faults(&[slow]);
    let (mut now, mut total_ns) = (Time::ZERO, 0);
    for at in 0..SECTORS {
        let effects = faults.arrive(now, read(at..at + 1));
        let completion = faults.complete(read(at..at + 1), &effects, now, now + Time(1000));
        total_ns += (completion.due - now).0;
        now = completion.due;
    }
    // A quarter of the requests takes three times as long.
    assert_eq!(total_ns, SECTORS * 1000 + SECTORS / 4 * 2000);
    assert_eq!(faults.states()[0].strikes, SECTORS / 4);
}

#[test]
fn a_hang_releases_requests_at_its_end() {
    let hang = |interval| FaultKind::Hang {
        length: Time(40),
        interval,
    };
    let start = FaultStart::Time(Time(100));
    let cases = [
        (
            fault(hang(None)),
            [(99, 99), (0, 0), (100, 100), (5000, 5000)],
        ),
        (
            FaultSpecification {
                start,
                ..fault(hang(None))
            },
            [(99, 99), (100, 140), (139, 140), (140, 140)],
        ),
        (
            FaultSpecification {
                start,
                ..fault(hang(Some(Time(1000))))
            },
            [(99, 99), (1100, 1140), (1140, 1140), (7120, 7140)],
        ),
        (
            FaultSpecification {
                start,
                length: FaultLength::Time(Time(1500)),
                ..fault(hang(Some(Time(1000))))
            },
            [(130, 140), (1110, 1140), (2110, 2110), (3100, 3100)],
        ),
    ];
    for (index, (specification, expected)) in cases.into_iter().enumerate() {
        let mut faults = faults(std::slice::from_ref(&specification));
        for (due, release) in expected {
            // The first hang begins at once.
            let release = if index == 0 && due < 40 { 40 } else { release };
            assert_eq!(
                faults.release(Time(due)),
                Time(release),
                "{specification:?}"
            );
        }
        faults.switch("it", false, Time(0));
        assert_eq!(faults.release(Time(120)), Time(120));
    }
}

#[test]
fn a_hang_may_start_at_a_request() {
    let specification = FaultSpecification {
        start: FaultStart::Request(3),
        ..fault(FaultKind::Hang {
            length: Time(1000),
            interval: None,
        })
    };
    let mut faults = faults(&[specification]);
    for (now, release) in [(10, 15), (20, 25), (30, 1030)] {
        faults.arrive(Time(now), read(0..1));
        assert_eq!(faults.release(Time(now + 5)), Time(release));
    }
}

#[test]
fn a_dead_drive_fails_what_arrives_and_what_is_in_flight() {
    let death = FaultSpecification {
        start: FaultStart::Time(Time(100)),
        ..fault(FaultKind::Death)
    };
    let mut faults = faults(&[death]);
    let flush = request(Operation::Flush, 0..0);
    for (arrived, due, is_dead, fails) in [
        (10, 20, false, false),
        (90, 105, false, true),
        (100, 110, true, true),
    ] {
        for request in [read(1..2), write(1..2), flush] {
            let effects = faults.arrive(Time(arrived), request);
            let completion = faults.complete(request, &effects, Time(arrived), Time(due));
            assert_eq!((effects.is_dead, completion.fails), (is_dead, fails));
        }
    }
    assert_eq!(faults.states()[0].strikes, 6);
}

#[test]
fn start_and_length_may_be_counted_in_requests() {
    let specification = FaultSpecification {
        start: FaultStart::Request(3),
        length: FaultLength::Requests(2),
        ..fault(FaultKind::Error { probability: 1.0 })
    };
    let mut faults = faults(&[specification]);
    let failed: Vec<_> = (1..8)
        .filter(|_| faults.arrive(Time::ZERO, read(0..1)).fails)
        .collect();
    assert_eq!(failed, [3, 4]);
}

#[test]
fn errors_have_their_rate_and_their_operations() {
    let specification = FaultSpecification {
        operations: vec![OperationKind::Write],
        ..fault(FaultKind::Error { probability: 0.25 })
    };
    let mut faults = faults(&[specification]);
    let mut failed = 0;
    for _ in 0..4000 {
        assert!(!faults.arrive(Time::ZERO, read(0..1)).fails);
        failed += u32::from(faults.arrive(Time::ZERO, write(0..1)).fails);
    }
    assert!((900..1100).contains(&failed), "{failed}");
}

#[test]
fn silent_faults_change_writes_within_their_bounds() {
    for kind in [
        FaultKind::LostWrite { probability: 1.0 },
        FaultKind::TornWrite { probability: 1.0 },
        FaultKind::MisdirectedWrite { probability: 1.0 },
    ] {
        let mut faults = faults(&[fault(kind)]);
        for at in [0, 17, SECTORS - 8] {
            let effects = faults.arrive(Time::ZERO, write(at..at + 8));
            match effects.silent.expect("each write is struck").1 {
                SilentChange::Lost => {}
                SilentChange::Torn { bytes } => {
                    assert!(bytes.is_multiple_of(SECTOR), "{bytes}");
                    assert!(bytes > 0 && bytes < 8 * SECTOR, "{bytes}");
                }
                SilentChange::Misdirected { offset } => {
                    assert_ne!(offset, at * SECTOR);
                    assert!(offset <= (SECTORS - 8) * SECTOR, "{offset}");
                }
            }
            assert_eq!(faults.arrive(Time::ZERO, read(at..at + 8)).silent, None);
        }
    }
    // One sector is never torn.
    let mut faults = faults(&[fault(FaultKind::TornWrite { probability: 1.0 })]);
    assert_eq!(faults.arrive(Time::ZERO, write(3..4)).silent, None);
    assert_eq!(faults.states()[0].strikes, 0);
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let mut faults = faults(&[
        fault(FaultKind::LostWrite { probability: 1.0 }),
        FaultSpecification {
            name: "error".to_owned(),
            ..fault(FaultKind::Error { probability: 1.0 })
        },
    ]);
    let effects = faults.arrive(Time::ZERO, write(0..1));
    assert_eq!((effects.fails, effects.silent), (true, None));
    let strikes = faults.take_strikes().strikes;
    assert_eq!(strikes.len(), 1);
    assert_eq!(
        (strikes[0].fault, strikes[0].effect),
        (1, StrikeEffect::Failed)
    );
}

#[test]
fn rotten_bits_are_the_same_at_each_read() {
    let mut faults = faults(&[fault(FaultKind::BitRot { share: 0.1 })]);
    let whole = faults.arrive(Time::ZERO, read(0..SECTORS)).flips;
    assert!((60..140).contains(&whole.len()), "{}", whole.len());
    let single: Vec<_> = (0..SECTORS)
        .flat_map(|at| faults.arrive(Time::ZERO, read(at..at + 1)).flips)
        .collect();
    assert_eq!(whole, single);
    assert!(
        faults
            .arrive(Time::ZERO, write(0..SECTORS))
            .flips
            .is_empty()
    );
    faults.switch("it", false, Time::ZERO);
    assert!(faults.arrive(Time::ZERO, read(0..SECTORS)).flips.is_empty());
}

#[test]
fn a_lying_flush_ignores_flushes_and_force_unit_access() {
    let mut faults = faults(&[fault(FaultKind::LyingFlush { probability: 1.0 })]);
    for (operation, is_ignored) in [
        (Operation::Flush, true),
        (Operation::Write { fua: true }, true),
        (Operation::Write { fua: false }, false),
        (Operation::Read, false),
    ] {
        let effects = faults.arrive(Time::ZERO, request(operation, 0..1));
        assert_eq!(effects.ignores_durability, is_ignored, "{operation:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_strikes() {
    let strikes = |seed| {
        let kinds = [
            FaultKind::Error { probability: 0.3 },
            FaultKind::LostWrite { probability: 0.2 },
            FaultKind::MisdirectedWrite { probability: 0.2 },
        ];
        let specifications: Vec<_> = kinds
            .into_iter()
            .map(|kind| FaultSpecification {
                name: kind.name().to_owned(),
                seed,
                ..fault(kind)
            })
            .collect();
        let mut faults = faults(&specifications);
        for at in 0..200 {
            faults.arrive(Time(at), write(at..at + 4));
        }
        faults.take_strikes().strikes
    };
    let first = strikes(1);
    assert!(first.len() > 50, "{}", first.len());
    assert_eq!(first, strikes(1));
    assert_ne!(first, strikes(2));
}
