//! Programs with and without a bug.

use super::*;

/// Programs of the test's own script.
fn pair(name: &str) -> Option<[String; 3]> {
    let test = format!("the planted bug `{name}`");
    can_run(&test, EXT4).then(|| {
        let script = planted();
        [
            format!("{script} write {name} bug"),
            format!("{script} write {name} right"),
            format!("{script} check {name}"),
        ]
    })
}

#[track_caller]
fn expect_found_and_no_alarm(name: &str) -> Option<Value> {
    let [bug, right, check] = pair(name)?;
    expect_no_alarm(&right, &check, &[]);
    Some(expect_loss(&bug, &check, &[]))
}

#[test]
fn a_directory_that_is_not_synced_is_lost() {
    expect_found_and_no_alarm("create");
}

#[test]
fn a_write_that_bypasses_the_page_cache_is_not_durable() {
    if let Some(report) = expect_found_and_no_alarm("direct") {
        // The drive had the write, and a flush was missing.
        assert_eq!(smallest_loss(&report), 1, "{report:#}");
        let saving = &report["lost"][0]["would_have_saved"];
        assert_eq!(saving["before_mark"], "0", "{report:#}");
    }
}

#[test]
fn an_index_that_is_written_before_its_data_points_nowhere() {
    expect_found_and_no_alarm("order");
}

#[test]
fn a_page_of_several_units_that_is_written_in_place_is_torn() {
    if let Some(report) = expect_found_and_no_alarm("torn") {
        let first = &report["lost"][0];
        assert_eq!(first["would_have_saved"], Value::Null, "{report:#}");
        let torn = &first["requests_before"][0];
        assert!(
            torn["lost_units"].as_u64() < torn["units"].as_u64(),
            "{report:#}"
        );
    }
}

#[test]
fn a_record_that_is_acknowledged_before_its_sync_is_lost() {
    expect_found_and_no_alarm("early");
}

#[test]
fn a_page_of_a_mapping_that_is_not_synced_is_lost() {
    expect_found_and_no_alarm("mapped");
}

#[test]
fn a_size_that_is_not_synced_hides_the_data() {
    expect_found_and_no_alarm("size");
}

#[test]
fn a_log_that_is_emptied_before_its_pages_are_synced_loses_them() {
    expect_found_and_no_alarm("checkpoint");
}

#[test]
fn a_write_whose_force_unit_access_is_dropped_is_lost() {
    expect_found_and_no_alarm("fua");
}

#[test]
fn a_file_that_is_emptied_before_it_is_replaced_is_lost() {
    if let Some([bug, right, check]) = pair("truncate") {
        expect_no_alarm(&right, &check, &[]);
        // Few instants lie between the truncation and the rename.
        expect_loss(&bug, &check, &["--cuts", "each", "--cut", "all"]);
    }
}

/// A disk with sectors of 4 KiB reads and writes seven neighbours of a sector of 512 bytes.
#[test]
fn a_sector_that_was_being_written_spoils_its_neighbours() {
    let name = "a_sector_that_was_being_written_spoils_its_neighbours";
    if !can_run(name, EXT4) {
        return;
    }
    let user = User::new();
    let [workload, check] =
        ["write sector right", "check sector"].map(|words| format!("{} {words}", planted()));
    let disk = ["--on", "sata-consumer", "--speed", "10"];
    let cuts = ["--cut", "unreadable", "--cuts", "all", "--format", "json"];
    let words = ["crash", &workload, "--check", &check];
    let words = [&words[..], &disk, &cuts].concat();
    let report = user.run(&words).expect(1, &[]).json();
    let first = &report["lost"][0]["requests_before"][0];
    assert_eq!(first["unreadable"]["units"], 8, "{report:#}");
    assert!(first["units"].as_u64() < Some(8), "{report:#}");
    let medium = ["--set", "drive.medium_sector_bytes=512"];
    let report = user.run(&[&words[..], &medium].concat()).json();
    // The file system may miss blocks of its own, but no record is lost.
    assert_eq!(report["lost"], serde_json::json!([]), "{report:#}");
    assert!(report["cuts"].as_u64() > Some(20), "{report:#}");
}

