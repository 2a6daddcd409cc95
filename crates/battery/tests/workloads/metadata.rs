//! `metadata`: what it does to names, and what it counts.

use crate::bench::{
    SIZE_BYTES, assert_sound, files_modelled, machine, program, run_modelled, run_workers, work,
    worker,
};
use diskperf_battery::Worker;
use diskperf_system::System;
use diskperf_timeline::Nanoseconds;

/// Every phase does its operation to each file, makes it durable as it is told to, and
/// leaves what it should; so does the next repetition.
#[test]
fn metadata_counts_each_kind_of_operation() {
    let files = SIZE_BYTES / 4096;
    for (fsync, phases, counts, left) in [
        ("none", "create+stat+rename+unlink", [1, 1, 1, 1, 0], None),
        ("file", "create+unlink", [1, 0, 0, 1, 1], None),
        (
            "file_and_directory",
            "create+rename",
            [1, 0, 1, 0, 3],
            Some('r'),
        ),
        (
            "file_and_directory",
            "stat+rename",
            [0, 1, 1, 0, 1],
            Some('r'),
        ),
        ("file_and_directory", "stat", [0, 1, 0, 0, 0], Some('f')),
        ("none", "unlink", [0, 0, 0, 1, 0], None),
    ] {
        let machine = machine();
        let program = program("metadata", &[("fsync", fsync), ("phases", phases)]);
        for _ in 0..2 {
            let measures = run_modelled(&machine, &program);
            let load = measures[0]
                .load_measure
                .as_ref()
                .expect("its calls are counted");
            let kinds = [
                &load.create,
                &load.stat,
                &load.rename,
                &load.unlink,
                &load.sync,
            ];
            let found = kinds.map(|kind| kind.request_count());
            assert_eq!(
                found,
                counts.map(|times| times * files),
                "{fsync}, {phases}"
            );
            let spans: Nanoseconds = kinds[..4].iter().map(|kind| kind.elapsed_span).sum();
            assert!(
                spans <= measures[0].elapsed_time,
                "{fsync}, {phases}: one after the other"
            );
            let there = files_modelled(&machine, 0, "names0/");
            let expected = left.map_or(0, |_| files);
            assert_eq!(there.len() as u64, expected, "{fsync}, {phases}");
            for (name, bytes) in there {
                let (_, name) = name.split_once('/').expect("it is in a directory");
                assert!(left.is_some_and(|first| name.starts_with(first)), "{name}");
                assert_eq!(bytes.len(), 4096, "{name}");
            }
            assert_sound(&machine);
        }
    }
}

/// Files without bytes, by several workers, each with names of its own.
#[test]
fn metadata_of_empty_files_is_of_names_alone() {
    let machine = machine();
    let settings = [("file_bytes", "0"), ("workers", "2"), ("directories", "3")];
    let program = program("metadata", &settings);
    let measures = run_workers(&machine, 2, async move |system: &mut System, index| {
        let worker = Worker {
            size_bytes: 100,
            ..worker(index)
        };
        work(system, &program, &worker).await
    });
    for measure in measures {
        let load = measure.load_measure.expect("its calls are counted");
        assert_eq!((load.create.request_count(), load.create.bytes), (100, 0));
        assert_eq!(measure.written_bytes, 0);
    }
    assert_sound(&machine);
}
