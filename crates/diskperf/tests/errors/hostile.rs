//! Stores and documents that somebody else has written.

use crate::support::{User, words};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

const RUN: &str = "run write_8192 --on vax780-sc780-eagle --size 64K --runs 3 --quiet";

/// What a terminal obeys, a spreadsheet calculates, and a table is broken by.
const EVIL: &str = "=1+1|\u{1b}[2J\u{9b}31m\u{202e}a\r\nb\u{8}<b>";

#[track_caller]
fn assert_text(what: &str, text: &str) {
    let lines = text.replace("\r\n", "\n");
    let instruction = |c: char| {
        (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{feff}')
    };
    assert_eq!(lines.find(instruction), None, "{what}: {text:?}");
}

/// An exported run, as JSON.
fn exported(user: &User) -> Value {
    user.run(&words(RUN)).expect(0, &[]);
    let text = user.run(&words("export last -o -")).expect(0, &[]);
    text.json()
}

#[test]
fn one_damaged_row_leaves_the_others_listed() {
    let user = User::new();
    user.run(&words(RUN)).expect(0, &[]);
    let good = user.stored()[0].id.clone();
    user.run(&words(RUN)).expect(0, &[]);
    let connection = Connection::open(user.store()).unwrap();
    for (damage, problem) in [
        ("started_unix_ms = 253402300800000", "its start is"),
        ("started_unix_ms = 9223372036854775807", "its start is"),
        ("started_unix_ms = 1, world = 'moon'", "its world is"),
        (
            "world = 'host' || char(27) || '[2J', label = 'x'",
            "its world is",
        ),
    ] {
        let damage = format!("UPDATE runs SET {damage} WHERE id != '{good}'");
        assert_eq!(connection.execute(&damage, []).unwrap(), 1);
        for format in ["table", "json", "csv", "markdown"] {
            let listed = user
                .run(&["list", "runs", "--format", format])
                .expect(
                    0,
                    &[problem, "is damaged", "DELETE FROM runs WHERE rowid = 2"],
                )
                .shows(&[&good, "damaged: ", problem]);
            assert_text(format, &listed.stdout);
            assert_text(format, &listed.stderr);
        }
        user.run(&["show", &good]).expect(0, &[]);
    }
    user.run(&words("show last")).expect(0, &[]).shows(&[&good]);
}

/// What each figure may not be, and what is said of it.
const IMPOSSIBLE: [(&str, &str, &str); 9] = [
    (
        "/started_unix_ms",
        "253402300800000",
        "runs[0].started_unix_ms is 253402300800000",
    ),
    ("/id", "\"../x\"", "runs[0].id is `../x`"),
    (
        "/results/0/repetitions/1/workers/0/elapsed",
        "18446744073709551615",
        "runs[0].results[0].repetitions[1].workers[0].elapsed is 18446744073709551615",
    ),
    (
        "/results/0/repetitions/1/workers/0/elapsed",
        "0",
        "runs[0].results[0].repetitions[1].workers[0].elapsed is 0",
    ),
    (
        "/results/0/repetitions/1/workers/0/elapsed",
        "-1",
        "invalid value: integer `-1`",
    ),
    (
        "/results/0/repetitions/1/workers/0/payload_bytes",
        "18446744073709551615",
        "workers[0].payload_bytes is 18446744073709551615",
    ),
    (
        "/results/0/repetitions/1/workers/0/drive",
        "4294967295",
        "workers[0].drive is 4294967295",
    ),
    (
        "/results/0/repetitions/1/workers/0/ledger/0/ns",
        "1",
        "workers[0].ledger sums to",
    ),
    (
        "/environment/load_average",
        "-1.0",
        "runs[0].environment.load_average is -1",
    ),
];

#[test]
fn impossible_figures_are_refused_by_their_place() {
    let user = User::new();
    let whole = exported(&user);
    for (place, value, said) in IMPOSSIBLE {
        let mut file = whole.clone();
        let place = format!("/runs/0{place}");
        let figure = file.pointer_mut(&place).expect(&place);
        *figure = serde_json::from_str(value).unwrap();
        fs::write(user.file("evil.json"), file.to_string()).unwrap();
        for words in [
            &["show", "evil.json"][..],
            &["compare", "evil.json", "last"],
            &["report", "evil.json", "-o", "page.html"],
            &["export", "evil.json", "-o", "again.json"],
            &["explain", "evil.json"],
        ] {
            user.run(words).expect(2, &["evil.json: ", said]);
        }
        assert!(!user.file("page.html").exists() && !user.file("again.json").exists());
    }
}

#[test]
fn files_that_are_no_document_are_refused() {
    let user = User::new();
    fs::write(
        user.file("deep.json"),
        "{\"x\": ".to_owned() + &"[".repeat(100_000),
    )
    .unwrap();
    fs::write(user.file("text.json"), "my notes").unwrap();
    fs::write(user.file("empty.json"), "").unwrap();
    for (file, said) in [
        ("deep.json", "is not a file of runs"),
        ("text.json", "is not a JSON object"),
        ("empty.json", "is not a file of runs"),
        ("/dev/zero", "is not a regular file"),
    ] {
        user.run(&["show", file]).expect(2, &[file, said]);
    }
}

/// Text of a document, everywhere it is printed.
#[test]
fn text_of_a_document_is_only_text() {
    let user = User::new();
    let mut file = exported(&user);
    let run = &mut file["runs"][0];
    for field in ["version", "suite", "target", "label"] {
        run[field] = json!(EVIL);
    }
    run["world"] = json!("host");
    run["model"] = Value::Null;
    run["notes"] = json!([EVIL]);
    run["command_line"] = json!([EVIL]);
    run["environment"]["kernel"] = json!(EVIL);
    run["environment"]["places"][0]["path"] = json!(EVIL);
    let result = &mut run["results"][0];
    for field in ["program", "filesystem"] {
        result[field] = json!(EVIL);
    }
    result["notes"] = json!([EVIL]);
    fs::write(user.file("evil.json"), file.to_string()).unwrap();
    for format in ["table", "json", "csv", "markdown"] {
        for line in [
            "show evil.json",
            "compare evil.json evil.json",
            "explain evil.json",
        ] {
            let words = [&words(line)[..], &["--format", format]].concat();
            let outcome = user.run(&words).expect(0, &[]);
            assert_text(line, &outcome.stdout);
            assert_text(line, &outcome.stderr);
            match format {
                "csv" => assert!(!outcome.stdout.contains(",=1"), "{outcome:?}"),
                "json" => {
                    let kept = outcome.stdout.contains("=1+1|");
                    assert!(kept && outcome.json().is_object(), "{outcome:?}");
                }
                _ => {}
            }
        }
    }
    let shown = user
        .run(&words("show evil.json --format json"))
        .expect(0, &[]);
    assert_eq!(
        shown.json()["runs"][0]["label"],
        EVIL,
        "JSON is the same value"
    );
    // An export is the same run, and a file that a pager may show.
    user.run(&words("export evil.json -o again.json"))
        .expect(0, &[]);
    let again = fs::read_to_string(user.file("again.json")).unwrap();
    assert_text("export", &again);
    assert_eq!(
        serde_json::from_str::<Value>(&again).unwrap()["runs"][0]["target"],
        EVIL
    );
}

/// The row of a list is one line, whatever is in its cells.
#[test]
fn a_list_of_runs_is_only_text() {
    const EVIL: &str = "=1\u{1b}\n<b>";
    let user = User::new();
    user.run(&words(RUN)).expect(0, &[]);
    let store = Connection::open(user.store()).unwrap();
    store
        .execute("UPDATE runs SET label = ?1, target = ?1", [EVIL])
        .unwrap();
    drop(store);
    for format in ["table", "json", "csv", "markdown"] {
        let listed = user
            .run(&["list", "runs", "--format", format])
            .expect(0, &[]);
        assert_text(format, &listed.stdout);
        match format {
            "csv" => assert!(!listed.stdout.contains(",=1"), "{listed:?}"),
            "json" => assert_eq!(listed.json()["runs"][0]["label"], EVIL),
            "markdown" => {
                assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}");
                assert!(!listed.stdout.contains("<b>"), "{listed:?}");
            }
            _ => assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}"),
        }
    }
}

