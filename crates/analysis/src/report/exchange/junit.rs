//! JUnit XML. In a comparison a slower row is a failure, and a row that cannot be decided is
//! skipped: an inconclusive measurement fails no build. Of runs alone, only failed programs fail.

use super::super::view::{ResultRow, RunView};
use crate::comparison::{Comparison, ResultPair, Verdict};
use diskperf_timeline::units::format_utc;
use diskperf_timeline::{Run, escape_unprintable};

/// Outcome of one test case.
enum CaseOutcome {
    Passed,
    Failed { kind: &'static str, message: String },
    Skipped { message: String },
}

struct TestCase {
    class_name: String,
    name: String,
    elapsed_s: f64,
    outcome: CaseOutcome,
}

struct TestSuite {
    name: String,
    timestamp: Option<String>,
    cases: Vec<TestCase>,
}

/// Renders a comparison: one suite for each run beside the base, one test case for each row. Where
/// the comparison has a limit, only rows above it fail.
pub fn render_junit_comparison(comparison: &Comparison) -> String {
    let suite = |run_index: usize| {
        let pairs = comparison.result_pairs.iter();
        let pairs = pairs.filter(|pair| pair.run_index == run_index);
        let class_name = comparison.runs[run_index].suite.clone();
        let mut cases: Vec<TestCase> = pairs
            .map(|pair| TestCase {
                class_name: class_name.clone(),
                name: format!("{}, {}", pair.title, pair.quantity.name()),
                elapsed_s: 0.0,
                outcome: judge_pair(comparison, pair),
            })
            .collect();
        let unpaired = comparison.unpaired_results.iter();
        let unpaired =
            unpaired.filter(|one| [one.run_index, one.run_index_without].contains(&run_index));
        cases.extend(unpaired.map(|one| TestCase {
            class_name: class_name.clone(),
            name: one.title.clone(),
            elapsed_s: 0.0,
            outcome: CaseOutcome::Failed {
                kind: "missing",
                message: format!(
                    "not measured in {}",
                    comparison.run_name(one.run_index_without)
                ),
            },
        }));
        TestSuite {
            name: format!(
                "{} against {}",
                comparison.run_name(run_index),
                comparison.run_name(0)
            ),
            timestamp: None,
            cases,
        }
    };
    render_suites(&(1..comparison.runs.len()).map(suite).collect::<Vec<_>>())
}

fn judge_pair(comparison: &Comparison, pair: &ResultPair) -> CaseOutcome {
    let verdict = pair.judgement.verdict;
    let message = || {
        let interval = pair.judgement.interval.map(|interval| {
            format!(
                ", {:.0} % interval {:.4} to {:.4}",
                100.0 * interval.confidence,
                interval.min,
                interval.max
            )
        });
        let ratio = pair
            .judgement
            .ratio
            .map(|ratio| format!(": ratio {ratio:.4}"));
        format!(
            "{}{}{}",
            pair.describe_verdict(),
            ratio.unwrap_or_default(),
            interval.unwrap_or_default()
        )
    };
    let limit = comparison
        .gate_result
        .as_ref()
        .map_or(0.0, |gate| gate.limit);
    match verdict {
        Verdict::Slower if pair.slowdown().is_none_or(|loss| loss > limit) => CaseOutcome::Failed {
            kind: "slower",
            message: message(),
        },
        Verdict::Slower | Verdict::Faster | Verdict::NoDifferenceSeen => CaseOutcome::Passed,
        Verdict::SuggestsFaster
        | Verdict::SuggestsSlower
        | Verdict::TooFewRepetitions
        | Verdict::Capped
        | Verdict::Inconclusive => CaseOutcome::Skipped { message: message() },
    }
}

/// Renders runs by themselves: one suite for each run, one test case for each result.
pub fn render_junit_runs(runs: &[Run]) -> String {
    let suite = |view: &RunView| TestSuite {
        name: view.name.clone(),
        timestamp: Some(format_utc(view.run.started_unix_ms).replacen(' ', "T", 1)),
        cases: view
            .rows
            .iter()
            .map(|row| judge_row(view.run, row))
            .collect(),
    };
    render_suites(
        &RunView::from_runs(runs)
            .iter()
            .map(suite)
            .collect::<Vec<_>>(),
    )
}

fn judge_row(run: &Run, row: &ResultRow) -> TestCase {
    let outcome = match row.result.first_failure() {
        Some(failure) => CaseOutcome::Failed {
            kind: "error",
            message: failure.message.clone(),
        },
        None if row.summary.kept_count == 0 => CaseOutcome::Skipped {
            message: "not measured".to_owned(),
        },
        None => CaseOutcome::Passed,
    };
    let elapsed = row
        .result
        .kept_repetitions()
        .map(|one| one.elapsed_time().seconds());
    TestCase {
        class_name: run.suite_name.clone(),
        name: row.title.clone(),
        elapsed_s: elapsed.sum(),
        outcome,
    }
}

fn render_suites(suites: &[TestSuite]) -> String {
    let cases = || suites.iter().flat_map(|suite| &suite.cases);
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    out += &format!("<testsuites{}>\n", format_counts(cases()));
    for suite in suites {
        let timestamp = suite.timestamp.iter();
        let timestamp: String = timestamp
            .map(|at| format_attribute("timestamp", at))
            .collect();
        out += &format!(
            "  <testsuite{}{}{timestamp}>\n",
            format_attribute("name", &suite.name),
            format_counts(suite.cases.iter())
        );
        for case in &suite.cases {
            out += &render_case(case);
        }
        out += "  </testsuite>\n";
    }
    out + "</testsuites>\n"
}

fn format_counts<'c>(cases: impl Iterator<Item = &'c TestCase>) -> String {
    let (mut tests, mut failures, mut skipped, mut elapsed_s) = (0, 0, 0, 0.0);
    for case in cases {
        tests += 1;
        elapsed_s += case.elapsed_s;
        match case.outcome {
            CaseOutcome::Passed => {}
            CaseOutcome::Failed { .. } => failures += 1,
            CaseOutcome::Skipped { .. } => skipped += 1,
        }
    }
    format!(
        " tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{elapsed_s:.3}\""
    )
}

fn render_case(case: &TestCase) -> String {
    let opening = format!(
        "    <testcase{}{} time=\"{:.3}\"",
        format_attribute("classname", &case.class_name),
        format_attribute("name", &case.name),
        case.elapsed_s
    );
    match &case.outcome {
        CaseOutcome::Passed => format!("{opening}/>\n"),
        CaseOutcome::Failed { kind, message } => format!(
            "{opening}><failure{}{}/></testcase>\n",
            format_attribute("type", kind),
            format_attribute("message", message)
        ),
        CaseOutcome::Skipped { message } => format!(
            "{opening}><skipped{}/></testcase>\n",
            format_attribute("message", message)
        ),
    }
}

fn format_attribute(name: &str, text: &str) -> String {
    format!(" {name}=\"{}\"", escape_xml(text))
}

/// Escapes text for an attribute. Characters that XML 1.0 forbids even as references are made
/// visible.
fn escape_xml(text: &str) -> String {
    let mut out = String::new();
    for character in escape_unprintable(text).chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            '\r' => out += "&#13;",
            '\u{fffe}' | '\u{ffff}' => out += &format!("\\u{:04x}", u32::from(character)),
            other => out.push(other),
        }
    }
    out
}
