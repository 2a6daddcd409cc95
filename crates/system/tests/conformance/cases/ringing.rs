//! Several requests under way: each completes once, with its own result, in any order.

use super::World;
use super::steps::{make, make_open, pattern, read, refused, seek};
use crate::requests::{self, BLOCK, all, reads, request};
use diskperf_system::{
    CommittedTransaction, Errno, File, IoCompletion, IoOperation, OpenOptions, Result, RingOptions,
    Submission,
};
use diskperf_timeline::Nanoseconds;
use std::collections::BTreeSet;

fn options(system: &World, depth: u32) -> RingOptions {
    RingOptions {
        series_interval: Nanoseconds::from_millis(1),
        ..requests::options(depth, system.engine)
    }
}

async fn open_ring(system: &mut World, depth: u32, file: File) -> Result<()> {
    let options = options(system, depth);
    system.open_ring(options, &[file]).await
}

/// A file of so many blocks, open for both, with a ring to it.
async fn with_ring(system: &mut World, blocks: usize, depth: u32) -> File {
    let file = make_open(system, "/mnt0/file", &pattern(blocks * BLOCK as usize)).await;
    open_ring(system, depth, file).await.unwrap();
    file
}

fn start_measuring(system: &mut World) {
    let now = system.now();
    system.start_measuring(now).unwrap();
}

pub(crate) async fn the_end_of_a_file_cuts_a_read_short(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(10_000)).await;
    open_ring(system, 4, file).await.unwrap();
    let reads = reads(file, 0..4);
    let results = all(system, &reads).await;
    assert_eq!(results, [Ok(4096), Ok(4096), Ok(10_000 - 8192), Ok(0)]);
    if let Some(buffer) = system.ring_buffer(2) {
        assert_eq!(buffer[..1808], pattern(10_000)[8192..]);
    }
}

pub(crate) async fn what_a_ring_wrote_is_read_back(system: &mut World) {
    const BLOCKS: u64 = 24;
    let file = with_ring(system, 0, 8).await;
    let block_of = |block: u64| vec![block as u8 + 1; BLOCK as usize];
    for first in (0..BLOCKS).step_by(8) {
        let mut writes = Vec::new();
        for slot in 0..8 {
            let block = first + u64::from(slot);
            if let Some(buffer) = system.ring_buffer(slot) {
                buffer.copy_from_slice(&block_of(block));
            }
            writes.push(request(IoOperation::Write, file, slot, block));
        }
        assert_eq!(all(system, &writes).await, [Ok(BLOCK); 8]);
    }
    let has_data = system.ring_buffer(0).is_some();
    for block in 0..BLOCKS {
        let found = read(system, file, BLOCK as usize).await;
        assert_eq!(found.len(), BLOCK as usize);
        assert!(!has_data || found == block_of(block), "block {block}");
        let again = all(system, &[request(IoOperation::Read, file, 3, block)]).await;
        assert_eq!(again, [Ok(BLOCK)]);
        if let Some(buffer) = system.ring_buffer(3) {
            assert!(buffer == block_of(block), "block {block}");
        }
    }
}

/// What a program does not put into a buffer itself is there all the same, and new in
/// each write.
pub(crate) async fn a_ring_has_data_of_its_own(system: &mut World) {
    let file = with_ring(system, 0, 4).await;
    for round in 0..2 {
        let writes: Vec<Submission> = (0..4)
            .map(|slot| request(IoOperation::Write, file, slot, round * 4 + u64::from(slot)))
            .collect();
        assert_eq!(all(system, &writes).await, [Ok(BLOCK); 4]);
    }
    assert_eq!(
        system.file_length(file).await.unwrap(),
        8 * u64::from(BLOCK)
    );
    let mut blocks = BTreeSet::new();
    for _ in 0..8 {
        blocks.insert(read(system, file, BLOCK as usize).await);
    }
    if system.ring_buffer(0).is_some() {
        assert_eq!(blocks.len(), 8, "no two are the same");
        let zeroes = |block: &Vec<u8>| block.iter().filter(|byte| **byte == 0).count();
        assert!(blocks.iter().all(|block| zeroes(block) < 200));
    }
}

