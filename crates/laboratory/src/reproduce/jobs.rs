//! Programs on many modelled machines in parallel, one machine on each thread.

use diskperf_battery::{Medium, Program};
use diskperf_machine::RunBudget;
use diskperf_machine::specification::MachineSpecification;
use diskperf_models::LaboratoryError;
use diskperf_models::crew::{Watched, lock};
use diskperf_models::measured::Task;
use diskperf_models::model::bench::{Bench, Usage};
use diskperf_models::model::computer::Computer;
use diskperf_models::model::counts::Counts;
use diskperf_models::rig::{THREE_RUNS, repeat_unobserved};
use diskperf_timeline::{CacheMode, ControllerCache, Nanoseconds, Protocol, Repetition};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A modelled machine and the programs that run on it, in order.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) computer: Arc<Computer>,
    /// Number of drives that run each program together.
    pub(crate) drives: usize,
    /// Whether the programs copy to one more drive or partition.
    pub(crate) other: bool,
    /// Rotation angle of the second drive relative to the first, in units of 2^-32 revolutions.
    pub(crate) phase: u32,
    /// Share by which the second drive turns slower.
    pub(crate) speed_difference: f64,
    /// Programs of the job, in the order of running.
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
pub(crate) struct Figure {
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
    pub(crate) requests: u64,
    /// Requests of the kept repetitions that lost an avoidable revolution.
    pub(crate) missed: u64,
    /// Busy time of the processor in the kept repetitions, for all purposes.
    pub(crate) processor: Nanoseconds,
    /// Busy time of the processor for the driver's routines, in processes and in interrupt
    /// handlers.
    pub(crate) driver: Nanoseconds,
    /// Statistics of the controllers' caches in the kept repetitions.
    pub(crate) controller_caches: Vec<ControllerCache>,
}

/// Text of everything that determines the result of a job: its machine and its programs.
type Key = (Arc<str>, String);

/// Executor of jobs. Many cells and statements concern the same machine. Jobs with equal machines
/// and programs have equal results and are run once.
pub(crate) struct Workshop<'a> {
    crew: Watched<'a>,
    budget: RunBudget,
    known: Mutex<BTreeMap<Key, Vec<Figure>>>,
}

impl<'a> Workshop<'a> {
    /// Creates an executor of jobs without results.
    pub(crate) fn new(crew: Watched<'a>, budget: RunBudget) -> Self {
        Self {
            crew,
            budget,
            known: Mutex::default(),
        }
    }

    /// Runs all jobs, equal ones once, and returns the results in the order of the jobs.
    ///
    /// # Errors
    ///
    /// Returns the error of the first failed job, in the order of the jobs.
    pub(crate) fn carry_out(&self, jobs: &[Job]) -> Result<Vec<Vec<Figure>>, LaboratoryError> {
        let keys = keys(jobs);
        let mut first = BTreeMap::new();
        for (number, key) in keys.iter().enumerate().rev() {
            first.insert(key, number);
        }
        first.retain(|key, _| !lock(&self.known).contains_key(*key));
        let mut new: Vec<usize> = first.into_values().collect();
        new.sort_unstable();
        let done = self.crew.each(new.len(), |number| {
            jobs[new[number]].run(self.budget, self.crew.stop)
        })?;
        let mut known = lock(&self.known);
        known.extend(new.iter().map(|number| keys[*number].clone()).zip(done));
        Ok(keys.iter().map(|key| known[key].clone()).collect())
    }
}

fn keys(jobs: &[Job]) -> Vec<Key> {
    let mut last: Option<(&Arc<Computer>, Arc<str>)> = None;
    let mut keys = Vec::new();
    for job in jobs {
        let known = last.filter(|(computer, _)| Arc::ptr_eq(computer, &job.computer));
        let (computer, machine) = known.unwrap_or_else(|| (&job.computer, job.machine()));
        keys.push((Arc::clone(&machine), job.work()));
        last = Some((computer, machine));
    }
    keys
}

impl Job {
    /// Text of the machine's specification, without its name.
    fn machine(&self) -> Arc<str> {
        let unnamed = MachineSpecification {
            name: String::new(),
            ..self.computer.specification.clone()
        };
        format!("{unnamed:?}").into()
    }

    fn work(&self) -> String {
        let Self {
            computer: _,
            drives,
            other,
            phase,
            speed_difference,
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
    pub(crate) fn of(
        computer: Arc<Computer>,
        program: Program,
        size_bytes: u64,
        seed: u64,
    ) -> Self {
        Self {
            computer,
            drives: 1,
            other: false,
            phase: 0,
            speed_difference: 0.0,
            programs: vec![program],
            size_bytes,
            protocol: THREE_RUNS,
            seed,
        }
    }

    /// Builds the machine and runs the programs on it.
    pub(crate) fn run(
        &self,
        budget: RunBudget,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<Figure>, LaboratoryError> {
        let usage = Usage {
            other: self.other,
            phase: self.phase,
            speed_difference: self.speed_difference,
            budget,
            ..Usage::of((&self.computer.name, self.drives), self.seed, stop)
        };
        let bench = Bench::build(&self.computer.specification, usage)?;
        self.programs
            .iter()
            .map(|program| self.figure(&bench, program))
            .collect()
    }

    fn figure(&self, bench: &Bench, program: &Program) -> Result<Figure, LaboratoryError> {
        // Drives by themselves are past every cache.
        let asked = match self.computer.medium() {
            Medium::Device => CacheMode::Direct,
            Medium::Directory | Medium::File => CacheMode::Cold,
        };
        let task = Task {
            title: program.name(),
            program,
            cache: program.cache_mode_for(asked),
            size_bytes: self.size_bytes,
            drive: None,
            fails_alone: false,
        };
        let mut before = Counts::of(bench);
        let mut kept = repeat_unobserved(bench, (task, self.protocol), |one| {
            if one.is_discarded {
                before = Counts::of(bench);
            }
            true
        })?;
        kept.retain(|one| !one.is_discarded);
        let spent = Counts::of(bench).since(&before);
        Ok(Figure {
            kb_per_s: middle(&kept, Repetition::kb_per_s),
            elapsed_s: middle(&kept, |repetition| repetition.elapsed_time().0 as f64 / 1e9),
            cpu_percent: middle(&kept, Repetition::cpu_percent),
            user_s: middle(&kept, |repetition| {
                repetition.sum_over_workers(|worker| worker.user_cpu_time.0) as f64 / 1e9
            }),
            system_s: middle(&kept, |repetition| {
                repetition.sum_over_workers(|worker| worker.system_cpu_time.0) as f64 / 1e9
            }),
            requests: spent.requests,
            missed: spent.missed,
            processor: spent.processor,
            driver: spent.driver,
            controller_caches: ControllerCache::sum(
                kept.iter().flat_map(|one| &one.controller_caches),
            ),
        })
    }
}

/// Returns the median of a quantity over the kept repetitions, computed like that of a run's
/// summary.
fn middle(kept: &[Repetition], of: impl Fn(&Repetition) -> f64) -> f64 {
    let values: Vec<f64> = kept.iter().map(of).collect();
    diskperf_analysis::statistics::median(&values).expect("at least one repetition is kept")
}
