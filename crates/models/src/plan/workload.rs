//! Programs of an experiment: looked up by name, or restored from stored values.

use super::job_file::{self, JobStorage};
use super::replay;
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::job_file::names_job_file;
use diskperf_battery::program::nearest;
use diskperf_battery::{Job, Medium, ParameterError, Program, Step, Suite};
use diskperf_catalogue::Catalogue;
use diskperf_timeline::{
    CacheMode, Experiment, JobText, Protocol, Setting, SteadyRule, StepValues, TraceReplay,
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
        Workload::Usual => suite_by_name(DEFAULT_SUITE, medium),
        Workload::Named(name) => suite_by_name(name, medium),
        Workload::Steps {
            name,
            protocol,
            steps,
        } => Ok(Suite {
            name: name.clone(),
            protocol: possible(*protocol)?,
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
    if let Some(suite) = Suite::named(name, medium) {
        return Ok(suite);
    }
    if let Some(program) = Program::named(name) {
        return Ok(Suite::of_program(program));
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
    let names: Vec<_> = Suite::all()
        .iter()
        .map(|(name, _)| *name)
        .chain(Program::all().into_iter().map(|(name, _)| name))
        .collect();
    Err(LaboratoryError::Request(
        match nearest(name, names.iter().copied()) {
            Some(near) => format!("no suite or program is called `{name}`; did you mean `{near}`?"),
            None => format!(
                "no suite or program is called `{name}`; there are {}",
                names.join(", ")
            ),
        },
    ))
}

fn possible(protocol: Protocol) -> Result<Protocol, LaboratoryError> {
    if protocol.discarded < protocol.repetitions {
        return Ok(protocol);
    }
    Err(LaboratoryError::Request(format!(
        "no repetition is left of {} when {} are discarded",
        protocol.repetitions, protocol.discarded
    )))
}

fn build_step(values: &StepValues) -> Result<Step, LaboratoryError> {
    let jobs = std::iter::once(values).chain(&values.beside).map(build_job);
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok(Step { jobs })
}

fn build_job(values: &StepValues) -> Result<Job, LaboratoryError> {
    let mut program = Program::named(&values.program).ok_or_else(|| {
        LaboratoryError::Request(format!(
            "no program is called `{}` any more",
            values.program
        ))
    })?;
    for (name, value) in &values.parameters {
        program.set(name, value)?;
    }
    Ok(Job {
        distinguishing: values.distinguishing.clone(),
        row: values.row,
        size_group: values.size_group,
        protocol: values.protocol.map(possible).transpose()?,
        area_times: values.area_times,
        size_bytes: values.size_bytes,
        ..Job::of(program)
    })
}

/// Returns the values that a step is stored by: those of its first job, with the others beside it.
fn step_values(step: &Step) -> StepValues {
    let mut jobs = step.jobs.iter().map(|job| StepValues {
        program: job.program.name().to_owned(),
        parameters: job.program.parameter_values(),
        distinguishing: job.distinguishing.clone(),
        row: job.row,
        size_group: job.size_group,
        protocol: job.protocol,
        area_times: job.area_times,
        size_bytes: job.size_bytes,
        beside: Vec::new(),
    });
    let first = jobs.next().expect("a step has a job");
    StepValues {
        beside: jobs.collect(),
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
        Workload::JobFile(text) => Workload::JobFile(JobText {
            protocol: Some(suite.protocol),
            ..text.clone()
        }),
        Workload::Replay(replay) => Workload::Replay(Box::new(TraceReplay {
            protocol: Some(suite.protocol),
            ..(**replay).clone()
        })),
        _ => Workload::Steps {
            name: suite.name.clone(),
            protocol: suite.protocol,
            steps: suite.steps.iter().map(step_values).collect(),
        },
    };
    let mut experiment = Experiment {
        workload,
        targets,
        repetitions: None,
        until_steady: None,
        ..experiment.clone()
    };
    let of_system = |setting: &Setting| setting.of_program().is_none();
    experiment.settings.retain(of_system);
    experiment
}

/// Applies the number of repetitions and the program settings of an experiment to a suite. A
/// setting applies to every step that has the parameter. Steps that become equal run once.
pub fn with_stated_options(
    mut suite: Suite,
    experiment: &Experiment,
) -> Result<Suite, LaboratoryError> {
    if let Some(repetitions) = experiment.repetitions {
        suite.protocol.repetitions = repetitions.max(1);
        suite.protocol.discarded = suite.protocol.discarded.min(suite.protocol.repetitions - 1);
        suite.protocol.stop_below_share = None;
        // What comes before the measurement is as often as it must be.
        let bounds = suite.jobs_mut().filter_map(|job| job.protocol.as_mut());
        for protocol in bounds.filter(|protocol| protocol.steady.is_some()) {
            protocol.repetitions = repetitions.max(1);
        }
    }
    if let Some(rule) = experiment.until_steady {
        repeat_until_steady(&mut suite, rule, experiment.repetitions);
    }
    for setting in &experiment.settings {
        if let Some(name) = setting.of_program() {
            set_parameter(&mut suite, name, &setting.text)?;
        }
    }
    let mut kept: Vec<Step> = Vec::new();
    for step in suite.steps.drain(..) {
        // What a job file says twice is done twice.
        let said = step.jobs.iter().any(|job| job.name.is_some());
        if said || !kept.iter().any(|earlier| is_same_step(earlier, &step)) {
            kept.push(step);
        }
    }
    suite.steps = kept;
    Ok(suite)
}

fn list_programs(step: &Step) -> impl Iterator<Item = &Program> {
    step.jobs.iter().map(|job| &job.program)
}

fn is_same_step(one: &Step, other: &Step) -> bool {
    let programs = list_programs(one);
    programs.eq(list_programs(other))
}

/// Makes every step of a suite repeat until it is steady, up to a maximum number of rounds.
fn repeat_until_steady(suite: &mut Suite, rule: SteadyRule, most: Option<u32>) {
    let protocol = Protocol {
        repetitions: most.unwrap_or(SteadyRule::ROUNDS_MAX).max(1),
        discarded: 0,
        stop_below_share: None,
        steady: Some(rule),
        ..suite.protocol
    };
    suite.protocol = protocol;
    let own = suite.jobs_mut().filter_map(|job| job.protocol.as_mut());
    for own in own.filter(|own| own.steady.is_some()) {
        *own = protocol;
    }
}

/// Returns a note if so few repetitions are requested that some count which the suite's protocol
/// would discard.
pub fn describe_discarded(suite: &Suite, repetitions: Option<u32>) -> Option<String> {
    let (asked, wanted) = (repetitions?, suite.protocol.discarded);
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
    for job in suite.jobs_mut() {
        if of_time && job.area_times.is_some() {
            continue;
        }
        match job.program.set(name, value) {
            Ok(()) => {
                taken = true;
                if !job.distinguishing.iter().any(|known| known == name) {
                    job.distinguishing.push(name.to_owned());
                }
            }
            Err(ParameterError::Unknown { .. }) => {}
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
        && let Some(reason) = suite.programs().find_map(Program::why_unverified)
    {
        return ParameterError::Unfit {
            program: suite.name.clone(),
            reason: format!("nothing can be verified: {reason}"),
        };
    }
    let known = list_parameter_names(suite);
    let (of, name) = (suite.name.clone(), name.to_owned());
    let nearest = nearest(&name, known.iter().copied());
    match Program::named(&of) {
        Some(_) => ParameterError::Unknown {
            program: of,
            name,
            nearest,
            known,
        },
        None => ParameterError::UnknownToAll {
            suite: of,
            name,
            nearest,
            known,
        },
    }
}

pub(super) fn list_parameter_names(suite: &Suite) -> Vec<&'static str> {
    let mut names = Vec::new();
    for parameter in suite.programs().flat_map(Program::parameters) {
        if !names.contains(&parameter.name) {
            names.push(parameter.name);
        }
    }
    names
}

/// Rejects settings of a modelled system, which real storage does not have.
pub fn check_program_settings(settings: &[Setting]) -> Result<(), LaboratoryError> {
    let Some(setting) = settings
        .iter()
        .find(|setting| setting.of_program().is_none())
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
        for (name, _) in Suite::all() {
            for medium in [Medium::Directory, Medium::Device, Medium::File] {
                let Some(suite) = Suite::named(name, medium) else {
                    continue;
                };
                let kept = experiment_of_run(&Experiment::default(), Vec::new(), &suite);
                assert_eq!(
                    super::build_suite(&kept.workload, medium, &crate::files::NoFiles).unwrap(),
                    suite
                );
            }
        }
        for (name, _) in Program::all() {
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
        suite.protocol.discarded = suite.protocol.repetitions;
        let kept = experiment_of_run(&Experiment::default(), Vec::new(), &suite);
        assert!(
            super::build_suite(&kept.workload, Medium::Directory, &crate::files::NoFiles).is_err()
        );
    }
}
