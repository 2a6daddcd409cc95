//! Explanation of the difference between two runs.

use super::parts::{ComparedPlans, measure_contributions};
use super::rerun::{self, ModelVariant, RerunOutcome};
use super::{ExplainedSystem, ExplanationOptions, check_separate_jobs, run_bases};
use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use crate::plan::format_title;
use diskperf_analysis::diagnosis::{RunEnding, diagnose};
use diskperf_analysis::explanation::TimeAccount;
use diskperf_analysis::explanation::difference::{
    ExplanationDifferences, ProgramDifference, RequestCounts, WorkRatio, compare_stages,
};
use diskperf_battery::Program;
use diskperf_timeline::units::format_size;

/// Divides the difference between two subjects into contributions, program by program.
///
/// # Errors
///
/// Returns an error if the subjects have no program in common, or the error of a machine.
pub fn compare_systems(
    a: &ExplainedSystem,
    b: &ExplainedSystem,
    means: &ExplanationOptions<'_>,
) -> Result<ExplanationDifferences, LaboratoryError> {
    check_programs(a, b)?;
    let (of_a, of_b) = (run_bases(a, means)?, run_bases(b, means)?);
    let mut programs = Vec::new();
    for (number, computer) in a.plan.computers.iter().enumerate() {
        let Some(other) = find_partner(a, b, number) else {
            continue;
        };
        let ends = ComparedPlans {
            a: (&a.plan, computer),
            b: (&b.plan, &b.plan.computers[other]),
        };
        programs.extend(compare_on_computers(
            &ends,
            (&of_a[number], &of_b[other]),
            means,
        )?);
    }
    let mut notes: Vec<String> = a.plan.notes.iter().chain(&b.plan.notes).cloned().collect();
    notes.extend(programs.iter().filter_map(|one: &ProgramDifference| {
        let requests = one.request_counts?;
        Some(requests.describe_counts(&one.program))
    }));
    notes.dedup();
    Ok(ExplanationDifferences {
        a_name: a.name.clone(),
        b_name: b.name.clone(),
        programs,
        setting_differences: Vec::new(),
        notes,
    })
}

fn compare_on_computers(
    ends: &ComparedPlans<'_>,
    (a, b): (&[RerunOutcome], &[RerunOutcome]),
    means: &ExplanationOptions<'_>,
) -> Result<Vec<ProgramDifference>, LaboratoryError> {
    let requests = count_requests(ends, (a, b));
    let apart = measure_contributions(ends, &requests, (a, b), means)?;
    let same = check_same_repetitions(ends, (a, b), means)?;
    let jobs = ends.a.0.suite.iter_jobs();
    let mut found = Vec::new();
    for (number, (job, (a, b))) in jobs.zip(a.iter().zip(b)).enumerate() {
        let same = same.as_ref().map_or(b, |all| &all[number]);
        let accounts = (
            TimeAccount::from_trace(trace_of(a)),
            TimeAccount::from_trace(trace_of(b)),
        );
        let (Some(of_a), Some(of_b)) = accounts else {
            continue;
        };
        let requests = requests[number];
        let stages = compare_stages(
            &of_a,
            &of_b,
            requests.map_or(WorkRatio::EQUAL, WorkRatio::from),
        );
        let ending = match requests {
            Some(_) => RunEnding::TimeElapsed,
            None => RunEnding::WorkDone,
        };
        let alike = of_a.elapsed == of_b.elapsed && of_a.ledger == of_b.ledger;
        found.push(ProgramDifference {
            program: format_title(job),
            filesystems: (
                ends.a.1.describe_filesystem(),
                ends.b.1.describe_filesystem(),
            ),
            drives: (ends.a.0.drive_count as u32, ends.b.0.drive_count as u32),
            elapsed: (a.elapsed, b.elapsed_for_requests(requests)),
            request_counts: requests,
            stage_differences: stages,
            diagnosis: (!alike).then(|| diagnose(trace_of(a), trace_of(same), ending)),
            contributions: apart
                .as_ref()
                .map_or_else(Vec::new, |(parts, _)| parts[number].clone()),
            method: apart.as_ref().map(|(_, method)| *method),
        });
    }
    Ok(found)
}

/// Returns the completed requests of each program with a fixed duration, for both subjects, if the
/// numbers differ.
fn count_requests(
    ends: &ComparedPlans<'_>,
    (a, b): (&[RerunOutcome], &[RerunOutcome]),
) -> Vec<Option<RequestCounts>> {
    let same_drives = ends.a.0.drive_count == ends.b.0.drive_count;
    let jobs = ends.a.0.suite.iter_jobs().zip(a.iter().zip(b));
    let requests = jobs.map(|(job, (a, b))| {
        let lasts = same_drives && job.program.duration_max().is_some();
        RequestCounts::new_if_different(a.request_count, b.request_count).filter(|_| lasts)
    });
    requests.collect()
}

/// Repeats the second subject to get the repetitions with the numbers that stand for the first;
/// `None` if they are the same already. A file that is made anew lies elsewhere, which is no
/// difference between the subjects.
fn check_same_repetitions(
    ends: &ComparedPlans<'_>,
    (a, b): (&[RerunOutcome], &[RerunOutcome]),
    means: &ExplanationOptions<'_>,
) -> Result<Option<Vec<RerunOutcome>>, LaboratoryError> {
    if rerun::list_repetitions(a) == rerun::list_repetitions(b) {
        return Ok(None);
    }
    let (plan, computer) = ends.b;
    let variant = ModelVariant {
        records_trace: true,
        ..ModelVariant::from_plan(plan, computer)
    };
    rerun::rerun_like(plan, &variant, a, means.stop).map(Some)
}

