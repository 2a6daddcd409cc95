//! Search for better settings on real storage. Only safe settings are varied, and the search allows
//! for noise. All points are measured in rounds, in random order, so that drift of the machine
//! affects every point equally and any two points of a round form a block of an A/B measurement.
//! Points that are certainly no better than the current settings are dropped. The search ends when
//! all points are decided.

mod keys;

use crate::drive::Drives;
use crate::execute::{execute, on_open_drives};
use crate::files::HostFiles;
use crate::plan::{HostPlan, Plan, on_storage};
use crate::recorder::Recorder;
use diskperf_analysis::comparison::Verdict;
use diskperf_analysis::interference;
use diskperf_analysis::statistics::median;
use diskperf_analysis::tuning::{
    Figures, Goal, Key, Method, Outcome, Places, Samples, Searched, Tuned, Visit,
};
use diskperf_machine::{RandomStream, RandomStreams};
use diskperf_models::LaboratoryError;
use diskperf_models::tune::over::Over;
use diskperf_models::tune::point::{call_p99_ms, calls};
use diskperf_models::tune::with_job_file;
use diskperf_models::{Event, Observer};
use diskperf_system::host::CallClock;
use diskperf_timeline::units::MIB;
use diskperf_timeline::{
    CacheMode, Experiment, ProgramResult, Repetition, Setting, SizeChoice, Workload,
};
use keys::{DeviceSettings, Varied};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Specification of a search on a path of real storage.
#[derive(Clone)]
pub struct HostSearch {
    /// Experiment that all points of the search share.
    pub experiment: Experiment,
    /// Directory, file or block device to run on.
    pub target: PathBuf,
    /// Settings to vary, in the form `KEY=VALUES` of the command line.
    pub over: Vec<String>,
    /// Quantity that the search optimizes.
    pub goal: Goal,
    /// Maximum number of measurements of each point, after a round that is discarded.
    pub repetitions: u32,
    /// Whether the search may change settings of the disk's queue.
    pub device_settings: bool,
    /// Flag that is set when the user ends the search.
    pub stop: Arc<AtomicBool>,
}

/// Maximum number of combinations. More would take hours to measure.
const MOST: u64 = 256;

/// Measures every combination. The result remains valid if settings of the disk could not be
/// restored; the error beside it then says so.
///
/// # Errors
///
/// Returns an error for a key that may not be varied, and the errors of a run on the path.
pub fn tune_host(
    search: &HostSearch,
    store: Option<&Path>,
    progress: &dyn Fn(usize, usize),
) -> Result<(Tuned, Option<LaboratoryError>), LaboratoryError> {
    let overs = Over::parse_all(&search.over, &search.experiment.settings)?;
    let search = &HostSearch {
        experiment: with_job_file((&search.experiment, &HostFiles), &search.target, &overs)?,
        ..search.clone()
    };
    let varied: Vec<Varied> = overs
        .iter()
        .map(|over| Varied::of(over, search.device_settings))
        .collect::<Result<_, _>>()?;
    let lengths: Vec<usize> = overs.iter().map(|over| over.values.len()).collect();
    let combinations = lengths.iter().fold(1_u64, |product, length| {
        product.saturating_mul(*length as u64)
    });
    if combinations > MOST {
        return Err(LaboratoryError::Request(format!(
            "{combinations} combinations exceed {MOST}, the limit on real storage; give fewer values"
        )));
    }
    let mut rounds = Rounds {
        search,
        overs: &overs,
        varied: &varied,
        recorder: Recorder::of_leftovers(store),
        size: search.experiment.size_choice,
        settings: DeviceSettings::default(),
        clock: CallClock::new_calibrated(),
        drives: None,
        left: Vec::new(),
        points: BTreeMap::new(),
        impossible: BTreeMap::new(),
        programs: Vec::new(),
        sizes: Vec::new(),
        notes: Vec::new(),
        warnings: Vec::new(),
        own: Vec::new(),
        today: None,
    };
    let outcome = rounds.carry_out(&diskperf_models::tune::search::all(&lengths), progress);
    let (closed, left) = rounds.close();
    if let Err(error) = outcome.and(closed) {
        return LaboratoryError::leaving(Err(error), left);
    }
    let left = LaboratoryError::leaving(Ok(()), left).err();
    Ok((rounds.tuned(combinations)?, left))
}

#[derive(Clone, Default)]
struct Measured {
    programs: Vec<Vec<Repetition>>,
    visits: Vec<Visit>,
}

