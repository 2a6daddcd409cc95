//! Programs of an experiment: looked up by name, or restored from stored values.

use super::job_file::{self, JobStorage};
use super::replay;
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::job_file::names_job_file;
use diskperf_battery::program::nearest_name;
use diskperf_battery::{Medium, ParameterError, Program, Suite, SuiteJob, SuiteStep};
use diskperf_catalogue::Catalogue;
use diskperf_timeline::{
    CacheMode, Experiment, JobFileText, Protocol, Setting, SteadyRule, StepValues, TraceReplay,
    Workload,
};
use std::path::{Path, PathBuf};

/// Default suite on real storage.
pub const DEFAULT_SUITE: &str = "today26";

/// Returns the suite of a workload on this kind of storage.
pub fn build_suite(
    workload: &Workload,
    medium: Medium,
    files: &dyn Files,
) -> Result<Suite, LaboratoryError> {
    match workload {
        Workload::DefaultSuite => suite_by_name(DEFAULT_SUITE, medium),
        Workload::NamedSuite(name) => suite_by_name(name, medium),
        Workload::Steps {
            name,
            protocol,
            steps,
        } => Ok(Suite {
            name: name.clone(),
            default_protocol: possible(*protocol)?,
            steps: steps.iter().map(build_step).collect::<Result<_, _>>()?,
        }),
        Workload::JobFile(text) => {
            let ground = JobStorage::for_any_model();
            Ok(job_file::build_suite(text, (&ground, files), &Experiment::default())?.0)
        }
        Workload::Replay(of) => {
            let ground = replay::ReplayStorage::for_any_storage();
            Ok(replay::build_suite(of, (&ground, files), CacheMode::Direct)?.0)
        }
    }
}

/// Returns the suite or program with this name.
pub fn suite_by_name(name: &str, medium: Medium) -> Result<Suite, LaboratoryError> {
    if let Some(suite) = Suite::from_name(name, medium) {
        return Ok(suite);
    }
    if let Some(program) = Program::from_name(name) {
        return Ok(Suite::from_program(program));
    }
    if names_job_file(name) {
        return Err(LaboratoryError::Request(format!(
            "`{name}` is a fio job file, and a study of points takes a suite or a program; `run`, `ab`, `explain` and `tune` take job files"
        )));
    }
    let is_path = name.contains('/') || Path::new(name).exists();
    let is_system = Catalogue::embedded()
        .system_names()
        .contains(&name.to_owned());
    if is_path || is_system {
        let kind = if is_path { "path" } else { "modelled system" };
        return Err(LaboratoryError::Request(format!(
            "`{name}` is a {kind}, and a suite or a program is expected here: write `diskperf run --on {name}`"
        )));
    }
    let names: Vec<_> = Suite::list_suites()
        .iter()
        .map(|(name, _)| *name)
        .chain(Program::list_programs().into_iter().map(|(name, _)| name))
        .collect();
    Err(LaboratoryError::Request(
        match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("no suite or program is called `{name}`; did you mean `{near}`?"),
            None => format!(
                "no suite or program is called `{name}`; there are {}",
                names.join(", ")
            ),
        },
    ))
}

fn possible(protocol: Protocol) -> Result<Protocol, LaboratoryError> {
    if protocol.discarded_count < protocol.repetition_count {
        return Ok(protocol);
    }
    Err(LaboratoryError::Request(format!(
        "no repetition is left of {} when {} are discarded",
        protocol.repetition_count, protocol.discarded_count
    )))
}

fn build_step(values: &StepValues) -> Result<SuiteStep, LaboratoryError> {
    let jobs = std::iter::once(values)
        .chain(&values.parallel_steps)
        .map(build_job);
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok(SuiteStep {
        parallel_jobs: jobs,
    })
}

fn build_job(values: &StepValues) -> Result<SuiteJob, LaboratoryError> {
    let mut program = Program::from_name(&values.program).ok_or_else(|| {
        LaboratoryError::Request(format!(
            "no program is called `{}` any more",
            values.program
        ))
    })?;
    for (name, value) in &values.parameters {
        program.set_parameter(name, value)?;
    }
    Ok(SuiteJob {
        distinguishing_parameters: values.distinguishing.clone(),
        table_row: values.table_row,
        size_group: values.size_group,
        own_protocol: values.protocol.map(possible).transpose()?,
        area_pass_count: values.area_pass_count,
        size_bytes: values.size_bytes,
        ..SuiteJob::from_program(program)
    })
}

