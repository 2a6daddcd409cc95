//! `crash --directory`: an ordinary user's crash tests, by FUSE and without a drive.

use super::*;
use std::fs;
use std::path::Path;
use support::machine::run;

const NEEDS: &[Needs] = &[
    Needs::LoopDevices,
    Needs::Fuse,
    Needs::Tool("fusermount3"),
    Needs::Tool("setpriv"),
    Needs::Tool("unshare"),
    Needs::Tool("python3"),
];

/// Script that runs a command as an ordinary user who may open /dev/fuse, whatever this machine
/// lets others do. The first argument is the user's directory, which gets diskperf, the second the
/// program of the tests.
fn as_ordinary_user(command: &str) -> String {
    format!(
        r#"set -e
[ -e "$0/diskperf" ] || cp "$1" "$0/diskperf"; shift
mkdir -p "$0/device"; mount -t tmpfs -o mode=755 device "$0/device"
mknod -m 666 "$0/device/fuse" c 10 229; mount --bind "$0/device/fuse" /dev/fuse
exec setpriv --reuid 65534 --regid 65534 --clear-groups \
    env TMPDIR="$0/temporary" XDG_DATA_HOME="$0/data" DISKPERF="$0/diskperf" {command}"#
    )
}

/// Ordinary user with a directory that has the scripts of the tests.
struct OrdinaryUser {
    user: User,
    place: tempfile::TempDir,
}

impl OrdinaryUser {
    fn new() -> Self {
        // The build directory may be where only root can go.
        let place = tempfile::tempdir().expect("there is a directory for temporary files");
        let path = place.path();
        for directory in ["temporary", "data"].map(|name| path.join(name)) {
            fs::create_dir(&directory).unwrap();
            support::open_to_all(&directory);
        }
        support::open_to_all(path);
        let root = env!("CARGO_MANIFEST_DIR");
        for directory in ["tests/crash", "../../docs/crash"] {
            for script in fs::read_dir(Path::new(root).join(directory)).unwrap() {
                let script = script.unwrap();
                fs::copy(script.path(), path.join(script.file_name())).unwrap();
            }
        }
        Self {
            user: User::new(),
            place,
        }
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_script(r#""$0/diskperf" "$@""#, arguments)
    }

    /// Runs a command for the shell, in which `$0` is the user's directory.
    fn run_script(&self, command: &str, arguments: &[&str]) -> Outcome {
        let place = self.place.path().to_str().expect("the path is text");
        let script = as_ordinary_user(command);
        let before = ["unshare", "--mount", "sh", "-c", &script, place];
        self.user.run_by(&before, arguments)
    }

    /// Crash test of a script's workload by its check.
    fn crash(&self, program: &Program) -> Outcome {
        let script = self.place.path().join(program.script);
        let interpreter = match program.script.ends_with(".py") {
            true => "python3 -I -S ",
            false => "",
        };
        let line = |words: &str| format!("{interpreter}{} {words}", script.display());
        let (workload, check) = (line(program.workload), line(program.check));
        let words = ["crash", &workload, "--directory", "--check", &check];
        let more = ["--jobs", "1", "--format", "json"];
        self.run(&[&words[..], &more, program.options].concat())
    }

    /// Asserts that no test left a folder or a mount.
    #[track_caller]
    fn assert_nothing_left(&self) {
        let left = support::entries(&self.place.path().join("temporary"));
        assert_eq!(left, [""; 0]);
    }
}

/// Workload and check of a script, with further options of the test.
struct Program {
    script: &'static str,
    workload: &'static str,
    check: &'static str,
    options: &'static [&'static str],
}

const fn program(
    script: &'static str,
    workload: &'static str,
    check: &'static str,
    options: &'static [&'static str],
) -> Program {
    Program {
        script,
        workload,
        check,
        options,
    }
}

const BUGS: [Program; 16] = [
    program("append.py", "write --without-fsync", "check", &[]),
    program("append.py", "write", "check", &["--lying-flush"]),
    program("replace.py", "write --without-fsync", "check", &[]),
    program(
        "replace.py",
        "write --without-directory-fsync",
        "check",
        &[],
    ),
    program("rows.py", "write wal off", "check", &[]),
    program("programs.py", "write create bug", "check create", &[]),
    program("programs.py", "write order bug", "check order", &[]),
    program("programs.py", "write size bug", "check size", &[]),
    program(
        "programs.py",
        "write checkpoint bug",
        "check checkpoint",
        &[],
    ),
    program("programs.py", "write torn bug", "check torn", &[]),
    program("programs.py", "write mapped bug", "check mapped", &[]),
    program("programs.py", "write fua bug", "check fua", &[]),
    program("programs.py", "write early bug", "check early", &[]),
    program("programs.py", "write direct bug", "check direct", &[]),
    program(
        "programs.py",
        "write swallowed bug",
        "check swallowed",
        &["--failing-sync=1/3"],
    ),
    program("programs.py", "write truncate bug", "check truncate", &[]),
];

#[test]
fn an_ordinary_user_finds_every_planted_bug() {
    if !can_run("an_ordinary_user_finds_every_planted_bug", NEEDS) {
        return;
    }
    let user = OrdinaryUser::new();
    for bug in &BUGS {
        let report = user.crash(bug).expect(1, &[]).json();
        assert!(smallest_loss(&report) <= 3, "{}: {report:#}", bug.workload);
    }
    user.assert_nothing_left();
}

