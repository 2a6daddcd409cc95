//! Rates and ends of credits of the volumes of the catalogue.

use super::*;

/// A load that keeps requests in flight, and the phases that the facts expect of it: the rate in
/// requests per second, and the second at which it ends (0: never).
struct Expectation {
    system: &'static str,
    settings: &'static [(&'static str, &'static str)],
    bytes: u64,
    sequential: bool,
    depth: u32,
    service_us: u64,
    phases: &'static [(f64, f64)],
}

const fn random(
    system: &'static str,
    settings: &'static [(&'static str, &'static str)],
    bytes: u64,
    phases: &'static [(f64, f64)],
) -> Expectation {
    Expectation {
        system,
        settings,
        bytes,
        sequential: false,
        depth: 64,
        service_us: 100,
        phases,
    }
}

const fn sequential(of: Expectation) -> Expectation {
    Expectation {
        sequential: true,
        ..of
    }
}

const K16: u64 = 16 * KIB;
const EXPECTATIONS: &[Expectation] = &[
    random("gp2", &[], K16, &[(3000.0, 2000.0), (300.0, 0.0)]),
    Expectation {
        depth: 1,
        service_us: 600,
        ..random("gp2", &[], K16, &[(1666.667, 3951.2195), (300.0, 0.0)])
    },
    random(
        "gp2",
        &[("size_gib", "33")],
        K16,
        &[(3000.0, 1862.069), (100.0, 0.0)],
    ),
    random(
        "gp2",
        &[("size_gib", "334")],
        K16,
        &[(3000.0, 2702.703), (1002.0, 0.0)],
    ),
    random(
        "gp2",
        &[("size_gib", "750")],
        K16,
        &[(3000.0, 7200.0), (2250.0, 0.0)],
    ),
    random("gp2", &[("size_gib", "1000")], K16, &[(3000.0, 0.0)]),
    random("gp2", &[("size_gib", "16384")], K16, &[(16000.0, 0.0)]),
    random(
        "gp2",
        &[("size_gib", "200")],
        256 * KIB,
        &[(1000.0, 13500.0), (600.0, 0.0)],
    ),
    sequential(random("st1", &[], MIB, &[(250.0, 4993.2190), (40.0, 0.0)])),
    sequential(random(
        "st1",
        &[("size_gib", "5120")],
        MIB,
        &[(500.0, 17476.2667), (200.0, 0.0)],
    )),
    sequential(random("sc1", &[], MIB, &[(80.0, 15420.2353), (12.0, 0.0)])),
    random("st1", &[], K16, &[(250.0, 4993.2190), (40.0, 0.0)]),
    sequential(random(
        "st1",
        &[],
        K16,
        &[(16000.0, 4993.2190), (2560.0, 0.0)],
    )),
    random(
        "io1",
        &[("size_gib", "400"), ("iops", "20000")],
        256 * KIB,
        &[(2000.0, 0.0)],
    ),
    random(
        "io1",
        &[("size_gib", "960"), ("iops", "48000")],
        256 * KIB,
        &[(3000.0, 0.0)],
    ),
    random("io2", &[("iops", "10000")], 256 * KIB, &[(10000.0, 0.0)]),
    random("pd-balanced", &[], K16, &[(3600.0, 0.0)]),
    random("pd-balanced", &[], MIB, &[(168.0, 0.0)]),
    random("pd-standard", &[], K16, &[(187.5, 0.0)]),
    random("pd-standard", &[], MIB, &[(30.0, 0.0)]),
    random("pd-ssd", &[], K16, &[(9000.0, 0.0)]),
    random(
        "hyperdisk-balanced",
        &[("iops", "9000")],
        4 * KIB,
        &[(9000.0, 0.0)],
    ),
    random(
        "premium-ssd",
        &[],
        64 * KIB,
        &[(2593.994, 1800.0), (1525.879, 3389.67), (500.0, 0.0)],
    ),
    random(
        "premium-ssd",
        &[("tier", "P20")],
        64 * KIB,
        &[(2593.994, 1800.0), (2288.818, 0.0)],
    ),
    random(
        "premium-ssd-v2",
        &[("size_gib", "6")],
        4 * KIB,
        &[(3000.0, 0.0)],
    ),
    random("ultra", &[], 4 * KIB, &[(3000.0, 0.0)]),
    random(
        "standard-ssd",
        &[],
        4 * KIB,
        &[(600.0, 1800.0), (500.0, 0.0)],
    ),
];

