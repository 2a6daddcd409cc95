//! Where a modelled run's time went, and why two differ.

use crate::support::{User, words};
use serde_json::Value;

const WRITE: &str = "write_8192 --size 1M --runs 2";
const EAGLE: &str = "vax780-sc780-eagle";

fn sum(ledger: &Value) -> u64 {
    let lines = ledger.as_array().expect("a ledger");
    lines
        .iter()
        .map(|line| line["ns"].as_u64().expect("ns"))
        .sum()
}

#[test]
fn a_stored_run_is_made_again_and_accounted_for() {
    let user = User::new();
    let line = format!("run {WRITE} --on {EAGLE} --set filesystem.rotdelay_ms=7 --label mine");
    user.run(&words(&line)).expect(0, &[]);
    user.run(&words("explain mine")).expect(0, &[]).shows(&[
        "Explained: write_8192 on vax780-sc780-eagle with filesystem.rotdelay_ms=7 (run ",
        "Each request of 8 KB takes",
        "the program's time",
        "processor and a drive at once",
        "with this changed",
        "gain",
    ]);
    let found = user
        .run(&words("explain --format json"))
        .expect(0, &[])
        .json();
    let program = &found["programs"][0];
    assert_eq!(program["program"], "write_8192");
    assert_eq!(program["filesystem"], "ffs/8192");
    assert_eq!(program["drives"], 1);
    let elapsed = program["elapsed_ns"].as_u64().expect("ns");
    assert_eq!(sum(&program["ledger"]), elapsed);
    assert!(
        program["utilisation"]["processor"]
            .as_f64()
            .expect("a share")
            > 0.5
    );
    assert!(
        program["verdict"]
            .as_str()
            .expect("a text")
            .contains("processor")
    );
    let changed = &program["counterfactuals"][0];
    assert!(changed["elapsed_ns"].as_u64().expect("ns") < elapsed);
    assert!(changed["gain"].as_f64().expect("a share") > 0.0);
    assert_eq!(user.stored().len(), 1, "what is made again is not kept");
}

#[test]
fn a_system_runs_its_suite_and_two_drives_have_a_ledger_each() {
    let user = User::new();
    let line = format!("explain {EAGLE} --suite {WRITE} --drives 2 --no-counterfactuals");
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "on 2 drives at once",
        "last to end",
        "program 2",
    ]);
    let json = user
        .run(&words(&format!("{line} --format json")))
        .expect(0, &[])
        .json();
    let program = &json["programs"][0];
    assert_eq!(
        sum(&program["ledger"]),
        program["elapsed_ns"].as_u64().expect("ns")
    );
    let own = program["ledgers"].as_array().expect("ledgers");
    assert_eq!(own.len(), 2);
    for one in own {
        assert_eq!(sum(&one["ledger"]), one["elapsed_ns"].as_u64().expect("ns"));
    }
    let csv = user
        .run(&words(&format!("{line} --format csv")))
        .expect(0, &[]);
    assert!(
        csv.stdout
            .starts_with("program,filesystem,drives,kind,name,cause,ns,share,gain\r\n")
    );
    user.run(&words(&format!("{line} --format markdown")))
        .expect(0, &[])
        .shows(&["## Explained"]);
}

