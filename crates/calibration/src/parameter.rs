//! Fitted parameter with its confidence interval.

/// Confidence interval of a fitted number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParameterInterval {
    /// Lower end of the confidence interval.
    pub low: f64,
    /// Upper end of the confidence interval.
    pub high: f64,
}

/// Parameter that was fitted to a part of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedParameter {
    /// Name of the parameter, which ends in its unit: `arrival.read.after_write_us`.
    pub name: String,
    /// Fitted value, in the unit of the name.
    pub value: f64,
    /// Interval of two standard errors around the value, or the range of values that fit equally
    /// well.
    pub interval: ParameterInterval,
}

impl FittedParameter {
    pub(crate) fn with_interval(
        name: impl Into<String>,
        value: f64,
        (low, high): (f64, f64),
    ) -> Self {
        FittedParameter {
            name: name.into(),
            value,
            interval: ParameterInterval { low, high },
        }
    }

    /// Creates a parameter from its standard error; the interval extends two errors to both sides.
    pub(crate) fn with_standard_error(name: impl Into<String>, value: f64, error: f64) -> Self {
        Self::with_interval(name, value, (value - 2.0 * error, value + 2.0 * error))
    }

    /// Creates a parameter for a discrete choice, without an error.
    pub(crate) fn exact(name: impl Into<String>, value: f64) -> Self {
        Self::with_interval(name, value, (value, value))
    }
}
