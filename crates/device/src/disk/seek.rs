//! Seek time of a disk's arm as a function of distance.

use diskperf_sim::Time;

/// Specification of seek times, in the forms of data sheets, papers and DiskSim's files.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(rename_all = "snake_case", deny_unknown_fields)
)]
pub enum SeekSpecification {
    /// Constant seek time over any distance.
    Constant {
        /// Seek time over any distance, in ms.
        time_ms: f64,
    },
    /// Measured seek times with linear interpolation, from 0 ms at distance 0 up to the first
    /// point. Beyond the last point, the last segment is extended. Measured tables jump and fall,
    /// and are not smoothed.
    Table {
        /// Pairs of distance in cylinders and seek time in ms, in ascending order of distance.
        points: Vec<(u32, f64)>,
    },
    /// Square-root curve up to some distance, and a line from there on (Ruemmler and Wilkes 1994;
    /// DiskSim's `HPL seek equation values` V1 to V6).
    Hpl {
        /// Distance at which the line begins, in cylinders (V1).
        line_from_cylinders: u32,
        /// Constant of the square-root curve, in ms (V2).
        root_constant_ms: f64,
        /// Factor of the square root, in ms per root of a cylinder (V3).
        root_factor_ms: f64,
        /// Constant of the line, in ms (V4).
        line_constant_ms: f64,
        /// Slope of the line, in ms per cylinder (V5).
        line_factor_ms: f64,
        /// Single-cylinder seek time, in ms; from the curve if absent (V6).
        #[cfg_attr(feature = "serde", serde(default))]
        single_cylinder_ms: Option<f64>,
    },
    /// Sum of a square root and a line through three data-sheet times. The average is over pairs of
    /// cylinders (Lee and Katz 1991).
    ThreePoints {
        /// Single-cylinder seek time, in ms.
        single_cylinder_ms: f64,
        /// Average seek time, in ms.
        average_ms: f64,
        /// Full-stroke seek time, in ms.
        full_stroke_ms: f64,
    },
    /// Sum of a square root and a line through three data-sheet times, exact to the nanosecond for
    /// any number of cylinders. Lee and Katz's factors deviate by up to 0.2 % on a disk of a
    /// thousand cylinders.
    DataSheet {
        /// Single-cylinder seek time, in ms.
        single_cylinder_ms: f64,
        /// Mean seek time over all pairs of two different cylinders, in ms.
        average_ms: f64,
        /// Full-stroke seek time, in ms.
        full_stroke_ms: f64,
    },
}

/// Reason why a seek specification is invalid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeekCurveError {
    /// A seek time in ms, at a distance in cylinders, is not from 0 to 4000 ms.
    TimeOutOfRange(f64, u32),
    /// The table of seek times has no points.
    EmptyTable,
    /// The table of seek times does not ascend at this distance, in cylinders.
    TableOutOfOrder(u32),
    /// No rising curve goes through the three times of the data sheet.
    NotMonotonic,
}

impl std::fmt::Display for SeekCurveError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TimeOutOfRange(first, second) => write!(formatter, "the seek time over {second} cylinders is {first} ms, and must be from 0 to 4000 ms"),
            Self::EmptyTable => formatter.write_str("the table of seek times needs at least one point"),
            Self::TableOutOfOrder(value) => write!(formatter, "the table of seek times must ascend in cylinders, from 1 up: {value} is out of order"),
            Self::NotMonotonic => formatter.write_str("no rising curve a + b sqrt(d) + c d goes through these three seek times: give the curve as `table` or `hpl`"),
        }
    }
}

impl std::error::Error for SeekCurveError {}

/// Seek time of an arm as a function of distance.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    /// Curve of reads outwards; of all seeks if `directed` is `None`.
    seek_law: SeekLaw,
    direction_offsets: Option<Box<DirectionOffsets>>,
    cylinder_count: u32,
}

