//! Single parameters changed at random: from the spans of both runs alone, and
//! not from their parameters, the part that the parameter is of is named, and
//! the deadline that is missed because of it.

use super::{Case, means};
use diskperf_laboratory::analysis::diagnosis::{Diagnosis, diagnose};
use diskperf_laboratory::catalogue::system;
use diskperf_laboratory::explain::supposing;
use diskperf_laboratory::machine::WhatIf;
use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::timeline::{Deadline, Nanoseconds, Stage, Trace};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::sync::Arc;

const SYSTEMS: [&str; 5] = [
    "vax780-sc780-eagle",
    "vax780-uda50-ra81",
    "vax750-si9900-eagle",
    "vax780-si9900-cdc9775",
    "vax750-sc750-eagle",
];
const PROGRAMS: [&str; 2] = ["read_8192", "write_8192"];
const FACTORS: [f64; 6] = [0.25, 0.5, 0.8, 1.25, 2.0, 4.0];
/// A change that costs less is nobody's question.
const COSTS: f64 = 1.1;

/// A change of one parameter.
struct Change {
    case: Case,
    path: String,
    value: String,
}

impl Change {
    fn drawn(draw: &mut impl FnMut(usize) -> usize) -> Option<Self> {
        let name = SYSTEMS[draw(SYSTEMS.len())];
        let catalogue = load_catalogue(None).expect("the catalogue");
        let entry = system(&catalogue, name, &[]).expect("a system");
        let case = Case {
            drives: 1 + draw(2) as u32,
            ..Case::of(PROGRAMS[draw(PROGRAMS.len())], name)
        };
        let parameter = &entry.parameters[draw(entry.parameters.len())];
        let factor = FACTORS[draw(FACTORS.len())];
        let text = parameter.value.replace('_', "");
        let before: f64 = text.parse().ok()?;
        let whole = !text.contains('.') && before.fract() == 0.0;
        let after = match (whole, (before * factor).round()) {
            (true, same) if same == before => before + (factor - 1.0).signum(),
            (true, other) => other,
            (false, _) => before * factor,
        };
        // Of nothing there is no multiple.
        (before > 0.0 && after != before && after >= 0.0).then(|| Self {
            case,
            path: parameter.path.clone(),
            value: after.to_string(),
        })
    }

    fn component(&self) -> &str {
        self.path.split('.').next().expect("a path has a component")
    }

    fn setting(&self) -> String {
        format!("{}={}", self.path, self.value)
    }

    /// Both runs, if the change can be made and costs enough.
    fn runs(&self) -> Option<(Trace, Trace)> {
        let changed = self.case.with(&[&self.setting()]);
        let b = changed.traces().ok()?.pop()?;
        let a = self.case.traces().ok()?.pop()?;
        (took(&b) > COSTS * took(&a)).then_some((a, b))
    }
}

fn took(trace: &Trace) -> f64 {
    let ends = trace.processes.iter().map(|process| process.ended());
    let starts = trace.processes.iter().map(|process| process.opened);
    let (from, until): (Nanoseconds, Nanoseconds) = (
        starts.min().unwrap_or_default(),
        ends.max().unwrap_or_default(),
    );
    until.since(from).0 as f64
}

/// With every deadline met, in both, less than this of the difference is left
/// where missed revolutions are how it comes about; more than that where not.
const LEFT: (f64, f64) = (0.5, 0.8);

/// And where that much more is waited for the deadline that is missed most; with
/// less, what is gained is by other ways.
const LEAST: f64 = 0.3;

/// How long a case takes with every deadline met.
fn took_with_deadlines_met(case: &Case) -> f64 {
    let stop = Arc::default();
    let subject = case.subject().expect("it ran before");
    let met = WhatIf {
        deadlines_met: true,
        ..WhatIf::default()
    };
    let traces = supposing(&subject, met, &means(&stop, false)).expect("it ran before");
    took(&traces[0])
}