fn trace_of(outcome: &RerunOutcome) -> &diskperf_timeline::Trace {
    outcome.trace.as_ref().expect("it was recorded")
}

/// Finds the computer of the second subject to compare with one of the first: the one with the same
/// file system, or its only one.
fn find_partner(a: &ExplainedSystem, b: &ExplainedSystem, number: usize) -> Option<usize> {
    let (of_a, of_b) = (&a.plan.computers, &b.plan.computers);
    let same =
        |other: &ModelComputer| other.describe_filesystem() == of_a[number].describe_filesystem();
    let found = of_b.iter().position(same);
    found.or((of_a.len() == 1 && of_b.len() == 1).then_some(0))
}

/// Verifies that both subjects run the same programs, with the same parameters and sizes.
fn check_programs(a: &ExplainedSystem, b: &ExplainedSystem) -> Result<(), LaboratoryError> {
    for subject in [a, b] {
        check_separate_jobs(&subject.plan.suite)?;
    }
    let programs = |subject: &ExplainedSystem| -> Vec<(String, u64)> {
        let plan = &subject.plan;
        plan.suite
            .iter_jobs()
            .map(|job| (format_title(job), plan.file_bytes(job)))
            .collect()
    };
    let (of_a, of_b) = (programs(a), programs(b));
    if of_a != of_b {
        return Err(LaboratoryError::Request(format!(
            "{} and {} ran different programs, whose times cannot be compared: {}",
            a.name,
            b.name,
            describe_unlike_programs(&of_a, &of_b)
        )));
    }
    let mut jobs = a.plan.suite.iter_jobs().zip(b.plan.suite.iter_jobs());
    if let Some((one, other)) = jobs.find(|(one, other)| one.program != other.program) {
        return Err(LaboratoryError::Request(format!(
            "{} and {} ran {} with different settings, so its times cannot be compared: {}; give two runs of the same programs",
            a.name,
            b.name,
            format_title(one),
            describe_differing_parameters(&one.program, &other.program)
        )));
    }
    let numbers = 0..a.plan.computers.len();
    if numbers
        .clone()
        .all(|number| find_partner(a, b, number).is_none())
    {
        return Err(LaboratoryError::Request(format!(
            "{} and {} have no file system in common: {} and {}; give both --set filesystem.block_bytes=4096, or another",
            a.name,
            b.name,
            a.plan.computers[0].describe_filesystem(),
            b.plan.computers[0].describe_filesystem()
        )));
    }
    let (one, other) = (&a.plan, &b.plan);
    if one.experiment.cache_mode != other.experiment.cache_mode
        || one.suite.default_protocol != other.suite.default_protocol
    {
        return Err(LaboratoryError::Request(format!(
            "{} and {} ran under different conditions: caches or repetitions differ; give two runs with the same options",
            a.name, b.name
        )));
    }
    Ok(())
}

/// Lists the programs, with their sizes in bytes, that only one of two subjects has run.
fn describe_unlike_programs(a: &[(String, u64)], b: &[(String, u64)]) -> String {
    let (only_a, only_b) = (list_surplus(a, b), list_surplus(b, a));
    if only_a.is_empty() && only_b.is_empty() {
        return "the same in another order; give two runs in one order".to_owned();
    }
    let titles = only_a.iter().map(|(title, _)| title);
    let only_sizes = titles.eq(only_b.iter().map(|(title, _)| title));
    let written = |of: &[(String, u64)]| {
        let told = of.iter().map(|(title, bytes)| match only_sizes {
            true => format!("{title} of {bytes} bytes"),
            false => format!("{title} of {}", format_size(*bytes)),
        });
        let told: Vec<String> = told.collect();
        match told.is_empty() {
            true => "nothing else".to_owned(),
            false => told.join(", "),
        }
    };
    let remedy = match only_sizes {
        true => "give both the same --size, or in job files the same size=",
        false => "give two runs of the same programs",
    };
    format!(
        "{} here and {} there; {remedy}",
        written(&only_a),
        written(&only_b)
    )
}

fn list_surplus(one: &[(String, u64)], other: &[(String, u64)]) -> Vec<(String, u64)> {
    let mut left = other.to_vec();
    let mut only = one.to_vec();
    only.retain(
        |program| match left.iter().position(|known| known == program) {
            Some(at) => {
                left.remove(at);
                false
            }
            None => true,
        },
    );
    only
}

fn describe_differing_parameters(one: &Program, other: &Program) -> String {
    if let (Some(one), Some(other)) = (one.fio_job(), other.fio_job()) {
        let options = one.differing_options(other).into_iter();
        let options: Vec<String> = options
            .map(|(key, [one, other])| {
                let written = |value: Option<&str>| match value {
                    Some(value) => format!("`{value}`"),
                    None => "not given".to_owned(),
                };
                format!("{key} is {} and {}", written(one), written(other))
            })
            .collect();
        return match options.is_empty() {
            true => "their job files write the same options: variables have other values, or the sections another order or group".to_owned(),
            false => options.join(", "),
        };
    }
    let (one, other) = (one.parameter_values(), other.parameter_values());
    let differs = one.iter().filter_map(|(key, value)| {
        let there = other.get(key).filter(|there| *there != value)?;
        Some(format!("{key} is {value} and {there}"))
    });
    let differs: Vec<String> = differs.collect();
    match differs.is_empty() {
        true => "the traces that they replay, or their pace, differ".to_owned(),
        false => differs.join(", "),
    }
}
