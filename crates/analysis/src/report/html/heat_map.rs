//! Heat map of the rates over all combinations of some parameters, with the cliffs.

use super::chart::{Chart, ROWS_DATASET};
use super::family::StageFamily;
use crate::tuning::{
    BestStanding, CLIFF_LOSS_SHARE_MIN, GridPoint, TunedParameter, TuningGoal, TuningResult,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SAFE_MARK: &str = "safe";
const CLIFF_MARK: &str = "cliff";

/// Measured quantity over combinations of some parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningSurface {
    /// Name of the measured quantity with its unit: `KB/s`.
    pub quantity: String,
    /// Whether a larger value of the measured quantity is better.
    pub is_more_better: bool,
    /// Parameters of the search with their values.
    pub parameters: Vec<TunedParameter>,
    /// Combinations that were tried: the index of each parameter's value, and the measured
    /// quantity.
    pub point_values: Vec<(GridPoint, f64)>,
    /// Best combination, as the index of each parameter's value.
    pub best_point: GridPoint,
    /// Label of the best combination: best or candidate. A candidate is not known to be better than
    /// today's settings.
    pub best_label: &'static str,
    /// Safe combination, as the index of each parameter's value, where the best one is on a cliff.
    pub safe_point: Option<GridPoint>,
    /// Combinations at the foot of a cliff, as indices of the parameters' values.
    pub cliff_points: Vec<GridPoint>,
}

impl TuningSurface {
    /// Creates the surface of a search; `None` where no point ran.
    pub fn from_tuned(tuned: &TuningResult) -> Option<Self> {
        let best = tuned.best_point()?;
        let value = |places: &GridPoint| Some((places.clone(), tuned.goal_value(places)?));
        Some(Self {
            quantity: tuned.goal.quantity().to_owned(),
            is_more_better: tuned.goal == TuningGoal::Throughput,
            parameters: tuned.parameters.clone(),
            point_values: tuned.points.keys().filter_map(value).collect(),
            best_point: best.clone(),
            best_label: tuned.standing_of_best(best).label(),
            safe_point: match tuned.standing_of_best(best) {
                BestStanding::Better | BestStanding::AsGoodAsToday => tuned.safe_point().cloned(),
                BestStanding::Unproven => None,
            },
            cliff_points: tuned
                .find_cliffs()
                .into_iter()
                .map(|cliff| cliff.bottom_point)
                .collect(),
        })
    }

    fn build_rows(&self) -> Vec<Value> {
        let best = self
            .point_values
            .iter()
            .find(|(places, _)| *places == self.best_point);
        let best = best.map_or(1.0, |(_, value)| *value);
        let row = |(places, value): &(GridPoint, f64)| {
            let values = self.parameters.iter().zip(places);
            let values: Vec<&str> = values.map(|(key, place)| &*key.values[*place]).collect();
            let (last, others) = values.split_last()?;
            let ratio = match self.is_more_better {
                true => value / best,
                false => best / value,
            };
            Some(json!({
                "across": last,
                "down": others.join(", "),
                "value": value,
                "share_of_best": ratio,
                "mark": self.mark_of_point(places),
            }))
        };
        self.point_values.iter().filter_map(row).collect()
    }

    fn mark_of_point(&self, places: &GridPoint) -> &'static str {
        if *places == self.best_point {
            self.best_label
        } else if self.safe_point.as_ref() == Some(places) {
            SAFE_MARK
        } else if self.cliff_points.contains(places) {
            CLIFF_MARK
        } else {
            ""
        }
    }

    /// Draws a heat map of the search, or a curve for a single parameter. The last parameter runs
    /// to the right, all others downwards.
    pub(super) fn build_chart(&self) -> Option<Chart> {
        let (last, others) = self.parameters.split_last()?;
        let others: Vec<&str> = others.iter().map(|key| key.path.as_str()).collect();
        let view = match others.is_empty() {
            true => build_curve_layer(&last.path, &self.quantity),
            false => {
                let down = |(places, _): &(GridPoint, f64)| places[..others.len()].to_vec();
                let rows: BTreeSet<GridPoint> = self.point_values.iter().map(down).collect();
                self.build_heat_map(&last.path, &others.join(", "), rows.len())
            }
        };
        let over = match others.as_slice() {
            [] => last.path.clone(),
            others => format!("{} and {}", others.join(", "), last.path),
        };
        let chart = Chart::new(
            "tuning",
            format!("{} over {over}", self.quantity),
            self.build_rows(),
            view,
        );
        Some(
            chart
                .with_caption(&format!(
                    "The {} combination has a frame in the colour of the text. A red frame marks the foot of a cliff: the step to it from a neighbour loses {:.0} % or more beyond what the steps around it lead one to expect.",
                    self.best_label,
                    100.0 * CLIFF_LOSS_SHARE_MIN
                ))
                .with_full_width(),
        )
    }

    fn build_heat_map(&self, across: &str, down: &str, rows: usize) -> Value {
        json!({
            "height": 26 * rows,
            "encoding": {
                "x": { "field": "across", "type": "nominal", "sort": null, "title": across, "axis": { "labelAngle": 0 } },
                "y": { "field": "down", "type": "nominal", "sort": null, "title": down },
            },
            "layer": [
                {
                    "name": ROWS_DATASET,
                    "mark": { "type": "rect", "tooltip": { "content": "data" } },
                    "encoding": {
                        "color": { "field": "value", "type": "quantitative", "title": self.quantity,
                                   "scale": { "scheme": "viridis", "reverse": !self.is_more_better } },
                    },
                },
                {
                    "transform": [{ "filter": format!("datum.mark === '{CLIFF_MARK}'") }],
                    "mark": { "type": "rect", "filled": false, "strokeWidth": 3.5, "stroke": StageFamily::MissedRevolution.colour() },
                },
                // Over the frames beside it.
                {
                    "transform": [{ "filter": format!("datum.mark === '{}' || datum.mark === '{SAFE_MARK}'", self.best_label) }],
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
fn build_frame_layer() -> Value {
    json!({
        "condition": { "test": format!("datum.mark === '{CLIFF_MARK}'"), "value": StageFamily::MissedRevolution.colour() },
        "value": "currentColor",
    })
}

fn build_curve_layer(across: &str, quantity: &str) -> Value {
    json!({
        "height": 280,
        "encoding": {
            "x": { "field": "across", "type": "nominal", "sort": null, "title": across, "axis": { "labelAngle": 0 } },
            "y": { "field": "value", "type": "quantitative", "title": quantity, "scale": { "zero": true } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 2 } },
            {
                "name": ROWS_DATASET,
                "mark": { "type": "point", "filled": true, "size": 80, "opacity": 1, "strokeWidth": 3,
                          "tooltip": { "content": "data" } },
                "encoding": { "stroke": build_frame_layer() },
            },
        ],
    })
}
