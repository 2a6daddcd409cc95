//! fchown, fchmod, chown, chmod and utimes.

use super::steps::{
    NOWHERE, contents, make, make_open, offset, pattern, refused, seek, whole, write_all,
};
use crate::cases::{WRITE_END, World};
use diskperf_system::{Errno, File, OpenOptions, Result};

async fn change_open(system: &mut World, file: File) -> [Result<()>; 2] {
    [system.fchown(file).await, system.fchmod(file, 0o644).await]
}

/// Both calls on an open file, where there are such calls.
async fn changes_open(system: &mut World, file: File) {
    let can = system.can.changes_open_files;
    for result in change_open(system, file).await {
        if can {
            assert_eq!(result, Ok(()));
        } else {
            refused(result, Errno::Invalid);
        }
    }
}

async fn change_named(system: &mut World, path: &str) -> [Result<()>; 3] {
    [
        system.chown(path).await,
        system.chmod(path, 0o755).await,
        system.utimes(path).await,
    ]
}

pub(crate) async fn a_file_has_what_it_had(system: &mut World) {
    let data = pattern(20_000);
    let file = make_open(system, "/mnt0/file", &data).await;
    seek(system, file, 700).await;
    changes_open(system, file).await;
    assert_eq!(
        change_named(system, "/mnt0/file").await,
        [Ok(()), Ok(()), Ok(())]
    );
    assert_eq!(offset(system, file).await, 700);
    assert_eq!(system.file_length(file).await, Ok(20_000));
    assert_eq!(whole(system, file).await, data);
    write_all(system, file, b"more").await;
    system.close(file).await.unwrap();
    let expected = [&data, &b"more"[..]].concat();
    assert_eq!(contents(system, "/mnt0/file").await, expected);
}

pub(crate) async fn a_directory_has_what_it_had(system: &mut World) {
    system.mkdir("/mnt0/directory").await.unwrap();
    make(system, "/mnt0/directory/file", b"data").await;
    for path in ["/mnt0/directory", "/mnt0/directory/"] {
        assert_eq!(change_named(system, path).await, [Ok(()), Ok(()), Ok(())]);
    }
    assert_eq!(contents(system, "/mnt0/directory/file").await, b"data");
    make(system, "/mnt0/directory/other", b"").await;
    let directory = system
        .open("/mnt0/directory", OpenOptions::READ)
        .await
        .unwrap();
    changes_open(system, directory).await;
}

pub(crate) async fn an_unlinked_file_that_is_open_can_be_changed(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"data").await;
    system.unlink("/mnt0/file").await.unwrap();
    changes_open(system, file).await;
    for result in change_named(system, "/mnt0/file").await {
        refused(result, Errno::NoEntry);
    }
    assert_eq!(whole(system, file).await, b"data");
}

pub(crate) async fn the_top_can_be_changed(system: &mut World) {
    assert_eq!(
        change_named(system, "/mnt0").await,
        [Ok(()), Ok(()), Ok(())]
    );
}

pub(crate) async fn what_is_not_there_is_not_found(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    for (path, errno) in NOWHERE {
        for result in change_named(system, path).await {
            refused(result, errno);
        }
    }
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
}

pub(crate) async fn a_closed_file_is_refused(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"data").await;
    system.close(file).await.unwrap();
    let errno = match system.can.changes_open_files {
        true => Errno::BadFile,
        false => Errno::Invalid,
    };
    for result in change_open(system, file).await {
        refused(result, errno);
    }
}

pub(crate) async fn what_is_in_no_file_system_is_refused(system: &mut World) {
    for path in ["/dev/null", "/dev/zero", "/mnt0/../file"] {
        for result in change_named(system, path).await {
            refused(result, Errno::Access);
        }
    }
    let null = system.open("/dev/null", OpenOptions::WRITE).await.unwrap();
    let pipe = system.open_pipe_end(WRITE_END).await.unwrap();
    for file in [null, pipe] {
        for result in change_open(system, file).await {
            refused(result, Errno::Access);
        }
    }
}
