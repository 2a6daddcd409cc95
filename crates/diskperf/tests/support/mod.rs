//! What the tests of the command line share: a user with a directory to
//! measure in and a store, and diskperf as a process.

#![allow(dead_code, reason = "each test file uses its own part of it")]

pub(crate) mod leftovers;
#[path = "../../../system/tests/support/mod.rs"]
pub(crate) mod machine;
pub(crate) mod shown;

use diskperf_store::{RunHeading, Store};
use machine::{Needs, Scratch, Undo, expect_no_loops_in, retry, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a process may take before a test takes it for hung: far longer
/// than anything here lasts, a wait of 30 s for a locked store included.
const HUNG: Duration = Duration::from_secs(400);

/// Between two looks at something that another process is about to change.
const POLL: Duration = Duration::from_millis(5);

/// A user who may do nothing special.
const NOBODY: u32 = 65_534;

/// A user of diskperf: a current directory with a directory `target` in it,
/// and a store that is nobody else's.
pub(crate) struct User {
    scratch: Scratch,
    /// Whether what diskperf sees as /run is the directory `run` of the home.
    own_run_directory: bool,
}

impl User {
    pub(crate) fn new() -> Self {
        let user = Self {
            scratch: Scratch::new(),
            own_run_directory: false,
        };
        std::fs::create_dir(user.target()).expect("scratch directories can be written");
        user
    }

    /// One whose diskperf notes what it changes of the machine where no other
    /// test's sees it; needs root.
    pub(crate) fn with_own_run_directory() -> Self {
        let user = Self {
            own_run_directory: true,
            ..Self::new()
        };
        std::fs::create_dir(user.file("run")).expect("scratch directories can be written");
        user
    }

    /// The current directory of all that this user starts.
    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path()
    }

    /// Another file of the current directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The directory to measure in, `./target` in the current directory.
    pub(crate) fn target(&self) -> PathBuf {
        self.home().join("target")
    }

    /// The store, where diskperf has it by default.
    pub(crate) fn store(&self) -> PathBuf {
        self.home().join("data/diskperf/runs.sqlite")
    }

    /// diskperf with these words; none of them names a store, so it is this
    /// user's.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let built = assert_cmd::cargo::cargo_bin!("diskperf");
        let mut command = Command::new(built);
        if self.own_run_directory {
            // It stays one process, which takes the signals.
            let words = ["--mount", "sh", "-c"];
            let line = "mount --bind \"$0\" /run && exec \"$@\"";
            command = Command::new("unshare");
            command
                .args(words)
                .arg(line)
                .arg(self.file("run"))
                .arg(built);
        }
        command
            .args(arguments)
            .current_dir(self.home())
            .env("XDG_RUNTIME_DIR", self.home())
            .env("XDG_DATA_HOME", self.home().join("data"));
        command
    }

    /// Runs diskperf to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command(arguments), arguments)
    }

    /// Runs diskperf to its end, with this for standard output.
    pub(crate) fn run_to(&self, arguments: &[&str], stdout: Stdio) -> Outcome {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        let output = command.spawn().and_then(Child::wait_with_output);
        Outcome::new(&output.expect("diskperf starts"), arguments.join(" "))
    }

    /// Runs diskperf as a user who may do nothing special; all that is in the
    /// home directory belongs to that user from then on.
    pub(crate) fn run_as_nobody(&self, arguments: &[&str]) -> Outcome {
        if !rustix::process::geteuid().is_root() {
            return self.run(arguments);
        }
        self.run_as(NOBODY, &[], arguments)
    }

    /// Runs diskperf as another user, by the command `before` if there is one;
    /// only root may.
    pub(crate) fn run_as(&self, id: u32, before: &[&str], arguments: &[&str]) -> Outcome {
        // The build directory may be where only root can go.
        let elsewhere = tempfile::tempdir().expect("there is a directory for temporary files");
        open_to_all(elsewhere.path());
        let binary = elsewhere.path().join("diskperf");
        // Not by this process: a file that any child of it still has open for
        // writing cannot be executed.
        let built = assert_cmd::cargo::cargo_bin!("diskperf");
        run("cp", &[built.as_os_str(), binary.as_os_str()]);
        let binary = binary.display().to_string();
        let words = [before, &[&binary], arguments].concat();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(self.home())
            .env("XDG_DATA_HOME", self.home().join("data"))
            .uid(id)
            .gid(id);
        Outcome::of(command, arguments)
    }

    /// Runs diskperf to its end by another command, which is given its path and
    /// its words as the last ones.
    pub(crate) fn run_by(&self, before: &[&str], arguments: &[&str]) -> Outcome {
        let mut command = Command::new(before[0]);
        command
            .args(&before[1..])
            .arg(assert_cmd::cargo::cargo_bin!("diskperf"))
            .args(arguments)
            .current_dir(self.home())
            .env("XDG_DATA_HOME", self.home().join("data"));
        Outcome::of(command, arguments)
    }

    /// Starts diskperf, which is killed when the returned process is dropped.
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        Self::started(self.command(arguments), arguments)
    }

    /// Starts diskperf with the target directory for temporary files.
    pub(crate) fn start_in_target(&self, arguments: &[&str]) -> Process {
        let mut command = self.command(arguments);
        command.env("TMPDIR", self.target());
        Self::started(command, arguments)
    }

    fn started(mut command: Command, arguments: &[&str]) -> Process {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("diskperf starts");
        Process {
            child: Some(child),
            what: arguments.join(" "),
        }
    }

    /// The stored runs, the newest first; none before there is a store.
    pub(crate) fn stored(&self) -> Vec<RunHeading> {
        if !self.store().exists() {
            return Vec::new();
        }
        let store = Store::open(&self.store()).expect("the store opens");
        store.list_runs().expect("the store can be read")
    }

    /// Waits until the newest run has so many repetitions stored.
    pub(crate) fn wait_for_repetitions(&self, process: &mut Process, repetitions: u32) {
        process.wait_until(|| {
            let stored = self.stored();
            stored
                .first()
                .is_some_and(|run| run.repetition_count >= repetitions)
        });
    }

    /// Asserts that nothing of any run is left in the target directory.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self, when: impl Debug) {
        assert_eq!(entries(&self.target()), [""; 0], "{when:?}");
        // The kernel detaches the loop device of a dead process by itself, a
        // moment after the process.
        expect_no_loops_in(&self.target());
    }
}

