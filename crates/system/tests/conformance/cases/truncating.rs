//! ftruncate.

use super::World;
use super::steps::{contents, make_open, offset, pattern, read, refused, seek, whole, write_all};
use diskperf_system::{Errno, OpenOptions};

/// Lengths on and beside the borders of sectors, pages and blocks.
const LENGTHS: [usize; 10] = [0, 1, 511, 512, 4095, 4096, 4097, 8192, 10_000, 19_999];

/// Where there is no ftruncate: it is refused, the file stays as it is, and
/// only opening it to be written anew cuts it, to nothing.
async fn cuts_only_at_open(system: &mut World) {
    let data = pattern(20_000);
    let file = make_open(system, "/mnt0/file", &data).await;
    for length in LENGTHS {
        refused(system.ftruncate(file, length as u64).await, Errno::Invalid);
        assert_eq!(system.file_length(file).await, Ok(20_000));
    }
    assert_eq!(whole(system, file).await, data);
    let again = system
        .open("/mnt0/file", OpenOptions::CREATE)
        .await
        .unwrap();
    assert_eq!(system.file_length(file).await, Ok(0));
    write_all(system, again, b"new").await;
    assert_eq!(contents(system, "/mnt0/file").await, b"new");
    assert_eq!(whole(system, file).await, b"new");
}

pub(crate) async fn a_shortened_file_ends_there(system: &mut World) {
    if !system.can.truncates {
        return cuts_only_at_open(system).await;
    }
    let data = pattern(20_000);
    let file = make_open(system, "/mnt0/file", &data).await;
    for length in LENGTHS.into_iter().rev() {
        system.ftruncate(file, length as u64).await.unwrap();
        assert_eq!(system.file_length(file).await, Ok(length as u64));
        assert_eq!(whole(system, file).await, data[..length]);
    }
}

pub(crate) async fn a_lengthened_file_ends_in_zeroes(system: &mut World) {
    if !system.can.truncates {
        return cuts_only_at_open(system).await;
    }
    let mut expected = b"start".to_vec();
    let file = make_open(system, "/mnt0/file", &expected).await;
    for length in LENGTHS.into_iter().filter(|&length| length > 5) {
        system.ftruncate(file, length as u64).await.unwrap();
        expected.resize(length, 0);
        assert_eq!(system.file_length(file).await, Ok(length as u64));
        assert_eq!(whole(system, file).await, expected);
    }
}

pub(crate) async fn what_was_cut_off_does_not_come_back(system: &mut World) {
    if !system.can.truncates {
        return cuts_only_at_open(system).await;
    }
    let data = pattern(20_000);
    let file = make_open(system, "/mnt0/file", &data).await;
    for length in LENGTHS {
        seek(system, file, 0).await;
        write_all(system, file, &data).await;
        system.ftruncate(file, length as u64).await.unwrap();
        system.ftruncate(file, 20_000).await.unwrap();
        let mut expected = data[..length].to_vec();
        expected.resize(20_000, 0);
        assert_eq!(whole(system, file).await, expected);
    }
}

pub(crate) async fn the_offset_stays(system: &mut World) {
    if !system.can.truncates {
        return cuts_only_at_open(system).await;
    }
    let file = make_open(system, "/mnt0/file", &pattern(1000)).await;
    seek(system, file, 700).await;
    for length in [0, 500, 700, 2000] {
        system.ftruncate(file, length).await.unwrap();
        assert_eq!(offset(system, file).await, 700);
    }
    assert_eq!(read(system, file, 5000).await, vec![0; 1300]);
}

pub(crate) async fn a_write_after_it_leaves_a_hole(system: &mut World) {
    if !system.can.truncates {
        return cuts_only_at_open(system).await;
    }
    let file = make_open(system, "/mnt0/file", &pattern(10_000)).await;
    seek(system, file, 10_000).await;
    system.ftruncate(file, 3).await.unwrap();
    write_all(system, file, b"end").await;
    let mut expected = pattern(3);
    expected.resize(10_000, 0);
    expected.extend(b"end");
    assert_eq!(whole(system, file).await, expected);
}

pub(crate) async fn an_impossible_length_is_refused(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"data").await;
    for length in [1 << 63, u64::MAX] {
        refused(system.ftruncate(file, length).await, Errno::Invalid);
    }
    assert_eq!(whole(system, file).await, b"data");
}
