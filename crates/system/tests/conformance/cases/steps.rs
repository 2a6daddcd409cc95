//! Steps that the bodies share.

use diskperf_system::{Errno, File, OpenOptions, Result, SeekOrigin, System};
use std::fmt::Debug;

/// Bytes that tell their offset: a piece from elsewhere does not look alike.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|offset| (offset + offset / 251) as u8)
        .collect()
}

/// Expects that a call failed, with this error number.
#[track_caller]
pub(crate) fn refused<T: Debug>(result: Result<T>, errno: Errno) {
    match result {
        Ok(value) => panic!("the call gave {value:?}; expected: {errno}"),
        Err(error) => assert_eq!(error.errno(), Some(errno), "{error}"),
    }
}

/// Names that lead nowhere where there is a file `/mnt0/file`, and what is said of each.
pub(crate) const NOWHERE: [(&str, Errno); 5] = [
    ("/mnt0/missing", Errno::NoEntry),
    ("/mnt0/missing/file", Errno::NoEntry),
    ("/mnt0/file/below", Errno::NotDirectory),
    ("/mnt9/file", Errno::NoEntry),
    ("/etc/passwd", Errno::NoEntry),
];

/// Makes a file of these bytes, and closes it.
pub(crate) async fn make(system: &mut System, path: &str, data: &[u8]) {
    let file = system.open(path, OpenOptions::CREATE).await.unwrap();
    write_all(system, file, data).await;
    system.close(file).await.unwrap();
}

/// Opens a new file of these bytes for both, at its start.
pub(crate) async fn make_open(system: &mut System, path: &str, data: &[u8]) -> File {
    let file = system
        .open(path, OpenOptions::READ_WRITE.with_create_new())
        .await
        .unwrap();
    write_all(system, file, data).await;
    seek(system, file, 0).await;
    file
}

/// Writes all of it, in as many calls as it takes.
pub(crate) async fn write_all(system: &mut System, file: File, mut data: &[u8]) {
    while !data.is_empty() {
        let count = system.write(file, data).await.unwrap();
        assert!(count > 0, "a write took nothing of {} bytes", data.len());
        data = &data[count..];
    }
}

/// Reads once, at most `length` bytes.
pub(crate) async fn read(system: &mut System, file: File, length: usize) -> Vec<u8> {
    let mut buffer = vec![0xee; length];
    let count = system.read(file, &mut buffer).await.unwrap();
    assert!(
        buffer[count..].iter().all(|&byte| byte == 0xee),
        "bytes beyond the {count} that were read have changed"
    );
    buffer.truncate(count);
    buffer
}

/// Reads from the current offset to the end.
pub(crate) async fn read_to_end(system: &mut System, file: File) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let piece = read(system, file, 8192).await;
        if piece.is_empty() {
            return data;
        }
        data.extend(piece);
    }
}

/// The bytes of an open file from its start; the offset is left at its end.
pub(crate) async fn whole(system: &mut System, file: File) -> Vec<u8> {
    seek(system, file, 0).await;
    read_to_end(system, file).await
}

/// The bytes of the file of this name.
pub(crate) async fn contents(system: &mut System, path: &str) -> Vec<u8> {
    let file = system.open(path, OpenOptions::READ).await.unwrap();
    let data = read_to_end(system, file).await;
    system.close(file).await.unwrap();
    data
}

/// Goes to an offset from the start.
pub(crate) async fn seek(system: &mut System, file: File, offset: u64) {
    let signed = i64::try_from(offset).unwrap();
    assert_eq!(
        system.lseek(file, signed, SeekOrigin::FileStart).await,
        Ok(offset)
    );
}

/// The current offset.
pub(crate) async fn offset(system: &mut System, file: File) -> u64 {
    system
        .lseek(file, 0, SeekOrigin::CurrentPosition)
        .await
        .unwrap()
}

/// The largest offset that lseek goes to, which is the length of the largest
/// file that the volume allows.
pub(crate) async fn largest_offset(system: &mut System, file: File) -> u64 {
    let (mut reached, mut refused) = (0, 1 << 63);
    while refused - reached > 1 {
        let middle: u64 = reached + (refused - reached) / 2;
        match system
            .lseek(file, middle as i64, SeekOrigin::FileStart)
            .await
        {
            Ok(_) => reached = middle,
            Err(_) => refused = middle,
        }
    }
    reached
}

/// Lengths and offsets around the sizes that storage is made of: sectors,
/// fragments, pages and blocks.
pub(crate) const UNALIGNED: [(usize, usize); 12] = [
    (0, 1),
    (1, 1),
    (511, 2),
    (512, 512),
    (513, 1023),
    (1000, 4096),
    (4095, 2),
    (4096, 4097),
    (8191, 8193),
    (12_287, 1),
    (16_385, 16_383),
    (20_000, 12_768),
];
