//! Two experiments against each other: an A/B measurement.
//!
//! Both are made ready in this process. Then blocks follow, each of one repetition of A
//! and one of B in an order that a coin decides, until the verdict on every row is firm
//! or the budget is spent, and as many again where the arms differ, because the deciding
//! blocks alone overstate by how much: what drifts from hour to hour or comes in bursts is in both
//! repetitions of a block. Each arm is stored as a run of its own, and comparing the two
//! is judging their blocks.
//!
//! Modelled computers do not vary: each runs once, and the comparison is exact.

mod arm;
mod contest;
mod measurement;

use crate::execute::{Executed, execute as execute_plan};
use crate::plan::{HostPlan, Plan, plan as plan_run, step_title};
use crate::recorder::Recorder;
use contest::Question;
use diskperf_analysis::statistics::interleaved::Limits;
use diskperf_battery::Step;
use diskperf_models::LaboratoryError;
use diskperf_models::Observer;
use diskperf_system::host::hook::Hook;
use diskperf_timeline::{Arm, Experiment, Run, SizeChoice, World};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long the blocks may take where nobody says so.
pub const USUAL_BUDGET: Duration = Duration::from_secs(180);

/// How many blocks `--dry-run` supposes where nobody says how many.
const SUPPOSED_BLOCKS: u32 = 100;

/// One of the two that are compared.
#[derive(Clone, Debug)]
pub struct Side {
    /// What is run.
    pub experiment: Experiment,
    /// A command that a shell runs before each of its repetitions.
    pub before: Option<String>,
}

/// What is measured against what, and for how long.
#[derive(Clone, Debug)]
pub struct AbRequest {
    /// A and B.
    pub sides: [Side; 2],
    /// How long the blocks of all programs may take together.
    pub budget: Duration,
    /// Shortest time for the blocks of each program, though its verdict comes earlier;
    /// zero asks for no more than the verdict and the size of a difference take.
    pub min_time: Duration,
    /// The most blocks of one program.
    pub blocks: Option<u32>,
    /// The smallest change that matters.
    pub limits: Limits,
    /// A loss of speed, as a share, that is to be found or excluded besides.
    pub fail_over: Option<f64>,
    /// The seed of the coins.
    pub seed: u64,
}

/// An A/B measurement that can be made.
#[derive(Clone, Debug)]
pub struct AbPlan {
    request: AbRequest,
    /// Of the same world, with the same programs.
    plans: [Plan; 2],
}

/// Both arms, whole or as far as they came, and why they ended early if they did.
pub struct AbExecuted {
    /// A, and then B if it was begun.
    pub runs: Vec<Run>,
    /// What ended them.
    pub error: Option<LaboratoryError>,
}

/// Plans an A/B measurement without changing anything.
///
/// # Errors
///
/// What is wrong with either side, and two sides that cannot be compared in blocks.
pub fn plan(request: AbRequest) -> Result<AbPlan, LaboratoryError> {
    let [a, b] = request.sides.each_ref();
    if [a, b]
        .iter()
        .any(|side| side.experiment.until_steady.is_some())
    {
        return Err(not_until_steady());
    }
    let mut plans = [
        plan_of(Arm::A, &a.experiment)?,
        plan_of(Arm::B, &b.experiment)?,
    ];
    for plan in &mut plans {
        if let Plan::Host(plan) = plan {
            plan.suite.protocol.repetitions = request.blocks.unwrap_or(SUPPOSED_BLOCKS) + 1;
            plan.repeats_disturbed = false;
        }
    }
    check_worlds(&request, &plans)?;
    check_programs(&plans)?;
    check_min_time(&request, &plans[0])?;
    Ok(AbPlan { request, plans })
}

/// What a stored run was asked to do, for another measurement: at the same place, whatever
/// the current directory is. Which devices may be overwritten has to be said again.
///
/// # Errors
///
/// A run that does not keep its experiment.
pub fn repeated(run: &Run) -> Result<Experiment, LaboratoryError> {
    let Some(kept) = &run.experiment else {
        return Err(LaboratoryError::Request(format!(
            "run {} does not keep what it was asked to do, since diskperf {} made it: write its options instead",
            run.id, run.version
        )));
    };
    let sizes = run.results.iter();
    let mut experiment = Experiment {
        sizes: sizes.map(|one| (one.key(), one.size_bytes)).collect(),
        repetitions: None,
        destroy_data_on: Vec::new(),
        label: None,
        ..kept.clone()
    };
    let places = run.environment.places.iter();
    let places: Vec<PathBuf> = places.map(|place| place.path.clone().into()).collect();
    if run.world == World::Host && places.len() >= experiment.targets.len() {
        let (targets, others) = places.split_at(experiment.targets.len());
        experiment.targets = targets.to_vec();
        experiment.other = others.first().cloned();
    }
    Ok(experiment)
}

