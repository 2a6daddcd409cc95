//! Runs side by side.

use crate::errors::{exception, request_error};
use crate::run::{Keeping, Run};
use diskperf_analysis::comparison::{Comparison, ComparisonTerms, GateOutcome, compare_with_terms};
use diskperf_analysis::report::{self, ReportFormat};
use diskperf_analysis::statistics::interleaved::DecisionLimits;
use diskperf_laboratory::runs;
use diskperf_timeline as timeline;
use pyo3::prelude::*;

/// Two runs or more side by side.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Compared {
    comparison: Comparison,
}

impl Compared {
    /// A comparison, held to a limit if there is one.
    pub(crate) fn of(mut comparison: Comparison, fail_over: Option<f64>) -> Self {
        if let Some(limit) = fail_over {
            comparison.apply_gate(limit);
        }
        Self { comparison }
    }
}

#[pymethods]
impl Compared {
    /// The JSON of `diskperf compare --format json`.
    fn json(&self) -> String {
        report::render_comparison(&self.comparison, ReportFormat::Json, 0)
    }

    /// The table of `diskperf compare`, as wide as this many columns.
    fn text(&self, width: u16) -> String {
        report::render_comparison(&self.comparison, ReportFormat::Table, width)
    }

    /// What the limit says: `kept`, `exceeded`, `cannot_tell` or `missing`; nothing without
    /// a limit.
    fn gate(&self) -> Option<&'static str> {
        let gated = self.comparison.gate_result.as_ref()?;
        Some(match gated.outcome {
            GateOutcome::WithinLimit => "kept",
            GateOutcome::LimitExceeded => "exceeded",
            GateOutcome::Undecided => "cannot_tell",
            GateOutcome::ResultMissing => "missing",
        })
    }

    /// Why the limit is not kept, or not known to be.
    fn failures(&self) -> Vec<String> {
        let gated = self.comparison.gate_result.iter();
        let failures = gated.flat_map(|gated| &gated.failures);
        failures.map(ToString::to_string).collect()
    }
}

/// Compares every run with the first. Earlier runs of the same things in the store say how
/// much runs differ.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    compared: Vec<PyRef<'_, Run>>,
    fail_over: Option<f64>,
    min_effect: Option<f64>,
    store: Option<Keeping>,
) -> PyResult<Compared> {
    let fail_over = shared(py, "fail_over", fail_over)?;
    let min_effect = shared(py, "min_effect", min_effect)?;
    let compared = compared.iter().map(|one| timeline::Run::clone(&one.run));
    let compared: Vec<timeline::Run> = compared.collect();
    let history = py.detach(|| match &store {
        None | Some(Keeping::Usual(true)) => runs::load_history(None, &compared),
        Some(Keeping::Store(path)) => runs::load_history(Some(path), &compared),
        Some(Keeping::Usual(false)) => Ok(Default::default()),
    });
    let terms = ComparisonTerms {
        limits: min_effect.map(|min_effect| DecisionLimits {
            effect_share_min: min_effect,
        }),
        history: history.map_err(|error| exception(py, &error))?,
    };
    let comparison = py.detach(|| compare_with_terms(&compared, &terms));
    Ok(Compared::of(comparison, fail_over))
}

/// A share, if one is given.
///
/// # Errors
///
/// As [`share`].
pub(crate) fn shared(py: Python<'_>, name: &str, value: Option<f64>) -> PyResult<Option<f64>> {
    value.map(|value| share(py, name, value)).transpose()
}

/// A share of a whole.
///
/// # Errors
///
/// A number that is none, as a percentage.
pub(crate) fn share(py: Python<'_>, name: &str, value: f64) -> PyResult<f64> {
    match (0.0..1.0).contains(&value) {
        true => Ok(value),
        false => Err(request_error(
            py,
            format!("{name}={value}: give a share below 1, as 0.03 for 3 %"),
        )),
    }
}
