//! Several workers, each of which runs the body, joined by pipes in a ring.

use super::steps::{contents, make, pattern, read, read_to_end, refused, write_all};
use super::{READ_END, TOGETHER, WRITE_END};
use diskperf_system::{Errno, Open, System};

/// More than a pipe holds, and no multiple of a page.
const STREAM_BYTES: usize = 1_000_003;

pub(crate) async fn a_barrier_releases_all_at_one_moment(system: &mut System, _worker: usize) {
    let before = system.pipe_end(READ_END).await.unwrap();
    let after = system.pipe_end(WRITE_END).await.unwrap();
    let mut last = system.now();
    for _ in 0..10 {
        let released = system.barrier().await.unwrap();
        assert!(
            released >= last,
            "the barrier opened before this worker came"
        );
        assert!(system.now() >= released);
        write_all(system, after, &released.0.to_le_bytes()).await;
        assert_eq!(read(system, before, 8).await, released.0.to_le_bytes());
        last = system.now();
    }
}

pub(crate) async fn what_one_writes_another_reads(system: &mut System, worker: usize) {
    let own = format!("/mnt0/file{worker}");
    let next = format!("/mnt0/file{}", (worker + 1) % TOGETHER);
    make(system, &own, own.as_bytes()).await;
    system.barrier().await.unwrap();
    assert_eq!(contents(system, &next).await, next.as_bytes());
    system.barrier().await.unwrap();
    system.unlink(&next).await.unwrap();
    system.barrier().await.unwrap();
    refused(system.open(&own, Open::READ).await, Errno::NoEntry);
}

/// The first produces, the last consumes, those between pass on.
pub(crate) async fn a_pipeline_moves_more_than_a_pipe_holds(system: &mut System, worker: usize) {
    let before = system.pipe_end(READ_END).await.unwrap();
    let after = system.pipe_end(WRITE_END).await.unwrap();
    let stream = pattern(STREAM_BYTES);
    if worker == 0 {
        for piece in stream.chunks(8191) {
            write_all(system, after, piece).await;
        }
        system.close(after).await.unwrap();
    } else if worker < TOGETHER - 1 {
        loop {
            let piece = read(system, before, 5000).await;
            if piece.is_empty() {
                break;
            }
            write_all(system, after, &piece).await;
        }
        system.close(after).await.unwrap();
    } else {
        assert_eq!(read_to_end(system, before).await, stream);
    }
}

/// The last takes a little and leaves; each before it is told by EPIPE.
pub(crate) async fn a_pipeline_breaks_from_its_end(system: &mut System, worker: usize) {
    let before = system.pipe_end(READ_END).await.unwrap();
    let after = system.pipe_end(WRITE_END).await.unwrap();
    if worker == TOGETHER - 1 {
        assert_eq!(read(system, before, 10).await.len(), 10);
        system.close(before).await.unwrap();
        return;
    }
    let stream = pattern(10_000);
    let errno = loop {
        let piece = if worker == 0 {
            stream.clone()
        } else {
            read(system, before, 5000).await
        };
        assert!(!piece.is_empty(), "the worker before ended first");
        // A reader that leaves wakes a writer with the count so far.
        if let Err(error) = system.write(after, &piece).await {
            break error.errno();
        }
    };
    assert_eq!(errno, Some(Errno::BrokenPipe));
    system.close(before).await.unwrap();
}