/// Formula or table of seek times, in ns.
#[derive(Clone, Debug)]
enum SeekLaw {
    Constant(f64),
    /// Seek time for each distance, in ns.
    DenseTable(Box<[u32]>),
    Hpl {
        line_from: u32,
        root: (f64, f64),
        line: (f64, f64),
        single: f64,
    },
    SquareRoot {
        single: f64,
        root: f64,
        line: f64,
    },
}

impl SeekLaw {
    /// Returns the seek time over a distance of at least one cylinder, in ns.
    #[inline]
    fn time_ns(&self, distance: u32) -> f64 {
        match self {
            Self::Constant(time) => *time,
            Self::DenseTable(times) => f64::from(times[distance as usize]),
            Self::Hpl { single, .. } if distance == 1 => *single,
            Self::Hpl {
                line_from, root, ..
            } if distance < *line_from => root.0 + root.1 * f64::from(distance).sqrt(),
            Self::Hpl { line, .. } => line.0 + line.1 * f64::from(distance),
            Self::SquareRoot { single, root, line } => {
                let further = f64::from(distance - 1);
                single + root * further.sqrt() + line * further
            }
        }
    }
}

#[derive(Clone, Debug)]
struct DirectionOffsets {
    /// Seek curve of writes outwards.
    write_law: SeekLaw,
    /// Additional time of a read and of a write inwards, in ns.
    inwards: [f64; 2],
}

/// Maximum valid seek time, in ns.
const TIME_NS_MAX: f64 = 4e9;

impl SeekCurve {
    /// Creates the seek curve of an arm over a number of cylinders.
    ///
    /// # Errors
    ///
    /// [`SeekCurveError`] when a time is out of range, or no curve fits the times.
    pub fn new(specification: &SeekSpecification, cylinders: u32) -> Result<Self, SeekCurveError> {
        let law = match specification {
            SeekSpecification::Constant { time_ms } => SeekLaw::Constant(time_ms * 1e6),
            SeekSpecification::Table { points } => table_law(points, cylinders)?,
            SeekSpecification::Hpl {
                line_from_cylinders,
                root_constant_ms,
                root_factor_ms,
                line_constant_ms,
                line_factor_ms,
                single_cylinder_ms,
            } => {
                let root = (root_constant_ms * 1e6, root_factor_ms * 1e6);
                let line = (line_constant_ms * 1e6, line_factor_ms * 1e6);
                let of_curve = match *line_from_cylinders {
                    0 | 1 => line.0 + line.1,
                    _ => root.0 + root.1,
                };
                SeekLaw::Hpl {
                    line_from: *line_from_cylinders,
                    root,
                    line,
                    single: single_cylinder_ms.map_or(of_curve, |single| single * 1e6),
                }
            }
            SeekSpecification::ThreePoints {
                single_cylinder_ms,
                average_ms,
                full_stroke_ms,
            } => three_point_law(
                SeekTimePoints {
                    single: *single_cylinder_ms,
                    average: *average_ms,
                    full: *full_stroke_ms,
                },
                cylinders,
            )?,
            SeekSpecification::DataSheet {
                single_cylinder_ms,
                average_ms,
                full_stroke_ms,
            } => data_sheet_law(
                [*single_cylinder_ms, *average_ms, *full_stroke_ms].map(|ms| ms * 1e6),
                cylinders,
            )?,
        };
        let curve = Self {
            seek_law: law,
            direction_offsets: None,
            cylinder_count: cylinders,
        };
        // Every law but the table is monotonous between these.
        let bends = match curve.seek_law {
            SeekLaw::Hpl { line_from, .. } => [line_from.saturating_sub(1), line_from],
            _ => [1, 1],
        };
        let last = cylinders.saturating_sub(1).max(1);
        for distance in [1, 2, last].into_iter().chain(bends) {
            if distance <= last && distance > 0 {
                let time = curve.seek_law.time_ns(distance);
                if !(0.0..=TIME_NS_MAX).contains(&time) {
                    return Err(SeekCurveError::TimeOutOfRange(time / 1e6, distance));
                }
            }
        }
        Ok(curve)
    }

