//! Carries the plan of a modelled run out.

use super::bench::{Bench, Usage};
use super::computer::Computer;
use super::version::{MODEL_VERSION, fingerprint};
use crate::error::{LaboratoryError, Names};
use crate::execute::kept;
use crate::measured::{Assignment, Task, stagger_note};
use crate::observer::{Event, Observer};
use crate::plan::{ModelPlan, title};
use crate::recorder::Recorder;
use crate::reproduce::two_drives;
use diskperf_battery::Step;
use diskperf_machine::WhatIf;
use diskperf_machine::catalogue::Component;
use diskperf_timeline::{
    Device, Environment, Filesystem, Modelled, Place, ProgramResult, Repetition, Run, RunState,
    Setting, Trace, World,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A modelled run under way.
pub(crate) struct Execution<'a> {
    pub(crate) plan: &'a ModelPlan,
    pub(crate) stop: &'a Arc<AtomicBool>,
    pub(crate) run: Run,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) recorder: &'a mut Recorder,
}

impl Execution<'_> {
    /// All programs on all file systems, then what the settings did.
    pub(crate) fn carry_out(&mut self) -> Result<(), LaboratoryError> {
        self.recorder.begin_run(&self.run);
        self.recorder.tell(self.observer);
        self.observer.event(Event::RunStarted(&self.run));
        for note in &self.plan.notes {
            self.observer.event(Event::Note(note));
        }
        for computer in &self.plan.computers {
            self.on_computer(computer)?;
        }
        for note in self.idle_settings()? {
            self.observer.event(Event::Note(&note));
            self.run.notes.push(note);
        }
        Ok(())
    }

    fn on_computer(&mut self, computer: &Computer) -> Result<(), LaboratoryError> {
        let bench = Bench::build(&computer.specification, self.usage())?;
        let steps = self.plan.suite.steps.len();
        let before = self.run.results.len();
        for (number, step) in self.plan.suite.steps.iter().enumerate() {
            self.observer.event(Event::StepStarted {
                title: &title(step),
                number: before + number,
                of: steps * self.plan.computers.len(),
            });
            self.step(step, computer, &bench)?;
        }
        bench.check()
    }

    fn usage(&self) -> Usage {
        usage(self.plan, self.stop)
    }

    fn step(
        &mut self,
        step: &Step,
        computer: &Computer,
        bench: &Bench,
    ) -> Result<(), LaboratoryError> {
        let mut result = new_result(self.plan, step, computer);
        self.recorder.begin_result(&result);
        self.recorder.tell(self.observer);
        let outcome = self.repeat(&mut result, step, bench);
        result.notes.extend(stagger_note(&step.program, &result));
        self.recorder.finish_result(&result);
        self.recorder.tell(self.observer);
        self.observer.event(Event::StepFinished(&result));
        self.run.results.push(result);
        outcome
    }

    fn repeat(
        &mut self,
        result: &mut ProgramResult,
        step: &Step,
        bench: &Bench,
    ) -> Result<(), LaboratoryError> {
        let protocol = result.protocol;
        let assignments = bench.assignments(task(self.plan, step));
        let moved: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
        let workers = assignments.len() as u64;
        for number in 0..protocol.repetitions {
            self.observer.event(Event::RepetitionStarted {
                number,
                of: protocol.repetitions,
                total_bytes: result.size_bytes * workers * step.program.passes(),
                moved_bytes: &moved,
            });
            let mut repetition = repetition(self.plan, step, bench, (&assignments, &moved))?;
            repetition.discarded = number < protocol.discarded;
            self.recorder.add_repetition(&repetition);
            self.recorder.tell(self.observer);
            self.observer.event(Event::RepetitionFinished(&repetition));
            result.repetitions.push(repetition);
            if crate::execute::is_sure(result, &protocol) {
                break;
            }
        }
        Ok(())
    }

    /// The settings of the system that changed nothing in this run: each is
    /// left away in turn, and the repetitions compared.
    fn idle_settings(&self) -> Result<Vec<String>, LaboratoryError> {
        let mut notes = Vec::new();
        for (number, setting) in self.plan.experiment.settings.iter().enumerate() {
            let mut without = self.plan.experiment.settings.clone();
            without.remove(number);
            let same = same_without(self.plan, &without, self.stop, &self.run.results)?;
            if same {
                notes.push(format!(
                    "--set {setting} had no effect in this run: without it every repetition is the same"
                ));
            }
        }
        Ok(notes)
    }
}

