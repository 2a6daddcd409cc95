//! A served drive as a file and as a block device: the kernel formats, mounts, checks and compares,
//! and a killed server leaves nothing for long.

use crate::support::machine::{Needs, Undo, can_run, retry, run};
use crate::support::{User, words};
use crate::{Serving, client, expect_success};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const FILE: &[Needs] = &[Needs::Fuse];

const DISK: &[Needs] = &[
    Needs::LoopDevices,
    Needs::Fuse,
    Needs::Tool("mkfs.ext4"),
    Needs::Tool("fio"),
];

/// Drives fifty times as fast as they are, for tests that write whole file systems.
const FAST: &str = "--speed 50 --format json";

fn open(path: &str) -> File {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(file: &File, offset: u64, bytes: usize) -> Vec<u8> {
    let mut found = vec![1; bytes];
    file.read_exact_at(&mut found, offset).unwrap();
    found
}

/// Returns the number of requests of a kind.
fn requests(statistics: &serde_json::Value, kind: &str) -> u64 {
    let operations = statistics["operations"].as_array().unwrap();
    let of_kind = operations.iter().find(|of| of["operation"] == kind);
    of_kind.map_or(0, |of| of["requests"].as_u64().unwrap())
}

/// Names of what a server shows to the kernel: its mounts.
fn served_mounts(path: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let of_path = mounts.lines().filter(|line| {
        let place = line.split(' ').nth(1);
        place == path.to_str()
    });
    of_path.map(str::to_owned).collect()
}

fn has_backing_file(device: &str) -> bool {
    let name = device.trim_start_matches("/dev/");
    Path::new("/sys/block")
        .join(name)
        .join("loop/backing_file")
        .exists()
}

#[test]
fn a_file_is_read_written_flushed_and_punched() {
    if !can_run("a_file_is_read_written_flushed_and_punched", FILE) {
        return;
    }
    let user = User::new();
    let line = format!("serve nvme-tlc --size 64M --fuse ./drive.img {FAST}");
    let serving = Serving::start(&user, &line);
    let file = open(&serving.uri);
    assert_eq!(file.metadata().unwrap().len(), 64 << 20);
    file.write_all_at(&[7; 8192], 4096).unwrap();
    file.sync_all().unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 8192, 4096).unwrap();
    let found = read(&file, 0, 16_384);
    assert!(found[4096..8192] == [7; 4096] && found[8192..] == [0; 8192]);
    let beyond = file.write_at(&[7; 4096], 64 << 20).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::StorageFull, "{beyond}");
    assert_eq!(file.read_at(&mut [0; 10], 64 << 20).unwrap(), 0);
    // A drive keeps its size.
    file.set_len(4096).unwrap();
    assert_eq!(fs::metadata(&serving.uri).unwrap().len(), 64 << 20);
    drop(file);
    let statistics = serving.end(Signal::TERM).expect(0, &[]).json();
    for (kind, expected) in [("read", 1), ("write", 1), ("flush", 1), ("trim", 1)] {
        assert_eq!(
            requests(&statistics, kind),
            expected,
            "{kind}: {statistics}"
        );
    }
    assert_eq!(statistics["connections"], 1);
    assert!(!user.file("drive.img").exists());
}

#[test]
fn a_disk_has_no_holes_and_a_read_only_drive_no_writes() {
    let test = "a_disk_has_no_holes_and_a_read_only_drive_no_writes";
    if !can_run(test, FILE) {
        return;
    }
    let user = User::new();
    let line = format!("serve sas-10k --size 64M --fuse ./disk.img {FAST}");
    let disk = Serving::start(&user, &line);
    let file = open(&disk.uri);
    file.write_all_at(&[7; 1024], 0).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let refused = fallocate(&file, punch, 0, 512).unwrap_err();
    assert_eq!(refused, rustix::io::Errno::OPNOTSUPP);
    let zero = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, zero, 0, 512).unwrap();
    assert!(read(&file, 0, 1024)[..512] == [0; 512]);
    drop(file);
    disk.end(Signal::TERM).expect(0, &[]);
    let serving = Serving::start(&user, "serve fixed --read-only --fuse ./drive.img");
    let error = OpenOptions::new()
        .write(true)
        .open(&serving.uri)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{error}");
    assert_eq!(read(&File::open(&serving.uri).unwrap(), 0, 512), [0; 512]);
    serving.end(Signal::TERM).expect(0, &[]);
}

#[test]
fn a_synchronous_write_has_force_unit_access() {
    if !can_run("a_synchronous_write_has_force_unit_access", FILE) {
        return;
    }
    for (flags, strikes) in [(OFlags::empty(), 0), (OFlags::DSYNC, 1), (OFlags::SYNC, 1)] {
        let user = User::new();
        // It strikes flushes and force unit access.
        let fault = "[[fault]]\nkind = \"lying_flush\"\n";
        fs::write(user.file("lying.toml"), fault).unwrap();
        let line = format!("serve fixed --fuse ./drive.img --fault lying.toml {FAST}");
        let serving = Serving::start(&user, &line);
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(&serving.uri).unwrap();
        file.write_all_at(&[7; 4096], 4096).unwrap();
        drop(file);
        let statistics = serving.end(Signal::TERM).expect(0, &[]).json();
        let struck = &statistics["faults"][0]["strikes"];
        assert_eq!(struck, strikes, "{flags:?}: {statistics}");
        assert_eq!(requests(&statistics, "flush"), 0, "{statistics}");
    }
}

