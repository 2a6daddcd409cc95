//! Differences between two runs as tables, JSON and CSV.

use super::csv::{CsvField, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::explanation::split_stage_label;
use super::figures::format_by_magnitude;
use super::json::render_pretty;
use crate::diagnosis::Diagnosis;
use crate::explanation::difference::{
    Contribution, ContributionMethod, ExplanationDifferences, ProgramDifference, StageDifference,
};
use crate::explanation::words::{deadline_label, format_time_ms, stage_label};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::format_nanoseconds;
use serde::Serialize;

pub(super) fn build_blocks(differences: &ExplanationDifferences) -> Vec<DocumentBlock> {
    let mut blocks = vec![DocumentBlock::Heading(format!(
        "Why they differ: A, {}; B, {}",
        differences.a_name, differences.b_name
    ))];
    for program in &differences.programs {
        blocks.extend(describe_program(program));
    }
    if !differences.setting_differences.is_empty() {
        blocks.push(DocumentBlock::Section(
            "What differs in plan and environment: A, B".to_owned(),
        ));
        blocks.push(DocumentBlock::List(differences.setting_differences.clone()));
    }
    if !differences.notes.is_empty() {
        blocks.push(DocumentBlock::List(differences.notes.clone()));
    }
    blocks
}

fn describe_program(program: &ProgramDifference) -> Vec<DocumentBlock> {
    let (a, b) = program.elapsed;
    let difference = b.0 as f64 - a.0 as f64;
    // B's time is for as many requests as A's.
    let time = |ns: f64| match program.request_counts {
        Some(requests) => format_nanoseconds(Nanoseconds((ns / requests.a as f64).round() as u64)),
        None => format_time_ms(ns),
    };
    let filesystem = match program.filesystems.0 == program.filesystems.1 {
        true => program.filesystems.0.clone(),
        false => format!(
            "{} against {}",
            program.filesystems.0, program.filesystems.1
        ),
    };
    let verdict = match difference {
        0.0 => "equal elapsed times".to_owned(),
        more => format!(
            "B takes {} {}, {:+.1} %",
            time(more.abs()),
            if more > 0.0 { "longer" } else { "less" },
            100.0 * more / a.0.max(1) as f64
        ),
    };
    let mut blocks = vec![DocumentBlock::Section(format!(
        "{}, {filesystem}: {} and {}{}: {verdict}",
        program.program,
        time(a.0 as f64),
        time(b.0 as f64),
        match program.request_counts {
            Some(_) => " for each request",
            None => "",
        }
    ))];
    if let Some(found) = &program.diagnosis {
        if program.drives.0 != program.drives.1 {
            blocks.push(DocumentBlock::Text(describe_change(program)));
        }
        blocks.push(DocumentBlock::Text(describe_diagnosis(found)));
    }
    blocks.push(DocumentBlock::Grid(build_stage_grid(
        &program.stage_differences,
        difference,
    )));
    let counting: Vec<&Contribution> = program
        .contributions
        .iter()
        .filter(|part| part.contribution_ns != 0)
        .collect();
    if !counting.is_empty() {
        blocks.push(DocumentBlock::Grid(build_contribution_grid(
            &counting, difference,
        )));
    }
    let idle = program.contributions.len() - counting.len();
    if let Some(method) = program.method {
        blocks.push(DocumentBlock::List(vec![describe_method(method, idle)]));
    }
    blocks
}

/// Describes the different amounts of data that the program moves in the two runs.
fn describe_change(program: &ProgramDifference) -> String {
    let (a, b) = program.elapsed;
    let bytes = f64::from(program.drives.1) / f64::from(program.drives.0);
    format!(
        "The program runs on each drive: B moves {} times as much as A, at {:.2} times the rate.",
        format_by_magnitude(bytes),
        bytes * a.0 as f64 / b.0.max(1) as f64
    )
}

/// Describes the diagnosis of a difference from the spans of two traces alone.
fn describe_diagnosis(diagnosis: &Diagnosis) -> String {
    let component = match diagnosis.component {
        Some(component) => {
            let part = diagnosis.part.map(|part| format!("'s {}", part.label()));
            let part = part.unwrap_or_default();
            format!("The spans of both point to the {}{part}", component.name())
        }
        None => "The spans of both do not show the cause".to_owned(),
    };
    let missed = diagnosis
        .deadline
        .map(|missed| format!(", through a missed deadline: {}", deadline_label(missed)));
    let others: Vec<&str> = diagnosis
        .other_suspects
        .iter()
        .map(|one| one.name())
        .collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(" (also different: {})", others.join(", ")),
    };
    format!(
        "{component}{}{others}. {}",
        missed.unwrap_or_default(),
        join_evidence(&diagnosis.evidence)
    )
}

fn join_evidence(evidence: &[String]) -> String {
    let all = evidence.join("; ");
    let mut letters = all.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

fn describe_method(method: ContributionMethod, idle: usize) -> String {
    let others = match idle {
        0 => String::new(),
        1 => "; one more change has no effect here".to_owned(),
        idle => format!("; {idle} more changes have no effect here"),
    };
    match method {
        ContributionMethod::AllOrders { runs: 0 } => format!("the one change from A to B{others}"),
        ContributionMethod::AllOrders { runs } => format!(
            "the changes from A to B, applied in every order, with {runs} runs in between: they sum to the difference{others}"
        ),
        ContributionMethod::SampledOrders { orders, runs } => format!(
            "the changes from A to B, applied in {orders} random orders, with {runs} runs in between: they sum to the difference, and each is an estimate{others}"
        ),
    }
}

fn build_stage_grid(stages: &[StageDifference], difference: f64) -> Grid {
    let mut sorted: Vec<&StageDifference> = stages
        .iter()
        .filter(|one| one.difference_ns() != 0)
        .collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.difference_ns().unsigned_abs()));
    let column =
        |of: &dyn Fn(&StageDifference) -> String| sorted.iter().map(|one| of(one)).collect();
    Grid {
        key_column: Column::left_aligned("stage", column(&|one| stage_label(one.stage))),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("A ms", column(&|one| format_ms(one.a.0 as f64))),
                Column::right_aligned("B ms", column(&|one| format_ms(one.b.0 as f64))),
                Column::right_aligned(
                    "B - A ms",
                    column(&|one| format_signed_ms(one.difference_ns())),
                ),
                Column::right_aligned(
                    "of the difference",
                    column(&|one| format_share_of_difference(one.difference_ns(), difference)),
                ),
            ],
        )],
    }
}