/// A diskperf that runs.
pub(crate) struct Process {
    child: Option<Child>,
    what: String,
}

impl Process {
    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("it was not waited for yet")
    }

    pub(crate) fn pid(&mut self) -> Pid {
        Pid::from_child(self.child())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        let status = self.child().try_wait();
        status.expect("a child can be asked").is_none()
    }

    /// Sends a signal; a process that has ended already does not mind.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.is_running() {
            kill_process(self.pid(), signal).expect("a child can be signalled");
        }
    }

    /// Lines of standard error, each as it comes. What is read here is not in the outcome.
    pub(crate) fn lines_of_stderr(&mut self) -> Receiver<String> {
        let stderr = self.child().stderr.take().expect("it was not taken yet");
        let (tell, lines) = channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
            lines.all(|line| tell.send(line).is_ok());
        });
        lines
    }

    /// Waits until something is so; it must become so while the process runs.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, so: impl Fn() -> bool) {
        let started = Instant::now();
        while !so() {
            let what = self.what.clone();
            if !self.is_running() {
                panic!("`{what}` ended too early: {:?}", self.take().finish());
            }
            assert!(started.elapsed() < HUNG, "`{what}` does not get there");
            thread::sleep(POLL);
        }
    }

    fn take(&mut self) -> Self {
        Self {
            child: self.child.take(),
            what: self.what.clone(),
        }
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Outcome {
        let child = self.child.take().expect("it was not waited for yet");
        let output = child.wait_with_output().expect("a child can be waited for");
        Outcome::new(&output, self.what.clone())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a diskperf that has ended said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) what: String,
    /// Absent where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    #[track_caller]
    fn of(command: Command, arguments: &[&str]) -> Self {
        let what = arguments.join(" ");
        let output = assert_cmd::Command::from_std(command)
            .timeout(HUNG)
            .output()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        Self::new(&output, what)
    }

    #[track_caller]
    fn new(output: &Output, what: String) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let outcome = Self {
            what,
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        };
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
        outcome
    }

    /// Asserts the exit code, and that standard error has all of `parts`.
    #[track_caller]
    pub(crate) fn expect(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        // clap wraps its messages at the width of the terminal.
        let said = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(said.contains(part), "`{part}` is not in: {self:?}");
        }
        self
    }

    /// Asserts that standard output has all of `parts`, however it is wrapped.
    #[track_caller]
    pub(crate) fn shows(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.has(part), "`{part}` is not in: {self:?}");
        }
        self
    }

    /// Whether standard output has that, however it is wrapped.
    pub(crate) fn has(&self, part: &str) -> bool {
        let shown = self.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        shown.contains(part)
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The words of a line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The names in a directory, in order.
pub(crate) fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| {
            let entry = entry.expect("the directory can be read");
            entry.file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Every file and directory below a directory, with its length.
pub(crate) fn tree(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for name in entries(directory) {
        let path = directory.join(name);
        let metadata = path.symlink_metadata().expect("it was just listed");
        found.push((path.clone(), metadata.len()));
        if metadata.is_dir() {
            found.extend(tree(&path));
        }
    }
    found
}

/// Lets everybody read, write and search a directory.
pub(crate) fn open_to_all(directory: &Path) {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777))
        .expect("the directory is ours");
}

