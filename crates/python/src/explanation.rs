//! Where the time of a modelled run went, and why two differ.

use crate::arguments::Options;
use crate::columns::Columns;
use crate::errors::exception;
use crate::interruptible::interruptible;
use crate::run::Run;
use crate::spans::spans;
use diskperf_analysis::explanation::Explanation as Found;
use diskperf_analysis::explanation::difference::ExplanationDifferences as FoundDifferences;
use diskperf_analysis::perfetto::encode_trace;
use diskperf_analysis::report::{self, ReportFormat};
use diskperf_laboratory::crew::{ThreadCrew, available_threads};
use diskperf_laboratory::files::HostFiles;
use diskperf_laboratory::{Experiment, LaboratoryError};
use diskperf_models::explain::{self as laboratory, ExplainedSystem, ExplanationOptions};
use diskperf_timeline::{self as timeline, Trace};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is to be explained: a run, or a system and a suite.
#[derive(FromPyObject)]
#[expect(clippy::large_enum_variant, reason = "there are two of them at most")]
pub(crate) enum Explained<'py> {
    Run(PyRef<'py, Run>),
    Asked(Options),
}

/// What to explain, for a thread without the interpreter.
enum Wanted {
    Run(Arc<timeline::Run>),
    Asked(Box<Experiment>),
}

impl Explained<'_> {
    fn wanted(self, py: Python<'_>) -> PyResult<Wanted> {
        Ok(match self {
            Self::Run(run) => Wanted::Run(Arc::clone(&run.run)),
            Self::Asked(options) => Wanted::Asked(Box::new(options.experiment(py)?)),
        })
    }
}

impl Wanted {
    fn subject(self) -> Result<ExplainedSystem, LaboratoryError> {
        match self {
            Self::Run(run) => {
                ExplainedSystem::from_stored_run(timeline::Run::clone(&run), &HostFiles)
            }
            Self::Asked(experiment) => {
                let target = experiment.targets[0].to_string_lossy();
                ExplainedSystem::from_plan(target.into_owned(), &experiment, &HostFiles)
            }
        }
    }
}

/// The explanation of one run or system.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Explanation {
    found: Found,
    traces: Vec<Trace>,
}

#[pymethods]
impl Explanation {
    /// The JSON of `diskperf explain --format json`.
    fn json(&self) -> String {
        report::render_explanation(&self.found, ReportFormat::Json, 0)
    }

    /// The tables of `diskperf explain`, as wide as this many columns.
    fn text(&self, width: u16) -> String {
        report::render_explanation(&self.found, ReportFormat::Table, width)
    }

    /// One row for each span of the repetitions that are explained.
    fn spans(&self) -> Columns {
        spans(&self.found, &self.traces)
    }

    /// A trace for Perfetto (ui.perfetto.dev).
    fn perfetto(&self) -> Cow<'_, [u8]> {
        let named = self.found.programs.iter().zip(&self.traces);
        let named =
            named.map(|(one, trace)| (format!("{} {}", one.program, one.filesystem), trace));
        Cow::Owned(encode_trace(&named.collect::<Vec<_>>()))
    }
}

/// Explains a run, or what a system does with a suite.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    what: Explained<'_>,
    counterfactuals: bool,
    threads: Option<usize>,
) -> PyResult<Explanation> {
    let wanted = what.wanted(py)?;
    let explained = interruptible(py, |stop| {
        let subject = wanted.subject()?;
        laboratory::explain_system(&subject, &used((&crew(threads), stop), counterfactuals))
    })?;
    let (found, traces) = explained.map_err(|error| exception(py, &error))?;
    Ok(Explanation { found, traces })
}

/// Why two differ.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Differences {
    found: FoundDifferences,
}

#[pymethods]
impl Differences {
    /// The JSON of `diskperf explain A B --format json`.
    fn json(&self) -> String {
        report::render_differences(&self.found, ReportFormat::Json, 0)
    }

    /// The tables of `diskperf explain A B`, as wide as this many columns.
    fn text(&self, width: u16) -> String {
        report::render_differences(&self.found, ReportFormat::Table, width)
    }
}

/// Says why two differ.
#[pyfunction]
pub(crate) fn differences(
    py: Python<'_>,
    a: Explained<'_>,
    b: Explained<'_>,
    means: (bool, Option<usize>),
) -> PyResult<Differences> {
    let (counterfactuals, threads) = means;
    let (a, b) = (a.wanted(py)?, b.wanted(py)?);
    let found = interruptible(py, |stop| {
        let (a, b) = (a.subject()?, b.subject()?);
        laboratory::compare_systems(&a, &b, &used((&crew(threads), stop), counterfactuals))
    })?;
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(Differences { found })
}

fn crew(threads: Option<usize>) -> ThreadCrew {
    ThreadCrew(threads.unwrap_or_else(available_threads).max(1))
}

fn used<'a>(
    (crew, stop): (&'a ThreadCrew, &'a Arc<AtomicBool>),
    counterfactuals: bool,
) -> ExplanationOptions<'a> {
    ExplanationOptions {
        crew,
        runs_counterfactuals: counterfactuals,
        stop,
        progress: &|_, _| (),
    }
}