pub(crate) async fn a_failed_request_fails_by_itself(system: &mut World) {
    make(system, "/mnt0/file", &pattern(8192)).await;
    let file = system.open("/mnt0/file", OpenOptions::READ).await.unwrap();
    open_ring(system, 4, file).await.unwrap();
    let requests = [
        request(IoOperation::Read, file, 0, 0),
        request(IoOperation::Write, file, 1, 1),
        request(IoOperation::Read, file, 2, 1),
    ];
    let results = all(system, &requests).await;
    assert_eq!(results, [Ok(BLOCK), Err(Errno::BadFile), Ok(BLOCK)]);
}

pub(crate) async fn what_the_ring_does_not_know_is_refused(system: &mut World) {
    let file = with_ring(system, 4, 4).await;
    let other = make_open(system, "/mnt0/other", b"").await;
    let too_long = Submission {
        bytes: 2 * BLOCK,
        ..request(IoOperation::Read, file, 2, 0)
    };
    let requests = [
        request(IoOperation::Read, file, 0, 0),
        request(IoOperation::Read, other, 1, 0),
        too_long,
    ];
    let results = all(system, &requests).await;
    assert_eq!(
        results,
        [Ok(BLOCK), Err(Errno::BadFile), Err(Errno::Invalid)]
    );
    // A file that was closed is none.
    system.close(file).await.unwrap();
    let results = all(system, &[request(IoOperation::Read, file, 0, 0)]).await;
    assert_eq!(results, [Err(Errno::BadFile)]);
}

pub(crate) async fn an_impossible_ring_is_refused(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"x").await;
    let of = |depth, buffer_bytes| RingOptions {
        queue_depth: depth,
        buffer_bytes,
        ..options(system, 1)
    };
    let impossible = [of(0, BLOCK), of(4, 0), of(4, 100)];
    for options in impossible {
        refused(system.open_ring(options, &[file]).await, Errno::Invalid);
    }
    system.close(file).await.unwrap();
    let ring = open_ring(system, 1, file).await;
    refused(ring, Errno::BadFile);
    refused(system.submit_requests(&[]).await, Errno::BadFile);
    refused(
        system.reap_requests(1, None, &mut Vec::new()).await,
        Errno::BadFile,
    );
    // There is none to close, which is no error.
    system.close_ring().await.unwrap();
}

/// Whatever the order in which they end.
pub(crate) async fn each_slot_completes_once(system: &mut World) {
    const DEPTH: u32 = 16;
    const BLOCKS: u64 = 64;
    const REQUESTS: usize = 400;
    let file = with_ring(system, BLOCKS as usize, DEPTH).await;
    let mut under_way = BTreeSet::new();
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let (mut submitted, mut completed) = (0, 0);
    let mut completions: Vec<IoCompletion> = Vec::new();
    while completed < REQUESTS {
        // Batches of all sizes.
        let batch = free.len().min(1 + submitted % 7).min(REQUESTS - submitted);
        let mut submissions = Vec::new();
        for slot in free.drain(..batch) {
            let block = (submitted as u64 * 37) % BLOCKS;
            let operation = match submitted % 3 {
                0 => IoOperation::Write,
                _ => IoOperation::Read,
            };
            submissions.push(request(operation, file, slot, block));
            assert!(under_way.insert(slot));
            submitted += 1;
        }
        system.submit_requests(&submissions).await.unwrap();
        completions.clear();
        let at_least = (submitted % 5).min(under_way.len());
        system
            .reap_requests(at_least, None, &mut completions)
            .await
            .unwrap();
        assert!(completions.len() >= at_least);
        for completion in &completions {
            assert_eq!(completion.byte_count_or_errno, Ok(BLOCK));
            assert!(under_way.remove(&completion.slot), "{completion:?}");
            free.push(completion.slot);
            completed += 1;
        }
    }
    assert!(under_way.is_empty());
    system
        .reap_requests(1, None, &mut completions)
        .await
        .unwrap();
}

pub(crate) async fn syncs_complete(system: &mut World) {
    let file = with_ring(system, 4, 4).await;
    assert_eq!(
        all(system, &[request(IoOperation::Write, file, 0, 0)]).await,
        [Ok(BLOCK)]
    );
    let syncs = [
        request(IoOperation::Fsync, file, 0, 0),
        request(IoOperation::Fdatasync, file, 1, 0),
    ];
    assert_eq!(all(system, &syncs).await, [Ok(0), Ok(0)]);
}

