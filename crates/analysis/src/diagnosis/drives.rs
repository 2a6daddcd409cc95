//! Causes in the construction of drives: rotation, positions of sectors and arm movements.

use super::causes::{
    CandidateCause, CauseRank, describe_both_values, log_ratio_if_different, new_cause,
};
use super::measures::TraceMeasures;
use super::samples::median;
use super::{DrivePart, SuspectedComponent};
use crate::explanation::words;
use diskperf_timeline::trace::{DiskPosition, Position};
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// Minimum share of the common sectors with another position that counts as another layout. A
/// smaller share may be replaced defects.
const MOVED_SHARE_MIN: f64 = 0.1;
/// Maximum number of heads for which a sector numbering is tried.
const HEADS_MAX: u64 = 64;
/// Maximum number of spare sectors per track for which a sector numbering is tried.
const SPARE_SECTORS_MAX: usize = 8;

/// Finds the differences in the construction of the drives.
pub(super) fn find_shape_causes(
    a: (&Trace, &TraceMeasures),
    b: (&Trace, &TraceMeasures),
) -> Vec<CandidateCause> {
    let mut found = find_platter_causes(a, b);
    let drive = |size: f64, evidence| {
        new_cause(
            SuspectedComponent::Drive,
            (CauseRank::Shape, size),
            evidence,
        )
    };
    let (one, other) = (a.1, b.1);
    let drives = a.0.drives.len().min(b.0.drives.len()) as u32;
    found.extend((0..drives).filter_map(|number| find_numbering_cause(a, b, number)));
    let has_firmware = one.has_firmware && other.has_firmware;
    found.extend(match has_firmware {
        true => find_seek_curve_cause(one, other),
        false => find_seek_cause(one, other),
    });
    for stage in [Stage::Settle, Stage::WriteSettle, Stage::HeadSwitch] {
        let usual = |of: &TraceMeasures| match (has_firmware, stage) {
            // A disk with firmware changes heads on the way: what is left of that behind a
            // seek is as long as the seeks are short.
            (true, Stage::HeadSwitch) => of.disk_measures.accesses.head_switch_ns,
            (true, Stage::WriteSettle) => of.disk_measures.accesses.write_settle_ns,
            _ => of.median_stage_ns(stage),
        };
        // One that never comes by tells nothing of what it would take.
        let comes = !has_firmware || usual(one).is_some() && usual(other).is_some();
        if let Some(size) = log_ratio_if_different(usual(one), usual(other)).filter(|_| comes) {
            let evidence =
                describe_both_values(&words::stage_label(stage), usual(one), usual(other));
            found.push(drive(size, evidence));
        }
    }
    if has_firmware {
        found = found
            .into_iter()
            .map(|cause| cause.with_part(DrivePart::Mechanism))
            .collect();
    }
    found
}

fn find_seek_cause(one: &TraceMeasures, other: &TraceMeasures) -> Option<CandidateCause> {
    let seeks = one.seek_ns_by_drive_and_distance.iter();
    let mut ratios: Vec<f64> = seeks
        .filter_map(|(way, ns)| {
            Some((*other.seek_ns_by_drive_and_distance.get(way)? as f64 / *ns as f64).ln())
        })
        .collect();
    let size = median(&mut ratios).filter(|size| size.abs() > 5e-3)?;
    let evidence = format!(
        "seeks over the same distance take {:.2} times as long",
        size.exp()
    );
    Some(new_cause(
        SuspectedComponent::Drive,
        (CauseRank::Shape, size.abs()),
        evidence,
    ))
}

/// Minimum number of distances by which two seek curves are distinguished.
const DISTANCE_COUNT_MIN: usize = 5;
/// Factor between the shortest and the longest seek distance of one section of a seek curve.
const SECTION_DISTANCE_RATIO: u32 = 8;
/// Maximum ratio of two measured distances between which a seek curve is interpolated.
const INTERPOLATION_RATIO_MAX: f64 = 1.25;
/// Maximum absolute logarithm of the ratio at which two interpolated seek curves count as equal.
const EQUAL_CURVE_LOG_RATIO_MAX: f64 = 0.02;

/// Compares seek curves of disks with so many cylinders that two runs share few distances. Each
/// curve is interpolated at the other's points. The comparison goes by sections, since short and
/// long seeks consist of different phases.
fn find_seek_curve_cause(one: &TraceMeasures, other: &TraceMeasures) -> Option<CandidateCause> {
    let mut stretches: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((drive, distance), ns) in &one.seek_ns_by_drive_and_distance {
        if let Some(there) = interpolate_seek_ns(other, (*drive, *distance)) {
            let stretch = distance.ilog(SECTION_DISTANCE_RATIO);
            let ratio = (there / *ns as f64).ln();
            stretches.entry(stretch).or_default().push(ratio);
        }
    }
    let of_stretch = |(stretch, mut ratios): (u32, Vec<f64>)| {
        let few = ratios.len() < DISTANCE_COUNT_MIN && stretch > 0;
        let size =
            median(&mut ratios).filter(|size| !few && size.abs() > EQUAL_CURVE_LOG_RATIO_MAX)?;
        Some((stretch, size))
    };
    let found = stretches.into_iter().filter_map(of_stretch);
    let (stretch, size) = found.max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))?;
    let from = SECTION_DISTANCE_RATIO.pow(stretch);
    let evidence = format!(
        "seeks over {from} to {} cylinders take {:.2} times as long",
        from.saturating_mul(SECTION_DISTANCE_RATIO) - 1,
        size.exp()
    );
    Some(new_cause(
        SuspectedComponent::Drive,
        (CauseRank::Shape, size.abs()),
        evidence,
    ))
}

