//! Drives of DiskSim's files as entries of a catalogue.

use crate::support::{User, words};
use serde_json::Value;
use std::path::PathBuf;

const FILES: [(&str, &str); 4] = [
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

/// A user with the files of a small drive in the directory `files`.
fn user() -> User {
    let user = User::new();
    std::fs::create_dir(user.file("files")).expect("a folder");
    for (name, text) in FILES {
        std::fs::write(user.file("files").join(name), text).expect("a file");
    }
    user
}

fn json(user: &User, line: &str) -> Value {
    user.run(&words(line)).expect(0, &[]).json()
}

#[test]
fn a_drive_is_imported_shown_and_run() {
    let user = user();
    user.run(&words("import files/small.parv -o mine"))
        .expect(0, &[])
        .shows(&[
            "small from small.parv: 38 KiB",
            "wrote mine/drives/small.toml",
            "wrote mine/systems/bare-small.toml",
            "files/small.diskspecs, disksim_disk SMALL:",
            "Print stats (16): affects only DiskSim's output",
            "files/small.parv, disksim_global Global:",
            "Init Seed (2): a trace or a program generates the load",
            "modelled in another way: Extra write disconnect: the files have 1, and the drive acts as with 0",
            "diskperf run today26 --on bare-small --catalogue mine",
        ]);
    let shown = user
        .run(&words("show drive/small --catalogue mine"))
        .expect(0, &[])
        .shows(&[
            "SMALL, as DiskSim's small.parv has it",
            "zone",
            "sectors/track",
            "cylinders",
            "[0, 3, 10, ",
        ]);
    assert!(!shown.stdout.contains("\\u000a"), "{shown:?}");
    let shown = json(&user, "show drive/small --catalogue mine --format json");
    assert!(!shown["zones"].as_array().expect("zones").is_empty());
    let line = "run random --direct --on bare-small --catalogue mine --size 8K --set program.block_bytes=512 --set program.area_bytes=32K --runs 2 --quiet --format json";
    let run = json(&user, line);
    assert!(run["runs"][0]["results"][0]["iops"].as_f64() > Some(1.0));
}

#[test]
fn a_trace_beside_the_files_is_noticed() {
    let user = user();
    let line = "import files/small.parv -o mine --format json";
    let found = json(&user, line);
    assert!(found["drives"][0]["trace_beside"].is_null(), "{found}");
    std::fs::write(user.file("files/small.trace"), "R Miss 8 4 9000.0 100.0\n").expect("a trace");
    let found = json(&user, &format!("{line} --replace"));
    assert_eq!(found["drives"][0]["trace_beside"], "files/small.trace");
    user.run(&words("import files/small.parv -o other"))
        .expect(0, &[])
        .shows(&[
            "files/small.trace lies beside it",
            "--calibrate files/small.trace",
        ]);
}

/// A trace of another drive is told from its own: by a request that lies beyond it, or by times
/// that its platters do not have.
#[test]
fn the_trace_of_another_drive_is_noticed() {
    let user = user();
    let trace = user.file("files/other.trace");
    let line = "import files/small.parv -o mine --calibrate files/other.trace";
    std::fs::write(
        &trace,
        "R Miss 8 4 9000.0 100.0\nR Miss 90 4 9000.0 100.0\n",
    )
    .expect("a trace");
    user.run(&words(line)).expect(
        2,
        &[
            "request 2 of the trace, at block 90, exceeds the drive's",
            "check that the trace is of this drive",
        ],
    );
    // By itself a trace has to show a platter.
    user.run(&words("import files/other.trace -o theirs"))
        .expect(
            2,
            &[
                "other.trace: the trace does not show the turning of a platter",
                "--calibrate TRACE",
            ],
        );
    let times = (0..400).map(|number: u64| {
        let block = number * 37 % 70;
        let service_us = 3000 + number * number * 7919 % 40_000;
        format!("R Miss {block} 4 {service_us}.0 100.0\n")
    });
    std::fs::write(&trace, times.collect::<String>()).expect("a trace");
    user.run(&words(line)).expect(0, &[]).shows(&[
        "fitted to the first 200 of 400 requests of the trace: R 0.",
        "no phase",
        "warning: the trace does not fit this drive, so what was fitted is not its own",
        "Check that the trace and the files are of one drive",
        "next: diskperf show small --catalogue mine",
        "diskperf run today26 --on bare-small --catalogue mine",
    ]);
    let found = json(&user, &format!("{line} --replace --format json"));
    let drive = &found["drives"][0];
    assert_eq!(drive["fit"]["fits"], false);
    assert_eq!(drive["fit"]["phase"]["think"], "unknown");
    assert_eq!(drive["fitted_drive"], "small-fitted");
    let csv = user.run(&words(&format!("{line} --replace --format csv")));
    let csv = csv.expect(0, &[]).stdout;
    assert!(csv.contains(",requests,r,period_us,ppm,"), "{csv}");
    assert!(csv.contains(",400,0."), "{csv}");
}

#[test]
fn a_model_without_electronics_is_a_drive_too() {
    let user = user();
    let found = json(&user, "import files/small.model -o mine --format json");
    let differs = found["drives"][0]["differs"].to_string();
    assert!(differs.contains("no electronics"), "{differs}");
    let line =
        "calculate disk --on bare-small --catalogue mine --block 512 --requests 100 --format json";
    assert_eq!(
        json(&user, line)["depths"].as_array().map(Vec::len),
        Some(7)
    );
}

/// A drive of patterns, with a slip, and a block that lies behind all others.
const PATTERNS: &str = "dm_disk D { Block count = 79, Number of cylinders = 4,
    Number of data surfaces = 2, Layout Model = dm_layout_g4 { TP = [ 0, 9, 10 ],
    IDX = [ [ 0, 0, 0.0, 10, 1, 0.15, 40, 4, TRACK, 0, 0, 40, 3, 0.0, 10, -1, 0.15, 40, 4,
    TRACK, 0, 1 ] ], Slips = [ 5, 1 ], Remaps = [ 12, 1, 4, 0, 3, 10 ] },
    Mechanical Model = dm_mech_g1 { Access time type = trackSwitchPlusRotation,
    Seek type = constant, Constant seek time = 2.5, Head switch time = 0.5,
    Add. write settling delay = 0.0, Rotation speed (in rpms) = 6000 } }";

