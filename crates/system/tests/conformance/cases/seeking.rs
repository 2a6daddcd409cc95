//! lseek.

use super::World;
use super::steps::{largest_offset, make_open, offset, pattern, refused, seek};
use diskperf_system::{Errno, SeekOrigin};

pub(crate) async fn each_whence_counts_from_its_own_place(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    for (whence, by, expected) in [
        (SeekOrigin::CurrentPosition, 0, 0),
        (SeekOrigin::FileStart, 10, 10),
        (SeekOrigin::CurrentPosition, 5, 15),
        (SeekOrigin::CurrentPosition, -15, 0),
        (SeekOrigin::FileEnd, 0, 1000),
        (SeekOrigin::FileEnd, -1000, 0),
        (SeekOrigin::FileEnd, -1, 999),
        (SeekOrigin::CurrentPosition, 1, 1000),
        (SeekOrigin::FileEnd, 24, 1024),
        (SeekOrigin::CurrentPosition, -1024, 0),
        (SeekOrigin::FileStart, 1 << 31, 1 << 31),
        (SeekOrigin::CurrentPosition, 1 << 31, 1 << 32),
        (SeekOrigin::FileStart, 0, 0),
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
        (SeekOrigin::FileStart, -1),
        (SeekOrigin::FileStart, i64::MIN),
        (SeekOrigin::CurrentPosition, -101),
        (SeekOrigin::CurrentPosition, i64::MIN),
        (SeekOrigin::FileEnd, -1001),
        (SeekOrigin::FileEnd, i64::MIN),
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
        assert_eq!(system.file_length(file).await, Ok(1000));
    }
}

pub(crate) async fn beyond_the_largest_offset_is_invalid(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    let largest = largest_offset(system, file).await;
    seek(system, file, largest).await;
    refused(
        system.lseek(file, 1, SeekOrigin::CurrentPosition).await,
        Errno::Invalid,
    );
    refused(
        system
            .lseek(file, i64::MAX, SeekOrigin::CurrentPosition)
            .await,
        Errno::Invalid,
    );
    refused(
        system.lseek(file, i64::MAX, SeekOrigin::FileEnd).await,
        Errno::Invalid,
    );
    assert_eq!(offset(system, file).await, largest);
}
