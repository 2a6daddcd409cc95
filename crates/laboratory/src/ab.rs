//! A/B measurement: two experiments, A and B, compared in blocks.
//!
//! The process prepares both experiments. Each block is one repetition of A and one of B, in an
//! order that a coin decides. Blocks follow until the verdict on every row is firm or the budget is
//! spent. Where the arms differ, as many blocks again measure the size of the difference, because
//! the deciding blocks alone overstate it. Drift from hour to hour and bursts affect both
//! repetitions of a block. Each arm is stored as a run of its own, and a comparison of the two runs
//! judges their blocks.
//!
//! Modelled computers do not vary: each runs once, and the comparison is exact.

mod arm;
mod contest;
mod measurement;

use crate::execute::{ExecutionOutcome, execute as execute_plan};
use crate::plan::{HostPlan, Plan, format_step_title, plan as plan_run};
use crate::recorder::RunRecorder;
use contest::DecisionQuestion;
use diskperf_analysis::statistics::interleaved::DecisionLimits;
use diskperf_battery::SuiteStep;
use diskperf_models::LaboratoryError;
use diskperf_models::Observer;
use diskperf_system::host::hook::HookCommand;
use diskperf_timeline::{ComparisonVariant, Experiment, MeasuredWorld, Run, SizeChoice};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Default time budget for the blocks of an A/B measurement.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(180);

const ESTIMATED_BLOCK_COUNT: u32 = 100;

/// One side, A or B, of an A/B measurement.
#[derive(Clone, Debug)]
pub struct AbVariant {
    /// Experiment of this side: its programs, target and settings.
    pub experiment: Experiment,
    /// Command that a shell runs before each repetition of this side.
    pub before_command: Option<String>,
}

/// Request for an A/B measurement: the two sides, the time budget and the limits.
#[derive(Clone, Debug)]
pub struct AbRequest {
    /// Sides A and B of the measurement, in this order.
    pub sides: [AbVariant; 2],
    /// Time budget for the blocks of all programs together.
    pub time_budget: Duration,
    /// Shortest time for the blocks of each program, even if its verdict comes earlier. With zero,
    /// the blocks end when the verdict and the size of a difference are known.
    pub min_time: Duration,
    /// Maximum number of blocks of one program.
    pub block_count: Option<u32>,
    /// Smallest change of a measured rate that matters to the user.
    pub decision_limits: DecisionLimits,
    /// Loss of speed, as a share, that the measurement has to find or exclude as well.
    pub slowdown_limit: Option<f64>,
    /// Seed of the coins that order the repetitions of each block.
    pub seed: u64,
}

/// Plan of an A/B measurement whose request has been validated.
#[derive(Clone, Debug)]
pub struct AbPlan {
    request: AbRequest,
    /// Plans of A and B: both modelled or both on real storage, with the same programs.
    plans: [Plan; 2],
}

/// Runs of both arms of an A/B measurement, complete or partial, and the error that ended them
/// early.
pub struct AbOutcome {
    /// Run of A, followed by the run of B if it was started.
    pub runs: Vec<Run>,
    /// Error that ended the A/B measurement early.
    pub error: Option<LaboratoryError>,
}

/// Plans an A/B measurement without changing anything.
///
/// # Errors
///
/// Returns the faults of either side, or an error if the two sides cannot be compared in blocks.
pub fn plan(request: AbRequest) -> Result<AbPlan, LaboratoryError> {
    let [a, b] = request.sides.each_ref();
    if [a, b]
        .iter()
        .any(|side| side.experiment.steady_rule.is_some())
    {
        return Err(no_steady_state_error());
    }
    let mut plans = [
        plan_variant(ComparisonVariant::A, &a.experiment)?,
        plan_variant(ComparisonVariant::B, &b.experiment)?,
    ];
    for plan in &mut plans {
        if let Plan::Host(plan) = plan {
            plan.suite.default_protocol.repetition_count =
                request.block_count.unwrap_or(ESTIMATED_BLOCK_COUNT) + 1;
            plan.repeats_disturbed = false;
        }
    }
    check_worlds(&request, &plans)?;
    check_programs(&plans)?;
    check_min_time(&request, &plans[0])?;
    Ok(AbPlan { request, plans })
}

