//! What can be wrong with a modelled run.

use crate::support::{User, words};

const VAX: &str = "vax780-sc780-eagle";
const SUN: &str = "sun3-rimfire-2344";
const ATARI: &str = "atarist-supra";

#[test]
fn requests_that_make_no_sense_say_what_does() {
    let user = User::new();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--on", "vax780-sc780-egle"],
            &[
                "no system `vax780-sc780-egle`",
                "did you mean",
                "vax780-sc780-eagle",
            ],
        ),
        (
            &["--on", "vax780-sc780-eagle:initial-arbitrasion"],
            &["did you mean", "initial-arbitration"],
        ),
        (
            &["--on", ATARI, "--set", "drive.sector_bytes=129"],
            &[
                "blocks of 1024 bytes",
                "whole sectors of 129",
                "drive.sector_bytes",
            ],
        ),
        (
            &[
                "seqread",
                "--on",
                ATARI,
                "--set",
                "program.layer=device_direct",
                "--set",
                "program.call_bytes=512",
                "--set",
                "drive.sector_bytes=1024",
                "--set",
                "drive.sectors_per_track=8",
                "--set",
                "drive.partition_sectors=9000",
            ],
            &[
                "calls of 512 bytes",
                "whole sectors of 1024",
                "program.call_bytes",
            ],
        ),
        (
            &[
                "dump_restore",
                "--on",
                VAX,
                "--set",
                "drive.sector_bytes=1024",
                "--set",
                "drive.sectors_per_track=12",
                "--set",
                "drive.partition_sectors=40000",
                "--set",
                "drive.partition_start_cylinder=0",
                "--size",
                "1M",
            ],
            &[
                "calls of 512 bytes",
                "whole sectors of 1024",
                "drive.sector_bytes",
            ],
        ),
        (
            &["--on", SUN, "--set", "controller.raw_cache_bits=SEA|XCY"],
            &["XCY needs XHD"],
        ),
        (
            &["--on", SUN, "--set", "controller.read_ahead_sectors=245"],
            &["from 0 to 244"],
        ),
        (
            &["--on", SUN, "--set", "drive.1.track_skew_sectors=69"],
            &["skew over the track", "less than the 69 slots"],
        ),
        (
            &["--on", SUN, "--set", "drive.1.partition_sectors=9000"],
            &["has a list of partitions", "in `partitions`"],
        ),
        (
            &["--on", SUN, "--set", "drive.1.head_group_skew_sectors=69"],
            &["skew over the track", "less than the 69 slots"],
        ),
        (
            &["--on", SUN, "--set", "drive.1.head_group_heads=28"],
            &["more heads than the drive has", "up to the drive's 27"],
        ),
        (
            &["--on", SUN, "--set", "drive.1.data_preamble_bytes=40"],
            &["69 slots", "up to 66 slots of 614 bytes"],
        ),
        (
            &[
                "--on",
                SUN,
                "--set",
                "drive.1.partitions=[[0, 4000], [1, 99]]",
            ],
            &["two partitions share sectors"],
        ),
        (
            &[
                "--on",
                SUN,
                "--set",
                "drive.1.revectored_sectors=[[9, 400000]]",
            ],
            &["sector 400000", "the replacement of a bad sector"],
        ),
        (&["--on", "absent.toml"], &["absent.toml"]),
        (
            &["--on", VAX, "--set", "filesystem.rotdlay_ms=4"],
            &["unknown key `rotdlay_ms`", "rotdelay_ms"],
        ),
        (
            &["--on", VAX, "--set", "filesytem.rotdelay_ms=4"],
            &["filesytem"],
        ),
        (
            &["--on", VAX, "--set", "filesystem.rotdelay_us=4000"],
            &["rotdelay_us", "rotdelay_ms"],
        ),
        (
            &["--on", VAX, "--set", "filesystem.rotdelay_ms=4ms"],
            &["write the number alone"],
        ),
        (
            &["--on", VAX, "--set", "drive=eagel"],
            &["no drive `eagel`", "`eagle`"],
        ),
        (&["--on", VAX, "--set", "drive.heads=0"], &["out of range"]),
        (
            &["--on", VAX, "--set", "driver.search_lead_sectors=48"],
            &["longer than a track"],
        ),
        (
            &["--on", VAX, "--set", "filesystem.rotdelay_ms=40"],
            &["rotdelay_ms"],
        ),
        (
            &["--on", VAX, "--drives", "3"],
            &["2 configured", "--set drives=3"],
        ),
        (
            &["--on", VAX, "--drives", "2", "--set", "drives=1"],
            &["1 configured"],
        ),
        (&["--on", VAX, "--together"], &["--drives 2"]),
        (
            &["--on", VAX, "--other", "."],
            &["--other applies to real storage"],
        ),
        (
            &["--on", VAX, "--size", "1G"],
            &["not enough space", "--set drive.partition_sectors=N"],
        ),
        (
            &["--on", SUN, "--size", "1G"],
            &["not enough space", "--set drive.partitions="],
        ),
        (&["--on", VAX, "--direct"], &["cannot run", "O_DIRECT"]),
        (
            &["seqread", "--on", VAX, "--set", "program.layer=device"],
            &["cannot run", "device"],
        ),
        (
            &[
                "copy",
                "--on",
                VAX,
                "--drives",
                "2",
                "--set",
                "program.destination=other",
            ],
            &["cannot run", "another drive"],
        ),
        (
            &["--on", ".", "--drives", "2"],
            &["--drives applies to modelled systems"],
        ),
        (
            &["--on", ".", "--set", "drive.heads=3"],
            &["real storage has no component"],
        ),
        (&["--on", VAX, "--catalogue", "./absent"], &["absent"]),
    ];
    for (words, parts) in cases {
        let all: Vec<&str> = ["run"].iter().chain(*words).copied().collect();
        user.run(&all).expect(2, parts);
    }
    assert!(user.stored().is_empty(), "nothing was run");
}

