//! Repetition of a plan's programs on a changed computer.

use crate::error::LaboratoryError;
use crate::model::bench::{BenchUsage, ModelBench};
use crate::model::computer::ModelComputer;
use crate::model::run::{bench_usage, build_task};
use crate::plan::model::default_phase;
use crate::plan::{ModelPlan, format_title};
use crate::rig::repeat_unobserved;
use diskperf_analysis::explanation::difference::RequestCounts;
use diskperf_analysis::summary::unwritten;
use diskperf_battery::SuiteJob;
use diskperf_device::WhatIf;
use diskperf_machine::ExceededLimit;
use diskperf_timeline::{Nanoseconds, Protocol, Repetition, Trace};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Computer and options for a repetition of a plan.
pub(super) struct ModelVariant<'c> {
    pub(super) computer: &'c ModelComputer,
    pub(super) what_if: WhatIf,
    /// Number of drives that run each program together.
    pub(super) drives: usize,
    pub(super) seed: u64,
    /// Whether the events of the programs are recorded.
    pub(super) records_trace: bool,
}

impl<'c> ModelVariant<'c> {
    pub(super) fn from_plan(plan: &ModelPlan, computer: &'c ModelComputer) -> Self {
        Self {
            computer,
            what_if: WhatIf::default(),
            drives: plan.drive_count,
            seed: plan.experiment.seed,
            records_trace: false,
        }
    }
}

/// Outcome of one repetition of a program on a modelled computer.
pub(super) struct RerunOutcome {
    /// Index of the repetition, from zero. Discarded repetitions are included.
    pub(super) repetition_index: u32,
    pub(super) repetition_count: u32,
    pub(super) elapsed: Nanoseconds,
    /// Bytes that the program transferred, as counted for KB/s.
    pub(super) payload_bytes: u64,
    /// Requests that the repetition completed.
    pub(super) request_count: u64,
    /// Maximum number of requests in flight for a worker.
    pub(super) queue_depth: u32,
    /// Mean wait of requests between their arrival and their issue, in an open loop.
    pub(super) before_issue_ns: Option<f64>,
    pub(super) trace: Option<Trace>,
    /// Share of the read data of a flash drive that was never written.
    pub(super) unwritten_share: Option<f64>,
}

