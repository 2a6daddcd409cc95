//! Repetition of a plan's programs on a changed computer.

use crate::error::LaboratoryError;
use crate::model::bench::{Bench, Usage};
use crate::model::computer::Computer;
use crate::model::run::{task, usage};
use crate::plan::model::phase;
use crate::plan::{ModelPlan, title};
use crate::rig::repeat_unobserved;
use diskperf_analysis::explanation::difference::Requests;
use diskperf_analysis::summary::unwritten;
use diskperf_battery::SuiteJob;
use diskperf_device::WhatIf;
use diskperf_machine::ExceededLimit;
use diskperf_timeline::{Nanoseconds, Protocol, Repetition, Trace};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Computer and options for a repetition of a plan.
pub(super) struct Variant<'c> {
    pub(super) computer: &'c Computer,
    pub(super) what_if: WhatIf,
    /// Number of drives that run each program together.
    pub(super) drives: usize,
    pub(super) seed: u64,
    /// Whether the events of the programs are recorded.
    pub(super) trace: bool,
}

impl<'c> Variant<'c> {
    /// Creates the variant that uses a computer in the way of a plan.
    pub(super) fn of(plan: &ModelPlan, computer: &'c Computer) -> Self {
        Self {
            computer,
            what_if: WhatIf::default(),
            drives: plan.drives,
            seed: plan.experiment.seed,
            trace: false,
        }
    }
}

/// Outcome of one repetition of a program on a modelled computer.
pub(super) struct Outcome {
    /// Index of the repetition, from zero. Discarded repetitions are included.
    pub(super) number: u32,
    /// Number of repetitions of the program.
    pub(super) repetitions: u32,
    pub(super) elapsed: Nanoseconds,
    /// Bytes that the program transferred, as counted for KB/s.
    pub(super) payload_bytes: u64,
    /// Requests that the repetition completed.
    pub(super) requests: u64,
    /// Maximum number of requests in flight for a worker.
    pub(super) depth: u32,
    /// Mean wait of requests between their arrival and their issue, in an open loop.
    pub(super) before_issue_ns: Option<f64>,
    pub(super) trace: Option<Trace>,
    /// Share of the read data of a flash drive that was never written.
    pub(super) unwritten_share: Option<f64>,
}

