//! Summary of an accuracy card in a few figures.

use super::{AccuracyCell, CellQuantity, CellRole};
use crate::statistics::median;
use serde::Serialize;

/// Errors of calibrated, of predicted or of all published numbers, summarized. CPU shares are
/// counted apart, since their errors are in points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccuracySummary {
    /// Name of the group of published numbers: `calibrated cells`, `predictions` or `all cells`.
    pub name: &'static str,
    /// Number of rates, times and ratios, each measurement once.
    #[serde(rename = "cells")]
    pub cell_count: usize,
    /// Median absolute error of rates, times and ratios, as a share of the printed number.
    pub median_error: Option<f64>,
    /// Number of rates, times and ratios with an error of at most 10 %.
    #[serde(rename = "within_tenth")]
    pub within_tenth_count: usize,
    /// Number of CPU shares, each measurement once.
    #[serde(rename = "cpu_cells")]
    pub cpu_cell_count: usize,
    /// Median absolute error of CPU shares, in points.
    #[serde(rename = "cpu_median_points")]
    pub cpu_median_error_points: Option<f64>,
    /// Number of CPU shares with an error of at most 10 points.
    #[serde(rename = "cpu_within_ten_points")]
    pub cpu_within_ten_points_count: usize,
}

/// Summarizes the errors of the calibrated numbers, of the predicted numbers and of all numbers.
pub fn summarize_cells(cells: &[AccuracyCell]) -> Vec<AccuracySummary> {
    let of = |name, role: Option<CellRole>| {
        let counted = cells.iter().filter(move |cell| {
            cell.counts_in_score() && role.is_none_or(|role| cell.role == role)
        });
        let errors = |is_share: bool| -> Vec<f64> {
            counted
                .clone()
                .filter(|cell| (cell.quantity == CellQuantity::CpuPercent) == is_share)
                .filter_map(|cell| cell.error.map(f64::abs))
                .collect()
        };
        let (rates, shares) = (errors(false), errors(true));
        // A difference of two printed figures is not exact in binary.
        let within = |errors: &[f64], limit: f64| {
            let within = errors.iter().filter(|error| **error <= limit + 1e-9);
            within.count()
        };
        AccuracySummary {
            name,
            cell_count: rates.len(),
            median_error: median(&rates),
            within_tenth_count: within(&rates, 0.10),
            cpu_cell_count: shares.len(),
            cpu_median_error_points: median(&shares),
            cpu_within_ten_points_count: within(&shares, 10.0),
        }
    };
    vec![
        of("calibrated cells", Some(CellRole::Calibration)),
        of("predictions", Some(CellRole::Prediction)),
        of("all cells", None),
    ]
}