pub(crate) async fn a_reap_ends_at_its_moment(system: &mut World) {
    let file = with_ring(system, 4, 2).await;
    let mut completions = Vec::new();
    // With nothing under way there is nothing to wait for, but a moment.
    let now = system
        .reap_requests(1, None, &mut completions)
        .await
        .unwrap();
    let moment = now + Nanoseconds::from_millis(3);
    let then = system
        .reap_requests(1, Some(moment), &mut completions)
        .await;
    assert!(then.unwrap() >= moment);
    assert_eq!(completions, []);
    // A moment of the past does not wait for what is under way.
    let read = request(IoOperation::Read, file, 1, 0);
    system.submit_requests(&[read]).await.unwrap();
    let then = system
        .reap_requests(2, Some(moment), &mut completions)
        .await
        .unwrap();
    assert!(then >= moment);
    // One that is far enough does, and ends as soon as there are enough.
    let far = then + Nanoseconds::from_millis(60_000);
    let missing = 1 - completions.len();
    let after = system
        .reap_requests(missing, Some(far), &mut completions)
        .await;
    assert!(after.unwrap() < far);
    assert_eq!(completions.len(), 1);
    // With fewer under way than are wanted it waits until the moment.
    let later = system.now() + Nanoseconds::from_millis(3);
    let after = system.reap_requests(1, Some(later), &mut completions).await;
    assert!(after.unwrap() >= later);
    // A ring's clock is not the slow one itself.
    let now = system.now() + Nanoseconds(1_000);
    assert!(now >= later, "{now:?}, {later:?}");
    assert_eq!(completions.len(), 1);
}

pub(crate) async fn a_ring_that_is_closed_has_nothing_under_way(system: &mut World) {
    let file = with_ring(system, 0, 8).await;
    let writes: Vec<Submission> = (0..8)
        .map(|slot| request(IoOperation::Write, file, slot, u64::from(slot)))
        .collect();
    system.submit_requests(&writes).await.unwrap();
    system.close_ring().await.unwrap();
    assert_eq!(
        system.file_length(file).await.unwrap(),
        8 * u64::from(BLOCK)
    );
    // There can be another.
    open_ring(system, 2, file).await.unwrap();
    let results = all(system, &[request(IoOperation::Read, file, 1, 7)]).await;
    assert_eq!(results, [Ok(BLOCK)]);
}

/// The worker ends with all under way.
pub(crate) async fn a_worker_may_end_with_requests_under_way(system: &mut World) {
    let file = with_ring(system, 64, 64).await;
    let requests: Vec<Submission> = (0..64)
        .map(|slot| {
            let operation = match slot % 2 {
                0 => IoOperation::Read,
                _ => IoOperation::Write,
            };
            request(operation, file, slot, u64::from(slot))
        })
        .collect();
    system.submit_requests(&requests).await.unwrap();
    system.close_all().await;
}

pub(crate) async fn what_a_ring_moved_is_counted(system: &mut World) {
    let file = with_ring(system, 4, 4).await;
    // Before the timed part, and a failure in it.
    all(system, &[request(IoOperation::Read, file, 0, 0)]).await;
    start_measuring(system);
    system.close(file).await.unwrap();
    let failed = all(system, &[request(IoOperation::Read, file, 0, 0)]).await;
    assert_eq!(failed, [Err(Errno::BadFile)]);
    system.close_ring().await.unwrap();
    let file = system
        .open("/mnt0/file", OpenOptions::READ_WRITE)
        .await
        .unwrap();
    open_ring(system, 4, file).await.unwrap();
    let requests = [
        request(IoOperation::Read, file, 0, 1),
        request(IoOperation::Read, file, 1, 2),
        request(IoOperation::Write, file, 2, 5),
        request(IoOperation::Fsync, file, 3, 0),
    ];
    all(system, &requests).await;
    system.count_commit(CommittedTransaction {
        bytes: u64::from(BLOCK),
        response_time: Nanoseconds(1234),
        arrival_lag: None,
    });
    let measure = system.finish_measuring().await.unwrap();
    assert_eq!(measure.call_count, 3);
    assert_eq!((measure.read_bytes, measure.written_bytes), (8192, 4096));
    assert!(measure.durable_time.is_some(), "something was written");
    let load = measure.load_measure.expect("the worker has a ring");
    let counts = [
        &load.read,
        &load.write,
        &load.sync,
        &load.commit,
        &load.discard,
    ]
    .map(|of| (of.request_count(), of.bytes));
    assert_eq!(counts, [(2, 8192), (1, 4096), (1, 0), (1, 4096), (0, 0)]);
    assert_eq!(load.read.submit_call_times.latency_count(), 2);
    assert_eq!(load.read.completion_times.latency_count(), 2);
    assert!(load.read.submit_call_times.latency_max() <= load.read.response_times.latency_max());
    assert_eq!(
        (load.queue_depth, load.unfinished_count, load.arrival_lag),
        (4, 0, None)
    );
    let in_series: u64 = load
        .time_series
        .iter()
        .map(|point| point.read_count + point.write_count)
        .sum();
    assert_eq!(in_series, 3);
    let intervals = measure.elapsed_time.0.div_ceil(load.series_interval.0);
    assert_eq!(load.time_series.len() as u64, intervals);
}

