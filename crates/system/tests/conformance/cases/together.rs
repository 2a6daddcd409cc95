//! Several workers, each of which runs the body, joined by pipes in a ring.

use super::World;
use super::steps::{contents, make, pattern, read, read_to_end, refused, write_all};
use super::{READ_END, TOGETHER, WRITE_END};
use diskperf_system::{Errno, OpenOptions};

/// More than a pipe holds, and no multiple of a page.
const STREAM_BYTES: usize = 1_000_003;

pub(crate) async fn a_barrier_releases_all_at_one_moment(system: &mut World, _worker: usize) {
    let before = system.open_pipe_end(READ_END).await.unwrap();
    let after = system.open_pipe_end(WRITE_END).await.unwrap();
    let mut last = system.now();
    for _ in 0..10 {
        let released = system.barrier().await.unwrap();
        assert!(
            released >= last,
            "the barrier opened before this worker came"
        );
        assert!(system.now() >= released);
        write_all(system, after, &released.0.to_le_bytes()).await;
        assert_eq!(read(system, before, 8).await, released.0.to_le_bytes());
        last = system.now();
    }
}

pub(crate) async fn what_one_writes_another_reads(system: &mut World, worker: usize) {
    let own = format!("/mnt0/file{worker}");
    let next = format!("/mnt0/file{}", (worker + 1) % TOGETHER);
    make(system, &own, own.as_bytes()).await;
    system.barrier().await.unwrap();
    assert_eq!(contents(system, &next).await, next.as_bytes());
    system.barrier().await.unwrap();
    system.unlink(&next).await.unwrap();
    system.barrier().await.unwrap();
    refused(system.open(&own, OpenOptions::READ).await, Errno::NoEntry);
}

/// The first produces, the last consumes, those between pass on.
pub(crate) async fn a_pipeline_moves_more_than_a_pipe_holds(system: &mut World, worker: usize) {
    let before = system.open_pipe_end(READ_END).await.unwrap();
    let after = system.open_pipe_end(WRITE_END).await.unwrap();
    let stream = pattern(STREAM_BYTES);
    if worker == 0 {
        for piece in stream.chunks(8191) {
            write_all(system, after, piece).await;
        }
        system.close(after).await.unwrap();
    } else if worker < TOGETHER - 1 {
        loop {
            let piece = read(system, before, 5000).await;
            if piece.is_empty() {
                break;
            }
            write_all(system, after, &piece).await;
        }
        system.close(after).await.unwrap();
    } else {
        assert_eq!(read_to_end(system, before).await, stream);
    }
}

/// The last takes a little and leaves; each before it is told by EPIPE.
pub(crate) async fn a_pipeline_breaks_from_its_end(system: &mut World, worker: usize) {
    let before = system.open_pipe_end(READ_END).await.unwrap();
    let after = system.open_pipe_end(WRITE_END).await.unwrap();
    if worker == TOGETHER - 1 {
        assert_eq!(read(system, before, 10).await.len(), 10);
        system.close(before).await.unwrap();
        return;
    }
    let stream = pattern(10_000);
    let errno = loop {
        let piece = if worker == 0 {
            stream.clone()
        } else {
            read(system, before, 5000).await
        };
        assert!(!piece.is_empty(), "the worker before ended first");
        // A reader that leaves wakes a writer with the count so far.
        if let Err(error) = system.write(after, &piece).await {
            break error.errno();
        }
    };
    assert_eq!(errno, Some(Errno::BrokenPipe));
    system.close(before).await.unwrap();
}

/// Of those who create a file for themselves alone, one does.
pub(crate) async fn an_exclusive_create_has_one_winner(system: &mut World, worker: usize) {
    for round in 0..20 {
        let prize = format!("/mnt0/prize{round}");
        system.barrier().await.unwrap();
        match system
            .open(&prize, OpenOptions::WRITE.with_create_new())
            .await
        {
            Ok(file) => {
                write_all(system, file, &[worker as u8]).await;
                system.close(file).await.unwrap();
                make(system, &format!("{prize}.won{worker}"), b"").await;
            }
            Err(error) => assert_eq!(error.errno(), Some(Errno::Exists), "{error}"),
        }
        system.barrier().await.unwrap();
        let mut winners = Vec::new();
        for candidate in 0..TOGETHER {
            let claim = format!("{prize}.won{candidate}");
            if let Ok(file) = system.open(&claim, OpenOptions::READ).await {
                system.close(file).await.unwrap();
                winners.push(candidate as u8);
            }
        }
        assert_eq!(contents(system, &prize).await, winners);
        assert_eq!(winners.len(), 1);
    }
}

/// All make, rename and remove the same few names at once. Who comes too late
/// is told so; what is left can be removed.
pub(crate) async fn all_change_the_same_names(system: &mut World, worker: usize) {
    let names = ["a", "b", "c", "a/x", "b/x", "c/x", "a/x/y"].map(|name| format!("/mnt0/{name}"));
    let mut choice = worker * 7919;
    let mut next = |below: usize| {
        choice = (choice * 1103 + 12_345) % 65_536;
        (choice * below) >> 16
    };
    for _ in 0..300 {
        let name = &names[next(names.len())];
        let result = match next(6) {
            0 => system.mkdir(name).await,
            1 => system.rmdir(name).await,
            2 => system.unlink(name).await,
            3 | 4 => system.rename(name, &names[next(names.len())]).await,
            _ => match system
                .open(name, OpenOptions::READ_WRITE.with_create())
                .await
            {
                Ok(file) => {
                    write_all(system, file, &pattern(3000)).await;
                    system.close(file).await
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = result {
            let late = [
                Errno::NoEntry,
                Errno::Exists,
                Errno::NotEmpty,
                Errno::IsDirectory,
                Errno::NotDirectory,
                Errno::Invalid,
                system.can.unlinked_directory,
            ];
            let errno = error.errno().expect("nobody ended the run");
            assert!(late.contains(&errno), "{error}");
        }
    }
    system.barrier().await.unwrap();
    if worker == 0 {
        remove_all(system).await;
    }
}

/// Removes what can have become of names of the letters a, b, c, x and y.
async fn remove_all(system: &mut World) {
    let mut directories = vec!["/mnt0".to_owned()];
    let mut searched = 0;
    while searched < directories.len() {
        for letter in ["a", "b", "c", "x", "y"] {
            let path = format!("{}/{letter}", directories[searched]);
            match system.unlink(&path).await {
                Ok(()) => {}
                Err(error) if error.errno() == Some(system.can.unlinked_directory) => {
                    directories.push(path);
                }
                Err(error) => assert_eq!(error.errno(), Some(Errno::NoEntry), "{error}"),
            }
        }
        searched += 1;
    }
    for directory in directories[1..].iter().rev() {
        system.rmdir(directory).await.unwrap();
    }
}
