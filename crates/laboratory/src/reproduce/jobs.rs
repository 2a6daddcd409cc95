//! Programs on many modelled machines in parallel, one machine on each thread.

use diskperf_battery::{Medium, Program};
use diskperf_machine::RunBudget;
use diskperf_machine::specification::MachineSpecification;
use diskperf_models::LaboratoryError;
use diskperf_models::crew::{WatchedCrew, lock_slot};
use diskperf_models::measured::JobTask;
use diskperf_models::model::bench::{BenchUsage, ModelBench};
use diskperf_models::model::computer::ModelComputer;
use diskperf_models::model::counts::MachineCounts;
use diskperf_models::rig::{THREE_REPETITIONS, repeat_unobserved};
use diskperf_timeline::{CacheMode, ControllerCache, Nanoseconds, Protocol, Repetition};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A modelled machine and the programs that run on it, in order.
#[derive(Clone)]
pub(crate) struct ModelJob {
    pub(crate) computer: Arc<ModelComputer>,
    /// Number of drives that run each program together.
    pub(crate) drive_count: usize,
    /// Whether the programs copy to one more drive or partition.
    pub(crate) has_other_volume: bool,
    /// Rotation angle of the second drive relative to the first, in units of 2^-32 revolutions.
    pub(crate) spindle_phase: u32,
    /// Share by which the second drive turns slower.
    pub(crate) speed_difference_share: f64,
    pub(crate) programs: Vec<Program>,
    /// Bytes that each program transfers on each drive.
    pub(crate) size_bytes: u64,
    /// Protocol of repetitions for each program.
    pub(crate) protocol: Protocol,
    /// Seed of all random choices.
    pub(crate) seed: u64,
}

/// Results of one program in a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelFigures {
    /// Rate in KB/s: sum over the drives, median of the kept repetitions.
    pub(crate) kb_per_s: f64,
    /// Elapsed time in seconds, median of the kept repetitions.
    pub(crate) elapsed_s: f64,
    /// CPU share of all programs in percent, median of the kept repetitions.
    pub(crate) cpu_percent: f64,
    /// Seconds of all programs in user mode, counted by ticks, median of the kept repetitions.
    pub(crate) user_s: f64,
    /// Seconds of all programs in the kernel, counted by ticks, median of the kept repetitions.
    pub(crate) system_s: f64,
    /// Requests that the drives completed in the kept repetitions.
    pub(crate) request_count: u64,
    /// Requests of the kept repetitions that lost an avoidable revolution.
    pub(crate) missed_revolution_count: u64,
    /// Busy time of the processor in the kept repetitions, for all purposes.
    pub(crate) processor_time: Nanoseconds,
    /// Busy time of the processor for the driver's routines, in processes and in interrupt
    /// handlers.
    pub(crate) driver_time: Nanoseconds,
    /// Statistics of the controllers' caches in the kept repetitions.
    pub(crate) controller_caches: Vec<ControllerCache>,
}

/// Text of everything that determines the result of a job: its machine and its programs.
type JobKey = (Arc<str>, String);

/// Executor of jobs. Many cells and statements concern the same machine. Jobs with equal machines
/// and programs have equal results and are run once.
pub(crate) struct ModelWorkshop<'a> {
    crew: WatchedCrew<'a>,
    budget: RunBudget,
    figures_by_key: Mutex<BTreeMap<JobKey, Vec<ModelFigures>>>,
}

impl<'a> ModelWorkshop<'a> {
    /// Creates an executor of jobs without results.
    pub(crate) fn new(crew: WatchedCrew<'a>, budget: RunBudget) -> Self {
        Self {
            crew,
            budget,
            figures_by_key: Mutex::default(),
        }
    }

    /// Runs all jobs, equal ones once, and returns the results in the order of the jobs.
    ///
    /// # Errors
    ///
    /// Returns the error of the first failed job, in the order of the jobs.
    pub(crate) fn run_jobs(
        &self,
        jobs: &[ModelJob],
    ) -> Result<Vec<Vec<ModelFigures>>, LaboratoryError> {
        let keys = job_keys(jobs);
        let mut first = BTreeMap::new();
        for (number, key) in keys.iter().enumerate().rev() {
            first.insert(key, number);
        }
        first.retain(|key, _| !lock_slot(&self.figures_by_key).contains_key(*key));
        let mut new: Vec<usize> = first.into_values().collect();
        new.sort_unstable();
        let done = self.crew.run_each(new.len(), |number| {
            jobs[new[number]].run_programs(self.budget, self.crew.stop)
        })?;
        let mut known = lock_slot(&self.figures_by_key);
        known.extend(new.iter().map(|number| keys[*number].clone()).zip(done));
        Ok(keys.iter().map(|key| known[key].clone()).collect())
    }
}

