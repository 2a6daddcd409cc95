//! Seek time as a function of distance.

use diskperf_diagnostics::{Errors, Problem, SourceSpan, Text};
use std::sync::Arc;

use crate::keys::{PROBLEMS_MAX, TIME_MS_MAX};
use crate::text::shorten_text;

/// Measured seek times by distance, from a `.seek` file. They need not increase smoothly.
#[derive(Clone, Debug, PartialEq)]
pub struct SeekTable {
    /// Distances in cylinders and times in milliseconds, by ascending distance; at least one.
    points: Vec<(u32, f64)>,
}

/// Seek time by distance.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekCurve {
    /// Constant seek time for all distances.
    Constant {
        /// Seek time, in milliseconds.
        time_ms: f64,
    },
    /// Lee's formula through three points: a + b sqrt(d-1) + c (d-1), with the given average over
    /// uniform pairs of cylinders.
    ThreePoints {
        /// Seek time over one cylinder, in milliseconds.
        single_ms: f64,
        /// Average seek time over uniform pairs of cylinders, in milliseconds.
        average_ms: f64,
        /// Seek time from the first cylinder to the last, in milliseconds.
        full_ms: f64,
    },
    /// Seek formula with six values V1 to V6 (`HPL seek equation values`). Below V1 cylinders the
    /// time is V2 + V3 sqrt(d) ms, otherwise V4 + V5 d; one cylinder takes V6 unless that is -1.
    HplFormula {
        /// Coefficients V1 to V6 of the formula.
        values: [f64; 6],
        /// Seek times for 1 to 10 cylinders in milliseconds (`First ten seek times`).
        first_ten_ms: Option<[f64; 10]>,
    },
    /// Measured table of seek times.
    Table(SeekTable),
}

impl SeekCurve {
    /// Returns the seek time in milliseconds for a distance on a drive with the given number of
    /// cylinders; 0 for distance 0.
    pub fn seek_ms(&self, distance_cylinders: u32, cylinders: u32) -> f64 {
        if distance_cylinders == 0 {
            return 0.0;
        }
        let d = f64::from(distance_cylinders);
        match self {
            SeekCurve::Constant { time_ms } => *time_ms,
            SeekCurve::ThreePoints {
                single_ms,
                average_ms,
                full_ms,
            } => {
                let c = f64::from(cylinders.max(1));
                let x = (15.0 * average_ms - 10.0 * single_ms - 5.0 * full_ms) / (3.0 * c.sqrt());
                let y = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * c);
                x * (d - 1.0).sqrt() + y * (d - 1.0) + single_ms
            }
            SeekCurve::HplFormula {
                values: [v1, v2, v3, v4, v5, v6],
                first_ten_ms,
            } => {
                let listed = first_ten_ms.as_ref();
                let listed = listed.and_then(|times| times.get(distance_cylinders as usize - 1));
                match listed {
                    Some(time) => *time,
                    None if distance_cylinders == 1 && *v6 != -1.0 => *v6,
                    None if d < *v1 => v2 + v3 * d.sqrt(),
                    None => v4 + v5 * d,
                }
            }
            SeekCurve::Table(table) => table.seek_ms(distance_cylinders),
        }
    }
}

impl SeekTable {
    /// Reads a `.seek` file: `cylinders, milliseconds[, deviation]` on each line, optionally after
    /// `Seek distances measured: N`.
    ///
    /// # Errors
    ///
    /// Malformed lines, distances that do not ascend, or a number of distances other than N.
    pub fn parse(name: &str, content: &str) -> Result<SeekTable, Errors> {
        let text = Arc::new(Text::new(name.to_owned(), content.to_owned()));
        let mut points: Vec<(u32, f64)> = Vec::new();
        let mut problems = Vec::new();
        let mut announced = None;
        let mut start = 0;
        for line in content.split_inclusive('\n') {
            let from = start + (line.len() - line.trim_start().len());
            start += line.len();
            let line = line.trim();
            let place = SourceSpan::new(&text, from..from + line.len());
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(count) = line.strip_prefix("Seek distances measured:") {
                announced = Some((count.trim().parse::<usize>().ok(), place));
                continue;
            }
            let last = points.last().map_or(0, |&(distance, _)| distance);
            match parse_point(line, last) {
                Ok(point) => points.push(point),
                Err(why) => {
                    let title =
                        format!("`{}` is not a point of the seek curve", shorten_text(line));
                    let help = "write `CYLINDERS, MILLISECONDS`, with ascending distances";
                    problems.push(Problem::error(title).at(&place, why).help(help));
                }
            }
            if problems.len() >= PROBLEMS_MAX {
                break;
            }
        }
        if let Some((count, place)) = announced
            && count != Some(points.len())
            && problems.is_empty()
        {
            let title = format!("the file has {} distances", points.len());
            let problem = Problem::error(title).at(&place, "this line gives another number");
            problems.push(problem.help("check that the file is complete"));
        }
        if points.is_empty() && problems.is_empty() {
            problems.push(
                Problem::error("the seek curve has no points").at(&SourceSpan::start(&text), ""),
            );
        }
        Errors::fail_if_any(problems)?;
        Ok(SeekTable { points })
    }

    /// Returns distances in cylinders and times in milliseconds, by ascending distance.
    pub fn points(&self) -> &[(u32, f64)] {
        &self.points
    }

    /// Returns the seek time in milliseconds by linear interpolation. It starts at (0, 0) below the
    /// first point and continues the last slope beyond the last point. It is never negative.
    pub fn seek_ms(&self, distance_cylinders: u32) -> f64 {
        let points = &self.points;
        let above = points.partition_point(|&(distance, _)| distance < distance_cylinders);
        let at = |index: usize| (f64::from(points[index].0), points[index].1);
        let last = points.len() - 1;
        let (low, high) = match above {
            0 => ((0.0, 0.0), at(0)),
            above if above <= last => (at(above - 1), at(above)),
            _ if last == 0 => ((0.0, 0.0), at(0)),
            _ => (at(last - 1), at(last)),
        };
        let slope = (high.1 - low.1) / (high.0 - low.0);
        let time = high.1 + slope * (f64::from(distance_cylinders) - high.0);
        time.max(0.0)
    }
}

fn parse_point(line: &str, last: u32) -> Result<(u32, f64), &'static str> {
    let mut fields = line.split(',').map(str::trim);
    let distance = fields.next().and_then(|text| text.parse::<u32>().ok());
    let distance = distance.ok_or("the distance is not a whole number")?;
    if distance <= last {
        return Err("the distance is not greater than the previous one");
    }
    let time = fields.next().and_then(|text| text.parse::<f64>().ok());
    let time = time.filter(|time| (0.0..=TIME_MS_MAX).contains(time));
    let time = time.ok_or("the time is not a number of milliseconds")?;
    let deviation = fields.next().map(|text| text.parse::<f64>().is_ok());
    match (deviation, fields.next()) {
        (None | Some(true), None) => Ok((distance, time)),
        _ => Err("the line has more than a distance, a time and a deviation"),
    }
}