/// gp3 without what it saves over a second, which only hides the first one.
const NO_SLACK: (&str, &str) = ("pace_slack_ms", "0");
const LARGE: (&str, &str) = ("size_gib", "500");

const ON_GP3: &[Expectation] = &[
    sequential(random("gp3", &[NO_SLACK], 4 * KIB, &[(32000.0, 0.0)])),
    random("gp3", &[NO_SLACK], 4 * KIB, &[(3000.0, 0.0)]),
    random("gp3", &[NO_SLACK], 64 * KIB, &[(2000.0, 0.0)]),
    random("gp3", &[NO_SLACK], MIB, &[(125.0, 0.0)]),
    random(
        "gp3",
        &[
            NO_SLACK,
            LARGE,
            ("iops", "16000"),
            ("bytes_per_s", "1048576000"),
            ("instance", "m5.large"),
        ],
        K16,
        &[(16000.0, 2199.1935), (3600.0, 0.0)],
    ),
    random(
        "gp3",
        &[
            NO_SLACK,
            LARGE,
            ("iops", "16000"),
            ("bytes_per_s", "1048576000"),
            ("instance", "m5.large"),
        ],
        128 * KIB,
        &[(4529.953, 1800.0), (619.888, 0.0)],
    ),
];

#[test]
fn rates_and_ends_of_credits_are_those_of_the_vendors() {
    for (index, row) in EXPECTATIONS.iter().chain(ON_GP3).enumerate() {
        let of = volume(row.system, row.settings).expect("a volume of the catalogue");
        let load = FluidLoad {
            arrivals: FluidArrivals::Closed {
                depth: row.depth,
                service_ns: row.service_us * 1000,
            },
            charges: charges(&of, row.bytes, row.sequential, false),
        };
        let found = rates(&merge_equal(&phases(&of, &load, 60_000 * SECOND)));
        let row_text = format!("row {index}: {} {:?}: {found:?}", row.system, row.settings);
        // Phases in which another limit's credits end without a change of rate are one.
        assert_eq!(found.len(), row.phases.len(), "{row_text}");
        for (found, expected) in found.iter().zip(row.phases) {
            assert!((found.0 / expected.0 - 1.0).abs() < 1e-6, "{row_text}");
            let end = if expected.1 == 0.0 {
                60_000.0
            } else {
                expected.1
            };
            assert!((found.1 - end).abs() < 0.006, "{row_text}");
        }
    }
}

/// Phases with those of one rate joined.
fn merge_equal(phases: &[Phase]) -> Vec<Phase> {
    let mut merged: Vec<Phase> = Vec::new();
    for phase in phases {
        match merged.last_mut() {
            Some(last) if last.nanorequests_per_s == phase.nanorequests_per_s => {
                last.end_ns = phase.end_ns;
            }
            _ => merged.push(*phase),
        }
    }
    merged
}

#[test]
fn gp2_serves_six_million_requests_before_its_credits_end() {
    let of = volume("gp2", &[]).expect("gp2");
    let found = phases(&of, &closed(&of, K16, 32, 1000), 4000 * SECOND);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].end_ns, 2000 * SECOND);
    assert_eq!(found[0].served(), 6_000_000 * NANOREQUESTS);
    assert_eq!(found[1].served(), 600_000 * NANOREQUESTS);
    let ended = found[1].limit.expect("a limit");
    assert_eq!(ended.kind, VolumeLimit::VolumeRequests);
    assert!(ended.credits_ended && !found[0].limit.expect("a limit").credits_ended);
}

#[test]
fn an_empty_bucket_earns_its_base_rate_and_is_full_after_its_size() {
    let of = volume("gp2", &[("credits_at_start_share", "0")]).expect("gp2");
    let mut fluid = FluidVolume::new(&of);
    let credits =
        |fluid: &FluidVolume| fluid.credits(VolumeLimit::VolumeRequests).expect("credits");
    assert_eq!(credits(&fluid), 0);
    fluid.rest(60 * SECOND);
    assert_eq!(credits(&fluid), 18_000 * 1_000_000_000_000);
    let mut found = Vec::new();
    fluid.run(&closed(&of, K16, 32, 1000), 20 * SECOND, |phase| {
        found.push(phase)
    });
    assert_eq!(found[0].duration_ns(), 6_666_666_667);
    for (size, refill_s) in [("100", 18_000.0), ("334", 5_389.2), ("750", 2_400.0)] {
        let of = [("credits_at_start_share", "0"), ("size_gib", size)];
        let mut fluid = FluidVolume::new(&volume("gp2", &of).expect("gp2"));
        let mut fills = None;
        fluid.run(
            &open(&volume("gp2", &of).expect("gp2"), K16, 0),
            20_000 * SECOND,
            |phase| {
                fills = fills.or(Some(phase.end_ns));
            },
        );
        let fills = fills.expect("a phase") as f64 / 1e9;
        assert!((fills - refill_s).abs() < 0.03, "{size} GiB: {fills}");
    }
}