/// What lasts a time takes as long in both: the time of each request differs.
#[test]
fn programs_that_last_a_time_differ_in_the_time_of_each_request() {
    let user = User::new();
    let line = "explain bare-sata-7200 --suite random --set program.depth=32 --set program.area_bytes=7T --set program.duration_ms=1000 --runs 2 --change drive.queue_policy=fcfs";
    let told = user.run(&words(line)).expect(0, &[]);
    let told = told.shows(&[
        "for each request",
        "random",
        "runs for a fixed time",
        "B takes",
    ]);
    assert!(!told.stdout.contains("laid out differently"), "{told:?}");
    let json = user.run(&words(&format!("{line} --format json")));
    let json = json.expect(0, &[]).json();
    let program = &json["programs"][0];
    let [a, b] = ["a", "b"].map(|side| {
        let number = |of: &str| program[format!("{side}_{of}")].as_f64().unwrap();
        (number("elapsed_ns"), number("requests"))
    });
    // The queue is served in a worse order, and the times are for as many requests.
    assert!(a.1 > 1.2 * b.1, "{program}");
    // What is in flight at the end of the second takes longer in a worse order, too.
    let slower = (b.0 / a.0) / (a.1 / b.1);
    assert!((0.9..1.4).contains(&slower), "{slower}: {program}");
    let sum = |of: &str| -> i64 {
        let all = program[of].as_array().unwrap().iter();
        let key = if of == "parts" { "ns" } else { "difference_ns" };
        all.map(|one| one[key].as_i64().unwrap()).sum()
    };
    let difference = program["difference_ns"].as_i64().unwrap();
    assert_eq!(sum("parts"), difference);
    assert!((sum("stages") - difference).abs() < 10, "{program}");
}

#[test]
fn a_change_is_taken_apart() {
    let user = User::new();
    let line = format!(
        "explain {EAGLE} --suite read_8192 --size 1M --runs 2 --change driver.search_lead_sectors=2"
    );
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "Why they differ",
        "point to the driver",
        "transfer command too late",
        "driver.search_lead_sectors: 7 to 2",
        "100.0 %",
    ]);
    let json = user
        .run(&words(&format!("{line} --format json")))
        .expect(0, &[])
        .json();
    let program = &json["programs"][0];
    let difference = program["difference_ns"].as_i64().expect("ns");
    let part = program["parts"][0]["ns"].as_i64().expect("ns");
    assert!(difference > 0);
    assert_eq!(part, difference);
    assert_eq!(program["diagnosis"]["component"], "driver");
}

/// Every repetition lays a new file elsewhere. Of the two, the repetitions in the middle
/// by elapsed time may be different ones, which is nothing that differs.
#[test]
fn a_file_made_anew_is_no_difference() {
    let user = User::new();
    for change in ["driver.search_lead_sectors=2", "driver.complete_ms=3"] {
        let line = format!("explain {EAGLE} --suite write_8192 --size 4M --change {change}");
        let told = user.run(&words(&line)).expect(0, &[]);
        let told = told.shows(&["point to the driver", "through a missed deadline"]);
        assert!(!told.stdout.contains("laid out"), "{change}: {told:?}");
    }
}

#[test]
fn a_run_on_more_drives_moves_more() {
    let user = User::new();
    let line = format!("explain {EAGLE} --suite {WRITE} --drives 1 --drives 2");
    user.run(&words(&line))
        .expect(0, &[])
        .shows(&["B moves 2 times as much as A, at "]);
}

/// A run in a file, with something of it changed.
fn tampered(user: &User, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(user.file("run.json")).expect("the export");
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut file["runs"][0]);
    std::fs::write(user.file("other.json"), file.to_string()).expect("a file");
}

#[test]
fn what_is_no_longer_the_same_is_refused() {
    let user = User::new();
    user.run(&words(&format!("run {WRITE} --on {EAGLE}")))
        .expect(0, &[]);
    user.run(&words("export last -o run.json")).expect(0, &[]);
    user.run(&words("explain run.json --no-counterfactuals"))
        .expect(0, &[]);
    tampered(&user, |run| {
        run["model"]["model_version"] = "0.0.1+0".into();
        run["model"]["fingerprint"] = "0".into();
    });
    user.run(&words("explain other.json"))
        .expect(2, &["model 0.0.1+0", "run it again"]);
    tampered(&user, |run| {
        run["model"]["fingerprint"] = "0".into();
        let files = run["model"]["catalogue"].as_object_mut().expect("files");
        let (_, text) = files.iter_mut().next().expect("a file");
        *text = "description = \"another\"".into();
    });
    user.run(&words("explain other.json"))
        .expect(2, &["catalogue has changed", "run it again"]);
    tampered(&user, |run| {
        run["experiment"]["workload"]["steps"]["steps"][0]["parameters"]["call_bytes"] =
            "512".into();
    });
    user.run(&words("explain other.json"))
        .expect(2, &["a different run", "run it again"]);
    tampered(&user, |run| {
        run["experiment"]["workload"]["steps"]["protocol"]["discarded"] = 100.into();
    });
    user.run(&words("explain other.json"))
        .expect(2, &["no repetition is left", "100 are discarded"]);
}