/// A plan's program once on a bench.
///
/// # Errors
///
/// What the program fails with, by the plan's names, and a machine that comes to
/// a standstill.
pub(crate) fn repetition(
    plan: &ModelPlan,
    step: &Step,
    bench: &Bench,
    (assignments, moved): (&[Assignment], &[Arc<AtomicU64>]),
) -> Result<Repetition, LaboratoryError> {
    let outcome = bench.repetition(assignments.to_vec(), moved)?;
    outcome.map_err(|error| {
        let names = Names::of_model(&plan.target, plan.drives);
        LaboratoryError::program(&title(step), &names, &error)
    })
}

/// Does what a plan says again, as far as it takes for the first repetition that
/// counts of the wanted results, each by its number; keeps what `of` makes of
/// these.
pub(crate) fn traced<T>(
    plan: &ModelPlan,
    wanted: &[usize],
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
        // What runs before has left its files.
        for (step, number) in steps[..=last].iter().zip(first..) {
            let assignments = bench.assignments(task(plan, step));
            let moved: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
            for _ in 0..=plan.suite.protocol.discarded {
                bench.take_trace();
                let repetition = bench.repetition(assignments.clone(), &moved)?;
                repetition.map_err(LaboratoryError::work)?;
            }
            let trace = bench.take_trace().filter(|_| wanted.contains(&number));
            kept.extend(trace.and_then(&of).map(|found| (number, found)));
        }
    }
    Ok(kept)
}

pub(crate) fn usage(plan: &ModelPlan, stop: &Arc<AtomicBool>) -> Usage {
    Usage {
        drives: plan.drives,
        other: plan.other,
        seed: plan.experiment.seed,
        phase: plan.phase(),
        speed_difference: two_drives().speed_difference_share,
        time_calls: plan.experiment.time_calls,
        drop_all_caches: plan.experiment.drop_all_caches,
        trace: false,
        what_if: WhatIf::default(),
        budget: plan.budget,
        stop: Arc::clone(stop),
    }
}

pub(crate) fn task<'s>(plan: &ModelPlan, step: &'s Step) -> Task<'s> {
    Task {
        program: &step.program,
        cache: step.program.cache_mode(plan.experiment.cache),
        size_bytes: plan.size(step),
    }
}

/// Whether a run with these settings does the same. One that is not possible
/// without the setting is not.
fn same_without(
    plan: &ModelPlan,
    settings: &[Setting],
    stop: &Arc<AtomicBool>,
    results: &[ProgramResult],
) -> Result<bool, LaboratoryError> {
    let Ok(computers) = plan.computers_with(settings) else {
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
            let assignments = bench.assignments(task(plan, step));
            let moved: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
            for repetition in &result.repetitions {
                let Ok(other) = bench.repetition(assignments.clone(), &moved)? else {
                    return Ok(false);
                };
                let other = Repetition {
                    discarded: repetition.discarded,
                    ..other
                };
                if other != *repetition {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

pub(crate) fn new_result(plan: &ModelPlan, step: &Step, computer: &Computer) -> ProgramResult {
    ProgramResult {
        program: step.program.name().to_owned(),
        parameters: step.program.parameter_values(),
        distinguishing: step.distinguishing.clone(),
        row: step.row,
        drives: plan.drives as u32,
        filesystem: computer.filesystem(),
        size_bytes: plan.size(step),
        cache: step.program.cache_mode(plan.experiment.cache),
        protocol: plan.suite.protocol,
        repetitions: Vec::new(),
        notes: Vec::new(),
    }
}

/// A modelled run with nothing measured yet.
pub(crate) fn new_run(plan: &ModelPlan, (id, started_unix_ms): (String, u64)) -> Run {
    Run {
        id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: plan.suite.name.clone(),
        target: plan.target.clone(),
        world: World::Model,
        label: plan.experiment.label.clone(),
        seed: plan.experiment.seed,
        started_unix_ms,
        command_line: Vec::new(),
        experiment: kept(&plan.experiment),
        cache: plan.experiment.cache,
        dropped_all_caches: plan.experiment.drop_all_caches,
        state: RunState::Running,
        environment: environment(plan),
        model: Some(modelled(plan, MODEL_VERSION)),
        overhead: None,
        results: Vec::new(),
        notes: plan.notes.clone(),
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
