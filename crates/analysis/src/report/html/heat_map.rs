//! The rates over all combinations of some parameters, as a heat map with the
//! cliff.

use super::chart::{Chart, ROWS};
use crate::tuning::{CLIFF_SHARE, Tuned};
use serde_json::{Value, json};

/// What is written of the best combination, and of its neighbours that fall
/// off.
const BEST: &str = "best";
const CLIFF: &str = "cliff";

/// A heat map; of one parameter, a curve. The last key runs to the right, all
/// others downwards.
pub(super) fn charts(tuned: &Tuned) -> Vec<Chart> {
    let rows = rows(tuned);
    let Some((last, others)) = tuned.keys.split_last() else {
        return Vec::new();
    };
    let others: Vec<&str> = others.iter().map(|key| key.path.as_str()).collect();
    let view = match others.is_empty() {
        true => curve(&last.path),
        false => heat_map(&last.path, &others.join(", ")),
    };
    let title = format!("KB/s over {}", joined(&others, &last.path));
    vec![
        Chart::new("tuning", title, rows, view)
            .caption(&format!(
                "The best combination is framed in the colour of the text; red frames what a single step \
                 from it loses {:.0} % or more: the cliff.",
                100.0 * CLIFF_SHARE
            ))
            .wide(),
    ]
}

fn joined(others: &[&str], last: &str) -> String {
    match others {
        [] => last.to_owned(),
        _ => format!("{} and {last}", others.join(", ")),
    }
}

/// The combinations one step away from the best that lose much.
fn cliff(tuned: &Tuned) -> Vec<usize> {
    let best = tuned.best();
    let at_best = tuned.places(best);
    let mut edge = Vec::new();
    for (number, key) in tuned.keys.iter().enumerate() {
        let place = at_best[number];
        let beside = [place.checked_sub(1), Some(place + 1)];
        for next in beside.into_iter().flatten().filter(|next| *next < key.values.len()) {
            let mut places = at_best.clone();
            places[number] = next;
            let combination = tuned.combination(&places);
            if tuned.kb_per_s[combination] <= tuned.kb_per_s[best] * (1.0 - CLIFF_SHARE) {
                edge.push(combination);
            }
        }
    }
    edge
}

fn rows(tuned: &Tuned) -> Vec<Value> {
    let (best, cliff) = (tuned.best(), cliff(tuned));
    let row = |(number, kb_per_s): (usize, &f64)| {
        let places = tuned.places(number);
        let values = tuned.keys.iter().zip(&places);
        let values: Vec<&str> = values.map(|(key, place)| &*key.values[*place]).collect();
        let (last, others) = values.split_last().expect("a key was tried");
        json!({
            "across": last,
            "down": others.join(", "),
            "kb_per_s": kb_per_s,
            "share_of_best": kb_per_s / tuned.kb_per_s[best],
            "mark": if number == best { BEST } else if cliff.contains(&number) { CLIFF } else { "" },
        })
    };
    tuned.kb_per_s.iter().enumerate().map(row).collect()
}

/// The colours of frames: the best in the colour of what is written, the cliff
/// in that of a missed revolution.
fn framed() -> Value {
    json!({
        "condition": [
            { "test": format!("datum.mark === '{CLIFF}'"), "value": super::family::Family::Missed.colour() },
        ],
    })
}

fn heat_map(across: &str, down: &str) -> Value {
    json!({
        "height": { "step": 26 },
        "encoding": {
            "x": { "field": "across", "type": "nominal", "sort": null, "title": across, "axis": { "labelAngle": 0 } },
            "y": { "field": "down", "type": "nominal", "sort": null, "title": down },
        },
        "layer": [
            {
                "name": ROWS,
                "mark": { "type": "rect", "tooltip": { "content": "data" } },
                "encoding": {
                    "color": { "field": "kb_per_s", "type": "quantitative", "title": "KB/s",
                               "scale": { "scheme": "viridis" } },
                },
            },
            {
                "transform": [{ "filter": "datum.mark !== ''" }],
                "mark": { "type": "rect", "filled": false, "strokeWidth": 3.5, "stroke": "currentColor" },
                "encoding": { "stroke": framed() },
            },
            {
                "mark": { "type": "text", "fontSize": 11 },
                "encoding": {
                    "text": { "field": "kb_per_s", "type": "quantitative", "format": ".3~s" },
                    "color": {
                        "condition": { "test": "datum.share_of_best > 0.65", "value": "black" },
                        "value": "white",
                    },
                },
            },
        ],
    })
}

fn curve(across: &str) -> Value {
    json!({
        "height": 280,
        "encoding": {
            "x": { "field": "across", "type": "nominal", "sort": null, "title": across, "axis": { "labelAngle": 0 } },
            "y": { "field": "kb_per_s", "type": "quantitative", "title": "KB/s", "scale": { "zero": true } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 2 } },
            {
                "name": ROWS,
                "mark": { "type": "point", "filled": true, "size": 80, "opacity": 1, "strokeWidth": 3,
                          "tooltip": { "content": "data" } },
                "encoding": { "stroke": framed() },
            },
        ],
    })
}
