//! A mistake has one exit code in every command: 0 done, 1 the work
//! failed, 2 the command line or a file that it names was wrong.

use crate::lines::{LINES, prepare};
use crate::support::machine::can_run;
use crate::support::{MOUNTS, User, mount_tmpfs, tree, words};
use std::fs::{self, File};
use std::io;
use std::process::Stdio;

/// What is wrong, what standard error says of it, and lines with it.
struct Mistake {
    what: &'static str,
    says: &'static [&'static str],
    lines: &'static [&'static str],
}

/// Lines of all commands that write a file, with `OUTPUT` in its place.
const OUTPUTS: &[&str] = &[
    "report ./run.json -o OUTPUT",
    "export ./run.json -o OUTPUT",
    "run read_8192 --on vax780-sc780-eagle --size 64K --perfetto OUTPUT",
    "explain vax780-sc780-eagle --suite read_8192 --size 64K --no-counterfactuals --perfetto OUTPUT",
    "tune vax780-sc780-eagle --suite read_8192 --size 64K --over filesystem.rotdelay_ms=2,4 --seeds 0 --report OUTPUT",
    "reproduce --cell */8K/read_8192/1 --report OUTPUT",
];

/// Those of them whose standard output has a table.
const BESIDE_A_TABLE: &[&str] = OUTPUTS.split_at(2).1;

const MISTAKES: &[Mistake] = &[
    Mistake {
        what: "a file of runs that is not there",
        says: &["./absent.json", "No such file"],
        lines: &[
            "show ./absent.json",
            "compare ./absent.json ./absent.json",
            "export ./absent.json -o out",
            "report ./absent.json -o out",
            "explain ./absent.json",
        ],
    },
    Mistake {
        what: "a file of something else",
        says: &["./text.json", "is not a file of runs"],
        lines: &[
            "show ./text.json",
            "compare ./text.json ./text.json",
            "export ./text.json -o out",
            "report ./text.json -o out",
            "explain ./text.json",
        ],
    },
    Mistake {
        what: "a run that is not in the store",
        says: &["no run `0123abc`"],
        lines: &[
            "show 0123abc",
            "compare 0123abc 0123abc",
            "export 0123abc -o out",
            "report 0123abc -o out",
            "explain 0123abc",
        ],
    },
    Mistake {
        what: "a system that there is not",
        says: &["vax780-sc780-egle", "vax780-sc780-eagle"],
        lines: &[
            "run --on vax780-sc780-egle",
            "tune vax780-sc780-egle --over filesystem.rotdelay_ms=2,4",
            "list parameters vax780-sc780-egle",
            "calculate format --on vax780-sc780-egle",
            "show vax780-sc780-egle",
        ],
    },
    Mistake {
        what: "a drive that there is not",
        says: &["`sas10k`", "`sas-10k`"],
        lines: &["serve sas10k --for 10ms"],
    },
    Mistake {
        what: "a setting that there is not",
        says: &["rotdlay_ms", "rotdelay_ms"],
        lines: &[
            "run --on vax780-sc780-eagle --set filesystem.rotdlay_ms=4",
            "explain vax780-sc780-eagle --set filesystem.rotdlay_ms=4",
            "explain vax780-sc780-eagle --change filesystem.rotdlay_ms=4",
            "tune vax780-sc780-eagle --over filesystem.rotdlay_ms=2,4",
            "tune vax780-sc780-eagle --over filesystem.rotdelay_ms=2,4 --set filesystem.rotdlay_ms=4",
            "reproduce --set filesystem.rotdlay_ms=4",
            "list parameters vax780-sc780-eagle --set filesystem.rotdlay_ms=4",
            "calculate format --on vax780-sc780-eagle --set filesystem.rotdlay_ms=4",
        ],
    },
    Mistake {
        what: "a folder of the catalogue that is not there",
        says: &["catalogue folder ./absent", "No such file"],
        lines: &[
            "run --on vax780-sc780-eagle --catalogue ./absent",
            "explain vax780-sc780-eagle --catalogue ./absent",
            "tune vax780-sc780-eagle --over filesystem.rotdelay_ms=2,4 --catalogue ./absent",
            "reproduce --catalogue ./absent",
            "report ./run.json -o out --catalogue ./absent",
            "list systems --catalogue ./absent",
            "show eagle --catalogue ./absent",
            "calculate format --on vax780-sc780-eagle --catalogue ./absent",
            "calculate interleave --drive eagle --driver-ms 2 --catalogue ./absent",
        ],
    },
    Mistake {
        what: "a path that is not there",
        says: &["./absent", "No such file"],
        lines: &[
            "run --on ./absent",
            "explain ./absent",
            "tune ./absent --over program.call_bytes=4096,8192",
        ],
    },
    Mistake {
        what: "a directory that is not there to look into",
        says: &["--on ./absent", "./absent does not exist"],
        lines: &["clean --on ./absent"],
    },
    Mistake {
        what: "a file that something else is expected of",
        says: &["./text.json"],
        lines: &[
            "run write_8192 --on ./text.json",
            "run --on ./target --other ./text.json",
            "list systems --catalogue ./text.json",
        ],
    },
];

