//! read.

use super::World;
use super::steps::{
    UNALIGNED, make, make_open, offset, pattern, read, read_to_end, seek, whole, write_all,
};
use diskperf_system::OpenOptions;

pub(crate) async fn an_empty_file_is_at_its_end(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    for length in [0, 1, 8192] {
        assert_eq!(read(system, file, length).await, b"");
    }
}

pub(crate) async fn a_read_goes_on_where_the_last_one_ended(system: &mut World) {
    let data = pattern(300_000);
    make(system, "/mnt0/file", &data).await;
    for length in [1000, 4096, 8191, 65_536] {
        let file = system.open("/mnt0/file", OpenOptions::READ).await.unwrap();
        for piece in data.chunks(length) {
            assert_eq!(read(system, file, length).await, piece);
        }
        assert_eq!(offset(system, file).await, 300_000);
        assert_eq!(read(system, file, length).await, b"");
        system.close(file).await.unwrap();
    }
}

pub(crate) async fn the_last_read_is_short(system: &mut World) {
    let data = pattern(8192 + 100);
    let file = make_open(system, "/mnt0/file", &data).await;
    assert_eq!(read(system, file, 8192).await, data[..8192]);
    assert_eq!(read(system, file, 8192).await, data[8192..]);
    assert_eq!(read(system, file, 8192).await, b"");
    write_all(system, file, b"more").await;
    assert_eq!(read(system, file, 8192).await, b"");
    seek(system, file, 8192 + 99).await;
    let tail = [&data[8192 + 99..], b"more"].concat();
    assert_eq!(read(system, file, 8192).await, tail);
}

pub(crate) async fn beyond_the_end_there_is_nothing(system: &mut World) {
    let file = make_open(system, "/mnt0/file", &pattern(100)).await;
    for beyond in [100, 101, 4096, 1 << 30] {
        seek(system, file, beyond).await;
        assert_eq!(read(system, file, 10).await, b"");
        assert_eq!(offset(system, file).await, beyond);
    }
}

pub(crate) async fn a_read_of_nothing_changes_nothing(system: &mut World) {
    let data = pattern(100);
    let file = make_open(system, "/mnt0/file", &data).await;
    for place in [0, 50, 100, 200] {
        seek(system, file, place).await;
        assert_eq!(system.read(file, &mut []).await, Ok(0));
        assert_eq!(offset(system, file).await, place);
    }
    assert_eq!(whole(system, file).await, data);
}

pub(crate) async fn a_hole_reads_as_zeroes(system: &mut World) {
    let hole = 3 * 8192 + 77;
    let file = make_open(system, "/mnt0/file", b"before").await;
    seek(system, file, hole).await;
    write_all(system, file, b"after").await;
    assert_eq!(system.file_length(file).await, Ok(hole + 5));

    let mut expected = vec![0; hole as usize];
    expected[..6].copy_from_slice(b"before");
    expected.extend(b"after");
    assert_eq!(whole(system, file).await, expected);
    seek(system, file, hole - 3).await;
    assert_eq!(read_to_end(system, file).await, b"\0\0\0after");
}

pub(crate) async fn any_offset_and_length_will_do(system: &mut World) {
    let data = pattern(32_768);
    let file = make_open(system, "/mnt0/file", &data).await;
    for (start, length) in UNALIGNED {
        seek(system, file, start as u64).await;
        assert_eq!(
            read(system, file, length).await,
            data[start..start + length]
        );
        assert_eq!(offset(system, file).await, (start + length) as u64);
    }
}
