//! What is counted of the calls of the timed part.

use super::World;
use super::steps::{make, make_open, pattern, read, refused, seek, write_all};
use diskperf_system::{Errno, OpenOptions};
use diskperf_timeline::WorkerMeasure;

/// Calls, bytes read and written, and latencies of reads and writes.
fn counts(measure: &WorkerMeasure) -> [u64; 5] {
    [
        measure.call_count,
        measure.read_bytes,
        measure.written_bytes,
        measure.read_latency.latency_count(),
        measure.write_latency.latency_count(),
    ]
}

fn start_measuring(system: &mut World) {
    let now = system.now();
    system.start_measuring(now).unwrap();
}

pub(crate) async fn what_was_moved_is_counted(system: &mut World) {
    let data = pattern(1000);
    let file = make_open(system, "/mnt0/file", &data).await;
    start_measuring(system);
    // Ten pieces, and the end.
    for _ in 0..11 {
        read(system, file, 100).await;
    }
    for _ in 0..3 {
        write_all(system, file, &data).await;
    }
    seek(system, file, 0).await;
    system.fsync(file).await.unwrap();
    let measure = system.finish_measuring().await.unwrap();
    assert_eq!(counts(&measure), [14, 1000, 3000, 11, 3]);
}

/// More than a process may have open at once, if it kept them all to sync them.
pub(crate) async fn many_files_are_written_and_closed(system: &mut World) {
    const FILES: u64 = 1200;
    start_measuring(system);
    for number in 0..FILES {
        let path = format!("/mnt0/file{number}");
        let file = system.open(&path, OpenOptions::CREATE).await.unwrap();
        write_all(system, file, b"x").await;
        system.close(file).await.unwrap();
    }
    let measure = system.finish_measuring().await.unwrap();
    assert_eq!(counts(&measure), [FILES, 0, FILES, 0, FILES]);
    assert!(
        measure
            .durable_time
            .is_some_and(|durable| durable >= measure.elapsed_time)
    );
}

pub(crate) async fn only_the_timed_part_is_counted(system: &mut World) {
    let data = pattern(1000);
    for _ in 0..2 {
        make(system, "/mnt0/file", &data).await;
        let file = system
            .open("/mnt0/file", OpenOptions::READ_WRITE)
            .await
            .unwrap();
        write_all(system, file, &data).await;
        seek(system, file, 0).await;
        start_measuring(system);
        read(system, file, 1000).await;
        let measure = system.finish_measuring().await.unwrap();
        assert_eq!(counts(&measure), [1, 1000, 0, 1, 0]);
        assert_eq!(measure.durable_time, None);
        system.close(file).await.unwrap();
    }
}

pub(crate) async fn a_call_that_failed_is_not_counted(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"data").await;
    let to_read = system.open("/mnt0/file", OpenOptions::READ).await.unwrap();
    system.close(file).await.unwrap();
    start_measuring(system);
    refused(system.read(file, &mut [0; 4]).await, Errno::BadFile);
    refused(system.write(to_read, b"data").await, Errno::BadFile);
    let measure = system.finish_measuring().await.unwrap();
    assert_eq!(counts(&measure), [0; 5]);
    assert_eq!(measure.durable_time, None);
}

pub(crate) async fn what_was_written_has_a_time_when_it_is_durable(system: &mut World) {
    for close_it in [false, true] {
        let file = system
            .open("/mnt0/file", OpenOptions::CREATE)
            .await
            .unwrap();
        start_measuring(system);
        write_all(system, file, &pattern(10_000)).await;
        if close_it {
            system.close(file).await.unwrap();
        }
        let measure = system.finish_measuring().await.unwrap();
        let durable = measure.durable_time.expect("a file was written");
        assert!(measure.elapsed_time <= durable);
        system.close_all().await;
    }
}
