//! What the tests of the host arm share: scratch directories, loop devices
//! that go away by themselves, and checksums of them.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How often an attempt is repeated that can lose a race for a loop device.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What a test needs of the machine.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    /// The user is root, and may make loop devices.
    LoopDevices,
    /// A command is installed.
    Tool(&'static str),
    /// A file that no command's path leads to is installed.
    File(&'static str),
    /// This user may mount file systems that a process serves.
    Fuse,
    /// The kernel has a file system, or can load it.
    Filesystem(&'static str),
    /// The user is root, and the kernel tells what its block layer does.
    BlockEvents,
}

/// Whether this machine has all that the test needs; what it lacks is printed.
pub(crate) fn can_run(test: &str, needs: &[Needs]) -> bool {
    let missing = needs.iter().find_map(|need| match need {
        Needs::LoopDevices => loop_devices_missing(),
        Needs::Tool(name) => (!has_tool(name)).then(|| format!("{name} is not installed")),
        Needs::File(path) => {
            (!Path::new(path).exists()).then(|| format!("{path} is not installed"))
        }
        Needs::Fuse => fuse_missing(),
        Needs::Filesystem(name) => {
            (!has_filesystem(name)).then(|| format!("this kernel has no {name}"))
        }
        Needs::BlockEvents => in_tracefs("test -d events/block")
            .err()
            .map(|why| format!("no block-layer events: {why}")),
    });
    if let Some(why) = &missing {
        eprintln!("SKIPPED {test}: {why}");
    }
    missing.is_none()
}

fn loop_devices_missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("loop devices need root".to_owned());
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there is no /dev/loop-control".to_owned());
    }
    (!has_tool("losetup")).then(|| "losetup is not installed".to_owned())
}

fn fuse_missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("mounting by hand needs root".to_owned());
    }
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    opened.err().map(|error| format!("/dev/fuse: {error}"))
}

/// What a line of shell says in tracefs, which nobody else sees mounted.
fn in_tracefs(line: &str) -> Result<String, String> {
    let line =
        format!("mount -t tracefs tracefs /sys/kernel/tracing && cd /sys/kernel/tracing && {line}");
    try_run("unshare", &["--mount", "sh", "-c", &line])
}

/// The buffers that the diskperf of this process number has in tracefs, or has
/// left there.
pub(crate) fn instances_of(process: i32) -> Vec<String> {
    let all = retry(|| in_tracefs("ls instances"));
    let prefix = format!("diskperf-{process}-");
    let own = all.lines().filter(|name| name.starts_with(&prefix));
    own.map(str::to_owned).collect()
}

fn has_tool(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(name).exists())
}

fn has_filesystem(name: &str) -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.split_ascii_whitespace().any(|word| word == name)
        || Command::new("modprobe")
            .args(["-q", name])
            .status()
            .is_ok_and(|status| status.success())
}

/// A scratch directory on a disk, where the machine's temporary directory is
/// one; canonical, so that paths compare with what the kernel prints.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        // /tmp is often memory; the build directory hardly ever is.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(directory).expect("the build directory is writable");
        Self(tempfile::tempdir_in(directory).expect("the build directory is writable"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().expect("it was just made")
    }
}

/// A directory as a worker's port.
pub(crate) fn opened(directory: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty());
    opened.expect("the directory is readable")
}

/// Runs a command, and panics with what it printed if it fails.
pub(crate) fn run<A: AsRef<OsStr>>(command: &str, arguments: &[A]) -> String {
    try_run(command, arguments).unwrap_or_else(|message| panic!("{message}"))
}

fn try_run<A: AsRef<OsStr>>(command: &str, arguments: &[A]) -> Result<String, String> {
    let output = Command::new(command)
        .args(arguments)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{command}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Tries again what other tests may be in the way of for a moment.
pub(crate) fn retry<T>(attempt: impl FnMut() -> Result<T, String>) -> T {
    try_often(attempt).unwrap_or_else(|message| panic!("{message}"))
}

fn try_often<T>(mut attempt: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    for _ in 1..ATTEMPTS {
        if let Ok(value) = attempt() {
            return Ok(value);
        }
        std::thread::sleep(PAUSE);
    }
    attempt()
}

/// A loop device over an image file; detached when dropped.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
}

impl LoopDevice {
    /// Over a file that exists, with further options of losetup.
    pub(crate) fn over(file: &Path, options: &[&str]) -> Self {
        let mut arguments: Vec<&OsStr> = ["--find", "--show"].map(OsStr::new).to_vec();
        arguments.extend(options.iter().map(OsStr::new));
        arguments.push(file.as_os_str());
        let printed = retry(|| try_run("losetup", &arguments));
        let device = Self {
            path: PathBuf::from(printed.trim()),
        };
        device.forget_partitions();
        device
    }

