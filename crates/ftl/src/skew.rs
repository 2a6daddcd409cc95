//! Writes that prefer some units, as classes of units that are alike.

use crate::past::Past;
use crate::specification::Impossible;

/// Classes of a past by Zipf's law: each spans the same ratio of ranks.
const ZIPF_CLASSES: i32 = 24;

/// Units that are written alike, a range of logical ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Class {
    /// Their share of the writes.
    pub(crate) writes: f64,
    /// Their share of the units.
    pub(crate) space: f64,
}

/// The classes of a random past, the hottest first.
///
/// # Errors
/// When a share is none.
pub(crate) fn classes(past: Past, logical_units: u32) -> Result<Vec<Class>, Impossible> {
    let classes = match past {
        Past::Fresh | Past::Sequential | Past::Random => vec![Class {
            writes: 1.0,
            space: 1.0,
        }],
        Past::HotCold {
            writes_percent,
            space_percent,
        } => {
            let (writes, space) = (
                f64::from(writes_percent) / 100.0,
                f64::from(space_percent) / 100.0,
            );
            let cold = Class {
                writes: 1.0 - writes,
                space: 1.0 - space,
            };
            vec![Class { writes, space }, cold]
        }
        Past::Zipf { theta_percent } => {
            zipf(f64::from(theta_percent) / 100.0, f64::from(logical_units))
        }
    };
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let works = (classes.iter()).all(|class| is_share(class.writes) && is_share(class.space));
    works.then_some(classes).ok_or(Impossible::NoShare)
}

/// The unit of rank k is written in proportion to k to the power of -theta.
fn zipf(theta: f64, units: f64) -> Vec<Class> {
    // The sum up to a rank, by its integral from half a rank on.
    let sum = |rank: f64| {
        if (theta - 1.0).abs() < 1e-9 {
            libm::log(2.0 * rank + 1.0)
        } else {
            let power = |x: f64| libm::pow(x, 1.0 - theta);
            (power(rank + 0.5) - power(0.5)) / (1.0 - theta)
        }
    };
    let edge = |class: i32| {
        let share = f64::from(class) / f64::from(ZIPF_CLASSES);
        libm::round(libm::pow(units, share)) * f64::from(u8::from(class > 0))
    };
    (0..ZIPF_CLASSES)
        .map(|class| (edge(class), edge(class + 1)))
        .filter(|(low, high)| high > low)
        .map(|(low, high)| Class {
            writes: (sum(high) - sum(low)) / sum(units),
            space: (high - low) / units,
        })
        .collect()
}

/// Where each class ends in so many units.
pub(crate) fn ends(classes: &[Class], units: u32) -> Vec<u32> {
    let mut share = 0.0;
    let mut ends: Vec<u32> = classes
        .iter()
        .map(|class| {
            share += class.space;
            libm::round(share * f64::from(units)) as u32
        })
        .collect();
    if let Some(last) = ends.last_mut() {
        *last = units;
    }
    ends
}
