//! Splitting, merging and minimum charges.

use super::*;

fn charge(of: &VolumeSpecification, requests: &[(u64, u64)]) -> (u64, u64) {
    let mut meter = Meter::new(of.charge_rules);
    let mut total = ChargeTotal::default();
    for (start_byte, bytes) in requests {
        let request = ChargedRequest {
            start_byte: *start_byte,
            bytes: *bytes,
            is_write: false,
        };
        total.add(meter.pass(request), false);
    }
    (total.reads.operations, total.reads.bytes)
}

#[test]
fn requests_are_split_merged_and_charged_whole() {
    let ssd = volume("gp3", &[]).expect("gp3");
    let azure = volume("premium-ssd", &[]).expect("P10");
    let disk = volume("st1", &[]).expect("st1");
    let stream = |count: u64, bytes: u64| -> Vec<(u64, u64)> {
        (0..count).map(|number| (number * bytes, bytes)).collect()
    };
    let cases = [
        (&ssd, vec![(0, MIB)], (4, MIB)),
        (&ssd, vec![(0, 4 * KIB), (MIB, 4 * KIB)], (2, 8 * KIB)),
        (&ssd, stream(64, 4 * KIB), (1, 256 * KIB)),
        (&ssd, stream(65, 4 * KIB), (2, 260 * KIB)),
        (
            &ssd,
            vec![(0, 300 * KIB), (300 * KIB, 212 * KIB)],
            (2, 512 * KIB),
        ),
        // Two streams that take turns are merged apart.
        (
            &ssd,
            vec![(0, 4096), (GIB, 4096), (4096, 4096), (GIB + 4096, 4096)],
            (2, 16384),
        ),
        (&azure, stream(64, 4 * KIB), (64, 256 * KIB)),
        (&disk, vec![(0, 16 * KIB), (GIB, 16 * KIB)], (2, 2 * MIB)),
        // The first request of a stream is charged as a random one.
        (&disk, stream(64, 16 * KIB), (1, MIB + 63 * 16 * KIB)),
    ];
    for (index, (of, requests, expected)) in cases.into_iter().enumerate() {
        assert_eq!(charge(of, &requests), expected, "case {index}");
    }
}

/// 495 requests of 16 KiB and one of 2 MiB in a second: 503 operations, above the 500 of a P10.
#[test]
fn a_large_request_is_charged_as_the_operations_that_it_is_split_into() {
    let of = volume("premium-ssd", &[]).expect("P10");
    let mut requests: Vec<(u64, u64)> = (0..495).map(|at| (at * MIB, 16 * KIB)).collect();
    requests.push((GIB, 2 * MIB));
    assert_eq!(charge(&of, &requests).0, 503);
}

#[test]
fn a_read_of_pd_standard_costs_as_much_as_two_writes() {
    let of = volume("pd-standard", &[]).expect("pd-standard");
    let rate = |is_write| {
        let load = FluidLoad {
            arrivals: FluidArrivals::Closed {
                depth: 64,
                service_ns: 1000,
            },
            charges: charges(&of, 4 * KIB, false, is_write),
        };
        rates(&phases(&of, &load, SECOND))[0].0
    };
    assert_eq!((rate(false), rate(true)), (187.5, 375.0));
}
