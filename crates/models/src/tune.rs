//! Search for better settings of a modelled system.
//!
//! A search tries combinations of the values of some parameters (see `search.rs`). It runs the best
//! combination again with other seeds and spindle phases, beside the unchanged target, and makes
//! sure that all neighbours of the best are known. One worker reads, builds, runs and drops each
//! point, so that memory does not grow with their number. The store keeps the result of each point.

mod keys;
mod moved;
pub mod over;
pub mod point;
pub mod search;

pub use diskperf_analysis::tuning::TuningGoal;

use crate::crew::{Crew, results};
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::plan::ModelPlan;
use crate::plan::bare_names::is_bare_name;
use crate::plan::model::{check_system_name, names_of_computer};
use diskperf_analysis::tuning::{
    GridPoint, PointOutcome, ProgramFigures, SearchKind, SearchMethod, SeedSpread, TunedParameter,
    TuningResult,
};
use diskperf_catalogue::Catalogue;
use diskperf_machine::specification::DriveSpecification;
use diskperf_timeline::Experiment;
use keys::{build_parameter, check_key, today_value};
use moved::SearchSize;
use over::OverOption;
use point::{SeedAndPhase, TuningSubject, list_titles, point_fingerprint, repetition_range};
use search::{PointEvaluator, RunShare, SearchSpace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Parses the values that `--over KEY=VALUES` gives for a parameter, in the form of a setting.
///
/// # Errors
///
/// Returns an error for a text that is neither a range nor a list, and for a range without values.
pub fn parse_values(key: &str, values: &str) -> Result<Vec<String>, LaboratoryError> {
    OverOption::parse(&format!("{key}={values}")).map(|over| over.values)
}

/// Memory for the results of points of earlier searches.
pub trait PointMemory: Sync {
    /// Returns the known figures of a point with this number of programs.
    fn find_figures(&self, fingerprint: &str, programs: usize) -> Option<Vec<ProgramFigures>>;

    /// Stores the figures of a point.
    fn store_figures(&self, fingerprint: String, figures: &[ProgramFigures]);

    /// Makes stored points durable, so that they outlive the search.
    fn flush_pending(&self);
}

/// Memory of points that stores nothing and knows none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl PointMemory for NoMemory {
    fn find_figures(&self, _fingerprint: &str, _programs: usize) -> Option<Vec<ProgramFigures>> {
        None
    }

    fn store_figures(&self, _fingerprint: String, _figures: &[ProgramFigures]) {}

    fn flush_pending(&self) {}
}

/// Specification of a search on a modelled system.
#[derive(Clone)]
pub struct TuningSearch {
    /// Experiment that all points share. Each program transfers the greatest whole number of calls
    /// up to the size; if there is none, the private type `SearchSize` determines the amount.
    pub experiment: Experiment,
    /// Name of the modelled system to search on.
    pub target: String,
    /// Parameters to vary, in the form `KEY=VALUES` of the command line.
    pub over_options: Vec<String>,
    /// Quantity that the search optimizes.
    pub goal: TuningGoal,
    /// Maximum number of combinations that are run.
    pub run_budget: u64,
    /// Number of seeds with which the best and the current settings are run again.
    pub seed_count: u32,
    /// Executor that runs the machines. The results do not depend on it.
    pub crew: Arc<dyn Crew>,
    /// Source of the job files and I/O logs that the experiment names.
    pub files: Arc<dyn Files>,
    /// Flag that is set when the user ends the search.
    pub stop: Arc<AtomicBool>,
}

/// Default maximum number of runs of a search. If there are no more combinations, all are tried.
pub const RUN_BUDGET_DEFAULT: u64 = 2000;

/// Number of spindle angles at the start with which the best and the current settings are run for
/// each seed, evenly spaced over a revolution. Drives without a spindle use one.
const PHASE_COUNT: u32 = 4;