#[test]
fn credits_of_azure_are_half_an_hour_of_the_difference() {
    let credits = |settings: &[(&str, &str)], kind| {
        let fluid = FluidVolume::new(&volume("premium-ssd", settings).expect("a size"));
        fluid.credits_max(kind).expect("credits") / 1_000_000_000_000
    };
    let p4 = [("tier", "P4")];
    assert_eq!(credits(&p4, VolumeLimit::VolumeRequests), 6_084_000);
    assert_eq!(credits(&p4, VolumeLimit::VolumeBytes), 261_000_000_000);
    let p20 = [("tier", "P20"), ("credits_at_start_share", "0")];
    let refill = credits(&p20, VolumeLimit::VolumeRequests) as f64 / 2300.0;
    assert!((refill - 939.13).abs() < 0.01, "{refill}");
}

#[test]
fn what_a_size_cannot_have_is_refused_by_its_key() {
    type Refusal = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
    );
    let cases: &[Refusal] = &[
        (
            "gp3",
            &[("iops", "16000"), ("size_gib", "20")],
            "10000 requests/s at most",
        ),
        (
            "gp3",
            &[("bytes_per_s", "1048576000")],
            "786432000 bytes/s at most",
        ),
        ("io1", &[("iops", "5001")], "5000 requests/s at most"),
        (
            "premium-ssd-v2",
            &[("size_gib", "6"), ("iops", "3001")],
            "3000 requests/s at most",
        ),
        ("premium-ssd", &[("tier", "P5")], "P5"),
        ("gp3", &[("instance", "m5.huge")], "m5.huge"),
        ("st1", &[("size_gib", "124")], "125 to 16384 GiB"),
        (
            "gp3",
            &[("read_service_us", "[1, 2]")],
            "do not form a distribution",
        ),
        ("gp3", &[("fetch_max_ms", "1")], "less than fetch_min_ms"),
    ];
    for (system, settings, says) in cases {
        let error = volume(system, settings).expect_err(says);
        assert!(error.contains(says), "{system} {settings:?}: {error}");
    }
    for (settings, most) in [
        ([("iops", "8000")], "2000000000"),
        ([("iops", "3000")], "750000000"),
    ] {
        let all = [settings[0], ("bytes_per_s", most)];
        volume("premium-ssd-v2", &all).expect("as many bytes as its requests permit");
    }
}

/// QEMU's leaky bucket: 100 requests/s, 2000 for a minute.
#[test]
fn a_leaky_bucket_of_qemu_ends_by_what_is_over_its_leak() {
    let mut of = VolumeSpecification::unlimited(1 << 20, diskperf_sim::Time(100_000));
    of.limits = vec![limit(
        VolumeLimit::VolumeRequests,
        100,
        Some((2000, 120_000)),
    )];
    for (offered, end_s) in [(5000, 63.158), (1000, 133.333)] {
        let found = phases(&of, &open(&of, 4096, offered), 200 * SECOND);
        let end = found[0].end_ns as f64 / 1e9;
        assert!((end - end_s).abs() < 0.001, "{offered}: {end}");
    }
}

#[test]
fn the_bytes_of_an_instance_end_apart_from_its_requests() {
    let of = volume(
        "gp3",
        &[
            NO_SLACK,
            LARGE,
            ("iops", "16000"),
            ("bytes_per_s", "1048576000"),
            ("instance", "m5.large"),
        ],
    )
    .expect("gp3");
    let mut only_bytes = of.clone();
    only_bytes
        .limits
        .retain(|limit| limit.kind != VolumeLimit::InstanceRequests);
    let found = phases(&only_bytes, &closed(&of, K16, 64, 100), 6000 * SECOND);
    let end = found[0].end_ns as f64 / 1e9;
    assert!((end - 5099.67).abs() < 0.01, "{end}");
}
