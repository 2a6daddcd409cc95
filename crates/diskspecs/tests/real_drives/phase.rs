//! The traces hold the phase of their drives' spindles, and show where their pauses are.

use diskperf_diskspecs::phase::{self, PhaseAssumptions, RotationalPhase, ThinkPosition};
use diskperf_diskspecs::{FastWriteSupport, SpecifiedDrive};
use std::path::Path;

/// What others found of the traces, with the whole of them: where the pauses are, the
/// period in parts per million above the nominal one, and the least R of pairs on one
/// cylinder.
const FOUND: [(&str, ThinkPosition, f64, f64); 4] = [
    ("hp_c2490a", ThinkPosition::AfterRequest, 12.0, 0.90),
    ("barracuda", ThinkPosition::BeforeRequest, -4073.0, 0.94),
    ("cheetah4LP", ThinkPosition::BeforeRequest, 46.0, 0.87),
    ("atlas10k", ThinkPosition::BeforeRequest, 2534.0, 0.87),
];
/// Half a millisecond in 250 s, of which half a trace is: so much these spindles wander.
const WANDER_PPM: f64 = 2.0;

fn assumed(drive: &SpecifiedDrive) -> PhaseAssumptions {
    let firmware = drive.firmware.expect("its electronics");
    PhaseAssumptions {
        period_us: drive.model.mechanics.nominal_period_ms() * 1e3,
        transfer_us: drive.read_sector_ms() * 1e3,
        has_write_through: firmware.buffer.fast_write == FastWriteSupport::None,
    }
}

fn found(folder: &Path, name: &str) -> RotationalPhase {
    let drive = super::drive(folder, name);
    let requests = super::requests(folder, name);
    let half = &requests[..requests.len() / 2];
    let phase = phase::find_phase(&drive.model.layout, half, &assumed(&drive));
    let phase = phase.unwrap_or_else(|| panic!("{name} has no pairs"));
    println!("{name}: {phase:?}");
    phase
}

#[test]
fn half_a_trace_shows_the_pauses_and_the_period() {
    let Some(folder) = super::folder("half_a_trace_shows_the_pauses_and_the_period") else {
        return;
    };
    for (name, think, ppm, r) in FOUND {
        let phase = found(&folder, name);
        assert_eq!(phase.think_position, Some(think), "{name}");
        assert!(phase.agreement_close >= r, "{name}: {phase:?}");
        let error_ppm = phase.period_error_us / phase.period_us * 1e6;
        let tolerance_ppm = WANDER_PPM + 4.0 * error_ppm;
        let off_ppm = (phase.period_excess_ppm - ppm).abs();
        assert!(
            off_ppm < tolerance_ppm,
            "{name}: {off_ppm} of {tolerance_ppm} ppm"
        );
        // It needs no layout to see that pauses were scheduled to fill a time.
        let slope = if think == ThinkPosition::BeforeRequest {
            -1.0
        } else {
            0.0
        };
        assert!((phase.think_slope - slope).abs() < 0.2, "{name}: {phase:?}");
    }
}

#[test]
fn pauses_in_the_wrong_place_agree_by_chance_alone() {
    let Some(folder) = super::folder("pauses_in_the_wrong_place_agree_by_chance_alone") else {
        return;
    };
    for (name, ..) in FOUND {
        let phase = found(&folder, name);
        assert!(phase.agreement > 0.9, "{name}: {phase:?}");
        // Pauses that differ little agree a little wherever they are put.
        let limit = phase.chance_agreement.max(phase.agreement / 3.0);
        assert!(phase.agreement_other_position < limit, "{name}: {phase:?}");
    }
}
