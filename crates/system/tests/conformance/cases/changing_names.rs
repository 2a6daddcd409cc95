//! stat, unlink, mkdir, rmdir and rename, and what makes names durable.

use super::World;
use super::steps::{NOWHERE, contents, make, make_open, pattern, refused, whole, write_all};
use diskperf_system::{Errno, OpenOptions};

pub(crate) async fn a_name_has_the_length_of_its_file(system: &mut World) {
    system.mkdir("/mnt0/directory").await.unwrap();
    for path in ["/mnt0/file", "/mnt0/directory/file"] {
        let file = make_open(system, path, b"").await;
        assert_eq!(system.stat(path).await, Ok(0));
        write_all(system, file, &pattern(20_000)).await;
        assert_eq!(system.stat(path).await, Ok(20_000));
        system.close(file).await.unwrap();
        assert_eq!(system.stat(path).await, Ok(20_000));
        assert_eq!(contents(system, path).await, pattern(20_000));
        system.unlink(path).await.unwrap();
        refused(system.stat(path).await, Errno::NoEntry);
    }
    // A directory has a length of its own kind, and so has the top.
    for path in ["/mnt0", "/mnt0/directory", "/mnt0/directory/"] {
        system.stat(path).await.unwrap();
    }
}

pub(crate) async fn stat_refuses_what_it_must(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    let no_way = ["/dev/null", "/mnt0/../file"].map(|path| (path, Errno::Access));
    for (path, errno) in NOWHERE.into_iter().chain(no_way) {
        refused(system.stat(path).await, errno);
    }
    assert_eq!(system.stat("/mnt0/file").await, Ok(4));
}

pub(crate) async fn a_directory_is_synced(system: &mut World) {
    system.mkdir("/mnt0/directory").await.unwrap();
    let directory = system
        .open("/mnt0/directory", OpenOptions::READ)
        .await
        .unwrap();
    system.fsync(directory).await.unwrap();
    make(system, "/mnt0/directory/file", b"data").await;
    system.fsync(directory).await.unwrap();
    assert_eq!(contents(system, "/mnt0/directory/file").await, b"data");
    system.unlink("/mnt0/directory/file").await.unwrap();
    system.fsync(directory).await.unwrap();
    system.close(directory).await.unwrap();
    let gone = system.stat("/mnt0/directory/file").await;
    refused(gone, Errno::NoEntry);
    system.rmdir("/mnt0/directory").await.unwrap();
}

pub(crate) async fn an_unlinked_file_is_gone(system: &mut World) {
    make(system, "/mnt0/file", b"old").await;
    system.unlink("/mnt0/file").await.unwrap();
    refused(
        system.open("/mnt0/file", OpenOptions::READ).await,
        Errno::NoEntry,
    );
    refused(system.unlink("/mnt0/file").await, Errno::NoEntry);
    make(system, "/mnt0/file", b"").await;
    assert_eq!(contents(system, "/mnt0/file").await, b"");
}

pub(crate) async fn an_unlinked_file_that_is_open_keeps_its_data(system: &mut World) {
    let data = pattern(20_000);
    let old = make_open(system, "/mnt0/file", &data).await;
    system.unlink("/mnt0/file").await.unwrap();
    let new = make_open(system, "/mnt0/file", b"new").await;
    assert_eq!(whole(system, old).await, data);
    write_all(system, old, b"more").await;
    assert_eq!(system.file_length(old).await, Ok(20_004));
    assert_eq!(whole(system, old).await, [&data, &b"more"[..]].concat());
    system.fsync(old).await.unwrap();
    if system.can.truncates {
        system.ftruncate(old, 5).await.unwrap();
        assert_eq!(whole(system, old).await, data[..5]);
    }
    assert_eq!(whole(system, new).await, b"new");
}

pub(crate) async fn unlink_refuses_what_is_no_file(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    system.mkdir("/mnt0/directory").await.unwrap();
    for (path, errno) in [
        ("/mnt0/missing", Errno::NoEntry),
        ("/mnt0/missing/file", Errno::NoEntry),
        ("/mnt0/directory", system.can.unlinked_directory),
        ("/mnt0/directory/missing", Errno::NoEntry),
        ("/mnt0/file/below", Errno::NotDirectory),
    ] {
        refused(system.unlink(path).await, errno);
    }
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
    if system.can.minds_slashes {
        refused(system.unlink("/mnt0/file/").await, Errno::NotDirectory);
        assert_eq!(contents(system, "/mnt0/file").await, b"data");
    } else {
        system.unlink("/mnt0/file/").await.unwrap();
        refused(system.unlink("/mnt0/file").await, Errno::NoEntry);
    }
}