struct Rounds<'a> {
    search: &'a HostSearch,
    overs: &'a [Over],
    varied: &'a [Varied],
    recorder: Recorder,
    size: SizeChoice,
    settings: DeviceSettings,
    clock: CallClock,
    drives: Option<Drives>,
    left: Vec<String>,
    /// Measurements by the point's indices of values; `None` for the target with its current
    /// settings.
    points: BTreeMap<Option<Places>, Measured>,
    impossible: BTreeMap<Places, String>,
    programs: Vec<String>,
    sizes: Vec<u64>,
    notes: Vec<String>,
    warnings: Vec<String>,
    own: Vec<Option<String>>,
    /// Point that equals the current settings of the target, if one does.
    today: Option<Places>,
}

impl Rounds<'_> {
    fn carry_out(
        &mut self,
        all: &[Places],
        progress: &dyn Fn(usize, usize),
    ) -> Result<(), LaboratoryError> {
        self.settings = DeviceSettings::of(self.varied, &self.search.target)?;
        self.check_values()?;
        let fixed = &self.search.experiment;
        let own = self.varied.iter();
        self.own = own.map(|key| key.own(fixed, &self.settings)).collect();
        // A pilot, which also warms up.
        let first = self.measure(None)?;
        self.programs = first.iter().map(ProgramResult::result_key).collect();
        self.sizes = first.iter().map(|result| result.size_bytes).collect();
        let is_said = matches!(
            self.search.experiment.workload,
            Workload::JobFile(_) | Workload::Replay(_)
        );
        if let (SizeChoice::AutomaticSize, [one], false) = (self.size, &self.sizes[..], is_said) {
            self.size = SizeChoice::SizeBytes(*one);
        }
        let places = self.keys().into_iter().map(|key| key.today_place);
        self.today = places.collect();
        let mut order: Vec<Option<Places>> = all.iter().cloned().map(Some).collect();
        if self.today.is_none() {
            order.push(None);
        }
        let mut random = RandomStreams::new(self.search.experiment.seed).named_stream("tune");
        let rounds = self.search.repetitions as usize + 1;
        let mut done = 0;
        for round in 0..rounds {
            shuffle(&mut order, &mut random);
            let of = done + (rounds - round) * order.len();
            for (place, point) in order.iter().enumerate() {
                self.visit(point, round.checked_sub(1).map(|round| (round, place)))?;
                done += 1;
                progress(done, of);
            }
            if round > 0 && self.is_decided(&mut order) {
                break;
            }
        }
        Ok(())
    }

    /// Reports whether every remaining point is certainly better than the current settings. Points
    /// that are certainly worse or no different are dropped first, as are impossible ones.
    fn is_decided(&self, order: &mut Vec<Option<Places>>) -> bool {
        let samples = self.samples();
        let verdict = |point: &Option<Places>| {
            let judged = samples.against_today(point.as_ref()?)?;
            Some(judged.verdict)
        };
        order.retain(|point| {
            let is_left = verdict(point)
                .is_some_and(|one| matches!(one, Verdict::Slower | Verdict::NoDifferenceSeen));
            let is_impossible = point
                .as_ref()
                .is_some_and(|places| self.impossible.contains_key(places));
            !is_left && !is_impossible
        });
        order
            .iter()
            .filter_map(verdict)
            .all(|verdict| verdict == Verdict::Faster)
    }

    fn samples(&self) -> Samples {
        let visits = |point: &Option<Places>| {
            let measured = self.points.get(point);
            measured.map_or(Vec::new(), |one| one.visits.clone())
        };
        let points = self.points.keys().flatten();
        Samples {
            today: visits(&self.today),
            points: points
                .map(|places| (places.clone(), visits(&Some(places.clone()))))
                .collect(),
        }
    }

    fn check_values(&self) -> Result<(), LaboratoryError> {
        for (over, varied) in self.overs.iter().zip(self.varied) {
            for value in &over.values {
                varied.check(value, &self.settings)?;
            }
        }
        Ok(())
    }

    /// Measures a point once more. If the measurement counts, `counts` holds its round and its
    /// index within the round.
    fn visit(
        &mut self,
        point: &Option<Places>,
        counts: Option<(usize, usize)>,
    ) -> Result<(), LaboratoryError> {
        if let Some(places) = point
            && self.impossible.contains_key(places)
        {
            return Ok(());
        }
        match (self.measure(point.as_ref()), point) {
            (Ok(results), _) => {
                if let Some((round, place)) = counts {
                    let measured = self.points.entry(point.clone()).or_default();
                    let speed = speed(self.search.goal, &results);
                    measured.visits.extend(speed.map(|speed| Visit {
                        round: round as u32,
                        place_in_round: place as u32,
                        speed,
                    }));
                    measured.programs.resize(results.len(), Vec::new());
                    for (all, result) in measured.programs.iter_mut().zip(results) {
                        all.extend(result.repetitions);
                    }
                }
                Ok(())
            }
            (Err(error), Some(places)) if is_of_the_point(&error) => {
                self.impossible.insert(places.clone(), error.to_string());
                self.points.remove(point);
                Ok(())
            }
            (Err(error), _) => Err(error),
        }
    }

    fn measure(&mut self, point: Option<&Places>) -> Result<Vec<ProgramResult>, LaboratoryError> {
        if self.search.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let mut experiment = self.experiment();
        let mut read_ahead = diskperf_system::host::ReadAhead::default();
        // What no point says is as it was.
        self.settings.as_they_were()?;
        let keys = self.varied.iter().zip(self.overs);
        for ((key, over), place) in keys.zip(point.into_iter().flatten()) {
            let value = &over.values[*place];
            match key {
                Varied::Program(path) => {
                    experiment.settings.push(Setting::new(path, value));
                }
                Varied::Direct => match value == "1" {
                    true => experiment.cache_mode = CacheMode::Direct,
                    false => experiment.passes_cache = true,
                },
                Varied::ReadAhead => read_ahead = keys::read_ahead(value)?,
                Varied::Device(key) => self.settings.set(*key, value)?,
            }
        }
        let mut plan = on_storage(&experiment)?;
        plan.read_ahead = read_ahead;
        if self.notes.is_empty() {
            self.notes.clone_from(&plan.notes);
        }
        self.run(plan)
    }

    /// Runs a plan on the drives of the search. All points share its files, because identical files
    /// differ persistently in speed, and making them takes time.
    fn run(&mut self, plan: Box<HostPlan>) -> Result<Vec<ProgramResult>, LaboratoryError> {
        let mut observer = Warnings(&mut self.warnings);
        let stop = &self.search.stop;
        if !plan.fresh.is_empty() {
            let executed = execute(&Plan::Host(plan), stop, &mut observer, &mut self.recorder);
            return executed.error.map_or(Ok(executed.run.results), Err);
        }
        if self.drives.is_none() {
            let drives = self.drives.insert(Drives::default());
            drives.open(&plan, None, &mut self.recorder, &mut self.left)?;
        }
        let drives = self.drives.as_ref().expect("they were opened");
        let result = on_open_drives((&plan, drives), self.clock, stop, &mut observer);
        result.map_err(|error| match stop.load(Ordering::Relaxed) {
            true => LaboratoryError::Interrupted,
            false => error,
        })
    }

    /// Restores changed settings and removes created files. The second result describes failures.
    fn close(&mut self) -> (Result<(), LaboratoryError>, Vec<String>) {
        let mut left: Vec<String> = self.settings.put_back().err().into_iter().collect();
        left.append(&mut self.left);
        let drives = self.drives.take().unwrap_or_default();
        let closed = drives.close(&mut self.recorder, &mut left);
        self.recorder.tell(&mut Warnings(&mut self.warnings));
        (closed, left)
    }

    fn experiment(&self) -> Experiment {
        Experiment {
            targets: vec![self.search.target.clone()],
            size_choice: self.size,
            repetition_count: Some(1),
            ..self.search.experiment.clone()
        }
    }

    fn keys(&self) -> Vec<Key> {
        let keys = self.overs.iter().zip(self.varied).zip(&self.own);
        let key = |((over, varied), own): ((&Over, &Varied), &Option<String>)| Key {
            path: over.path.clone(),
            values: over.values.clone(),
            // A switch is nothing that one is beside the other of.
            ordered: over.is_ordered() && *varied != Varied::Direct,
            today_place: own.as_deref().and_then(|own| over.place_of(own)),
            today: own.clone(),
        };
        keys.map(key).collect()
    }

    fn tuned(self, combinations: u64) -> Result<Tuned, LaboratoryError> {
        let keys = self.keys();
        let samples = self.samples();
        let figures = |measured: &Measured| -> Vec<Figures> {
            measured.programs.iter().map(|one| summed(one)).collect()
        };
        let as_it_is = self.points.get(&self.today).map(figures);
        let mut points: BTreeMap<Places, Outcome> = BTreeMap::new();
        for (places, measured) in &self.points {
            let Some(places) = places else { continue };
            points.insert(places.clone(), Outcome::Ran(figures(measured)));
        }
        let rounds = self.points.values().map(|one| one.visits.len() as u32);
        let rounds = rounds.max().unwrap_or(0);
        if points.is_empty() {
            let why = self.impossible.values().next().cloned().unwrap_or_default();
            return Err(LaboratoryError::Request(format!(
                "none of the {combinations} combinations is possible: {why}"
            )));
        }
        let impossible = self.impossible.len() as u64;
        points.extend(
            self.impossible
                .into_iter()
                .map(|(places, why)| (places, Outcome::Impossible(why))),
        );
        let mut notes = self.notes;
        let measured = self.points.values();
        for (number, program) in self.programs.iter().enumerate() {
            let of_one = measured
                .clone()
                .filter_map(|point| point.programs.get(number));
            let told = interference::told(of_one.flatten());
            notes.extend(told.map(|told| format!("{program}: repetitions were disturbed: {told}")));
        }
        notes.extend(self.warnings);
        notes.extend(self.settings.notes().iter().cloned());
        notes.push(
            "real storage: KB/s are those until all was durable, where a program writes; points are compared with today's settings within rounds, and the probability that any is wrongly called better or worse is at most 1 %"
                .to_owned(),
        );
        Ok(Tuned {
            suite: match self.search.experiment.workload.name() {
                Some(name) => name.to_owned(),
                None => self.programs.join(", "),
            },
            target: self.search.target.display().to_string(),
            goal: self.search.goal,
            programs: self.programs,
            keys,
            points,
            today: as_it_is.unwrap_or_default(),
            method: Method {
                search: Searched::Exhaustive,
                combinations,
                tried: combinations,
                impossible,
                around: 0,
                from_store: 0,
                budget: MOST,
                size_bytes: self.sizes,
                repetitions: (rounds + 1, 1),
                seed: self.search.experiment.seed,
            },
            spread: None,
            samples: Some(samples),
            notes,
        })
    }
}

