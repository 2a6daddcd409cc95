//! Search for better settings on real storage. Only safe settings are varied, and the search allows
//! for noise. All points are measured in rounds, in random order, so that drift of the machine
//! affects every point equally and any two points of a round form a block of an A/B measurement.
//! Points that are certainly no better than the current settings are dropped. The search ends when
//! all points are decided.

mod keys;

use crate::drive::OpenDrives;
use crate::execute::{execute, execute_on_open_drives};
use crate::files::HostFiles;
use crate::plan::{HostPlan, Plan, plan_on_storage};
use crate::recorder::RunRecorder;
use diskperf_analysis::comparison::Verdict;
use diskperf_analysis::interference;
use diskperf_analysis::statistics::median;
use diskperf_analysis::tuning::{
    GridPoint, PointOutcome, PointVisit, ProgramFigures, SearchKind, SearchMethod, TunedParameter,
    TuningGoal, TuningResult, VisitSamples,
};
use diskperf_machine::{RandomStream, RandomStreams};
use diskperf_models::LaboratoryError;
use diskperf_models::tune::load_job_file;
use diskperf_models::tune::over::OverOption;
use diskperf_models::tune::point::{merge_calls, p99_of_calls_ms};
use diskperf_models::{Observer, ObserverEvent};
use diskperf_system::host::CallClock;
use diskperf_timeline::units::MIB;
use diskperf_timeline::{
    CacheMode, Experiment, ProgramResult, Repetition, Setting, SizeChoice, Workload,
};
use keys::{DeviceSettings, VariedKey};
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
    pub over_options: Vec<String>,
    /// Quantity that the search optimizes.
    pub goal: TuningGoal,
    /// Maximum number of measurements of each point, after a round that is discarded.
    pub repetitions: u32,
    /// Whether the search may change settings of the disk's queue.
    pub changes_device_settings: bool,
    /// Flag that is set when the user ends the search.
    pub stop: Arc<AtomicBool>,
}

/// Maximum number of combinations. More would take hours to measure.
const COMBINATION_COUNT_MAX: u64 = 256;

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
) -> Result<(TuningResult, Option<LaboratoryError>), LaboratoryError> {
    let overs = OverOption::parse_all(&search.over_options, &search.experiment.settings)?;
    let search = &HostSearch {
        experiment: load_job_file((&search.experiment, &HostFiles), &search.target, &overs)?,
        ..search.clone()
    };
    let varied: Vec<VariedKey> = overs
        .iter()
        .map(|over| VariedKey::from_over(over, search.changes_device_settings))
        .collect::<Result<_, _>>()?;
    let lengths: Vec<usize> = overs.iter().map(|over| over.values.len()).collect();
    let combinations = lengths.iter().fold(1_u64, |product, length| {
        product.saturating_mul(*length as u64)
    });
    if combinations > COMBINATION_COUNT_MAX {
        return Err(LaboratoryError::Request(format!(
            "{combinations} combinations exceed {COMBINATION_COUNT_MAX}, the limit on real storage; give fewer values"
        )));
    }
    let mut rounds = TuningRounds {
        search,
        tuned_options: &overs,
        varied_keys: &varied,
        recorder: RunRecorder::open_for_leftovers(store),
        size: search.experiment.size_choice,
        device_settings: DeviceSettings::default(),
        clock: CallClock::new_calibrated(),
        drives: None,
        leftovers: Vec::new(),
        measured_points: BTreeMap::new(),
        impossible_points: BTreeMap::new(),
        program_titles: Vec::new(),
        size_bytes: Vec::new(),
        notes: Vec::new(),
        warnings: Vec::new(),
        today_values: Vec::new(),
        today_point: None,
    };
    let outcome = rounds.run_rounds(
        &diskperf_models::tune::search::all_grid_points(&lengths),
        progress,
    );
    let (closed, left) = rounds.close();
    if let Err(error) = outcome.and(closed) {
        return LaboratoryError::with_leftovers(Err(error), left);
    }
    let left = LaboratoryError::with_leftovers(Ok(()), left).err();
    Ok((rounds.build_result(combinations)?, left))
}

#[derive(Clone, Default)]
struct MeasuredPoint {
    repetitions_by_program: Vec<Vec<Repetition>>,
    visits: Vec<PointVisit>,
}

struct TuningRounds<'a> {
    search: &'a HostSearch,
    tuned_options: &'a [OverOption],
    varied_keys: &'a [VariedKey],
    recorder: RunRecorder,
    size: SizeChoice,
    device_settings: DeviceSettings,
    clock: CallClock,
    drives: Option<OpenDrives>,
    leftovers: Vec<String>,
    /// Measurements by the point's indices of values; `None` for the target with its current
    /// settings.
    measured_points: BTreeMap<Option<GridPoint>, MeasuredPoint>,
    impossible_points: BTreeMap<GridPoint, String>,
    program_titles: Vec<String>,
    size_bytes: Vec<u64>,
    notes: Vec<String>,
    warnings: Vec<String>,
    today_values: Vec<Option<String>>,
    /// Point that equals the current settings of the target, if one does.
    today_point: Option<GridPoint>,
}

