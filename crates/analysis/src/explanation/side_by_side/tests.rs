//! Two explanations of which each stage is known.

use super::{ExplanationSide, WorkAmount, compare_sides};
use crate::explanation::{Explanation, ProgramExplanation, stored};
use crate::fixtures::{build_result, read_repetition};
use crate::report::{ReportFormat, render_differences};
use diskperf_timeline::units::MIB;

fn explained(program: &str, kb_per_s: f64, mib: u64) -> Explanation {
    let of = build_result(program, 0, vec![read_repetition(mib * MIB, kb_per_s, 50.0)]);
    Explanation {
        subject: program.to_owned(),
        programs: vec![ProgramExplanation {
            program: of.display_title(),
            filesystem: of.filesystem_type.clone(),
            drive_count: 1,
            time_account: stored::build_account(&of, &[]).unwrap(),
            accounted_cpu: None,
            unwritten_share: None,
            verdict_sentences: Vec::new(),
            counterfactuals: Vec::new(),
            tails: Vec::new(),
            breakdowns: Vec::new(),
        }],
        notes: vec!["a note of both".to_owned()],
    }
}

fn amount(size_bytes: u64, requests: u64) -> WorkAmount {
    WorkAmount {
        size_bytes,
        request_count: requests,
    }
}

/// Of a program that lasts a time, more requests are less time for each.
#[test]
fn times_of_each_request_are_compared_where_a_program_lasts_a_time() {
    let lasting = explained("random", 65_536.0, 64);
    for (requests, per_request, told) in [
        (2000, "-50.0 %", "500 µs less"),
        (500, "+100.0 %", "1.00 ms longer"),
    ] {
        let [a, b] = [1000, requests].map(|requests| [amount(64 * MIB, requests)]);
        let [a, b] = [("one", &a), ("other", &b)].map(|(name, amounts)| ExplanationSide {
            name,
            explanation: &lasting,
            work_amounts: amounts,
        });
        let found = compare_sides(&a, &b, Vec::new()).unwrap();
        let [program] = &found.programs[..] else {
            panic!("{found:?}")
        };
        let (of_a, of_b) = program.elapsed;
        assert_eq!(of_b.0 * requests, of_a.0 * 1000);
        let more: i64 = program
            .stage_differences
            .iter()
            .map(|one| one.difference_ns())
            .sum();
        assert_eq!(more, of_b.0 as i64 - of_a.0 as i64);
        let table = render_differences(&found, ReportFormat::Table, 200);
        for text in [
            "1.00 ms and",
            "for each request",
            per_request,
            told,
            "A completed 1000 requests",
        ] {
            assert!(table.contains(text), "{text}: {table}");
        }
    }
    // As many requests, or another amount to move: its work ends it.
    for (size, requests) in [(64, 1000), (48, 750)] {
        let [a, b] = [amount(64 * MIB, 1000), amount(size * MIB, requests)].map(|one| [one]);
        let [a, b] = [("one", &a), ("other", &b)].map(|(name, amounts)| ExplanationSide {
            name,
            explanation: &lasting,
            work_amounts: amounts,
        });
        let found = compare_sides(&a, &b, Vec::new()).unwrap();
        assert_eq!(found.programs[0].request_counts, None);
    }
}

#[test]
fn stages_sum_to_the_difference_also_of_other_sizes() {
    let (one, other) = (
        explained("read_8192", 65_536.0, 64),
        explained("read_8192", 50_001.0, 48),
    );
    let (a, b) = (
        ExplanationSide {
            name: "one",
            explanation: &one,
            work_amounts: &[amount(64 * MIB, 0)],
        },
        ExplanationSide {
            name: "other",
            explanation: &other,
            work_amounts: &[amount(48 * MIB, 0)],
        },
    );
    let found = compare_sides(&a, &b, vec!["kernels differ: 5, 6".to_owned()]).unwrap();
    let [program] = &found.programs[..] else {
        panic!("{found:?}")
    };
    let (of_a, of_b) = program.elapsed;
    assert_eq!(of_a.0, 1_000_000_000);
    // 64 MiB at 50,001 KB/s.
    assert!(
        (of_b.seconds() - 65_536.0 / 50_001.0).abs() < 1e-6,
        "{of_b:?}"
    );
    let more: i64 = program
        .stage_differences
        .iter()
        .map(|one| one.difference_ns())
        .sum();
    assert_eq!(more, of_b.0 as i64 - of_a.0 as i64);
    assert!(
        found.notes[0].contains("scaled to the bytes of A"),
        "{found:?}"
    );
    assert_eq!(
        found
            .notes
            .iter()
            .filter(|note| *note == "a note of both")
            .count(),
        1
    );
    let table = render_differences(&found, ReportFormat::Table, 100);
    assert!(table.contains("kernels differ: 5, 6"), "{table}");
    let json: serde_json::Value =
        serde_json::from_str(&render_differences(&found, ReportFormat::Json, 100)).unwrap();
    assert_eq!(json["unlike"][0], "kernels differ: 5, 6");
}

#[test]
fn programs_that_differ_have_nothing_in_common() {
    let (one, other) = (
        explained("read_8192", 65_536.0, 64),
        explained("read_4096", 65_536.0, 64),
    );
    let amounts = [amount(64 * MIB, 0)];
    let side = |explanation| ExplanationSide {
        name: "",
        explanation,
        work_amounts: &amounts,
    };
    assert_eq!(compare_sides(&side(&one), &side(&other), Vec::new()), None);
}