    /// Over a new image of `mib` MiB.
    pub(crate) fn blank(scratch: &Scratch, mib: usize) -> Self {
        let image = scratch.path().join(format!("image-{:08x}", unique()));
        let file = File::create_new(&image).expect("the name is new");
        file.set_len((mib as u64) << 20)
            .expect("a hole takes no room");
        Self::over(&image, &[])
    }

    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().expect("a node has a name");
        name.to_string_lossy().into_owned()
    }

    pub(crate) fn text(&self) -> String {
        self.path.display().to_string()
    }

    /// The node of a free device of which the kernel shows a partition, as a
    /// former user leaves it: one of a table that was on another file. The next
    /// who attaches a file has it, unless another test is first.
    pub(crate) fn left_with_partitions(scratch: &Scratch) -> PathBuf {
        let former = Self::blank(scratch, 16);
        let path = former.path.clone();
        let line = format!(
            "echo ,,L | sfdisk --quiet --label dos --no-reread --no-tell-kernel {}",
            path.display()
        );
        run("sh", &["-c", &line]);
        former.add_partitions();
        assert_eq!(former.partitions().len(), 1, "the table has one");
        std::mem::forget(former);
        run("losetup", &[OsStr::new("--detach"), path.as_os_str()]);
        path
    }

    /// Has the kernel forget the partitions that it shows: those that a former
    /// user of the device had it show stay when the device is detached.
    pub(crate) fn forget_partitions(&self) {
        let names = self.partitions();
        if !names.is_empty() {
            let _ = try_often(|| try_run("partx", &["--delete", &self.text()]));
            assert_eq!(self.partitions(), [""; 0], "left of a former user");
        }
    }

    /// The partitions that the kernel shows, by name.
    pub(crate) fn partitions(&self) -> Vec<String> {
        let name = self.name();
        let entries = std::fs::read_dir(format!("/sys/block/{name}"));
        let entries = entries.into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|entry| entry.starts_with(&format!("{name}p")))
            .collect()
    }

    /// Has the kernel show the partitions of the table on it.
    pub(crate) fn add_partitions(&self) {
        retry(|| try_run("partx", &["--update", &self.text()]));
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // The kernel does not take partitions away that partx made known.
        if !self.partitions().is_empty() {
            let _ = try_often(|| try_run("partx", &["--delete", &self.text()]));
        }
        if let Err(message) = try_run("losetup", &["--detach", &self.text()]) {
            eprintln!("{} stays attached: {message}", self.path.display());
        }
    }
}

/// Undoes what a test did, also when the test panics. It is tried again,
/// because a process that another test is just starting has a copy of every
/// file that is open in this one.
pub(crate) struct Undo(Vec<String>);

impl Undo {
    pub(crate) fn by(command: &[&str]) -> Self {
        Self(command.iter().map(|&word| word.to_owned()).collect())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let undone = try_often(|| try_run(&self.0[0], &self.0[1..]));
        if let Err(message) = undone {
            eprintln!("not undone: {message}");
        }
    }
}

/// Writes a file of `mib` MiB of one byte.
pub(crate) fn fill(path: &Path, mib: usize, byte: u8) {
    let mut file = File::create(path).expect("scratch files can be made");
    for _ in 0..mib {
        file.write_all(&vec![byte; 1 << 20]).expect("there is room");
    }
    file.sync_all().expect("there is room");
}

/// A checksum of all bytes of a file or device.
pub(crate) fn checksum(path: &Path) -> String {
    run("cksum", &[path])
}

/// A number that no other test has.
pub(crate) fn unique() -> u64 {
    RandomState::new().build_hasher().finish() & 0xffff_ffff
}

/// The loop devices whose backing file is in a folder.
pub(crate) fn loops_in(folder: &Path) -> Vec<String> {
    let list = run(
        "losetup",
        &["--list", "--noheadings", "--output", "NAME,BACK-FILE"],
    );
    list.lines()
        .filter(|line| line.contains(&*folder.to_string_lossy()))
        .map(str::to_owned)
        .collect()
}

/// Waits until no loop device shows a file of a folder. The kernel detaches
/// one when its last user has closed it.
pub(crate) fn expect_no_loops_in(folder: &Path) {
    retry(|| match &loops_in(folder)[..] {
        [] => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

/// The mount points in a folder, as this process sees them.
pub(crate) fn mounts_in(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string("/proc/thread-self/mountinfo").expect("/proc is mounted");
    text.lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|mount_point| mount_point.starts_with(&*folder.to_string_lossy()))
        .map(str::to_owned)
        .collect()
}

/// Does something as a user who may do nothing special. Only this thread's
/// user changes; whoever is not root already is such a user.
pub(crate) fn without_root<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    const NOBODY: u32 = 65_534;
    std::thread::scope(|scope| {
        let ordinary = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(NOBODY);
                rustix::thread::set_thread_uid(nobody).expect("root may become anybody");
            }
            task()
        });
        ordinary.join().expect("the task does not panic")
    })
}

/// Has io_uring_setup(2) refused to this thread and to what it starts, as containers
/// have it.
pub(crate) fn forbid_io_uring() {
    forbid(libc::SYS_io_uring_setup, libc::EPERM);
}

/// Has a system call refused to this thread and to what it starts, by a filter that
/// answers with an error.
#[allow(unsafe_code)]
pub(crate) fn forbid(call: libc::c_long, errno: libc::c_int) {
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0000;
    let step = |code: u32, if_true: u8, if_false: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k: value,
    };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, REFUSE | errno as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    rustix::thread::set_no_new_privs(true).unwrap();
    // SAFETY: the program is a whole one, and the kernel copies it.
    let installed = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(installed, 0, "{}", std::io::Error::last_os_error());
}