fn job_keys(jobs: &[ModelJob]) -> Vec<JobKey> {
    let mut last: Option<(&Arc<ModelComputer>, Arc<str>)> = None;
    let mut keys = Vec::new();
    for job in jobs {
        let known = last.filter(|(computer, _)| Arc::ptr_eq(computer, &job.computer));
        let (computer, machine) = known.unwrap_or_else(|| (&job.computer, job.machine_key()));
        keys.push((Arc::clone(&machine), job.work_key()));
        last = Some((computer, machine));
    }
    keys
}

impl ModelJob {
    /// Text of the machine's specification, without its name.
    fn machine_key(&self) -> Arc<str> {
        let unnamed = MachineSpecification {
            name: String::new(),
            ..self.computer.specification.clone()
        };
        format!("{unnamed:?}").into()
    }

    fn work_key(&self) -> String {
        let Self {
            computer: _,
            drive_count: drives,
            has_other_volume: other,
            spindle_phase: phase,
            speed_difference_share: speed_difference,
            programs,
            size_bytes,
            protocol,
            seed,
        } = self;
        let usage = (drives, other, phase, speed_difference, seed);
        format!("{:?}", (usage, programs, size_bytes, protocol))
    }

    /// Creates a job of one program on the first drive of a machine: a round to clear the cache,
    /// and two that count.
    pub(crate) fn from_repetitions(
        computer: Arc<ModelComputer>,
        program: Program,
        size_bytes: u64,
        seed: u64,
    ) -> Self {
        Self {
            computer,
            drive_count: 1,
            has_other_volume: false,
            spindle_phase: 0,
            speed_difference_share: 0.0,
            programs: vec![program],
            size_bytes,
            protocol: THREE_REPETITIONS,
            seed,
        }
    }

    pub(crate) fn run_programs(
        &self,
        budget: RunBudget,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<ModelFigures>, LaboratoryError> {
        let usage = BenchUsage {
            has_other_volume: self.has_other_volume,
            spindle_phase: self.spindle_phase,
            speed_difference_share: self.speed_difference_share,
            budget,
            ..BenchUsage::for_system((&self.computer.name, self.drive_count), self.seed, stop)
        };
        let bench = ModelBench::build(&self.computer.specification, usage)?;
        self.programs
            .iter()
            .map(|program| self.measure_program(&bench, program))
            .collect()
    }

    fn measure_program(
        &self,
        bench: &ModelBench,
        program: &Program,
    ) -> Result<ModelFigures, LaboratoryError> {
        // Drives by themselves are past every cache.
        let asked = match self.computer.medium() {
            Medium::Device => CacheMode::Direct,
            Medium::Directory | Medium::File => CacheMode::Cold,
        };
        let task = JobTask {
            title: program.name(),
            program,
            cache_mode: program.cache_mode_for(asked),
            size_bytes: self.size_bytes,
            drive_index: None,
            keeps_others_on_failure: false,
        };
        let mut before = MachineCounts::from_bench(bench);
        let mut kept = repeat_unobserved(bench, (task, self.protocol), |one| {
            if one.is_discarded {
                before = MachineCounts::from_bench(bench);
            }
            true
        })?;
        kept.retain(|one| !one.is_discarded);
        let spent = MachineCounts::from_bench(bench).since(&before);
        Ok(ModelFigures {
            kb_per_s: median_of(&kept, Repetition::kb_per_s),
            elapsed_s: median_of(&kept, |repetition| repetition.elapsed_time().0 as f64 / 1e9),
            cpu_percent: median_of(&kept, Repetition::cpu_percent),
            user_s: median_of(&kept, |repetition| {
                repetition.sum_over_workers(|worker| worker.user_cpu_time.0) as f64 / 1e9
            }),
            system_s: median_of(&kept, |repetition| {
                repetition.sum_over_workers(|worker| worker.system_cpu_time.0) as f64 / 1e9
            }),
            request_count: spent.request_count,
            missed_revolution_count: spent.missed_revolution_count,
            processor_time: spent.processor_time,
            driver_time: spent.driver_time,
            controller_caches: ControllerCache::sum(
                kept.iter().flat_map(|one| &one.controller_caches),
            ),
        })
    }
}

/// Returns the median of a quantity over the kept repetitions, computed like that of a run's
/// summary.
fn median_of(kept: &[Repetition], of: impl Fn(&Repetition) -> f64) -> f64 {
    let values: Vec<f64> = kept.iter().map(of).collect();
    diskperf_analysis::statistics::median(&values).expect("at least one repetition is kept")
}
