//! fio job files that cannot be run: exit code 2, with line, column and remedy, and
//! nothing is begun.

use crate::support::{User, tree, words};
use std::fs;

#[test]
fn what_is_wrong_with_a_job_file_is_shown_at_its_place() {
    let user = User::new();
    for (job, says) in [
        ("[x]\nbs= 4k\n", &["job.fio:2:4", "^"][..]),
        ("[x]\nsize=1.5g\n", &["job.fio:2:6", "^"]),
        ("[x]\nbogus=3\n", &["job.fio:2:1", "no option `bogus`"]),
        (
            "[x]\ndirct=1\n",
            &["job.fio:2:1", "the nearest is `direct`"],
        ),
        (
            "[x]\nsize=1m\ncreate_on_open=1\nrw=read\n",
            &["job.fio:3:16", "create_on_open"],
        ),
        ("[x]\nrw=read\n", &["a missing file has no size", "size"]),
        (
            "[global\nsize=1m\n[x]\nrw=read\n",
            &[
                "a missing file has no size",
                "this job has no size",
                "a section without its closing bracket: fio calls this job `globa`",
            ],
        ),
        (
            "[x]\nsize=1m\ndirectory=nowhere\n",
            &["job.fio:3:11", "--on"],
        ),
        ("[global]\nbs=4k\n", &["has no job"]),
        (
            "[a]\nsize=1m\n[b]\nsize=1m\ndirectory=target\n",
            &["several places", "--on"],
        ),
        ("", &["has no job"]),
    ] {
        fs::write(user.file("job.fio"), job).unwrap();
        let before = tree(&user.home());
        user.run(&words("run job.fio")).expect(2, says);
        assert_eq!(tree(&user.home()), before, "{job}");
    }
}

#[test]
fn the_errors_of_a_job_file_are_in_the_order_of_its_lines() {
    let user = User::new();
    let job = "[a]\nsize=1m\niodepth=0\nrw=reed\nbs=4x\nbogus=1\n";
    fs::write(user.file("job.fio"), job).unwrap();
    let outcome = user.run(&words("run job.fio")).expect(2, &[]);
    let titles = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("error: "));
    assert!(
        titles
            .clone()
            .all(|line| line.starts_with("diskperf: error: ")),
        "{outcome:?}"
    );
    assert_eq!(titles.count(), 4, "{outcome:?}");
    let places = outcome.stderr.split("job.fio:").skip(1);
    let lines: Vec<&str> = places.map(|place| &place[..1]).collect();
    assert_eq!(lines, ["3", "4", "5", "6"], "{outcome:?}");
}

/// What a modelled drive has not: bytes to begin at behind its end, and discards.
#[test]
fn a_modelled_drive_refuses_at_the_line_of_the_job() {
    let user = User::new();
    for (options, says) in [
        (
            "rw=randread\noffset=8t\nsize=1g",
            &[
                "job.fio:3:8",
                "the offset leaves no part of the file",
                "lower the offset",
            ][..],
        ),
        (
            "rw=randread\noffset=8t\noffset_increment=1t\nnumjobs=2\nsize=100g",
            &["job.fio:3:8", "this begins at byte 8796093022208 of"],
        ),
        (
            "rw=randtrim\nsize=1m",
            &[
                "job.fio:2:4",
                "no modelled kernel has discards",
                "real block device",
            ],
        ),
    ] {
        let job = format!("[x]\n{options}\nbs=4k\nfilename=/dev/drive0\n");
        fs::write(user.file("job.fio"), job).unwrap();
        let run = "run job.fio --on bare-sata-7200";
        user.run(&words(run)).expect(2, says);
    }
    for options in ["offset=1t\nsize=9t", "filesize=9t"] {
        let job = format!("[x]\nrw=randread\n{options}\nnumber_ios=8\nfilename=/dev/drive0\n");
        fs::write(user.file("job.fio"), job).unwrap();
        let done = user.run(&words("run job.fio --on bare-sata-7200 --dry-run"));
        done.expect(0, &[]).shows(&["the device ends at byte"]);
    }
    assert!(user.stored().is_empty());
}

#[test]
fn what_a_job_file_says_itself_is_not_said_beside_it() {
    let user = User::new();
    fs::write(user.file("job.fio"), "[x]\nsize=1m\n").unwrap();
    for (line, says) in [
        (
            "run job.fio --on ./target --size 2M",
            "--size: each job of the file says how much it moves",
        ),
        (
            "run job.fio --on ./target --fio-arg=--bogus=2",
            "--fio-arg:1:3",
        ),
        (
            "run job.fio --on ./target --fio-arg --section=y",
            "there are: x",
        ),
        (
            "run write_8192 --on ./target --fio-arg=--size=1m",
            "--fio-arg --size=1m: it is for fio job files",
        ),
        (
            "run job.fio --on vax780-sc780-eagle --set program.depth=2",
            "--set program.depth: the jobs of a file say",
        ),
        ("run gone.fio --on ./target", "gone.fio: No such file"),
        (
            "run ffs83 --on vax780-sc780-eagle --size 64K --format fio-json",
            "--format json",
        ),
        (
            "run metadata --on ./target --format fio-json+",
            "metadata on ./target has none; omit --format, or give --format json",
        ),
        (
            "run ffs83 --on ./target --on null --size 64K --format fio-json",
            "ffs83 on ./target has none",
        ),
        ("show read_8192 --format fio-json", "--format json"),
        (
            "tune vax780-sc780-eagle --suite job.fio --over program.bs=4k,8k",
            "--over program.bs: the jobs of a file say what they do",
        ),
        (
            "tune ./target --suite job.fio --over direct=0,1",
            "--over direct: the jobs of a file say what they do",
        ),
    ] {
        user.run(&words(line)).expect(2, &[says]);
    }
    assert!(user.stored().is_empty(), "nothing ran");
    fs::write(user.file("blob"), [0, 159, 146, 150]).unwrap();
    user.run(&words("run blob"))
        .expect(2, &["diskperf run --on blob"]);
}