/// What a test of mounted loop devices needs.
pub(crate) const MOUNTS: &[Needs] = &[Needs::LoopDevices, Needs::Tool("mkfs.ext4")];

/// Mounts a new file system of memory on a directory until the guard goes.
pub(crate) fn mount_tmpfs(directory: &Path, options: &str) -> Undo {
    let directory = directory.to_str().expect("scratch paths are text");
    run("mount", &["-t", "tmpfs", "-o", options, "tmpfs", directory]);
    Undo::by(&["umount", "--lazy", directory])
}

/// A mounted ext4 of its own: unmounted and detached when dropped.
pub(crate) struct SmallDisk {
    // In the order in which they have to go.
    _mounted: Undo,
    _device: machine::LoopDevice,
}

impl SmallDisk {
    /// An ext4 of `mib` MiB without a journal, mounted on a directory.
    pub(crate) fn mounted_on(directory: &Path, scratch: &Scratch, mib: usize) -> Self {
        Self::new((directory, scratch), mib, ("^has_journal", "defaults"))
    }

    /// An ext4 of `mib` MiB with a journal.
    pub(crate) fn journalling(directory: &Path, scratch: &Scratch, mib: usize) -> Self {
        Self::new((directory, scratch), mib, ("has_journal", "defaults"))
    }

    /// An ext4 of `mib` MiB whose data goes through its journal: it has no O_DIRECT.
    pub(crate) fn journalling_data(directory: &Path, scratch: &Scratch, mib: usize) -> Self {
        Self::new((directory, scratch), mib, ("has_journal", "data=journal"))
    }

    fn new(
        (directory, scratch): (&Path, &Scratch),
        mib: usize,
        (feature, mount_options): (&str, &str),
    ) -> Self {
        let device = machine::LoopDevice::blank(scratch, mib);
        let words = ["-q", "-F", "-m", "0", "-O", feature, &device.text()];
        run("mkfs.ext4", &words);
        let directory = directory.to_str().expect("scratch paths are text");
        retry(|| {
            let done = Command::new("mount")
                .args(["-o", mount_options, &device.text(), directory])
                .output();
            match done {
                Ok(output) if output.status.success() => Ok(()),
                other => Err(format!("mount: {other:?}")),
            }
        });
        Self {
            _mounted: Undo::by(&["umount", "--lazy", directory]),
            _device: device,
        }
    }
}

/// A stream of random numbers that its seed repeats (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    /// From the time, or from the environment's DISKPERF_SEED; the seed is
    /// printed.
    pub(crate) fn new(test: &str) -> Self {
        let given = std::env::var("DISKPERF_SEED").ok();
        let seed = given
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(machine::unique);
        eprintln!("{test}: DISKPERF_SEED={seed}");
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// A time up to `limit`.
    pub(crate) fn up_to(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(f64::from(self.next()) / f64::from(u32::MAX))
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}
