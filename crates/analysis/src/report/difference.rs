//! Differences between two runs as tables, JSON and CSV.

use super::csv::{Field, format_records};
use super::document::{Block, Column, Grid, Group};
use super::explanation::name_stage;
use super::figures::decimals;
use super::json::pretty;
use crate::diagnosis::Diagnosis;
use crate::explanation::difference::{
    Contribution, Difference, Differences, Method, StageDifference,
};
use crate::explanation::words::{deadline, milliseconds, stage};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::format_nanoseconds;
use serde::Serialize;

pub(super) fn blocks(differences: &Differences) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(format!(
        "Why they differ: A, {}; B, {}",
        differences.a, differences.b
    ))];
    for program in &differences.programs {
        blocks.extend(describe_program(program));
    }
    if !differences.unlike.is_empty() {
        blocks.push(Block::Section(
            "What differs in plan and environment: A, B".to_owned(),
        ));
        blocks.push(Block::List(differences.unlike.clone()));
    }
    if !differences.notes.is_empty() {
        blocks.push(Block::List(differences.notes.clone()));
    }
    blocks
}

fn describe_program(program: &Difference) -> Vec<Block> {
    let (a, b) = program.elapsed;
    let difference = b.0 as f64 - a.0 as f64;
    // B's time is for as many requests as A's.
    let time = |ns: f64| match program.requests {
        Some(requests) => format_nanoseconds(Nanoseconds((ns / requests.a as f64).round() as u64)),
        None => milliseconds(ns),
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
    let mut blocks = vec![Block::Section(format!(
        "{}, {filesystem}: {} and {}{}: {verdict}",
        program.program,
        time(a.0 as f64),
        time(b.0 as f64),
        match program.requests {
            Some(_) => " for each request",
            None => "",
        }
    ))];
    if let Some(found) = &program.diagnosis {
        if program.drives.0 != program.drives.1 {
            blocks.push(Block::Text(describe_change(program)));
        }
        blocks.push(Block::Text(describe_diagnosis(found)));
    }
    blocks.push(Block::Grid(by_stage(&program.stages, difference)));
    let counting: Vec<&Contribution> = program.parts.iter().filter(|part| part.ns != 0).collect();
    if !counting.is_empty() {
        blocks.push(Block::Grid(by_change(&counting, difference)));
    }
    let idle = program.parts.len() - counting.len();
    if let Some(method) = program.method {
        blocks.push(Block::List(vec![describe_method(method, idle)]));
    }
    blocks
}

/// Describes the different amounts of data that the program moves in the two runs.
fn describe_change(program: &Difference) -> String {
    let (a, b) = program.elapsed;
    let bytes = f64::from(program.drives.1) / f64::from(program.drives.0);
    format!(
        "The program runs on each drive: B moves {} times as much as A, at {:.2} times the rate.",
        decimals(bytes),
        bytes * a.0 as f64 / b.0.max(1) as f64
    )
}

/// Describes the diagnosis of a difference from the spans of two traces alone.
fn describe_diagnosis(diagnosis: &Diagnosis) -> String {
    let component = match diagnosis.component {
        Some(component) => {
            let part = diagnosis.part.map(|part| format!("'s {}", part.words()));
            let part = part.unwrap_or_default();
            format!("The spans of both point to the {}{part}", component.name())
        }
        None => "The spans of both do not show the cause".to_owned(),
    };
    let missed = diagnosis
        .deadline
        .map(|missed| format!(", through a missed deadline: {}", deadline(missed)));
    let others: Vec<&str> = diagnosis.others.iter().map(|one| one.name()).collect();
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

fn describe_method(method: Method, idle: usize) -> String {
    let others = match idle {
        0 => String::new(),
        1 => "; one more change has no effect here".to_owned(),
        idle => format!("; {idle} more changes have no effect here"),
    };
    match method {
        Method::AllOrders { runs: 0 } => format!("the one change from A to B{others}"),
        Method::AllOrders { runs } => format!(
            "the changes from A to B, applied in every order, with {runs} runs in between: they sum to the difference{others}"
        ),
        Method::SampledOrders { orders, runs } => format!(
            "the changes from A to B, applied in {orders} random orders, with {runs} runs in between: they sum to the difference, and each is an estimate{others}"
        ),
    }
}

fn by_stage(stages: &[StageDifference], difference: f64) -> Grid {
    let mut sorted: Vec<&StageDifference> =
        stages.iter().filter(|one| one.more_ns() != 0).collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.more_ns().unsigned_abs()));
    let column =
        |of: &dyn Fn(&StageDifference) -> String| sorted.iter().map(|one| of(one)).collect();
    Grid {
        key: Column::words("stage", column(&|one| stage(one.stage))),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("A ms", column(&|one| ms(one.a.0 as f64))),
                Column::figures("B ms", column(&|one| ms(one.b.0 as f64))),
                Column::figures("B - A ms", column(&|one| signed_ms(one.more_ns()))),
                Column::figures(
                    "of the difference",
                    column(&|one| share_of_difference(one.more_ns(), difference)),
                ),
            ],
        )],
    }
}