pub(crate) async fn a_restart_forgets_the_ramp(system: &mut World) {
    let file = with_ring(system, 4, 4).await;
    start_measuring(system);
    let reads = reads(file, 0..4);
    all(system, &reads).await;
    system.submit_requests(&reads).await.unwrap();
    system.restart_measuring().unwrap();
    // What is under way counts when it completes.
    let mut completions = Vec::new();
    system
        .reap_requests(4, None, &mut completions)
        .await
        .unwrap();
    let measure = system.finish_measuring().await.unwrap();
    let load = measure.load_measure.expect("the worker has a ring");
    assert_eq!((measure.call_count, load.read.request_count()), (4, 4));
    // Another timed part begins at nothing.
    start_measuring(system);
    let measure = system.finish_measuring().await.unwrap();
    assert_eq!(
        measure.load_measure.map(|load| load.read_write_count()),
        Some(0)
    );
    // And has no requests without a ring.
    system.close_ring().await.unwrap();
    start_measuring(system);
    assert_eq!(system.finish_measuring().await.unwrap().load_measure, None);
}

pub(crate) async fn a_response_counts_from_the_intended_start(system: &mut World) {
    const LATE: Nanoseconds = Nanoseconds::from_millis(2);
    let file = with_ring(system, 4, 4).await;
    start_measuring(system);
    let intended = system.now();
    system.sleep_until(intended + LATE).await.unwrap();
    let arrived = |slot: u32| Submission {
        intended_start: Some(intended),
        ..request(IoOperation::Read, file, slot, u64::from(slot))
    };
    system
        .submit_requests(&[arrived(0), arrived(1)])
        .await
        .unwrap();
    let mut completions = Vec::new();
    system
        .reap_requests(2, None, &mut completions)
        .await
        .unwrap();
    assert!(
        completions.iter().all(|one| one.response_time >= LATE),
        "{completions:?}"
    );
    // Two are not complete at the end, and one was not even issued.
    system
        .submit_requests(&[arrived(2), arrived(3)])
        .await
        .unwrap();
    system.count_unissued(IoOperation::Read, intended);
    let load = system.finish_measuring().await.unwrap().load_measure;
    let load = load.expect("the worker has a ring");
    assert_eq!((load.unfinished_count, load.read.request_count()), (3, 5));
    assert!(load.read.response_times.latency_min() >= LATE);
    let lag = load.arrival_lag.expect("arrivals do not wait");
    assert_eq!(lag.latency_count(), 4);
    assert!(lag.latency_min() >= LATE);
}

pub(crate) async fn a_full_volume_fails_the_requests_that_it_must(system: &mut World) {
    const BATCH: u32 = 16;
    let file = with_ring(system, 0, BATCH).await;
    let (mut taken, mut failed) = (0, 0);
    for first in (0_u64..).step_by(BATCH as usize) {
        let writes: Vec<Submission> = (0..BATCH)
            .map(|slot| request(IoOperation::Write, file, slot, first + u64::from(slot)))
            .collect();
        for result in all(system, &writes).await {
            match result {
                Ok(bytes) => taken += u64::from(bytes),
                Err(errno) => {
                    assert_eq!(errno, Errno::NoSpace);
                    failed += 1;
                }
            }
        }
        if failed > 0 {
            break;
        }
        assert!(taken <= super::SMALL_VOLUME_BYTES, "{taken} bytes went in");
    }
    // What is there can be written again.
    seek(system, file, 0).await;
    let again = all(system, &[request(IoOperation::Write, file, 0, 0)]).await;
    assert_eq!(again, [Ok(BLOCK)]);
}
