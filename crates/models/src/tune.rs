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

pub use diskperf_analysis::tuning::Goal;

use crate::crew::{Crew, results};
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::plan::ModelPlan;
use crate::plan::bare_names::is_bare;
use crate::plan::model::{check_name, names_of};
use diskperf_analysis::tuning::{Figures, Key, Method, Outcome, Places, Searched, Spread, Tuned};
use diskperf_catalogue::Catalogue;
use diskperf_machine::specification::DriveSpecification;
use diskperf_timeline::Experiment;
use keys::{check_key, key, own_value};
use moved::Moved;
use over::Over;
use point::{Subject, Turn, point_fingerprint, repetitions, titles};
use search::{Evaluate, Share, Space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Parses the values that `--over KEY=VALUES` gives for a parameter, in the form of a setting.
///
/// # Errors
///
/// Returns an error for a text that is neither a range nor a list, and for a range without values.
pub fn values_of(key: &str, values: &str) -> Result<Vec<String>, LaboratoryError> {
    Over::parse(&format!("{key}={values}")).map(|over| over.values)
}

/// Memory for the results of points of earlier searches.
pub trait PointMemory: Sync {
    /// Returns the known figures of a point with this number of programs.
    fn find(&self, fingerprint: &str, programs: usize) -> Option<Vec<Figures>>;

    /// Stores the figures of a point.
    fn keep(&self, fingerprint: String, figures: &[Figures]);

    /// Makes stored points durable, so that they outlive the search.
    fn flush(&self);
}

/// Memory of points that stores nothing and knows none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl PointMemory for NoMemory {
    fn find(&self, _fingerprint: &str, _programs: usize) -> Option<Vec<Figures>> {
        None
    }

    fn keep(&self, _fingerprint: String, _figures: &[Figures]) {}

    fn flush(&self) {}
}

/// Specification of a search on a modelled system.
#[derive(Clone)]
pub struct Search {
    /// Experiment that all points share. Each program transfers the greatest whole number of calls
    /// up to the size; if there is none, the private type `Moved` determines the amount.
    pub experiment: Experiment,
    /// Name of the modelled system to search on.
    pub target: String,
    /// Parameters to vary, in the form `KEY=VALUES` of the command line.
    pub over: Vec<String>,
    /// Quantity that the search optimizes.
    pub goal: Goal,
    /// Maximum number of combinations that are run.
    pub budget: u64,
    /// Number of seeds with which the best and the current settings are run again.
    pub seeds: u32,
    /// Executor that runs the machines. The results do not depend on it.
    pub crew: Arc<dyn Crew>,
    /// Source of the job files and I/O logs that the experiment names.
    pub files: Arc<dyn Files>,
    /// Flag that is set when the user ends the search.
    pub stop: Arc<AtomicBool>,
}

/// Default maximum number of runs of a search. If there are no more combinations, all are tried.
pub const BUDGET: u64 = 2000;

/// Number of spindle angles at the start with which the best and the current settings are run for
/// each seed, evenly spaced over a revolution. Drives without a spindle use one.
const PHASES: u32 = 4;