#[test]
fn a_file_that_somebody_put_in_place_of_the_drive_is_left() {
    let test = "a_file_that_somebody_put_in_place_of_the_drive_is_left";
    if !can_run(test, FILE) {
        return;
    }
    for is_replaced in [false, true] {
        let user = User::new();
        let mut serving = Serving::start(&user, "serve fixed --size 64M --fuse ./drive.img");
        let path = serving.uri.clone();
        run("umount", &[&path]);
        if is_replaced {
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
        }
        serving.process.signal(Signal::TERM);
        serving.line_after("was unmounted by somebody else");
        serving.process.finish().expect(1, &[]);
        assert_eq!(Path::new(&path).exists(), is_replaced);
    }
}

#[test]
fn a_read_only_drive_is_a_read_only_device() {
    if !can_run("a_read_only_drive_is_a_read_only_device", DISK) {
        return;
    }
    for (options, is_read_only) in [("", "0"), ("--read-only", "1")] {
        let user = User::new();
        let line = format!("serve fixed --size 64M --device {options}");
        let serving = Serving::start(&user, &line);
        let shown = expect_success("blockdev", &["--getro", &serving.uri]);
        assert_eq!(shown.trim(), is_read_only, "{line}");
        serving.end(Signal::TERM).expect(0, &[]);
    }
}

#[test]
fn a_file_that_is_there_is_left() {
    let user = User::new();
    fs::write(user.file("mine.img"), "mine\n").unwrap();
    user.run(&words("serve fixed --for 10ms --fuse ./mine.img"))
        .expect(2, &["--fuse ./mine.img", "name a new file"]);
    assert_eq!(fs::read_to_string(user.file("mine.img")).unwrap(), "mine\n");
    for line in [
        "serve fixed --fuse ./x --socket ./y",
        "serve fixed --device --fuse ./x",
        "serve fixed --device --tcp 127.0.0.1:0",
    ] {
        user.run(&words(line)).expect(2, &["cannot be used with"]);
    }
}

#[test]
fn a_program_that_keeps_the_file_open_gets_errors_after_the_end() {
    let test = "a_program_that_keeps_the_file_open_gets_errors_after_the_end";
    if !can_run(test, FILE) {
        return;
    }
    let user = User::new();
    let serving = Serving::start(&user, "serve fixed --fuse ./drive.img");
    let file = open(&serving.uri);
    let path = serving.uri.clone();
    // It says so on standard error, which the start has read.
    serving.end(Signal::TERM).expect(1, &[]);
    assert!(file.read_at(&mut [0; 512], 0).is_err());
    assert_eq!(served_mounts(Path::new(&path)), [""; 0]);
    assert!(!Path::new(&path).exists());
}

#[test]
fn the_file_of_a_killed_server_is_replaced_by_the_next_one() {
    let test = "the_file_of_a_killed_server_is_replaced_by_the_next_one";
    if !can_run(test, FILE) {
        return;
    }
    let user = User::new();
    let line = "serve fixed --fuse ./drive.img";
    let mut killed = Serving::start(&user, line);
    let path = killed.uri.clone();
    let file = open(&path);
    killed.process.signal(Signal::KILL);
    killed.process.finish();
    assert!(file.read_at(&mut [0; 512], 0).is_err(), "no hang");
    drop(file);
    let found = user.run(&words("clean --dry-run")).expect(0, &[]);
    // The start of any other server removes it, too.
    assert!(
        found.stdout.contains(&format!("would remove {path}"))
            || served_mounts(Path::new(&path)).is_empty(),
        "{found:?}"
    );
    let next = Serving::start(&user, line);
    assert_eq!(next.uri, path);
    assert_eq!(read(&open(&path), 0, 512), [0; 512]);
    next.end(Signal::TERM).expect(0, &[]);
    assert_eq!(served_mounts(Path::new(&path)), [""; 0]);
}

#[test]
fn the_file_of_a_stopped_server_is_left_and_holds_up_nobody() {
    let test = "the_file_of_a_stopped_server_is_left_and_holds_up_nobody";
    if !can_run(test, FILE) {
        return;
    }
    let user = User::new();
    let mut stopped = Serving::start(&user, "serve fixed --fuse ./stopped.img");
    stopped.process.signal(Signal::STOP);
    let cleaned = user.run(&words("clean --dry-run")).expect(0, &[]);
    assert!(!cleaned.stdout.contains(&stopped.uri), "{cleaned:?}");
    let next = Serving::start(&user, "serve fixed --fuse ./next.img");
    next.end(Signal::TERM).expect(0, &[]);
    stopped.process.signal(Signal::CONT);
    assert_eq!(read(&open(&stopped.uri), 0, 512), [0; 512]);
    stopped.end(Signal::TERM).expect(0, &[]);
}