#[test]
fn a_layout_of_patterns_is_a_list_of_runs() {
    let user = User::new();
    std::fs::write(user.file("patterns.model"), PATTERNS).expect("a file");
    user.run(&words("import patterns.model -o mine"))
        .expect(0, &[])
        .shows(&[
            "patterns from patterns.model: 39.5 KiB, 11 runs of sectors",
            "Number of cylinders: the files say 4, and have sectors on cylinder 4; the modelled drive has 5",
        ]);
    let entry = std::fs::read_to_string(user.file("mine/drives/patterns.toml")).expect("an entry");
    for row in [
        "[0, 5, 0, 0, 0, 10, 0]",
        "[5, 4, 0, 0, 6, 10, 0.6]",
        "[12, 1, 4, 0, 3, 10, ",
    ] {
        assert!(entry.contains(row), "{row}: {entry}");
    }
    let line = "run random --direct --on bare-patterns --catalogue mine --size 8K --set program.block_bytes=512 --set program.area_bytes=32K --runs 2 --quiet --format json";
    let iops = json(&user, line)["runs"][0]["results"][0]["iops"].as_f64();
    // A turn is 10 ms, and any way 2.5.
    assert!(iops > Some(80.0) && iops < Some(400.0), "{iops:?}");
}

/// Of what is there already, nothing is lost, and of what cannot be, nothing is written.
#[test]
fn nothing_is_replaced_or_half_written() {
    let user = user();
    let line = "import files/small.parv -o mine";
    user.run(&words(line)).expect(0, &[]);
    let entry = user.file("mine/drives/small.toml");
    std::fs::write(&entry, "mine\n").expect("an entry");
    user.run(&words(line))
        .expect(2, &["mine/drives/small.toml is there already", "--replace"]);
    assert_eq!(std::fs::read_to_string(&entry).expect("an entry"), "mine\n");
    user.run(&words(&format!("{line} --replace")))
        .expect(0, &[]);
    assert!(
        std::fs::read_to_string(&entry)
            .expect("an entry")
            .contains("zone_table")
    );
    let both = "import files/small.parv files/small.diskspecs -o other";
    user.run(&words(both))
        .expect(2, &["two drives would both be"]);
    user.run(&words("import files/small.parv files/absent.parv -o other"))
        .expect(2, &["absent.parv"]);
    assert!(!user.file("other").exists());
}

