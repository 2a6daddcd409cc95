//! How long the arm takes.

use diskperf_sim::Time;

/// Seek time by distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekCurve {
    /// By distance in cylinders; none at distance 0.
    times: Vec<Time>,
}

/// Why no curve goes through the three times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeekError {
    /// They are not in order.
    #[error("the minimum is above the average, or the average above the maximum")]
    Order,
    /// A longer way would take less time.
    #[error("no curve a + b sqrt(d) + c d through these times rises over the whole stroke")]
    Shape,
}

impl SeekCurve {
    /// The curve a + b sqrt(d - 1) + c (d - 1) that takes `minimum` over one
    /// cylinder, `maximum` over the full stroke of `cylinders`, and `average`
    /// in the mean over all pairs of two different cylinders. The square root
    /// is the arm gaining speed, the linear part its moving at full speed
    /// (Ruemmler and Wilkes 1994).
    ///
    /// # Errors
    ///
    /// [`SeekError`] when no rising curve of this shape does.
    pub fn fit(
        cylinders: u32,
        (minimum, average, maximum): (Time, Time, Time),
    ) -> Result<Self, SeekError> {
        if minimum > average || average > maximum {
            return Err(SeekError::Order);
        }
        let mut times = vec![Time::ZERO; cylinders.max(1) as usize];
        if cylinders < 3 || minimum == maximum {
            times.iter_mut().skip(1).for_each(|time| *time = minimum);
            return Ok(Self { times });
        }
        if cylinders == 3 {
            // Two distances, and no average to choose.
            let times = vec![Time::ZERO, minimum, maximum];
            return Ok(Self { times });
        }
        let far = f64::from(cylinders - 2);
        let (mean_root, mean_line) = means(cylinders);
        let (rise, mean_rise) = ((maximum - minimum).0 as f64, (average - minimum).0 as f64);
        // Two equations: root sqrt(far) + line far = rise, and the same for
        // the means.
        let determinant = far.sqrt() * mean_line - far * mean_root;
        let root = (rise * mean_line - far * mean_rise) / determinant;
        let line = (far.sqrt() * mean_rise - rise * mean_root) / determinant;
        for (distance, time) in times.iter_mut().enumerate().skip(1) {
            let further = (distance - 1) as f64;
            let span = minimum.0 as f64 + root * further.sqrt() + line * further;
            *time = Time((span + 0.5).max(0.0) as u64);
        }
        if times.is_sorted() {
            Ok(Self { times })
        } else {
            Err(SeekError::Shape)
        }
    }

    /// The time over `distance` cylinders.
    ///
    /// # Panics
    ///
    /// When the drive has no cylinder that far.
    #[inline]
    pub fn time(&self, distance: u32) -> Time {
        self.times[distance as usize]
    }

    /// The mean over all pairs of two different cylinders.
    pub fn average(&self) -> Time {
        let cylinders = self.times.len() as u128;
        let sum: u128 = (1..cylinders)
            .map(|distance| (cylinders - distance) * u128::from(self.times[distance as usize].0))
            .sum();
        Time((2 * sum / (cylinders * (cylinders - 1)).max(1)) as u64)
    }
}

/// The means of sqrt(d - 1) and d - 1 over all pairs of two different
/// cylinders.
fn means(cylinders: u32) -> (f64, f64) {
    let pairs = f64::from(cylinders) * f64::from(cylinders - 1) / 2.0;
    let (mut root, mut line) = (0.0, 0.0);
    for distance in 1..cylinders {
        let weight = f64::from(cylinders - distance) / pairs;
        let further = f64::from(distance - 1);
        root += weight * further.sqrt();
        line += weight * further;
    }
    (root, line)
}