fn build_contribution_grid(parts: &[&Contribution], difference: f64) -> Grid {
    let column = |of: &dyn Fn(&Contribution) -> String| parts.iter().map(|part| of(part)).collect();
    Grid {
        key_column: Column::left_aligned(
            "change from A to B",
            column(&|part| part.setting_changes.join(", ")),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned(
                    "B - A ms",
                    column(&|part| format_signed_ms(part.contribution_ns)),
                ),
                Column::right_aligned(
                    "of the difference",
                    column(&|part| format_share_of_difference(part.contribution_ns, difference)),
                ),
            ],
        )],
    }
}

fn format_ms(ns: f64) -> String {
    format!("{:.1}", ns / 1e6)
}

fn format_signed_ms(ns: i64) -> String {
    format!("{:+.1}", ns as f64 / 1e6)
}

fn format_share_of_difference(ns: i64, difference: f64) -> String {
    match difference {
        0.0 => String::new(),
        difference => format!("{:.1} %", 100.0 * ns as f64 / difference),
    }
}

#[derive(Serialize)]
struct StageDifferenceJson {
    stage: String,
    cause: Option<String>,
    a_ns: u64,
    b_ns: u64,
    difference_ns: i64,
}

pub(super) fn render_json(differences: &ExplanationDifferences) -> String {
    #[derive(Serialize)]
    struct ProgramDifferenceJson<'d> {
        program: &'d str,
        a_filesystem: &'d str,
        b_filesystem: &'d str,
        a_drives: u32,
        b_drives: u32,
        a_elapsed_ns: u64,
        b_elapsed_ns: u64,
        /// Requests that the first run completed; only for a program that runs for a set time.
        #[serde(skip_serializing_if = "Option::is_none")]
        a_requests: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        b_requests: Option<u64>,
        difference_ns: i64,
        stages: Vec<StageDifferenceJson>,
        diagnosis: &'d Option<Diagnosis>,
        parts: &'d [Contribution],
        method: Option<ContributionMethod>,
    }
    #[derive(Serialize)]
    struct DifferencesJson<'d> {
        a: &'d str,
        b: &'d str,
        programs: Vec<ProgramDifferenceJson<'d>>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        unlike: &'d [String],
        notes: &'d [String],
    }
    fn program_json(difference: &ProgramDifference) -> ProgramDifferenceJson<'_> {
        ProgramDifferenceJson {
            program: &difference.program,
            a_filesystem: &difference.filesystems.0,
            b_filesystem: &difference.filesystems.1,
            a_drives: difference.drives.0,
            b_drives: difference.drives.1,
            a_elapsed_ns: difference.elapsed.0.0,
            b_elapsed_ns: difference.elapsed.1.0,
            a_requests: difference.request_counts.map(|requests| requests.a),
            b_requests: difference.request_counts.map(|requests| requests.b),
            difference_ns: difference.elapsed.1.0 as i64 - difference.elapsed.0.0 as i64,
            stages: difference
                .stage_differences
                .iter()
                .map(stage_json)
                .collect(),
            diagnosis: &difference.diagnosis,
            parts: &difference.contributions,
            method: difference.method,
        }
    }
    render_pretty(&DifferencesJson {
        a: &differences.a_name,
        b: &differences.b_name,
        programs: differences.programs.iter().map(program_json).collect(),
        unlike: &differences.setting_differences,
        notes: &differences.notes,
    })
}

fn stage_json(stage_difference: &StageDifference) -> StageDifferenceJson {
    let (stage, cause) = split_stage_label(stage_difference.stage);
    StageDifferenceJson {
        stage,
        cause,
        a_ns: stage_difference.a.0,
        b_ns: stage_difference.b.0,
        difference_ns: stage_difference.difference_ns(),
    }
}

/// Formats the differences as CSV, one line for each stage and one for each change.
pub(super) fn render_csv(differences: &ExplanationDifferences) -> String {
    let mut records: Vec<Vec<CsvField>> = Vec::new();
    for program in &differences.programs {
        let record =
            |kind: &str, name: String, cause: String, of: (Option<u64>, Option<u64>), ns: i64| {
                let number = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
                vec![
                    ("program", program.program.clone()),
                    ("filesystem", program.filesystems.0.clone()),
                    ("kind", kind.to_owned()),
                    ("name", name),
                    ("cause", cause),
                    ("a_ns", number(of.0)),
                    ("b_ns", number(of.1)),
                    ("difference_ns", ns.to_string()),
                ]
            };
        for one in &program.stage_differences {
            let (name, cause) = split_stage_label(one.stage);
            let of = (Some(one.a.0), Some(one.b.0));
            records.push(record(
                "stage",
                name,
                cause.unwrap_or_default(),
                of,
                one.difference_ns(),
            ));
        }
        for part in &program.contributions {
            let name = part.setting_changes.join(", ");
            records.push(record(
                "change",
                name,
                String::new(),
                (None, None),
                part.contribution_ns,
            ));
        }
    }
    format_records(&records)
}
