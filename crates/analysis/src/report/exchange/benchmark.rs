//! JSON of benchmark trackers: Bencher and github-action-benchmark.

use super::super::json::render_pretty;
use super::ExchangeError;
use super::figures::{ExportedResult, Figure};
use serde_json::{Map, Value, json};

/// Renders the Bencher Metric Format, version 0: an object of benchmarks, each an object of
/// measures with a value and the bounds of its interval. Its JSON has no directions; thresholds in
/// Bencher have them.
pub(super) fn render_bencher_metric(results: &[ExportedResult]) -> String {
    let benchmark = |result: &ExportedResult| {
        let measures: Map<String, Value> = result.figures().iter().map(bencher_measure).collect();
        (result.name.clone(), Value::Object(measures))
    };
    render_pretty(&results.iter().map(benchmark).collect::<Map<_, _>>())
}

fn bencher_measure(figure: &Figure) -> (String, Value) {
    let mut value = json!({ "value": figure.value });
    if let Some(bounds) = figure.bounds {
        value["lower_value"] = bounds.low.into();
        value["upper_value"] = bounds.high.into();
    }
    (figure.measure.name.to_owned(), value)
}

/// Renders an array of github-action-benchmark. A file of that tool has one direction, so it gets
/// only the figures of that direction.
pub(super) fn render_github(
    results: &[ExportedResult],
    is_bigger_better: bool,
) -> Result<String, ExchangeError> {
    let entries: Vec<Value> = results
        .iter()
        .flat_map(|result| {
            let figures = result.figures().into_iter();
            let wanted =
                figures.filter(|figure| figure.measure.is_bigger_better == is_bigger_better);
            wanted
                .map(|figure| github_entry(result, &figure))
                .collect::<Vec<_>>()
        })
        .collect();
    match entries.is_empty() {
        true => Err(ExchangeError::NoFigures),
        false => Ok(render_pretty(&entries)),
    }
}

fn github_entry(result: &ExportedResult, figure: &Figure) -> Value {
    let measure = figure.measure;
    let mut entry = json!({
        "name": format!("{}: {}", result.name, measure.name),
        "unit": measure.unit,
        "value": figure.value,
        "extra": format!(
            "run {}\nrepetitions {}",
            result.view.run.run_id, result.row.summary.kept_count
        ),
    });
    if let Some(bounds) = figure.bounds {
        entry["range"] = format!("{}..{}", bounds.low, bounds.high).into();
    }
    entry
}