/// Returns the experiment of a stored run, for another measurement of the same absolute paths,
/// whatever the current directory is. The caller has to name again the devices that may be
/// overwritten.
///
/// # Errors
///
/// Returns an error if the run does not store its experiment.
pub fn repeat_experiment(run: &Run) -> Result<Experiment, LaboratoryError> {
    let Some(kept) = &run.experiment else {
        return Err(LaboratoryError::Request(format!(
            "run {} has no stored options, because diskperf {} made it: write its options instead",
            run.run_id, run.program_version
        )));
    };
    let sizes = run.results.iter();
    let mut experiment = Experiment {
        size_by_program: sizes
            .map(|one| (one.result_key(), one.size_bytes))
            .collect(),
        repetition_count: None,
        destroy_data_on: Vec::new(),
        label: None,
        ..kept.clone()
    };
    let places = run.environment.places.iter();
    let places: Vec<PathBuf> = places.map(|place| place.path.clone().into()).collect();
    if run.world == MeasuredWorld::Host && places.len() >= experiment.targets.len() {
        let (targets, others) = places.split_at(experiment.targets.len());
        experiment.targets = targets.to_vec();
        experiment.second_target = others.first().cloned();
    }
    Ok(experiment)
}

/// Repeats an earlier experiment: its programs, sizes, settings, cache mode and seed. Repetitions
/// and label come from `asked`, whose settings are added. A size and targets of `asked` replace the
/// earlier ones. The caller has to name again the devices that may be overwritten.
pub fn apply_earlier(earlier: Experiment, asked: Experiment) -> Experiment {
    let settings = earlier.settings.into_iter().chain(asked.settings);
    Experiment {
        repetition_count: asked.repetition_count,
        steady_rule: asked.steady_rule,
        targets: match asked.targets.is_empty() {
            true => earlier.targets,
            false => asked.targets,
        },
        size_choice: match asked.size_choice {
            SizeChoice::AutomaticSize => earlier.size_choice,
            chosen => chosen,
        },
        settings: settings.collect(),
        destroy_data_on: asked.destroy_data_on,
        ignores_signature: asked.ignores_signature,
        label: asked.label,
        finds_caps: asked.finds_caps,
        volume: asked.volume.or(earlier.volume),
        ..earlier
    }
}

/// Name of an arm of an A/B measurement, as the user sees it.
pub(crate) fn variant_name(arm: ComparisonVariant) -> &'static str {
    match arm {
        ComparisonVariant::A => "A",
        ComparisonVariant::B => "B",
    }
}

/// Returns the error that refuses `until_steady` in an A/B measurement, with the reason.
pub fn no_steady_state_error() -> LaboratoryError {
    LaboratoryError::request(
        "--until-steady: ab repeats A and B in turn until its verdict is firm, however steady they are; bring a drive to its steady state first, by `diskperf run random --set program.write_share=1 --until-steady --on TARGET`, and omit it here",
    )
}

