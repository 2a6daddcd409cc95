//! Every option that names a file, found by the command line's own definition,
//! is given what it must not harm: a mounted device, links of other users, a
//! directory, a FIFO.

use crate::lines::{LINES, commands, open_arguments, prepare};
use crate::support::machine::{LoopDevice, Undo, can_run, checksum, retry, run};
use crate::support::{MOUNTS, User, tree, words};
use rustix::fs::{CWD, Mode};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user whose links are in the way.
const NOBODY: u32 = 65_534;

/// What an argument's text is, with a line that gives it, `{}` in its place.
#[derive(Clone, Copy)]
enum Names {
    /// A file that is written, or a device that is given up.
    Written(&'static str),
    /// A file or a directory that is read, or measured in.
    Read(&'static str),
    /// No file: a name, a pattern, a setting.
    Nothing,
}

use Names::{Nothing, Read, Written};

/// Every argument that may name a file. `--store` is of all commands, and not
/// in this list.
const ARGUMENTS: &[(&str, &str, Names)] = &[
    (
        "run",
        "what",
        Read("run {} --on vax780-sc780-eagle --size 64K"),
    ),
    ("run", "suite", Nothing),
    (
        "run",
        "targets",
        Read("run read_8192 --size 64K --runs 1 --on {}"),
    ),
    (
        "run",
        "catalogue",
        Read("run read_8192 --on vax780-sc780-eagle --size 64K --catalogue {}"),
    ),
    (
        "run",
        "other",
        Read(
            "run copy --on ./target --size 64K --runs 1 --set program.destination=other --other {}",
        ),
    ),
    ("run", "settings", Nothing),
    ("run", "until_steady", Nothing),
    ("run", "volume", Nothing),
    ("ab", "until_steady", Nothing),
    // What its options are of mkfs is tested where they are understood.
    ("run", "fio_arguments", Nothing),
    ("run", "fresh", Nothing),
    (
        "run",
        "destroy_data_on",
        Written("run write_8192 --size 64K --on {} --destroy-data-on {}"),
    ),
    (
        "run",
        "perfetto",
        Written("run read_8192 --on vax780-sc780-eagle --size 64K --perfetto {}"),
    ),
    (
        "run",
        "metrics",
        Written("run read_8192 --on vax780-sc780-eagle --size 64K --metrics {}"),
    ),
    (
        "run",
        "record",
        Written("run read_8192 --on vax780-sc780-eagle --size 64K --record {}"),
    ),
    ("run", "label", Nothing),
    (
        "run",
        "like",
        Read("run --like {} --on ./target --size 64K"),
    ),
    (
        "ab",
        "a",
        Read("ab {} ./target read_8192 --size 64K --blocks 1"),
    ),
    (
        "ab",
        "b",
        Read("ab ./target {} read_8192 --size 64K --blocks 1"),
    ),
    (
        "ab",
        "what",
        Read("ab vax780-sc780-eagle vax750-sc750-eagle {} --size 64K"),
    ),
    ("ab", "suite", Nothing),
    (
        "ab",
        "targets",
        Read("ab --direct --no-latency read_8192 --size 64K --blocks 1 --on {}"),
    ),
    (
        "ab",
        "catalogue",
        Read("ab vax780-sc780-eagle vax750-sc750-eagle read_8192 --size 64K --catalogue {}"),
    ),
    (
        "ab",
        "other",
        Read(
            "ab ./target ./target copy --size 64K --blocks 1 --set program.destination=other --other {}",
        ),
    ),
    ("ab", "settings", Nothing),
    ("ab", "fio_arguments", Nothing),
    ("ab", "fresh", Nothing),
    ("ab", "min_time", Nothing),
    (
        "ab",
        "destroy_data_on",
        Written("ab {} {} write_8192 --size 64K --blocks 1 --destroy-data-on {}"),
    ),
    ("ab", "label", Nothing),
    // A command is the user's own doing.
    ("ab", "before_a", Nothing),
    ("ab", "before_b", Nothing),
    ("ab", "budget", Nothing),
    ("compare", "runs", Read("compare {} {}")),
    (
        "explain",
        "subjects",
        Read("explain {} --suite read_8192 --size 64K --runs 1 --no-counterfactuals"),
    ),
    ("explain", "suite", Nothing),
    ("explain", "fresh", Nothing),
    ("explain", "settings", Nothing),
    ("explain", "changes", Nothing),
    (
        "explain",
        "perfetto",
        Written("explain vax780-sc780-eagle --suite read_8192 --size 64K --perfetto {}"),
    ),
    (
        "explain",
        "catalogue",
        Read("explain vax780-sc780-eagle --suite read_8192 --size 64K --catalogue {}"),
    ),
    ("reproduce", "documents", Nothing),
    ("reproduce", "data", Read("reproduce real-drives --data {}")),
    ("reproduce", "cell", Nothing),
    ("reproduce", "table", Nothing),
    ("reproduce", "settings", Nothing),
    (
        "reproduce",
        "report",
        Written("reproduce --cell */8K/read_8192/1 --report {}"),
    ),
    (
        "reproduce",
        "catalogue",
        Read("reproduce --cell */8K/read_8192/1 --catalogue {}"),
    ),
    (
        "tune",
        "target",
        Read("tune {} --suite read_8192 --size 64K --runs 2 --over program.call_bytes=4096,8192"),
    ),
    (
        "tune",
        "on",
        Read("tune read_8192 --on {} --size 64K --runs 2 --over program.call_bytes=4096,8192"),
    ),
    ("tune", "suite", Nothing),
    ("tune", "over", Nothing),
    ("tune", "settings", Nothing),
    (
        "tune",
        "report",
        Written(
            "tune vax780-sc780-eagle --suite read_8192 --size 64K --over filesystem.rotdelay_ms=2,4 --seeds 0 --report {}",
        ),
    ),
    (
        "tune",
        "catalogue",
        Read(
            "tune vax780-sc780-eagle --suite read_8192 --size 64K --over filesystem.rotdelay_ms=2,4 --seeds 0 --catalogue {}",
        ),
    ),
    ("report", "runs", Read("report {} -o /dev/null")),
    ("report", "output", Written("report ./run.json -o {}")),
    (
        "report",
        "catalogue",
        Read("report ./run.json -o /dev/null --catalogue {}"),
    ),
    ("calculate interleave", "drive", Nothing),
    (
        "calculate interleave",
        "catalogue",
        Read("calculate interleave --driver-ms 2 --drive eagle --catalogue {}"),
    ),
    ("calculate disk", "on", Read("calculate disk --on {}")),
    ("calculate disk", "settings", Nothing),
    ("calculate disk", "order", Nothing),
    (
        "calculate disk",
        "catalogue",
        Read("calculate disk --requests 10 --catalogue {}"),
    ),
    ("calculate flash", "policy", Nothing),
    ("calculate flash", "hot", Nothing),
    ("calculate format", "on", Read("calculate format --on {}")),
    ("calculate format", "settings", Nothing),
    (
        "calculate format",
        "catalogue",
        Read("calculate format --on sun3-rimfire-2344 --catalogue {}"),
    ),
    ("calculate volume", "load", Read("calculate volume {}")),
    ("calculate volume", "volumes", Nothing),
    ("calculate volume", "settings", Nothing),
    ("calculate volume", "fio_arguments", Nothing),
    (
        "calculate volume",
        "catalogue",
        Read("calculate volume ./web.csv --catalogue {}"),
    ),
    ("calculate requests", "file", Read("calculate requests {}")),
    // Of another user's link too, since nothing is written to what it leads to.
    (
        "record",
        "target",
        Read("record {} --for 10ms -o /dev/null"),
    ),
    ("record", "lasts", Nothing),
    (
        "record",
        "output",
        Written("record ./target --for 10ms -o {}"),
    ),
    ("trace", "files", Read("trace {}")),
    ("trace", "form", Nothing),
    ("trace", "columns", Nothing),
    ("trace", "time_unit", Nothing),
    ("trace", "window", Nothing),
    ("trace", "device", Nothing),
    ("trace", "report", Written("trace ./web.csv --report {}")),
    ("trace", "convert", Nothing),
    (
        "trace",
        "output",
        Written("trace ./web.csv --convert spc -o {}"),
    ),
    ("replay", "files", Read("replay {} --on bare-fixed")),
    ("replay", "targets", Read("replay ./web.csv --on {}")),
    ("replay", "form", Nothing),
    ("replay", "columns", Nothing),
    ("replay", "time_unit", Nothing),
    ("replay", "window", Nothing),
    ("replay", "device", Nothing),
    ("replay", "settings", Nothing),
    ("replay", "fresh", Nothing),
    ("replay", "label", Nothing),
    (
        "replay",
        "catalogue",
        Read("replay ./web.csv --on bare-fixed --catalogue {}"),
    ),
    (
        "replay",
        "destroy_data_on",
        Written("replay ./web.csv --on {} --destroy-data-on {}"),
    ),
    ("crash", "workload", Nothing),
    ("crash", "check", Nothing),
    ("crash", "on", Read("crash true --on {}")),
    ("crash", "log", Read("crash --log {}")),
    ("crash", "fs", Nothing),
    ("crash", "check_timeout", Nothing),
    ("crash", "cut", Nothing),
    ("crash", "cuts", Nothing),
    ("crash", "lying_flush", Nothing),
    ("crash", "failing_sync", Nothing),
    ("crash", "jobs", Nothing),
    ("crash", "settings", Nothing),
    (
        "crash",
        "catalogue",
        Read("crash true --on nvme-tlc --catalogue {}"),
    ),
    (
        "crash",
        "export_log",
        Written("crash true --on nvme-tlc --export-log {}"),
    ),
    (
        "crash",
        "junit",
        Written("crash true --on nvme-tlc --junit {}"),
    ),
    (
        "crash",
        "resume",
        Written("crash true --on nvme-tlc --resume {}"),
    ),
    ("serve", "drive", Read("serve {} --for 10ms")),
    (
        "serve",
        "socket",
        Written("serve fixed --for 10ms --socket {}"),
    ),
    ("serve", "tcp", Nothing),
    ("serve", "http", Nothing),
    ("serve", "fuse", Written("serve fixed --for 10ms --fuse {}")),
    (
        "serve",
        "data_file",
        Written("serve fixed --for 10ms --write --data {}"),
    ),
    (
        "serve",
        "fault_files",
        Read("serve fixed --for 10ms --fault {}"),
    ),
    (
        "serve",
        "fault_log",
        Written("serve fixed --for 10ms --fault-log {}"),
    ),
    (
        "serve",
        "control",
        Written("serve fixed --for 10ms --control {}"),
    ),
    (
        "serve",
        "record",
        Written("serve fixed --for 10ms --force --record {}"),
    ),
    ("serve", "lasts", Nothing),
    ("serve", "settings", Nothing),
    (
        "serve",
        "catalogue",
        Read("serve fixed --for 10ms --catalogue {}"),
    ),
    ("import", "files", Read("import {} -o ./imported")),
    // A directory gets entries beside those that it has: the tests of imports.
    ("import", "output", Nothing),
    (
        "import",
        "calibrate",
        Read("import ./small.parv -o ./imported --calibrate {}"),
    ),
    ("list", "name", Read("list parameters {}")),
    ("list", "settings", Nothing),
    ("list", "catalogue", Read("list systems --catalogue {}")),
    ("list", "suite", Nothing),
    ("list", "target", Nothing),
    ("list", "label", Nothing),
    ("show", "name", Read("show {}")),
    ("show", "catalogue", Read("show eagle --catalogue {}")),
    ("export", "runs", Read("export {} -o /dev/null")),
    ("export", "output", Written("export ./run.json -o {}")),
    ("delete", "runs", Read("delete {}")),
    ("clean", "directories", Read("clean --on {}")),
    ("man", "words", Nothing),
];

#[test]
fn every_argument_is_known() {
    let mut defined = BTreeSet::new();
    for (words, command) in commands() {
        for argument in open_arguments(&command) {
            if !argument.is_global_set() {
                defined.insert(format!("{words}: {}", argument.get_id()));
            }
        }
    }
    let known: BTreeSet<_> = ARGUMENTS
        .iter()
        .map(|(command, id, _)| format!("{command}: {id}"))
        .collect();
    assert_eq!(
        defined, known,
        "say in ARGUMENTS whether the argument names a file"
    );
}

/// What must not be harmed, each by the name that options are given.
struct Things {
    user: User,
    device: LoopDevice,
    _mounted: Undo,
    /// Given to all options.
    names: Vec<String>,
    /// Given to those that read: what looks like a description of a system, and
    /// an overlay of the catalogue with a FIFO in it.
    more: Vec<String>,
}

impl Things {
    fn new() -> Self {
        let user = User::new();
        prepare(&user);
        let device = LoopDevice::blank(user.scratch(), 4);
        let words = ["-q", "-F", "-O", "^has_journal", &device.text()];
        run("mkfs.ext4", &words);
        fs::create_dir(user.file("mounted")).unwrap();
        let mounted = mount(&device, &user.file("mounted"));
        fs::write(user.file("victim"), "mine\n").unwrap();
        fs::write(user.file("page.html"), "").unwrap();
        fs::create_dir(user.file("shared")).unwrap();
        let sticky = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(user.file("shared"), sticky).unwrap();
        fs::create_dir_all(user.file("overlay/drives")).unwrap();
        for name in ["fifo", "fifo.toml", "overlay/drives/fifo.toml"] {
            rustix::fs::mkfifoat(CWD, user.file(name), Mode::from_raw_mode(0o600)).unwrap();
        }
        for ending in ["", ".toml"] {
            fs::create_dir(user.file(&format!("directory{ending}"))).unwrap();
            for (target, name) in [
                (&device.path, "device"),
                (&user.file("victim"), "file"),
                (&user.file("absent"), "absent"),
            ] {
                let link = user.file(&format!("shared/{name}{ending}"));
                symlink(target, &link).unwrap();
                lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let names = ["device", "file", "absent"].map(|name| format!("./shared/{name}"));
        let toml = names.iter().map(|name| format!("{name}.toml"));
        let more = ["./fifo.toml", "./directory.toml", "./overlay"];
        Self {
            more: toml.chain(more.map(str::to_owned)).collect(),
            names: [device.text(), "./directory".to_owned(), "./fifo".to_owned()]
                .into_iter()
                .chain(names)
                .collect(),
            user,
            _mounted: mounted,
            device,
        }
    }

    /// All that must stay as it is; the store itself may change.
    fn state(&self) -> (String, String, Vec<(PathBuf, u64)>) {
        let mut files = tree(&self.user.home());
        files.retain(|(path, _)| !path.starts_with(self.user.file("data")));
        let victim = fs::read_to_string(self.user.file("victim")).unwrap();
        (checksum(&self.device.path), victim, files)
    }

    /// Runs a line with a name in its place; says what was harmed, if it was, or
    /// that the exit code was none of these.
    fn harmed_by(&self, line: &str, name: &str, codes: &[i32]) -> Option<String> {
        let line = line.replace("{}", name);
        let before = self.state();
        let outcome = self.user.run(&words(&line));
        let after = self.state();
        let code = outcome.code.unwrap_or(-1);
        let harm = match (after == before, codes.contains(&code)) {
            (true, true) => return None,
            (false, _) => "something was changed",
            (true, false) => "the exit code is wrong",
        };
        Some(format!("`{line}`: {harm}: {code}, {}", outcome.stderr))
    }
}

fn mount(device: &LoopDevice, directory: &Path) -> Undo {
    let directory = directory.to_str().expect("scratch paths are text");
    // Read-only, or the kernel itself writes to it in the background.
    let words = ["-o", "ro", &device.text(), directory];
    retry(|| match Command::new("mount").args(words).status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("mount {}: {other:?}", device.text())),
    });
    Undo::by(&["umount", directory])
}

#[track_caller]
fn expect_none(harmed: &[String]) {
    assert!(harmed.is_empty(), "{}", harmed.join("\n"));
}

#[test]
fn an_output_harms_nothing() {
    if !can_run("an_output_harms_nothing", MOUNTS) {
        return;
    }
    let things = Things::new();
    let mut harmed = Vec::new();
    for (_, _, names) in ARGUMENTS {
        let Written(line) = names else { continue };
        for name in &things.names {
            harmed.extend(things.harmed_by(line, name, &[2]));
        }
    }
    expect_none(&harmed);
}

#[test]
fn a_store_harms_nothing() {
    if !can_run("a_store_harms_nothing", MOUNTS) {
        return;
    }
    let things = Things::new();
    let mut harmed = Vec::new();
    for (_, line) in LINES {
        for name in &things.names {
            harmed.extend(things.harmed_by(&format!("{line} --store {{}}"), name, &[2]));
        }
    }
    expect_none(&harmed);
}

/// What is read may be read, and nothing waits for a FIFO.
#[test]
fn an_input_harms_nothing() {
    if !can_run("an_input_harms_nothing", MOUNTS) {
        return;
    }
    let things = Things::new();
    let mut harmed = Vec::new();
    for (_, _, names) in ARGUMENTS {
        let Read(line) = names else { continue };
        for name in things.names.iter().chain(&things.more) {
            harmed.extend(things.harmed_by(line, name, &[0, 2]));
        }
    }
    expect_none(&harmed);
}

/// The option of an argument that names an output, with what it needs beside it.
fn option_of(command: &str, output: &str) -> String {
    let (_, defined) = commands()
        .into_iter()
        .find(|(words, _)| words == command)
        .expect("commands are listed by their words");
    let argument = |id: &str| defined.get_arguments().find(|one| *one.get_id() == id);
    let long = argument(output).and_then(|one| one.get_long());
    let long = long.unwrap_or_else(|| panic!("{command}: {output} has no long form"));
    let beside = match (command, output) {
        ("run" | "serve", "record") | ("record", "output") => " --force",
        ("serve", "data_file") => " --write",
        ("trace", "output") => " --convert spc",
        _ => "",
    };
    format!("--{long} {{out}}{beside}")
}

/// Whatever a command reads, no output of it takes its place.
#[test]
fn no_output_takes_the_place_of_an_input() {
    let user = User::new();
    prepare(&user);
    fs::create_dir_all(user.file("overlay/drives")).unwrap();
    let files = ["./victim.fio", "./overlay/drives/own.toml"];
    for file in files {
        fs::write(user.file(file), "mine\n").unwrap();
    }
    let mut pairs = 0;
    for (command, output, names) in ARGUMENTS {
        // An export holds what it was made of.
        if !matches!(names, Written(_)) || *output == "destroy_data_on" || *command == "export" {
            continue;
        }
        let option = option_of(command, output);
        for (_, argument, names) in ARGUMENTS.iter().filter(|(other, ..)| other == command) {
            let Read(line) = names else { continue };
            let (input, written) = match *argument {
                "catalogue" | "data" => ("./overlay", files[1]),
                _ => (files[0], files[0]),
            };
            let line = line.replace("-o /dev/null", "").replace("{}", input);
            let line = format!("{line} {}", option.replace("{out}", written));
            user.run(&words(&line))
                .expect(2, &["the output would take its place"]);
            for file in files {
                assert_eq!(
                    fs::read_to_string(user.file(file)).unwrap(),
                    "mine\n",
                    "{line}"
                );
            }
            pairs += 1;
        }
    }
    assert!(pairs > 15, "{pairs} pairs of an input and an output");
}

/// A job file that measures a file, repeats a log and writes one; and a folder of files of
/// blktrace.
fn prepare_job_with_logs(user: &User) {
    let job = "[a]\nread_iolog=own.log\n\
               [b]\nrw=read\nsize=64k\ndirectory=used\nfilename=prec\nwrite_iolog=new.log\n";
    fs::write(user.file("logs.fio"), job).unwrap();
    let log = "fio version 3 iolog\n0 f add\n0 f open\n0 f read 0 4096\n9 f close\n";
    for name in ["own.log", "more.log"] {
        fs::write(user.file(name), log).unwrap();
    }
    symlink("own.log", user.file("link.log")).unwrap();
    for folder in ["used", "traced"] {
        fs::create_dir(user.file(folder)).unwrap();
    }
    fs::write(user.file("used/prec"), vec![0; 65_536]).unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../blocktrace/tests/data");
    for name in ["all.blktrace.0", "all.blktrace.1"] {
        fs::copy(data.join(name), user.file("traced").join(name)).unwrap();
    }
}

/// What the words do not name, and what they name twice.
#[test]
fn no_output_takes_the_place_of_what_is_read_unnamed() {
    let user = User::new();
    prepare(&user);
    let job = "[global]\ninclude more.fio\n[job]\nrw=read\nsize=64k\n";
    fs::write(user.file("job.fio"), job).unwrap();
    fs::write(user.file("more.fio"), "bs=4k\n").unwrap();
    let store = "./data/diskperf/runs.sqlite";
    fs::write(user.file(&format!("{store}-wal")), "").unwrap();
    fs::hard_link(user.file("job.fio"), user.file("second.fio")).unwrap();
    symlink("more.fio", user.file("link.fio")).unwrap();
    prepare_job_with_logs(&user);
    let before = tree(&user.home());
    for line in [
        "run ./job.fio --on ./target --record ./more.fio --force",
        "run ./job.fio --on ./target --record ./link.fio --force",
        "run --suite ./job.fio --on ./target --record ./more.fio --force",
        "run ./second.fio --on ./target --record ./job.fio --force",
        "run ./logs.fio --on ./target --record ./own.log --force",
        "run ./logs.fio --on ./target --record ./link.log --force",
        "run ./logs.fio --on ./target --record ./new.log --force",
        "run ./logs.fio --on ./target --record ./used/prec --force",
        "run ./logs.fio --on ./target --fio-arg=--read_iolog=./more.log --record ./more.log --force",
        "trace ./traced --convert diskperf -o ./traced/all.blktrace.0",
        "trace ./traced --convert diskperf -o ./traced/all.blktrace.1",
        "trace ./traced --report ./traced/all.blktrace.1",
        "trace ./traced/all --convert diskperf -o ./traced/all.blktrace.0",
        "run read_8192 --on vax780-sc780-eagle --perfetto ./x --record ./x",
        &format!("export last -o {store}"),
        &format!("export last -o {store}-wal"),
        &format!("report ./run.json -o {store} --store {store}"),
    ] {
        user.run(&words(line))
            .expect(2, &["the output would take its place"]);
        assert_eq!(tree(&user.home()), before, "{line}");
    }
    // A label is no file, whatever is called so.
    fs::write(user.file("web"), "").unwrap();
    let line = "run read_8192 --on vax780-sc780-eagle --size 64K --label web --perfetto ./web";
    user.run(&words(line)).expect(0, &[]);
}
