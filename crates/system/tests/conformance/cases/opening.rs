//! open, creat and close.

use super::World;
use super::steps::{contents, make, make_open, offset, pattern, read, refused, whole, write_all};
use diskperf_system::{CallFailure, CallKind, Errno, Error, OpenOptions, SeekOrigin};

const WAYS: [OpenOptions; 3] = [
    OpenOptions::READ,
    OpenOptions::WRITE,
    OpenOptions::READ_WRITE,
];

pub(crate) async fn a_missing_file_is_not_found(system: &mut World) {
    for how in WAYS {
        refused(system.open("/mnt0/missing", how).await, Errno::NoEntry);
        refused(
            system.open("/mnt0/missing/file", how.with_create()).await,
            Errno::NoEntry,
        );
    }
    let truncate = OpenOptions {
        truncate: true,
        ..OpenOptions::WRITE
    };
    refused(system.open("/mnt0/missing", truncate).await, Errno::NoEntry);
}

pub(crate) async fn creating_makes_an_empty_file(system: &mut World) {
    for (path, how) in [
        ("/mnt0/a", OpenOptions::CREATE),
        ("/mnt0/b", OpenOptions::READ.with_create()),
        ("/mnt0/c", OpenOptions::WRITE.with_create_new()),
        ("/mnt0/d", OpenOptions::READ_WRITE.with_create()),
    ] {
        let file = system.open(path, how).await.unwrap();
        assert_eq!(system.file_length(file).await, Ok(0));
        assert_eq!(offset(system, file).await, 0);
        system.close(file).await.unwrap();
        assert_eq!(contents(system, path).await, b"");
    }
}

pub(crate) async fn creating_an_existing_file_empties_it(system: &mut World) {
    let truncate = OpenOptions {
        truncate: true,
        ..OpenOptions::READ_WRITE
    };
    for how in [OpenOptions::CREATE, truncate, truncate.with_create()] {
        make(system, "/mnt0/file", &pattern(10_000)).await;
        let file = system.open("/mnt0/file", how).await.unwrap();
        assert_eq!(system.file_length(file).await, Ok(0));
        write_all(system, file, b"new").await;
        system.close(file).await.unwrap();
        assert_eq!(contents(system, "/mnt0/file").await, b"new");
    }
}

pub(crate) async fn opening_without_truncate_keeps_the_data(system: &mut World) {
    let data = pattern(10_000);
    make(system, "/mnt0/file", &data).await;
    for how in WAYS.into_iter().flat_map(|how| [how, how.with_create()]) {
        let file = system.open("/mnt0/file", how).await.unwrap();
        assert_eq!(offset(system, file).await, 0);
        system.close(file).await.unwrap();
        assert_eq!(contents(system, "/mnt0/file").await, data);
    }
}

pub(crate) async fn an_exclusive_create_refuses_what_exists(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    system.mkdir("/mnt0/directory").await.unwrap();
    for how in WAYS {
        refused(
            system.open("/mnt0/file", how.with_create_new()).await,
            Errno::Exists,
        );
        refused(
            system.open("/mnt0/directory", how.with_create_new()).await,
            Errno::Exists,
        );
    }
    let truncate = OpenOptions {
        create_exclusive: true,
        ..OpenOptions::CREATE
    };
    refused(system.open("/mnt0/file", truncate).await, Errno::Exists);
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
}

pub(crate) async fn a_directory_is_not_opened_for_writing(system: &mut World) {
    system.mkdir("/mnt0/directory").await.unwrap();
    if system.can.reads_directories {
        let how = OpenOptions::READ.with_create();
        let file = system.open("/mnt0/directory", how).await.unwrap();
        system.close(file).await.unwrap();
    } else {
        for path in ["/mnt0/directory", "/mnt0"] {
            let opened = system.open(path, OpenOptions::READ.with_create()).await;
            refused(opened, Errno::IsDirectory);
        }
    }
    for how in [
        OpenOptions::WRITE,
        OpenOptions::READ_WRITE,
        OpenOptions::CREATE,
    ] {
        refused(
            system.open("/mnt0/directory", how).await,
            Errno::IsDirectory,
        );
        refused(system.open("/mnt0", how).await, Errno::IsDirectory);
    }
}

