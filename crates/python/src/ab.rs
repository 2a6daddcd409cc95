//! A/B measurements for the Python package.

use crate::arguments::{REPETITIONS_MAX, RunArguments, checked_count};
use crate::compare::{Compared, checked_optional_share, checked_share};
use crate::errors::{request_exception, to_exception};
use crate::interruptible::run_interruptible;
use crate::run::{Run, StoreArgument, open_recorder, unstored_message};
use diskperf_analysis::comparison::compare;
use diskperf_analysis::statistics::interleaved::DecisionLimits;
use diskperf_laboratory::ab::{AbOutcome, AbRequest, AbVariant, execute, plan, repeat_experiment};
use diskperf_laboratory::execute::prepare_process;
use diskperf_laboratory::{Experiment, LaboratoryError, SilentObserver};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Source of one variant of a measurement: a run to repeat, or the keywords of a new one.
#[derive(FromPyObject)]
#[expect(clippy::large_enum_variant, reason = "there are two of them")]
enum VariantSource<'py> {
    Run(PyRef<'py, Run>),
    Options(RunArguments),
}

/// Keywords of an A/B measurement, as `python/diskperf/_ab.py` collects them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AbArguments<'py> {
    a: VariantSource<'py>,
    b: VariantSource<'py>,
    before_a: Option<String>,
    before_b: Option<String>,
    budget_s: f64,
    min_time_s: f64,
    blocks: Option<u32>,
    min_effect: f64,
    fail_over: Option<f64>,
    seed: u64,
}

impl VariantSource<'_> {
    fn experiment(self, py: Python<'_>) -> PyResult<Experiment> {
        match self {
            Self::Run(run) => repeat_experiment(&run.run).map_err(|error| to_exception(py, &error)),
            Self::Options(options) => options.into_experiment(py),
        }
    }
}

impl AbArguments<'_> {
    fn into_request(self, py: Python<'_>) -> PyResult<AbRequest> {
        let budget = Duration::try_from_secs_f64(self.budget_s).ok();
        let Some(budget) = budget.filter(|budget| !budget.is_zero()) else {
            let text = format!(
                "budget_s={}: give a number of seconds above 0",
                self.budget_s
            );
            return Err(request_exception(py, text));
        };
        let Ok(min_time) = Duration::try_from_secs_f64(self.min_time_s) else {
            let text = format!(
                "min_time_s={}: give a number of seconds, 0 or more",
                self.min_time_s
            );
            return Err(request_exception(py, text));
        };
        let side = |asked: VariantSource<'_>, before| -> PyResult<AbVariant> {
            Ok(AbVariant {
                experiment: asked.experiment(py)?,
                before_command: before,
            })
        };
        Ok(AbRequest {
            sides: [side(self.a, self.before_a)?, side(self.b, self.before_b)?],
            time_budget: budget,
            min_time,
            block_count: checked_count(py, "blocks", self.blocks, REPETITIONS_MAX)?,
            decision_limits: DecisionLimits {
                effect_share_min: checked_share(py, "min_effect", self.min_effect)?,
            },
            slowdown_limit: checked_optional_share(py, "fail_over", self.fail_over)?,
            seed: self.seed,
        })
    }
}

/// Measures two variants in alternating blocks.
#[pyfunction]
pub(crate) fn ab(
    py: Python<'_>,
    asked: AbArguments<'_>,
    store: Option<StoreArgument>,
) -> PyResult<ComparedRuns> {
    let request = asked.into_request(py)?;
    let made = run_interruptible(py, |stop| run_ab(request, store.as_ref(), stop))?;
    made.map_err(|error| to_exception(py, &error))
}

/// Runs and verdict of an A/B measurement; a tuple in Python.
pub(crate) struct ComparedRuns {
    a: Run,
    b: Run,
    compared: Compared,
    /// Message about a failed store; `None` if nothing failed.
    store_failure: Option<String>,
}

impl<'py> IntoPyObject<'py> for ComparedRuns {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.a, self.b, self.compared, self.store_failure).into_pyobject(py)
    }
}

fn run_ab(
    request: AbRequest,
    store: Option<&StoreArgument>,
    stop: &Arc<AtomicBool>,
) -> Result<ComparedRuns, LaboratoryError> {
    let fail_over = request.slowdown_limit;
    let plan = plan(request)?;
    prepare_process(plan.plans())?;
    let mut recorders = plan
        .plans()
        .each_ref()
        .map(|plan| open_recorder(store, plan));
    let AbOutcome { runs, error } = execute(&plan, stop, &mut SilentObserver, recorders.each_mut());
    if let Some(error) = error {
        return Err(error);
    }
    let compared = Compared::with_limit(compare(&runs), fail_over);
    let mut runs = runs.into_iter().map(|run| Run { run: Arc::new(run) });
    let (Some(a), Some(b)) = (runs.next(), runs.next()) else {
        return Err(LaboratoryError::Failure(
            "one of the arms was not run".to_owned(),
        ));
    };
    Ok(ComparedRuns {
        a,
        b,
        compared,
        store_failure: recorders.iter().find_map(unstored_message),
    })
}
