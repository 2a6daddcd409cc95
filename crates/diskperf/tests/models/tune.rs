//! Searching for better settings.

use crate::support::{User, words};
use serde_json::Value;

const SECTORS: &str =
    "tune pcat-st251 --suite track_read --set program.call_bytes=512 --size 256K --seeds 1";
const VAX: &str = "tune vax780-sc780-eagle --suite write_8192 --size 256K --seeds 1";

fn run(user: &User, line: &str) -> Value {
    let line = format!("{line} --format json");
    user.run(&words(&line)).expect(0, &[]).json()
}

fn value_at(found: &Value, place: usize) -> f64 {
    found["points"][place]["value"].as_f64().unwrap()
}

#[test]
fn the_best_interleave_and_the_cliff_beside_it() {
    let user = User::new();
    let line = format!("{SECTORS} --over drive.interleave=2..4");
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "track_read on pcat-st251: best throughput over drive.interleave",
        "best drive.interleave=3",
        "ON A CLIFF: drive.interleave from 3 to 2 loses",
        "all 3 combinations were tried",
    ]);
    let found = run(&user, &line);
    assert_eq!(found["best"]["settings"]["drive.interleave"], "3");
    // Three slots for each sector of 17, 60 times a second.
    let third = value_at(&found, 1);
    assert!((third / (60.0 * 8.5 / 3.0) - 1.0).abs() < 0.01, "{third}");
    assert_eq!(found["points"].as_array().unwrap().len(), 3);
    assert_eq!(found["on_cliff"], true);
    assert!(user.stored().is_empty(), "a search is no run");
}

#[test]
fn the_old_form_of_the_command_line_is_understood() {
    let user = User::new();
    let words_of = "--set program.call_bytes=512 --size 256K --seeds 0 --over drive.interleave=3,4";
    let old = run(
        &user,
        &format!("tune track_read --on pcat-st251 {words_of}"),
    );
    let new = run(
        &user,
        &format!("tune pcat-st251 --suite track_read {words_of} --fresh"),
    );
    assert_eq!(old["points"], new["points"]);
    assert_eq!(old["spread"], Value::Null);
    user.run(&words(&format!(
        "tune pcat-st251 --on pcat-st251 --suite track_read {words_of}"
    )))
    .expect(2, &["two targets"]);
    user.run(&words(&format!("tune {words_of}")))
        .expect(2, &["no target"]);
}

#[test]
fn two_parameters_make_a_heat_table_and_threads_change_nothing() {
    let user = User::new();
    let line = format!("{SECTORS} --over drive.interleave=3,4 --over drive.spindle_rpm=3000,3600");
    let one = user.run(&words(&format!("{line} --threads 1 --fresh --format csv")));
    let two = user.run(&words(&format!("{line} --threads 2 --fresh --format csv")));
    assert_eq!(one.stdout, two.stdout);
    assert_eq!(one.stdout.lines().count(), 5);
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "drive.interleave and drive.spindle_rpm",
        "best drive.interleave=3, drive.spindle_rpm=3600",
        "▁ is",
    ]);
}

#[test]
fn a_large_search_keeps_to_its_budget_and_is_the_same_on_any_threads() {
    let user = User::new();
    let line = format!(
        "{VAX} --budget 60 --over filesystem.rotdelay_ms=0..10:0.5 --over driver.search_lead_sectors=0..9 --over filesystem.maxcontig=1,2,4"
    );
    let one = run(&user, &format!("{line} --threads 1 --fresh"));
    let two = run(&user, &format!("{line} --threads 2 --fresh"));
    assert_eq!(one, two);
    let method = &one["method"];
    assert_eq!(method["combinations"], 630);
    let screened = method["search"]["descent"]["screened"].as_u64().unwrap();
    // The steps around the best are looked at whatever the budget.
    let tried = method["tried"].as_u64().unwrap();
    assert!(screened > 0 && tried + screened <= 60 + 36, "{method}");
    let today = one["today"]["value"].as_f64().unwrap();
    assert!(one["best"]["value"].as_f64().unwrap() >= today);
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "coordinate descent from",
        "of 630 combinations were tried",
        "points from the store",
    ]);
}

#[test]
fn a_suite_counts_by_the_geometric_mean_of_its_programs() {
    let user = User::new();
    let found = run(
        &user,
        "tune vax780-sc780-eagle --suite ffs83 --size 256K --seeds 0 --over filesystem.rotdelay_ms=2,6",
    );
    assert_eq!(found["programs"].as_array().unwrap().len(), 4);
    for point in found["points"].as_array().unwrap() {
        let programs = point["programs"].as_array().unwrap();
        let rates = programs.iter().map(|one| one["kb_per_s"].as_f64().unwrap());
        let mean = rates.map(f64::ln).sum::<f64>() / 4.0;
        let value = point["value"].as_f64().unwrap();
        assert!((value / mean.exp() - 1.0).abs() < 1e-9, "{point}");
    }
}