pub(crate) async fn a_directory_is_not_read(system: &mut World) {
    system.mkdir("/mnt0/directory").await.unwrap();
    for path in ["/mnt0/directory", "/mnt0"] {
        let file = system.open(path, OpenOptions::READ).await.unwrap();
        if system.can.reads_directories {
            let entries = read(system, file, 512).await;
            assert_eq!(entries[2..6], [b'.', 0, 0, 0], "its own name is the first");
            assert_eq!(entries[18..22], [b'.', b'.', 0, 0]);
            assert!(entries.len().is_multiple_of(16) && entries.len() >= 32);
        } else {
            refused(system.read(file, &mut [0; 512]).await, Errno::IsDirectory);
        }
        refused(system.write(file, b"data").await, Errno::BadFile);
        refused(system.ftruncate(file, 0).await, Errno::Invalid);
        system.close(file).await.unwrap();
    }
}

pub(crate) async fn a_path_through_a_file_is_refused(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    for how in WAYS {
        refused(
            system.open("/mnt0/file/below", how).await,
            Errno::NotDirectory,
        );
        refused(
            system.open("/mnt0/file/below", how.with_create()).await,
            Errno::NotDirectory,
        );
        let with_slash = system.open("/mnt0/file/", how).await;
        if system.can.minds_slashes {
            refused(with_slash, Errno::NotDirectory);
        } else {
            system.close(with_slash.unwrap()).await.unwrap();
        }
    }
}

pub(crate) async fn a_name_may_be_so_long_and_no_longer(system: &mut World) {
    let longest = format!("/mnt0/{}", "n".repeat(system.can.name_bytes));
    let longer = longest.clone() + "n";
    make(system, &longest, b"data").await;
    assert_eq!(contents(system, &longest).await, b"data");
    if system.can.cuts_names {
        assert_eq!(contents(system, &longer).await, b"data");
        refused(system.mkdir(&longer).await, Errno::Exists);
        if system.can.renames {
            system.rename(&longest, &longer).await.unwrap();
        }
        system.unlink(&longer).await.unwrap();
        return refused(
            system.open(&longest, OpenOptions::READ).await,
            Errno::NoEntry,
        );
    }
    refused(
        system.open(&longer, OpenOptions::CREATE).await,
        Errno::NameTooLong,
    );
    refused(
        system.open(&longer, OpenOptions::READ).await,
        Errno::NameTooLong,
    );
    refused(system.mkdir(&longer).await, Errno::NameTooLong);
    refused(system.rename(&longest, &longer).await, Errno::NameTooLong);
    refused(system.unlink(&longer).await, Errno::NameTooLong);
}

pub(crate) async fn only_the_worker_s_own_names_exist(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    for (path, errno) in [
        ("", Errno::NoEntry),
        ("file", Errno::NoEntry),
        ("/", Errno::NoEntry),
        ("/file", Errno::NoEntry),
        ("/etc/passwd", Errno::NoEntry),
        ("/mnt", Errno::NoEntry),
        ("/mnt/file", Errno::NoEntry),
        ("/mntx/file", Errno::NoEntry),
        ("/mnt7/file", Errno::NoEntry),
        ("/mnt-1/file", Errno::NoEntry),
        ("/dev/drive7", Errno::NoEntry),
        ("/dev/drive", Errno::NoEntry),
        ("/dev/null/file", Errno::NoEntry),
        ("/mnt0/..", Errno::Access),
        ("/mnt0/../file", Errno::Access),
        ("/mnt0/directory/../../file", Errno::Access),
    ] {
        refused(system.open(path, OpenOptions::READ).await, errno);
        refused(system.open(path, OpenOptions::CREATE).await, errno);
        refused(system.unlink(path).await, errno);
        refused(system.mkdir(path).await, errno);
        refused(system.rmdir(path).await, errno);
        if !system.can.renames {
            continue;
        }
        refused(system.rename(path, "/mnt0/new").await, errno);
        refused(system.rename("/mnt0/file", path).await, errno);
    }
    assert_eq!(contents(system, "/mnt0/file").await, b"data");
}

pub(crate) async fn the_null_and_zero_devices_are_there(system: &mut World) {
    let data = pattern(10_000);
    for (path, is_read) in [("/dev/null", vec![]), ("/dev/zero", vec![0; 10_000])] {
        if path == "/dev/zero" && !system.can.has_zero {
            refused(system.open(path, OpenOptions::READ).await, Errno::NoEntry);
            continue;
        }
        for how in [
            OpenOptions::READ_WRITE,
            OpenOptions {
                truncate: true,
                ..OpenOptions::READ_WRITE.with_create()
            },
        ] {
            let device = system.open(path, how).await.unwrap();
            assert_eq!(system.write(device, &data).await, Ok(data.len()));
            assert_eq!(read(system, device, 10_000).await, is_read);
            system.close(device).await.unwrap();
        }
        make(system, "/mnt0/file", b"data").await;
        refused(system.unlink(path).await, Errno::Access);
        refused(system.mkdir(path).await, Errno::Access);
        refused(system.rmdir(path).await, Errno::Access);
        refused(system.rename(path, "/mnt0/file").await, Errno::Access);
        refused(system.rename("/mnt0/file", path).await, Errno::Access);
    }
}

