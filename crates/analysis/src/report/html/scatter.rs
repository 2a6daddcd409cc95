//! Charts of the accuracy card: printed against modelled figures, and errors by document and
//! system.

use super::chart::{Chart, ROWS_DATASET, label_limit_expression};
use crate::accuracy::{AccuracyCard, AccuracyCell, CellQuantity};
use serde_json::{Value, json};

/// Half the width of the band for accurate figures, as a share.
const BAND_ERROR_SHARE: f64 = 0.1;

/// Half the width of the band for accurate CPU shares, in points.
const BAND_ERROR_POINTS: f64 = 10.0;

/// Builds a chart of throughput, one of all other quantities on a logarithmic scale, one of CPU
/// shares, and one of errors.
pub(super) fn build_charts(card: &AccuracyCard) -> Vec<Chart> {
    let rates = |cell: &&AccuracyCell| cell.quantity == CellQuantity::KbPerS;
    let shares = |cell: &&AccuracyCell| cell.quantity == CellQuantity::CpuPercent;
    let others = |cell: &&AccuracyCell| !rates(cell) && !shares(cell);
    let both = || {
        card.cells
            .iter()
            .filter(|cell| printed_and_modelled_values(cell).is_some())
    };
    let errors: Vec<&AccuracyCell> = both().filter(|cell| !shares(cell)).collect();
    [
        build_logarithmic_chart(
            "throughput",
            "Throughput in KB/s",
            &both().filter(rates).collect::<Vec<_>>(),
        ),
        build_linear_chart(&both().filter(shares).collect::<Vec<_>>()),
        build_logarithmic_chart(
            "others",
            "Other quantities",
            &both().filter(others).collect::<Vec<_>>(),
        ),
        build_system_chart(&errors),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the published and the modelled value of a number, where it has both and both have a
/// logarithm.
fn printed_and_modelled_values(cell: &AccuracyCell) -> Option<(f64, f64)> {
    let (printed, modelled) = (cell.printed_value?, cell.modelled_value?);
    let drawn = printed > 0.0 && (modelled > 0.0 || cell.quantity == CellQuantity::CpuPercent);
    drawn.then_some((printed, modelled))
}

fn system_of_cell(cell: &AccuracyCell) -> &str {
    cell.target.as_deref().unwrap_or("no system")
}

fn build_row(cell: &AccuracyCell) -> Option<Value> {
    let (printed, modelled) = printed_and_modelled_values(cell)?;
    let words = |text: &Option<String>| text.clone().unwrap_or_default();
    Some(json!({
        "id": cell.id,
        "document": cell.published,
        "system": system_of_cell(cell),
        "program": words(&cell.test),
        "filesystem": words(&cell.filesystem),
        "drives": cell.drives,
        "quantity": cell.quantity.label(),
        "counts": if cell.counts_in_score() { "counts" } else { "does not count" },
        "printed": printed,
        "modelled": modelled,
        "error": cell.error,
    }))
}

fn build_rows(cells: &[&AccuracyCell]) -> Vec<Value> {
    cells.iter().filter_map(|cell| build_row(cell)).collect()
}

/// Returns the minimum and the maximum of the published and modelled values, with a margin.
fn find_value_range(cells: &[&AccuracyCell]) -> (f64, f64) {
    let figures = cells
        .iter()
        .filter_map(|cell| printed_and_modelled_values(cell));
    figures.fold((f64::MAX, 0.0), |(low, high), (printed, modelled)| {
        (
            low.min(printed).min(modelled),
            f64::max(high, printed).max(modelled),
        )
    })
}

/// Returns the layers of a scatter plot, with the diagonal of exact agreement and a band around it.
fn build_scatter_view(band: Value, scale: &Value, words: &str) -> Value {
    let axis = |field: &str| {
        json!({ "field": field, "type": "quantitative", "title": format!("{field}{words}"),
                "scale": scale, "axis": { "labelExpr": "format(datum.value, '~f')", "tickCount": 6 } })
    };
    json!({
        "height": 420,
        "layer": [
            {
                "data": { "values": band },
                "mark": { "type": "area", "opacity": 0.18, "color": "#8b9299" },
                "encoding": {
                    "x": axis("printed"),
                    "y": { "field": "low", "type": "quantitative", "scale": scale, "title": format!("modelled{words}") },
                    "y2": { "field": "high" },
                },
            },
            {
                "data": { "values": band },
                "mark": { "type": "line", "strokeWidth": 1, "color": "#8b9299" },
                "encoding": { "x": axis("printed"), "y": { "field": "printed", "type": "quantitative", "scale": scale } },
            },
            {
                "name": ROWS_DATASET,
                "mark": { "type": "point", "filled": true, "size": 50, "tooltip": { "content": "data" } },
                "encoding": {
                    "x": axis("printed"),
                    "y": axis("modelled"),
                    "color": { "field": "system", "type": "nominal", "title": null,
                               "scale": { "scheme": "tableau20" },
                               "legend": { "orient": "bottom", "columns": 2, "labelLimit": 190 } },
                    "shape": { "field": "document", "type": "nominal", "title": null,
                               "legend": { "orient": "bottom", "columns": 2, "labelLimit": 190 } },
                    "opacity": { "field": "counts", "type": "ordinal", "title": null,
                                 "scale": { "domain": ["counts", "does not count"], "range": [0.9, 0.35] },
                                 "legend": { "orient": "bottom", "columns": 2, "labelLimit": 190 } },
                },
            },
        ],
    })
}

fn build_logarithmic_chart(name: &str, title: &str, cells: &[&AccuracyCell]) -> Option<Chart> {
    let rows = build_rows(cells);
    if rows.is_empty() {
        return None;
    }
    let (low, high) = find_value_range(cells);
    let (low, high) = (low * 0.8, high * 1.25);
    let edge = |printed: f64| json!({ "printed": printed, "low": printed * (1.0 - BAND_ERROR_SHARE), "high": printed * (1.0 + BAND_ERROR_SHARE) });
    let scale = json!({ "type": "log", "domain": [low, high], "nice": false, "clamp": true });
    let view = build_scatter_view(json!([edge(low), edge(high)]), &scale, "");
    Some(
        Chart::new(
            &format!("accuracy-{name}"),
            format!("{title}: printed against modelled"),
            rows,
            view,
        )
        .with_caption(
            "Both axes are logarithmic; the grey band is 10 % to each side of what was printed.",
        ),
    )
}

fn build_linear_chart(cells: &[&AccuracyCell]) -> Option<Chart> {
    let rows = build_rows(cells);
    if rows.is_empty() {
        return None;
    }
    let (_, high) = find_value_range(cells);
    let high = high * 1.05;
    let edge = |printed: f64| json!({ "printed": printed, "low": (printed - BAND_ERROR_POINTS).max(0.0), "high": printed + BAND_ERROR_POINTS });
    let scale = json!({ "domain": [0, high], "nice": false, "clamp": true });
    let band = json!([edge(0.0), edge(BAND_ERROR_POINTS), edge(high)]);
    Some(
        Chart::new(
            "accuracy-cpu",
            "CPU share in percent: printed against modelled".to_owned(),
            rows,
            build_scatter_view(band, &scale, ""),
        )
        .with_caption("The grey band is 10 points to each side of what was printed; two drives' shares add up."),
    )
}

/// Builds a chart of the errors of modelled figures, with one row of points for each system.
fn build_system_chart(cells: &[&AccuracyCell]) -> Option<Chart> {
    let of_cell = |cell: &&AccuracyCell| {
        let mut row = build_row(cell)?;
        row["error_percent"] = json!(100.0 * cell.error?);
        Some(row)
    };
    let rows: Vec<Value> = cells.iter().filter_map(of_cell).collect();
    if rows.is_empty() {
        return None;
    }
    let mut systems: Vec<&str> = cells.iter().map(|cell| system_of_cell(cell)).collect();
    systems.sort_unstable();
    systems.dedup();
    let limit = 100.0 * BAND_ERROR_SHARE;
    let view = json!({
        "height": 20 * systems.len(),
        "layer": [
            {
                "data": { "values": [{ "low": -limit, "high": limit }] },
                "mark": { "type": "rect", "opacity": 0.18, "color": "#8b9299" },
                "encoding": {
                    "x": { "field": "low", "type": "quantitative", "title": "modelled over printed less 1, in percent" },
                    "x2": { "field": "high" },
                },
            },
            {
                "name": ROWS_DATASET,
                "mark": { "type": "point", "filled": true, "size": 45, "tooltip": { "content": "data" } },
                "encoding": {
                    "x": { "field": "error_percent", "type": "quantitative" },
                    "y": { "field": "system", "type": "nominal", "title": null, "sort": null,
                           "axis": { "labelLimit": label_limit_expression() } },
                    "color": { "field": "document", "type": "nominal", "title": null,
                               "scale": { "scheme": "tableau10" } },
                    "opacity": { "field": "counts", "type": "ordinal", "title": null,
                                 "scale": { "domain": ["counts", "does not count"], "range": [0.85, 0.3] } },
                },
            },
        ],
    });
    Some(
        Chart::new(
            "accuracy-errors",
            "Errors by system and document".to_owned(),
            rows,
            view,
        )
        .with_caption("Every figure but CPU shares; the grey band is 10 % to each side.")
        .with_full_width(),
    )
}