/// Files that are wrong, by what is changed in the model, and what is said.
#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    let cases: [(&str, &str, &[&str]); 6] = [
        (
            "dm_layout_g1 {",
            "dm_layout_g3 {",
            &["small.model:", "dm_layout_g3"],
        ),
        (
            "Last cylinder number = 3",
            "Last cylinder number = 300000000",
            &["small.model:20:36", "at most 99999999"],
        ),
        (
            "Blocks per track",
            "Blobs per track",
            &["small.model:", "Blobs per track"],
        ),
        (
            "Head switch time",
            "Head swatch time",
            &["small.model:", "Head swatch time"],
        ),
        ("dm_disk", "source small.model dm_disk", &["small.model"]),
        ("}", "", &["small.model:"]),
    ];
    for (from, to, says) in cases {
        let user = user();
        let model = FILES[2].1;
        assert!(model.contains(from), "{from}: {model}");
        let changed = match to.is_empty() {
            // The last one.
            true => model
                .trim_end()
                .strip_suffix(from)
                .expect("an end")
                .to_owned(),
            false => model.replacen(from, to, 1),
        };
        std::fs::write(user.file("files/small.model"), changed).expect("a file");
        user.run(&words("import files/small.parv -o mine"))
            .expect(2, says);
        assert!(!user.file("mine").exists(), "{from}");
    }
}

