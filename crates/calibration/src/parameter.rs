//! A number that was fitted.

/// Where a fitted number lies, by what the requests say that it was fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A number that was fitted to a part of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it is, with its unit: `arrival.read.after_write_us`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Two standard errors around it, or the values that fit as well.
    pub interval: Interval,
}

impl Parameter {
    /// A number with an interval of its own.
    pub(crate) fn within(name: impl Into<String>, value: f64, (low, high): (f64, f64)) -> Self {
        Parameter {
            name: name.into(),
            value,
            interval: Interval { low, high },
        }
    }

    /// A number with its standard error: two of them to both sides.
    pub(crate) fn around(name: impl Into<String>, value: f64, error: f64) -> Self {
        Self::within(name, value, (value - 2.0 * error, value + 2.0 * error))
    }

    /// A choice among rules, without an error of its own.
    pub(crate) fn exact(name: impl Into<String>, value: f64) -> Self {
        Self::within(name, value, (value, value))
    }
}
