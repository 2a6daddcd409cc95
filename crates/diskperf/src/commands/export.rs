//! Command `diskperf export`: writes runs for other commands and other tools.

use super::{CommandResult, DONE, load_runs};
use crate::arguments::{ExportArguments, ExportFormat};
use diskperf_analysis::comparison::{ComparisonTerms, compare_with_terms};
use diskperf_analysis::report::{
    ExchangeError, ExchangeFormat, render_exchange, render_junit_comparison, render_junit_runs,
};
use diskperf_laboratory::{LaboratoryError, Output, runs};
use diskperf_timeline::Run;
use std::path::{Path, PathBuf};

/// Executes `diskperf export`: writes stored runs to a document.
pub(crate) fn export(arguments: &ExportArguments, store: Option<&Path>) -> CommandResult {
    if arguments.fail_over.is_some() && arguments.format != ExportFormat::Junit {
        return Err(LaboratoryError::Request(
            "--fail-over is a limit of --format junit; `diskperf compare A B --fail-over 5%` sets the exit code".to_owned(),
        ));
    }
    if arguments.format == ExportFormat::GithubBenchmark {
        return export_for_github(arguments, store);
    }
    let output = Output::open(&arguments.output)?;
    let exported = load_all(arguments, store)?;
    let render = |format| render_exchange(&exported, format).map_err(no_figures_error);
    let text = match arguments.format {
        ExportFormat::Diskperf => runs::render_export(&exported)?,
        ExportFormat::Bmf => render(ExchangeFormat::BencherMetric)?,
        ExportFormat::Openmetrics => render(ExchangeFormat::OpenMetrics)?,
        ExportFormat::Prometheus => render(ExchangeFormat::Prometheus)?,
        ExportFormat::Hdr => render(ExchangeFormat::HdrLog)?,
        ExportFormat::Junit => render_junit(&exported, arguments.fail_over, store)?,
        ExportFormat::GithubBenchmark => unreachable!("two files are written above"),
    };
    output.write(text.as_bytes())?;
    Ok(DONE)
}

fn load_all(
    arguments: &ExportArguments,
    store: Option<&Path>,
) -> Result<Vec<Run>, LaboratoryError> {
    let mut loaded = Vec::new();
    for name in &arguments.runs {
        loaded.extend(load_runs(store, name)?);
    }
    Ok(loaded)
}

fn no_figures_error(error: ExchangeError) -> LaboratoryError {
    LaboratoryError::Request(error.to_string())
}

/// Writes the two files of github-action-benchmark, which takes one direction from a file. Both are
/// complete before either is written.
fn export_for_github(arguments: &ExportArguments, store: Option<&Path>) -> CommandResult {
    let exported = load_all(arguments, store)?;
    let files = [
        ("bigger", ExchangeFormat::GithubBenchmarkBigger),
        ("smaller", ExchangeFormat::GithubBenchmarkSmaller),
    ];
    let mut ready = Vec::new();
    for (direction, format) in files {
        let text = render_exchange(&exported, format).map_err(no_figures_error)?;
        let path = insert_direction(&arguments.output, direction)?;
        ready.push((Output::open(&path)?, text));
    }
    for (output, text) in ready {
        output.write(text.as_bytes())?;
    }
    Ok(DONE)
}

/// Returns the path `NAME-DIRECTION.json` of `NAME.json`.
fn insert_direction(path: &Path, direction: &str) -> Result<PathBuf, LaboratoryError> {
    let stem = path.file_stem().filter(|_| path != Path::new("-"));
    let Some(stem) = stem else {
        return Err(LaboratoryError::Request(
            "github-benchmark is two files, one for each direction: name them by -o NAME.json"
                .to_owned(),
        ));
    };
    let mut name = stem.to_owned();
    name.push(format!("-{direction}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    Ok(path.with_file_name(name))
}

fn render_junit(
    exported: &[Run],
    limit: Option<f64>,
    store: Option<&Path>,
) -> Result<String, LaboratoryError> {
    match (exported, limit) {
        ([_], Some(_)) => Err(LaboratoryError::Request(
            "--fail-over compares with the first run: name two runs or more".to_owned(),
        )),
        ([_], None) => Ok(render_junit_runs(exported)),
        _ => {
            let terms = ComparisonTerms {
                history: runs::load_history(store, exported)?,
                limits: None,
            };
            let mut comparison = compare_with_terms(exported, &terms);
            if let Some(limit) = limit {
                comparison.apply_gate(limit);
            }
            Ok(render_junit_comparison(&comparison))
        }
    }
}

/// Opens the file of `--metrics`. The textfile collector reads no other file than `*.prom`.
pub(super) fn open_metrics(path: &Path) -> Result<Output, LaboratoryError> {
    if path.extension().is_none_or(|extension| extension != "prom") {
        return Err(LaboratoryError::Request(format!(
            "--metrics {}: node_exporter reads only files that end in .prom; write --metrics {}",
            path.display(),
            path.with_extension("prom").display()
        )));
    }
    Output::open_beside_table("--metrics", path)
}

/// Writes the metrics of runs. Runs without figures leave the file of an earlier run as it is.
pub(super) fn write_metrics(output: Output, measured: &[Run]) -> Result<(), LaboratoryError> {
    let text = render_exchange(measured, ExchangeFormat::Prometheus).map_err(no_figures_error)?;
    output.write(text.as_bytes())
}
