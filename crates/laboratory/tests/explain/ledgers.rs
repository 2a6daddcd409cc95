//! The ledger sums to the elapsed time, whatever runs on whatever.

use super::Case;
use diskperf_battery::{Medium, Suite};
use diskperf_catalogue::Parameter;
use diskperf_laboratory::catalogue::describe_system;
use diskperf_laboratory::{LaboratoryError, SizeChoice};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::Stage;
use proptest::prelude::*;
use proptest::sample::Index;

const PROGRAMS: [&str; 6] = [
    "read_8192",
    "read_4096",
    "write_8192",
    "write_4096",
    "rewrite_8192",
    "rewrite_4096",
];

/// Every system and variant, with every suite that runs on it.
#[test]
fn every_suite_on_every_system_is_accounted_for() {
    let catalogue = load_catalogue(None).expect("the catalogue");
    let suites = Suite::list_suites();
    let mut ran = 0;
    for system in catalogue.system_names() {
        for (suite, _) in &suites {
            assert!(Suite::from_name(suite, Medium::Directory).is_some());
            for drives in [1, 2] {
                let case = Case {
                    what: Some(suite),
                    system: system.clone(),
                    drives,
                    size: SizeChoice::SizeBytes(256 << 10),
                    settings: Vec::new(),
                    cache: diskperf_timeline::CacheMode::Cold,
                };
                // Not every suite runs on every system, nor on two drives.
                if case.subject().is_err() {
                    continue;
                }
                let traces = case
                    .traces()
                    .unwrap_or_else(|error| panic!("{case:?}: {error}"));
                ran += traces.len();
            }
        }
    }
    println!("{ran} programs");
    assert!(ran > 100, "{ran} programs ran");
}

/// What a number of the catalogue may be multiplied by.
const FACTORS: [f64; 9] = [0.0, 0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 10.0];

/// A parameter that is a number: its path, its value, and whether it is a whole one.
fn number(parameter: &Parameter) -> Option<(&str, f64, bool)> {
    let text = parameter.value.replace('_', "");
    Some((&parameter.path, text.parse().ok()?, !text.contains('.')))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any program on any system with any few of its numbers changed. Not every
    /// machine can be built so, nor does every one work; what runs is accounted for.
    #[test]
    fn random_parameters_are_accounted_for(
        which in any::<Index>(),
        program in prop::sample::select(PROGRAMS.as_slice()),
        drives in 1..=2_u32,
        changes in prop::collection::vec((any::<Index>(), prop::sample::select(FACTORS.as_slice())), 1..=4),
    ) {
        let catalogue = load_catalogue(None).expect("the catalogue");
        let names = catalogue.system_names();
        let name = which.get(&names);
        let entry = describe_system(&catalogue, name, &[]).expect("a system");
        let numbers: Vec<(&str, f64, bool)> = entry.parameters.iter().filter_map(number).collect();
        let settings: Vec<String> = changes
            .iter()
            .map(|(which, factor)| {
                let (path, value, whole) = which.get(&numbers);
                let value = value * factor;
                format!("{path}={}", if *whole { value.round() } else { value })
            })
            .collect();
        let case = Case {
            drives,
            size: SizeChoice::SizeBytes(256 << 10),
            ..Case::of(program, name)
        };
        let case = case.with(&settings.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assume!(case.subject().is_ok());
        match case.traces() {
            // Sums are asserted where traces are made.
            Ok(traces) => prop_assert!(!traces.is_empty()),
            Err(LaboratoryError::Failure(why)) => prop_assume!(false, "{}", why),
            Err(other) => prop_assert!(false, "{case:?}: {other}"),
        }
    }
}

/// A request that goes on to another track shows the way there.
#[test]
fn ways_between_tracks_are_no_part_of_the_transfer() {
    // 51 sectors a track, blocks of 16.
    let case = Case::of("read_8192", "vax780-uda50-ra81").with(&["drive.head_switch_ms=0.1"]);
    let traces = case.traces().expect("it runs");
    let switched_within = traces[0].requests.iter().filter(|request| {
        let stages: Vec<Stage> = request
            .stage_intervals()
            .map(|interval| interval.stage)
            .collect();
        stages
            .windows(2)
            .any(|pair| pair == [Stage::MediaTransfer, Stage::HeadSwitch])
    });
    assert!(switched_within.count() > 10);
    let longest = traces[0].requests.iter().map(|request| {
        let media = request
            .stage_intervals()
            .filter(|interval| interval.stage == Stage::MediaTransfer);
        let ns: u64 = media.map(|interval| interval.duration().0).sum();
        ns as f64 / f64::from(request.sector_count)
    });
    let slots = traces[0].requests[0].disk_position().expect("a disk").slots;
    let slot = traces[0].drives[0].revolution_ns / f64::from(slots);
    let longest = longest.fold(0.0, f64::max);
    assert!(
        (longest / slot - 1.0).abs() < 1e-3,
        "a sector takes {longest} of {slot}"
    );
}
