//! What standard output holds: the JSON contract, CSV, Markdown and tables of
//! every suite and program.

use crate::support::{Outcome, User, words};
use serde_json::Value;

/// What is run, with how many results on a directory without `--other`.
const WHAT: &[(&str, usize)] = &[
    ("ffs83", 4),
    ("seqread89", 25),
    ("vme87 --other ./other", 15),
    ("vme87", 11),
    ("read_8192", 1),
    ("write_4096", 1),
    ("write_8192", 1),
    ("rewrite_8192", 1),
    (
        "seqread --set program.layer=direct --set program.call_bytes=64K",
        1,
    ),
    ("copy --set program.destination=same", 1),
    (
        "scan --set program.areas=different --set program.offset_ms=0",
        1,
    ),
    ("random_mix --set program.area_bytes=1M", 1),
    (
        "random_mix --set program.area_bytes=1M --set program.write_share=0 --direct",
        1,
    ),
    ("write_8192 --set program.think_ns=1000", 1),
    ("populate", 1),
    ("fsck --set program.checkers=3 --set program.offset_ms=0", 1),
    ("metadata", 1),
    (
        "metadata --set program.phases=create+unlink --set program.fsync=none",
        1,
    ),
    ("fsck --cache warm", 1),
    ("dump_restore", 1),
    (
        "dump_restore --other ./other --set program.destination=other",
        1,
    ),
    ("read_8192 --no-latency --cache warm", 1),
];

/// What a field must be.
#[derive(Clone, Copy, Debug)]
enum Type {
    Text,
    /// A number that is not negative.
    Number,
    /// A number, or null.
    NumberOrNull,
    /// An object with `low` and `high`, or null.
    IntervalOrNull,
    Array,
}

use Type::{Array, IntervalOrNull, Number, NumberOrNull, Text};

const RUN: &[(&str, Type)] = &[
    ("id", Text),
    ("suite", Text),
    ("target", Text),
    ("world", Text),
    ("seed", Number),
    ("results", Array),
    ("version", Text),
    ("command_line", Array),
    ("started_unix_ms", Number),
];

const RESULT: &[(&str, Type)] = &[
    ("program", Text),
    ("drives", Number),
    ("filesystem", Text),
    ("size_bytes", Number),
    ("kb_per_s", Number),
    ("durable_kb_per_s", NumberOrNull),
    ("cpu_percent", Number),
    ("elapsed_s", Number),
    ("interval", IntervalOrNull),
    ("repetitions", Array),
];

const ENVIRONMENT: &[(&str, Type)] = &[
    ("kernel", Text),
    ("cpu_model", Text),
    ("cpus", Number),
    ("memory_bytes", Number),
    ("load_average", Number),
    ("places", Array),
];

#[track_caller]
fn check(object: &Value, fields: &[(&str, Type)], what: &str) {
    for (name, kind) in fields {
        let value = &object[name];
        let number = value.as_f64().is_some_and(|number| number >= 0.0);
        // A field that is absent reads as null, and is not the same.
        let null = value.is_null() && object.get(name).is_some();
        let right = match kind {
            Text => value.is_string(),
            Number => number,
            NumberOrNull => number || null,
            IntervalOrNull => null || (value["low"].is_number() && value["high"].is_number()),
            Array => value.is_array(),
        };
        assert!(right, "{what}: {name} should be {kind:?}: {value}");
    }
}

fn measure(user: &User, what: &str, format: &str) -> Outcome {
    let line = format!(
        "run {what} --on ./target --size 1M --runs 2 --seed 7 --label mine --format {format}"
    );
    let outcome = user.run(&words(&line)).expect(0, &["stored as run"]);
    user.assert_nothing_left(&outcome);
    outcome
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let user = User::new();
    std::fs::create_dir(user.file("other")).unwrap();
    for &(what, results) in WHAT {
        let runs = measure(&user, what, "json").json();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{what}");
        let run = &runs["runs"][0];
        check(run, RUN, what);
        check(&run["environment"], ENVIRONMENT, what);
        assert_eq!(run["suite"], what.split(' ').next().unwrap());
        assert_eq!(run["world"], "host");
        assert_eq!(run["target"], user.file("target").display().to_string());
        assert_eq!(run["state"], "finished");
        assert_eq!(run["seed"], 7);
        assert_eq!(run["label"], "mine");
        let listed = run["results"].as_array().unwrap();
        assert_eq!(listed.len(), results, "{what}");
        for result in listed {
            check(result, RESULT, what);
            check_result(result, what);
        }
    }
    assert_eq!(user.stored().len(), WHAT.len());
}

