//! The disk of 1990 to 2026 against its data sheets, exact arithmetic, and what the
//! literature says of queues.

mod arm;
mod bus;
mod cache;
mod device;
mod expectations;
mod expected;
mod layout;
mod measured;
mod mechanism;
mod power_cut;
mod queue;
mod seek;
mod shingled;
mod streams;
mod write_buffer;

use diskperf_device::disk::layout::{LayoutSpecification, Sparing, TrackOrder, ZoneSpecification};
use diskperf_device::disk::mechanism::{Mechanism, MechanismSpecification};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::RotationAngle;

const PERIOD_7200_NS: f64 = 60e9 / 7200.0;

/// One zone over all cylinders, without skew.
fn one_zone((cylinders, surfaces, sectors_per_track): (u32, u32, u32)) -> LayoutSpecification {
    LayoutSpecification {
        surface_count: surfaces,
        cylinder_count: cylinders,
        track_order: TrackOrder::Cylinders,
        sparing: Sparing::None,
        zones: vec![ZoneSpecification {
            last_cylinder: cylinders - 1,
            sectors_per_track,
            ..ZoneSpecification::default()
        }],
        extents: Vec::new(),
        sector_count: None,
    }
}

/// A mechanism of 7200 rpm whose arm takes 2 ms over any distance.
fn plain(layout: LayoutSpecification) -> MechanismSpecification {
    MechanismSpecification {
        write_seek: None,
        inward_ms: [0.0; 2],
        same_track_ms: [0.0; 2],
        layout,
        seek: SeekSpecification::Constant { time_ms: 2.0 },
        head_switch_ms: 0.0,
        write_settle_ms: 0.0,
        period_ns: PERIOD_7200_NS,
        zero_latency_reads: false,
        zero_latency_writes: false,
    }
}

fn built(specification: &MechanismSpecification) -> Mechanism {
    Mechanism::new(specification, RotationAngle::ZERO).expect("a sound mechanism")
}

#[track_caller]
fn assert_close(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} is not {expected} to within {share}"
    );
}