pub(crate) async fn directories_come_and_go(system: &mut World) {
    let paths = ["/mnt0/a", "/mnt0/a/b", "/mnt0/a/b/c"];
    for path in paths {
        system.mkdir(path).await.unwrap();
        let file = format!("{path}/file");
        make(system, &file, path.as_bytes()).await;
    }
    for path in paths.into_iter().rev() {
        let file = format!("{path}/file");
        assert_eq!(contents(system, &file).await, path.as_bytes());
        refused(system.rmdir(path).await, Errno::NotEmpty);
        system.unlink(&file).await.unwrap();
        system.rmdir(path).await.unwrap();
        refused(system.open(path, OpenOptions::READ).await, Errno::NoEntry);
    }
}

pub(crate) async fn mkdir_refuses_what_it_must(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    system.mkdir("/mnt0/directory").await.unwrap();
    for (path, errno) in [
        ("/mnt0/file", Errno::Exists),
        ("/mnt0/directory", Errno::Exists),
        ("/mnt0", Errno::Exists),
        ("/mnt0/missing/below", Errno::NoEntry),
        ("/mnt0/file/below", Errno::NotDirectory),
    ] {
        refused(system.mkdir(path).await, errno);
    }
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
}

pub(crate) async fn rmdir_refuses_what_it_must(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    system.mkdir("/mnt0/full").await.unwrap();
    system.mkdir("/mnt0/full/empty").await.unwrap();
    for (path, errno) in [
        ("/mnt0/file", Errno::NotDirectory),
        ("/mnt0/file/below", Errno::NotDirectory),
        ("/mnt0/full", Errno::NotEmpty),
        ("/mnt0/missing", Errno::NoEntry),
        ("/mnt0/missing/below", Errno::NoEntry),
    ] {
        refused(system.rmdir(path).await, errno);
    }
    system.rmdir("/mnt0/full/empty").await.unwrap();
    system.rmdir("/mnt0/full").await.unwrap();
    refused(system.rmdir("/mnt0/full").await, Errno::NoEntry);
}

/// Where there is no rename: it is refused, and nothing changes.
async fn keeps_its_names(system: &mut World) {
    make(system, "/mnt0/from", b"data").await;
    system.mkdir("/mnt0/directory").await.unwrap();
    for from in ["/mnt0/from", "/mnt0/directory", "/mnt0/missing"] {
        refused(system.rename(from, "/mnt0/to").await, Errno::Invalid);
    }
    refused(
        system.open("/mnt0/to", OpenOptions::READ).await,
        Errno::NoEntry,
    );
    assert_eq!(contents(system, "/mnt0/from").await, b"data");
    system.rmdir("/mnt0/directory").await.unwrap();
}

pub(crate) async fn a_renamed_file_has_its_data(system: &mut World) {
    if !system.can.renames {
        return keeps_its_names(system).await;
    }
    let data = pattern(10_000);
    let open = make_open(system, "/mnt0/from", &data).await;
    system.mkdir("/mnt0/directory").await.unwrap();
    for (from, to) in [
        ("/mnt0/from", "/mnt0/to"),
        ("/mnt0/to", "/mnt0/directory/to"),
        ("/mnt0/directory/to", "/mnt0/back"),
    ] {
        system.rename(from, to).await.unwrap();
        refused(system.open(from, OpenOptions::READ).await, Errno::NoEntry);
        assert_eq!(contents(system, to).await, data);
    }
    if system.can.truncates {
        system.ftruncate(open, 100).await.unwrap();
        assert_eq!(contents(system, "/mnt0/back").await, data[..100]);
    }
}

