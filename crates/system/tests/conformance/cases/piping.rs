//! Pipes, both ends of which one worker has.

use super::World;
use super::steps::{pattern, read, read_to_end, refused, write_all};
use super::{READ_END, WRITE_END};
use diskperf_system::{Errno, File, SeekOrigin};

async fn ends(system: &mut World) -> (File, File) {
    let read_end = system.open_pipe_end(READ_END).await.unwrap();
    let write_end = system.open_pipe_end(WRITE_END).await.unwrap();
    (read_end, write_end)
}

pub(crate) async fn bytes_come_out_in_order(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    let data = pattern(4000);
    for length in [1, 100, 511, 512, 4000] {
        assert_eq!(system.write(write_end, &data[..length]).await, Ok(length));
        assert_eq!(read(system, read_end, length).await, data[..length]);
    }
    for piece in data.chunks(1000) {
        write_all(system, write_end, piece).await;
    }
    for piece in data.chunks(800) {
        assert_eq!(read(system, read_end, 800).await, piece);
    }
}

pub(crate) async fn a_read_takes_what_there_is(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    write_all(system, write_end, b"little").await;
    assert_eq!(read(system, read_end, 4096).await, b"little");
    write_all(system, write_end, b"one").await;
    write_all(system, write_end, b"two").await;
    assert_eq!(read(system, read_end, 4096).await, b"onetwo");
    assert_eq!(system.read(read_end, &mut []).await, Ok(0));
    assert_eq!(system.write(write_end, b"").await, Ok(0));
}

pub(crate) async fn the_end_comes_after_the_last_byte(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    let data = pattern(4000);
    write_all(system, write_end, &data).await;
    system.close(write_end).await.unwrap();
    assert_eq!(read_to_end(system, read_end).await, data);
    assert_eq!(read(system, read_end, 100).await, b"");
}

pub(crate) async fn nobody_reads_any_more(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    write_all(system, write_end, b"unread").await;
    system.close(read_end).await.unwrap();
    for _ in 0..2 {
        refused(system.write(write_end, b"data").await, Errno::BrokenPipe);
    }
    system.close(write_end).await.unwrap();
}

pub(crate) async fn each_end_goes_one_way(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    refused(system.read(write_end, &mut [0; 4]).await, Errno::BadFile);
    refused(system.write(read_end, b"data").await, Errno::BadFile);
}

pub(crate) async fn a_pipe_has_no_place_to_go_to(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    for end in [read_end, write_end] {
        for whence in [
            SeekOrigin::FileStart,
            SeekOrigin::CurrentPosition,
            SeekOrigin::FileEnd,
        ] {
            refused(system.lseek(end, 0, whence).await, Errno::NotSeekable);
        }
        refused(system.ftruncate(end, 0).await, Errno::Invalid);
        if system.can.syncs_files {
            refused(system.fsync(end).await, Errno::Invalid);
        } else {
            system.fsync(end).await.unwrap();
        }
    }
}

pub(crate) async fn each_end_is_taken_once(system: &mut World) {
    let (read_end, write_end) = ends(system).await;
    for number in [READ_END, WRITE_END, 2, usize::MAX] {
        refused(system.open_pipe_end(number).await, Errno::BadFile);
    }
    for end in [read_end, write_end] {
        system.close(end).await.unwrap();
        refused(system.close(end).await, Errno::BadFile);
    }
    refused(system.open_pipe_end(READ_END).await, Errno::BadFile);
}