impl Outcome {
    /// Returns the time in which a program with a fixed duration would complete as many requests as
    /// in the first run; the elapsed time for any other program.
    pub(super) fn elapsed_for_requests(&self, requests: Option<Requests>) -> Nanoseconds {
        match requests {
            Some(Requests { a, .. }) if self.requests > 0 => {
                let scaled = u128::from(self.elapsed.0) * u128::from(a) / u128::from(self.requests);
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

fn depth(one: &Repetition) -> u32 {
    let loads = one
        .workers
        .iter()
        .filter_map(|worker| worker.load_measure.as_ref());
    loads.map(|load| load.queue_depth).max().unwrap_or(1)
}

/// Mean wait of the workers' requests before their issue in an open loop, in nanoseconds.
fn before_issue_ns(one: &Repetition) -> Option<f64> {
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
pub(super) fn rerun(
    plan: &ModelPlan,
    variant: &Variant<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Outcome>, LaboratoryError> {
    let variation = Variation::of(plan, variant, stop)?;
    let jobs = plan.suite.iter_jobs();
    let outcomes = jobs
        .map(|job| variation.middle(job))
        .collect::<Result<_, _>>()?;
    variation.bench.check()?;
    Ok(outcomes)
}

/// Runs all programs of a plan with the repetitions of `like`, the last program only up to the
/// repetition that `like` holds, and returns the same repetitions. The files of a program lie
/// elsewhere in each repetition. A change without effect therefore takes as long as in `like`, to
/// the nanosecond.
pub(super) fn rerun_like(
    plan: &ModelPlan,
    variant: &Variant<'_>,
    like: &[Outcome],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Outcome>, LaboratoryError> {
    let variation = Variation::of(plan, variant, stop)?;
    let jobs = plan.suite.iter_jobs().zip(repetitions(like));
    let outcomes = jobs
        .map(|(job, (wanted, enough))| variation.numbered(job, wanted, enough))
        .collect::<Result<_, _>>()?;
    // What was ended in the middle of something is no whole file system.
    variation.bench.check()?;
    Ok(outcomes)
}

/// Runs the programs of a plan as in `like`, up to a given repetition of a given program, and `job`
/// in place of that repetition. From there on, the flash drives follow `changed`. Their data and
/// operations in flight are then as they were in `like` at the same time.
pub(super) fn rerun_in_place(
    (plan, variant): (&ModelPlan, &Variant<'_>),
    (like, program, job): (&[Outcome], usize, &SuiteJob),
    (changed, what_if): (&Computer, WhatIf),
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, LaboratoryError> {
    let variation = Variation::of(plan, variant, stop)?;
    let before = repetitions(&like[..=program]);
    for (own, (wanted, enough)) in plan.suite.iter_jobs().zip(&before[..program]) {
        variation.numbered(own, *wanted, *enough)?;
    }
    let own = plan
        .suite
        .iter_jobs()
        .nth(program)
        .expect("it is one of them");
    let number = like[program].number;
    if number > 0 {
        variation.numbered(own, 0, number)?;
    }
    let machine = &variation.bench.machine;
    machine.apply_counterfactual(&changed.specification, what_if);
    variation.numbered(job, 0, 1)
}

/// Returns, for each program, the index of the outcome's repetition and the number of repetitions
/// to run. Repetitions after the last outcome's have no influence.
pub(super) fn repetitions(outcomes: &[Outcome]) -> Vec<(u32, u32)> {
    let last = outcomes.len().saturating_sub(1);
    let steps = outcomes.iter().enumerate();
    steps
        .map(|(step, outcome)| match step == last {
            true => (outcome.number, outcome.number + 1),
            false => (outcome.number, outcome.repetitions),
        })
        .collect()
}

struct Variation<'p> {
    plan: &'p ModelPlan,
    bench: Bench,
}

impl<'p> Variation<'p> {
    fn of(
        plan: &'p ModelPlan,
        variant: &Variant<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LaboratoryError> {
        let usage = Usage {
            drives: variant.drives,
            other: plan.other && variant.drives < variant.computer.configured_drives(),
            seed: variant.seed,
            phase: phase(variant.drives, variant.seed),
            trace: variant.trace,
            what_if: variant.what_if,
            ..usage(plan, stop)
        };
        Ok(Self {
            bench: Bench::build(&variant.computer.specification, usage)?,
            plan,
        })
    }

    fn middle(&self, job: &SuiteJob) -> Result<Outcome, LaboratoryError> {
        let (mut kept, mut recorded) = (Vec::new(), 0);
        let most = self.plan.budget.memory_bytes_max;
        let made = self.repeat(
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
        kept.retain(|outcome: &Outcome| !made[outcome.number as usize].is_discarded);
        kept.sort_by_key(|outcome| outcome.elapsed);
        let middle = (kept.len() - 1) / 2;
        Ok(Outcome {
            repetitions: made.len() as u32,
            ..kept.swap_remove(middle)
        })
    }

    fn numbered(
        &self,
        job: &SuiteJob,
        wanted: u32,
        repetitions: u32,
    ) -> Result<Outcome, LaboratoryError> {
        let mut found = None;
        let protocol = Protocol {
            repetition_count: repetitions,
            discarded_count: 0,
            stop_below_share: None,
            steady_rule: None,
            ..self.plan.suite.protocol_of_job(job)
        };
        self.repeat((job, protocol), |_, outcome| {
            if outcome.number == wanted {
                found = Some(outcome);
            }
            true
        })?;
        Ok(Outcome {
            repetitions,
            ..found.expect("it was among them")
        })
    }

    fn repeat(
        &self,
        (job, protocol): (&SuiteJob, Protocol),
        mut goes_on: impl FnMut(&Repetition, Outcome) -> bool,
    ) -> Result<Vec<Repetition>, LaboratoryError> {
        let title = title(job);
        let work = (task(self.plan, job, &title), protocol);
        // What came before it is nobody's.
        self.bench.take_trace();
        let mut number = 0;
        repeat_unobserved(&self.bench, work, |one| {
            let outcome = Outcome {
                number,
                repetitions: number + 1,
                elapsed: one.elapsed_time(),
                payload_bytes: one.sum_over_workers(|worker| worker.payload_bytes),
                requests: one.sum_over_workers(|worker| worker.call_count),
                before_issue_ns: before_issue_ns(one),
                depth: depth(one),
                trace: self.bench.take_trace(),
                unwritten_share: unwritten::share([one]),
            };
            number += 1;
            goes_on(one, outcome)
        })
    }
}