pub(crate) async fn a_rename_replaces_a_file(system: &mut World) {
    if !system.can.renames {
        return keeps_its_names(system).await;
    }
    let from = make_open(system, "/mnt0/from", b"new").await;
    let replaced = make_open(system, "/mnt0/to", b"replaced").await;
    system.rename("/mnt0/from", "/mnt0/to").await.unwrap();
    refused(system.unlink("/mnt0/from").await, Errno::NoEntry);
    assert_eq!(contents(system, "/mnt0/to").await, b"new");
    assert_eq!(whole(system, replaced).await, b"replaced");
    assert_eq!(whole(system, from).await, b"new");
    write_all(system, replaced, b" and gone").await;
    assert_eq!(contents(system, "/mnt0/to").await, b"new");
}

pub(crate) async fn a_renamed_directory_has_its_files(system: &mut World) {
    if !system.can.renames {
        return keeps_its_names(system).await;
    }
    system.mkdir("/mnt0/from").await.unwrap();
    system.mkdir("/mnt0/from/below").await.unwrap();
    system.mkdir("/mnt0/empty").await.unwrap();
    make(system, "/mnt0/from/below/file", b"data").await;
    for (from, to) in [("/mnt0/from", "/mnt0/to"), ("/mnt0/to", "/mnt0/empty")] {
        system.rename(from, to).await.unwrap();
        refused(system.rmdir(from).await, Errno::NoEntry);
        let file = format!("{to}/below/file");
        assert_eq!(contents(system, &file).await, b"data");
    }
}

pub(crate) async fn a_rename_onto_itself_changes_nothing(system: &mut World) {
    if !system.can.renames {
        return keeps_its_names(system).await;
    }
    make(system, "/mnt0/file", b"data").await;
    system.mkdir("/mnt0/directory").await.unwrap();
    make(system, "/mnt0/directory/file", b"below").await;
    for path in ["/mnt0/file", "/mnt0/directory"] {
        system.rename(path, path).await.unwrap();
    }
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
    assert_eq!(contents(system, "/mnt0/directory/file").await, b"below");
}

pub(crate) async fn rename_refuses_what_it_must(system: &mut World) {
    if !system.can.renames {
        return keeps_its_names(system).await;
    }
    make(system, "/mnt0/file", b"data").await;
    system.mkdir("/mnt0/empty").await.unwrap();
    system.mkdir("/mnt0/full").await.unwrap();
    make(system, "/mnt0/full/file", b"below").await;
    for (from, to, errno) in [
        ("/mnt0/missing", "/mnt0/new", Errno::NoEntry),
        ("/mnt0/missing", "/mnt0/file", Errno::NoEntry),
        ("/mnt0/file", "/mnt0/missing/new", Errno::NoEntry),
        ("/mnt0/file", "/mnt0/full/file/new", Errno::NotDirectory),
        ("/mnt0/full/file/below", "/mnt0/new", Errno::NotDirectory),
        ("/mnt0/file", "/mnt0/empty", Errno::IsDirectory),
        ("/mnt0/empty", "/mnt0/file", Errno::NotDirectory),
        ("/mnt0/full", "/mnt0/full/below", Errno::Invalid),
    ] {
        refused(system.rename(from, to).await, errno);
    }
    // A file in place of the directory that it is in: two reasons against it.
    let error = system.rename("/mnt0/full/file", "/mnt0/full").await;
    let errno = error.unwrap_err().errno();
    assert!(matches!(errno, Some(Errno::NotEmpty | Errno::IsDirectory)));
    // POSIX leaves the choice of the two to the file system; XFS says EEXIST.
    let error = system
        .rename("/mnt0/empty", "/mnt0/full")
        .await
        .unwrap_err();
    assert!(
        matches!(error.errno(), Some(Errno::NotEmpty | Errno::Exists)),
        "{error}"
    );
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
    assert_eq!(contents(system, "/mnt0/full/file").await, b"below");
    system.rmdir("/mnt0/empty").await.unwrap();
}

pub(crate) async fn a_directory_holds_many_files(system: &mut World) {
    let paths: Vec<String> = (0..500)
        .map(|number| format!("/mnt0/many/file{number}"))
        .collect();
    system.mkdir("/mnt0/many").await.unwrap();
    for path in &paths {
        make(system, path, path.as_bytes()).await;
    }
    for path in &paths {
        refused(system.mkdir(path).await, Errno::Exists);
        assert_eq!(contents(system, path).await, path.as_bytes());
    }
    for path in &paths {
        refused(system.rmdir("/mnt0/many").await, Errno::NotEmpty);
        system.unlink(path).await.unwrap();
    }
    system.rmdir("/mnt0/many").await.unwrap();
}