/// An earlier experiment, made again: its programs, sizes, settings, cache mode and seed.
/// What is `asked` for besides are its repetitions and label, settings that are added, and
/// a size and targets in place of the earlier ones if it has them. Which devices may be
/// overwritten has to be said again.
pub fn like(earlier: Experiment, asked: Experiment) -> Experiment {
    let settings = earlier.settings.into_iter().chain(asked.settings);
    Experiment {
        repetitions: asked.repetitions,
        until_steady: asked.until_steady,
        targets: match asked.targets.is_empty() {
            true => earlier.targets,
            false => asked.targets,
        },
        size: match asked.size {
            SizeChoice::Auto => earlier.size,
            chosen => chosen,
        },
        settings: settings.collect(),
        destroy_data_on: asked.destroy_data_on,
        ignore_signature: asked.ignore_signature,
        label: asked.label,
        ..earlier
    }
}

/// The name of an arm for its user.
pub(crate) fn name(arm: Arm) -> &'static str {
    match arm {
        Arm::A => "A",
        Arm::B => "B",
    }
}

/// Why no arm is repeated until it is steady.
pub fn not_until_steady() -> LaboratoryError {
    LaboratoryError::request(
        "--until-steady: ab repeats A and B in turn until its verdict is firm, however steady they are; bring a drive to its steady state first, by `diskperf run random --set program.write_share=1 --until-steady --on TARGET`, and omit it here",
    )
}

/// The one plan of a side.
fn plan_of(arm: Arm, experiment: &Experiment) -> Result<Plan, LaboratoryError> {
    let name = name(arm);
    let mut plans = plan_run(experiment).map_err(|error| match error {
        LaboratoryError::Request(text) => LaboratoryError::Request(format!("{name}: {text}")),
        error => error,
    })?;
    match (plans.pop(), plans.is_empty()) {
        (Some(Plan::Host(plan)), true) if plan.fresh.len() > 1 => {
            Err(LaboratoryError::Request(format!(
                "{name}: a file system of each block size makes two runs: say which, as --fresh {}:block_bytes={}",
                plan.fresh[0].kind, plan.fresh[0].block_bytes
            )))
        }
        (Some(plan), true) => match plan.shortage() {
            Some(shortage) => Err(LaboratoryError::Request(format!("{name}: {shortage}"))),
            None => Ok(plan),
        },
        _ => Err(LaboratoryError::Request(format!(
            "{name} has {} targets: give one, or several with --together",
            experiment.targets.len()
        ))),
    }
}

fn check_worlds(request: &AbRequest, plans: &[Plan; 2]) -> Result<(), LaboratoryError> {
    match plans {
        [Plan::Host(_), Plan::Host(_)] => Ok(()),
        [Plan::Model(_), Plan::Model(_)] => {
            let mut hooks = request.sides.iter().zip(OPTIONS);
            match hooks.find(|(side, _)| side.before.is_some()) {
                None => Ok(()),
                Some((_, option)) => Err(LaboratoryError::Request(format!(
                    "{option} changes this machine, and a modelled system takes no notice of it: change the model by --set"
                ))),
            }
        }
        [Plan::Host(_), Plan::Model(_)] | [Plan::Model(_), Plan::Host(_)] => {
            let [a, b] = request.sides.each_ref().map(|side| {
                let target = side.experiment.targets.first();
                target.map_or_else(String::new, |target| target.display().to_string())
            });
            Err(LaboratoryError::Request(format!(
                "one of {a} and {b} is modelled, which is exact, and the other is real storage, which varies: blocks of both tell nothing; run each by itself (`diskperf run --on {a} --on {b}`) and set them side by side (`diskperf compare`)"
            )))
        }
    }
}