/// A file of runs of diskperf 0.1.0.
#[test]
fn a_file_of_0_1_0_loads() {
    let user = User::new();
    let old = include_str!("../../../store/tests/data/version_0_1_0.json");
    fs::write(user.file("old.json"), old).unwrap();
    let shown = user
        .run(&words("show old.json --format json"))
        .expect(0, &[])
        .json();
    assert_eq!(shown["runs"][0]["id"], "5af1bee297");
    assert_eq!(shown["runs"][1]["label"], "before");
    user.run(&words("compare old.json")).expect(0, &[]);
}

/// A store of 0.1.0, whose runs have command lines in place of experiments.
#[test]
fn runs_of_a_store_of_0_1_0_are_shown_compared_and_explained() {
    let user = User::new();
    let old = include_str!("../../../store/tests/data/version_0_1_0_schema_5.sql");
    fs::create_dir_all(user.store().parent().unwrap()).unwrap();
    let store = Connection::open(user.store()).unwrap();
    store.execute_batch(old).unwrap();
    drop(store);
    for line in [
        "list runs",
        "show before",
        "compare before before",
        "explain before",
    ] {
        user.run(&words(line)).expect(0, &[]);
    }
    let shown = user
        .run(&["show", "two drives", "--format", "json"])
        .expect(0, &[]);
    assert!(shown.json()["runs"][0]["experiment"].is_null());
    // It is made again wherever the model and the catalogue are as they were.
    let again = user.run(&["explain", "two drives", "--no-counterfactuals"]);
    assert!(
        again.code == Some(0) || again.stderr.contains("run it again"),
        "{again:?}"
    );
}
