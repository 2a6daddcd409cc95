//! Exports for other tools. Python's tests read them by the parsers of those tools.

use crate::support::{User, words};
use std::os::unix::fs::PermissionsExt;

#[test]
fn metrics_of_a_run_replace_those_of_the_last_one() {
    let user = User::new();
    let line =
        "run random --on bare-fixed --set program.duration_ms=100 --runs 1 --quiet --metrics";
    for name in ["diskperf.prom", "diskperf.prom"] {
        user.run(&[words(line), vec![name]].concat()).expect(0, &[]);
    }
    let file = user.file("diskperf.prom");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches("diskperf_run_info{").count(), 1);
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "node_exporter is another user");
    user.run(&[words(line), vec!["metrics.txt"]].concat())
        .expect(2, &["only files that end in .prom"]);
}

#[test]
fn exports_that_cannot_be_are_refused_before_anything_is_written() {
    let user = User::new();
    let line = "run write_8192 --on ./target --size 64K --runs 1 --quiet --no-latency";
    user.run(&words(line)).expect(0, &[]);
    for (options, message) in [
        ("--format hdr -o x.hlog", "--no-latency"),
        ("--format github-benchmark -o -", "-o NAME.json"),
        ("--format bmf --fail-over 5% -o x.bmf", "--format junit"),
        ("--format junit --fail-over 5% -o x.xml", "two runs"),
    ] {
        user.run(&words(&format!("export last {options}")))
            .expect(2, &[message]);
    }
    for name in ["x.hlog", "x.bmf", "x.xml", "--bigger"] {
        assert!(!user.file(name).exists(), "{name}");
    }
}
