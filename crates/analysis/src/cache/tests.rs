use super::*;
use crate::fixtures::{build_result, build_seqread_result};

/// A repetition that read 1000 bytes of a file of 1000: bytes resident before
/// and after, and bytes from storage.
fn repetition(resident: Option<(u64, u64)>, storage: Option<u64>) -> Repetition {
    Repetition {
        workers: vec![WorkerMeasure {
            read_bytes: 1000,
            storage_read_bytes: storage,
            ..WorkerMeasure::default()
        }],
        residency: resident.map(|(before_bytes, after_bytes)| Residency {
            file_bytes: 1000,
            resident_before_bytes: before_bytes,
            resident_after_bytes: after_bytes,
        }),
        ..Repetition::default()
    }
}

#[test]
fn verdicts() {
    use CacheMode::{Cold, Direct, Warm};
    use CacheVerdict::*;
    for (mode, resident, storage, verdict, share) in [
        (Cold, Some((0, 1000)), Some(1000), AsRequested, Some(1.0)),
        // Read-ahead fetched more than was read.
        (Cold, Some((0, 1000)), Some(4000), AsRequested, Some(1.0)),
        // Four readers of one area: the first one fetches for all.
        (Cold, Some((0, 1000)), Some(250), AsRequested, Some(0.25)),
        (Cold, Some((50, 1000)), Some(950), AsRequested, Some(0.95)),
        (Cold, Some((60, 1000)), Some(940), ColdButCached, Some(0.94)),
        (Cold, Some((1000, 1000)), Some(0), ColdButCached, Some(0.0)),
        // Nothing resident and nothing accounted: FUSE, virtiofs, or a cache
        // that the page cache does not know of.
        (Cold, Some((0, 0)), Some(0), Unknown, Some(0.0)),
        (Cold, Some((0, 1000)), Some(0), Unknown, Some(0.0)),
        (Cold, Some((50, 1000)), Some(9), Unknown, Some(0.009)),
        (Cold, None, Some(0), Unknown, Some(0.0)),
        (Cold, None, Some(10), AsRequested, Some(0.01)),
        (Cold, Some((0, 1000)), None, AsRequested, Some(1.0)),
        (Cold, Some((400, 1000)), None, ColdButCached, Some(0.6)),
        (Cold, None, None, Unknown, None),
        (Warm, Some((1000, 1000)), Some(0), AsRequested, Some(0.0)),
        (Warm, Some((995, 1000)), Some(5), AsRequested, Some(0.005)),
        (
            Warm,
            Some((1000, 1000)),
            Some(300),
            WarmButNotResident,
            Some(0.3),
        ),
        (
            Warm,
            Some((750, 1000)),
            None,
            WarmButNotResident,
            Some(0.25),
        ),
        (Warm, Some((1000, 200)), None, WarmButNotResident, Some(0.0)),
        (Direct, Some((0, 0)), Some(1000), AsRequested, Some(1.0)),
        (Direct, Some((0, 0)), Some(500), DirectButCached, Some(0.5)),
        (Direct, Some((0, 0)), Some(0), Unknown, Some(0.0)),
        (Direct, None, Some(0), Unknown, Some(0.0)),
        (
            Direct,
            Some((1000, 1000)),
            Some(0),
            DirectButCached,
            Some(0.0),
        ),
        (Direct, Some((0, 0)), None, Unknown, Some(1.0)),
    ] {
        let one = repetition(resident, storage);
        let case = format!("{mode:?} {resident:?} {storage:?}");
        assert_eq!(CacheVerdict::from_repetition(&one, mode), verdict, "{case}");
        assert_eq!(device_share(&one), share, "{case}");
    }
}

#[test]
fn one_cached_repetition_invalidates_all_kept_ones() {
    let cold = repetition(Some((0, 1000)), Some(1000));
    let cached = repetition(Some((1000, 1000)), Some(0));
    let discarded = Repetition {
        is_discarded: true,
        ..cached.clone()
    };
    for (repetitions, verdict) in [
        (vec![], CacheVerdict::NotApplicable),
        (
            vec![discarded.clone(), cold.clone()],
            CacheVerdict::AsRequested,
        ),
        (vec![discarded, cold, cached], CacheVerdict::ColdButCached),
    ] {
        assert_eq!(
            CacheVerdict::from_result(&build_result("read", 0, repetitions)),
            verdict
        );
    }
}

#[test]
fn programs_without_storage_reads_have_no_verdict() {
    let written = Repetition {
        workers: vec![WorkerMeasure {
            written_bytes: 1000,
            storage_read_bytes: Some(0),
            ..WorkerMeasure::default()
        }],
        ..Repetition::default()
    };
    assert_eq!(device_share(&written), None);
    for one in [
        build_result("write", 0, vec![written]),
        build_seqread_result("null", 512, 0, &[(100, 100)]),
        build_seqread_result("zero", 512, 0, &[(100, 100)]),
    ] {
        assert_eq!(
            CacheVerdict::from_result(&one),
            CacheVerdict::NotApplicable,
            "{}",
            one.display_title()
        );
    }
}
