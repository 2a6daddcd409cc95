//! A device whose bytes somebody reaches by another way is in use, although the
//! kernel takes it for another: a file system that shows a file by two numbers,
//! an active swap file, a process that has it open.

use crate::support::machine::{LoopDevice, Needs, Undo, can_run, checksum, fill, run};
use crate::support::{MOUNTS, User};
use std::fs::create_dir;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a program that writes to a device, whatever is on it.
fn write(user: &User, device: &LoopDevice) -> crate::support::Outcome {
    let path = device.text();
    user.run(&[
        "run",
        "write_8192",
        "--size",
        "1M",
        "--runs",
        "1",
        "--quiet",
        "--on",
        &path,
        "--destroy-data-on",
        &path,
        "--ignore-signature",
    ])
}

/// Expects that nothing is written, and why.
fn expect_refusal(user: &User, device: &LoopDevice, says: &[&str]) {
    let before = checksum(&device.path);
    let outcome = write(user, device);
    assert_eq!(checksum(&device.path), before, "{outcome:?}");
    outcome.expect(2, &[&["is not written"], says].concat());
}

/// Expects that it is written. It is tried again: another test's loop device may
/// be just as hard to tell from this one, as long as there is one.
fn expect_written(user: &User, device: &LoopDevice) {
    let began = Instant::now();
    loop {
        let outcome = write(user, device);
        if outcome.code == Some(0) {
            return;
        }
        let in_the_way = outcome.stderr.contains("may be the same file as");
        assert!(in_the_way && began.elapsed() < PATIENCE, "{outcome:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// An overlay of two directories.
struct Overlay {
    lower: PathBuf,
    upper: PathBuf,
    merged: PathBuf,
    _mounted: Undo,
}

impl Overlay {
    fn of(user: &User) -> Self {
        let [lower, upper, work, merged] =
            ["lower", "upper", "work", "merged"].map(|name| user.file(name));
        for directory in [&lower, &upper, &work, &merged] {
            create_dir(directory).unwrap();
        }
        for name in ["image", "old", "other"] {
            fill(&lower.join(name), 16, 0);
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let place = merged.display().to_string();
        run(
            "mount",
            &["-t", "overlay", "-o", &options, "overlay", &place],
        );
        let mounted = Undo::by(&["umount", "--lazy", &place]);
        Self {
            lower,
            upper,
            merged,
            _mounted: mounted,
        }
    }
}

fn mounted(user: &User, device: &LoopDevice) -> Undo {
    run("mkfs.ext4", &["-q", "-F", &device.text()]);
    let place = user.target().display().to_string();
    run("mount", &["-o", "ro", &device.text(), &place]);
    Undo::by(&["umount", &place])
}

#[test]
fn a_file_of_an_overlay_by_two_names() {
    const NAME: &str = "a_file_of_an_overlay_by_two_names";
    let needs = [MOUNTS, &[Needs::Filesystem("overlay")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let user = User::new();
    let overlay = Overlay::of(&user);
    let by_overlay = LoopDevice::over(&overlay.merged.join("image"), &[]);
    let by_upper = LoopDevice::over(&overlay.upper.join("image"), &[]);
    for (ours, theirs) in [(&by_upper, &by_overlay), (&by_overlay, &by_upper)] {
        let unmount = mounted(&user, theirs);
        let says = ["the same", &theirs.text(), "losetup --detach"];
        expect_refusal(&user, ours, &says);
        drop(unmount);
    }
    // Another file is in nobody's way.
    let other = LoopDevice::over(&overlay.merged.join("other"), &[]);
    expect_written(&user, &other);
    drop(by_upper);
    drop(by_overlay);

    // Shown only for reading, a file stays in the lower directory; what its name
    // leads to may be a copy by now.
    let before = LoopDevice::over(&overlay.merged.join("old"), &["--read-only"]);
    drop(
        std::fs::OpenOptions::new()
            .append(true)
            .open(overlay.merged.join("old")),
    );
    assert!(overlay.upper.join("old").exists());
    let ours = LoopDevice::over(&overlay.lower.join("old"), &[]);
    expect_refusal(
        &user,
        &ours,
        &["may be the same file", &before.text(), "no overlay"],
    );
}

#[test]
fn an_active_swap_file() {
    let tools = ["mkswap", "swapon"].map(Needs::Tool);
    let needs = [MOUNTS, &tools].concat();
    if !can_run("an_active_swap_file", &needs) {
        return;
    }
    let user = User::new();
    let file = user.file("swap file");
    fill(&file, 16, 0);
    let path = file.display().to_string();
    run("chmod", &["600", &path]);
    run("mkswap", &["-q", &path]);
    run("swapon", &[&path]);
    let swap_off = Undo::by(&["swapoff", &path]);
    let device = LoopDevice::over(&file, &[]);
    expect_refusal(&user, &device, &["is swap", &path, "swapoff"]);
    drop(swap_off);
    expect_written(&user, &device);
}

const PATIENCE: Duration = Duration::from_secs(60);

/// A process that does something with a file and goes on; killed when dropped.
struct Holder(Child);

impl Holder {
    /// Runs a command of which `ready` tells that it has got so far.
    fn of(command: &[&str], ready: &Path) -> Self {
        let child = Command::new(command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let holder = Self(child);
        // An interpreter takes seconds to start on a busy machine.
        let started = Instant::now();
        while !ready.exists() {
            assert!(started.elapsed() < PATIENCE, "{command:?} does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::remove_file(ready).unwrap();
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_device_that_a_process_has_open_for_writing() {
    const NAME: &str = "a_device_that_a_process_has_open_for_writing";
    if !can_run(NAME, MOUNTS) {
        return;
    }
    let user = User::new();
    let image = user.file("disk image");
    fill(&image, 16, 0);
    let device = LoopDevice::over(&image, &[]);
    let (path, file) = (device.text(), image.display().to_string());
    let ready = user.file("ready");
    let done = ready.display().to_string();
    let shell = |line: &str, what: &str| {
        let line = format!("exec 9{line}\"$1\" && echo > \"$2\" && exec sleep 1000");
        Holder::of(&["sh", "-c", &line, "sh", what, &done], &ready)
    };
    for what in [&path, &file] {
        for (redirection, writes) in [("<>", true), (">>", true), ("<", false)] {
            let holder = shell(redirection, what);
            if writes {
                let process = format!("process {} (s", holder.0.id());
                let says = [
                    process.as_str(),
                    what,
                    "open for writing",
                    "end that process",
                ];
                expect_refusal(&user, &device, &says);
            } else {
                expect_written(&user, &device);
            }
        }
    }
    expect_written(&user, &device);
}

#[test]
fn a_device_that_a_process_has_mapped() {
    const NAME: &str = "a_device_that_a_process_has_mapped";
    let needs = [MOUNTS, &[Needs::Tool("python3")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let user = User::new();
    let image = user.file("disk image");
    fill(&image, 16, 0);
    let device = LoopDevice::over(&image, &[]);
    let (path, file) = (device.text(), image.display().to_string());
    let ready = user.file("ready");
    let done = ready.display().to_string();
    let line = "import mmap, os, sys, time
place = os.open(sys.argv[1], os.O_RDWR)
mapped = mmap.mmap(place, 4096)
os.close(place)
os.closerange(3, 100)
open(sys.argv[2], 'w').close()
time.sleep(1000)";
    for what in [&path, &file] {
        let holder = Holder::of(&["python3", "-c", line, what, &done], &ready);
        // Python keeps a copy of the descriptor by itself, where it was not closed.
        let process = format!("process {} (python", holder.0.id());
        expect_refusal(&user, &device, &[&process, what, "open for writing"]);
    }
    expect_written(&user, &device);
}

/// Ways to have a file open without having it in the process's own table of
/// descriptors. The script is given what to open, and the file that says when it
/// has.
const HIDDEN: [(&str, &str); 4] = [
    (
        "a thread with descriptors of its own",
        "import ctypes, os, sys, threading, time
def hold():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    os.open(sys.argv[1], os.O_RDWR)
    open(sys.argv[2], 'w').close()
    time.sleep(1000)
threading.Thread(target=hold).start()
time.sleep(1000)",
    ),
    (
        "a file that is registered with an io_uring",
        "import ctypes, os, sys, time
call = ctypes.CDLL(None).syscall
ring = call(425, 2, ctypes.create_string_buffer(120))
assert ring >= 0
place = os.open(sys.argv[1], os.O_RDWR)
assert call(427, ring, 2, (ctypes.c_int * 1)(place), 1) == 0
os.close(place)
open(sys.argv[2], 'w').close()
time.sleep(1000)",
    ),
    (
        "a thread whose file is mapped by nobody else",
        "import mmap, os, sys, threading, time
def hold():
    place = os.open(sys.argv[1], os.O_RDWR)
    mapped = mmap.mmap(place, 4096)
    os.close(place)
    os.closerange(3, 100)
    open(sys.argv[2], 'w').close()
    time.sleep(1000)
threading.Thread(target=hold).start()
time.sleep(1000)",
    ),
    (
        "a process of a PID namespace below",
        "import ctypes, os, sys, time
os.open(sys.argv[1], os.O_RDWR)
assert ctypes.CDLL(None).unshare(0x20000000) == 0
if os.fork() == 0:
    # It is killed with its parent.
    ctypes.CDLL(None).prctl(1, 9)
    open(sys.argv[2], 'w').close()
    time.sleep(1000)
os.closerange(3, 100)
time.sleep(1000)",
    ),
];

#[test]
fn a_device_that_is_open_where_it_does_not_show() {
    const NAME: &str = "a_device_that_is_open_where_it_does_not_show";
    let needs = [MOUNTS, &[Needs::Tool("python3")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let user = User::new();
    let image = user.file("disk image");
    fill(&image, 16, 0);
    let device = LoopDevice::over(&image, &[]);
    let (path, file) = (device.text(), image.display().to_string());
    let ready = user.file("ready");
    let done = ready.display().to_string();
    for (how, script) in HIDDEN {
        for what in [&path, &file] {
            let holder = Holder::of(&["python3", "-c", script, what, &done], &ready);
            eprintln!("{how}: {what} by process {}", holder.0.id());
            expect_refusal(&user, &device, &["(python", what, "open for writing"]);
        }
    }
    expect_written(&user, &device);
}

/// A file of an overlay has another number than the one in the upper directory that
/// a device shows.
#[test]
fn a_file_of_an_overlay_that_a_process_has_open() {
    const NAME: &str = "a_file_of_an_overlay_that_a_process_has_open";
    let needs = [MOUNTS, &[Needs::Filesystem("overlay")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let user = User::new();
    let overlay = Overlay::of(&user);
    let (merged, upper) = (overlay.merged.join("image"), overlay.upper.join("image"));
    // Copied up, or the two are not one file.
    drop(std::fs::OpenOptions::new().append(true).open(&merged));
    let ready = user.file("ready");
    let done = ready.display().to_string();
    let line = "exec 9<>\"$1\" && echo > \"$2\" && exec sleep 1000";
    for (shown, opened) in [(&upper, &merged), (&merged, &upper)] {
        let device = LoopDevice::over(shown, &[]);
        let opened = opened.display().to_string();
        let holder = Holder::of(&["sh", "-c", line, "sh", &opened, &done], &ready);
        let process = format!("process {} (s", holder.0.id());
        expect_refusal(&user, &device, &[&process, "open for writing"]);
        drop(holder);
        expect_written(&user, &device);
    }
}

/// What the kernel does not show is said, and not passed over.
#[test]
fn a_descriptor_under_way_is_said_not_to_be_known() {
    const NAME: &str = "a_descriptor_under_way_is_said_not_to_be_known";
    let needs = [MOUNTS, &[Needs::Tool("python3")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let user = User::new();
    let image = user.file("disk image");
    fill(&image, 16, 0);
    let device = LoopDevice::over(&image, &[]);
    let path = device.text();
    let ready = user.file("ready");
    let script = "import os, socket, sys, time
one, other = socket.socketpair()
place = os.open(sys.argv[1], os.O_RDWR)
socket.send_fds(one, [b'x'], [place])
os.close(place)
open(sys.argv[2], 'w').close()
time.sleep(1000)";
    let done = ready.display().to_string();
    let holder = Holder::of(&["python3", "-c", script, &path, &done], &ready);
    let outcome = write(&user, &device).expect(0, &[]);
    let socket = format!("in a socket of process {} (python", holder.0.id());
    let said = format!("{} {}", outcome.stdout, outcome.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["could not determine", &socket, "make sure that nothing"] {
        assert!(said.contains(part), "`{part}` is not in: {outcome:?}");
    }
}
