//! The bodies, each given a system with an empty `/mnt0`.

use crate::requests::{self, BLOCK, reads, request};
use diskperf_system::{
    CommittedTransaction, EngineChoice, Errno, File, IoCompletion, IoOperation, OpenOptions,
    RingOptions, SeekOrigin, Submission, System,
};
use diskperf_timeline::Nanoseconds;

const READ_WRITE: OpenOptions = OpenOptions {
    write: true,
    ..OpenOptions::READ
};

fn options(depth: u32) -> RingOptions {
    requests::options(depth, EngineChoice::BestAvailable)
}

/// A file of so many bytes, open for both.
async fn made(system: &mut System, bytes: usize) -> File {
    let file = system.open("/mnt0/file", READ_WRITE.with_create()).await;
    let file = file.expect("a new file");
    let data: Vec<u8> = (0..bytes).map(|byte| (byte % 251) as u8).collect();
    assert_eq!(system.write(file, &data).await, Ok(bytes));
    file
}

/// All that are under way, by slot.
async fn reap_all(system: &mut System, count: usize) -> Vec<IoCompletion> {
    let mut completions = Vec::new();
    let now = system.reap_requests(count, None, &mut completions).await;
    assert_eq!(now.expect("a ring"), system.now());
    completions.sort_by_key(|completion| completion.slot);
    completions
}

fn results(completions: &[IoCompletion]) -> Vec<Result<u32, Errno>> {
    completions
        .iter()
        .map(|one| one.byte_count_or_errno)
        .collect()
}

/// A read at the end of a file moves what there is, and one behind it nothing.
pub(crate) async fn reads_end_with_the_file(system: &mut System) {
    let file = made(system, 2 * BLOCK as usize + 100).await;
    system.open_ring(options(4), &[file]).await.unwrap();
    system.submit_requests(&reads(file, 0..4)).await.unwrap();
    let found = reap_all(system, 4).await;
    assert_eq!(results(&found), [Ok(BLOCK), Ok(BLOCK), Ok(100), Ok(0)]);
    system.close_ring().await.unwrap();
}

/// Each slot completes once, in whatever order, and may be used again then.
pub(crate) async fn slots_complete_once_each_in_any_order(system: &mut System) {
    let file = made(system, 16 * BLOCK as usize).await;
    system.open_ring(options(16), &[file]).await.unwrap();
    for round in 0..3 {
        let all: Vec<Submission> = (0..16)
            .map(|slot| {
                let operation =
                    [IoOperation::Read, IoOperation::Write][(slot as usize + round) % 2];
                request(operation, file, slot, u64::from(slot * 7 % 16))
            })
            .collect();
        let (some, others) = all.split_at(5);
        system.submit_requests(some).await.unwrap();
        system.submit_requests(others).await.unwrap();
        let mut found = Vec::new();
        while found.len() < 16 {
            let before = found.len();
            system.reap_requests(3, None, &mut found).await.unwrap();
            assert!(found.len() >= 16.min(before + 3));
        }
        found.sort_by_key(|completion| completion.slot);
        let slots: Vec<u32> = found.iter().map(|one| one.slot).collect();
        assert_eq!(slots, (0..16).collect::<Vec<_>>());
        assert!(found.iter().all(|one| one.byte_count_or_errno == Ok(BLOCK)));
        assert!(
            found
                .iter()
                .all(|one| one.response_time > Nanoseconds::ZERO)
        );
    }
    system.close_ring().await.unwrap();
}

/// What is written is in the file: its length, and its data for whoever reads it.
pub(crate) async fn writes_are_in_the_file(system: &mut System) {
    let file = made(system, 0).await;
    system.open_ring(options(8), &[file]).await.unwrap();
    let writes: Vec<Submission> = (0..8)
        .map(|slot| request(IoOperation::Write, file, slot, u64::from(slot)))
        .collect();
    system.submit_requests(&writes).await.unwrap();
    assert_eq!(results(&reap_all(system, 8).await), [Ok(BLOCK); 8]);
    let sync = request(IoOperation::Fsync, file, 0, 0);
    let data = Submission {
        operation: IoOperation::Fdatasync,
        slot: 1,
        ..sync
    };
    system.submit_requests(&[sync, data]).await.unwrap();
    let found = reap_all(system, 2).await;
    assert!(
        found.iter().all(|one| one.byte_count_or_errno.is_ok()),
        "{found:?}"
    );
    let length = u64::from(BLOCK) * 8;
    assert_eq!(system.file_length(file).await, Ok(length));
    let mut back = vec![0; length as usize];
    system.lseek(file, 0, SeekOrigin::FileStart).await.unwrap();
    assert_eq!(system.read(file, &mut back).await, Ok(back.len()));
    for block in back.chunks(BLOCK as usize) {
        assert!(block.iter().any(|byte| *byte != 0), "it was written");
    }
    system.close_ring().await.unwrap();
}

/// A request that cannot be done fails by itself.
pub(crate) async fn a_failed_request_fails_alone(system: &mut System) {
    let file = made(system, 4 * BLOCK as usize).await;
    let reader = system.open("/mnt0/file", OpenOptions::READ).await.unwrap();
    system.open_ring(options(3), &[file, reader]).await.unwrap();
    let all = [
        request(IoOperation::Read, reader, 0, 0),
        request(IoOperation::Write, reader, 1, 1),
        request(IoOperation::Write, file, 2, 2),
    ];
    system.submit_requests(&all).await.unwrap();
    let found = results(&reap_all(system, 3).await);
    assert_eq!(found, [Ok(BLOCK), Err(Errno::BadFile), Ok(BLOCK)]);
    system.close_ring().await.unwrap();
}