/// Returns the values that a step is stored by: those of its first job, with the others beside it.
fn step_values(step: &SuiteStep) -> StepValues {
    let mut jobs = step.parallel_jobs.iter().map(|job| StepValues {
        program: job.program.name().to_owned(),
        parameters: job.program.parameter_values(),
        distinguishing: job.distinguishing_parameters.clone(),
        table_row: job.table_row,
        size_group: job.size_group,
        protocol: job.own_protocol,
        area_pass_count: job.area_pass_count,
        size_bytes: job.size_bytes,
        parallel_steps: Vec::new(),
    });
    let first = jobs.next().expect("a step has a job");
    StepValues {
        parallel_steps: jobs.collect(),
        ..first
    }
}

/// Returns the experiment of one run, with the steps of its suite. They include the settings of
/// programs and the number of repetitions.
pub fn experiment_of_run(
    experiment: &Experiment,
    targets: Vec<PathBuf>,
    suite: &Suite,
) -> Experiment {
    let workload = match &experiment.workload {
        Workload::JobFile(text) => Workload::JobFile(JobFileText {
            protocol: Some(suite.default_protocol),
            ..text.clone()
        }),
        Workload::Replay(replay) => Workload::Replay(Box::new(TraceReplay {
            protocol: Some(suite.default_protocol),
            ..(**replay).clone()
        })),
        _ => Workload::Steps {
            name: suite.name.clone(),
            protocol: suite.default_protocol,
            steps: suite.steps.iter().map(step_values).collect(),
        },
    };
    let mut experiment = Experiment {
        workload,
        targets,
        repetition_count: None,
        steady_rule: None,
        finds_caps: false,
        ..experiment.clone()
    };
    let of_system = |setting: &Setting| setting.program_parameter_name().is_none();
    experiment.settings.retain(of_system);
    experiment
}

/// Applies the number of repetitions and the program settings of an experiment to a suite. A
/// setting applies to every step that has the parameter. Steps that become equal run once.
pub fn with_stated_options(
    mut suite: Suite,
    experiment: &Experiment,
) -> Result<Suite, LaboratoryError> {
    if let Some(repetitions) = experiment.repetition_count {
        suite.default_protocol.repetition_count = repetitions.max(1);
        suite.default_protocol.discarded_count = suite
            .default_protocol
            .discarded_count
            .min(suite.default_protocol.repetition_count - 1);
        suite.default_protocol.stop_below_share = None;
        // What comes before the measurement is as often as it must be.
        let bounds = suite
            .iter_jobs_mut()
            .filter_map(|job| job.own_protocol.as_mut());
        for protocol in bounds.filter(|protocol| protocol.steady_rule.is_some()) {
            protocol.repetition_count = repetitions.max(1);
        }
    }
    if let Some(rule) = experiment.steady_rule {
        repeat_until_steady(&mut suite, rule, experiment.repetition_count);
    }
    for setting in &experiment.settings {
        if let Some(name) = setting.program_parameter_name() {
            set_parameter(&mut suite, name, &setting.value_text)?;
        }
    }
    let mut kept: Vec<SuiteStep> = Vec::new();
    for step in suite.steps.drain(..) {
        // What a job file says twice is done twice.
        let said = step.parallel_jobs.iter().any(|job| job.job_name.is_some());
        if said || !kept.iter().any(|earlier| is_same_step(earlier, &step)) {
            kept.push(step);
        }
    }
    suite.steps = kept;
    if experiment.finds_caps && !suite.add_cap_probes() {
        return Err(LaboratoryError::request(
            "--find-limits probes random and sequential programs with two or more requests in flight, and there are none; run `cap_probe`",
        ));
    }
    if experiment.volume.is_some() && !suite.iter_programs().any(Program::repeats_by_itself) {
        return Err(LaboratoryError::request(
            "--volume names the limits that a probe may find: add --find-limits, or run `cap_probe`",
        ));
    }
    Ok(suite)
}

fn list_programs(step: &SuiteStep) -> impl Iterator<Item = &Program> {
    step.parallel_jobs.iter().map(|job| &job.program)
}

fn is_same_step(one: &SuiteStep, other: &SuiteStep) -> bool {
    let programs = list_programs(one);
    programs.eq(list_programs(other))
}

/// Makes every step of a suite repeat until it is steady, up to a maximum number of rounds.
fn repeat_until_steady(suite: &mut Suite, rule: SteadyRule, most: Option<u32>) {
    let protocol = Protocol {
        repetition_count: most.unwrap_or(SteadyRule::ROUNDS_MAX).max(1),
        discarded_count: 0,
        stop_below_share: None,
        steady_rule: Some(rule),
        ..suite.default_protocol
    };
    suite.default_protocol = protocol;
    let own = suite
        .iter_jobs_mut()
        .filter_map(|job| job.own_protocol.as_mut());
    for own in own.filter(|own| own.steady_rule.is_some()) {
        *own = protocol;
    }
}