    /// Returns the curve with separate times for writes, if given, and with additional ms for
    /// inward seeks of reads and of writes.
    ///
    /// # Errors
    ///
    /// [`SeekCurveError`] when a time is out of range.
    pub fn with_direction(
        self,
        writes: Option<Self>,
        inwards_ms: [f64; 2],
    ) -> Result<Self, SeekCurveError> {
        if let Some(wrong) = inwards_ms
            .into_iter()
            .find(|ms| ms.is_nan() || ms.abs() * 1e6 > TIME_NS_MAX)
        {
            return Err(SeekCurveError::TimeOutOfRange(wrong, 1));
        }
        if writes.is_none() && inwards_ms == [0.0; 2] {
            return Ok(self);
        }
        let writes = writes.map_or_else(|| self.seek_law.clone(), |writes| writes.seek_law);
        Ok(Self {
            direction_offsets: Some(Box::new(DirectionOffsets {
                write_law: writes,
                inwards: inwards_ms.map(|ms| ms * 1e6),
            })),
            ..self
        })
    }

    /// Returns the seek time from one cylinder to another, for a read or a write.
    ///
    /// # Panics
    ///
    /// When the distance exceeds that of the curve's table.
    #[inline(always)]
    pub fn time_between(&self, from: u32, to: u32, write: bool) -> Time {
        match &self.direction_offsets {
            None => self.time_over(from.abs_diff(to)),
            Some(of) => self.time_with_direction(of, (from, to), write),
        }
    }

    #[cold]
    fn time_with_direction(
        &self,
        of: &DirectionOffsets,
        (from, to): (u32, u32),
        write: bool,
    ) -> Time {
        if from == to {
            return Time::ZERO;
        }
        let law = if write { &of.write_law } else { &self.seek_law };
        let further = if to > from {
            of.inwards[usize::from(write)]
        } else {
            0.0
        };
        let exact = law.time_ns(from.abs_diff(to)) + further;
        Time((exact.max(0.0) + 0.5) as u64)
    }

    /// Returns the seek time of an outward read over a distance in cylinders; 0 over distance 0.
    ///
    /// # Panics
    ///
    /// When the distance exceeds that of the curve's table.
    #[inline]
    pub fn time_over(&self, distance: u32) -> Time {
        match distance {
            0 => Time::ZERO,
            // None is longer than `TIME_NS_MAX`, and this conversion is a short one.
            _ => Time(u64::from((self.seek_law.time_ns(distance) + 0.5) as u32)),
        }
    }

    /// Returns the mean seek time of reads over all pairs of two different cylinders.
    pub fn average_time(&self) -> Time {
        let inwards = self
            .direction_offsets
            .as_ref()
            .map_or(0.0, |of| of.inwards[0]);
        let cylinders = u128::from(self.cylinder_count);
        let sum: u128 = (1..self.cylinder_count)
            .map(|far| u128::from(self.cylinder_count - far) * u128::from(self.time_over(far).0))
            .sum();
        let outwards = (2 * sum / (cylinders * cylinders.saturating_sub(1)).max(1)) as u64;
        // Every other way goes inwards.
        Time(outwards.saturating_add_signed((inwards / 2.0) as i64))
    }
}

/// Interpolates a table of seek times for each distance.
fn table_law(points: &[(u32, f64)], cylinders: u32) -> Result<SeekLaw, SeekCurveError> {
    let mut least = 1;
    for &(distance, time) in points {
        if distance < least {
            return Err(SeekCurveError::TableOutOfOrder(distance));
        }
        if !(0.0..=TIME_NS_MAX / 1e6).contains(&time) {
            return Err(SeekCurveError::TimeOutOfRange(time, distance));
        }
        least = distance.saturating_add(1);
    }
    let (first, last) = match points {
        [] => return Err(SeekCurveError::EmptyTable),
        [only] => ((0, 0.0), *only),
        [.., before, last] => (*before, *last),
    };
    let through = |from: (u32, f64), to: (u32, f64), distance: u32| {
        let slope = (to.1 - from.1) / f64::from(to.0 - from.0);
        from.1 + slope * (f64::from(distance) - f64::from(from.0))
    };
    let mut times = Vec::with_capacity(cylinders as usize);
    let mut from = (0, 0.0);
    let mut ahead = points.iter().copied().peekable();
    for distance in 0..cylinders.max(2) {
        while let Some(passed) = ahead.next_if(|point| point.0 < distance) {
            from = passed;
        }
        let time = match ahead.peek() {
            Some(to) => through(from, *to, distance),
            None => through(first, last, distance),
        };
        let time_ns = (time * 1e6).max(0.0);
        if time_ns > TIME_NS_MAX {
            return Err(SeekCurveError::TimeOutOfRange(time, distance));
        }
        times.push((time_ns + 0.5) as u32);
    }
    Ok(SeekLaw::DenseTable(times.into_boxed_slice()))
}

