//! What a plan of a modelled run comes to: how its machines are used, what is repeated
//! on them, and what a run says of itself.

use super::bench::{Bench, Usage};
use super::computer::Computer;
use super::version::{MODEL_VERSION, fingerprint};
use crate::again::check_elapsed;
use crate::error::LaboratoryError;
use crate::execute::empty_run;
use crate::measured::Task;
use crate::plan::{ModelPlan, title};
use crate::reproduce::two_drives;
use crate::rig::{Stand, Work, repeat_unobserved};
use diskperf_battery::Step;
use diskperf_machine::catalogue::Component;
use diskperf_timeline::{
    Device, Environment, Filesystem, Modelled, Place, ProgramResult, Repetition, Run, Setting,
    Trace, World,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Does what a plan says again, up to the first repetition that counts of the last of
/// the wanted results. Keeps what `of` makes of the first that counts of each of these,
/// with the result's number.
pub(crate) fn traced<T>(
    plan: &ModelPlan,
    (run, wanted): (&Run, &[usize]),
    of: impl Fn(Trace) -> Option<T>,
) -> Result<Vec<(usize, T)>, LaboratoryError> {
    let steps = &plan.suite.steps;
    let mut kept = Vec::new();
    for (number, computer) in plan.computers.iter().enumerate() {
        let first = number * steps.len();
        let of_this = wanted.iter().filter_map(|one| one.checked_sub(first));
        let Some(last) = of_this.filter(|step| *step < steps.len()).max() else {
            continue;
        };
        let usage = Usage {
            trace: true,
            ..usage(plan, &Arc::default())
        };
        let bench = Bench::build(&computer.specification, usage)?;
        // What runs before has left its files as its last repetition left them.
        for (step, number) in steps[..=last].iter().zip(first..) {
            let title = title(step);
            let mut work = work(plan, step, &title);
            if number == first + last {
                work.protocol.repetitions = work.protocol.discarded + 1;
            }
            let mut trace = None;
            bench.take_trace();
            let repetitions = repeat_unobserved(&bench, &work, |repetition| {
                let recorded = bench.take_trace();
                if !repetition.discarded && trace.is_none() {
                    trace = recorded;
                }
                true
            })?;
            let counts = repetitions.iter().find(|one| !one.discarded);
            let elapsed = counts.map(|one| (number, one.elapsed()));
            check_elapsed(run, elapsed.into_iter())?;
            let trace = trace.filter(|_| wanted.contains(&number));
            kept.extend(trace.and_then(&of).map(|found| (number, found)));
        }
    }
    Ok(kept)
}

pub(crate) fn usage(plan: &ModelPlan, stop: &Arc<AtomicBool>) -> Usage {
    Usage {
        other: plan.other,
        phase: plan.phase(),
        speed_difference: two_drives().speed_difference_share,
        time_calls: plan.experiment.time_calls,
        drop_all_caches: plan.experiment.drop_all_caches,
        budget: plan.budget,
        ..Usage::of((&plan.target, plan.drives), plan.experiment.seed, stop)
    }
}

/// A step of a plan, by the plan's protocol.
pub(crate) fn work<'a>(plan: &ModelPlan, step: &'a Step, title: &'a str) -> Work<'a> {
    Work {
        title,
        task: Task {
            program: &step.program,
            cache: step.program.cache_mode(plan.experiment.cache),
            size_bytes: plan.size(step),
        },
        protocol: plan.suite.protocol,
    }
}

/// What the results of a plan on one of its computers have in common.
pub(crate) fn stand(plan: &ModelPlan, computer: &Computer) -> Stand {
    Stand {
        drives: plan.drives as u32,
        filesystem: computer.filesystem(),
        notes: Vec::new(),
    }
}

/// Whether a run does the same without one of the settings of its system. What is not
/// possible without it is not the same.
pub(crate) fn is_idle(
    plan: &ModelPlan,
    setting: usize,
    stop: &Arc<AtomicBool>,
    results: &[ProgramResult],
) -> Result<bool, LaboratoryError> {
    let mut settings = plan.experiment.settings.clone();
    settings.remove(setting);
    let Ok(computers) = plan.computers_with(&settings) else {
        return Ok(false);
    };
    let enough =
        |computer: &Computer| computer.configured_drives() >= plan.drives + usize::from(plan.other);
    if computers.len() != plan.computers.len() || !computers.iter().all(enough) {
        return Ok(false);
    }
    let mut of_run = results.iter();
    for computer in &computers {
        let bench = Bench::build(&computer.specification, usage(plan, stop))?;
        for step in &plan.suite.steps {
            let Some(result) = of_run.next() else {
                return Ok(false);
            };
            if !is_same(&bench, &work(plan, step, &title(step)), &result.repetitions)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether a program's repetitions are those of before.
fn is_same(bench: &Bench, work: &Work<'_>, before: &[Repetition]) -> Result<bool, LaboratoryError> {
    let mut expected = before.iter();
    let mut same = true;
    let made = repeat_unobserved(bench, work, |one| {
        same &= expected.next() == Some(one);
        same
    });
    match made {
        Ok(made) => Ok(same && made.len() == before.len()),
        Err(LaboratoryError::Program { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A modelled run with nothing measured yet.
pub(crate) fn new_run(plan: &ModelPlan) -> Run {
    let model = modelled(plan, MODEL_VERSION);
    Run {
        model: Some(model),
        world: World::Model,
        notes: plan.notes.clone(),
        ..empty_run(
            &plan.experiment,
            &plan.suite,
            (plan.target.clone(), environment(plan)),
        )
    }
}

/// What it takes to make the run again, by a model of this version.
pub(crate) fn modelled(plan: &ModelPlan, model_version: &str) -> Modelled {
    let settings = plan.experiment.settings.iter();
    let settings: Vec<String> = settings.map(Setting::to_string).collect();
    let catalogue: BTreeMap<String, String> = plan
        .computers
        .iter()
        .flat_map(|computer| computer.texts.clone())
        .collect();
    let mut identity = vec![
        model_version.to_owned(),
        plan.target.clone(),
        plan.experiment.seed.to_string(),
        plan.drives.to_string(),
        plan.experiment.cache.name().to_owned(),
        plan.experiment.drop_all_caches.to_string(),
    ];
    for step in &plan.suite.steps {
        let values = step.program.parameter_values();
        identity.push(format!(
            "{} {values:?} {} {:?}",
            step.program.name(),
            plan.size(step),
            plan.suite.protocol
        ));
    }
    identity.extend(settings.iter().cloned());
    for (name, text) in &catalogue {
        identity.extend([name.clone(), text.clone()]);
    }
    Modelled {
        model_version: model_version.to_owned(),
        fingerprint: fingerprint(identity.iter().map(String::as_str)),
        settings,
        configured_drives: plan.computers[0].configured_drives() as u32,
        phase: plan.phase(),
        catalogue,
    }
}

/// The modelled computer, described as a real one is.
fn environment(plan: &ModelPlan) -> Environment {
    let computer = &plan.computers[0];
    let name = |component: Component| computer.components[&component].clone();
    let memory = computer
        .parameters
        .iter()
        .find(|parameter| parameter.path == "host.memory_bytes")
        .and_then(|parameter| parameter.value.replace('_', "").parse().ok());
    let places = (0..plan.drives + usize::from(plan.other)).map(|drive| {
        let volume = computer.specification.volumes[drive];
        let described = &computer.specification.drives[volume.drive];
        let size_bytes = described.capacity_bytes();
        Place {
            path: format!("drive {} of {}", drive + 1, plan.target),
            filesystem: computer
                .filesystem_kind()
                .map(|(kind, block_bytes)| Filesystem {
                    kind: kind.to_owned(),
                    source: format!("drive {}", drive + 1),
                    mount_point: format!("/mnt{drive}"),
                    block_bytes,
                    total_bytes: computer.partition_bytes(drive),
                    available_bytes: computer.room_bytes(drive),
                    ..Filesystem::default()
                }),
            devices: vec![Device {
                name: computer.drive_names[volume.drive].clone(),
                size_bytes,
                rotational: Some(described.mechanism().is_some()),
                ..Device::default()
            }],
        }
    });
    Environment {
        kernel: name(Component::Kernel),
        cpu_model: name(Component::Host),
        cpus: 1,
        memory_bytes: memory.unwrap_or(0),
        load_average: 0.0,
        call_clock: "virtual".to_owned(),
        places: places.collect(),
    }
}