fn plan_variant(arm: ComparisonVariant, experiment: &Experiment) -> Result<Plan, LaboratoryError> {
    let name = variant_name(arm);
    let mut plans = plan_run(experiment).map_err(|error| match error {
        LaboratoryError::Request(text) => LaboratoryError::Request(format!("{name}: {text}")),
        error => error,
    })?;
    match (plans.pop(), plans.is_empty()) {
        (Some(Plan::Host(plan)), true) if plan.fresh_filesystems.len() > 1 => {
            Err(LaboratoryError::Request(format!(
                "{name}: a file system of each block size makes two runs: say which, as --fresh {}:block_bytes={}",
                plan.fresh_filesystems[0].filesystem_kind, plan.fresh_filesystems[0].block_bytes
            )))
        }
        (Some(plan), true) => match plan.space_shortage() {
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
            match hooks.find(|(side, _)| side.before_command.is_some()) {
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

/// Verifies that both plans run the same programs in the same order, so that they can be compared
/// step by step.
fn check_programs(plans: &[Plan; 2]) -> Result<(), LaboratoryError> {
    let [a, b] = plans.each_ref().map(|plan| plan.suite().steps.as_slice());
    let names = |step: &SuiteStep| -> Vec<&'static str> {
        step.parallel_jobs
            .iter()
            .map(|job| job.program.name())
            .collect()
    };
    let same = |(a, b): (&SuiteStep, &SuiteStep)| names(a) == names(b);
    let alike = a.iter().zip(b).take_while(|pair| same(*pair)).count();
    if alike == a.len() && alike == b.len() {
        return Ok(());
    }
    let at = |steps: &[SuiteStep]| {
        steps
            .get(alike)
            .map_or("nothing".to_owned(), format_step_title)
    };
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

fn check_min_time(request: &AbRequest, plan: &Plan) -> Result<(), LaboratoryError> {
    let programs = plan.suite().steps.len();
    let needed = request.min_time.saturating_mul(programs as u32);
    if needed <= request.time_budget {
        return Ok(());
    }
    let s = |time: Duration| format!("{}s", time.as_secs_f64());
    Err(LaboratoryError::Request(format!(
        "--min-time {} for each program ({programs} in all) is {}, and the --budget is {}: give a larger --budget or a shorter --min-time",
        s(request.min_time),
        s(needed),
        s(request.time_budget)
    )))
}

/// Command-line options that give the commands to run before each repetition of A and of B.
const OPTIONS: [&str; 2] = ["--before-a", "--before-b"];

impl AbPlan {
    /// Plans of the two runs of the A/B measurement, A first.
    pub fn plans(&self) -> &[Plan; 2] {
        &self.plans
    }

    /// Reports whether both arms are modelled, so that their comparison is exact.
    pub fn has_exact_block_count(&self) -> bool {
        matches!(self.plans, [Plan::Model(_), Plan::Model(_)])
    }

    /// Describes the planned writes, their places and the duration of the A/B measurement.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (arm, plan) in [ComparisonVariant::A, ComparisonVariant::B]
            .into_iter()
            .zip(&self.plans)
        {
            text += &format!(
                "{}: {}\n",
                variant_name(arm),
                plan.describe_variant().trim_end()
            );
        }
        if self.has_exact_block_count() {
            return text + "A and B are modelled: each runs once, and the comparison is exact\n";
        }
        for hook in self.list_hooks().iter().flatten() {
            text += &format!("before each repetition: {}\n", hook.describe());
        }
        let budget = self.request.time_budget.as_secs_f64();
        text += &format!(
            "time: {budget:.0} s at most for the blocks of one repetition of each arm, which end when the verdicts are firm; where A and B differ, as many blocks again measure by how much; before them files are made, and each program runs once in each arm\n"
        );
        if !self.request.min_time.is_zero() {
            let min_time = self.request.min_time.as_secs_f64();
            text += &format!("time of each program: {min_time} s at least\n");
        }
        text += &match self.request.block_count {
            Some(blocks) => format!("blocks: at most {blocks} of each program\n"),
            None => format!(
                "blocks: the figures above are for {ESTIMATED_BLOCK_COUNT} of each program, and more follow while there is time and no verdict; --blocks bounds them\n"
            ),
        };
        text
    }

    fn list_hooks(&self) -> [Option<HookCommand>; 2] {
        let [a, b] = self.request.sides.each_ref();
        let hook = |side: &AbVariant, option| {
            side.before_command
                .clone()
                .map(|line| HookCommand::new(option, line))
        };
        [hook(a, OPTIONS[0]), hook(b, OPTIONS[1])]
    }

    fn decision_question(&self) -> DecisionQuestion {
        DecisionQuestion {
            decision_limits: self.request.decision_limits,
            slowdown_limit: self.request.slowdown_limit,
        }
    }
}

/// Reports whether two plans can use the same files. A difference between them then does not come
/// from different places on the media.
fn do_share_files([a, b]: [&HostPlan; 2]) -> bool {
    let places = |plan: &HostPlan| -> Vec<(PathBuf, bool)> {
        let targets = plan.targets.iter().chain(&plan.other_target);
        let place = targets.map(|target| {
            (
                target.resolved_path.clone(),
                target.destroyed_device.is_some(),
            )
        });
        place.collect()
    };
    a.fresh_filesystems.is_empty() && b.fresh_filesystems.is_empty() && places(a) == places(b)
}

/// Executes both arms of an A/B measurement. `stop` ends them early; results up to then are kept.
pub fn execute(
    plan: &AbPlan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorders: [&mut RunRecorder; 2],
) -> AbOutcome {
    if let [Plan::Host(a), Plan::Host(b)] = &plan.plans {
        return measurement::measure_plan((plan, [a, b]), stop, observer, recorders);
    }
    let mut runs = Vec::new();
    for (plan, recorder) in plan.plans.iter().zip(recorders) {
        let ExecutionOutcome { run, error } = execute_plan(plan, stop, observer, recorder);
        runs.push(run);
        if error.is_some() {
            return AbOutcome { runs, error };
        }
    }
    AbOutcome { runs, error: None }
}