/// Makes a file system, writes files, checks it, and reads them after a second mount.
fn keep_files(device: &str, folder: &Path) {
    let contents = |number: usize| -> Vec<u8> {
        let bytes = (0..60_000).map(|at| (at * (number + 3) + at / 251) as u8);
        bytes.collect()
    };
    run("mkfs.ext4", &["-q", device]);
    let mount = || {
        run("mount", &[device, folder.to_str().unwrap()]);
        Undo::by(&["umount", folder.to_str().unwrap()])
    };
    let mounted = mount();
    for number in 0..10 {
        fs::write(folder.join(number.to_string()), contents(number)).unwrap();
    }
    drop(mounted);
    expect_success("e2fsck", &["-fn", device]);
    let _mounted = mount();
    for number in 0..10 {
        let found = fs::read(folder.join(number.to_string())).unwrap();
        assert!(found == contents(number), "file {number} differs");
    }
}

#[test]
fn the_kernel_has_a_file_system_on_a_device() {
    if !can_run("the_kernel_has_a_file_system_on_a_device", DISK) {
        return;
    }
    for (drive, rotational) in [("sas-10k", "1"), ("nvme-tlc", "0")] {
        let user = User::new();
        let line = format!("serve {drive} --size 64M --device {FAST}");
        let serving = Serving::start(&user, &line);
        let device = serving.uri.clone();
        let queue = Path::new("/sys/block").join(&device["/dev/".len()..]);
        let shown = fs::read_to_string(queue.join("queue/rotational")).unwrap();
        assert_eq!(shown.trim(), rotational, "{drive}");
        keep_files(&device, &user.target());
        let statistics = serving.end(Signal::INT).expect(0, &[]).json();
        for kind in ["read", "write", "flush"] {
            assert!(requests(&statistics, kind) > 0, "{kind}: {statistics}");
        }
        let has_trims = requests(&statistics, "trim") > 0;
        assert_eq!(has_trims, rotational == "0", "{statistics}");
        assert!(!has_backing_file(&device), "{device} is attached");
    }
}

/// The queue depth of a client reaches the drive, which has one server: a request waits for those
/// before it.
#[test]
fn a_queue_depth_of_64_is_seen_by_the_drive() {
    if !can_run("a_queue_depth_of_64_is_seen_by_the_drive", DISK) {
        return;
    }
    let user = User::new();
    let line = "serve fixed --set drive.service_ms=4 --set drive.queue_depth=256 --size 64M";
    let serving = Serving::start(&user, &format!("{line} --device --format json"));
    let file = format!("--filename={}", serving.uri);
    let job = [
        "--name=j",
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randread",
        "--bs=4k",
    ];
    let depth = ["--iodepth=64", "--io_size=1M", "--size=64M", &file];
    expect_success("fio", &[&job[..], &depth].concat());
    let statistics = serving.end(Signal::TERM).expect(0, &[]).json();
    let operations = statistics["operations"].as_array().unwrap();
    let read = operations.iter().find(|of| of["operation"] == "read");
    let p99 = read.unwrap()["service_ms"]["p99"].as_f64().unwrap();
    assert!((200.0..300.0).contains(&p99), "{statistics}");
}

#[test]
fn a_killed_server_of_a_device_leaves_nothing_after_clean() {
    let test = "a_killed_server_of_a_device_leaves_nothing_after_clean";
    if !can_run(test, DISK) {
        return;
    }
    let user = User::new();
    let mut killed = Serving::start(&user, "serve fixed --size 64M --device");
    let device = killed.uri.clone();
    run("mkfs.ext4", &["-q", &device]);
    let folder = user.target();
    run("mount", &[device.as_str(), folder.to_str().unwrap()]);
    let mounted = Undo::by(&["umount", folder.to_str().unwrap()]);
    killed.process.signal(Signal::KILL);
    killed.process.finish();
    let synced = fs::write(folder.join("late"), "late").and_then(|()| {
        let file = File::open(folder.join("late"))?;
        file.sync_all()
    });
    synced.expect_err("a write without a drive fails");
    let cleaned = user.run(&words("clean")).expect(0, &[]);
    assert!(
        cleaned.stderr.contains(&format!("{device} is on ")),
        "{cleaned:?}"
    );
    assert!(cleaned.stdout.contains("/drive\n"), "{cleaned:?}");
    drop(mounted);
    retry(|| match has_backing_file(&device) {
        true => Err(format!("{device} is attached")),
        false => Ok(()),
    });
    let left = client("findmnt", &["--noheadings", "--source", "diskperf-serve"]);
    let left = String::from_utf8_lossy(&left.stdout);
    assert!(!left.contains(user.home().to_str().unwrap()), "{left}");
}