/// Reports whether an error means that the point is impossible, rather than that the machine failed
/// or the user ended the search.
fn is_of_the_point(error: &LaboratoryError) -> bool {
    match error {
        LaboratoryError::Request(_)
        | LaboratoryError::Setting(_)
        | LaboratoryError::Parameter(_)
        | LaboratoryError::Budget(_)
        | LaboratoryError::Program { .. } => true,
        LaboratoryError::Catalogue(_)
        | LaboratoryError::Work(_)
        | LaboratoryError::Store(_)
        | LaboratoryError::File { .. }
        | LaboratoryError::Left { .. }
        | LaboratoryError::Interrupted => false,
    }
}

fn shuffle(order: &mut [Option<Places>], random: &mut RandomStream) {
    for place in (1..order.len()).rev() {
        order.swap(place, random.draw_below(place as u64 + 1) as usize);
    }
}

/// Returns the median rate and CPU time over repetitions. The latency percentile covers the calls
/// of all repetitions together.
fn summed(repetitions: &[Repetition]) -> Figures {
    let rate = |one: &Repetition| one.durable_kb_per_s().unwrap_or_else(|| one.kb_per_s());
    let rates: Vec<f64> = repetitions.iter().map(rate).collect();
    let cpu = |one: &Repetition| {
        let mib = one.payload_bytes() as f64 / MIB as f64;
        one.sum_over_workers(|worker| worker.cpu_time.0) as f64 / 1e6 / mib
    };
    let costs: Vec<f64> = repetitions.iter().map(cpu).collect();
    Figures {
        kb_per_s: median(&rates).unwrap_or(0.0),
        call_p99_ms: call_p99_ms(&calls(repetitions)),
        cpu_ms_per_mib: median(&costs),
        // Rounds say what repetitions differ by.
        kb_per_s_range: None,
        call_p99_ms_range: None,
        unwritten_share: None,
    }
}

/// Returns the goal's value of one visit as a speed; higher is better.
fn speed(goal: Goal, results: &[ProgramResult]) -> Option<f64> {
    let figures: Vec<Figures> = results.iter().map(|one| summed(&one.repetitions)).collect();
    let value = goal.value(&figures)?;
    Some(goal.gain(1.0, value) + 1.0)
}

/// Observer that ignores single runs and collects warnings.
struct Warnings<'w>(&'w mut Vec<String>);

impl Observer for Warnings<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Warning(warning) = event
            && !self.0.iter().any(|known| known == warning)
        {
            self.0.push(warning.to_owned());
        }
    }
}