/// Seek times that determine a seek curve, in ms.
#[derive(Clone, Copy, Debug)]
struct SeekTimePoints {
    /// Time of a seek over one cylinder.
    single: f64,
    /// Mean time over uniform pairs of cylinders.
    average: f64,
    /// Time of a seek over the full stroke.
    full: f64,
}

/// Returns the curve X sqrt(d - 1) + Y (d - 1) + single whose mean over uniform pairs of cylinders
/// is `average`.
fn three_point_law(points: SeekTimePoints, cylinders: u32) -> Result<SeekLaw, SeekCurveError> {
    let SeekTimePoints {
        single,
        average,
        full,
    } = points;
    let stroke = f64::from(cylinders);
    let root = (15.0 * average - 10.0 * single - 5.0 * full) / (3.0 * stroke.sqrt());
    let line = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * stroke);
    let rises_at_the_end = root / (2.0 * stroke.sqrt()) + line >= 0.0;
    if root < 0.0 || !rises_at_the_end {
        return Err(SeekCurveError::NotMonotonic);
    }
    Ok(SeekLaw::SquareRoot {
        single: single * 1e6,
        root: root * 1e6,
        line: line * 1e6,
    })
}

/// Returns the curve single + X sqrt(d - 1) + Y (d - 1) that takes `full` over the full stroke, and
/// `average` as the mean over all pairs of two different cylinders; in ns.
fn data_sheet_law(
    [single, average, full]: [f64; 3],
    cylinders: u32,
) -> Result<SeekLaw, SeekCurveError> {
    if single > average || average > full {
        return Err(SeekCurveError::NotMonotonic);
    }
    let far = f64::from(cylinders.saturating_sub(2));
    let (root, line) = match cylinders {
        0..=2 => (0.0, 0.0),
        // Two distances, and no average to choose.
        3 => (0.0, full - single),
        _ => {
            let (mean_root, mean_line) = mean_distances(cylinders);
            let (rise, mean_rise) = (full - single, average - single);
            let determinant = far.sqrt() * mean_line - far * mean_root;
            (
                (rise * mean_line - far * mean_rise) / determinant,
                (far.sqrt() * mean_rise - rise * mean_root) / determinant,
            )
        }
    };
    let law = SeekLaw::SquareRoot { single, root, line };
    // A root and a line bend one way only: the first step or the last one is the least.
    let steps = [1, cylinders.saturating_sub(2).max(1)];
    let falls = |from: u32| law.time_ns(from + 1) < law.time_ns(from) - 0.5;
    match cylinders > 2 && steps.into_iter().any(falls) {
        true => Err(SeekCurveError::NotMonotonic),
        false => Ok(law),
    }
}

/// Returns the means of sqrt(d - 1) and d - 1 over all pairs of two different cylinders.
fn mean_distances(cylinders: u32) -> (f64, f64) {
    let pairs = f64::from(cylinders) * f64::from(cylinders - 1) / 2.0;
    let root = (1..cylinders).map(|far| f64::from(cylinders - far) * f64::from(far - 1).sqrt());
    (
        root.sum::<f64>() / pairs,
        (f64::from(cylinders) - 2.0) / 3.0,
    )
}
