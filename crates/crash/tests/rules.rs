//! The rules of power cuts, against the contents of a drive in `diskperf-device`, which follow
//! the same rules by another way.

use diskperf_crash::{
    Cut, CutPolicy, Entry, Instants, Log, LyingFlush, Overlay, Recording, RequestKind, log_writes,
};
use diskperf_device::{Contents, Operation, RequestId, WriteCache};
use proptest::prelude::*;
use std::sync::Arc;

const UNIT_BYTES: u32 = 512;
const UNIT_COUNT: u64 = 24;

/// Step of a random workload.
#[derive(Clone, Debug)]
enum Step {
    Write {
        first: u64,
        count: u64,
        fua: bool,
    },
    Zeroes {
        first: u64,
        count: u64,
    },
    Flush,
    /// Completion of a request in flight, by its place among them.
    Complete(usize),
    Mark,
}

fn step() -> impl Strategy<Value = Step> {
    let range = || {
        (0..UNIT_COUNT, 1..5_u64).prop_map(|(first, count)| (first, count.min(UNIT_COUNT - first)))
    };
    prop_oneof![
        4 => (range(), prop::bool::weighted(0.2)).prop_map(|((first, count), fua)| Step::Write { first, count, fua }),
        1 => range().prop_map(|(first, count)| Step::Zeroes { first, count }),
        1 => Just(Step::Flush),
        5 => (0..8_usize).prop_map(Step::Complete),
        1 => Just(Step::Mark),
    ]
}

fn label(request: usize) -> Vec<u8> {
    let mut unit = vec![0; UNIT_BYTES as usize];
    unit[..8].copy_from_slice(&(request as u64 + 1).to_le_bytes());
    unit
}

fn record(steps: &[Step], cache: WriteCache, lying: LyingFlush) -> Log {
    let size_bytes = UNIT_COUNT * u64::from(UNIT_BYTES);
    let mut recording = Recording::new(UNIT_BYTES, size_bytes, cache, lying);
    let mut in_flight = Vec::new();
    let (mut requests, mut marks) = (0, 0);
    let bytes = |units: u64| units * u64::from(UNIT_BYTES);
    for step in steps {
        let submitted = match *step {
            Step::Write { first, count, fua } => {
                let data = label(requests).repeat(count as usize);
                recording.submit_write(bytes(first), &data, fua).unwrap()
            }
            Step::Zeroes { first, count } => recording
                .submit_zeroes(RequestKind::Trim, bytes(first), bytes(count), false)
                .unwrap(),
            Step::Flush => recording.submit_flush(),
            Step::Complete(_) if in_flight.is_empty() => continue,
            Step::Complete(place) => {
                let place = place % in_flight.len();
                recording.complete(in_flight.remove(place));
                continue;
            }
            Step::Mark => {
                recording.mark(&marks.to_string());
                marks += 1;
                continue;
            }
        };
        requests += 1;
        in_flight.push(submitted);
    }
    recording.finish()
}

/// Label of the write that a unit has after a cut.
fn found(log: &Log, cut: &Cut, unit: u64) -> Option<u64> {
    let data = log.read(cut, unit)?;
    Some(u64::from_le_bytes(data[..8].try_into().unwrap()))
}

fn apply(contents: &mut Contents<u64>, log: &Log, entry: Entry) {
    match entry {
        Entry::Mark(_) => {}
        Entry::Complete(index) => contents.complete(RequestId::first_of_slot(index as u32)),
        Entry::Submit(index) => {
            let request = &log.requests[index];
            let operation = match request.kind {
                RequestKind::Write => Operation::Write { fua: request.fua },
                RequestKind::Flush => Operation::Flush,
                RequestKind::Trim => Operation::Discard,
                RequestKind::WriteZeroes => Operation::WriteZeroes,
                RequestKind::FileChange => unreachable!("a drive has no files"),
            };
            let value = |_| index as u64 + 1;
            contents.submit(
                RequestId::first_of_slot(index as u32),
                operation,
                request.units.clone(),
                value,
            );
        }
    }
}

fn compare(log: &Log, cache: WriteCache) -> Result<(), TestCaseError> {
    let mut contents = Contents::new(cache);
    for position in 0..=log.entries.len() {
        if let Some(before) = position.checked_sub(1) {
            apply(&mut contents, log, log.entries[before]);
        }
        let none = &CutPolicy::None.cuts(log, position, 1)[0];
        let all = &CutPolicy::All.cuts(log, position, 1)[0];
        let others = [
            CutPolicy::Each,
            CutPolicy::Torn,
            CutPolicy::Random { seed: 7 },
        ];
        let others = others.map(|policy| policy.cuts(log, position, 3));
        for unit in 0..UNIT_COUNT {
            prop_assert_eq!(
                found(log, none, unit),
                contents.durable(unit).copied(),
                "none"
            );
            prop_assert_eq!(found(log, all, unit), contents.read(unit).copied(), "all");
            let possible: Vec<Option<u64>> = contents
                .possible(unit)
                .map(|value| value.copied())
                .collect();
            for cut in others.iter().flatten() {
                let found = found(log, cut, unit);
                prop_assert!(
                    possible.contains(&found),
                    "{found:?} is none of {possible:?}"
                );
            }
        }
    }
    Ok(())
}

