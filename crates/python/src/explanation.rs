//! Explanations of modelled runs, and of differences between two.

use crate::arguments::RunArguments;
use crate::columns::Columns;
use crate::errors::to_exception;
use crate::interruptible::run_interruptible;
use crate::run::Run;
use crate::spans::span_columns;
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

/// Subject of an explanation: a run, or the keywords of a system and a suite.
#[derive(FromPyObject)]
#[expect(clippy::large_enum_variant, reason = "there are two of them at most")]
pub(crate) enum SubjectArgument<'py> {
    Run(PyRef<'py, Run>),
    Options(RunArguments),
}

/// Subject of an explanation, for a thread without the interpreter.
enum SubjectSource {
    Run(Arc<timeline::Run>),
    Experiment(Box<Experiment>),
}

impl SubjectArgument<'_> {
    fn into_source(self, py: Python<'_>) -> PyResult<SubjectSource> {
        Ok(match self {
            Self::Run(run) => SubjectSource::Run(Arc::clone(&run.run)),
            Self::Options(options) => {
                SubjectSource::Experiment(Box::new(options.into_experiment(py)?))
            }
        })
    }
}

impl SubjectSource {
    fn into_subject(self) -> Result<ExplainedSystem, LaboratoryError> {
        match self {
            Self::Run(run) => {
                ExplainedSystem::from_stored_run(timeline::Run::clone(&run), &HostFiles)
            }
            Self::Experiment(experiment) => {
                let target = experiment.targets[0].to_string_lossy();
                ExplainedSystem::from_plan(target.into_owned(), &experiment, &HostFiles)
            }
        }
    }
}

/// Explanation of one run or system.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Explanation {
    explanation: Found,
    traces: Vec<Trace>,
}

#[pymethods]
impl Explanation {
    /// Returns the JSON of `diskperf explain --format json`.
    fn json(&self) -> String {
        report::render_explanation(&self.explanation, ReportFormat::Json, 0)
    }

    /// Returns the tables of `diskperf explain`, at most `width` columns wide.
    fn text(&self, width: u16) -> String {
        report::render_explanation(&self.explanation, ReportFormat::Table, width)
    }

    /// Returns a row for each span of the explained repetitions.
    fn spans(&self) -> Columns {
        span_columns(&self.explanation, &self.traces)
    }

    /// Returns a trace for Perfetto (ui.perfetto.dev).
    fn perfetto(&self) -> Cow<'_, [u8]> {
        let named = self.explanation.programs.iter().zip(&self.traces);
        let named =
            named.map(|(one, trace)| (format!("{} {}", one.program, one.filesystem), trace));
        Cow::Owned(encode_trace(&named.collect::<Vec<_>>()))
    }
}

/// Explains a run, or the execution of a suite on a system.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    what: SubjectArgument<'_>,
    counterfactuals: bool,
    threads: Option<usize>,
) -> PyResult<Explanation> {
    let wanted = what.into_source(py)?;
    let explained = run_interruptible(py, |stop| {
        let subject = wanted.into_subject()?;
        laboratory::explain_system(
            &subject,
            &explain_means((&thread_crew(threads), stop), counterfactuals),
        )
    })?;
    let (found, traces) = explained.map_err(|error| to_exception(py, &error))?;
    Ok(Explanation {
        explanation: found,
        traces,
    })
}

/// Explanation of the difference between two runs or systems.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Differences {
    differences: FoundDifferences,
}

#[pymethods]
impl Differences {
    /// Returns the JSON of `diskperf explain A B --format json`.
    fn json(&self) -> String {
        report::render_differences(&self.differences, ReportFormat::Json, 0)
    }

    /// Returns the tables of `diskperf explain A B`, at most `width` columns wide.
    fn text(&self, width: u16) -> String {
        report::render_differences(&self.differences, ReportFormat::Table, width)
    }
}

/// Explains the difference between two runs or systems.
#[pyfunction]
pub(crate) fn differences(
    py: Python<'_>,
    a: SubjectArgument<'_>,
    b: SubjectArgument<'_>,
    means: (bool, Option<usize>),
) -> PyResult<Differences> {
    let (counterfactuals, threads) = means;
    let (a, b) = (a.into_source(py)?, b.into_source(py)?);
    let found = run_interruptible(py, |stop| {
        let (a, b) = (a.into_subject()?, b.into_subject()?);
        laboratory::compare_systems(
            &a,
            &b,
            &explain_means((&thread_crew(threads), stop), counterfactuals),
        )
    })?;
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Differences { differences: found })
}

fn thread_crew(threads: Option<usize>) -> ThreadCrew {
    ThreadCrew(threads.unwrap_or_else(available_threads).max(1))
}

fn explain_means<'a>(
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
