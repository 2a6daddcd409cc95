//! Progress where standard error is no terminal: lines now and then.

use crate::support::{User, words};
use rustix::process::Signal;
use std::time::Duration;

/// Longer than any of the commands is silent.
const WATCHDOG: Duration = Duration::from_secs(200);

/// Each command lasts much longer than it is silent, and is ended when it has said a line.
#[test]
fn a_long_command_says_how_far_it_is() {
    let user = User::new();
    let endless = "--size 4M --set program.duration_ms=3600000 --runs 1";
    let many = "--set rotdelay_ms=4 --size 64M";
    let all = [
        (
            format!("run random --on ./target {endless}"),
            "measuring, ",
        ),
        (
            format!("run random --on ./target --set rate_iops=10 {endless}"),
            "measuring, ",
        ),
        (
            "tune vax780-sc780-eagle --suite ffs83 --size 16M --over filesystem.rotdelay_ms=0..100:0.1"
                .to_owned(),
            "model runs so far",
        ),
        (
            format!("explain vax780-sc780-eagle --suite ffs83 {many}"),
            "model run",
        ),
        ("reproduce kridle-mckusick-1983".to_owned(), "model runs so far"),
        ("show nvme-tlc --expected".to_owned(), "model runs so far"),
    ];
    let mut running: Vec<_> = all
        .iter()
        .map(|(line, said)| {
            let mut process = user.start(&words(line));
            let lines = process.lines_of_stderr();
            (line, said, process, lines)
        })
        .collect();
    for (line, said, process, lines) in &mut running {
        let mut heard = Vec::new();
        while !heard.iter().any(|one: &String| one.contains(**said)) {
            match lines.recv_timeout(WATCHDOG) {
                Ok(one) => heard.push(one),
                Err(_) => panic!("{line}: no `{said}` in {heard:?}"),
            }
        }
        process.signal(Signal::INT);
    }
    for (_, _, process, _) in running {
        process.finish();
    }
    // Who wants nothing is told nothing.
    let quiet =
        "run random --on ./target --size 4M --quiet --runs 1 --set program.duration_ms=11000";
    let ended = user.run(&words(quiet)).expect(0, &[]);
    assert!(!ended.stderr.contains("measuring"), "{}", ended.stderr);
}
