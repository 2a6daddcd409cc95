//! The ledger sums to the elapsed time, whatever runs on whatever.

use super::Case;
use diskperf_laboratory::SizeChoice;
use diskperf_laboratory::battery::{Medium, Suite};
use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::timeline::Stage;

/// Every system and variant, with every suite that runs on it.
#[test]
fn every_suite_on_every_system_is_accounted_for() {
    let catalogue = load_catalogue(None).expect("the catalogue");
    let suites = Suite::all();
    let mut ran = 0;
    for system in catalogue.system_names() {
        for (suite, _) in &suites {
            assert!(Suite::named(suite, Medium::Directory).is_some());
            for drives in [1, 2] {
                let case = Case {
                    what: Some(suite),
                    system: system.clone(),
                    drives,
                    size: SizeChoice::Bytes(256 << 10),
                    settings: Vec::new(),
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

/// A request that goes on to another track shows the way there.
#[test]
fn ways_between_tracks_are_no_part_of_the_transfer() {
    // 51 sectors a track, blocks of 16.
    let case = Case::of("read_8192", "vax780-uda50-ra81").with(&["drive.head_switch_ms=0.1"]);
    let traces = case.traces().expect("it runs");
    let switched_within = traces[0].requests.iter().filter(|request| {
        let stages: Vec<Stage> = request.parts().map(|(stage, ..)| stage).collect();
        stages
            .windows(2)
            .any(|pair| pair == [Stage::MediaTransfer, Stage::HeadSwitch])
    });
    assert!(switched_within.count() > 10);
    let longest = traces[0].requests.iter().map(|request| {
        let media = request
            .parts()
            .filter(|(stage, ..)| *stage == Stage::MediaTransfer);
        let ns: u64 = media.map(|(_, from, until)| until.0 - from.0).sum();
        ns as f64 / f64::from(request.sectors)
    });
    let slot = traces[0].drives[0].revolution_ns / f64::from(traces[0].requests[0].slots);
    let longest = longest.fold(0.0, f64::max);
    assert!(
        (longest / slot - 1.0).abs() < 1e-3,
        "a sector takes {longest} of {slot}"
    );
}