impl TuningRounds<'_> {
    fn run_rounds(
        &mut self,
        all: &[GridPoint],
        progress: &dyn Fn(usize, usize),
    ) -> Result<(), LaboratoryError> {
        self.device_settings = DeviceSettings::open(self.varied_keys, &self.search.target)?;
        self.check_values()?;
        let fixed = &self.search.experiment;
        let own = self.varied_keys.iter();
        self.today_values = own
            .map(|key| key.today_value(fixed, &self.device_settings))
            .collect();
        // A pilot, which also warms up.
        let first = self.measure_point(None)?;
        self.program_titles = first.iter().map(ProgramResult::result_key).collect();
        self.size_bytes = first.iter().map(|result| result.size_bytes).collect();
        let is_said = matches!(
            self.search.experiment.workload,
            Workload::JobFile(_) | Workload::Replay(_)
        );
        if let (SizeChoice::AutomaticSize, [one], false) =
            (self.size, &self.size_bytes[..], is_said)
        {
            self.size = SizeChoice::SizeBytes(*one);
        }
        let places = self
            .tuned_parameters()
            .into_iter()
            .map(|key| key.today_value_index);
        self.today_point = places.collect();
        let mut order: Vec<Option<GridPoint>> = all.iter().cloned().map(Some).collect();
        if self.today_point.is_none() {
            order.push(None);
        }
        let mut random = RandomStreams::new(self.search.experiment.seed).named_stream("tune");
        let rounds = self.search.repetitions as usize + 1;
        let mut done = 0;
        for round in 0..rounds {
            shuffle_points(&mut order, &mut random);
            let of = done + (rounds - round) * order.len();
            for (place, point) in order.iter().enumerate() {
                self.visit_point(point, round.checked_sub(1).map(|round| (round, place)))?;
                done += 1;
                progress(done, of);
            }
            if round > 0 && self.remove_decided(&mut order) {
                break;
            }
        }
        Ok(())
    }

    /// Reports whether every remaining point is certainly better than the current settings. Points
    /// that are certainly worse or no different are dropped first, as are impossible ones.
    fn remove_decided(&self, order: &mut Vec<Option<GridPoint>>) -> bool {
        let samples = self.visit_samples();
        let verdict = |point: &Option<GridPoint>| {
            let judged = samples.compare_with_today(point.as_ref()?)?;
            Some(judged.verdict)
        };
        order.retain(|point| {
            let is_left = verdict(point)
                .is_some_and(|one| matches!(one, Verdict::Slower | Verdict::NoDifferenceSeen));
            let is_impossible = point
                .as_ref()
                .is_some_and(|places| self.impossible_points.contains_key(places));
            !is_left && !is_impossible
        });
        order
            .iter()
            .filter_map(verdict)
            .all(|verdict| verdict == Verdict::Faster)
    }

    fn visit_samples(&self) -> VisitSamples {
        let visits = |point: &Option<GridPoint>| {
            let measured = self.measured_points.get(point);
            measured.map_or(Vec::new(), |one| one.visits.clone())
        };
        let points = self.measured_points.keys().flatten();
        VisitSamples {
            today_visits: visits(&self.today_point),
            point_visits: points
                .map(|places| (places.clone(), visits(&Some(places.clone()))))
                .collect(),
        }
    }

    fn check_values(&self) -> Result<(), LaboratoryError> {
        for (over, varied) in self.tuned_options.iter().zip(self.varied_keys) {
            for value in &over.values {
                varied.check_value(value, &self.device_settings)?;
            }
        }
        Ok(())
    }

    /// Measures a point once more. If the measurement counts, `counts` holds its round and its
    /// index within the round.
    fn visit_point(
        &mut self,
        point: &Option<GridPoint>,
        counts: Option<(usize, usize)>,
    ) -> Result<(), LaboratoryError> {
        if let Some(places) = point
            && self.impossible_points.contains_key(places)
        {
            return Ok(());
        }
        match (self.measure_point(point.as_ref()), point) {
            (Ok(results), _) => {
                if let Some((round, place)) = counts {
                    let measured = self.measured_points.entry(point.clone()).or_default();
                    let speed = point_speed(self.search.goal, &results);
                    measured.visits.extend(speed.map(|speed| PointVisit {
                        round: round as u32,
                        order_in_round: place as u32,
                        speed,
                    }));
                    measured
                        .repetitions_by_program
                        .resize(results.len(), Vec::new());
                    for (all, result) in measured.repetitions_by_program.iter_mut().zip(results) {
                        all.extend(result.repetitions);
                    }
                }
                Ok(())
            }
            (Err(error), Some(places)) if is_error_of_point(&error) => {
                self.impossible_points
                    .insert(places.clone(), error.to_string());
                self.measured_points.remove(point);
                Ok(())
            }
            (Err(error), _) => Err(error),
        }
    }

    fn measure_point(
        &mut self,
        point: Option<&GridPoint>,
    ) -> Result<Vec<ProgramResult>, LaboratoryError> {
        if self.search.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let mut experiment = self.point_experiment();
        let mut read_ahead = diskperf_system::host::ReadAhead::default();
        // What no point says is as it was.
        self.device_settings.restore()?;
        let keys = self.varied_keys.iter().zip(self.tuned_options);
        for ((key, over), place) in keys.zip(point.into_iter().flatten()) {
            let value = &over.values[*place];
            match key {
                VariedKey::Program(path) => {
                    experiment.settings.push(Setting::new(path, value));
                }
                VariedKey::Direct => match value == "1" {
                    true => experiment.cache_mode = CacheMode::Direct,
                    false => experiment.passes_cache = true,
                },
                VariedKey::ReadAhead => read_ahead = keys::parse_read_ahead(value)?,
                VariedKey::Device(key) => self.device_settings.set_value(*key, value)?,
            }
        }
        let mut plan = plan_on_storage(&experiment)?;
        plan.read_ahead = read_ahead;
        if self.notes.is_empty() {
            self.notes.clone_from(&plan.notes);
        }
        self.run_plan(plan)
    }

    /// Runs a plan on the drives of the search. All points share its files, because identical files
    /// differ persistently in speed, and making them takes time.
    fn run_plan(&mut self, plan: Box<HostPlan>) -> Result<Vec<ProgramResult>, LaboratoryError> {
        let mut observer = WarningCollector(&mut self.warnings);
        let stop = &self.search.stop;
        if !plan.fresh_filesystems.is_empty() {
            let executed = execute(&Plan::Host(plan), stop, &mut observer, &mut self.recorder);
            return executed.error.map_or(Ok(executed.run.results), Err);
        }
        if self.drives.is_none() {
            let drives = self.drives.insert(OpenDrives::default());
            drives.open(&plan, None, &mut self.recorder, &mut self.leftovers)?;
        }
        let drives = self.drives.as_ref().expect("they were opened");
        let result = execute_on_open_drives((&plan, drives), self.clock, stop, &mut observer);
        result.map_err(|error| match stop.load(Ordering::Relaxed) {
            true => LaboratoryError::Interrupted,
            false => error,
        })
    }

    /// Restores changed settings and removes created files. The second result describes failures.
    fn close(&mut self) -> (Result<(), LaboratoryError>, Vec<String>) {
        let mut left: Vec<String> = self.device_settings.put_back().err().into_iter().collect();
        left.append(&mut self.leftovers);
        let drives = self.drives.take().unwrap_or_default();
        let closed = drives.close(&mut self.recorder, &mut left);
        self.recorder
            .report_messages(&mut WarningCollector(&mut self.warnings));
        (closed, left)
    }

    fn point_experiment(&self) -> Experiment {
        Experiment {
            targets: vec![self.search.target.clone()],
            size_choice: self.size,
            repetition_count: Some(1),
            ..self.search.experiment.clone()
        }
    }

    fn tuned_parameters(&self) -> Vec<TunedParameter> {
        let keys = self
            .tuned_options
            .iter()
            .zip(self.varied_keys)
            .zip(&self.today_values);
        let key =
            |((over, varied), own): ((&OverOption, &VariedKey), &Option<String>)| TunedParameter {
                path: over.path.clone(),
                values: over.values.clone(),
                // A switch is nothing that one is beside the other of.
                is_ordered: over.is_ordered() && *varied != VariedKey::Direct,
                today_value_index: own.as_deref().and_then(|own| over.index_of_value(own)),
                today_value: own.clone(),
            };
        keys.map(key).collect()
    }

    fn build_result(self, combinations: u64) -> Result<TuningResult, LaboratoryError> {
        let keys = self.tuned_parameters();
        let samples = self.visit_samples();
        let figures = |measured: &MeasuredPoint| -> Vec<ProgramFigures> {
            measured
                .repetitions_by_program
                .iter()
                .map(|one| sum_figures(one))
                .collect()
        };
        let as_it_is = self.measured_points.get(&self.today_point).map(figures);
        let mut points: BTreeMap<GridPoint, PointOutcome> = BTreeMap::new();
        for (places, measured) in &self.measured_points {
            let Some(places) = places else { continue };
            points.insert(places.clone(), PointOutcome::Measured(figures(measured)));
        }
        let rounds = self
            .measured_points
            .values()
            .map(|one| one.visits.len() as u32);
        let rounds = rounds.max().unwrap_or(0);
        if points.is_empty() {
            let why = self
                .impossible_points
                .values()
                .next()
                .cloned()
                .unwrap_or_default();
            return Err(LaboratoryError::Request(format!(
                "none of the {combinations} combinations is possible: {why}"
            )));
        }
        let impossible = self.impossible_points.len() as u64;
        points.extend(
            self.impossible_points
                .into_iter()
                .map(|(places, why)| (places, PointOutcome::Impossible(why))),
        );
        let mut notes = self.notes;
        let measured = self.measured_points.values();
        for (number, program) in self.program_titles.iter().enumerate() {
            let of_one = measured
                .clone()
                .filter_map(|point| point.repetitions_by_program.get(number));
            let told = interference::describe_sources(of_one.flatten());
            notes.extend(told.map(|told| format!("{program}: repetitions were disturbed: {told}")));
        }
        notes.extend(self.warnings);
        notes.extend(self.device_settings.notes().iter().cloned());
        notes.push(
            "real storage: KB/s are those until all was durable, where a program writes; points are compared with today's settings within rounds, and the probability that any is wrongly called better or worse is at most 1 %"
                .to_owned(),
        );
        Ok(TuningResult {
            suite: match self.search.experiment.workload.name() {
                Some(name) => name.to_owned(),
                None => self.program_titles.join(", "),
            },
            target: self.search.target.display().to_string(),
            goal: self.search.goal,
            programs: self.program_titles,
            parameters: keys,
            points,
            today_figures: as_it_is.unwrap_or_default(),
            method: SearchMethod {
                kind: SearchKind::Exhaustive,
                combination_count: combinations,
                tried_count: combinations,
                impossible_count: impossible,
                neighbour_count: 0,
                from_store_count: 0,
                run_budget: COMBINATION_COUNT_MAX,
                size_bytes: self.size_bytes,
                repetition_range: (rounds + 1, 1),
                seed: self.search.experiment.seed,
            },
            seed_spread: None,
            samples: Some(samples),
            notes,
        })
    }
}

