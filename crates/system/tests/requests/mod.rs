//! Requests of one block each, as the tests of rings make them.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use diskperf_system::{EngineChoice, Errno, File, IoOperation, RingOptions, Submission, System};
use diskperf_timeline::Nanoseconds;

/// Bytes of a block, and of a slot's buffer.
pub(crate) const BLOCK: u32 = 4096;

/// A ring of so many slots, with a course over time of a point a second.
pub(crate) fn options(depth: u32, engine: EngineChoice) -> RingOptions {
    RingOptions {
        queue_depth: depth,
        buffer_bytes: BLOCK,
        seed: 24,
        compressible_percent: 0,
        engine_choice: engine,
        polls_completions: false,
        has_verifiable_contents: false,
        series_interval: Nanoseconds::from_millis(1000),
    }
}

/// A request for one whole block.
pub(crate) fn request(operation: IoOperation, file: File, slot: u32, block: u64) -> Submission {
    Submission {
        operation,
        file,
        offset_bytes: block * u64::from(BLOCK),
        bytes: BLOCK,
        slot,
        intended_start: None,
    }
}

/// Reads of blocks, one in each slot from the first on.
pub(crate) fn reads(file: File, blocks: impl IntoIterator<Item = u64>) -> Vec<Submission> {
    let numbered = (0..).zip(blocks);
    numbered
        .map(|(slot, block)| request(IoOperation::Read, file, slot, block))
        .collect()
}

/// Submits these, and takes all; their results by slot.
pub(crate) async fn all(
    system: &mut System,
    submissions: &[Submission],
) -> Vec<Result<u32, Errno>> {
    system.submit_requests(submissions).await.unwrap();
    let mut completions = Vec::new();
    let reaped = system
        .reap_requests(submissions.len(), None, &mut completions)
        .await;
    reaped.unwrap();
    completions.sort_by_key(|completion| completion.slot);
    let slots = completions.iter().map(|completion| completion.slot);
    let mut expected: Vec<u32> = submissions.iter().map(|request| request.slot).collect();
    expected.sort_unstable();
    assert_eq!(slots.collect::<Vec<_>>(), expected, "each completes once");
    completions
        .iter()
        .map(|one| one.byte_count_or_errno)
        .collect()
}
