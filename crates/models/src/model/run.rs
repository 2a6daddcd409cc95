//! Execution of a plan on modelled machines: their configuration, their work, and the run that
//! describes them.

use super::bench::{BenchUsage, ModelBench};
use super::computer::ModelComputer;
use super::version::{MODEL_VERSION, fingerprint};
use crate::again::check_elapsed;
use crate::error::LaboratoryError;
use crate::measured::JobTask;
use crate::observer::SilentObserver;
use crate::plan::{ModelPlan, list_titles};
use crate::rig::{RigSetup, RigWork, repeat_work};
use crate::two_drives::two_drive_settings;
use diskperf_battery::{Suite, SuiteJob, SuiteStep, WorkerGroups};
use diskperf_catalogue::Component;
use diskperf_timeline::{
    Device, Environment, Experiment, Filesystem, MeasuredWorld, ModelInformation, ProgramResult,
    Repetition, Run, RunState, Setting, TargetDescription, Trace, Workload,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Repeats a plan, up to the first repetition that counts of the last wanted result. For each
/// wanted result, `of` converts the trace of its first such repetition. Returns the converted
/// traces, each with the index of its result.
pub fn run_with_traces<T>(
    plan: &ModelPlan,
    (run, wanted): (&Run, &[usize]),
    of: impl Fn(Trace) -> Option<T>,
) -> Result<Vec<(usize, T)>, LaboratoryError> {
    let of_computer = plan.suite.iter_jobs().count();
    let mut kept = Vec::new();
    for (number, computer) in plan.computers.iter().enumerate() {
        let steps = number_steps(&plan.suite, number * of_computer);
        let first_wanted = |results: &Range<usize>| {
            let mut wanted = wanted.iter().copied();
            wanted.find(|one| results.contains(one))
        };
        let Some(last) = steps
            .iter()
            .rposition(|(_, all)| first_wanted(all).is_some())
        else {
            continue;
        };
        let usage = BenchUsage {
            records_trace: true,
            ..bench_usage(plan, &Arc::default())
        };
        let bench = ModelBench::build(&computer.specification, usage)?;
        // What runs before has left its files as its last repetition left them.
        for (place, (step, results)) in steps[..=last].iter().enumerate() {
            let titles = list_titles(step);
            let mut work = build_work(plan, step, &titles);
            work.protocol.discarded_count = uncounted_repetitions(&run.results[results.start]);
            if place == last {
                work.protocol.repetition_count = work.protocol.discarded_count + 1;
            }
            let (trace, repetitions) = first_trace(&bench, &work)?;
            let counts = |all: &[Repetition]| {
                let mut all = all.iter();
                all.find(|one| !one.is_discarded)
                    .map(Repetition::elapsed_time)
            };
            let elapsed = results.clone().zip(&repetitions);
            check_elapsed(
                run,
                elapsed.filter_map(|(job, all)| Some((job, counts(all)?))),
            )?;
            let found = first_wanted(results).and_then(|job| Some((job, of(trace?)?)));
            kept.extend(found);
        }
    }
    Ok(kept)
}

fn uncounted_repetitions(result: &ProgramResult) -> u32 {
    let mut all = result.repetitions.iter();
    let first = all.position(|one| !one.is_discarded);
    first.map_or(result.protocol.discarded_count, |first| first as u32)
}

/// Steps of a suite, each with the indices of its results. `first` is the index of the first
/// result.
fn number_steps(suite: &Suite, first: usize) -> Vec<(&SuiteStep, Range<usize>)> {
    let mut next = first;
    let steps = suite.steps.iter().map(|step| {
        let results = next..next + step.parallel_jobs.len();
        next = results.end;
        (step, results)
    });
    steps.collect()
}

/// Repeats work. Returns the trace of the first repetition that counts, and all repetitions of each
/// task.
fn first_trace(
    bench: &ModelBench,
    work: &RigWork<'_>,
) -> Result<(Option<Trace>, Vec<Vec<Repetition>>), LaboratoryError> {
    let mut trace = None;
    bench.take_trace();
    let mut repetitions = vec![Vec::new(); work.job_tasks.len()];
    repeat_work(
        bench,
        work,
        &mut repetitions,
        &mut SilentObserver,
        |made, _| {
            let recorded = bench.take_trace();
            if !made[0].is_discarded && trace.is_none() {
                trace = recorded;
            }
            true
        },
    )?;
    Ok((trace, repetitions))
}

/// Returns the configuration of each machine that a plan builds: drives, seed, phases, budget.
pub fn bench_usage(plan: &ModelPlan, stop: &Arc<AtomicBool>) -> BenchUsage {
    BenchUsage {
        has_other_volume: plan.has_other_volume,
        spindle_phase: plan.spindle_phase(),
        speed_difference_share: two_drive_settings().speed_difference_share,
        times_calls: plan.experiment.times_calls,
        drops_all_caches: plan.experiment.drops_all_caches,
        budget: plan.budget,
        records_requests: plan.records_requests,
        ..BenchUsage::for_system((&plan.target, plan.drive_count), plan.experiment.seed, stop)
    }
}

/// Returns the tasks of a step of a plan, with the plan's protocol.
pub fn build_work<'a>(plan: &ModelPlan, step: &'a SuiteStep, titles: &'a [String]) -> RigWork<'a> {
    let sizes_bytes: Vec<u64> = step
        .parallel_jobs
        .iter()
        .map(|job| plan.file_bytes(job))
        .collect();
    RigWork {
        job_tasks: JobTask::list_of_step(step, (titles, &sizes_bytes), plan.experiment.cache_mode),
        protocol: plan.suite.protocol_of_job(&step.parallel_jobs[0]),
        companion_work: WorkerGroups::default(),
    }
}

/// Returns the task of a job in a plan.
pub fn build_task<'a>(plan: &ModelPlan, job: &'a SuiteJob, title: &'a str) -> JobTask<'a> {
    JobTask::from_job(job, title, plan.experiment.cache_mode, plan.file_bytes(job))
}

/// Properties that all results of a plan on one of its computers share.
pub fn describe_setup(plan: &ModelPlan, computer: &ModelComputer) -> RigSetup {
    RigSetup {
        drive_count: plan.drive_count as u32,
        filesystem: computer.describe_filesystem(),
        notes: Vec::new(),
    }
}

/// Effect of one setting of a system on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingEffect {
    /// The run differs or is impossible without the setting.
    ChangesResult,
    /// Every repetition is the same without the setting.
    NoEffect,
    /// The run without the setting exceeds the rest of the budget.
    Undetermined,
}