#[track_caller]
fn check_result(result: &Value, what: &str) {
    assert_eq!(result["drives"], 1, "{what}");
    assert_eq!(result["size_bytes"], 1 << 20, "{what}");
    assert!(result["kb_per_s"].as_f64().unwrap() > 0.0, "{what}");
    let repetitions = result["repetitions"].as_array().unwrap();
    // Those that were disturbed are run again.
    assert!((2..=4).contains(&repetitions.len()), "{what}");
    let discarded = repetitions.iter().filter(|one| one["discarded"] == true);
    assert_eq!(
        discarded.count() as u64,
        repetitions.len() as u64 - result["kept"].as_u64().unwrap(),
        "{what}"
    );
    for repetition in repetitions {
        let workers = repetition["workers"].as_array().unwrap();
        let payload = |worker: &Value| worker["payload_bytes"].as_u64().unwrap();
        let all = workers.iter().map(payload).sum::<u64>();
        match result["program"].as_str().unwrap() {
            // What it reads is not the files.
            "fsck" => {
                assert!(all > 0, "{what}: {repetition}");
                continue;
            }
            // Only what is restored counts.
            "dump_restore" => {
                assert_eq!(all, 1 << 20, "{what}: {repetition}");
                continue;
            }
            _ => {}
        }
        for worker in workers {
            let bytes = |name: &str| worker[name].as_u64().unwrap();
            // The last request of a mix may go over the size.
            let over = bytes("payload_bytes").checked_sub(1 << 20);
            let longest = if what.starts_with("random_mix") {
                64 << 10
            } else {
                0
            };
            assert!(over.is_some_and(|over| over <= longest), "{what}: {worker}");
            // Reading /dev/null moves nothing, however often.
            let moved = bytes("read_bytes") + bytes("written_bytes");
            let null = result["parameters"]["layer"] == "null";
            assert!(null || moved >= 1 << 20, "{what}: {worker}");
            let timed = !worker["read_latency"].is_null() || !worker["write_latency"].is_null();
            assert_eq!(timed, !what.contains("--no-latency"), "{what}: {worker}");
        }
    }
    let writes = repetitions[0]["workers"][0]["written_bytes"] != 0;
    let to_nothing = result["parameters"]["destination"] == "null";
    assert_eq!(
        result["durable_kb_per_s"].is_number(),
        writes && !to_nothing,
        "{what}: {result}"
    );
}

/// The records of comma-separated values by RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut letters) = (false, text.chars().peekable());
    while let Some(letter) = letters.next() {
        match (letter, quoted) {
            ('"', true) if letters.next_if_eq(&'"').is_some() => field.push('"'),
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\r', false) => {}
            ('\n', false) => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            _ => field.push(letter),
        }
    }
    assert!(!quoted && field.is_empty() && record.is_empty(), "{text}");
    records
}

/// Every table of a text in Markdown has a rule below its heading, and as many
/// columns in each row.
#[track_caller]
fn check_markdown(text: &str) {
    let columns = |row: &str| row.replace("\\|", "").matches('|').count();
    let lines: Vec<_> = text.lines().collect();
    let tables = lines.split(|line| !line.starts_with('|'));
    let tables: Vec<_> = tables.filter(|table| !table.is_empty()).collect();
    assert!(!tables.is_empty(), "{text}");
    for table in tables {
        assert!(table.len() > 2 && table[1].contains("---"), "{text}");
        for row in table {
            assert_eq!(columns(row), columns(table[0]), "{row} in {text}");
        }
    }
}

#[test]
fn the_other_formats_hold_every_result() {
    let user = User::new();
    for &(what, results) in &[
        ("ffs83", 4),
        ("vme87", 11),
        ("random_mix --set program.area_bytes=1M", 1),
    ] {
        let csv = records(&measure(&user, what, "csv").stdout);
        assert_eq!(csv.len(), results + 1, "{what}");
        for record in &csv {
            assert_eq!(record.len(), csv[0].len(), "{what}: {record:?}");
        }
        let rate = csv[0].iter().position(|name| name == "kb_per_s").unwrap();
        for record in &csv[1..] {
            assert!(record[rate].parse::<f64>().unwrap() > 0.0, "{record:?}");
        }
        let markdown = measure(&user, what, "markdown").stdout;
        check_markdown(&markdown);
        let table = measure(&user, what, "table").stdout;
        assert!(table.contains("KB/s (CPU)"), "{table}");
        let place = format!(" on {}, run ", user.target().display());
        assert!(table.contains(&place), "{table}");
    }
}

#[test]
fn lists_come_in_all_formats() {
    let user = User::new();
    measure(&user, "write_8192", "table");
    for (what, rows, has) in [
        ("suites", 6, "ffs83"),
        ("programs", 19, "random_mix"),
        ("runs", 1, "mine"),
        ("parameters scan", 5, "program.readers"),
    ] {
        let list = |format: &str| {
            let line = format!("list {what} --format {format}");
            user.run(&words(&line)).expect(0, &[])
        };
        assert_eq!(
            list("json").json()[what.split(' ').next().unwrap()]
                .as_array()
                .unwrap()
                .len(),
            rows,
            "{what}"
        );
        assert_eq!(records(&list("csv").stdout).len(), rows + 1, "{what}");
        assert_eq!(list("markdown").stdout.lines().count(), rows + 2, "{what}");
        assert!(list("table").stdout.contains(has), "{what}");
    }
    for (name, has) in [("ffs83", "rewrite_8192"), ("scan", "program.readers")] {
        let shown = user.run(&["show", name]).expect(0, &[]);
        assert!(shown.stdout.contains(has), "{shown:?}");
    }
}

#[test]
fn readers_that_mostly_wait_for_their_start_are_spoken_of() {
    let user = User::new();
    let shown = measure(&user, "scan", "table");
    let said = "last reader starts 300 ms after the first";
    assert!(shown.stdout.contains(said), "{shown:?}");
    let shown = measure(&user, "scan --set program.offset_ms=0", "table");
    assert!(!shown.stdout.contains("last reader"), "{shown:?}");
}