impl RerunOutcome {
    /// Returns the time in which a program with a fixed duration would complete as many requests as
    /// in the first run; the elapsed time for any other program.
    pub(super) fn elapsed_for_requests(&self, requests: Option<RequestCounts>) -> Nanoseconds {
        match requests {
            Some(RequestCounts { a, .. }) if self.request_count > 0 => {
                let scaled =
                    u128::from(self.elapsed.0) * u128::from(a) / u128::from(self.request_count);
                Nanoseconds(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
            _ => self.elapsed,
        }
    }

    /// Returns the time in which the program would transfer as much as in `base`. A program with a
    /// fixed duration always takes the same time and transfers more or less.
    pub(super) fn elapsed_for(&self, base: &Self) -> Nanoseconds {
        match (self.payload_bytes, base.payload_bytes) {
            (0, _) | (_, 0) => self.elapsed,
            (own, wanted) => {
                let scaled = u128::from(self.elapsed.0) * u128::from(wanted) / u128::from(own);
                Nanoseconds(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }
}

fn queue_depth_of(one: &Repetition) -> u32 {
    let loads = one
        .workers
        .iter()
        .filter_map(|worker| worker.load_measure.as_ref());
    loads.map(|load| load.queue_depth).max().unwrap_or(1)
}

/// Mean wait of the workers' requests before their issue in an open loop, in nanoseconds.
fn mean_before_issue_ns(one: &Repetition) -> Option<f64> {
    let loads = one
        .workers
        .iter()
        .filter_map(|worker| worker.load_measure.as_ref());
    let lags = loads.filter_map(|load| load.arrival_lag.clone());
    let all = lags.reduce(|mut all, lag| {
        all.merge(&lag);
        all
    });
    all.filter(|all| all.latency_count() > 0)
        .map(|all| all.mean_ns())
}

/// Runs all programs of a plan in order, with the repetitions of its protocol. Returns, for each
/// program, the median repetition among those that count, by elapsed time.
pub(super) fn rerun_programs(
    plan: &ModelPlan,
    variant: &ModelVariant<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<RerunOutcome>, LaboratoryError> {
    let variation = VariantRun::build(plan, variant, stop)?;
    let jobs = plan.suite.iter_jobs();
    let outcomes = jobs
        .map(|job| variation.run_median(job))
        .collect::<Result<_, _>>()?;
    variation.bench.check_events()?;
    Ok(outcomes)
}

/// Runs all programs of a plan with the repetitions of `like`, the last program only up to the
/// repetition that `like` holds, and returns the same repetitions. The files of a program lie
/// elsewhere in each repetition. A change without effect therefore takes as long as in `like`, to
/// the nanosecond.
pub(super) fn rerun_like(
    plan: &ModelPlan,
    variant: &ModelVariant<'_>,
    like: &[RerunOutcome],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<RerunOutcome>, LaboratoryError> {
    let variation = VariantRun::build(plan, variant, stop)?;
    let jobs = plan.suite.iter_jobs().zip(list_repetitions(like));
    let outcomes = jobs
        .map(|(job, (wanted, enough))| variation.run_numbered(job, wanted, enough))
        .collect::<Result<_, _>>()?;
    // What was ended in the middle of something is no whole file system.
    variation.bench.check_events()?;
    Ok(outcomes)
}

/// Job that runs in place of the recorded repetition of a program.
#[derive(Clone, Copy)]
pub(super) struct ReplacedRepetition<'r> {
    /// Outcomes of all programs of the plan.
    pub(super) outcomes: &'r [RerunOutcome],
    /// Index of the program in the plan. The outcome of the program names the repetition.
    pub(super) program_index: usize,
    pub(super) job: &'r SuiteJob,
}

/// Runs the programs of a plan as they ran before, up to the replaced repetition, and the job in
/// place of that repetition. From there on, the flash drives follow `changed`. Their data and
/// operations in flight are then as they were before at the same time.
pub(super) fn rerun_in_place(
    (plan, variant): (&ModelPlan, &ModelVariant<'_>),
    replaced: ReplacedRepetition<'_>,
    (changed, what_if): (&ModelComputer, WhatIf),
    stop: &Arc<AtomicBool>,
) -> Result<RerunOutcome, LaboratoryError> {
    let variation = VariantRun::build(plan, variant, stop)?;
    let ReplacedRepetition {
        outcomes,
        program_index: program,
        job,
    } = replaced;
    let before = list_repetitions(&outcomes[..=program]);
    for (own, (wanted, enough)) in plan.suite.iter_jobs().zip(&before[..program]) {
        variation.run_numbered(own, *wanted, *enough)?;
    }
    let own = plan
        .suite
        .iter_jobs()
        .nth(program)
        .expect("it is one of them");
    let number = outcomes[program].repetition_index;
    if number > 0 {
        variation.run_numbered(own, 0, number)?;
    }
    let machine = &variation.bench.machine;
    machine.apply_counterfactual(&changed.specification, what_if);
    variation.run_numbered(job, 0, 1)
}

/// Returns, for each program, the index of the outcome's repetition and the number of repetitions
/// to run. Repetitions after the last outcome's have no influence.
pub(super) fn list_repetitions(outcomes: &[RerunOutcome]) -> Vec<(u32, u32)> {
    let last = outcomes.len().saturating_sub(1);
    let steps = outcomes.iter().enumerate();
    steps
        .map(|(step, outcome)| match step == last {
            true => (outcome.repetition_index, outcome.repetition_index + 1),
            false => (outcome.repetition_index, outcome.repetition_count),
        })
        .collect()
}

struct VariantRun<'p> {
    plan: &'p ModelPlan,
    bench: ModelBench,
}

impl<'p> VariantRun<'p> {
    fn build(
        plan: &'p ModelPlan,
        variant: &ModelVariant<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LaboratoryError> {
        let usage = BenchUsage {
            drive_count: variant.drives,
            has_other_volume: plan.has_other_volume
                && variant.drives < variant.computer.configured_drive_count(),
            seed: variant.seed,
            spindle_phase: default_phase(variant.drives, variant.seed),
            records_trace: variant.records_trace,
            what_if: variant.what_if,
            ..bench_usage(plan, stop)
        };
        Ok(Self {
            bench: ModelBench::build(&variant.computer.specification, usage)?,
            plan,
        })
    }

    fn run_median(&self, job: &SuiteJob) -> Result<RerunOutcome, LaboratoryError> {
        let (mut kept, mut recorded) = (Vec::new(), 0);
        let most = self.plan.budget.memory_bytes_max;
        let made = self.repeat_job(
            (job, self.plan.suite.protocol_of_job(job)),
            |one, outcome| {
                if !one.is_discarded {
                    recorded += outcome.trace.as_ref().map_or(0, Trace::memory_bytes);
                    kept.push(outcome);
                }
                recorded <= most
            },
        )?;
        if recorded > most {
            let exceeded = ExceededLimit::Memory {
                bytes: recorded,
                recorded,
            };
            return Err(LaboratoryError::Budget(exceeded.into()));
        }
        // Which of them count is known when all are made.
        kept.retain(|outcome: &RerunOutcome| !made[outcome.repetition_index as usize].is_discarded);
        kept.sort_by_key(|outcome| outcome.elapsed);
        let middle = (kept.len() - 1) / 2;
        Ok(RerunOutcome {
            repetition_count: made.len() as u32,
            ..kept.swap_remove(middle)
        })
    }

    fn run_numbered(
        &self,
        job: &SuiteJob,
        wanted: u32,
        repetitions: u32,
    ) -> Result<RerunOutcome, LaboratoryError> {
        let mut found = None;
        let protocol = Protocol {
            repetition_count: repetitions,
            discarded_count: 0,
            stop_below_share: None,
            steady_rule: None,
            ..self.plan.suite.protocol_of_job(job)
        };
        self.repeat_job((job, protocol), |_, outcome| {
            if outcome.repetition_index == wanted {
                found = Some(outcome);
            }
            true
        })?;
        Ok(RerunOutcome {
            repetition_count: repetitions,
            ..found.expect("it was among them")
        })
    }

    fn repeat_job(
        &self,
        (job, protocol): (&SuiteJob, Protocol),
        mut goes_on: impl FnMut(&Repetition, RerunOutcome) -> bool,
    ) -> Result<Vec<Repetition>, LaboratoryError> {
        let title = format_title(job);
        let work = (build_task(self.plan, job, &title), protocol);
        // What came before it is nobody's.
        self.bench.take_trace();
        let mut number = 0;
        repeat_unobserved(&self.bench, work, |one| {
            let outcome = RerunOutcome {
                repetition_index: number,
                repetition_count: number + 1,
                elapsed: one.elapsed_time(),
                payload_bytes: one.sum_over_workers(|worker| worker.payload_bytes),
                request_count: one.sum_over_workers(|worker| worker.call_count),
                before_issue_ns: mean_before_issue_ns(one),
                queue_depth: queue_depth_of(one),
                trace: self.bench.take_trace(),
                unwritten_share: unwritten::unwritten_share([one]),
            };
            number += 1;
            goes_on(one, outcome)
        })
    }
}