/// Runs of 0.1.0 have no experiment.
#[test]
fn a_run_without_an_experiment_is_made_again_by_its_command_line() {
    let user = User::new();
    let line = format!(
        "run --suite {WRITE} --on {EAGLE} --drives=2 --seed 7 --no-latency \
         --set filesystem.rotdelay_ms=2 --set=program.think_ns=1000 --label old"
    );
    user.run(&words(&line)).expect(0, &[]);
    user.run(&words("export old -o run.json")).expect(0, &[]);
    tampered(&user, |run| {
        let run = run.as_object_mut().expect("a run");
        run.remove("experiment").expect("it was kept");
    });
    let explained = user.run(&words(
        "explain other.json --no-counterfactuals --format json",
    ));
    let kept = user.run(&words("explain old --no-counterfactuals --format json"));
    assert_eq!(explained.expect(0, &[]).json(), kept.expect(0, &[]).json());
    tampered(&user, |run| {
        let run = run.as_object_mut().expect("a run");
        run.remove("experiment").expect("it was kept");
        let line = vec!["diskperf", "list"];
        run.insert("command_line".to_owned(), line.into());
    });
    user.run(&words("explain other.json"))
        .expect(2, &["command line", "diskperf list"]);
}

/// Addresses are told in bytes: sectors of other lengths are no other layout.
#[test]
fn two_drives_have_no_file_system_between_them() {
    let user = User::new();
    let line = "explain bare-sata-7200 bare-sas-10k --suite random --size 1M";
    let shown = user.run(&words(line)).expect(0, &[]);
    assert!(!shown.has("filesystem"), "{shown:?}");
    // The same programs in another order are that.
    let sections = ["[a]\nstonewall\nsize=1m\n", "[b]\nstonewall\nsize=2m\n"];
    for (name, order) in [("one-order", [0, 1]), ("other-order", [1, 0])] {
        let text = order.map(|number| sections[number]).concat();
        let options = "[global]\nrw=read\nfilename=/dev/drive0\n";
        std::fs::write(user.file("order.fio"), format!("{options}{text}")).expect("a job file");
        let run = format!("run order.fio --on bare-sata-7200 --quiet --label {name}");
        user.run(&words(&run)).expect(0, &[]);
    }
    user.run(&words("explain one-order other-order"))
        .expect(2, &["the same in another order"]);
    // Of different sizes only what differs is named, with what helps.
    for (system, size) in [("bare-sata-7200", "1M"), ("bare-sas-10k", "2M")] {
        let run = format!(
            "run today26 --on {system} --size {size} --runs 1 --quiet --label {system}-run"
        );
        user.run(&words(&run)).expect(0, &[]);
    }
    user.run(&words("explain bare-sata-7200-run bare-sas-10k-run"))
        .expect(
            2,
            &[
                "of 1048576 bytes here",
                "of 2097152 bytes there",
                "give both the same --size",
            ],
        );
}

/// Job files are the same programs however and wherever they are written; where they are not,
/// the options that differ are named.
#[test]
fn job_files_are_told_apart_by_what_they_do() {
    let user = User::new();
    let job = "[r]\nrw=randread\nbs=4k\niodepth=4\ndirect=1\nioengine=io_uring\nfilename=/dev/drive0\nsize=64m\nnumber_ios=100\n";
    let run = |name: &str, text: &str, target: &str, label: &str| {
        std::fs::write(user.file(name), text).expect("a job file");
        let line = format!("run {name} --on {target} --quiet --label {label}");
        user.run(&words(&line)).expect(0, &[]);
    };
    run("one.fio", job, "bare-sata-7200", "first");
    let written = format!("; of another day\n{}", job.replace("64m", "65536k"));
    run("other.fio", &written, "bare-sas-10k", "second");
    user.run(&words("explain first second --no-counterfactuals"))
        .expect(0, &[])
        .shows(&["drive: sata-7200 to sas-10k"]);
    run(
        "deep.fio",
        &job.replace("iodepth=4", "iodepth=8\nbsrange=4k-4k"),
        "bare-sata-7200",
        "third",
    );
    user.run(&words("explain first third")).expect(
        2,
        &[
            "ran r with different settings",
            "bsrange is not given and `4k-4k`",
            "iodepth is `4` and `8`",
        ],
    );
}