#[test]
fn correct_programs_raise_no_alarm_without_a_drive() {
    if !can_run("correct_programs_raise_no_alarm_without_a_drive", NEEDS) {
        return;
    }
    let user = OrdinaryUser::new();
    for name in RIGHT {
        let script = user.place.path().join("programs.py");
        let line = |word: &str| format!("python3 -I -S {} {word} {name}", script.display());
        let (workload, check) = (line("write") + " right", line("check"));
        let words = ["crash", &workload, "--directory", "--check", &check];
        let report = user.run(&[&words[..], &["--format", "json"]].concat());
        let report = report.expect(0, &[]).json();
        assert!(report["marks"].as_u64() >= Some(5), "{name}: {report:#}");
    }
    user.assert_nothing_left();
}

#[test]
fn correct_programs_of_other_kinds_raise_no_alarm_without_a_drive() {
    let needs = [NEEDS, &[Needs::Tool("sqlite3")]].concat();
    if !can_run(
        "correct_programs_of_other_kinds_raise_no_alarm_without_a_drive",
        &needs,
    ) {
        return;
    }
    let user = OrdinaryUser::new();
    for right in [
        program("append.py", "write", "check", &[]),
        program("replace.py", "write", "check", &[]),
        program("rows.py", "write delete extra", "check", &[]),
        program("rows.py", "write truncate full", "check", &[]),
        program("rows.py", "write persist full", "check", &[]),
        program("rows.py", "write wal full", "check", &[]),
        program(
            "programs.py",
            "write swallowed right",
            "check swallowed",
            &["--failing-sync=1/3"],
        ),
        program("store.py", "write 1 3", "check", &["--cut", "random:1"]),
        program("replace.sh", "write", "check", &[]),
        program("rows.sh", "write", "check", &[]),
    ] {
        user.crash(&right).expect(0, &[]);
    }
    // The modes in which SQLite may lose a commit, which its documentation names.
    for modes in ["write delete full", "write wal normal"] {
        user.crash(&program("rows.py", modes, "check", &[]))
            .expect(1, &[]);
    }
    user.assert_nothing_left();
}

#[test]
fn threads_that_sync_together_raise_no_alarm() {
    let needs = [NEEDS, &[Needs::Tool("cc")]].concat();
    if !can_run("threads_that_sync_together_raise_no_alarm", &needs) {
        return;
    }
    let user = OrdinaryUser::new();
    let place = user.place.path();
    let [source, built] = ["group_commit.c", "group_commit"].map(|name| place.join(name));
    let words = [
        "-pthread".as_ref(),
        "-o".as_ref(),
        built.as_os_str(),
        source.as_os_str(),
    ];
    run("cc", &words);
    user.crash(&program("group_commit", "write", "check", &[]))
        .expect(0, &[]);
}

#[test]
fn a_loss_of_files_names_the_sync_that_is_missing() {
    if !can_run("a_loss_of_files_names_the_sync_that_is_missing", NEEDS) {
        return;
    }
    let user = OrdinaryUser::new();
    let script = user.place.path().join("replace.py");
    let line = |words: &str| format!("python3 -I -S {} {words}", script.display());
    let (workload, check) = (line("write --without-directory-fsync"), line("check"));
    let words = ["crash", &workload, "--directory", "--check", &check];
    let outcome = user.run(&words).expect(1, &[]);
    outcome.shows(&[
        "in a recorded directory",
        "(rename of `settings.new` to `settings`)",
        "a sync of `.` after request",
        "before the mark `0` would have saved it",
    ]);
    user.run(&["crash", "exit 3", "--directory", "--check", "true"])
        .expect(
            2,
            &["`exit 3` failed", "must succeed in a directory that works"],
        );
    user.run(&["crash", "true", "--directory"])
        .expect(2, &["--check"]);
    user.run(&["crash", "true", "--on", "nvme-tlc"])
        .expect(2, &["needs root", "`--directory`"]);
    user.assert_nothing_left();
}

/// Workload that succeeds if the space that is left falls by each page that is written, also again.
const SPACE: &str = r#"python3 -I -S -c '
import os
before = os.statvfs(".")
file = os.open("file", os.O_CREAT | os.O_WRONLY)
for page in [0, 1, 2, 1]:
    os.pwrite(file, b"x" * 4096, page * 4096)
used = before.f_bfree - os.statvfs(".").f_bfree
raise SystemExit(used * before.f_frsize != 4 * 4096)'"#;

#[test]
fn a_recorded_directory_reports_the_space_that_is_left() {
    let test = "a_recorded_directory_reports_the_space_that_is_left";
    if !can_run(test, NEEDS) {
        return;
    }
    let user = OrdinaryUser::new();
    user.run(&["crash", SPACE, "--directory", "--check", "true"])
        .expect(0, &[]);
    user.assert_nothing_left();
}

/// Crash test whose own workload kills it, and `diskperf clean` after it.
const KILL: &str = r#"sh -c '
"$0/diskperf" crash "echo 1 > file; kill -9 \$PPID; sleep 1" --directory --check true
[ $? = 137 ] || exit 3
"$0/diskperf" clean || exit 4
! grep "/recorded fuse" /proc/self/mounts' "$0""#;

#[test]
fn what_a_killed_test_of_a_directory_leaves_is_cleaned() {
    if !can_run("what_a_killed_test_of_a_directory_leaves_is_cleaned", NEEDS) {
        return;
    }
    let user = OrdinaryUser::new();
    let outcome = user.run_script(KILL, &[]).expect(0, &[]);
    outcome.shows(&["removed"]);
    user.assert_nothing_left();
}