/// What has the same programs in the same order can be compared step by step.
fn check_programs(plans: &[Plan; 2]) -> Result<(), LaboratoryError> {
    let [a, b] = plans.each_ref().map(|plan| plan.suite().steps.as_slice());
    let names = |step: &Step| -> Vec<&'static str> {
        step.jobs.iter().map(|job| job.program.name()).collect()
    };
    let same = |(a, b): (&Step, &Step)| names(a) == names(b);
    let alike = a.iter().zip(b).take_while(|pair| same(*pair)).count();
    if alike == a.len() && alike == b.len() {
        return Ok(());
    }
    let at = |steps: &[Step]| steps.get(alike).map_or("nothing".to_owned(), step_title);
    let notes = plans.iter().flat_map(|plan| plan.notes());
    let notes: Vec<String> = notes.map(|note| format!("; {note}")).collect();
    Err(LaboratoryError::Request(format!(
        "A and B must run the same programs in the same order: program {} is {} in A and {} in B{}",
        alike + 1,
        at(a),
        at(b),
        notes.concat()
    )))
}

/// The budget must have room for the shortest time of every program.
fn check_min_time(request: &AbRequest, plan: &Plan) -> Result<(), LaboratoryError> {
    let programs = plan.suite().steps.len();
    let needed = request.min_time.saturating_mul(programs as u32);
    if needed <= request.budget {
        return Ok(());
    }
    let s = |time: Duration| format!("{}s", time.as_secs_f64());
    Err(LaboratoryError::Request(format!(
        "--min-time {} for each program ({programs} in all) is {}, and the --budget is {}: give a larger --budget or a shorter --min-time",
        s(request.min_time),
        s(needed),
        s(request.budget)
    )))
}

/// The options that give the commands of A and of B.
const OPTIONS: [&str; 2] = ["--before-a", "--before-b"];

impl AbPlan {
    /// The runs that it makes.
    pub fn plans(&self) -> &[Plan; 2] {
        &self.plans
    }

    /// Whether the arms are modelled, so that their comparison is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.plans, [Plan::Model(_), Plan::Model(_)])
    }

    /// What would be written where, and for how long.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (arm, plan) in [Arm::A, Arm::B].into_iter().zip(&self.plans) {
            text += &format!("{}: {}\n", name(arm), plan.describe_arm().trim_end());
        }
        if self.is_exact() {
            return text + "A and B are modelled: each runs once, and the comparison is exact\n";
        }
        for hook in self.hooks().iter().flatten() {
            text += &format!("before each repetition: {}\n", hook.describe());
        }
        let budget = self.request.budget.as_secs_f64();
        text += &format!(
            "time: {budget:.0} s at most for the blocks of one repetition of each arm, which end when the verdicts are firm; where A and B differ, as many blocks again measure by how much; before them files are made, and each program runs once in each arm\n"
        );
        if !self.request.min_time.is_zero() {
            let min_time = self.request.min_time.as_secs_f64();
            text += &format!("time of each program: {min_time} s at least\n");
        }
        text += &match self.request.blocks {
            Some(blocks) => format!("blocks: at most {blocks} of each program\n"),
            None => format!(
                "blocks: the figures above are for {SUPPOSED_BLOCKS} of each program, and more follow while there is time and no verdict; --blocks bounds them\n"
            ),
        };
        text
    }

    fn hooks(&self) -> [Option<Hook>; 2] {
        let [a, b] = self.request.sides.each_ref();
        let hook = |side: &Side, option| side.before.clone().map(|line| Hook::new(option, line));
        [hook(a, OPTIONS[0]), hook(b, OPTIONS[1])]
    }

    /// The question that each rate is to answer.
    fn question(&self) -> Question {
        Question {
            limits: self.request.limits,
            fail_over: self.request.fail_over,
        }
    }
}

/// Whether two plans can use the same files: a difference is then none of their places.
fn share_files([a, b]: [&HostPlan; 2]) -> bool {
    let places = |plan: &HostPlan| -> Vec<(PathBuf, bool)> {
        let targets = plan.targets.iter().chain(&plan.other);
        let place = targets.map(|target| (target.path.clone(), target.given_up.is_some()));
        place.collect()
    };
    a.fresh.is_empty() && b.fresh.is_empty() && places(a) == places(b)
}

/// Makes both arms. `stop` ends them: what was measured until then is kept.
pub fn execute(
    plan: &AbPlan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorders: [&mut Recorder; 2],
) -> AbExecuted {
    if let [Plan::Host(a), Plan::Host(b)] = &plan.plans {
        return measurement::measure((plan, [a, b]), stop, observer, recorders);
    }
    let mut runs = Vec::new();
    for (plan, recorder) in plan.plans.iter().zip(recorders) {
        let Executed { run, error } = execute_plan(plan, stop, observer, recorder);
        runs.push(run);
        if error.is_some() {
            return AbExecuted { runs, error };
        }
    }
    AbExecuted { runs, error: None }
}