fn all_cuts(log: &Log) -> Vec<Cut> {
    let positions = Instants::All.positions(log, 1).into_iter();
    let cuts = positions.flat_map(|position| CutPolicy::Each.cuts(log, position, 1));
    cuts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_cut_leaves_what_the_contents_of_the_drive_allow(steps in prop::collection::vec(step(), 1..60)) {
        for cache in [WriteCache::Volatile, WriteCache::Durable] {
            compare(&record(&steps, cache, LyingFlush::default()), cache)?;
        }
    }

    #[test]
    fn a_drive_with_a_protected_cache_loses_nothing_that_it_acknowledged(steps in prop::collection::vec(step(), 1..60)) {
        let log = record(&steps, WriteCache::Durable, LyingFlush::default());
        for position in 0..=log.entries.len() {
            for request in log.at_risk(position) {
                prop_assert!(!log.requests[request].is_completed_at(position));
            }
        }
    }

    #[test]
    fn a_log_of_dm_log_writes_has_the_same_durable_contents(steps in prop::collection::vec(step(), 1..60)) {
        let log = record(&steps, WriteCache::Volatile, LyingFlush::default());
        let mut file = Vec::new();
        log_writes::write(&log, &mut file).unwrap();
        let size_bytes = UNIT_COUNT * u64::from(UNIT_BYTES);
        let back = log_writes::read(&mut &file[..], Some(size_bytes)).unwrap();
        prop_assert_eq!(back.marks.len(), log.marks.len());
        let has_fua = log.requests.iter().any(|request| request.fua);
        for policy in [CutPolicy::None, CutPolicy::All] {
            // A write that goes to the log before one with force unit access may be flushed sooner.
            if has_fua && policy == CutPolicy::None {
                continue;
            }
            let cut = &policy.cuts(&log, log.entries.len(), 1)[0];
            let other = &policy.cuts(&back, back.entries.len(), 1)[0];
            for unit in (0..UNIT_COUNT).filter(|_| back.unit_bytes == UNIT_BYTES) {
                let zeroes = [0; UNIT_BYTES as usize];
                let left = log.read(cut, unit).unwrap_or(&zeroes);
                prop_assert!(left == back.read(other, unit).unwrap_or(&zeroes), "unit {unit}");
            }
        }
    }

    #[test]
    fn a_stored_log_is_the_same_or_refused(
        steps in prop::collection::vec(step(), 1..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let log = record(&steps, WriteCache::Volatile, LyingFlush { ignored: 1, round: 3 });
        let mut stored = postcard::to_allocvec(&log).unwrap();
        let back: Log = postcard::from_bytes(&stored).unwrap();
        prop_assert_eq!(&postcard::to_allocvec(&back).unwrap(), &stored);
        for cut in all_cuts(&log) {
            for unit in 0..UNIT_COUNT {
                prop_assert_eq!(log.read(&cut, unit), back.read(&cut, unit));
            }
        }
        for (place, byte) in changes {
            *place.get_mut(&mut stored) = byte;
        }
        // Whatever was read, its cuts can be read.
        if let Ok(changed) = postcard::from_bytes::<Log>(&stored) {
            for cut in all_cuts(&changed) {
                changed.read(&cut, 0);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2048), at in 0..2048_usize) {
        let log = record(&[Step::Write { first: 0, count: 2, fua: false }, Step::Complete(0), Step::Flush], WriteCache::Volatile, LyingFlush::default());
        let mut file = Vec::new();
        log_writes::write(&log, &mut file).unwrap();
        let at = at.min(file.len());
        let end = (at + bytes.len()).min(file.len());
        file[at..end].copy_from_slice(&bytes[..end - at]);
        let _ = log_writes::read(&mut &file[..], None);
        let _ = log_writes::read(&mut &bytes[..], None);
    }
}

#[test]
fn an_ignored_flush_makes_nothing_durable() {
    let steps = [
        Step::Write {
            first: 3,
            count: 1,
            fua: false,
        },
        Step::Complete(0),
        Step::Flush,
        Step::Complete(0),
    ];
    for (ignored, expected) in [(0, Some(1)), (1, None)] {
        let log = record(
            &steps,
            WriteCache::Volatile,
            LyingFlush { ignored, round: 1 },
        );
        assert_eq!(found(&log, &Cut::losing_all(log.end), 3), expected);
    }
}

#[test]
fn the_same_seed_leaves_the_same_bytes() {
    let steps: Vec<Step> = (0..20)
        .flat_map(|first| {
            [
                Step::Write {
                    first,
                    count: 4,
                    fua: false,
                },
                Step::Complete(0),
            ]
        })
        .collect();
    let log = record(&steps, WriteCache::Volatile, LyingFlush::default());
    let cut = |seed| CutPolicy::Random { seed }.cuts(&log, log.end, 1);
    assert_eq!(cut(5), cut(5));
    assert_ne!(cut(5), cut(6));
}

#[test]
fn instants_are_the_flushes_a_sample_of_them_or_all() {
    let steps: Vec<Step> = (0..10)
        .flat_map(|first| {
            let write = Step::Write {
                first,
                count: 1,
                fua: false,
            };
            [
                write,
                Step::Complete(0),
                Step::Flush,
                Step::Complete(0),
                Step::Mark,
            ]
        })
        .collect();
    let log = record(&steps, WriteCache::Volatile, LyingFlush::default());
    let count = |instants: Instants| instants.positions(&log, 1).len();
    assert_eq!(count(Instants::Each), 11);
    assert_eq!(count(Instants::All), 51);
    for wanted in [1, 5, 11, 30, 51, 1000] {
        assert_eq!(count(Instants::Count(wanted)), wanted.min(51));
    }
}

#[test]
fn an_overlay_keeps_the_log_as_it_is() {
    let steps = [
        Step::Write {
            first: 0,
            count: 2,
            fua: true,
        },
        Step::Complete(0),
    ];
    let log = Arc::new(record(&steps, WriteCache::Volatile, LyingFlush::default()));
    let medium = || Overlay::new(Arc::clone(&log), Cut::losing_all(log.end));
    let mut written = medium();
    written.write(512, &[7; 512]).unwrap();
    written.zero(0, 512).unwrap();
    let read = |of: &Overlay| {
        let mut bytes = [1; 1536];
        of.read(0, &mut bytes).unwrap();
        [bytes[0], bytes[512], bytes[1024]]
    };
    assert_eq!(read(&written), [0, 7, 0]);
    assert_eq!(read(&medium()), [1, 1, 0]);
    let mut medium = medium();
    for (offset, bytes) in [
        (1, 512),
        (0, 511),
        (UNIT_COUNT * 512, 512),
        (u64::MAX - 511, 512),
    ] {
        assert!(medium.zero(offset, bytes).is_err(), "{bytes} at {offset}");
    }
}

#[test]
fn an_unreadable_sector_spoils_its_neighbours_until_they_are_written() {
    for (medium_bytes, spoiled) in [(512, 9..10), (4096, 8..16)] {
        let size_bytes = 512 * UNIT_COUNT;
        let volatile = WriteCache::Volatile;
        let mut recording = Recording::new(UNIT_BYTES, size_bytes, volatile, LyingFlush::default())
            .with_medium_sector(medium_bytes);
        let all = recording.submit_write(0, &[1; 512 * 24], true).unwrap();
        recording.complete(all);
        let one = recording.submit_write(9 * 512, &[2; 512], false).unwrap();
        recording.complete(one);
        let log = Arc::new(recording.finish());
        let cuts = CutPolicy::Unreadable.cuts(&log, log.end, 1);
        assert_eq!(cuts.len(), 1);
        let mut medium = Overlay::new(Arc::clone(&log), cuts[0].clone());
        let is_readable = |medium: &Overlay, unit: u64| {
            let mut bytes = [0; 512];
            let read = medium.read(512 * unit, &mut bytes);
            assert!(read.is_err() || bytes == [1; 512], "unit {unit}");
            read.is_ok()
        };
        for unit in 0..UNIT_COUNT {
            assert_eq!(
                is_readable(&medium, unit),
                !spoiled.contains(&unit),
                "{unit}"
            );
        }
        medium.write(9 * 512, &[1; 512]).unwrap();
        assert!(is_readable(&medium, 9));
        assert_eq!(is_readable(&medium, 10), medium_bytes == 512);
        medium.zero(8 * 512, 8 * 512).unwrap();
        assert_eq!(medium.read(0, &mut [0; 512 * 24]), Ok(()));
    }
}

#[test]
fn broken_logs_are_refused_with_the_reason() {
    let log = record(
        &[
            Step::Write {
                first: 1,
                count: 1,
                fua: true,
            },
            Step::Complete(0),
        ],
        WriteCache::Volatile,
        LyingFlush::default(),
    );
    let mut file = Vec::new();
    log_writes::write(&log, &mut file).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // The flush and the mark of the beginning come first.
    let entry = 512 * 3;
    for (file, size_bytes, part) in [
        (changed(0, b"x"), None, "no log of dm-log-writes"),
        (changed(8, &[9]), None, "version 9"),
        (
            changed(24, &7_u32.to_le_bytes()),
            None,
            "sectors of 7 bytes",
        ),
        (
            changed(16, &99_u64.to_le_bytes()),
            None,
            "ends within entry 4 of 99",
        ),
        (
            changed(entry, &u64::MAX.to_le_bytes()),
            None,
            "beyond the device",
        ),
        (
            changed(entry + 8, &u64::MAX.to_le_bytes()),
            None,
            "beyond the device",
        ),
        (file.clone(), Some(512), "give a larger --size"),
        (
            file[..file.len() - 1].to_vec(),
            None,
            "ends within entry 3 of 3",
        ),
    ] {
        let error = log_writes::read(&mut &file[..], size_bytes)
            .expect_err(part)
            .to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}