/// A user with runs and other files, and a line's words.
fn user() -> User {
    let user = User::new();
    prepare(&user);
    fs::write(user.file("text.json"), "mine\n").unwrap();
    fs::write(user.file("page.html"), "").unwrap();
    user
}

#[test]
fn a_mistake_has_the_same_code_in_every_command() {
    let user = user();
    let before = tree(&user.home());
    for mistake in MISTAKES {
        for line in mistake.lines {
            let outcome = user.run(&words(line));
            assert_eq!(outcome.code, Some(2), "{}: {outcome:?}", mistake.what);
            outcome.expect(2, mistake.says);
        }
    }
    for line in OUTPUTS {
        for (output, says) in [
            ("./no/such/file", "No such file"),
            ("./target", "it is a directory"),
            ("./text.json/below", "Not a directory"),
            ("/proc/file", "cannot be written"),
        ] {
            let line = line.replace("OUTPUT", output);
            user.run(&words(&line)).expect(2, &[output, says, "name "]);
        }
    }
    for line in BESIDE_A_TABLE {
        for output in ["-", "/dev/stdout"] {
            let line = line.replace("OUTPUT", output);
            let says = ["standard output has the table", "name a file"];
            user.run(&words(&line)).expect(2, &says);
        }
    }
    assert_eq!(tree(&user.home()), before);
}

/// Also of the commands that need no store.
#[test]
fn a_wrong_store_or_option_is_refused_by_every_command() {
    let user = user();
    let before = tree(&user.home());
    for (_, line) in LINES {
        for (words_more, says) in [
            ("--store ./text.json", "is not a diskperf store"),
            ("--store ./target", "it is a directory"),
            ("--store ./text.json/below", "Not a directory"),
            ("--nonsense", "unexpected argument '--nonsense'"),
        ] {
            let line = format!("{line} {words_more}");
            user.run(&words(&line)).expect(2, &[says]);
        }
    }
    assert_eq!(tree(&user.home()), before);
}