/// Performs a search.
///
/// # Errors
///
/// Returns an error for an unknown suite, system or parameter, for values that do not fit, and if
/// the unchanged target fails.
pub fn tune_model(
    catalogue: &Catalogue,
    search: &TuningSearch,
    memory: &dyn PointMemory,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<TuningResult, LaboratoryError> {
    let mut overs = OverOption::parse_all(&search.over_options, &search.experiment.settings)?;
    let search = &TuningSearch {
        experiment: load_job_file((&search.experiment, &*search.files), &search.target, &overs)?,
        ..search.clone()
    };
    check_system_name(catalogue, &search.target, Path::new(&search.target))?;
    let experiment = (&search.experiment, &*search.files);
    if overs.iter().any(|over| is_bare_name(&over.path))
        && let Some(names) = names_of_computer(experiment, (catalogue, &search.target))?
    {
        for over in &mut overs {
            over.path = names.complete_path(&over.path)?;
        }
    }
    let subject = TuningSubject {
        catalogue,
        search,
        overs: &overs,
        search_size: SearchSize::choose(search, catalogue, &overs)?,
    };
    let today = subject.plan_today()?;
    for over in &overs {
        check_key(&subject, &today, over)?;
    }
    let keys: Vec<TunedParameter> = overs
        .iter()
        .map(|over| build_parameter(over, &today))
        .collect();
    let nearest = |over: &OverOption| {
        today_value(&today, &over.path).and_then(|own| over.index_of_nearest(&own))
    };
    let space = SearchSpace {
        value_counts: overs.iter().map(|over| over.values.len()).collect(),
        is_ordered: keys.iter().map(|key| key.is_ordered).collect(),
        today_point: overs
            .iter()
            .map(|over| nearest(over).unwrap_or(0))
            .collect(),
    };
    let tuned = empty_result(
        search,
        (&today, subject.search_size),
        &overs,
        keys,
        space.combination_count(),
    );
    let mut tuner = TuningRun {
        search,
        tuning_subject: &subject,
        memory,
        progress,
        program_titles: tuned.programs.clone(),
        expected_count: search.run_budget.min(space.combination_count()) as usize,
        done_count: AtomicUsize::new(0),
        tuning_result: tuned,
        tried_count: 0,
        from_store_count: 0,
    };
    let outcome = tuner.run_search(&space, &today);
    // What was run is kept, whatever ended the search.
    memory.flush_pending();
    outcome?;
    Ok(tuner.tuning_result)
}

/// Adds the job file that an experiment names, read once for all points. Options of its jobs are
/// fixed and cannot be varied.
pub fn load_job_file(
    (experiment, files): (&Experiment, &dyn Files),
    target: impl Into<PathBuf>,
    overs: &[OverOption],
) -> Result<Experiment, LaboratoryError> {
    let on_target = Experiment {
        targets: vec![target.into()],
        ..experiment.clone()
    };
    let Some(read) = files.read_named(&on_target)? else {
        return Ok(experiment.clone());
    };
    let of_jobs = |over: &&OverOption| over.path == "direct" || over.path.starts_with("program.");
    match overs.iter().find(of_jobs) {
        None => Ok(Experiment {
            targets: Vec::new(),
            ..read
        }),
        Some(over) => Err(LaboratoryError::Request(format!(
            "--over {}: the jobs of a file say what they do; vary what is below them, or compare two job files: `diskperf ab '--suite a.fio' '--suite b.fio'`",
            over.path
        ))),
    }
}

fn empty_result(
    search: &TuningSearch,
    (today, moved): (&ModelPlan, SearchSize),
    overs: &[OverOption],
    keys: Vec<TunedParameter>,
    combinations: u64,
) -> TuningResult {
    let sizes = today.suite.iter_jobs().map(|job| today.file_bytes(job));
    let how_much = moved.describe(search, today);
    TuningResult {
        suite: today.suite.name.clone(),
        target: search.target.clone(),
        goal: search.goal,
        programs: list_titles(today, overs),
        parameters: keys,
        points: BTreeMap::new(),
        today_figures: Vec::new(),
        method: SearchMethod {
            kind: SearchKind::Exhaustive,
            combination_count: combinations,
            tried_count: 0,
            impossible_count: 0,
            neighbour_count: 0,
            from_store_count: 0,
            run_budget: search.run_budget,
            size_bytes: sizes.collect(),
            repetition_range: repetition_range(today),
            seed: search.experiment.seed,
        },
        seed_spread: None,
        samples: None,
        notes: today.notes.iter().cloned().chain(how_much).collect(),
    }
}

struct TuningRun<'a> {
    search: &'a TuningSearch,
    tuning_subject: &'a TuningSubject<'a>,
    memory: &'a dyn PointMemory,
    progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Titles of the programs, by which a point can be compared with the unchanged target.
    program_titles: Vec<String>,
    expected_count: usize,
    done_count: AtomicUsize,
    tuning_result: TuningResult,
    tried_count: u64,
    from_store_count: u64,
}

#[derive(Clone)]
struct WantedRun {
    grid_point: Option<GridPoint>,
    run_share: RunShare,
    seed_and_phase: SeedAndPhase,
}

