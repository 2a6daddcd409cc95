//! From a request to plans: everything that can be found wrong without
//! changing anything is found here.

mod describe;
pub mod host;
pub mod model;

use crate::error::LaboratoryError;
use crate::label;
use crate::request::Request;
use diskperf_battery::program::nearest;
use diskperf_battery::{Medium, Program, Step, Suite};
use diskperf_machine::catalogue::Catalogue;
use std::path::{Path, PathBuf};

pub use host::HostPlan;
pub use model::ModelPlan;

/// One run to be made.
#[derive(Clone, Debug)]
pub enum Plan {
    /// On real storage.
    Host(Box<HostPlan>),
    /// On a modelled computer.
    Model(Box<ModelPlan>),
}

/// The plans of a request: one for each target, or one for all together.
///
/// # Errors
///
/// Whatever is wrong with the request.
pub fn plan(request: &Request) -> Result<Vec<Plan>, LaboratoryError> {
    if let Some(label) = &request.label {
        label::check(label)?;
    }
    let (models, paths): (Vec<PathBuf>, Vec<PathBuf>) = request
        .targets
        .iter()
        .cloned()
        .partition(|target| is_model(target));
    if models.is_empty() {
        let plans = host::plan(request, &paths)?;
        return Ok(plans.into_iter().map(boxed_host).collect());
    }
    model::check_options(request, paths.is_empty())?;
    let mut plans = Vec::new();
    for target in &request.targets {
        if is_model(target) {
            let plan = model::plan(request, target)?;
            plans.push(Plan::Model(Box::new(plan)));
        } else {
            let own = host::plan(request, std::slice::from_ref(target))?;
            plans.extend(own.into_iter().map(boxed_host));
        }
    }
    Ok(plans)
}

fn boxed_host(plan: HostPlan) -> Plan {
    Plan::Host(Box::new(plan))
}

/// Whether a target is a modelled system: a name of the catalogue, or a file
/// that describes one. A path contains a `/`, or is `.`.
pub fn is_model(target: &Path) -> bool {
    let text = target.to_string_lossy();
    if text.ends_with(".toml") {
        return target.is_file() || !text.contains('/');
    }
    !text.contains('/') && text != "." && text != ".."
}

impl Plan {
    /// Whether it makes file systems, which are mounted for this process alone.
    pub(crate) fn mounts(&self) -> bool {
        match self {
            Plan::Host(plan) => !plan.fresh.is_empty(),
            Plan::Model(_) => false,
        }
    }

    /// What would be written where, how much, and for how long.
    pub fn describe(&self) -> String {
        match self {
            Plan::Host(plan) => plan.describe(),
            Plan::Model(plan) => plan.describe(),
        }
    }
}

/// The suite or program of this name; the medium's default without one.
fn suite(what: Option<&str>, medium: Medium) -> Result<Suite, LaboratoryError> {
    let name = what.unwrap_or(match medium {
        Medium::Directory => "ffs83",
        Medium::Device | Medium::File => "seqread89",
    });
    named_suite(name, medium)
}