pub(crate) async fn each_open_has_an_offset_of_its_own(system: &mut World) {
    let data = pattern(1000);
    let first = make_open(system, "/mnt0/file", &data).await;
    assert_eq!(read(system, first, 600).await, data[..600]);
    let second = system.open("/mnt0/file", OpenOptions::READ).await.unwrap();
    assert_eq!(read(system, second, 100).await, data[..100]);
    assert_eq!(read(system, first, 600).await, data[600..]);
    system.close(first).await.unwrap();
    assert_eq!(read(system, second, 100).await, data[100..200]);
}

pub(crate) async fn a_file_open_for_one_thing_refuses_the_other(system: &mut World) {
    make(system, "/mnt0/file", b"data").await;
    let to_read = system.open("/mnt0/file", OpenOptions::READ).await.unwrap();
    let to_write = system.open("/mnt0/file", OpenOptions::WRITE).await.unwrap();
    for length in [0, 4] {
        refused(
            system.read(to_write, &mut vec![0; length]).await,
            Errno::BadFile,
        );
        refused(
            system.write(to_read, &vec![0; length]).await,
            Errno::BadFile,
        );
    }
    refused(system.ftruncate(to_read, 0).await, Errno::Invalid);
    assert_eq!(whole(system, to_read).await, b"data");
}

pub(crate) async fn a_closed_file_refuses_everything(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"data").await;
    system.close(file).await.unwrap();
    refused(system.read(file, &mut [0; 4]).await, Errno::BadFile);
    refused(system.write(file, b"data").await, Errno::BadFile);
    refused(
        system.lseek(file, 0, SeekOrigin::FileStart).await,
        Errno::BadFile,
    );
    let errno = if system.can.truncates {
        Errno::BadFile
    } else {
        Errno::Invalid
    };
    refused(system.ftruncate(file, 0).await, errno);
    if system.can.syncs_files {
        refused(system.fsync(file).await, Errno::BadFile);
    } else {
        system.fsync(file).await.unwrap();
    }
    refused(system.file_length(file).await, Errno::BadFile);
    refused(system.close(file).await, Errno::BadFile);
}

pub(crate) async fn the_lowest_free_descriptor_is_given_out(system: &mut World) {
    let mut files = Vec::new();
    for path in ["/mnt0/a", "/mnt0/b", "/mnt0/c", "/mnt0/d"] {
        files.push(system.open(path, OpenOptions::CREATE).await.unwrap());
    }
    for freed in [2, 0] {
        system.close(files[freed]).await.unwrap();
    }
    for expected in [0, 2] {
        assert_eq!(
            system.open("/mnt0/a", OpenOptions::READ).await,
            Ok(files[expected])
        );
    }
    system.close_all().await;
    for file in files {
        refused(system.close(file).await, Errno::BadFile);
    }
}

pub(crate) async fn a_failure_names_the_call_and_the_file(system: &mut World) {
    let file = make_open(system, "/mnt0/file", b"data").await;
    let missing = "/mnt0/missing";
    for (error, call, path, errno) in [
        (
            system.open(missing, OpenOptions::READ).await.unwrap_err(),
            CallKind::Open,
            missing,
            Errno::NoEntry,
        ),
        (
            system.unlink(missing).await.unwrap_err(),
            CallKind::Unlink,
            missing,
            Errno::NoEntry,
        ),
        (
            system.mkdir("/mnt0/file").await.unwrap_err(),
            CallKind::Mkdir,
            "/mnt0/file",
            Errno::Exists,
        ),
        (
            system
                .lseek(file, -1, SeekOrigin::FileStart)
                .await
                .unwrap_err(),
            CallKind::Lseek,
            "/mnt0/file",
            Errno::Invalid,
        ),
    ] {
        let expected = CallFailure {
            call,
            path: path.to_owned(),
            errno,
        };
        assert_eq!(error, Error::CallFailed(Box::new(expected)));
    }
}
