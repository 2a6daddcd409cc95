//! Skewed writes: classes of mapping units with the same write rate.

use crate::past::PreconditionState;
use crate::specification::ImpossibleSpecification;

/// Number of classes of Zipf preconditioning. Each spans the same ratio of ranks.
const ZIPF_CLASS_COUNT: i32 = 24;

/// Class of logical units (a contiguous range) with the same write rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AccessClass {
    pub(crate) write_share: f64,
    /// Share of the mapping units in the class.
    pub(crate) space_share: f64,
}

/// Returns the classes of random preconditioning, the hottest first.
///
/// # Errors
/// When a share is not within 0 to 1.
pub(crate) fn access_classes(
    past: PreconditionState,
    logical_units: u32,
) -> Result<Vec<AccessClass>, ImpossibleSpecification> {
    let classes = match past {
        PreconditionState::Fresh | PreconditionState::Sequential | PreconditionState::Random => {
            vec![AccessClass {
                write_share: 1.0,
                space_share: 1.0,
            }]
        }
        PreconditionState::HotCold {
            writes_percent,
            space_percent,
        } => {
            let (writes, space) = (
                f64::from(writes_percent) / 100.0,
                f64::from(space_percent) / 100.0,
            );
            let cold = AccessClass {
                write_share: 1.0 - writes,
                space_share: 1.0 - space,
            };
            vec![
                AccessClass {
                    write_share: writes,
                    space_share: space,
                },
                cold,
            ]
        }
        PreconditionState::Zipf { theta_percent } => {
            zipf_classes(f64::from(theta_percent) / 100.0, f64::from(logical_units))
        }
    };
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let works =
        (classes.iter()).all(|class| is_share(class.write_share) && is_share(class.space_share));
    works
        .then_some(classes)
        .ok_or(ImpossibleSpecification::InvalidShare)
}

/// Returns the classes of Zipf preconditioning: the mapping unit of rank k is written in proportion
/// to k to the power of -theta.
fn zipf_classes(theta: f64, units: f64) -> Vec<AccessClass> {
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
        let share = f64::from(class) / f64::from(ZIPF_CLASS_COUNT);
        libm::round(libm::pow(units, share)) * f64::from(u8::from(class > 0))
    };
    (0..ZIPF_CLASS_COUNT)
        .map(|class| (edge(class), edge(class + 1)))
        .filter(|(low, high)| high > low)
        .map(|(low, high)| AccessClass {
            write_share: (sum(high) - sum(low)) / sum(units),
            space_share: (high - low) / units,
        })
        .collect()
}

/// Returns the end of each class among `units` logical units.
pub(crate) fn class_ends(classes: &[AccessClass], units: u32) -> Vec<u32> {
    let mut share = 0.0;
    let mut ends: Vec<u32> = classes
        .iter()
        .map(|class| {
            share += class.space_share;
            libm::round(share * f64::from(units)) as u32
        })
        .collect();
    if let Some(last) = ends.last_mut() {
        *last = units;
    }
    ends
}
