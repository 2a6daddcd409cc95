//! Any drive and any requests: refused with the reason, or every law holds, nothing is
//! lost, and no write waits for ever.

use diskperf_ftl::{
    DataSeparation, DieAllocation, Features, Ftl, Geometry, ImpossibleSpecification,
    PreconditionState, SlcCache, Specification, UntimedFtl, VictimPolicy,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
enum Request {
    Write(u32, u32),
    Paced(u32, u32),
    Trim(u32),
    Locate(u32),
    System(u32),
    Pad(u32),
    Fold,
    Refresh(u32),
}

fn any_request() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => (any::<u32>(), any::<u32>()).prop_map(|(unit, stream)| Request::Write(unit, stream)),
        6 => (any::<u32>(), any::<u32>()).prop_map(|(unit, stream)| Request::Paced(unit, stream)),
        2 => any::<u32>().prop_map(Request::Trim),
        1 => any::<u32>().prop_map(Request::Locate),
        1 => any::<u32>().prop_map(Request::System),
        1 => any::<u32>().prop_map(Request::Pad),
        1 => Just(Request::Fold),
        1 => any::<u32>().prop_map(Request::Refresh),
    ]
}

fn any_policy() -> impl Strategy<Value = VictimPolicy> {
    prop_oneof![
        Just(VictimPolicy::Greedy),
        (0..5u32).prop_map(VictimPolicy::RandomChoices),
        Just(VictimPolicy::OldestFirst),
        Just(VictimPolicy::CostBenefit),
    ]
}

fn any_separation() -> impl Strategy<Value = DataSeparation> {
    prop_oneof![
        Just(DataSeparation::Mixed),
        Just(DataSeparation::MovedApart),
        Just(DataSeparation::ByStream),
    ]
}

fn any_past() -> impl Strategy<Value = PreconditionState> {
    prop_oneof![
        2 => Just(PreconditionState::Fresh),
        2 => Just(PreconditionState::Sequential),
        3 => Just(PreconditionState::Random),
        2 => (0..=120u8, 0..=120u8).prop_map(|(writes_percent, space_percent)| PreconditionState::HotCold {
            writes_percent,
            space_percent,
        }),
        1 => (0..=200u8).prop_map(|theta_percent| PreconditionState::Zipf { theta_percent }),
    ]
}

/// Some of them cannot be.
fn any_specification() -> impl Strategy<Value = Specification> {
    let geometry = (0..60u32, 0..5u32, 0..7u32, 0..6u32);
    let thresholds = (1..4u32, 0..4u32, 0..4u32);
    (
        geometry,
        0..=110u64,
        any_policy(),
        any_separation(),
        thresholds,
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(
            |(
                (superblocks, dies, program_units, rows),
                percent,
                policy,
                separation,
                (streams, hard, more),
                levels,
                seed,
            )| {
                let geometry = Geometry {
                    superblock_count: superblocks,
                    die_count: dies,
                    units_per_program: program_units,
                    rows_per_superblock: rows,
                };
                let units = u64::from(geometry.superblock_units()) * u64::from(superblocks);
                let hard_free = hard + streams + 1;
                Specification {
                    geometry,
                    logical_units: (units * percent / 100) as u32,
                    policy,
                    separation,
                    stream_count: streams,
                    soft_free_superblocks: hard_free + more,
                    hard_free_superblocks: hard_free,
                    wear_threshold_erases: levels.then_some(5),
                    seed,
                }
            },
        )
}

fn any_features() -> impl Strategy<Value = Features> {
    let cache = prop::option::of((1..5u32, 0..3u32, 0..6u32).prop_map(
        |(bits, fixed_superblocks, dynamic_superblocks)| SlcCache {
            bits_per_cell: bits,
            fixed_superblocks,
            dynamic_superblocks,
        },
    ));
    let parity = prop::option::weighted(0.3, 1..4u32);
    (
        0..6u32,
        any::<bool>(),
        cache,
        parity,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(system_units, next_free, cache, parity, power_cuts, anonymous)| Features {
                system_units,
                allocation: match next_free {
                    true => DieAllocation::PreferredDie,
                    false => DieAllocation::RoundRobin,
                },
                slc_cache: cache,
                parity_stripe_programs: parity,
                tracks_power_cuts: power_cuts,
                anonymous_precondition: anonymous,
            },
        )
}

/// The drive, and which of its units are mapped.
struct Drive {
    instant: UntimedFtl,
    mapped: BTreeSet<u32>,
}

impl Drive {
    fn serve(&mut self, request: &Request) {
        let Specification {
            logical_units,
            stream_count: streams,
            geometry,
            ..
        } = *self.instant.ftl().specification();
        let system_units = self.instant.ftl().features().system_units;
        match *request {
            Request::Write(unit, stream) => {
                self.instant.write(unit % logical_units, stream % streams);
                self.mapped.insert(unit % logical_units);
            }
            Request::Paced(unit, stream) => {
                self.instant
                    .write_paced(unit % logical_units, stream % streams);
                self.mapped.insert(unit % logical_units);
            }
            Request::Trim(unit) => {
                let was = self.instant.trim(unit % logical_units);
                assert_eq!(was, self.mapped.remove(&(unit % logical_units)));
            }
            Request::Locate(unit) => {
                let place = self.instant.locate(unit % logical_units);
                assert_eq!(
                    place.is_some(),
                    self.mapped.contains(&(unit % logical_units))
                );
            }
            Request::System(_) if system_units == 0 => {}
            Request::System(unit) => self.instant.write_system(unit % system_units),
            Request::Pad(stream) => self.instant.pad_program(stream % streams),
            Request::Fold => {
                self.instant.fold_cache_superblock();
            }
            Request::Refresh(superblock) => {
                self.instant
                    .refresh_superblock(superblock % geometry.superblock_count);
            }
        }
    }

    fn check(&self) {
        let ftl = self.instant.ftl();
        ftl.check_invariants().unwrap();
        assert_eq!(ftl.mapped_host_units(), self.mapped.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(27),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_drive_is_refused_or_keeps_all_laws(
        specification in any_specification(),
        features in any_features(),
        (past, fill_percent) in (any_past(), 0..=100u64),
        requests in prop::collection::vec(any_request(), 1..400),
    ) {
        let filled = (u64::from(specification.logical_units) * fill_percent / 100) as u32;
        let ftl = match Ftl::new_preconditioned_with_features(specification, features, past, filled) {
            Ok(ftl) => ftl,
            Err(impossible) => {
                let says = impossible.to_string();
                prop_assert!(!says.is_empty());
                let of_past = matches!(impossible, ImpossibleSpecification::InvalidShare | ImpossibleSpecification::OverfilledPrecondition { .. });
                prop_assert!(of_past || specification.check_with(&features).is_err());
                return Ok(());
            }
        };
        let mut drive = Drive {
            instant: UntimedFtl::new(ftl),
            mapped: if past == PreconditionState::Fresh { BTreeSet::new() } else { (0..filled).collect() },
        };
        drive.check();
        for (number, request) in requests.iter().enumerate() {
            drive.serve(request);
            if number % 16 == 0 {
                drive.check();
            }
        }
        drive.check();
    }
}
