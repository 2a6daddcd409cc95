//! lseek.

use super::World;
use super::steps::{largest_offset, make_open, offset, pattern, refused, seek};
use diskperf_system::{Errno, Whence};

pub(crate) async fn each_whence_counts_from_its_own_place(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    for (whence, by, expected) in [
        (Whence::Current, 0, 0),
        (Whence::Start, 10, 10),
        (Whence::Current, 5, 15),
        (Whence::Current, -15, 0),
        (Whence::End, 0, 1000),
        (Whence::End, -1000, 0),
        (Whence::End, -1, 999),
        (Whence::Current, 1, 1000),
        (Whence::End, 24, 1024),
        (Whence::Current, -1024, 0),
        (Whence::Start, 1 << 31, 1 << 31),
        (Whence::Current, 1 << 31, 1 << 32),
        (Whence::Start, 0, 0),
    ] {
        if expected > i32::MAX as u64 && !system.can.large_offsets {
            refused(system.lseek(file, by, whence).await, Errno::Invalid);
            continue;
        }
        assert_eq!(
            system.lseek(file, by, whence).await,
            Ok(expected),
            "{by} from {whence:?}"
        );
        assert_eq!(offset(system, file).await, expected);
    }
}

pub(crate) async fn before_the_start_is_invalid(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    seek(system, file, 100).await;
    for (whence, by) in [
        (Whence::Start, -1),
        (Whence::Start, i64::MIN),
        (Whence::Current, -101),
        (Whence::Current, i64::MIN),
        (Whence::End, -1001),
        (Whence::End, i64::MIN),
    ] {
        refused(system.lseek(file, by, whence).await, Errno::Invalid);
        assert_eq!(
            offset(system, file).await,
            100,
            "a refused lseek moved the offset"
        );
    }
}

pub(crate) async fn beyond_the_end_changes_no_length(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    for beyond in [1001, 100_000, 1 << 30] {
        seek(system, file, beyond).await;
        assert_eq!(system.length(file).await, Ok(1000));
    }
}

pub(crate) async fn beyond_the_largest_offset_is_invalid(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    let largest = largest_offset(system, file).await;
    seek(system, file, largest).await;
    refused(system.lseek(file, 1, Whence::Current).await, Errno::Invalid);
    refused(
        system.lseek(file, i64::MAX, Whence::Current).await,
        Errno::Invalid,
    );
    refused(
        system.lseek(file, i64::MAX, Whence::End).await,
        Errno::Invalid,
    );
    assert_eq!(offset(system, file).await, largest);
}
