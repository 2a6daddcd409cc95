//! The command line by its own definition: which commands there are, what each
//! takes, and a line of each that succeeds.

use crate::support::User;
use clap::{Arg, Command};
use diskperf_laboratory::SizeChoice;
use std::any::TypeId;
use std::fs;

/// A line of every command that succeeds where [`prepare`] was.
pub(crate) const LINES: &[(&str, &str)] = &[
    ("run", "run read_8192 --on vax780-sc780-eagle --size 64K"),
    ("ab", "ab ./target ./target read_8192 --size 64K --blocks 1"),
    ("compare", "compare ./run.json ./run.json"),
    (
        "explain",
        "explain vax780-sc780-eagle --suite read_8192 --size 64K --no-counterfactuals",
    ),
    ("reproduce", "reproduce --cell */8K/read_8192/1"),
    (
        "tune",
        "tune vax780-sc780-eagle --suite read_8192 --size 64K --over filesystem.rotdelay_ms=2,4 --seeds 0",
    ),
    ("report", "report ./run.json -o ./page.html"),
    ("calculate interleave", "calculate interleave --driver-ms 2"),
    ("calculate disk", "calculate disk --requests 10"),
    (
        "calculate flash",
        "calculate flash --spare 28% --policy fifo --depth 2",
    ),
    (
        "calculate format",
        "calculate format --on sun3-rimfire-2344",
    ),
    (
        "calculate volume",
        "calculate volume ./web.csv --volume gp3",
    ),
    ("calculate requests", "calculate requests ./calls.json"),
    ("import", "import ./small.parv -o ./imported --replace"),
    ("record", "record ./target --for 10ms -o ./recorded --force"),
    ("trace", "trace ./web.csv"),
    ("replay", "replay ./web.csv --on bare-fixed"),
    ("serve", "serve fixed --for 10ms"),
    ("crash", "crash true --on nvme-tlc"),
    ("list", "list"),
    ("show", "show ffs83"),
    ("export", "export ./run.json -o -"),
    ("delete", "delete last --dry-run"),
    ("clean", "clean --on ./target"),
    ("completions", "completions bash"),
    ("man", "man calculate interleave"),
];

/// A drive of DiskSim's files, by what its files are called.
pub(crate) const SMALL_DRIVE: [(&str, &str); 4] = [
    (
        "small.parv",
        include_str!("../../../diskspecs/tests/data/small.parv"),
    ),
    (
        "small.diskspecs",
        include_str!("../../../diskspecs/tests/data/small.diskspecs"),
    ),
    (
        "small.model",
        include_str!("../../../diskspecs/tests/data/small.model"),
    ),
    (
        "small.seek",
        include_str!("../../../diskspecs/tests/data/small.seek"),
    ),
];

/// Has a modelled run in the store and in the file `run.json`, and the files of a drive.
pub(crate) fn prepare(user: &User) {
    for (name, text) in SMALL_DRIVE {
        fs::write(user.file(name), text).unwrap();
    }
    let web = "128166400000000000,web,0,Write,8192,4096,1500\n\
        128166400010000000,web,0,Write,12288,4096,1500\n";
    fs::write(user.file("web.csv"), web).unwrap();
    let calls = r#"[{"id": "sync", "profile": "log", "setup": [],
        "ext4": {"mkopts": [], "mntopts": ""}, "xfs": {"mkopts": [], "mntopts": ""},
        "seq": [["open", "d0", "f0", ["creat"]], ["pwrite", "d0", 0, 4096], ["fsync", "d0"]]}]"#;
    fs::write(user.file("calls.json"), calls).unwrap();
    let run = "run read_8192 --on vax780-sc780-eagle --size 64K --quiet";
    user.run(&crate::support::words(run)).expect(0, &[]);
    let exported = user.run(&["export", "last", "-o", "-"]).expect(0, &[]);
    fs::write(user.file("run.json"), exported.stdout).unwrap();
}

/// Every command that does something, by the words that call it.
pub(crate) fn commands() -> Vec<(String, Command)> {
    fn add(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
        let below = command.get_subcommands();
        let below: Vec<_> = below.filter(|one| one.get_name() != "help").collect();
        if below.is_empty() {
            found.push((words.to_owned(), command.clone()));
        }
        for one in below {
            let words = format!("{words} {}", one.get_name());
            add(one, words.trim(), found);
        }
    }
    let mut whole = diskperf::command();
    whole.build();
    let mut found = Vec::new();
    add(&whole, "", &mut found);
    found
}

/// What a command takes that may name a file: whatever is neither a word of a
/// closed set nor a number.
pub(crate) fn open_arguments(command: &Command) -> Vec<&Arg> {
    let numbers = [
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<f64>(),
        TypeId::of::<SizeChoice>(),
    ];
    let is_open = |argument: &&Arg| {
        let kind = argument.get_value_parser().type_id();
        argument.get_action().takes_values()
            && argument.get_possible_values().is_empty()
            && !numbers.iter().any(|number| kind == *number)
    };
    command.get_arguments().filter(is_open).collect()
}

#[test]
fn every_command_has_its_line() {
    let defined: Vec<_> = commands().into_iter().map(|(words, _)| words).collect();
    let mut known: Vec<_> = LINES.iter().map(|(command, _)| *command).collect();
    known.sort_unstable();
    let mut sorted = defined.clone();
    sorted.sort();
    assert_eq!(sorted, known, "give LINES a line for each command");
}
