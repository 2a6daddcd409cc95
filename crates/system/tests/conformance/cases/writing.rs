//! write and fsync.

use super::World;
use super::steps::{
    UNALIGNED, contents, largest_offset, make, make_open, offset, pattern, read, refused, seek,
    whole, write_all,
};
use diskperf_system::{Errno, File, OpenOptions, SeekOrigin};

pub(crate) async fn what_was_written_is_read_back(system: &mut World) {
    for length in [1, 511, 512, 4096, 8192, 8193, 100_000, 1 << 20] {
        let data = pattern(length);
        make(system, "/mnt0/file", &data).await;
        assert_eq!(contents(system, "/mnt0/file").await, data);
    }
}

pub(crate) async fn an_overwrite_changes_only_its_own_bytes(system: &mut World) {
    let mut expected = pattern(20_000);
    let file = make_open(system, "/mnt0/file", &expected).await;
    seek(system, file, 5000).await;
    assert_eq!(system.write(file, &[0xff; 4000]).await, Ok(4000));
    assert_eq!(offset(system, file).await, 9000);
    assert_eq!(system.file_length(file).await, Ok(20_000));
    expected[5000..9000].fill(0xff);
    assert_eq!(whole(system, file).await, expected);
}

pub(crate) async fn a_write_of_nothing_changes_nothing(system: &mut World) {
    let data = pattern(100);
    let file = make_open(system, "/mnt0/file", &data).await;
    for place in [0, 50, 100, 10_000] {
        seek(system, file, place).await;
        assert_eq!(system.write(file, b"").await, Ok(0));
        assert_eq!(offset(system, file).await, place);
        assert_eq!(system.file_length(file).await, Ok(100));
    }
    assert_eq!(whole(system, file).await, data);
}

pub(crate) async fn a_write_beyond_the_end_leaves_a_hole(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let mut expected = Vec::new();
    for (place, byte) in [(1, b'a'), (4095, b'b'), (4097, b'c'), (100_000, b'd')] {
        seek(system, file, place).await;
        write_all(system, file, &[byte]).await;
        expected.resize(place as usize, 0);
        expected.push(byte);
        assert_eq!(system.file_length(file).await, Ok(place + 1));
        assert_eq!(whole(system, file).await, expected);
    }
}

pub(crate) async fn a_write_at_the_end_appends(system: &mut World) {
    let mut expected = Vec::new();
    let file = make_open(system, "/mnt0/file", b"").await;
    for length in [10, 4096, 1, 8191, 512] {
        seek(system, file, 0).await;
        let end = system.lseek(file, 0, SeekOrigin::FileEnd).await;
        assert_eq!(end, Ok(expected.len() as u64));
        let piece = pattern(length);
        write_all(system, file, &piece).await;
        expected.extend(piece);
    }
    assert_eq!(whole(system, file).await, expected);
}

pub(crate) async fn any_offset_and_length_will_do(system: &mut World) {
    let mut expected = vec![0; 32_768];
    let file = make_open(system, "/mnt0/file", &expected).await;
    let data = pattern(32_768);
    for (start, length) in UNALIGNED.into_iter().rev() {
        seek(system, file, start as u64).await;
        assert_eq!(system.write(file, &data[..length]).await, Ok(length));
        expected[start..start + length].copy_from_slice(&data[..length]);
        assert_eq!(whole(system, file).await, expected);
    }
}

pub(crate) async fn two_descriptors_see_each_other_s_writes(system: &mut World) {
    let first = make_open(system, "/mnt0/file", b"").await;
    let second = system
        .open("/mnt0/file", OpenOptions::READ_WRITE)
        .await
        .unwrap();
    write_all(system, first, b"one").await;
    assert_eq!(system.file_length(second).await, Ok(3));
    assert_eq!(read(system, second, 10).await, b"one");
    write_all(system, second, b"two").await;
    assert_eq!(read(system, first, 10).await, b"two");
    seek(system, first, 1).await;
    write_all(system, first, b"UN").await;
    assert_eq!(whole(system, second).await, b"oUNtwo");
    if system.can.truncates {
        system.ftruncate(first, 2).await.unwrap();
        assert_eq!(read(system, second, 10).await, b"");
        assert_eq!(whole(system, second).await, b"oU");
    }
}

/// The length of the largest file: the largest offset, or else what a write
/// finds.
async fn largest_length(system: &mut World, file: File) -> u64 {
    if system.can.offsets_are_of_files {
        return largest_offset(system, file).await;
    }
    let scratch = make_open(system, "/mnt0/scratch", b"").await;
    let (mut fits, mut refused) = (0, largest_offset(system, scratch).await);
    while refused - fits > 1 {
        let middle = fits + (refused - fits) / 2;
        seek(system, scratch, middle - 1).await;
        match system.write(scratch, b"?").await {
            Ok(_) => fits = middle,
            Err(error) => {
                assert_eq!(error.errno(), Some(Errno::FileTooBig));
                refused = middle;
            }
        }
    }
    system.close(scratch).await.unwrap();
    system.unlink("/mnt0/scratch").await.unwrap();
    fits
}

