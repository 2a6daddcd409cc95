//! Comparison of runs for the Python package.

use crate::errors::{request_exception, to_exception};
use crate::run::{Run, StoreArgument};
use diskperf_analysis::comparison::{Comparison, ComparisonTerms, GateOutcome, compare_with_terms};
use diskperf_analysis::report::{self, ReportFormat};
use diskperf_analysis::statistics::interleaved::DecisionLimits;
use diskperf_laboratory::runs;
use diskperf_timeline as timeline;
use pyo3::prelude::*;

/// Comparison of two or more runs.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Compared {
    comparison: Comparison,
}

impl Compared {
    /// Creates a comparison that is checked against a limit, if one is given.
    pub(crate) fn with_limit(mut comparison: Comparison, fail_over: Option<f64>) -> Self {
        if let Some(limit) = fail_over {
            comparison.apply_gate(limit);
        }
        Self { comparison }
    }
}

#[pymethods]
impl Compared {
    /// Returns the JSON of `diskperf compare --format json`.
    fn json(&self) -> String {
        report::render_comparison(&self.comparison, ReportFormat::Json, 0)
    }

    /// Returns the table of `diskperf compare`, at most `width` columns wide.
    fn text(&self, width: u16) -> String {
        report::render_comparison(&self.comparison, ReportFormat::Table, width)
    }

    /// Returns the outcome of the limit: `kept`, `exceeded`, `cannot_tell` or `missing`; `None`
    /// without a limit.
    fn gate(&self) -> Option<&'static str> {
        let gated = self.comparison.gate_result.as_ref()?;
        Some(match gated.outcome {
            GateOutcome::WithinLimit => "kept",
            GateOutcome::LimitExceeded => "exceeded",
            GateOutcome::Undecided => "cannot_tell",
            GateOutcome::ResultMissing => "missing",
        })
    }

    /// Returns the reasons why the limit is exceeded or its outcome is unknown.
    fn failures(&self) -> Vec<String> {
        let gated = self.comparison.gate_result.iter();
        let failures = gated.flat_map(|gated| &gated.failures);
        failures.map(ToString::to_string).collect()
    }
}

/// Compares every run with the first. Earlier runs of the same experiment in the store show how
/// much runs vary.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    compared: Vec<PyRef<'_, Run>>,
    fail_over: Option<f64>,
    min_effect: Option<f64>,
    store: Option<StoreArgument>,
) -> PyResult<Compared> {
    let fail_over = checked_optional_share(py, "fail_over", fail_over)?;
    let min_effect = checked_optional_share(py, "min_effect", min_effect)?;
    let compared = compared.iter().map(|one| timeline::Run::clone(&one.run));
    let compared: Vec<timeline::Run> = compared.collect();
    let history = py.detach(|| match &store {
        None | Some(StoreArgument::DefaultStore(true)) => runs::load_history(None, &compared),
        Some(StoreArgument::StoreAt(path)) => runs::load_history(Some(path), &compared),
        Some(StoreArgument::DefaultStore(false)) => Ok(Default::default()),
    });
    let terms = ComparisonTerms {
        limits: min_effect.map(|min_effect| DecisionLimits {
            effect_share_min: min_effect,
        }),
        history: history.map_err(|error| to_exception(py, &error))?,
    };
    let comparison = py.detach(|| compare_with_terms(&compared, &terms));
    Ok(Compared::with_limit(comparison, fail_over))
}

/// Checks an optional share.
///
/// # Errors
///
/// As [`checked_share`].
pub(crate) fn checked_optional_share(
    py: Python<'_>,
    name: &str,
    value: Option<f64>,
) -> PyResult<Option<f64>> {
    value
        .map(|value| checked_share(py, name, value))
        .transpose()
}

/// Checks that a number is a share from 0 to below 1.
///
/// # Errors
///
/// A number outside that range, such as a percentage.
pub(crate) fn checked_share(py: Python<'_>, name: &str, value: f64) -> PyResult<f64> {
    match (0.0..1.0).contains(&value) {
        true => Ok(value),
        false => Err(request_exception(
            py,
            format!("{name}={value}: give a share below 1, as 0.03 for 3 %"),
        )),
    }
}