#[test]
fn what_cannot_be_explained_says_why() {
    let user = User::new();
    user.run(&words("explain last")).expect(2, &["run"]);
    user.run(&words("explain vax781"))
        .expect(2, &["vax781", "diskperf list systems"]);
    user.run(&words(&format!("explain {EAGLE} --suite nothing")))
        .expect(2, &["nothing"]);
    user.run(&words(&format!("run {WRITE} --on {EAGLE}")))
        .expect(0, &[]);
    user.run(&words("explain last --size 2M"))
        .expect(2, &["repeated exactly", "--size"]);
    user.run(&words("explain last --change driver.search_lead_sectors=2"))
        .expect(2, &["--change takes one modelled system"]);
    user.run(&words(
        "run read_8192 --size 1M --on vax780-sc780-eagle --label reads",
    ))
    .expect(0, &[]);
    user.run(&words("explain last reads --no-counterfactuals"))
        .expect(0, &[]);
    user.run(&words(&format!("run {WRITE} --on {EAGLE} --label writes")))
        .expect(0, &[]);
    user.run(&words("explain reads writes"))
        .expect(2, &["different programs", "read_8192", "write_8192"]);
    user.run(&words(&format!("explain {EAGLE} --direct")))
        .expect(2, &["O_DIRECT", "4.2BSD cannot bypass its buffer cache"]);
}

/// A drive by itself has no kernel, host, bus or interrupt: neither its parameters nor an
/// explanation name one.
#[test]
fn a_drive_by_itself_is_explained_without_a_computer() {
    let user = User::new();
    let foreign = [
        "kernel",
        "host",
        "bus",
        "interrupt",
        "interrupts",
        "processor",
    ];
    for line in [
        "explain bare-sata-7200 --suite random",
        "explain bare-nvme-tlc --suite random --set program.depth=32",
        "explain bare-fixed --suite random --set program.depth=200",
    ] {
        let shown = user.run(&words(line)).expect(0, &[]).stdout.to_lowercase();
        let said = shown.split(|character: char| !character.is_alphanumeric());
        let named: Vec<&str> = said.filter(|word| foreign.contains(word)).collect();
        assert!(named.is_empty(), "{line}: {named:?}\n{shown}");
    }
    for system in ["bare-nvme-tlc", "bare-sata-7200", "bare-fixed"] {
        let line = format!("list parameters {system} --format json");
        let parameters = user.run(&words(&line)).expect(0, &[]).json();
        let parameters = parameters["parameters"].as_array().expect("parameters");
        assert!(!parameters.is_empty());
        for parameter in parameters {
            let path = parameter["path"].as_str().expect("a path");
            assert!(path.starts_with("drive."), "{system}: {path}");
        }
    }
}

/// What the link takes beside the medium is what the medium does not hide: it is said.
#[test]
fn the_share_of_a_link_says_what_it_counts() {
    let user = User::new();
    let line = "explain bare-sata-7200 --suite sequential --size 64M --set program.area_bytes=1G --no-counterfactuals";
    user.run(&words(line)).expect(0, &[]).shows(&[
        "link of drive 1",
        "interface transfer: time of data on the drive's link while no sector of the request",
    ]);
    let historic = "explain vax780-sc780-eagle --suite read_8192 --size 256K --no-counterfactuals";
    let shown = user.run(&words(historic)).expect(0, &[]);
    assert!(
        !shown.stdout.contains("interface transfer: time of data"),
        "{}",
        shown.stdout
    );
}

