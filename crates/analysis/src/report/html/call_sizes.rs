//! Chart of throughput by call size, for each layer of `seqread`.

use super::chart::{Chart, ROWS_DATASET};
use crate::layers::ReadLayer;
use crate::report::view::RunView;
use serde_json::{Value, json};

/// Builds a curve for each layer, where a run read with more than one call size.
pub(super) fn build_chart(view: &RunView<'_>) -> Option<Chart> {
    let mut rows: Vec<Value> = Vec::new();
    let mut sizes: Vec<u64> = Vec::new();
    for row in view.rows.iter().filter(|row| row.summary.kept_count > 0) {
        let Some(layer) = ReadLayer::from_result(row.result) else {
            continue;
        };
        let bytes = row.result.parameters.get("call_bytes");
        let Some(bytes) = bytes.and_then(|text| text.parse().ok()) else {
            continue;
        };
        // A logarithmic axis has no zero.
        if row.summary.kb_per_s <= 0.0 {
            continue;
        }
        if !sizes.contains(&bytes) {
            sizes.push(bytes);
        }
        rows.push(json!({
            "layer": layer.name(),
            "call_bytes": bytes,
            "kb_per_s": row.summary.kb_per_s,
        }));
    }
    if sizes.len() < 2 {
        return None;
    }
    sizes.sort_unstable();
    let view_of = json!({
        "height": 260,
        "encoding": {
            "x": {
                "field": "call_bytes", "type": "quantitative", "title": "bytes per call",
                "scale": { "type": "log", "base": 2, "nice": false },
                "axis": { "values": sizes, "labelExpr": "datum.value < 1024 ? datum.value : datum.value / 1024 + 'K'" },
            },
            "y": {
                "field": "kb_per_s", "type": "quantitative", "title": "KB/s",
                "scale": { "type": "log" }, "axis": { "format": "~s", "tickCount": 5 },
            },
            "color": { "field": "layer", "type": "nominal", "sort": null, "title": "layer",
                       "scale": { "scheme": "tableau10" } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 2 } },
            { "name": ROWS_DATASET, "mark": { "type": "point", "filled": true, "size": 45, "opacity": 1,
                                      "tooltip": { "content": "data" } } },
        ],
    });
    let name = format!("call-sizes-{}", super::chart::slugify(&view.run.run_id));
    let title = "Throughput by size of the call".to_owned();
    Some(Chart::new(&name, title, rows, view_of).with_caption(
        "Both axes are logarithmic. Where a curve is straight at the left, the cost of a call dominates, whatever its size; where it is flat, moving the bytes dominates.",
    ))
}
