//! Limits that the system puts on a process: a run that meets one ends with the
//! limit's name and what to do, keeps what it measured, and leaves nothing.

use crate::support::machine::{Needs, can_run, unique};
use crate::support::{MOUNTS, Outcome, User, open_to_all, words};
use diskperf_timeline::RunState;
use std::fs;
use std::path::{Path, PathBuf};

const NPROC: &[Needs] = &[Needs::LoopDevices, Needs::Tool("prlimit")];

/// As many as the plan has workers, at least: the user's own limit counts all
/// threads of all of the user's processes, so the user is nobody else.
#[test]
fn a_thread_that_cannot_be_made() {
    if !can_run("a_thread_that_cannot_be_made", NPROC) {
        return;
    }
    for (line, most) in [
        ("run write_8192 --on ./target --size 1M --runs 1", 1),
        (
            "run scan --set program.readers=2 --on ./target --size 1M --runs 1",
            2,
        ),
        (
            "run scan --set program.readers=4 --on ./target --size 1M --runs 1",
            1,
        ),
        (
            "run scan --set program.readers=4 --on ./target --size 1M --runs 1",
            4,
        ),
        (
            "run write_8192 --on ./target --on ./other --together --size 1M --runs 1",
            2,
        ),
    ] {
        let user = User::new();
        fs::create_dir(user.file("other")).unwrap();
        for directory in [user.home(), user.target(), user.file("other")] {
            open_to_all(&directory);
        }
        let limit = format!("--nproc={most}");
        let id = 1_000_000 + unique() as u32 / 2;
        let outcome = user.run_as(id, &["prlimit", &limit], &words(line));
        let says = [
            "thread could not be started",
            "for this user (`ulimit -u`)",
            "fewer workers",
        ];
        outcome.expect(1, &says);
        user.assert_nothing_left(line);
        assert!(
            matches!(user.stored()[0].state, RunState::Failed(_)),
            "{line}"
        );
    }
}

/// Work whose results do not depend on the number of threads goes on with those
/// that there are.
#[test]
fn models_do_with_fewer_threads() {
    if !can_run("models_do_with_fewer_threads", NPROC) {
        return;
    }
    let line = "tune pcat-st251 --suite track_read --set program.call_bytes=512 --size 256K --seeds 1 --over drive.interleave=2..4 --threads 4 --format json";
    let free = User::new().run(&words(line)).expect(0, &[]);
    let user = User::new();
    open_to_all(&user.home());
    let id = 1_000_000 + unique() as u32 / 2;
    let limited = user.run_as(id, &["prlimit", "--nproc=1"], &words(line));
    assert_eq!(limited.expect(0, &[]).stdout, free.stdout);
}

/// A control group of its own that counts processes; gone when dropped.
struct Container(PathBuf);

impl Container {
    fn of(most: u32) -> Option<Self> {
        let place = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
        let place = place
            .into_iter()
            .find(|place| place.join("cgroup.procs").exists())?;
        let group = Self(place.join(format!("diskperf-test-{:08x}", unique())));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join("pids.max"), most.to_string()).ok()?;
        Some(group)
    }

    fn run(&self, user: &User, arguments: &[&str]) -> Outcome {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        user.run_by(&["sh", "-c", &enter, "sh"], arguments)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// In a container with room for so many processes and threads, the tools that
/// make file systems among them.
#[test]
fn a_container_with_few_processes() {
    if !can_run("a_container_with_few_processes", MOUNTS) {
        return;
    }
    for fresh in ["", "--fresh ext4:block_bytes=4096"] {
        for most in [1, 2, 3] {
            let Some(container) = Container::of(most) else {
                eprintln!("SKIPPED a_container_with_few_processes: no control group can be made");
                return;
            };
            let user = User::new();
            let line = format!("run scan --on ./target --size 1M --runs 1 {fresh}");
            let outcome = container.run(&user, &words(&line));
            let says = [
                "could not be started",
                "for this container (pids.max)",
                "fewer workers",
            ];
            outcome.expect(1, &says);
            user.assert_nothing_left((most, fresh));
        }
    }
}

#[test]
fn a_limit_of_file_sizes() {
    if !can_run("a_limit_of_file_sizes", &[Needs::Tool("prlimit")]) {
        return;
    }
    let user = User::new();
    // The first layers of it have no file.
    let line = words("run seqread89 --on ./target --size 8M --runs 1");
    let outcome = user.run_by(&["prlimit", "--fsize=2097152"], &line);
    outcome.expect(
        1,
        &["EFBIG", "raise the limit (`ulimit -f`)", "a smaller --size"],
    );
    user.assert_nothing_left("EFBIG");
    let stored = &user.stored()[0];
    assert!(
        matches!(&stored.state, RunState::Failed(why) if why.contains("EFBIG")),
        "{stored:?}"
    );
    assert!(stored.repetition_count > 0, "{stored:?}");
}

#[test]
fn a_limit_of_the_size_of_an_image() {
    let needs = [MOUNTS, &[Needs::Tool("prlimit")]].concat();
    if !can_run("a_limit_of_the_size_of_an_image", &needs) {
        return;
    }
    let user = User::new();
    let line = words("run write_8192 --on ./target --size 1M --runs 1 --fresh ext4");
    let outcome = user.run_by(&["prlimit", "--fsize=2097152"], &line);
    outcome.expect(
        1,
        &[
            "forbids an image of",
            "raise the limit (`ulimit -f`)",
            "`size=`",
        ],
    );
    user.assert_nothing_left("an image");
}

#[test]
fn a_limit_of_cpu_time() {
    if !can_run("a_limit_of_cpu_time", &[Needs::Tool("prlimit")]) {
        return;
    }
    let user = User::new();
    let line = words("run write_8192 --on ./target --size 1M --runs 100000 --quiet");
    let outcome = user.run_by(&["prlimit", "--cpu=1:60"], &line);
    let outcome = outcome.expect(1, &["the limit of CPU time is used up", "`ulimit -t`"]);
    user.assert_nothing_left("CPU time");
    let stored = &user.stored()[0];
    assert!(
        matches!(&stored.state, RunState::Failed(why) if why.contains("CPU time")),
        "{stored:?}"
    );
    assert!(stored.repetition_count > 0, "{stored:?}");
    assert!(outcome.stdout.contains("write_8192"), "{outcome:?}");
}

/// Starts the command behind it with one system call answered by an error.
const FORBIDDING: &str = "import ctypes, os, struct, sys
call, errno = int(sys.argv[1]), int(sys.argv[2])
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | errno), (0x06, 0, 0, 0x7fff0000)]
code = b''.join(struct.pack('HBBI', *step) for step in steps)
held = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxQ', len(steps), ctypes.addressof(held))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program) == 0
os.execv(sys.argv[3], sys.argv[3:])";