/// Determines the effect of a setting on a run with these results, by making the run without it.
pub fn find_effect(
    plan: &ModelPlan,
    setting: usize,
    usage: &BenchUsage,
    results: &[ProgramResult],
) -> Result<SettingEffect, LaboratoryError> {
    match has_no_effect(plan, setting, usage, results) {
        Ok(true) => Ok(SettingEffect::NoEffect),
        Ok(false) | Err(LaboratoryError::Program { .. }) => Ok(SettingEffect::ChangesResult),
        Err(LaboratoryError::Budget(_)) => Ok(SettingEffect::Undetermined),
        Err(error) => Err(error),
    }
}

fn has_no_effect(
    plan: &ModelPlan,
    setting: usize,
    usage: &BenchUsage,
    results: &[ProgramResult],
) -> Result<bool, LaboratoryError> {
    let mut settings = plan.experiment.settings.clone();
    settings.remove(setting);
    let Ok(computers) = plan.rebuild_computers(&settings) else {
        return Ok(false);
    };
    let enough = |computer: &ModelComputer| {
        computer.configured_drive_count() >= plan.drive_count + usize::from(plan.has_other_volume)
    };
    if computers.len() != plan.computers.len() || !computers.iter().all(enough) {
        return Ok(false);
    }
    let mut before = results;
    for computer in &computers {
        let bench = ModelBench::build(&computer.specification, usage.clone())?;
        for step in &plan.suite.steps {
            let Some((of_step, rest)) = before.split_at_checked(step.parallel_jobs.len()) else {
                return Ok(false);
            };
            before = rest;
            if !are_results_equal(&bench, &build_work(plan, step, &list_titles(step)), of_step)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn are_results_equal(
    bench: &ModelBench,
    work: &RigWork<'_>,
    before: &[ProgramResult],
) -> Result<bool, LaboratoryError> {
    let mut number = 0;
    let mut same = true;
    let mut repetitions = vec![Vec::new(); work.job_tasks.len()];
    repeat_work(
        bench,
        work,
        &mut repetitions,
        &mut SilentObserver,
        |made, _| {
            let expected = before.iter().map(|result| result.repetitions.get(number));
            same &= made.iter().map(Some).eq(expected);
            number += 1;
            same
        },
    )?;
    let has_all = |result: &ProgramResult| result.repetitions.len() == number;
    Ok(same && before.iter().all(has_all))
}

/// Creates a modelled run, with no results yet.
pub fn new_run(plan: &ModelPlan, begun: RunStart) -> Run {
    let model = describe_model(plan, MODEL_VERSION);
    Run {
        model_information: Some(model),
        world: MeasuredWorld::Model,
        notes: plan.notes.clone(),
        ..empty_run(
            &plan.experiment,
            &plan.suite,
            (plan.target.clone(), model_environment(plan)),
            begun,
        )
    }
}

/// Collects everything that a model of this version needs to repeat the run.
pub fn describe_model(plan: &ModelPlan, model_version: &str) -> ModelInformation {
    let settings = plan.experiment.settings.iter();
    let settings: Vec<String> = settings.map(Setting::to_string).collect();
    let catalogue: BTreeMap<String, String> = plan
        .computers
        .iter()
        .flat_map(|computer| computer.catalogue_texts.clone())
        .collect();
    let mut identity = vec![
        model_version.to_owned(),
        plan.target.clone(),
        plan.experiment.seed.to_string(),
        plan.drive_count.to_string(),
        plan.experiment.cache_mode.mode_name().to_owned(),
        plan.experiment.drops_all_caches.to_string(),
    ];
    for step in &plan.suite.steps {
        for (number, job) in step.parallel_jobs.iter().enumerate() {
            let values = job.program.parameter_values();
            identity.push(format!(
                "{}{} {values:?} {} {:?}",
                if number > 0 { "beside: " } else { "" },
                job.program.name(),
                plan.file_bytes(job),
                plan.suite.protocol_of_job(job)
            ));
        }
    }
    if let Workload::JobFile(text) = &plan.experiment.workload {
        identity.push(format!(
            "{:?} {:?} {:?}",
            text.file_text, text.included_files, text.environment_variables
        ));
        identity.push(format!(
            "{} {} {}",
            text.page_bytes, text.memory_mib, text.processor_count
        ));
    }
    if let Workload::Replay(replay) = &plan.experiment.workload {
        identity.push(format!(
            "{:?} {:?} {:?} {:?}",
            replay.trace_reading, replay.replay_pace, replay.slot_count, replay.replay_addresses
        ));
        let files = replay.trace_facts.iter().flat_map(|held| &held.files);
        identity.extend(files.map(|file| file.sha256.clone()));
    }
    identity.extend(settings.iter().cloned());
    for (name, text) in &catalogue {
        identity.extend([name.clone(), text.clone()]);
    }
    ModelInformation {
        model_version: model_version.to_owned(),
        fingerprint: fingerprint(identity.iter().map(String::as_str)),
        settings,
        configured_drives: plan.computers[0].configured_drive_count() as u32,
        drive_phase: plan.spindle_phase(),
        catalogue,
    }
}

fn model_environment(plan: &ModelPlan) -> Environment {
    let computer = &plan.computers[0];
    let name = |component: Component| {
        // Drives by themselves have neither; runs of earlier versions call that so.
        let name = computer.component_names.get(&component);
        name.map_or("bare", |name| name).to_owned()
    };
    let memory = computer
        .parameters
        .iter()
        .find(|parameter| parameter.path == "host.memory_bytes")
        .and_then(|parameter| parameter.value.replace('_', "").parse().ok());
    let places = (0..plan.drive_count + usize::from(plan.has_other_volume)).map(|drive| {
        let volume = computer.specification.volumes[drive];
        let described = &computer.specification.drives[volume.drive];
        let size_bytes = described.capacity_bytes();
        TargetDescription {
            path: format!("drive {} of {}", drive + 1, plan.target),
            filesystem: computer
                .filesystem_kind_and_block()
                .map(|(kind, block_bytes)| Filesystem {
                    filesystem_type: kind.to_owned(),
                    mount_source: format!("drive {}", drive + 1),
                    mount_point: format!("/mnt{drive}"),
                    block_bytes,
                    total_bytes: computer.partition_bytes(drive),
                    available_bytes: computer.free_bytes(drive),
                    ..Filesystem::default()
                }),
            devices: vec![Device {
                name: computer.drive_names[volume.drive].clone(),
                size_bytes,
                is_rotational: Some(described.has_spindle()),
                ..Device::default()
            }],
        }
    });
    Environment {
        kernel_version: name(Component::Kernel),
        cpu_model: name(Component::Host),
        cpu_count: 1,
        memory_bytes: memory.unwrap_or(0),
        load_average: 0.0,
        call_clock: "virtual".to_owned(),
        places: places.collect(),
        known_limits: Vec::new(),
    }
}

/// Identity of a run. Models draw no ids and have no clock of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStart {
    /// Id of the run: ten hexadecimal digits.
    pub id: String,
    /// Start of the run, in milliseconds of Unix time.
    pub unix_ms: u64,
}

/// Creates a run of an experiment, with no results yet.
pub fn empty_run(
    experiment: &Experiment,
    suite: &Suite,
    (target, environment): (String, Environment),
    begun: RunStart,
) -> Run {
    Run {
        run_id: begun.id,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        suite_name: suite.name.clone(),
        target_label: target,
        world: MeasuredWorld::Host,
        user_label: experiment.label.clone(),
        seed: experiment.seed,
        started_unix_ms: begun.unix_ms,
        command_line: Vec::new(),
        experiment: experiment.to_stored(),
        interleaved: None,
        cache_mode: experiment.cache_mode,
        drops_all_caches: experiment.drops_all_caches,
        state: RunState::Running,
        environment,
        model_information: None,
        overhead: None,
        results: Vec::new(),
        notes: Vec::new(),
    }
}