#[test]
fn other_goals_have_other_figures() {
    let user = User::new();
    let line = format!("{VAX} --over filesystem.rotdelay_ms=0,4,8");
    for (goal, figure) in [("latency", "call_p99_ms"), ("cpu", "cpu_ms_per_mib")] {
        let found = run(&user, &format!("{line} --goal {goal}"));
        let points = found["points"].as_array().unwrap();
        let of = |point: &Value| point["programs"][0][figure].as_f64().unwrap();
        let least = points.iter().map(of).fold(f64::INFINITY, f64::min);
        let best = found["best"]["value"].as_f64().unwrap();
        assert!(best <= least * 1.0011, "{goal}: {best} {least}");
    }
}

/// The same seeds and phases for all, so that what differs is the settings.
#[test]
fn best_and_today_are_run_again_with_seeds_and_phases() {
    let user = User::new();
    let line = format!("{VAX} --seeds 3 --over filesystem.rotdelay_ms=0..8:4");
    let found = run(&user, &line.replace("--seeds 1 ", ""));
    let spread = &found["spread"];
    assert_eq!(
        (&spread["seeds"], &spread["phases"]),
        (&3.into(), &4.into())
    );
    for name in ["best", "today"] {
        assert_eq!(spread[name].as_array().unwrap().len(), 12, "{spread}");
    }
    // The first of them is the point itself.
    assert_eq!(spread["best"][0], found["best"]["value"]);
    assert_eq!(spread["today"][0], found["today"]["value"]);
    let extent = &spread["gain_extent"];
    assert!(extent["least"].as_f64().unwrap() <= extent["most"].as_f64().unwrap());
}

/// Sectors of 1024 bytes are not read with calls of 512 or of 17 x 512.
#[test]
fn impossible_combinations_are_counted_and_shown() {
    let user = User::new();
    let line = "tune pcat-st251 --suite track_read --size 256K --seeds 0";
    user.run(&words(&format!(
        "{line} --over drive.sector_bytes=512,1024"
    )))
    .expect(0, &[])
    .shows(&[
        "impossible (-): 1 of the 2 tried",
        "drive.sector_bytes=1024",
        "not whole sectors of 1024",
    ]);
    let found = run(&user, &format!("{line} --over drive.interleave=3,18"));
    assert_eq!(found["method"]["impossible"], 1);
    assert_eq!(found["best"]["settings"]["drive.interleave"], "3");
    let why = found["points"][1]["impossible"].as_str().unwrap();
    assert!(why.contains("interleave"), "{why}");
    // All of them are.
    user.run(&words(&format!("{line} --over drive.interleave=18..20")))
        .expect(2, &["none of the 3 combinations", "drive.interleave=18"]);
}

#[test]
fn a_search_that_makes_no_sense_says_why() {
    let user = User::new();
    for (over, parts) in [
        ("drive.interleave=6..1", vec!["backwards"]),
        ("drive.interleave=1..x", vec!["`x`, which is no number"]),
        ("drive.interleave", vec!["no values"]),
        ("drive.interlave=1..2", vec!["did you mean `interleave`?"]),
        ("drive.nothing=1..2", vec!["unknown key `nothing`"]),
        (
            "drvie.interleave=1..2",
            vec!["drvie", "did you mean `drive`"],
        ),
        ("program.call_byte=512", vec!["did you mean `call_bytes`?"]),
        ("program.call_bytes=512", vec!["--over and to --set"]),
        (
            "drive.interleave=1..2 --over drive.interleave=3",
            vec!["drive.interleave is given twice"],
        ),
        ("host.clock_hz=10000", vec!["clock_hz", "95 %"]),
        (
            "drive.interleave=1..2 --change-device-settings",
            vec!["is of real storage"],
        ),
    ] {
        let line = format!("{SECTORS} --over {over}");
        user.run(&words(&line)).expect(2, &parts);
    }
    let over = "--over drive.interleave=1..2";
    user.run(&words(&format!("tune pcat-st251 --suite nothing {over}")))
        .expect(2, &["nothing"]);
    user.run(&words(&format!("tune pcat-st25 --suite track_read {over}")))
        .expect(2, &["did you mean", "pcat-st251"]);
    user.run(&words(&format!("tune ./target --suite read_8192 {over}")))
        .expect(
            2,
            &["only what is safe", "program.call_bytes", "read_ahead"],
        );
    // A tree of files has no place on a drive by itself.
    user.run(&words(&format!(
        "tune pcat-st251 --suite populate --set filesystem=none {over}"
    )))
    .expect(2, &["files"]);
    // A gap is shorter than the cylinder.
    for key in ["gap_blocks", "cylinder_gap_sectors"] {
        user.run(&words(&format!(
            "tune pcat-st251 --suite read_8192 --over filesystem.{key}=102"
        )))
        .expect(2, &[key, "0 to 101"]);
    }
    user.run(&words(&format!(
        "tune vax780-sc780-eagle --suite track_read {over}"
    )))
    .expect(2, &["filesystem=none"]);
    user.run(&words(&format!(
        "tune vax780-sc780-eagle --suite read_8192 --drives 5 {over}"
    )))
    .expect(2, &["--drives 5"]);
}