/// Performs a search.
///
/// # Errors
///
/// Returns an error for an unknown suite, system or parameter, for values that do not fit, and if
/// the unchanged target fails.
pub fn tune(
    catalogue: &Catalogue,
    search: &Search,
    memory: &dyn PointMemory,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Tuned, LaboratoryError> {
    let mut overs = Over::parse_all(&search.over, &search.experiment.settings)?;
    let search = &Search {
        experiment: with_job_file((&search.experiment, &*search.files), &search.target, &overs)?,
        ..search.clone()
    };
    check_name(catalogue, &search.target, Path::new(&search.target))?;
    let experiment = (&search.experiment, &*search.files);
    if overs.iter().any(|over| is_bare(&over.path))
        && let Some(names) = names_of(experiment, (catalogue, &search.target))?
    {
        for over in &mut overs {
            over.path = names.whole(&over.path)?;
        }
    }
    let subject = Subject {
        catalogue,
        search,
        overs: &overs,
        moved: Moved::of(search, catalogue, &overs)?,
    };
    let today = subject.today()?;
    for over in &overs {
        check_key(&subject, &today, over)?;
    }
    let keys: Vec<Key> = overs.iter().map(|over| key(over, &today)).collect();
    let nearest =
        |over: &Over| own_value(&today, &over.path).and_then(|own| over.nearest_place(&own));
    let space = Space {
        lengths: overs.iter().map(|over| over.values.len()).collect(),
        ordered: keys.iter().map(|key| key.ordered).collect(),
        today: overs
            .iter()
            .map(|over| nearest(over).unwrap_or(0))
            .collect(),
    };
    let tuned = blank(
        search,
        (&today, subject.moved),
        &overs,
        keys,
        space.combinations(),
    );
    let mut tuner = Tuner {
        search,
        subject: &subject,
        memory,
        progress,
        titles: tuned.programs.clone(),
        expected: search.budget.min(space.combinations()) as usize,
        done: AtomicUsize::new(0),
        tuned,
        tried: 0,
        from_store: 0,
    };
    let outcome = tuner.carry_out(&space, &today);
    // What was run is kept, whatever ended the search.
    memory.flush();
    outcome?;
    Ok(tuner.tuned)
}

/// Adds the job file that an experiment names, read once for all points. Options of its jobs are
/// fixed and cannot be varied.
pub fn with_job_file(
    (experiment, files): (&Experiment, &dyn Files),
    target: impl Into<PathBuf>,
    overs: &[Over],
) -> Result<Experiment, LaboratoryError> {
    let on_target = Experiment {
        targets: vec![target.into()],
        ..experiment.clone()
    };
    let Some(read) = files.named_by(&on_target)? else {
        return Ok(experiment.clone());
    };
    let of_jobs = |over: &&Over| over.path == "direct" || over.path.starts_with("program.");
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

fn blank(
    search: &Search,
    (today, moved): (&ModelPlan, Moved),
    overs: &[Over],
    keys: Vec<Key>,
    combinations: u64,
) -> Tuned {
    let sizes = today.suite.iter_jobs().map(|job| today.size(job));
    let how_much = moved.told(search, today);
    Tuned {
        suite: today.suite.name.clone(),
        target: search.target.clone(),
        goal: search.goal,
        programs: titles(today, overs),
        keys,
        points: BTreeMap::new(),
        today: Vec::new(),
        method: Method {
            search: Searched::Exhaustive,
            combinations,
            tried: 0,
            impossible: 0,
            around: 0,
            from_store: 0,
            budget: search.budget,
            size_bytes: sizes.collect(),
            repetitions: repetitions(today),
            seed: search.experiment.seed,
        },
        spread: None,
        samples: None,
        notes: today.notes.iter().cloned().chain(how_much).collect(),
    }
}

struct Tuner<'a> {
    search: &'a Search,
    subject: &'a Subject<'a>,
    memory: &'a dyn PointMemory,
    progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Titles of the programs, by which a point can be compared with the unchanged target.
    titles: Vec<String>,
    expected: usize,
    done: AtomicUsize,
    tuned: Tuned,
    tried: u64,
    from_store: u64,
}

#[derive(Clone)]
struct Wanted {
    places: Option<Places>,
    share: Share,
    turn: Turn,
}

impl Tuner<'_> {
    fn carry_out(&mut self, space: &Space, today: &ModelPlan) -> Result<(), LaboratoryError> {
        // What does not run as it is need not be searched.
        let turn = Turn {
            seed: self.search.experiment.seed,
            phase: 0,
        };
        let as_it_is = Wanted {
            places: None,
            share: Share::Full,
            turn,
        };
        (self.tuned.today, _) = self.figures(&as_it_is, || Ok(today.clone()))?;
        if self.tuned.today_value().is_none() {
            return Err(LaboratoryError::Request(format!(
                "{} has no {} on {}, so no --goal {}: its calls are not timed",
                self.tuned.suite,
                self.search.goal.quantity(),
                self.search.target,
                self.search.goal.name(),
            )));
        }
        let how = search::search(space, self.search.budget, self.search.experiment.seed, self)?;
        self.tuned.method.search = how;
        if self.tuned.best().is_none() {
            return Err(self.all_impossible());
        }
        self.surround()?;
        self.tuned.method.tried = self.tried;
        self.tuned.method.from_store = self.from_store;
        let outcomes = self.tuned.points.values();
        let impossible = outcomes.filter(|outcome| outcome.figures().is_none());
        self.tuned.method.impossible = impossible.count() as u64;
        self.spread()
    }

    fn all_impossible(&self) -> LaboratoryError {
        let mut outcomes = self.tuned.points.iter();
        let first = outcomes.find_map(|(places, outcome)| match outcome {
            Outcome::Impossible(why) => Some((places, why)),
            Outcome::Ran(_) => None,
        });
        LaboratoryError::Request(match first {
            Some((places, why)) => format!(
                "none of the {} combinations tried is possible; {}: {why}",
                self.tuned.points.len(),
                self.tuned.settings(places)
            ),
            None => "no combination was tried: give a larger --budget".to_owned(),
        })
    }

    /// Measures all neighbours of the best point and, if it stands on a cliff, those of the point a
    /// step away from the cliff. A neighbour may be better, and an impossible one may have others
    /// behind it.
    fn surround(&mut self) -> Result<(), LaboratoryError> {
        let before = self.tried;
        while let Some(best) = self.tuned.best().cloned() {
            let mut unknown = self.unknown_beside(&best);
            if unknown.is_empty()
                && let Some(away) = self.tuned.away_from_cliffs(&best)
            {
                unknown = self.unknown_beside(&away);
            }
            if unknown.is_empty() {
                break;
            }
            self.merits(&unknown, Share::Full)?;
        }
        self.tuned.method.around = self.tried - before;
        Ok(())
    }

    fn unknown_beside(&self, point: &Places) -> Vec<Places> {
        let beside = self.tuned.neighbours(point).into_iter();
        let mut unknown: Vec<Places> = beside.map(|(_, beside)| beside).collect();
        unknown.push(point.clone());
        unknown.retain(|point| !self.tuned.points.contains_key(point));
        unknown
    }

    /// Runs the best, the safe and the current settings with several seeds and phases.
    fn spread(&mut self) -> Result<(), LaboratoryError> {
        let Some(best) = self.tuned.best().cloned() else {
            return Ok(());
        };
        if self.search.seeds == 0 {
            return Ok(());
        }
        let safe = self.tuned.safe().cloned();
        let mut settings = vec![None, Some(best)];
        settings.extend(safe.map(Some));
        let drives = &self.subject.today()?.computers[0].specification.drives;
        let phases = match drives.iter().any(DriveSpecification::has_spindle) {
            true => PHASES,
            false => 1,
        };
        let turns: Vec<Turn> = (0..self.search.seeds)
            .flat_map(|seed| (0..phases).map(move |phase| (seed, phase)))
            .map(|(seed, phase)| Turn {
                seed: self.search.experiment.seed.wrapping_add(u64::from(seed)),
                phase: ((u64::from(phase) << 32) / u64::from(phases)) as u32,
            })
            .collect();
        let of = |places: &Option<Places>| {
            let places = places.clone();
            let turns = turns.iter();
            turns
                .map(move |turn| Wanted {
                    places: places.clone(),
                    share: Share::Full,
                    turn: *turn,
                })
                .collect::<Vec<_>>()
        };
        let wanted: Vec<Wanted> = settings.iter().flat_map(of).collect();
        self.expected = self.done.load(Ordering::Relaxed) + wanted.len();
        let mut values = Vec::new();
        for outcome in self.run_all(&wanted) {
            let value = outcome.and_then(|(figures, _)| {
                self.search.goal.value(&figures).ok_or_else(|| {
                    LaboratoryError::Work("a run with another seed has no figures".to_owned())
                })
            });
            values.push(value?);
        }
        let mut parts = values.chunks(turns.len()).map(<[f64]>::to_vec);
        let mut next = || parts.next().unwrap_or_default();
        self.tuned.spread = Some(Spread {
            seeds: self.search.seeds,
            phases,
            today: next(),
            best: next(),
            safe: next(),
        });
        Ok(())
    }

    fn run_all(&self, wanted: &[Wanted]) -> Vec<Result<(Vec<Figures>, bool), LaboratoryError>> {
        results(&*self.search.crew, wanted.len(), |number| {
            let one = &wanted[number];
            let result = self.figures(one, || self.plan(one));
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            (self.progress)(done, self.expected.max(done));
            result
        })
    }

    fn plan(&self, wanted: &Wanted) -> Result<ModelPlan, LaboratoryError> {
        let plan = match &wanted.places {
            None => self.subject.today()?,
            Some(places) => self.subject.point(places, wanted.share)?,
        };
        let own = titles(&plan, self.subject.overs);
        if own != self.titles {
            return Err(LaboratoryError::Request(format!(
                "runs {} instead of {}, so it cannot be compared",
                own.join(", "),
                self.titles.join(", ")
            )));
        }
        Ok(plan)
    }

    fn figures(
        &self,
        wanted: &Wanted,
        plan: impl FnOnce() -> Result<ModelPlan, LaboratoryError>,
    ) -> Result<(Vec<Figures>, bool), LaboratoryError> {
        if self.search.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let plan = plan()?;
        let fingerprint = point_fingerprint(&plan, wanted.turn);
        if let Some(figures) = self
            .memory
            .find(&fingerprint, plan.suite.iter_jobs().count())
        {
            return Ok((figures, true));
        }
        let figures = point::run(&plan, wanted.turn, &self.search.stop)?;
        self.memory.keep(fingerprint, &figures);
        Ok((figures, false))
    }
}

impl Evaluate for Tuner<'_> {
    fn merits(
        &mut self,
        points: &[Places],
        share: Share,
    ) -> Result<Vec<Option<f64>>, LaboratoryError> {
        let wanted: Vec<Wanted> = points
            .iter()
            .map(|places| Wanted {
                places: Some(places.clone()),
                share,
                turn: Turn {
                    seed: self.search.experiment.seed,
                    phase: 0,
                },
            })
            .collect();
        let mut merits = Vec::new();
        for (places, outcome) in points.iter().zip(self.run_all(&wanted)) {
            let outcome = match outcome {
                Ok((figures, known)) => {
                    if share == Share::Full {
                        self.from_store += u64::from(known);
                    }
                    Outcome::Ran(figures)
                }
                Err(LaboratoryError::Interrupted) => return Err(LaboratoryError::Interrupted),
                Err(error) => Outcome::Impossible(error.brief()),
            };
            let value = outcome
                .figures()
                .and_then(|figures| self.search.goal.value(figures));
            merits.push(value.map(|value| self.search.goal.gain(1.0, value) + 1.0));
            if share == Share::Full {
                self.tried += 1;
                self.tuned.points.insert(places.clone(), outcome);
            }
        }
        Ok(merits)
    }
}