#[test]
fn standard_output_that_cannot_be_written_is_a_failure() {
    let user = user();
    let lines = LINES.iter().map(|(_, line)| *line);
    let more = ["--help", "--version", "help run", "report ./run.json -o -"];
    for line in lines.chain(more) {
        if line.contains("-o ./") {
            // Nothing goes to standard output.
            continue;
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        // Of a crash test, 1 means that something was lost.
        let code = if line.starts_with("crash ") { 2 } else { 1 };
        user.run_to(&words(line), Stdio::from(full))
            .expect(code, &["cannot write to standard output", "No space left"]);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let quiet = user
            .run_to(&words(line), Stdio::from(writer))
            .expect(0, &[]);
        assert!(!quiet.stderr.contains("standard output"), "{quiet:?}");
    }
    // There 1 means that something is slower.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let line = "compare ./run.json ./run.json --fail-over 5%";
    user.run_to(&words(line), Stdio::from(full))
        .expect(2, &["cannot write to standard output"]);
}

/// A measurement whose table cannot be printed is stored all the same.
#[test]
fn what_cannot_be_printed_is_stored() {
    let user = User::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let line = "run write_8192 --on ./target --size 64K --runs 2";
    user.run_to(&words(line), Stdio::from(full))
        .expect(1, &["stored as run", "cannot write to standard output"]);
    assert!(user.stored()[0].repetition_count >= 2);
}

/// The file is as it was, and nothing is beside it.
#[test]
fn a_disk_that_is_full_is_a_failure() {
    if !can_run("a_disk_that_is_full_is_a_failure", MOUNTS) {
        return;
    }
    let user = user();
    let mounted = mount_tmpfs(&user.target(), "size=16k");
    fs::write(user.target().join("page"), "of yesterday").unwrap();
    fs::write(user.target().join("filler"), [1; 12 << 10]).unwrap();
    let before = tree(&user.target());
    for line in OUTPUTS {
        let line = line.replace("OUTPUT", "./target/page");
        user.run(&words(&line))
            .expect(1, &["./target/page", "cannot be written", "No space left"]);
        assert_eq!(tree(&user.target()), before, "{line}");
    }
    let page = fs::read_to_string(user.target().join("page")).unwrap();
    assert_eq!(page, "of yesterday");
    drop(mounted);
}

#[test]
fn standard_output_has_all_of_a_document() {
    let user = user();
    for output in ["-", "/dev/stdout"] {
        let page = user
            .run(&["report", "./run.json", "-o", output])
            .expect(0, &[]);
        let whole =
            page.stdout.starts_with("<!DOCTYPE html>") && page.stdout.ends_with("</html>\n");
        assert!(whole, "{output}: {} bytes", page.stdout.len());
        let exported = user
            .run(&["export", "./run.json", "-o", output])
            .expect(0, &[]);
        assert_eq!(exported.json()["kind"], "diskperf runs");
    }
    // `./-` is a file.
    user.run(&["export", "./run.json", "-o", "./-"])
        .expect(0, &[]);
    user.run(&["show", "./-"]).expect(0, &[]);
}

/// What a command reads is not what it writes.
#[test]
fn an_output_takes_the_place_of_no_input() {
    let user = user();
    let system = "extends = \"vax780-sc780-eagle\"\n";
    fs::write(user.file("mine.toml"), system).unwrap();
    fs::hard_link(user.file("run.json"), user.file("same.json")).unwrap();
    let store = user.store().display().to_string();
    let before = tree(&user.home());
    for line in [
        "report ./run.json -o run.json",
        "report ./run.json -o same.json",
        "explain ./run.json --perfetto ./run.json",
        "tune mine.toml --suite read_8192 --over filesystem.rotdelay_ms=2,4 --report mine.toml",
        "run read_8192 --on mine.toml --size 64K --perfetto ./mine.toml",
    ] {
        let says = ["is what the output is made of", "name another file"];
        user.run(&words(line)).expect(2, &says);
    }
    for line in OUTPUTS {
        let line = line.replace("OUTPUT", &store);
        user.run(&words(&line))
            .expect(2, &[&store, "is the result store", "name another file"]);
    }
    assert_eq!(tree(&user.home()), before);
    assert_eq!(fs::read_to_string(user.file("mine.toml")).unwrap(), system);
    // An export holds what it was made of.
    user.run(&["export", "./run.json", "-o", "./run.json"])
        .expect(0, &[]);
    user.run(&["show", "./run.json"]).expect(0, &[]);
}
