//! ENOSPC, and how space comes back.

use super::SMALL_VOLUME_BYTES;
use super::World;
use super::steps::{contents, make_open, offset, pattern, refused, seek, whole, write_all};
use diskperf_system::{Errno, File, OpenOptions};

/// What is left of a full volume for the file system's own data when a file
/// has gone, as a share of what the file had held.
const REUSABLE: f64 = 0.9;

/// Writes at the offset until the volume is full; what was written.
async fn fill(system: &mut World, file: File) -> Vec<u8> {
    let block = pattern(8192 - 1);
    let mut written = Vec::new();
    let from = offset(system, file).await;
    while written.len() as u64 <= SMALL_VOLUME_BYTES {
        match system.write(file, &block).await {
            Ok(count) => written.extend(&block[..count]),
            Err(error) => {
                assert_eq!(error.errno(), Some(Errno::NoSpace), "{error}");
                if !system.can.tells_partial_writes {
                    // What the last write did is there all the same.
                    let more = offset(system, file).await - from - written.len() as u64;
                    written.extend(&block[..more as usize]);
                }
                return written;
            }
        }
    }
    panic!("{} bytes went into a small volume", written.len());
}

/// Fills the volume again from the offset, and expects almost as much room as
/// `before` found.
async fn refill(system: &mut World, file: File, before: &[u8]) {
    let again = fill(system, file).await;
    let share = again.len() as f64 / before.len() as f64;
    assert!(
        share > REUSABLE,
        "{} bytes of {} came back",
        again.len(),
        before.len()
    );
}

pub(crate) async fn a_full_volume_says_so_and_keeps_its_data(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let written = fill(system, file).await;
    assert!(!written.is_empty());
    refused(system.write(file, &pattern(8192)).await, Errno::NoSpace);
    system.fsync(file).await.unwrap();
    assert_eq!(system.file_length(file).await, Ok(written.len() as u64));
    assert_eq!(whole(system, file).await, written);
    system.close(file).await.unwrap();
    system.drop_cached_pages("/mnt0/file").await.unwrap();
    assert_eq!(contents(system, "/mnt0/file").await, written);
}

pub(crate) async fn a_full_volume_takes_an_overwrite(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let mut expected = fill(system, file).await;
    seek(system, file, 1000).await;
    write_all(system, file, &[0xff; 100_000]).await;
    system.fsync(file).await.unwrap();
    expected[1000..101_000].fill(0xff);
    assert_eq!(whole(system, file).await, expected);
}

pub(crate) async fn an_unlinked_file_gives_its_space_back(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let written = fill(system, file).await;
    system.close(file).await.unwrap();
    system.unlink("/mnt0/file").await.unwrap();
    let file = make_open(system, "/mnt0/other", b"").await;
    refill(system, file, &written).await;
}

pub(crate) async fn a_shortened_file_gives_its_space_back(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let written = fill(system, file).await;
    if system.can.truncates {
        system.ftruncate(file, 0).await.unwrap();
        seek(system, file, 0).await;
        refill(system, file, &written).await;
    }
    system.close(file).await.unwrap();
    let file = system
        .open("/mnt0/file", OpenOptions::CREATE)
        .await
        .unwrap();
    refill(system, file, &written).await;
}

pub(crate) async fn an_unlinked_file_that_is_open_keeps_its_space(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"").await;
    let other = make_open(system, "/mnt0/other", b"").await;
    let written = fill(system, file).await;
    system.unlink("/mnt0/file").await.unwrap();
    refused(system.write(other, &pattern(8192)).await, Errno::NoSpace);
    assert_eq!(whole(system, file).await, written);
    system.close(file).await.unwrap();
    refill(system, other, &written).await;
}