fn by_change(parts: &[&Contribution], difference: f64) -> Grid {
    let column = |of: &dyn Fn(&Contribution) -> String| parts.iter().map(|part| of(part)).collect();
    Grid {
        key: Column::words(
            "change from A to B",
            column(&|part| part.changes.join(", ")),
        ),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("B - A ms", column(&|part| signed_ms(part.ns))),
                Column::figures(
                    "of the difference",
                    column(&|part| share_of_difference(part.ns, difference)),
                ),
            ],
        )],
    }
}

fn ms(ns: f64) -> String {
    format!("{:.1}", ns / 1e6)
}

fn signed_ms(ns: i64) -> String {
    format!("{:+.1}", ns as f64 / 1e6)
}

fn share_of_difference(ns: i64, difference: f64) -> String {
    match difference {
        0.0 => String::new(),
        difference => format!("{:.1} %", 100.0 * ns as f64 / difference),
    }
}

#[derive(Serialize)]
struct StageLine {
    stage: String,
    cause: Option<String>,
    a_ns: u64,
    b_ns: u64,
    difference_ns: i64,
}

pub(super) fn json(differences: &Differences) -> String {
    #[derive(Serialize)]
    struct Program<'d> {
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
        stages: Vec<StageLine>,
        diagnosis: &'d Option<Diagnosis>,
        parts: &'d [Contribution],
        method: Option<Method>,
    }
    #[derive(Serialize)]
    struct Document<'d> {
        a: &'d str,
        b: &'d str,
        programs: Vec<Program<'d>>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        unlike: &'d [String],
        notes: &'d [String],
    }
    fn program(difference: &Difference) -> Program<'_> {
        Program {
            program: &difference.program,
            a_filesystem: &difference.filesystems.0,
            b_filesystem: &difference.filesystems.1,
            a_drives: difference.drives.0,
            b_drives: difference.drives.1,
            a_elapsed_ns: difference.elapsed.0.0,
            b_elapsed_ns: difference.elapsed.1.0,
            a_requests: difference.requests.map(|requests| requests.a),
            b_requests: difference.requests.map(|requests| requests.b),
            difference_ns: difference.elapsed.1.0 as i64 - difference.elapsed.0.0 as i64,
            stages: difference.stages.iter().map(stage_line).collect(),
            diagnosis: &difference.diagnosis,
            parts: &difference.parts,
            method: difference.method,
        }
    }
    pretty(&Document {
        a: &differences.a,
        b: &differences.b,
        programs: differences.programs.iter().map(program).collect(),
        unlike: &differences.unlike,
        notes: &differences.notes,
    })
}

fn stage_line(stage_difference: &StageDifference) -> StageLine {
    let (stage, cause) = name_stage(stage_difference.stage);
    StageLine {
        stage,
        cause,
        a_ns: stage_difference.a.0,
        b_ns: stage_difference.b.0,
        difference_ns: stage_difference.more_ns(),
    }
}

/// Formats the differences as CSV, one line for each stage and one for each change.
pub(super) fn csv(differences: &Differences) -> String {
    let mut records: Vec<Vec<Field>> = Vec::new();
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
        for one in &program.stages {
            let (name, cause) = name_stage(one.stage);
            let of = (Some(one.a.0), Some(one.b.0));
            records.push(record(
                "stage",
                name,
                cause.unwrap_or_default(),
                of,
                one.more_ns(),
            ));
        }
        for part in &program.parts {
            let name = part.changes.join(", ");
            records.push(record("change", name, String::new(), (None, None), part.ns));
        }
    }
    format_records(&records)
}
