//! What is supposed of a computer takes away what it says, and nothing else.

use super::{Case, means};
use diskperf_device::WhatIf;
use diskperf_laboratory::SizeChoice;
use diskperf_models::explain::{ExplanationOptions, explain_system, run_change};
use diskperf_timeline::{Stage, Trace};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A system of each kind of controller, with what it runs.
const SYSTEMS: [(&str, &str); 6] = [
    ("vax780-sc780-eagle", "write_8192"),
    ("vax780-sc780-eagle:initial-arbitration", "read_8192"),
    ("vax780-si9900-eagle", "read_8192"),
    ("vax780-uda50-ra81", "write_8192"),
    ("sun3-rimfire-2344", "read_8192"),
    ("sun3-cheetah-2344", "write_8192"),
];

fn spent(traces: &[Trace], which: impl Fn(Stage) -> bool) -> u64 {
    let requests = traces.iter().flat_map(|trace| &trace.requests);
    let parts = requests.flat_map(|request| request.stage_intervals());
    parts
        .filter(|interval| which(interval.stage))
        .map(|interval| interval.duration().0)
        .sum()
}

fn is_missed(stage: Stage) -> bool {
    matches!(stage, Stage::MissedRevolution(_))
}

#[test]
fn what_is_supposed_away_is_gone() {
    let stop = Arc::default();
    let means = means(&stop, false);
    for (system, program) in SYSTEMS {
        for drives in [1, 2] {
            let case = Case {
                drives,
                size: SizeChoice::SizeBytes(1 << 20),
                ..Case::of(program, system)
            };
            let Ok(subject) = case.subject() else {
                continue;
            };
            let with = |what_if| {
                run_change(&subject, what_if, &means)
                    .unwrap_or_else(|error| panic!("{case:?}: {error}"))
            };
            let as_is = with(WhatIf::default());
            let no_seek = with(WhatIf {
                no_seek: true,
                ..WhatIf::default()
            });
            assert_eq!(spent(&no_seek, |stage| stage == Stage::Seek), 0, "{case:?}");
            let met = with(WhatIf {
                meets_deadlines: true,
                ..WhatIf::default()
            });
            let (before, after) = (spent(&as_is, is_missed), spent(&met, is_missed));
            assert!(
                after <= before / 50,
                "{case:?}: {after} of {before} ns are missed still"
            );
            let turned = with(WhatIf {
                no_rotational_latency: true,
                ..WhatIf::default()
            });
            let waits = |stage| is_missed(stage) || stage == Stage::RotationalLatency;
            let (before, after) = (spent(&as_is, waits), spent(&turned, waits));
            assert!(
                after <= before / 5,
                "{case:?}: {after} of {before} ns are waited still"
            );
            let media = |traces: &[Trace]| spent(traces, |stage| stage == Stage::MediaTransfer);
            assert!(media(&turned) > 0 && media(&no_seek) > 0, "{case:?}");
        }
    }
}

/// The set comes to an end on every kind of system, the same on any number of
/// threads, the best first.
#[test]
fn counterfactuals_are_ranked_and_repeatable() {
    for (system, program) in SYSTEMS {
        let case = Case {
            size: SizeChoice::SizeBytes(512 << 10),
            ..Case::of(program, system)
        };
        let subject = case.subject().expect("a system");
        let stop = Arc::default();
        let mut one = means(&stop, true);
        one.crew = &diskperf_laboratory::crew::ThreadCrew(1);
        let (found, _) = explain_system(&subject, &one).expect("it runs");
        let (again, _) = explain_system(&subject, &means(&stop, true)).expect("it runs");
        assert_eq!(found, again, "{system}");
        let all = &found.programs[0].counterfactuals;
        assert!(all.is_sorted_by_key(|one| one.elapsed_time), "{system}");
        let faster = all
            .iter()
            .find(|one| one.change == "processor twice as fast");
        let gain = faster.map_or(0.0, |one| {
            one.relative_gain(found.programs[0].time_account.elapsed)
        });
        assert!(gain < 0.8, "{system}: {gain}");
        assert!(!found.programs[0].verdict_sentences.is_empty());
    }
}

/// Who ends it while changes are tried has where the time went.
#[test]
fn an_interrupt_keeps_what_was_found() {
    let subject = Case::of("write_8192", "vax780-sc780-eagle")
        .subject()
        .expect("a subject");
    let stop = Arc::new(AtomicBool::new(false));
    let ended = &stop;
    let all = explain_system(&subject, &means(&stop, false)).expect("an explanation");
    let found = explain_system(
        &subject,
        &ExplanationOptions {
            // The one computer of the first batch is no change.
            progress: &|done, of| {
                ended.fetch_or(of > 1 && done > 0, Ordering::Relaxed);
            },
            ..means(&stop, true)
        },
    )
    .expect("what was found by then");
    assert_eq!(found.1, all.1);
    assert_eq!(found.0.programs, all.0.programs);
    assert!(
        found
            .0
            .notes
            .iter()
            .any(|note| note.contains("INTERRUPTED"))
    );
}