/// Drives that DiskSim reads and no entry of the catalogue can be: by what is changed in
/// which file, and what is said of it. Nothing is written.
#[test]
fn what_cannot_be_modelled_is_refused_where_it_stands() {
    let three = |single, average, full| {
        format!(
            "Seek type = curve, Single cylinder seek time = {single}, Average seek time = {average}, Full strobe seek time = {full}, Constant seek time"
        )
    };
    let cases: [(&str, String, &[&str]); 3] = [
        (
            "Seek type = constant, Constant seek time",
            three(9, 8, 5),
            &["seek_average_ms", "no rising curve", "Average seek time"],
        ),
        (
            "Seek type = constant, Constant seek time",
            three(1, 15, 16),
            &["seek_average_ms", "no rising curve", "Average seek time"],
        ),
        (
            "Number of data surfaces = 2",
            "Number of data surfaces = 300".to_owned(),
            &["heads", "Number of data surfaces"],
        ),
    ];
    for (from, to, says) in cases {
        let user = User::new();
        assert!(PATTERNS.contains(from), "{from}");
        std::fs::write(user.file("patterns.model"), PATTERNS.replacen(from, &to, 1))
            .expect("a file");
        let refused = user.run(&words("import patterns.model -o mine"));
        let refused = refused.expect(
            2,
            &["the drive patterns cannot be modelled", "patterns.model:"],
        );
        for part in says {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
        assert!(!user.file("mine").exists(), "{to}");
    }
}

/// A setting that makes no curve is named where it was written, and nothing else.
#[test]
fn a_seek_time_that_cannot_be_names_its_own_key() {
    let user = User::new();
    let run = user.run(&words(
        "run random --direct --on bare-sata-7200 --set drive.seek_average_ms=20 --quiet",
    ));
    let run = run.expect(2, &["`seek_average_ms`", "no rising curve", "--set"]);
    assert!(!run.stderr.contains("capacity_bytes"), "{}", run.stderr);
}

/// Every drive of the folder runs; with what was fitted it replays the half of its trace that
/// nothing was fitted to with the figures that the fit was scored with.
#[test]
fn measured_drives_are_imported_and_run() {
    let Some(data) = std::env::var_os("DISKPERF_DRIVES").map(PathBuf::from) else {
        eprintln!(
            "SKIPPED measured_drives_are_imported_and_run: DISKPERF_DRIVES names no folder of measured drives"
        );
        return;
    };
    let user = User::new();
    let file = |name: &str| data.join(name).display().to_string();
    user.run(&words(&format!(
        "import {} -o mixed --calibrate {}",
        file("atlas10k.parv"),
        file("barracuda.trace")
    )))
    .expect(0, &[])
    .shows(&["no phase", "warning: the trace does not fit this drive"]);
    let line = format!(
        "reproduce real-drives --data {} --format json",
        data.display()
    );
    let reproduced = json(&user, &line);
    let entries = std::fs::read_dir(&data).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    for path in paths.filter(|path| path.extension().is_some_and(|of| of == "parv")) {
        let trace = path.with_extension("trace");
        let line = format!(
            "import {} -o mine --calibrate {} --format json",
            path.display(),
            trace.display()
        );
        let found = json(&user, &line);
        let drive = &found["drives"][0];
        let share = |of: &str| {
            let share = drive["replays"][of]["within_half_ms_percent"].as_f64();
            share.expect("a share")
        };
        let [filed, fitted] = ["filed", "fitted"].map(share);
        assert!(fitted > filed + 5.0, "{}: {filed} {fitted}", path.display());
        let name = path.file_stem().expect("a name").to_string_lossy();
        let scored = reproduced["drives"].as_array().expect("rows").iter();
        let scored = scored.clone().find(|one| one["name"] == *name);
        let scored = scored.expect("the drive's row")["within_half_ms_percent"].as_f64();
        assert_eq!(Some(fitted), scored, "{}", path.display());
        assert_eq!(drive["fit"]["fits"], true, "{drive}");
        assert!(drive["fit"]["phase"]["r"].as_f64() > Some(0.99), "{drive}");
        let systems = ["system", "fitted_system"].map(|key| drive[key].as_str().expect("a name"));
        for system in systems {
            let line = format!(
                "run random --direct --on {system} --catalogue mine --size 1M --runs 2 --quiet --format json"
            );
            let iops = json(&user, &line)["runs"][0]["results"][0]["iops"].as_f64();
            assert!(
                iops > Some(50.0) && iops < Some(250.0),
                "{system}: {iops:?}"
            );
        }
    }
}

/// Values that DiskSim accepts and a modelled drive does not: by what is changed in which file,
/// and what is said. The drive is imported, and runs.
#[test]
fn a_value_beyond_the_model_is_accepted_and_said() {
    let cases = [
        (
            2,
            "rpms) = 6000",
            "rpms) = 1",
            "Rotation speed (in rpms): the files make it 1, and `spindle_rpm` of a modelled drive is from 60 to 30000; taken as 60",
        ),
        (
            2,
            "Number of cylinders = 4",
            "Number of cylinders = 1",
            "the zones have 3 cylinders more than the drive's 1",
        ),
        (
            1,
            "Max queue length = 1",
            "Max queue length = 2147483647",
            "taken as 65536",
        ),
        (
            1,
            "over requested = 1",
            "over requested = -1",
            "small from small.parv",
        ),
        (
            1,
            "Preseeking level = 0",
            "Preseeking level = 2",
            "modelled in another way: Preseeking level: the files have 2, and the drive acts as with 0",
        ),
    ];
    for (file, from, to, says) in cases {
        let user = user();
        let (name, text) = FILES[file];
        assert!(text.contains(from), "{from}");
        std::fs::write(user.file("files").join(name), text.replacen(from, to, 1)).expect("a file");
        user.run(&words("import files/small.parv -o mine"))
            .expect(0, &[])
            .shows(&[says]);
        user.run(&words("show drive/small --catalogue mine"))
            .expect(0, &[]);
    }
}

/// Values that DiskSim refuses: by what is changed, the place, the range and the remedy.
#[test]
fn a_value_out_of_range_is_refused_with_its_range() {
    let cases = [
        (
            "over requested = 1",
            "over requested = -2",
            [
                "small.diskspecs:46:32",
                "a whole number from -1 to 1",
                "write `Read-ahead over requested = -1`",
            ],
        ),
        (
            "over requested = 1",
            "over requested = 2",
            [
                "small.diskspecs:46:32",
                "a whole number from -1 to 1",
                "write `Read-ahead over requested = 1`",
            ],
        ),
        (
            "water mark = 0.5",
            "water mark = 1.5",
            [
                "small.diskspecs:39:29",
                "a number from 0 to 1",
                "write `High (read) water mark = 1.0`",
            ],
        ),
        (
            "blks) = 8",
            "blks) = 40",
            [
                "small.diskspecs:45:32",
                "from 0 to 32, `Segment size (in blks)`",
                "write `Maximum read-ahead (blks) = 32`",
            ],
        ),
    ];
    for (from, to, says) in cases {
        let user = user();
        let text = FILES[1].1;
        assert!(text.contains(from), "{from}");
        std::fs::write(
            user.file("files/small.diskspecs"),
            text.replacen(from, to, 1),
        )
        .expect("a file");
        user.run(&words("import files/small.parv -o mine"))
            .expect(2, &says);
        assert!(!user.file("mine").exists());
    }
}
