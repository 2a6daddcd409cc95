//! A/B measurements.

use crate::arguments::{Options, REPETITIONS_MAX, counted};
use crate::compare::{Compared, share, shared};
use crate::errors::{exception, request_error};
use crate::interruptible::interruptible;
use crate::run::{Keeping, Run, recorder, unstored};
use diskperf_analysis::comparison::compare;
use diskperf_analysis::statistics::interleaved::DecisionLimits;
use diskperf_laboratory::ab::{AbOutcome, AbRequest, AbVariant, execute, plan, repeat_experiment};
use diskperf_laboratory::execute::prepare_process;
use diskperf_laboratory::{Experiment, LaboratoryError, SilentObserver};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What one side is.
#[derive(FromPyObject)]
#[expect(clippy::large_enum_variant, reason = "there are two of them")]
enum Asked<'py> {
    Run(PyRef<'py, Run>),
    Options(Options),
}

/// A measurement as `python/diskperf/_ab.py` asks for it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Measurement<'py> {
    a: Asked<'py>,
    b: Asked<'py>,
    before_a: Option<String>,
    before_b: Option<String>,
    budget_s: f64,
    min_time_s: f64,
    blocks: Option<u32>,
    min_effect: f64,
    fail_over: Option<f64>,
    seed: u64,
}

impl Asked<'_> {
    fn experiment(self, py: Python<'_>) -> PyResult<Experiment> {
        match self {
            Self::Run(run) => repeat_experiment(&run.run).map_err(|error| exception(py, &error)),
            Self::Options(options) => options.experiment(py),
        }
    }
}

impl Measurement<'_> {
    fn request(self, py: Python<'_>) -> PyResult<AbRequest> {
        let budget = Duration::try_from_secs_f64(self.budget_s).ok();
        let Some(budget) = budget.filter(|budget| !budget.is_zero()) else {
            let text = format!(
                "budget_s={}: give a number of seconds above 0",
                self.budget_s
            );
            return Err(request_error(py, text));
        };
        let Ok(min_time) = Duration::try_from_secs_f64(self.min_time_s) else {
            let text = format!(
                "min_time_s={}: give a number of seconds, 0 or more",
                self.min_time_s
            );
            return Err(request_error(py, text));
        };
        let side = |asked: Asked<'_>, before| -> PyResult<AbVariant> {
            Ok(AbVariant {
                experiment: asked.experiment(py)?,
                before_command: before,
            })
        };
        Ok(AbRequest {
            sides: [side(self.a, self.before_a)?, side(self.b, self.before_b)?],
            time_budget: budget,
            min_time,
            block_count: counted(py, "blocks", self.blocks, REPETITIONS_MAX)?,
            decision_limits: DecisionLimits {
                effect_share_min: share(py, "min_effect", self.min_effect)?,
            },
            slowdown_limit: shared(py, "fail_over", self.fail_over)?,
            seed: self.seed,
        })
    }
}

/// Measures two experiments in blocks: both runs, how they compare, and what went wrong
/// with the store, if anything did.
#[pyfunction]
pub(crate) fn ab(
    py: Python<'_>,
    asked: Measurement<'_>,
    store: Option<Keeping>,
) -> PyResult<(Run, Run, Compared, Option<String>)> {
    let request = asked.request(py)?;
    let made = interruptible(py, |stop| carry_out(request, store.as_ref(), stop))?;
    made.map_err(|error| exception(py, &error))
}

type Made = (Run, Run, Compared, Option<String>);

fn carry_out(
    request: AbRequest,
    store: Option<&Keeping>,
    stop: &Arc<AtomicBool>,
) -> Result<Made, LaboratoryError> {
    let fail_over = request.slowdown_limit;
    let plan = plan(request)?;
    prepare_process(plan.plans())?;
    let mut recorders = plan.plans().each_ref().map(|plan| recorder(store, plan));
    let AbOutcome { runs, error } = execute(&plan, stop, &mut SilentObserver, recorders.each_mut());
    if let Some(error) = error {
        return Err(error);
    }
    let compared = Compared::of(compare(&runs), fail_over);
    let mut runs = runs.into_iter().map(|run| Run { run: Arc::new(run) });
    let (Some(a), Some(b)) = (runs.next(), runs.next()) else {
        return Err(LaboratoryError::Workload(
            "one of the arms was not run".to_owned(),
        ));
    };
    Ok((a, b, compared, recorders.iter().find_map(unstored)))
}