/// Reports whether an error means that the point is impossible, rather than that the machine failed
/// or the user ended the search.
fn is_error_of_point(error: &LaboratoryError) -> bool {
    match error {
        LaboratoryError::Request(_)
        | LaboratoryError::Setting(_)
        | LaboratoryError::Parameter(_)
        | LaboratoryError::Budget(_)
        | LaboratoryError::Program { .. } => true,
        LaboratoryError::Catalogue(_)
        | LaboratoryError::Failure(_)
        | LaboratoryError::Store(_)
        | LaboratoryError::File { .. }
        | LaboratoryError::Leftovers { .. }
        | LaboratoryError::Interrupted => false,
    }
}

fn shuffle_points(order: &mut [Option<GridPoint>], random: &mut RandomStream) {
    for place in (1..order.len()).rev() {
        order.swap(place, random.draw_below(place as u64 + 1) as usize);
    }
}

/// Returns the median rate and CPU time over repetitions. The latency percentile covers the calls
/// of all repetitions together.
fn sum_figures(repetitions: &[Repetition]) -> ProgramFigures {
    let rate = |one: &Repetition| one.durable_kb_per_s().unwrap_or_else(|| one.kb_per_s());
    let rates: Vec<f64> = repetitions.iter().map(rate).collect();
    let cpu = |one: &Repetition| {
        let mib = one.payload_bytes() as f64 / MIB as f64;
        one.sum_over_workers(|worker| worker.cpu_time.0) as f64 / 1e6 / mib
    };
    let costs: Vec<f64> = repetitions.iter().map(cpu).collect();
    ProgramFigures {
        kb_per_s: median(&rates).unwrap_or(0.0),
        call_p99_ms: p99_of_calls_ms(&merge_calls(repetitions)),
        cpu_ms_per_mib: median(&costs),
        // Rounds say what repetitions differ by.
        kb_per_s_range: None,
        call_p99_ms_range: None,
        unwritten_share: None,
    }
}

/// Returns the goal's value of one visit as a speed; higher is better.
fn point_speed(goal: TuningGoal, results: &[ProgramResult]) -> Option<f64> {
    let figures: Vec<ProgramFigures> = results
        .iter()
        .map(|one| sum_figures(&one.repetitions))
        .collect();
    let value = goal.value_of_programs(&figures)?;
    Some(goal.gain(1.0, value) + 1.0)
}

/// Observer that ignores single runs and collects warnings.
struct WarningCollector<'w>(&'w mut Vec<String>);

impl Observer for WarningCollector<'_> {
    fn handle_event(&mut self, event: ObserverEvent<'_>) {
        if let ObserverEvent::Warning(warning) = event
            && !self.0.iter().any(|known| known == warning)
        {
            self.0.push(warning.to_owned());
        }
    }
}