/// A sample of the instants. The programs with a bug beside them are tested there.
#[test]
fn correct_programs_raise_no_alarm() {
    if !can_run("correct_programs_raise_no_alarm", EXT4) {
        return;
    }
    let script = planted();
    for name in &RIGHT[10..] {
        let workload = format!("{script} write {name} right");
        let check = format!("{script} check {name}");
        expect_no_alarm(&workload, &check, &["--cut", "likely", "--cuts", "10"]);
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash");
    let workload = format!("{root}/replace.sh write");
    let check = format!("{root}/replace.sh check");
    expect_no_alarm(&workload, &check, &["--cut", "likely"]);
}

#[test]
fn appended_records_need_a_sync_and_a_drive_that_does_not_lie() {
    if !can_run(
        "appended_records_need_a_sync_and_a_drive_that_does_not_lie",
        EXT4,
    ) {
        return;
    }
    let [right, check] = ["write", "check"].map(|word| shipped(&format!("append.py {word}")));
    expect_no_alarm(&right, &check, &[]);
    expect_loss(&format!("{right} --without-fsync"), &check, &[]);
    let report = expect_loss(&right, &check, &["--lying-flush"]);
    let saving = &report["lost"][0]["would_have_saved"];
    assert!(saving["ignored_flush"].is_u64(), "{report:#}");
}

#[test]
fn a_replaced_file_needs_both_syncs_and_a_rename() {
    if !can_run("a_replaced_file_needs_both_syncs_and_a_rename", EXT4) {
        return;
    }
    let [right, check] = ["write", "check"].map(|word| shipped(&format!("replace.py {word}")));
    expect_no_alarm(&right, &check, &[]);
    for without in ["--without-fsync", "--without-directory-fsync", "--in-place"] {
        expect_loss(&format!("{right} {without}"), &check, &[]);
    }
}

/// Number of cuts after which the check printed a line of this kind.
fn losses(report: &Value, kind: &str) -> usize {
    let lost = report["lost"].as_array().map_or(&[][..], Vec::as_slice);
    let is_of_kind = |loss: &&Value| {
        loss["output"]
            .as_str()
            .is_some_and(|text| text.contains(kind))
    };
    lost.iter().filter(is_of_kind).count()
}

/// The table of `docs/guide/crash.md`: what records that are synced lose, and commits of SQLite.
#[test]
fn rows_of_sqlite_are_as_durable_as_its_modes_promise() {
    if !can_run("rows_of_sqlite_are_as_durable_as_its_modes_promise", EXT4) {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/table.py");
    let line = |words: &str| format!("{} {script} {words}", python());
    for (modes, option, are_commits_durable) in [
        ("delete full", None, false),
        ("delete extra", None, true),
        ("wal full", None, true),
        ("wal normal", None, false),
        ("wal full", Some("--lying-flush=2/3"), false),
    ] {
        let workload = line(&format!("write {modes} 5"));
        let more: Vec<&str> = ["--cuts", CUTS].into_iter().chain(option).collect();
        let report = crash(&User::new(), &workload, &line("check"), &more);
        let report = report.expect(i32::from(!are_commits_durable), &[]).json();
        let [records, commits, damages] =
            ["lost records", "lost commits", "damaged database"].map(|kind| losses(&report, kind));
        assert_eq!(commits == 0, are_commits_durable, "{modes}: {report:#}");
        // Only a drive that ignores flushes loses what was synced.
        assert_eq!(records == 0, option.is_none(), "{modes}: {report:#}");
        assert!(damages == 0 || option.is_some(), "{modes}: {report:#}");
    }
    let workload = shipped("rows.py write wal off");
    expect_loss(&workload, &shipped("rows.py check"), &[]);
}

#[test]
fn a_drive_without_a_volatile_cache_loses_nothing_that_was_written() {
    if !can_run(
        "a_drive_without_a_volatile_cache_loses_nothing_that_was_written",
        EXT4,
    ) {
        return;
    }
    let user = User::new();
    let script = planted();
    let [workload, check] =
        ["write direct bug", "check direct"].map(|words| format!("{script} {words}"));
    let words = [
        "crash", &workload, "--on", "sas-10k", "--speed", "10", "--check", &check,
    ];
    let outcome = user.run(&words).expect(0, &[]);
    assert!(outcome.stdout.contains("0 lost data"), "{outcome:?}");
}

#[test]
fn other_file_systems_keep_what_was_synced() {
    for (kind, tool, checker) in [
        ("xfs", "mkfs.xfs", "xfs_repair"),
        ("btrfs", "mkfs.btrfs", "btrfs"),
    ] {
        let needs = [EXT4, &[Needs::Tool(tool), Needs::Tool(checker)]].concat();
        if !can_run("other_file_systems_keep_what_was_synced", &needs) {
            continue;
        }
        let [right, check] = ["write", "check"].map(|word| shipped(&format!("append.py {word}")));
        expect_no_alarm(&right, &check, &["--fs", kind]);
    }
}
