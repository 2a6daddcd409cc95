//! What can be seen to be wrong before anything is done: exit code 2, and not
//! a file more than before.

use crate::support::machine::{Needs, can_run};
use crate::support::{User, open_to_all, tree, words};
use std::fs;
use std::path::Path;

/// Words, separated by spaces, and what standard error must say of them.
type Case = (&'static str, &'static [&'static str]);

/// Runs diskperf with each line's words where there are a directory `target`
/// and files `file` and `mine.fio`, and expects a refusal that changes nothing.
#[track_caller]
fn expect_refusals(cases: &[Case]) {
    let user = User::new();
    fs::write(user.file("file"), "mine").unwrap();
    fs::write(user.file("mine.fio"), "[a]\nrw=read\n").unwrap();
    let before = tree(&user.home());
    for (line, says) in cases {
        user.run(&words(line)).expect(2, says);
        assert_eq!(tree(&user.home()), before, "{line}");
    }
}

#[test]
fn an_empty_file_has_nothing_to_read() {
    let user = User::new();
    fs::write(user.file("empty"), "").unwrap();
    user.run(&["run", "--on", "./empty"])
        .expect(2, &["./empty is an empty file", "name one with data in it"]);
}

/// These look into the store first.
#[test]
fn what_stands_in_the_place_of_something_else() {
    let user = User::new();
    let line = "run random --on bare-fixed --size 64K --label before";
    user.run(&words(line)).expect(0, &[]);
    let cases: &[Case] = &[
        (
            "compare vax780-sc780-eagle last",
            &["has no run", "diskperf run --on vax780-sc780-eagle"],
        ),
        (
            "export vax780-sc780-eagle -o runs.json",
            &["has no run", "diskperf run --on vax780-sc780-eagle"],
        ),
        (
            "compare last lastt",
            &["no run `lastt`", "did you mean `last`?"],
        ),
        (
            "show befroe",
            &["no run `befroe`", "did you mean `before`?"],
        ),
        ("rnu", &["'rnu'", "a similar subcommand exists: 'run'"]),
        ("calculate dsik", &["a similar subcommand exists: 'disk'"]),
        (
            "tune vax780-sc780-eagle --over filesystem.rotdelay_ms=3-10",
            &["3-10 is not a range", "3..10"],
        ),
        (
            "explain vax780-sc780-eagle --change driver.search_lead=2",
            &["--> --change:1:1", "search_lead_sectors"],
        ),
    ];
    for (line, says) in cases {
        user.run(&words(line)).expect(2, says);
    }
}

#[test]
fn targets() {
    expect_refusals(&[
        (
            "run --on ./missing",
            &[
                "./missing",
                "No such file",
                "give a directory, a file or a block device that exists",
            ],
        ),
        (
            "run write_8192 --on ./file",
            &["./file is a file of yours", "give a directory"],
        ),
        (
            "run --on ./file/below",
            &[
                "./file/below",
                "Not a directory",
                "give a directory, a file or a block device that exists",
            ],
        ),
        (
            "run --on ./file",
            &["./file is too short", "has 4 B", "name a longer file"],
        ),
        (
            "explain ./mine.fio",
            &["./mine.fio is too short", "explain TARGET --suite FILE"],
        ),
        (
            "run --on ./mine.toml",
            &["./mine.toml", "extends =", "diskperf list systems"],
        ),
        ("run --size -5", &["`-5` is not a size", "4096, 8K"]),
        ("run --seed x", &["a seed is a whole number from 0"]),
        (
            "run --on eagle",
            &["a drive of this name", "--on SYSTEM --set drive=eagle"],
        ),
        (
            "run --on ./file --fresh ext4",
            &["--fresh", "give a directory as target"],
        ),
        (
            "run --on vax",
            &[
                "the catalogue has no system `vax`",
                "no file or directory is called `vax`",
            ],
        ),
        (
            "run --on /dev/null",
            &[
                "/dev/null",
                "neither a directory nor a file nor a block device",
            ],
        ),
        ("run ./target", &["is a path", "diskperf run --on ./target"]),
        (
            "run ./missing",
            &["is a path", "diskperf run --on ./missing"],
        ),
        ("run /var/tmp", &["is a path", "diskperf run --on /var/tmp"]),
        (
            "run vax780-sc780-eagle",
            &[
                "is a modelled system",
                "diskperf run --on vax780-sc780-eagle",
            ],
        ),
        (
            "run --other ./missing --on ./target",
            &["./missing", "No such file"],
        ),
        (
            "run --other ./file --on ./target",
            &["./file", "not a directory"],
        ),
        (
            "run --together --on ./target",
            &["at least two targets", "--on DIR1 --on DIR2 --together"],
        ),
        (
            "run write_8192 --on ./target --destroy-data-on ./target",
            &["--destroy-data-on ./target", "the same device as one --on"],
        ),
        (
            "run write_8192 --on ./target --destroy-data-on /dev/missing",
            &[
                "--destroy-data-on /dev/missing",
                "the same device as one --on",
            ],
        ),
    ]);
}

#[test]
fn names() {
    expect_refusals(&[
        (
            "run ffs38 --on ./target",
            &["`ffs38`", "did you mean `ffs83`?"],
        ),
        (
            "run --suite vme78 --on ./target",
            &["`vme78`", "did you mean `vme87`?"],
        ),
        (
            "run raed_8192 --on ./target",
            &["`raed_8192`", "did you mean `read_8192`?"],
        ),
        (
            "run quicksort --on ./target",
            &["`quicksort`", "ffs83", "random_mix"],
        ),
        (
            "run write_8192 --on ./target --set program.call_byte=512",
            &["no parameter `call_byte`", "did you mean `call_bytes`?"],
        ),
        (
            "run write_8192 --on ./target --set program.colour=red",
            &["no parameter `colour`", "call_bytes"],
        ),
        (
            "run ffs83 --on ./target --set iodepth=32",
            &[
                "no program of ffs83 has a parameter `iodepth`",
                "program.call_bytes, program.think_ns, program.verify",
            ],
        ),
        (
            "run --set iodepth=32",
            &[
                "no program of today26 has a parameter `iodepth`",
                "did you mean `program.depth`?",
            ],
        ),
        (
            "run vme87 --on ./target --set program.reader=2",
            &["no program of vme87", "did you mean `program.readers`?"],
        ),
        (
            "run write_8192 --on ./target --set program.call_bytes",
            &["is not a setting", "program.call_bytes=512"],
        ),
        (
            "run write_8192 --on ./target --set cal_bytes=512",
            &[
                "no program of write_8192 has a parameter `cal_bytes`",
                "did you mean `program.call_bytes`?",
            ],
        ),
        (
            "run read_8192 --on vax780-sc780-eagle --set rotdelay=4",
            &[
                "no program of read_8192 and no component of vax780-sc780-eagle",
                "did you mean `filesystem.rotdelay_ms`?",
            ],
        ),
        (
            "run read_8192 --on vax780-sc780-eagle --set kind=x",
            &[
                "several parameters are called `kind`",
                "write controller.kind or filesystem.kind",
            ],
        ),
        (
            "run read_8192 --on vax780-sc780-eagle --set drvie=eagle",
            &["did you mean `drive`?"],
        ),
        (
            "run write_8192 --on ./target --set drive.rpm=3600",
            &["no component `drive`", "`program`"],
        ),
        (
            "run write_8192 --on ./target --set program.call_bytes=red",
            &["cannot be `red`", "a size from"],
        ),
        (
            "run seqread --on ./target --set program.layer=cashed",
            &["cannot be `cashed`", "cached, dropped"],
        ),
        (
            "list parameters raed_8192",
            &["`raed_8192`", "did you mean `read_8192`?"],
        ),
        (
            "list runs read_8192",
            &["only `list parameters` takes the name"],
        ),
        ("comprae", &["subcommand 'comprae'", "'compare'"]),
        (
            "run --siez 8M",
            &["unexpected argument '--siez'", "'--size'"],
        ),
    ]);
}

#[test]
fn sizes_and_numbers() {
    expect_refusals(&[
        ("run --runs -3", &["'-3' for '--runs <N>'", "1..=100000"]),
        (
            "run read_8192 --on /proc",
            &[
                "not enough space on /proc",
                "name a directory on another one",
            ],
        ),
        (
            "ab ./target ./target random --until-steady=5,20%,10%",
            &["--until-steady: ab repeats A and B in turn"],
        ),
        (
            "ab ./target --until-steady random --on ./target",
            &["--until-steady: ab repeats A and B in turn"],
        ),
        (
            "run write_8192 --on ./target --size 0",
            &["a size of 0", "--size 8M"],
        ),
        (
            "run write_8192 --on ./target --size 20000",
            &[
                "20000",
                "not a multiple of the call of 8192",
                "--size 16384",
            ],
        ),
        (
            "run write_8192 --on ./target --size 4096",
            &[
                "8192 bytes is larger than the size of 4096",
                "a larger --size",
            ],
        ),
        (
            "run read_8192 --on ./target --size 8M --set program.call_bytes=16M",
            &["larger than the size", "a smaller program.call_bytes"],
        ),
        (
            "run --on ./target --size 8X",
            &["`8X` is not a size", "8M", "or auto"],
        ),
        (
            "run --on ./target --size=-8M",
            &["`-8M` is not a size", "8M"],
        ),
        (
            "run --on ./target --size big",
            &["`big` is not a size", "8M"],
        ),
        (
            "run --on ./target --size 99999999T",
            &["`99999999T` is not a size"],
        ),
        (
            "run write_8192 --on ./target --size 16777215T",
            &["not enough space on ./target", "a smaller --size"],
        ),
        (
            "run copy --set program.destination=same --on ./target --size 9000000T",
            &["not enough space on ./target", "a smaller --size"],
        ),
        (
            "run --fresh ext4 --on ./target --size 16777215T",
            &["not enough space on ./target", "a smaller --size"],
        ),
        (
            "run random_mix --on ./target --set program.area_bytes=1T",
            &["not enough space on ./target"],
        ),
        ("run --on ./target --runs 0", &["'0'", "--runs"]),
        ("run --on ./target --runs many", &["'many'", "--runs"]),
        ("run --on ./target --fresh ext5", &["`ext5`", "ext4"]),
        (
            "run --on ./target --fresh ext4:blok_bytes=1024",
            &["`blok_bytes`", "block_bytes"],
        ),
        (
            "run --on ./target --fresh ext4:block_bytes=3000",
            &["blocks of 3000 bytes", "1024", "4096"],
        ),
        ("run --on ./target --fresh ext4:block_bytes", &["KEY=VALUE"]),
        (
            "run --on ./target --direct --cache warm",
            &["--direct", "cannot be used with", "--cache"],
        ),
        (
            "run --on ./target --ignore-signature",
            &["--destroy-data-on"],
        ),
    ]);
}

#[test]
fn runs_by_name() {
    expect_refusals(&[
        ("show ./missing.json", &["./missing.json", "No such file"]),
        (
            "show ./file",
            &["./file", "is not a file of runs", "diskperf export"],
        ),
        (
            "show ./target",
            &["./target", "is a directory", "diskperf run --on"],
        ),
        (
            "compare ./missing.json",
            &["./missing.json", "No such file"],
        ),
        (
            "compare ./file --fail-over much",
            &["`much` is not a percentage", "write 5%"],
        ),
        ("export -o out.json", &["<RUN>"]),
    ]);
}

/// Where no store was, asking for one makes it; nothing else.
#[test]
fn runs_that_are_not_stored() {
    let user = User::new();
    for (line, says) in [
        ("show", "no `last`: make one with `diskperf run`"),
        ("show last", "no `last`: make one with `diskperf run`"),
        ("show 0123", "no run `0123`: `diskperf list runs`"),
        ("show fsf83", "no run `fsf83`: `diskperf list runs`"),
        ("compare last last", "no `last`: make one"),
        ("export 0123 -o out.json", "no run `0123`"),
    ] {
        user.run(&words(line)).expect(2, &[says]);
    }
    assert!(!user.file("out.json").exists());
}

#[test]
fn direct_io_that_memory_cannot_do() {
    if !Path::new("/dev/shm").is_dir() {
        eprintln!("SKIPPED direct_io_that_memory_cannot_do: there is no /dev/shm");
        return;
    }
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let user = User::new();
    let on = memory.path().to_str().unwrap();
    user.run(&["run", "read_8192", "--direct", "--on", on, "--size", "1M"])
        .expect(2, &["O_DIRECT does not bypass the page cache", on]);
    // A suite goes on without the steps that need it.
    let run = user
        .run(&[
            "run",
            "seqread89",
            "--on",
            on,
            "--size",
            "1M",
            "--runs",
            "2",
            "--format",
            "json",
        ])
        .expect(
            0,
            &[
                "left out: seqread layer=direct call_bytes=512;",
                "O_DIRECT does not bypass",
            ],
        );
    let run = &run.json()["runs"][0];
    let notes = run["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let mut layers: Vec<_> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["parameters"]["layer"].as_str().unwrap())
        .collect();
    layers.dedup();
    assert_eq!(layers, ["null", "zero", "cached", "dropped"]);
    assert_eq!(tree(memory.path()), []);
}

/// What only root may do is refused with what everybody may do instead.
#[test]
fn what_needs_root() {
    if !can_run("what_needs_root", &[Needs::Tool("mkfs.ext4")]) {
        return;
    }
    let user = User::new();
    open_to_all(&user.home());
    open_to_all(&user.target());
    user.run_as_nobody(&words(
        "run write_8192 --size 1M --on ./target --fresh ext4",
    ))
    .expect(2, &["needs root", "use sudo, or omit `--fresh`"]);
    user.assert_nothing_left("--fresh");
    user.run_as_nobody(&words(
        "run read_8192 --size 1M --on ./target --drop-caches",
    ))
    .expect(2, &["needs root", "use sudo, or omit it"]);
    user.assert_nothing_left("--drop-caches");
}
