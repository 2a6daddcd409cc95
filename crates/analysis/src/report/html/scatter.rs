//! Charts of the accuracy card: printed against modelled figures, and errors by document and
//! system.

use super::chart::{Chart, ROWS, label_limit};
use crate::accuracy::{Card, Cell, Quantity};
use serde_json::{Value, json};

/// Half the width of the band for accurate figures, as a share.
const BAND_SHARE: f64 = 0.1;

/// Half the width of the band for accurate CPU shares, in points.
const BAND_POINTS: f64 = 10.0;

/// Builds a chart of throughput, one of all other quantities on a logarithmic scale, one of CPU
/// shares, and one of errors.
pub(super) fn charts(card: &Card) -> Vec<Chart> {
    let rates = |cell: &&Cell| cell.quantity == Quantity::KbPerS;
    let shares = |cell: &&Cell| cell.quantity == Quantity::CpuPercent;
    let others = |cell: &&Cell| !rates(cell) && !shares(cell);
    let both = || {
        card.cells
            .iter()
            .filter(|cell| printed_and_modelled(cell).is_some())
    };
    let errors: Vec<&Cell> = both().filter(|cell| !shares(cell)).collect();
    [
        logarithmic_chart(
            "throughput",
            "Throughput in KB/s",
            &both().filter(rates).collect::<Vec<_>>(),
        ),
        linear_chart(&both().filter(shares).collect::<Vec<_>>()),
        logarithmic_chart(
            "others",
            "Other quantities",
            &both().filter(others).collect::<Vec<_>>(),
        ),
        chart_by_system(&errors),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the published and the modelled value of a number, where it has both and both have a
/// logarithm.
fn printed_and_modelled(cell: &Cell) -> Option<(f64, f64)> {
    let (printed, modelled) = (cell.printed?, cell.modelled?);
    let drawn = printed > 0.0 && (modelled > 0.0 || cell.quantity == Quantity::CpuPercent);
    drawn.then_some((printed, modelled))
}

fn cell_system(cell: &Cell) -> &str {
    cell.target.as_deref().unwrap_or("no system")
}

fn row(cell: &Cell) -> Option<Value> {
    let (printed, modelled) = printed_and_modelled(cell)?;
    let words = |text: &Option<String>| text.clone().unwrap_or_default();
    Some(json!({
        "id": cell.id,
        "document": cell.published,
        "system": cell_system(cell),
        "program": words(&cell.test),
        "filesystem": words(&cell.filesystem),
        "drives": cell.drives,
        "quantity": cell.quantity.words(),
        "counts": if cell.counts() { "counts" } else { "does not count" },
        "printed": printed,
        "modelled": modelled,
        "error": cell.error,
    }))
}

fn rows(cells: &[&Cell]) -> Vec<Value> {
    cells.iter().filter_map(|cell| row(cell)).collect()
}

/// Returns the minimum and the maximum of the published and modelled values, with a margin.
fn value_range(cells: &[&Cell]) -> (f64, f64) {
    let figures = cells.iter().filter_map(|cell| printed_and_modelled(cell));
    figures.fold((f64::MAX, 0.0), |(low, high), (printed, modelled)| {
        (
            low.min(printed).min(modelled),
            f64::max(high, printed).max(modelled),
        )
    })
}

/// Returns the layers of a scatter plot, with the diagonal of exact agreement and a band around it.
fn scatter(band: Value, scale: &Value, words: &str) -> Value {
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
                "name": ROWS,
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

fn logarithmic_chart(name: &str, title: &str, cells: &[&Cell]) -> Option<Chart> {
    let rows = rows(cells);
    if rows.is_empty() {
        return None;
    }
    let (low, high) = value_range(cells);
    let (low, high) = (low * 0.8, high * 1.25);
    let edge = |printed: f64| json!({ "printed": printed, "low": printed * (1.0 - BAND_SHARE), "high": printed * (1.0 + BAND_SHARE) });
    let scale = json!({ "type": "log", "domain": [low, high], "nice": false, "clamp": true });
    let view = scatter(json!([edge(low), edge(high)]), &scale, "");
    Some(
        Chart::new(
            &format!("accuracy-{name}"),
            format!("{title}: printed against modelled"),
            rows,
            view,
        )
        .caption(
            "Both axes are logarithmic; the grey band is 10 % to each side of what was printed.",
        ),
    )
}

fn linear_chart(cells: &[&Cell]) -> Option<Chart> {
    let rows = rows(cells);
    if rows.is_empty() {
        return None;
    }
    let (_, high) = value_range(cells);
    let high = high * 1.05;
    let edge = |printed: f64| json!({ "printed": printed, "low": (printed - BAND_POINTS).max(0.0), "high": printed + BAND_POINTS });
    let scale = json!({ "domain": [0, high], "nice": false, "clamp": true });
    let band = json!([edge(0.0), edge(BAND_POINTS), edge(high)]);
    Some(
        Chart::new(
            "accuracy-cpu",
            "CPU share in percent: printed against modelled".to_owned(),
            rows,
            scatter(band, &scale, ""),
        )
        .caption("The grey band is 10 points to each side of what was printed; two drives' shares add up."),
    )
}

/// Builds a chart of the errors of modelled figures, with one row of points for each system.
fn chart_by_system(cells: &[&Cell]) -> Option<Chart> {
    let of_cell = |cell: &&Cell| {
        let mut row = row(cell)?;
        row["error_percent"] = json!(100.0 * cell.error?);
        Some(row)
    };
    let rows: Vec<Value> = cells.iter().filter_map(of_cell).collect();
    if rows.is_empty() {
        return None;
    }
    let mut systems: Vec<&str> = cells.iter().map(|cell| cell_system(cell)).collect();
    systems.sort_unstable();
    systems.dedup();
    let limit = 100.0 * BAND_SHARE;
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
                "name": ROWS,
                "mark": { "type": "point", "filled": true, "size": 45, "tooltip": { "content": "data" } },
                "encoding": {
                    "x": { "field": "error_percent", "type": "quantitative" },
                    "y": { "field": "system", "type": "nominal", "title": null, "sort": null,
                           "axis": { "labelLimit": label_limit() } },
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
        .caption("Every figure but CPU shares; the grey band is 10 % to each side.")
        .wide(),
    )
}