/// At 1 TiB, or where files are not so long, in the last byte of the longest.
pub(crate) async fn a_very_large_offset_will_do(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"start").await;
    let far = (1 << 40).min(largest_length(system, file).await - 1);
    seek(system, file, far).await;
    write_all(system, file, b"!").await;
    assert_eq!(system.file_length(file).await, Ok(far + 1));
    assert_eq!(
        system.lseek(file, -2, SeekOrigin::FileEnd).await,
        Ok(far - 1)
    );
    assert_eq!(read(system, file, 10).await, b"\0!");
    seek(system, file, 0).await;
    assert_eq!(read(system, file, 7).await, b"start\0\0");
}

pub(crate) async fn the_largest_file_cannot_grow(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"start").await;
    let largest = largest_length(system, file).await;
    seek(system, file, largest).await;
    if largest == i64::MAX as u64 {
        // The end of the write would not be an offset.
        refused(system.write(file, b"!").await, Errno::Invalid);
    } else {
        refused(system.write(file, b"!").await, Errno::FileTooBig);
        seek(system, file, largest - 1).await;
        let written = system.write(file, b"!?").await;
        if system.can.tells_partial_writes {
            assert_eq!(written, Ok(1));
        } else {
            refused(written, Errno::FileTooBig);
            seek(system, file, largest - 1).await;
            assert_eq!(system.write(file, b"!").await, Ok(1));
        }
        assert_eq!(system.file_length(file).await, Ok(largest));
        if !system.can.truncates {
            return;
        }
        refused(system.ftruncate(file, largest + 1).await, Errno::FileTooBig);
        system.ftruncate(file, 5).await.unwrap();
    }
    assert_eq!(whole(system, file).await, b"start");
}

pub(crate) async fn synced_data_is_still_there(system: &mut World) {
    let data = pattern(100_000);
    make(system, "/mnt0/file", &data).await;
    for how in [
        OpenOptions::READ,
        OpenOptions::WRITE,
        OpenOptions::READ_WRITE,
    ] {
        let file = system.open("/mnt0/file", how).await.unwrap();
        system.fsync(file).await.unwrap();
        system.close(file).await.unwrap();
    }
    system.drop_cached_pages("/mnt0/file").await.unwrap();
    assert_eq!(contents(system, "/mnt0/file").await, data);
}

/// Where pointers of another kind begin in a file of blocks of 4 and of 8 KiB
/// with twelve direct pointers and pointers of four bytes: behind the direct
/// ones, behind the single indirect block, and behind the first block that
/// hangs on the double one; of blocks of 1 KiB with seven and two bytes before.
const POINTER_BORDERS: [u64; 8] = [
    12 * 4096,
    12 * 8192,
    (7 + 512) * 1024,
    (7 + 512 + 512) * 1024,
    (12 + 1024) * 4096,
    (12 + 1024 + 1024) * 4096,
    (12 + 2048) * 8192,
    (12 + 2048 + 2048) * 8192,
];

pub(crate) async fn a_hole_may_lie_beside_any_border_of_pointers(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let (data, beside) = (pattern(20_000), 10_000);
    for border in POINTER_BORDERS {
        seek(system, file, border - beside).await;
        write_all(system, file, &data).await;
        assert_eq!(system.file_length(file).await, Ok(border + beside));
    }
    let mut expected = vec![0; 40_000];
    expected[10_000..30_000].copy_from_slice(&data);
    for border in POINTER_BORDERS {
        seek(system, file, border - 2 * beside).await;
        let mut found = Vec::new();
        while found.len() < 40_000 {
            let piece = read(system, file, 40_000 - found.len()).await;
            if piece.is_empty() {
                break;
            }
            found.extend(piece);
        }
        found.resize(40_000, 0);
        assert_eq!(found, expected, "at {border}");
    }
    if !system.can.truncates {
        return;
    }
    for border in POINTER_BORDERS.into_iter().rev() {
        system.ftruncate(file, border + 1).await.unwrap();
        system.ftruncate(file, border + beside).await.unwrap();
        seek(system, file, border - 1).await;
        let mut expected = data[9_999..10_001].to_vec();
        expected.resize(beside as usize + 1, 0);
        assert_eq!(read(system, file, 20_000).await, expected, "at {border}");
    }
}

/// Past the single indirect block of blocks of 8 KiB, without a hole.
pub(crate) async fn a_file_of_17_mib_is_read_back(system: &mut World) {
    let length = 17 << 20;
    let data = pattern(length);
    make(system, "/mnt0/file", &data).await;
    assert!(contents(system, "/mnt0/file").await == data);
    if !system.can.truncates {
        return;
    }
    let file = system
        .open("/mnt0/file", OpenOptions::READ_WRITE)
        .await
        .unwrap();
    for kept in [length - 1, 16 << 20, 5 << 20, 4 << 20, 100_000, 50_000] {
        system.ftruncate(file, kept as u64).await.unwrap();
        assert!(whole(system, file).await == data[..kept]);
    }
}

/// Every third piece of 4 KiB is there, from the direct blocks to those behind
/// the double indirect one.
pub(crate) async fn holes_lie_between_indirect_blocks(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let data = pattern(4096);
    let places = || (0..4500).step_by(3).map(|place| place * 4096);
    for place in places() {
        seek(system, file, place).await;
        write_all(system, file, &data).await;
    }
    system.fsync(file).await.unwrap();
    system.drop_cached_pages("/mnt0/file").await.unwrap();
    let mut expected = data.clone();
    expected.resize(3 * 4096, 0);
    for place in places() {
        seek(system, file, place).await;
        let found = read(system, file, 3 * 4096).await;
        assert!(found == expected[..found.len()], "at {place}");
    }
}