/// Returns a note if so few repetitions are requested that some count which the suite's protocol
/// would discard.
pub fn describe_discarded(suite: &Suite, repetitions: Option<u32>) -> Option<String> {
    let (asked, wanted) = (repetitions?, suite.default_protocol.discarded_count);
    let kept = match asked {
        1 => "the first repetition".to_owned(),
        _ => format!("one of the first {wanted} repetitions"),
    };
    (asked <= wanted).then(|| {
        format!(
            "--runs {asked} keeps {kept}, which {} discards, since caches still fill then; --runs {} discards as it does",
            suite.name,
            wanted + 1
        )
    })
}

fn set_parameter(suite: &mut Suite, name: &str, value: &str) -> Result<(), LaboratoryError> {
    let mut taken = false;
    // What moves its area so many times is over then, and not after some time.
    let of_time = ["duration_ms", "ramp_ms"].contains(&name);
    for job in suite.iter_jobs_mut() {
        if of_time && job.area_pass_count.is_some() {
            continue;
        }
        match job.program.set_parameter(name, value) {
            Ok(()) => {
                taken = true;
                if !job
                    .distinguishing_parameters
                    .iter()
                    .any(|known| known == name)
                {
                    job.distinguishing_parameters.push(name.to_owned());
                }
            }
            Err(ParameterError::UnknownParameter { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match taken {
        true => Ok(()),
        false => Err(unknown_parameter_error(suite, name).into()),
    }
}

fn unknown_parameter_error(suite: &Suite, name: &str) -> ParameterError {
    if name == "verify"
        && let Some(reason) = suite.iter_programs().find_map(Program::unverified_reason)
    {
        return ParameterError::IncompatibleValue {
            program: suite.name.clone(),
            reason: format!("nothing can be verified: {reason}"),
        };
    }
    let known = list_parameter_names(suite);
    let (of, name) = (suite.name.clone(), name.to_owned());
    let nearest = nearest_name(&name, known.iter().copied());
    match Program::from_name(&of) {
        Some(_) => ParameterError::UnknownParameter {
            program: of,
            name,
            nearest,
            known,
        },
        None => ParameterError::UnknownToAllPrograms {
            suite: of,
            name,
            nearest,
            known,
        },
    }
}

pub(super) fn list_parameter_names(suite: &Suite) -> Vec<&'static str> {
    let mut names = Vec::new();
    for parameter in suite.iter_programs().flat_map(Program::list_parameters) {
        if !names.contains(&parameter.parameter_name) {
            names.push(parameter.parameter_name);
        }
    }
    names
}

/// Rejects settings of a modelled system, which real storage does not have.
pub fn check_program_settings(settings: &[Setting]) -> Result<(), LaboratoryError> {
    let Some(setting) = settings
        .iter()
        .find(|setting| setting.program_parameter_name().is_none())
    else {
        return Ok(());
    };
    let path = &setting.path;
    let part = path.split_once('.').map_or(path.as_str(), |(part, _)| part);
    Err(LaboratoryError::Request(format!(
        "--set {path}: real storage has no component `{part}` to set, only `program`; a modelled system has: --on vax780-sc780-eagle"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_the_same_by_their_values() {
        for (name, _) in Suite::list_suites() {
            for medium in [Medium::Directory, Medium::Device, Medium::File] {
                let Some(suite) = Suite::from_name(name, medium) else {
                    continue;
                };
                let kept = experiment_of_run(&Experiment::default(), Vec::new(), &suite);
                assert_eq!(
                    super::build_suite(&kept.workload, medium, &crate::files::NoFiles).unwrap(),
                    suite
                );
            }
        }
        for (name, _) in Program::list_programs() {
            let suite = suite_by_name(name, Medium::Directory).unwrap();
            let kept = experiment_of_run(&Experiment::default(), Vec::new(), &suite);
            let again =
                super::build_suite(&kept.workload, Medium::Directory, &crate::files::NoFiles)
                    .unwrap();
            assert_eq!(again, suite, "{name}");
        }
    }

    #[test]
    fn repetitions_that_count_although_the_protocol_discards_them_are_spoken_of() {
        let suite = suite_by_name("ffs83", Medium::Directory).unwrap();
        for (repetitions, said) in [(None, false), (Some(1), true), (Some(2), false)] {
            let note = describe_discarded(&suite, repetitions);
            assert_eq!(note.is_some(), said, "{repetitions:?}: {note:?}");
        }
    }

    #[test]
    fn a_protocol_that_keeps_nothing_is_refused() {
        let mut suite = suite_by_name("ffs83", Medium::Directory).unwrap();
        suite.default_protocol.discarded_count = suite.default_protocol.repetition_count;
        let kept = experiment_of_run(&Experiment::default(), Vec::new(), &suite);
        assert!(
            super::build_suite(&kept.workload, Medium::Directory, &crate::files::NoFiles).is_err()
        );
    }
}
