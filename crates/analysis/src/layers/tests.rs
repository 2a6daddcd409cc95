use super::*;
use crate::fixtures::{build_seqread_result, build_seqread89_run};

fn parts_of(results: &[ProgramResult], layer: ReadLayer) -> Vec<(CallPart, f64, bool)> {
    let results: Vec<&ProgramResult> = results.iter().collect();
    decompose(&results)
        .into_iter()
        .find(|one| one.layer == layer)
        .map(|one| one.cost_estimates)
        .unwrap_or_default()
        .into_iter()
        .map(|one| (one.part, one.mean_ns, one.is_distinguished))
        .collect()
}

#[test]
fn differences_of_layers_are_parts() {
    let results = [
        build_seqread_result("null", 8192, 0, &[(100, 100), (102, 102), (98, 98)]),
        build_seqread_result("zero", 8192, 1, &[(200, 200), (204, 204), (196, 196)]),
        build_seqread_result("cached", 8192, 2, &[(600, 600), (603, 603), (597, 597)]),
        build_seqread_result(
            "dropped",
            8192,
            3,
            &[(5000, 1500), (5010, 1505), (4990, 1495)],
        ),
        build_seqread_result(
            "direct",
            8192,
            4,
            &[(80_000, 3000), (80_100, 3010), (79_900, 2990)],
        ),
        build_seqread_result(
            "device",
            8192,
            5,
            &[(4000, 1100), (4010, 1105), (3990, 1095)],
        ),
    ];
    use CallPart::*;
    for (layer, parts) in [
        (ReadLayer::Null, vec![]),
        (
            ReadLayer::ZeroDevice,
            vec![(SystemCall, 100.0, true), (ClearBuffer, 100.0, true)],
        ),
        (
            ReadLayer::CachedFile,
            vec![(SystemCall, 100.0, true), (LookUpAndCopy, 500.0, true)],
        ),
        (
            ReadLayer::DroppedCache,
            vec![
                (SystemCall, 100.0, true),
                (LookUpAndCopy, 500.0, true),
                (MissHandling, 900.0, true),
                (DeviceWait, 3500.0, true),
            ],
        ),
        (
            ReadLayer::DirectFile,
            vec![
                (SystemCall, 100.0, true),
                (KernelPath, 2900.0, true),
                (DeviceWait, 77_000.0, true),
            ],
        ),
        (
            ReadLayer::BlockDevice,
            vec![
                (SystemCall, 100.0, true),
                (KernelPath, 1000.0, true),
                (DeviceWait, 2900.0, true),
            ],
        ),
    ] {
        assert_eq!(parts_of(&results, layer), parts, "{layer:?}");
    }
    assert_eq!(
        parts_of(&results[1..], ReadLayer::ZeroDevice),
        [],
        "no null beside it"
    );
}

#[test]
fn a_part_within_the_noise_keeps_its_value_and_is_not_told_apart() {
    let results = [
        build_seqread_result("null", 512, 0, &[(100, 100), (110, 110), (90, 90)]),
        build_seqread_result("zero", 512, 1, &[(103, 103), (93, 93), (83, 83)]),
    ];
    assert_eq!(
        parts_of(&results, ReadLayer::ZeroDevice),
        [
            (CallPart::SystemCall, 100.0, true),
            (CallPart::ClearBuffer, -7.0, false)
        ]
    );
    let single = [
        build_seqread_result("null", 512, 0, &[(100, 100)]),
        build_seqread_result("zero", 512, 1, &[(103, 103)]),
    ];
    assert_eq!(
        parts_of(&single, ReadLayer::ZeroDevice),
        [
            (CallPart::SystemCall, 100.0, true),
            (CallPart::ClearBuffer, 3.0, true)
        ]
    );
}

#[test]
fn parts_sum_to_the_total() {
    let run = build_seqread89_run("aaaaaaaaaa", "/a");
    let results: Vec<&ProgramResult> = run.results.iter().collect();
    let found = decompose(&results);
    assert_eq!(found.len(), 20);
    for one in found {
        let sum: f64 = one.cost_estimates.iter().map(|part| part.mean_ns).sum();
        assert!((sum - one.total_ns).abs() < 1e-6 * one.total_ns, "{one:?}");
    }
}