/// The suite or program of this name.
fn named_suite(name: &str, medium: Medium) -> Result<Suite, LaboratoryError> {
    if let Some(suite) = Suite::named(name, medium) {
        return Ok(suite);
    }
    if let Some(program) = Program::named(name) {
        return Ok(Suite::of_program(program));
    }
    let is_path = name.contains('/') || std::path::Path::new(name).exists();
    let is_system = Catalogue::embedded()
        .system_names()
        .contains(&name.to_owned());
    if is_path || is_system {
        let kind = if is_path { "path" } else { "modelled system" };
        return Err(LaboratoryError::Request(format!(
            "`{name}` is a {kind}, and a suite or a program stands here: write `diskperf run --on {name}`"
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

/// Why `/dev/bnull` cannot be read.
const NO_BLOCK_NULL: &str = "it reads a block device of length 0, and the only system that has one is Minix: --on atarist-supra";

/// The user's number of repetitions in place of the suite's.
fn apply_repetitions(suite: &mut Suite, repetitions: Option<u32>) {
    if let Some(repetitions) = repetitions {
        suite.protocol.repetitions = repetitions.max(1);
        suite.protocol.discarded = suite.protocol.discarded.min(suite.protocol.repetitions - 1);
        suite.protocol.stop_below_share = None;
    }
}

/// Puts `program.KEY=VALUE` into every step that has the key. Steps that
/// become the same run once.
pub(crate) fn apply_settings(
    suite: &mut Suite,
    settings: &[String],
) -> Result<(), LaboratoryError> {
    for setting in settings {
        let (key, value) = program_setting(setting)?;
        let mut unknown = None;
        let mut taken = false;
        for step in &mut suite.steps {
            match step.program.set(key, value) {
                Ok(()) => {
                    taken = true;
                    if !step.distinguishing.iter().any(|name| name == key) {
                        step.distinguishing.push(key.to_owned());
                    }
                }
                Err(error @ diskperf_battery::ParameterError::Unknown { .. }) => {
                    unknown.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let (false, Some(error)) = (taken, unknown) {
            return Err(error.into());
        }
    }
    let mut kept: Vec<Step> = Vec::new();
    for step in suite.steps.drain(..) {
        if !kept.iter().any(|earlier| earlier.program == step.program) {
            kept.push(step);
        }
    }
    suite.steps = kept;
    Ok(())
}

/// Takes a `--set` apart.
fn program_setting(setting: &str) -> Result<(&str, &str), LaboratoryError> {
    let Some((path, value)) = setting.split_once('=') else {
        return Err(LaboratoryError::Request(format!(
            "--set {setting} has no value: write --set program.KEY=VALUE"
        )));
    };
    match path.split_once('.') {
        Some(("program", key)) => Ok((key, value)),
        Some((component, _)) => Err(LaboratoryError::Request(format!(
            "--set {path}: real storage has no component `{component}` to set, only `program`; a modelled system has: --on vax780-sc780-eagle"
        ))),
        None => Err(LaboratoryError::Request(format!(
            "--set {path} names no component: write --set program.{path}={value}"
        ))),
    }
}

/// The steps that can run on a target, and what is said of the others. A suite
/// goes on without those; a program that was asked for by name must run.
fn leave_out(
    (suite, target): (&str, &str),
    steps: Vec<Step>,
    obstacle: impl Fn(&Step) -> Option<String>,
) -> Result<(Vec<Step>, Vec<String>), LaboratoryError> {
    let mut kept = Vec::new();
    let mut obstacles: Vec<(String, Vec<String>)> = Vec::new();
    for step in steps {
        match obstacle(&step) {
            None => kept.push(step),
            Some(obstacle) => match obstacles.iter_mut().find(|(known, _)| *known == obstacle) {
                Some((_, titles)) => titles.push(title(&step)),
                None => obstacles.push((obstacle, vec![title(&step)])),
            },
        }
    }
    if kept.is_empty() {
        let obstacles: Vec<_> = obstacles
            .into_iter()
            .map(|(obstacle, _)| obstacle)
            .collect();
        return Err(LaboratoryError::Request(format!(
            "{suite} cannot run on {target}: {}",
            obstacles.join("; ")
        )));
    }
    let left_out = obstacles
        .into_iter()
        .map(|(obstacle, titles)| format!("left out: {}: {obstacle}", titles.join(", ")));
    Ok((kept, left_out.collect()))
}

/// The program with the parameters that tell it from its siblings.
pub(crate) fn title(step: &Step) -> String {
    let values = step.program.parameter_values();
    let mut title = step.program.name().to_owned();
    for name in &step.distinguishing {
        if let Some(value) = values.get(name) {
            title += &format!(" {name}={value}");
        }
    }
    title
}
