//! The drive against its data sheet, against exact arithmetic, and against
//! queueing theory.

mod geometry;
mod passage;
#[path = "../support/queueing.rs"]
mod queueing;
mod queues;
mod rotation;
mod seek;

use diskperf_device::disk::seek::{SeekCurve, SeekSpecification};
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_machine::hardware::mechanism::{
    DiskFormat, DiskGeometry, Mechanics, Mechanism, TrackZone,
};
use diskperf_sim::Time;

/// The Eagle's data sheet, as shape and seek times; tests that hang on
/// nothing of it vary it.
fn eagle() -> Mechanics {
    mechanics(plain((842, 20, 48), 0, 1))
}

/// Cylinders, heads and sectors of one zone without skew and defects.
fn format((cylinders, heads, sectors): (u32, u32, u32), spare: u32, interleave: u32) -> DiskFormat {
    DiskFormat {
        cylinders,
        heads,
        sector_bytes: 512,
        zones: zones(&[(0, sectors)]),
        spare_slots_per_track: spare,
        interleave_step: interleave,
        ..DiskFormat::default()
    }
}

/// First cylinders, and sectors of a track.
fn zones(zones: &[(u32, u32)]) -> Vec<TrackZone> {
    let zone = |(first_cylinder, sectors_per_track): &(u32, u32)| TrackZone {
        first_cylinder: *first_cylinder,
        sectors_per_track: *sectors_per_track,
    };
    zones.iter().map(zone).collect()
}

fn built(format: &DiskFormat) -> DiskGeometry {
    DiskGeometry::new(format).expect("a geometry")
}

fn plain(shape: (u32, u32, u32), spare: u32, interleave: u32) -> DiskGeometry {
    built(&format(shape, spare, interleave))
}

/// A drive of this shape whose other times are zero.
fn mechanics(geometry: DiskGeometry) -> Mechanics {
    let seek = SeekSpecification::DataSheet {
        single_cylinder_ms: 5.0,
        average_ms: 18.0,
        full_stroke_ms: 35.0,
    };
    let flat = SeekSpecification::Constant { time_ms: 5.0 };
    let curve = |of| SeekCurve::new(of, geometry.cylinders());
    Mechanics {
        seek_curve: curve(&seek)
            .or_else(|_| curve(&flat))
            .expect("a flat curve always fits"),
        geometry,
        settle_time: Time::ZERO,
        write_settle_time: Time::ZERO,
        head_switch_time: Time::ZERO,
    }
}

const EAGLE_RPM: f64 = 3961.0;

fn drive(mechanics: Mechanics, rpm: f64) -> Mechanism {
    Mechanism::new(mechanics, Spindle::from_rpm(rpm, RotationAngle::ZERO))
}

/// Asserts that two times are the same but for this many roundings to a
/// whole nanosecond.
#[track_caller]
fn assert_near(one: Time, other: Time, roundings: u64) {
    assert!(
        one.0.abs_diff(other.0) <= roundings,
        "{} ns and {} ns differ by more than {roundings} ns",
        one.0,
        other.0
    );
}
