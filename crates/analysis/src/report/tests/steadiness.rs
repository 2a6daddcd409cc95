//! Programs that were repeated until they were steady, and programs of names.

use super::*;
use diskperf_timeline::{Engine, LoadMeasure, Nanoseconds, OperationMeasure, SteadyRule};

/// A run whose rounds had these rates, in KB/s, of which the last five count.
fn rounds(rates: &[f64]) -> Run {
    let rounds = rates
        .iter()
        .map(|rate| read_repetition(8 << 20, *rate, 50.0));
    let mut result = build_result("read_8192", 0, rounds.collect());
    result.protocol.steady_rule = Some(SteadyRule::SNIA_RULE);
    let before = rates.len().saturating_sub(5);
    for round in &mut result.repetitions[..before] {
        round.is_discarded = true;
    }
    build_run("3fa85f6457", "read_8192", "/var/tmp", vec![result])
}

#[test]
fn a_steady_program_is_reported() {
    // 8 MiB at these rates: 8 + 4 + 5 * 2 seconds.
    let attained = rounds(&[1024.0, 2048.0, 4096.0, 4096.0, 4096.0, 4096.0, 4096.0]);
    let text = render_runs(std::slice::from_ref(&attained), ReportFormat::Table, 200);
    let said = "read_8192: steady after 7 rounds, 22.0 s of load; the last 5 count";
    assert!(text.contains(said), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&render_runs(&[attained], ReportFormat::Json, 200)).unwrap();
    let steady = &json["runs"][0]["results"][0]["steady"];
    assert_eq!(steady["attained"], true);
    assert_eq!(steady["rounds"], 7);
    assert!(
        (steady["at_s"].as_f64().unwrap() - 22.0).abs() < 1e-6,
        "{steady}"
    );
}

#[test]
fn an_unsteady_program_is_reported() {
    let rising = rounds(&[1000.0, 1030.0, 1060.0, 1090.0, 1120.0]);
    let text = render_runs(std::slice::from_ref(&rising), ReportFormat::Table, 200);
    let said = "read_8192: not steady in 5 rounds (last 5: range at most 20 %, slope at most 10 % of the mean); --runs N allows more";
    assert!(text.contains(said), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&render_runs(&[rising], ReportFormat::Json, 200)).unwrap();
    let steady = &json["runs"][0]["results"][0]["steady"];
    assert_eq!(
        (&steady["attained"], steady["at_s"].is_null()),
        (&false.into(), true)
    );
    // Of others nothing is said.
    let usual = build_run(
        "3fa85f6457",
        "read_8192",
        "/var/tmp",
        vec![build_result(
            "read_8192",
            0,
            vec![read_repetition(8 << 20, 1000.0, 50.0)],
        )],
    );
    let json: serde_json::Value =
        serde_json::from_str(&render_runs(&[usual], ReportFormat::Json, 200)).unwrap();
    assert!(json["runs"][0]["results"][0].get("steady").is_none());
}

/// Phases follow each other: the rate of each kind is of its own time, that of the program
/// of all; what makes names durable is beside them.
#[test]
fn operations_on_names_have_rates_of_their_own_time() {
    let operation = |count: u64, each_us: u64, span_ms: u64| OperationMeasure {
        response_times: vec![(each_us * 1000, count)].into(),
        elapsed_span: Nanoseconds::from_millis(span_ms),
        ..OperationMeasure::default()
    };
    let mut repetition = read_repetition(8 << 20, 8192.0, 50.0);
    repetition.workers[0].load_measure = Some(LoadMeasure {
        engine: Engine::Calls,
        queue_depth: 1,
        create: operation(1000, 400, 500),
        unlink: operation(1000, 100, 250),
        sync: operation(1000, 100, 500),
        ..LoadMeasure::default()
    });
    let run = build_run(
        "3fa85f6457",
        "metadata",
        "/var/tmp",
        vec![build_result("metadata", 0, vec![repetition])],
    );
    let json: serde_json::Value = serde_json::from_str(&render_runs(
        std::slice::from_ref(&run),
        ReportFormat::Json,
        200,
    ))
    .unwrap();
    let found = &json["runs"][0]["results"][0];
    assert_eq!(found["iops"], 2000.0);
    let rate = |name: &str| found["latency"][name]["iops"].as_f64();
    assert_eq!(
        [rate("create"), rate("unlink"), rate("sync")],
        [Some(2000.0), Some(4000.0), Some(2000.0)]
    );
    assert_eq!(found["latency"]["create"]["response"]["count"], 1000);
    let text = render_runs(&[run], ReportFormat::Table, 200);
    assert!(
        text.contains("load generator: one system call after the other"),
        "{text}"
    );
    for name in ["create", "unlink", "sync"] {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(name)),
            "{text}"
        );
    }
}