/// The link, the controller, the channels and the dies of a drive are components of their own:
/// the verdict names the one that requests keep busy, and the table has its share.
#[test]
fn the_verdict_names_the_part_of_a_drive_that_is_busy() {
    let user = User::new();
    let rows: [(&str, &[(&str, &str)]); 2] = [
        (
            "bare-nvme-tlc",
            &[
                (
                    "1 MiB sequential read, QD8",
                    "Bottleneck: the link of drive 1,",
                ),
                (
                    "1 MiB sequential write, QD8",
                    "Bottleneck: the link of drive 1,",
                ),
                (
                    "4 KiB random read, QD1",
                    "No component is busy all the time:",
                ),
                (
                    "4 KiB random read, QD32",
                    "Bottleneck: the controller of the drive,",
                ),
            ],
        ),
        (
            "bare-smr-5400",
            &[
                (
                    "1 MiB sequential write, QD8",
                    "Bottleneck: the link of drive 1,",
                ),
                (
                    "4 KiB random read, QD1",
                    "Bottleneck: the drive, busy 100 %",
                ),
                (
                    "4 KiB random write, QD1",
                    "No component is busy all the time: the controller",
                ),
                (
                    "4 KiB random write, QD32",
                    "Bottleneck: the controller of the drive,",
                ),
            ],
        ),
    ];
    for (system, programs) in rows {
        let line = format!("explain {system} --suite today26 --size 16M --no-counterfactuals");
        let shown = user.run(&words(&line)).expect(0, &[]);
        assert!(
            !shown.stdout.contains("0.00 revolutions"),
            "{}",
            shown.stdout
        );
        for (program, verdict) in programs {
            let rest = shown.stdout.split(&format!("{program}, raw")).nth(1);
            let rest = rest.unwrap_or_else(|| panic!("{program} is in {}", shown.stdout));
            let first = rest.lines().nth(1).unwrap_or_default();
            assert!(first.starts_with(verdict), "{system}, {program}: {first}");
        }
        let found = user
            .run(&words(&format!("{line} --format json")))
            .expect(0, &[])
            .json();
        for program in found["programs"].as_array().expect("programs") {
            let used = &program["utilisation"];
            let parts = used["parts"].as_array().expect("parts").iter();
            let links = used["links"].as_array().expect("links").iter();
            let shares = parts.map(|part| &part["share"]).chain(links);
            for share in shares {
                let share = share.as_f64().expect("a share");
                assert!((0.0..=1.000_001).contains(&share), "{system}: {program}");
            }
        }
    }
}

/// The largest cost of a drive by itself is among those that are removed or halved, whether its
/// parameter is a number or a list.
#[test]
fn the_largest_cost_of_a_drive_has_a_counterfactual() {
    let user = User::new();
    // Settings, and the change that takes from the largest cost.
    let cases = [
        (
            "bare-nvme-tlc --set drive.past=random",
            "flash reads twice as fast",
        ),
        (
            "bare-nvme-qlc --set drive.past=random",
            "flash reads twice as fast",
        ),
        (
            "bare-nvme-lowlatency --set drive.past=random",
            "flash reads twice as fast",
        ),
        ("bare-sata-7200", "no rotational latency"),
        ("bare-fixed", "service twice as fast"),
    ];
    for (system, change) in cases {
        let line = format!(
            "explain {system} --suite random --set program.depth=1 --size 1M --format json"
        );
        let found = user.run(&words(&line)).expect(0, &[]).json();
        let program = &found["programs"][0];
        let ledger = program["ledger"].as_array().expect("a ledger");
        let ns = |line: &Value| line["ns"].as_f64().expect("ns");
        let largest = ledger.iter().map(ns).fold(0.0, f64::max);
        let share = largest / program["elapsed_ns"].as_f64().expect("ns");
        let changes = program["counterfactuals"].as_array().expect("changes");
        let made = changes.iter().find(|one| one["change"] == change);
        let made = made.unwrap_or_else(|| panic!("{line}: no `{change}`: {changes:?}"));
        let gain = made["gain"].as_f64().expect("a gain");
        assert!(
            gain > 0.4 * share && gain <= share + 0.01,
            "{line}: {change} gains {gain} of {share}"
        );
    }
}