impl TuningRun<'_> {
    fn run_search(
        &mut self,
        space: &SearchSpace,
        today: &ModelPlan,
    ) -> Result<(), LaboratoryError> {
        // What does not run as it is need not be searched.
        let turn = SeedAndPhase {
            seed: self.search.experiment.seed,
            phase: 0,
        };
        let as_it_is = WantedRun {
            grid_point: None,
            run_share: RunShare::Full,
            seed_and_phase: turn,
        };
        (self.tuning_result.today_figures, _) =
            self.figures_of_run(&as_it_is, || Ok(today.clone()))?;
        if self.tuning_result.today_value().is_none() {
            return Err(LaboratoryError::Request(format!(
                "{} has no {} on {}, so no --goal {}: its calls are not timed",
                self.tuning_result.suite,
                self.search.goal.quantity(),
                self.search.target,
                self.search.goal.name(),
            )));
        }
        let how = search::search_space(
            space,
            self.search.run_budget,
            self.search.experiment.seed,
            self,
        )?;
        self.tuning_result.method.kind = how;
        if self.tuning_result.best_point().is_none() {
            return Err(self.all_impossible_error());
        }
        self.run_neighbours()?;
        self.tuning_result.method.tried_count = self.tried_count;
        self.tuning_result.method.from_store_count = self.from_store_count;
        let outcomes = self.tuning_result.points.values();
        let impossible = outcomes.filter(|outcome| outcome.measured_figures().is_none());
        self.tuning_result.method.impossible_count = impossible.count() as u64;
        self.run_seed_spread()
    }

    fn all_impossible_error(&self) -> LaboratoryError {
        let mut outcomes = self.tuning_result.points.iter();
        let first = outcomes.find_map(|(places, outcome)| match outcome {
            PointOutcome::Impossible(why) => Some((places, why)),
            PointOutcome::Measured(_) => None,
        });
        LaboratoryError::Request(match first {
            Some((places, why)) => format!(
                "none of the {} combinations tried is possible; {}: {why}",
                self.tuning_result.points.len(),
                self.tuning_result.describe_settings(places)
            ),
            None => "no combination was tried: give a larger --budget".to_owned(),
        })
    }

    /// Measures all neighbours of the best point and, if it stands on a cliff, those of the point a
    /// step away from the cliff. A neighbour may be better, and an impossible one may have others
    /// behind it.
    fn run_neighbours(&mut self) -> Result<(), LaboratoryError> {
        let before = self.tried_count;
        while let Some(best) = self.tuning_result.best_point().cloned() {
            let mut unknown = self.unknown_neighbours(&best);
            if unknown.is_empty()
                && let Some(away) = self.tuning_result.step_away_from_cliffs(&best)
            {
                unknown = self.unknown_neighbours(&away);
            }
            if unknown.is_empty() {
                break;
            }
            self.rate_points(&unknown, RunShare::Full)?;
        }
        self.tuning_result.method.neighbour_count = self.tried_count - before;
        Ok(())
    }

    fn unknown_neighbours(&self, point: &GridPoint) -> Vec<GridPoint> {
        let beside = self.tuning_result.list_neighbours(point).into_iter();
        let mut unknown: Vec<GridPoint> = beside.map(|(_, beside)| beside).collect();
        unknown.push(point.clone());
        unknown.retain(|point| !self.tuning_result.points.contains_key(point));
        unknown
    }

    /// Runs the best, the safe and the current settings with several seeds and phases.
    fn run_seed_spread(&mut self) -> Result<(), LaboratoryError> {
        let Some(best) = self.tuning_result.best_point().cloned() else {
            return Ok(());
        };
        if self.search.seed_count == 0 {
            return Ok(());
        }
        let safe = self.tuning_result.safe_point().cloned();
        let mut settings = vec![None, Some(best)];
        settings.extend(safe.map(Some));
        let drives = &self.tuning_subject.plan_today()?.computers[0]
            .specification
            .drives;
        let phases = match drives.iter().any(DriveSpecification::has_spindle) {
            true => PHASE_COUNT,
            false => 1,
        };
        let turns: Vec<SeedAndPhase> = (0..self.search.seed_count)
            .flat_map(|seed| (0..phases).map(move |phase| (seed, phase)))
            .map(|(seed, phase)| SeedAndPhase {
                seed: self.search.experiment.seed.wrapping_add(u64::from(seed)),
                phase: ((u64::from(phase) << 32) / u64::from(phases)) as u32,
            })
            .collect();
        let of = |places: &Option<GridPoint>| {
            let places = places.clone();
            let turns = turns.iter();
            turns
                .map(move |turn| WantedRun {
                    grid_point: places.clone(),
                    run_share: RunShare::Full,
                    seed_and_phase: *turn,
                })
                .collect::<Vec<_>>()
        };
        let wanted: Vec<WantedRun> = settings.iter().flat_map(of).collect();
        self.expected_count = self.done_count.load(Ordering::Relaxed) + wanted.len();
        let mut values = Vec::new();
        for outcome in self.run_all(&wanted) {
            let value = outcome.and_then(|(figures, _)| {
                self.search.goal.value_of_programs(&figures).ok_or_else(|| {
                    LaboratoryError::Failure("a run with another seed has no figures".to_owned())
                })
            });
            values.push(value?);
        }
        let mut parts = values.chunks(turns.len()).map(<[f64]>::to_vec);
        let mut next = || parts.next().unwrap_or_default();
        self.tuning_result.seed_spread = Some(SeedSpread {
            seed_count: self.search.seed_count,
            phase_count: phases,
            today_values: next(),
            best_values: next(),
            safe_values: next(),
        });
        Ok(())
    }

    fn run_all(
        &self,
        wanted: &[WantedRun],
    ) -> Vec<Result<(Vec<ProgramFigures>, bool), LaboratoryError>> {
        results(&*self.search.crew, wanted.len(), |number| {
            let one = &wanted[number];
            let result = self.figures_of_run(one, || self.plan_wanted(one));
            let done = self.done_count.fetch_add(1, Ordering::Relaxed) + 1;
            (self.progress)(done, self.expected_count.max(done));
            result
        })
    }

    fn plan_wanted(&self, wanted: &WantedRun) -> Result<ModelPlan, LaboratoryError> {
        let plan = match &wanted.grid_point {
            None => self.tuning_subject.plan_today()?,
            Some(places) => self.tuning_subject.plan_point(places, wanted.run_share)?,
        };
        let own = list_titles(&plan, self.tuning_subject.overs);
        if own != self.program_titles {
            return Err(LaboratoryError::Request(format!(
                "runs {} instead of {}, so it cannot be compared",
                own.join(", "),
                self.program_titles.join(", ")
            )));
        }
        Ok(plan)
    }

    fn figures_of_run(
        &self,
        wanted: &WantedRun,
        plan: impl FnOnce() -> Result<ModelPlan, LaboratoryError>,
    ) -> Result<(Vec<ProgramFigures>, bool), LaboratoryError> {
        if self.search.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let plan = plan()?;
        let fingerprint = point_fingerprint(&plan, wanted.seed_and_phase);
        if let Some(figures) = self
            .memory
            .find_figures(&fingerprint, plan.suite.iter_jobs().count())
        {
            return Ok((figures, true));
        }
        let figures = point::run_point(&plan, wanted.seed_and_phase, &self.search.stop)?;
        self.memory.store_figures(fingerprint, &figures);
        Ok((figures, false))
    }
}