/// A wait with nothing to wait for is over at once, or at its moment.
pub(crate) async fn a_wait_ends_at_its_moment(system: &mut System) {
    let file = made(system, BLOCK as usize).await;
    system.open_ring(options(2), &[file]).await.unwrap();
    assert_eq!(reap_all(system, 2).await, []);
    let until = system.now() + Nanoseconds::from_millis(20);
    let mut found = Vec::new();
    let now = system
        .reap_requests(1, Some(until), &mut found)
        .await
        .unwrap();
    assert!(now >= until && found.is_empty());
    let read = request(IoOperation::Read, file, 1, 0);
    system.submit_requests(&[read]).await.unwrap();
    let late = system.now() + Nanoseconds::from_millis(60_000);
    let now = system
        .reap_requests(1, Some(late), &mut found)
        .await
        .unwrap();
    assert!(now < late);
    assert_eq!(results(&found), [Ok(BLOCK)]);
    system.close_ring().await.unwrap();
}

/// A ring that is closed has waited for all, and there may be another one.
pub(crate) async fn closing_waits_for_what_is_under_way(system: &mut System) {
    let file = made(system, 0).await;
    for round in 1..=2 {
        system.open_ring(options(32), &[file]).await.unwrap();
        let writes: Vec<Submission> = (0..32)
            .map(|slot| request(IoOperation::Write, file, slot, u64::from(round * slot)))
            .collect();
        system.submit_requests(&writes).await.unwrap();
        system.close_ring().await.unwrap();
        let length = u64::from(BLOCK) * u64::from(31 * round + 1);
        assert_eq!(system.file_length(file).await, Ok(length));
    }
}

/// What is measured: bytes and requests of each kind, from where the measuring started.
pub(crate) async fn requests_are_measured(system: &mut System) {
    let file = made(system, 8 * BLOCK as usize).await;
    system.open_ring(options(8), &[file]).await.unwrap();
    system.start_measuring(system.now()).unwrap();
    let operation = |slot: u32| match slot {
        0..=4 => IoOperation::Read,
        5..=6 => IoOperation::Write,
        _ => IoOperation::Fsync,
    };
    for round in 0..3 {
        if round == 1 {
            // As at the end of a ramp.
            system.restart_measuring().unwrap();
        }
        let all: Vec<Submission> = (0..8)
            .map(|slot| request(operation(slot), file, slot, u64::from(slot)))
            .collect();
        let started = system.now();
        system.submit_requests(&all).await.unwrap();
        let found = reap_all(system, 8).await;
        let took = system.now().since(started);
        assert!(found.iter().all(|one| one.response_time <= took));
        system.count_commit(CommittedTransaction {
            bytes: u64::from(2 * BLOCK),
            response_time: took,
            arrival_lag: None,
        });
    }
    let measure = system.finish_measuring().await.unwrap();
    system.close_ring().await.unwrap();
    let load = measure.load_measure.expect("there was a ring");
    assert_eq!(load.queue_depth, 8);
    let counts = [&load.read, &load.write, &load.sync, &load.commit];
    assert_eq!(counts.map(|of| of.request_count()), [10, 4, 2, 2]);
    let block = u64::from(BLOCK);
    assert_eq!(
        counts.map(|of| of.bytes),
        [10, 4, 0, 4].map(|of| of * block)
    );
    assert_eq!(
        (measure.read_bytes, measure.written_bytes),
        (10 * block, 4 * block)
    );
    assert_eq!(measure.call_count, 14);
    assert_eq!((load.unfinished_count, load.arrival_lag), (0, None));
    for of in [&load.read, &load.write, &load.sync] {
        assert_eq!(of.submit_call_times.latency_count(), of.request_count());
        assert_eq!(of.completion_times.latency_count(), of.request_count());
        assert!(of.submit_call_times.latency_min() <= of.response_times.latency_min());
        assert!(of.completion_times.latency_max() <= of.response_times.latency_max());
    }
    let reads: u64 = load.time_series.iter().map(|point| point.read_count).sum();
    let writes: u64 = load.time_series.iter().map(|point| point.write_count).sum();
    assert_eq!((reads, writes), (10, 4));
    assert!(measure.durable_time.expect("it wrote") >= measure.elapsed_time);
}

/// In open loop responses count from the intended moment, and what has arrived and is not
/// complete at the end counts too.
pub(crate) async fn arrivals_do_not_wait(system: &mut System) {
    let file = made(system, 8 * BLOCK as usize).await;
    system.open_ring(options(4), &[file]).await.unwrap();
    system.start_measuring(system.now()).unwrap();
    let ago = Nanoseconds::from_millis(30);
    let late = Nanoseconds::from_millis(40);
    system.sleep_until(system.now() + late).await.unwrap();
    let mut all = reads(file, 0..4);
    for one in &mut all {
        one.intended_start = Some(Nanoseconds(system.now().0 - ago.0));
    }
    system.submit_requests(&all[..3]).await.unwrap();
    let found = reap_all(system, 3).await;
    assert!(found.iter().all(|one| one.response_time >= ago));
    system.submit_requests(&all[3..]).await.unwrap();
    system.count_unissued(IoOperation::Read, all[0].intended_start.unwrap());
    let measure = system.finish_measuring().await.unwrap();
    system.close_ring().await.unwrap();
    let load = measure.load_measure.expect("there was a ring");
    let lag = load.arrival_lag.expect("they were late");
    assert_eq!(lag.latency_count(), 4);
    assert!(lag.latency_min() >= Nanoseconds(ago.0 - ago.0 / 1000));
    assert_eq!(
        (
            load.read.request_count(),
            load.read.submit_call_times.latency_count()
        ),
        (5, 3)
    );
    assert_eq!(load.unfinished_count, 2);
}