/// The deadline that is missed because of a change, found by rerunning both
/// with all deadlines met; and whether that leaves it open if there is one.
fn truth(change: &Change, a: &Trace, b: &Trace) -> (Option<Deadline>, bool) {
    let changed = change.case.with(&[&change.setting()]);
    let met = took_with_deadlines_met(&changed) - took_with_deadlines_met(&change.case);
    let left = met / (took(b) - took(a));
    let missed = |trace: &Trace, deadline: Deadline| -> f64 {
        let parts = trace.requests.iter().flat_map(|request| request.parts());
        let of = parts.filter(|(stage, ..)| *stage == Stage::MissedRevolution(deadline));
        of.map(|(_, from, until)| (until.0 - from.0) as f64).sum()
    };
    let more = |deadline: Deadline| missed(b, deadline) - missed(a, deadline);
    let most = Deadline::ALL
        .into_iter()
        .max_by(|one, other| more(*one).total_cmp(&more(*other)));
    let drives = f64::from(change.case.drives);
    let share = most.map_or(0.0, more) / drives / (took(b) - took(a));
    let open = (LEFT.0..LEFT.1).contains(&left) || (left < LEFT.1 && share < LEAST);
    (most.filter(|_| left < LEFT.1), open)
}

/// Whether the component is right, and the deadline.
fn is_right(
    change: &Change,
    diagnosis: &Diagnosis,
    truth: (Option<Deadline>, bool),
) -> (bool, bool) {
    let component = diagnosis.component.map(|suspect| suspect.name());
    let (deadline, open) = truth;
    let right = diagnosis.deadline == deadline || (open && diagnosis.deadline.is_none());
    (component == Some(change.component()), right)
}

/// Draws changes until so many cost enough, and counts those that are told.
fn told(seed: u64, wanted: usize) -> usize {
    println!("seed {seed}");
    let mut random = Pcg64::seed_from_u64(seed);
    let mut draw = |below: usize| (random.next_u64() % below as u64) as usize;
    let (mut found, mut right) = (0, 0);
    while found < wanted {
        let Some(change) = Change::drawn(&mut draw) else {
            continue;
        };
        let Some((a, b)) = change.runs() else {
            continue;
        };
        found += 1;
        let diagnosis = diagnose(&a, &b);
        let truth = truth(&change, &a, &b);
        let (component, deadline) = is_right(&change, &diagnosis, truth);
        right += usize::from(component && deadline);
        println!(
            "{} {} {} on {} x{}: {}={}: {:+.0} %: {:?} {:?}, truth {:?}; {:?}",
            if component { "right" } else { "WRONG" },
            if deadline { "right" } else { "WRONG" },
            change.case.what.unwrap_or_default(),
            change.case.system,
            change.case.drives,
            change.path,
            change.value,
            100.0 * (took(&b) / took(&a) - 1.0),
            diagnosis.component,
            diagnosis.deadline,
            truth,
            diagnosis.evidence,
        );
    }
    println!("{right} of {found}");
    right
}

#[test]
fn at_least_18_of_20_causes_are_found() {
    assert!(told(1983, 20) >= 18);
}

/// The search lead that the paper found too short, and one that is too long.
#[test]
fn the_search_lead_of_the_paper_is_found() {
    let case = Case::of("read_8192", "vax780-sc780-eagle");
    let change = Change {
        case,
        path: "driver.search_lead_sectors".to_owned(),
        value: "2".to_owned(),
    };
    let (a, b) = change.runs().expect("it costs more than 10 %");
    let diagnosis = diagnose(&a, &b);
    assert_eq!(
        diagnosis.component.map(|one| one.name()),
        Some("driver"),
        "{diagnosis:?}"
    );
    assert!(diagnosis.deadline.is_some(), "{diagnosis:?}");
}

/// Many more seeds: how often it is right in general.
#[test]
#[ignore = "minutes; shows how often causes are found for other seeds"]
fn causes_of_other_seeds() {
    let right: usize = (1..=5).map(|seed| told(seed, 20)).sum();
    println!("{right} of 100");
}