#[test]
fn a_mistake_in_a_file_has_its_line_and_column() {
    let user = User::new();
    let text = "extends = \"vax780-sc780-eagle\"\n[drive]\nspindle_rpm = \"fast\"\n";
    std::fs::write(user.file("wrong.toml"), text).unwrap();
    user.run(&["run", "ffs83", "--on", "wrong.toml"])
        .expect(2, &["wrong.toml:3:15", "spindle_rpm"]);
    let folder = user.file("overlay/drives");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("mine.toml"),
        "extends = \"eagle\"\nheads = 2000\n",
    )
    .unwrap();
    let words = [
        "run",
        "ffs83",
        "--on",
        "vax780-sc780-eagle",
        "--catalogue",
        "overlay",
        "--set",
        "drive=mine",
    ];
    user.run(&words).expect(2, &["mine.toml:2:9", "1 to 255"]);
}

#[test]
fn lists_and_entries_name_what_is_near() {
    let user = User::new();
    user.run(&["show", "eagel"]).expect(2, &["`eagle`"]);
    user.run(&["list", "parameters", "vax780-uda50-ra8"])
        .expect(2, &["did you mean", "vax780-uda50-ra81"]);
    user.run(&["list", "drives", "eagle"])
        .expect(2, &["only `list parameters`"]);
    user.run(&["reproduce", "speck-bas-1984"])
        .expect(2, &["speck-bass-1984"]);
    user.run(&["reproduce", "--set", "host.sped=2"])
        .expect(2, &["sped"]);
    user.run(&["reproduce", "--cell", "nothing*"])
        .expect(2, &["no cell is"]);
}

/// The remedy is not the drive at hand.
#[test]
fn a_job_that_a_drive_refuses_is_not_sent_to_that_drive() {
    let user = User::new();
    std::fs::write(user.file("odd.fio"), "[a]\nrw=read\nbs=700\nsize=70000\n").unwrap();
    for (drive, remedy) in [
        ("bare-sata-consumer", "multiples of 512"),
        ("bare-sas-10k", "multiples of 512"),
        ("bare-sata-7200", "bare-sas-10k have 512"),
    ] {
        let refused = user.run(&words(&format!("run odd.fio --on {drive}")));
        let refused = refused.expect(2, &["whole sectors of", remedy]);
        let said = refused.stderr.rsplit("; ").next().unwrap_or_default();
        assert!(!said.contains(drive), "{}", refused.stderr);
    }
}

#[test]
fn what_is_expected_is_of_a_named_drive() {
    let user = User::new();
    for (file, catalogue) in [("mine.toml", "DIR"), ("own/drives/mine.toml", "own")] {
        let remedy = format!("diskperf show mine --expected --catalogue {catalogue}");
        user.run(&["show", file, "--expected"])
            .expect(2, &["takes the name of a drive", &remedy]);
    }
}

/// A run that failed before its first repetition ended has no results that could be saved.
#[test]
fn nothing_is_called_saved_where_nothing_was_measured() {
    let user = User::new();
    let line = "run sequential --set program.write_share=1 --set program.dsync=yes --size 1M --runs 1 --quiet --on vax780-uda50-ra81 --store /proc/none.sqlite";
    let failed = user.run(&words(line)).expect(1, &["no O_DSYNC"]);
    let said = &failed.stderr;
    assert!(!said.contains("they are saved"), "{said}");
    assert!(said.contains("nothing was measured"), "{said}");
}