impl PointEvaluator for TuningRun<'_> {
    fn rate_points(
        &mut self,
        points: &[GridPoint],
        share: RunShare,
    ) -> Result<Vec<Option<f64>>, LaboratoryError> {
        let wanted: Vec<WantedRun> = points
            .iter()
            .map(|places| WantedRun {
                grid_point: Some(places.clone()),
                run_share: share,
                seed_and_phase: SeedAndPhase {
                    seed: self.search.experiment.seed,
                    phase: 0,
                },
            })
            .collect();
        let mut merits = Vec::new();
        for (places, outcome) in points.iter().zip(self.run_all(&wanted)) {
            let outcome = match outcome {
                Ok((figures, known)) => {
                    if share == RunShare::Full {
                        self.from_store_count += u64::from(known);
                    }
                    PointOutcome::Measured(figures)
                }
                Err(LaboratoryError::Interrupted) => return Err(LaboratoryError::Interrupted),
                Err(error) => PointOutcome::Impossible(error.brief()),
            };
            let value = outcome
                .measured_figures()
                .and_then(|figures| self.search.goal.value_of_programs(figures));
            merits.push(value.map(|value| self.search.goal.gain(1.0, value) + 1.0));
            if share == RunShare::Full {
                self.tried_count += 1;
                self.tuning_result.points.insert(places.clone(), outcome);
            }
        }
        Ok(merits)
    }
}