/// Containers forbid what they do not know. A call that everything hangs on is named;
/// of io_uring there is another way.
#[test]
fn a_system_call_that_is_forbidden() {
    if !can_run("a_system_call_that_is_forbidden", &[Needs::Tool("python3")]) {
        return;
    }
    let (fails, works) = (Some(1), Some(0));
    let run = "run random --on ./target --size 1M --runs 1 --set program.area_bytes=1M";
    for (call, name, code) in [
        (libc::SYS_clock_nanosleep, "clock_nanosleep", fails),
        (libc::SYS_clock_gettime, "clock_gettime", fails),
        (libc::SYS_io_uring_setup, "io_uring", works),
        (libc::SYS_io_uring_enter, "io_uring_enter", works),
        (libc::SYS_io_uring_register, "io_uring_register", works),
    ] {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let user = User::new();
            let (number, error) = (call.to_string(), errno.to_string());
            let before = ["python3", "-c", FORBIDDING, &number, &error];
            let outcome = user.run_by(&before, &words(run));
            assert_eq!(outcome.code, code, "{name}: {outcome:?}");
            let said = format!("{} {}", outcome.stdout, outcome.stderr);
            assert!(said.contains(name), "{name}: {outcome:?}");
            user.assert_nothing_left(name);
        }
    }
}

/// However little memory there is, a run ends by itself, names the limit, and leaves
/// nothing that `clean` does not find.
#[test]
fn a_limit_of_memory() {
    if !can_run("a_limit_of_memory", &[Needs::Tool("prlimit")]) {
        return;
    }
    let user = User::new();
    let limited = |mib: u64, words: &[&str]| {
        let limit = format!("--as={}", mib << 20);
        let run = user.run_by(&["prlimit", &limit], words);
        let is_loaded = !run.stderr.contains("loading shared libraries");
        (run, is_loaded)
    };
    // With less the program itself has no room.
    let starts = |mib: &u64| {
        let (run, _) = limited(*mib, &["--version"]);
        run.code == Some(0)
    };
    let least = (16..1024).step_by(8).find(starts).expect("it starts");
    let mut failed = 0;
    for line in [
        "run scan --on ./target --size 4M --runs 1",
        "run random --on ./target --size 4M --runs 1",
        "run scan --on vax780-sc780-eagle --size 1M",
    ] {
        for more in [0, 8, 16, 24, 40, 56, 80] {
            let (run, is_loaded) = limited(least + more, &words(line));
            if !is_loaded || run.code == Some(0) {
                continue;
            }
            failed += 1;
            assert_eq!(run.code, Some(1), "{line}, {least} + {more} MiB: {run:?}");
            assert!(run.stderr.contains("(`ulimit -v`)"), "{line}: {run:?}");
            user.run(&["clean"]).expect(0, &[]);
            user.assert_nothing_left((line, more));
        }
    }
    assert!(failed > 0, "no limit was met above {least} MiB");
}
