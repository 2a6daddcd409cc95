//! Heat map of the rates over all combinations of some parameters, with the cliffs.

use super::chart::{Chart, ROWS};
use super::family::Family;
use crate::tuning::{CLIFF_SHARE, Goal, Key, Places, Standing, Tuned};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SAFE: &str = "safe";
const CLIFF: &str = "cliff";

/// Measured quantity over combinations of some parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// Name of the measured quantity with its unit: `KB/s`.
    pub quantity: String,
    /// Whether a larger value of the measured quantity is better.
    pub more_is_better: bool,
    /// Parameters of the search with their values.
    pub keys: Vec<Key>,
    /// Combinations that were tried: the index of each parameter's value, and the measured
    /// quantity.
    pub points: Vec<(Places, f64)>,
    /// Best combination, as the index of each parameter's value.
    pub best: Places,
    /// Label of the best combination: best or candidate. A candidate is not known to be better than
    /// today's settings.
    pub label: &'static str,
    /// Safe combination, as the index of each parameter's value, where the best one is on a cliff.
    pub safe: Option<Places>,
    /// Combinations at the foot of a cliff, as indices of the parameters' values.
    pub cliff: Vec<Places>,
}

impl Surface {
    /// Creates the surface of a search; `None` where no point ran.
    pub fn of(tuned: &Tuned) -> Option<Self> {
        let best = tuned.best()?;
        let value = |places: &Places| Some((places.clone(), tuned.value(places)?));
        Some(Self {
            quantity: tuned.goal.quantity().to_owned(),
            more_is_better: tuned.goal == Goal::Throughput,
            keys: tuned.keys.clone(),
            points: tuned.points.keys().filter_map(value).collect(),
            best: best.clone(),
            label: tuned.standing(best).label(),
            safe: match tuned.standing(best) {
                Standing::Better | Standing::AsGood => tuned.safe().cloned(),
                Standing::Unproven => None,
            },
            cliff: tuned
                .cliffs()
                .into_iter()
                .map(|cliff| cliff.bottom)
                .collect(),
        })
    }

    fn rows(&self) -> Vec<Value> {
        let best = self.points.iter().find(|(places, _)| *places == self.best);
        let best = best.map_or(1.0, |(_, value)| *value);
        let row = |(places, value): &(Places, f64)| {
            let values = self.keys.iter().zip(places);
            let values: Vec<&str> = values.map(|(key, place)| &*key.values[*place]).collect();
            let (last, others) = values.split_last()?;
            let ratio = match self.more_is_better {
                true => value / best,
                false => best / value,
            };
            Some(json!({
                "across": last,
                "down": others.join(", "),
                "value": value,
                "share_of_best": ratio,
                "mark": self.mark(places),
            }))
        };
        self.points.iter().filter_map(row).collect()
    }

    fn mark(&self, places: &Places) -> &'static str {
        if *places == self.best {
            self.label
        } else if self.safe.as_ref() == Some(places) {
            SAFE
        } else if self.cliff.contains(places) {
            CLIFF
        } else {
            ""
        }
    }

    /// Draws a heat map of the search, or a curve for a single parameter. The last parameter runs
    /// to the right, all others downwards.
    pub(super) fn chart(&self) -> Option<Chart> {
        let (last, others) = self.keys.split_last()?;
        let others: Vec<&str> = others.iter().map(|key| key.path.as_str()).collect();
        let view = match others.is_empty() {
            true => curve_layer(&last.path, &self.quantity),
            false => {
                let down = |(places, _): &(Places, f64)| places[..others.len()].to_vec();
                let rows: BTreeSet<Places> = self.points.iter().map(down).collect();
                self.heat_map(&last.path, &others.join(", "), rows.len())
            }
        };
        let over = match others.as_slice() {
            [] => last.path.clone(),
            others => format!("{} and {}", others.join(", "), last.path),
        };
        let chart = Chart::new(
            "tuning",
            format!("{} over {over}", self.quantity),
            self.rows(),
            view,
        );
        Some(
            chart
                .caption(&format!(
                    "The {} combination has a frame in the colour of the text. A red frame marks the foot of a cliff: the step to it from a neighbour loses {:.0} % or more beyond what the steps around it lead one to expect.",
                    self.label,
                    100.0 * CLIFF_SHARE
                ))
                .wide(),
        )
    }

    fn heat_map(&self, across: &str, down: &str, rows: usize) -> Value {
        json!({
            "height": 26 * rows,
            "encoding": {
                "x": { "field": "across", "type": "nominal", "sort": null, "title": across, "axis": { "labelAngle": 0 } },
                "y": { "field": "down", "type": "nominal", "sort": null, "title": down },
            },
            "layer": [
                {
                    "name": ROWS,
                    "mark": { "type": "rect", "tooltip": { "content": "data" } },
                    "encoding": {
                        "color": { "field": "value", "type": "quantitative", "title": self.quantity,
                                   "scale": { "scheme": "viridis", "reverse": !self.more_is_better } },
                    },
                },
                {
                    "transform": [{ "filter": format!("datum.mark === '{CLIFF}'") }],
                    "mark": { "type": "rect", "filled": false, "strokeWidth": 3.5, "stroke": Family::Missed.colour() },
                },
                // Over the frames beside it.
                {
                    "transform": [{ "filter": format!("datum.mark === '{}' || datum.mark === '{SAFE}'", self.label) }],
                    "mark": { "type": "rect", "filled": false, "strokeWidth": 3.5, "stroke": "currentColor" },
                },
                {
                    "mark": { "type": "text", "fontSize": 11 },
                    "encoding": {
                        "text": { "field": "value", "type": "quantitative", "format": ".3~s" },
                        "color": {
                            "condition": { "test": "datum.share_of_best > 0.65", "value": "black" },
                            "value": "white",
                        },
                    },
                },
            ],
        })
    }
}

/// Returns the colours of frames: the best in the colour of writes, the cliff in that of a missed
/// revolution.
fn frame() -> Value {
    json!({
        "condition": { "test": format!("datum.mark === '{CLIFF}'"), "value": Family::Missed.colour() },
        "value": "currentColor",
    })
}

fn curve_layer(across: &str, quantity: &str) -> Value {
    json!({
        "height": 280,
        "encoding": {
            "x": { "field": "across", "type": "nominal", "sort": null, "title": across, "axis": { "labelAngle": 0 } },
            "y": { "field": "value", "type": "quantitative", "title": quantity, "scale": { "zero": true } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 2 } },
            {
                "name": ROWS,
                "mark": { "type": "point", "filled": true, "size": 80, "opacity": 1, "strokeWidth": 3,
                          "tooltip": { "content": "data" } },
                "encoding": { "stroke": frame() },
            },
        ],
    })
}
