//! Weighted least squares by the normal equations: few unknowns, many rows.

/// Accumulated sums of the normal equations of a least-squares fit.
#[derive(Clone, Debug)]
pub(crate) struct NormalEquations {
    unknown_count: usize,
    matrix: Vec<f64>,
    right_side: Vec<f64>,
}

/// Solution with variances that assume a residual variance of 1.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    pub(crate) values: Vec<f64>,
    pub(crate) variances: Vec<f64>,
}

impl NormalEquations {
    pub(crate) fn new(unknowns: usize) -> NormalEquations {
        NormalEquations {
            unknown_count: unknowns,
            matrix: vec![0.0; unknowns * unknowns],
            right_side: vec![0.0; unknowns],
        }
    }

    /// Adds an equation: its coefficients, its right-hand side and its weight.
    pub(crate) fn add(&mut self, row: &[(usize, f64)], value: f64, weight: f64) {
        for &(i, a) in row {
            self.right_side[i] += weight * a * value;
            for &(j, b) in row {
                self.matrix[i * self.unknown_count + j] += weight * a * b;
            }
        }
    }

    /// Solves the equations. An unknown without an equation is 0, with variance 0.
    pub(crate) fn solve(&self) -> Solution {
        let n = self.unknown_count;
        let at = |i: usize, j: usize| self.matrix[i * n + j];
        // Columns of one length, and a trace of a ridge: collinear unknowns share.
        let scale: Vec<f64> = (0..n)
            .map(|i| {
                if at(i, i) > 0.0 {
                    at(i, i).sqrt().recip()
                } else {
                    0.0
                }
            })
            .collect();
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let ridge = if i == j {
                    1e-9 + f64::from(scale[i] == 0.0)
                } else {
                    0.0
                };
                let known: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let rest = at(i, j) * scale[i] * scale[j] + ridge - known;
                lower[i * n + j] = match i == j {
                    true => rest.max(1e-12).sqrt(),
                    false => rest / lower[j * n + j],
                };
            }
        }
        let scaled: Vec<f64> = (0..n).map(|i| self.right_side[i] * scale[i]).collect();
        let values = back_substitute(&lower, &scaled);
        let variances = (0..n).map(|i| {
            let unit: Vec<f64> = (0..n).map(|j| f64::from(i == j)).collect();
            back_substitute(&lower, &unit)[i] * scale[i] * scale[i]
        });
        Solution {
            variances: variances.collect(),
            values: (0..n).map(|i| values[i] * scale[i]).collect(),
        }
    }
}

/// Solves L L' x = y for a lower triangular matrix L.
fn back_substitute(lower: &[f64], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut x = right.to_vec();
    for i in 0..n {
        let known: f64 = (0..i).map(|k| lower[i * n + k] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| lower[k * n + i] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i * n + i];
    }
    x
}