fn interpolate_seek_ns(measures: &TraceMeasures, (drive, distance): (u32, u32)) -> Option<f64> {
    let below = measures
        .seek_ns_by_drive_and_distance
        .range((drive, 1)..=(drive, distance))
        .next_back()?;
    let above = measures
        .seek_ns_by_drive_and_distance
        .range((drive, distance)..=(drive, u32::MAX))
        .next()?;
    let (low, high) = (f64::from(below.0.1), f64::from(above.0.1));
    if high > low * INTERPOLATION_RATIO_MAX {
        return None;
    }
    let share = match high > low {
        true => (f64::from(distance) - low) / (high - low),
        false => 0.0,
    };
    Some(*below.1 as f64 + share * (*above.1 as f64 - *below.1 as f64))
}

/// Compares the positions of a drive's sectors in two runs.
fn find_numbering_cause(
    a: (&Trace, &TraceMeasures),
    b: (&Trace, &TraceMeasures),
    number: u32,
) -> Option<CandidateCause> {
    let own = a.1.sector_positions.range((number, 0)..=(number, u64::MAX));
    let both = own.filter_map(|(at, place)| Some((place, b.1.sector_positions.get(at)?)));
    let (mut common, mut moved) = (0.0_f64, 0.0_f64);
    for (place, at) in both {
        common += 1.0;
        moved += f64::from(u8::from(place != at));
    }
    let (size, evidence) = if moved > common * MOVED_SHARE_MIN {
        (
            moved / common,
            "the same sectors are at other positions on the drive",
        )
    } else if common == 0.0 && !has_same_numbering(a.0, b.0, number) {
        (
            1.0,
            "sectors are numbered differently over tracks and cylinders",
        )
    } else {
        return None;
    };
    Some(new_cause(
        SuspectedComponent::Drive,
        (CauseRank::Shape, size),
        evidence.to_owned(),
    ))
}

fn find_platter_causes(
    a: (&Trace, &TraceMeasures),
    b: (&Trace, &TraceMeasures),
) -> Vec<CandidateCause> {
    let mut found = Vec::new();
    for (one, other) in a.0.drives.iter().zip(&b.0.drives) {
        let size = (other.revolution_ns / one.revolution_ns).ln().abs();
        if size > 1e-4 {
            let evidence = describe_both_values(
                "a revolution",
                Some(one.revolution_ns),
                Some(other.revolution_ns),
            );
            found.push(new_cause(
                SuspectedComponent::Drive,
                (CauseRank::Shape, size),
                evidence,
            ));
        }
    }
    let drives = a.0.drives.len().min(b.0.drives.len()) as u32;
    found.extend((0..drives).filter_map(|drive| find_track_cause(a, b, drive)));
    found
}

/// Compares the division of tracks that both runs access. Other tracks do not count: the slots
/// differ by zone, and the order of service determines which zone comes first.
fn find_track_cause(
    a: (&Trace, &TraceMeasures),
    b: (&Trace, &TraceMeasures),
    drive: u32,
) -> Option<CandidateCause> {
    let slots = |of: &TraceMeasures| -> BTreeMap<(u32, u32), u32> {
        let own = of.sector_positions.range((drive, 0)..=(drive, u64::MAX));
        own.filter_map(|(_, place)| match place {
            Position::Disk(at) => Some(((at.cylinder, at.head), at.slots)),
            Position::Flash { .. } => None,
        })
        .collect()
    };
    let bytes = |of: &Trace| of.drives[drive as usize].sector_bytes;
    let there = slots(b.1);
    let mut both = slots(a.1)
        .into_iter()
        .filter_map(|(track, slots)| Some((slots, *there.get(&track)?)));
    let (one, other) = both.find(|(one, other)| one != other || bytes(a.0) != bytes(b.0))?;
    let evidence = format!(
        "a track has {one} slots of {} bytes in one run and {other} of {} in the other",
        bytes(a.0),
        bytes(b.0)
    );
    Some(new_cause(
        SuspectedComponent::Drive,
        (CauseRank::Shape, 1.0),
        evidence,
    ))
}

/// Tests whether one numbering of a drive's sectors, with a fixed number of sectors per track and
/// heads per cylinder, matches the positions of all requests in both runs. Where no such numbering
/// fits a run, as on a drive with zones, the result is `true`.
fn has_same_numbering(a: &Trace, b: &Trace, drive: u32) -> bool {
    let numberings = |trace: &Trace| -> Vec<(u64, u64)> {
        let own = trace.requests.iter().filter(|one| one.drive_index == drive);
        let places: Vec<(u64, DiskPosition)> = own
            .filter_map(|one| Some((one.sector, one.disk_position()?)))
            .collect();
        let slots = places.first().map_or(0, |(_, on)| u64::from(on.slots));
        let sectors = (1..=slots).rev().take(SPARE_SECTORS_MAX + 1);
        let all = sectors.flat_map(|sectors| (1..=HEADS_MAX).map(move |heads| (heads, sectors)));
        let fits = |(heads, sectors): &(u64, u64)| {
            places.iter().all(|(sector, on)| {
                let track = sector / sectors;
                (track / heads, track % heads) == (u64::from(on.cylinder), u64::from(on.head))
            })
        };
        all.filter(fits).collect()
    };
    let (of_a, of_b) = (numberings(a), numberings(b));
    of_a.is_empty() || of_b.is_empty() || of_a.iter().any(|one| of_b.contains(one))
}
