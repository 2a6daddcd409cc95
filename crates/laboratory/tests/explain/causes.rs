//! Single parameters changed at random: from the spans of both runs alone, and
//! not from their parameters, the part that the parameter is of is named, and
//! the deadline that is missed because of it.

use super::{Case, means};
use diskperf_analysis::diagnosis::{Diagnosis, RunEnding, diagnose};
use diskperf_device::WhatIf;
use diskperf_laboratory::catalogue::describe_system;
use diskperf_models::explain::run_change;
use diskperf_models::model::load_catalogue;
use diskperf_timeline::{Deadline, Nanoseconds, Stage, Trace};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
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
        let entry = describe_system(&catalogue, name, &[]).expect("a system");
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

    fn setting(&self) -> String {
        format!("{}={}", self.path, self.value)
    }

    /// The run with the change, if it can be made and costs enough.
    fn run(&self, base: &Base) -> Option<Trace> {
        let changed = self.case.with(&[&self.setting()]);
        let b = changed.traces().ok()?.pop()?;
        (took(&b) > COSTS * took(&base.trace)).then_some(b)
    }

    /// Where what is known of the mechanisms says that a parameter of another
    /// component does the very same: that parameter, set to do it, in the ways
    /// in which it may have to be rounded.
    fn doubles(&self) -> Vec<String> {
        let key = self.path.rsplit('.').next().unwrap_or_default();
        let mut doubles = DOUBLES.iter();
        let Some((_, path)) = doubles.find(|(one, _)| *one == key) else {
            return Vec::new();
        };
        let catalogue = load_catalogue(None).expect("the catalogue");
        let entry = describe_system(&catalogue, &self.case.system, &[]).expect("a system");
        let number = |path: &str| -> Option<f64> {
            let mut parameters = entry.parameters.iter();
            let found = parameters.find(|one| one.path == path)?;
            found.value.replace('_', "").parse().ok()
        };
        let value = || {
            let factor = self.value.parse::<f64>().ok()? / number(&self.path)?;
            Some(number(path)? * factor)
        };
        let Some(value) = value() else {
            return Vec::new();
        };
        let mut values = vec![value, value.floor(), value.ceil()];
        values.dedup();
        let setting = |value: &f64| format!("{path}={value}");
        values.iter().map(setting).collect()
    }

    /// The components of which the runs show what was changed: its own, and
    /// that of a parameter which gives the same trace to the nanosecond.
    fn components(&self, b: &Trace) -> Vec<String> {
        let of = |setting: &str| setting.split('.').next().unwrap_or_default().to_owned();
        let mut components = vec![of(&self.path)];
        let same = self.doubles().into_iter().find(|double| {
            let traces = self.case.with(&[double]).traces();
            traces.is_ok_and(|traces| traces.last() == Some(b))
        });
        if let Some(double) = same {
            println!("{} and {double}: the same trace", self.setting());
            components.push(of(&double));
        }
        components
    }
}

/// Keys of which a run shows only what they do together with a parameter of
/// another component. It counts as that one's where the test has shown that the
/// two give the same trace, all of it: then no diagnosis can tell them apart.
const DOUBLES: [(&str, &str); 2] = [
    // newfs turns milliseconds into sectors by the speed on the drive's label;
    // nothing else reads it.
    ("label_rpm", "filesystem.rotdelay_ms"),
    // The buffer cache is a share of the memory; nothing else shows how much
    // there is.
    ("memory_bytes", "kernel.buffer_cache_share"),
];

/// A case without any change.
struct Base {
    case: Case,
    trace: Trace,
    /// What it takes with every deadline met.
    met_ns: f64,
}

/// Those that were run so far.
#[derive(Default)]
struct Bases(Vec<Base>);

impl Bases {
    fn of(&mut self, case: &Case) -> &Base {
        let known = self.0.iter().position(|base| base.case == *case);
        let place = known.unwrap_or_else(|| {
            let trace = case.traces().expect("a system runs").pop();
            self.0.push(Base {
                case: case.clone(),
                trace: trace.expect("a program"),
                met_ns: took_with_deadlines_met(case),
            });
            self.0.len() - 1
        });
        &self.0[place]
    }
}

fn took(trace: &Trace) -> f64 {
    let ends = trace.processes.iter().map(|process| process.account_end());
    let starts = trace.processes.iter().map(|process| process.account_start);
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
        meets_deadlines: true,
        ..WhatIf::default()
    };
    let traces = run_change(&subject, met, &means(&stop, false)).expect("it ran before");
    took(&traces[0])
}

/// The deadline that is missed because of a change, found by rerunning both
/// with all deadlines met; and whether that leaves it open if there is one.
fn truth(change: &Change, base: &Base, b: &Trace) -> (Option<Deadline>, bool) {
    let changed = change.case.with(&[&change.setting()]);
    let a = &base.trace;
    let met = took_with_deadlines_met(&changed) - base.met_ns;
    let left = met / (took(b) - took(a));
    let missed = |trace: &Trace, deadline: Deadline| -> f64 {
        let parts = trace
            .requests
            .iter()
            .flat_map(|request| request.stage_intervals());
        let of = parts.filter(|interval| interval.stage == Stage::MissedRevolution(deadline));
        of.map(|interval| interval.duration().0 as f64).sum()
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

/// One change that costs enough, and what is true of it.
struct Sample {
    change: Change,
    a: Trace,
    b: Trace,
    components: Vec<String>,
    deadline: Option<Deadline>,
    /// Whether it may be said that no deadline is behind it.
    open: bool,
}

impl Sample {
    /// Whether the component is right, and the deadline.
    fn is_right(&self, diagnosis: &Diagnosis) -> (bool, bool) {
        let named = diagnosis.component.map(|suspect| suspect.name());
        let component = named.is_some_and(|named| self.components.iter().any(|one| one == named));
        let deadline =
            diagnosis.deadline == self.deadline || (self.open && diagnosis.deadline.is_none());
        (component, deadline)
    }
}

/// Draws changes until so many cost enough.
fn samples(seed: u64, wanted: usize, bases: &mut Bases, mut each: impl FnMut(&Sample)) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut draw = |below: usize| (random.next_u64() % below as u64) as usize;
    let mut found = 0;
    while found < wanted {
        let Some(change) = Change::drawn(&mut draw) else {
            continue;
        };
        let base = bases.of(&change.case);
        let Some(b) = change.run(base) else { continue };
        found += 1;
        let (deadline, open) = truth(&change, base, &b);
        each(&Sample {
            components: change.components(&b),
            change,
            a: base.trace.clone(),
            b,
            deadline,
            open,
        });
    }
}

/// Which were told, of how many; and as what.
#[derive(Default)]
struct Told {
    right: usize,
    of: usize,
    /// By the true component and the one that was named.
    components: BTreeMap<(String, String), usize>,
    /// The same of deadlines, where that is not left open.
    deadlines: BTreeMap<(String, String), usize>,
}

impl Told {
    fn add(&mut self, sample: &Sample) {
        let diagnosis = diagnose(&sample.a, &sample.b, RunEnding::WorkDone);
        let (component, deadline) = sample.is_right(&diagnosis);
        self.right += usize::from(component && deadline);
        self.of += 1;
        let named = diagnosis.component.map_or("nothing", |one| one.name());
        let truth = if component {
            named
        } else {
            &sample.components[0]
        };
        let pair = (truth.to_owned(), named.to_owned());
        *self.components.entry(pair).or_default() += 1;
        let word = |one: Option<Deadline>| one.map_or("none".to_owned(), |one| format!("{one:?}"));
        if !(deadline && sample.open) {
            let pair = (word(sample.deadline), word(diagnosis.deadline));
            *self.deadlines.entry(pair).or_default() += 1;
        }
        if component && deadline {
            return;
        }
        let Change { case, .. } = &sample.change;
        println!(
            "missed: {} on {} x{}: {}: {:+.0} %, {:?} {:?}{}: named {named} {:?}: {:#?}",
            case.what.unwrap_or_default(),
            case.system,
            case.drives,
            sample.change.setting(),
            100.0 * (took(&sample.b) / took(&sample.a) - 1.0),
            sample.components,
            sample.deadline,
            if sample.open { " or none" } else { "" },
            diagnosis.deadline,
            diagnosis.evidence,
        );
    }

    fn print(&self) {
        println!("{} of {}", self.right, self.of);
        let tables = [
            ("component", &self.components),
            ("deadline", &self.deadlines),
        ];
        for (what, table) in tables {
            println!("{what:20} {:20} {:>6}", "named", "times");
            for ((truth, named), count) in table {
                println!("{truth:20} {named:20} {count:6}");
            }
        }
    }
}

/// As many changes as issue 5 asks for.
const CHANGES: usize = 20;

fn told(seed: u64) -> usize {
    println!("seed {seed}");
    let mut told = Told::default();
    samples(seed, CHANGES, &mut Bases::default(), |sample| {
        told.add(sample)
    });
    told.print();
    told.right
}

#[test]
fn at_least_18_of_20_causes_are_found() {
    assert!(told(1983) >= 18);
}

#[test]
fn at_least_18_of_20_other_causes_are_found() {
    assert!(told(1984) >= 18);
}

#[test]
fn at_least_18_of_another_20_causes_are_found() {
    assert!(told(1985) >= 18);
}

/// Of many seeds, from `DISKPERF_SEEDS=FIRST..LAST`: how often causes are found
/// in general, and what is taken for what.
#[test]
#[ignore = "minutes; shows how often causes are found for other seeds"]
fn causes_of_many_seeds() {
    let text = std::env::var("DISKPERF_SEEDS").unwrap_or_else(|_| "1..12".to_owned());
    let seeds = text.split_once("..").expect("FIRST..LAST");
    let seed = |text: &str| text.parse::<u64>().expect("a seed is a number");
    let (mut bases, mut all) = (Bases::default(), Told::default());
    for seed in seed(seeds.0)..=seed(seeds.1) {
        let before = all.right;
        samples(seed, CHANGES, &mut bases, |sample| all.add(sample));
        println!("seed {seed}: {} of {CHANGES}", all.right - before);
    }
    all.print();
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
    let mut bases = Bases::default();
    let base = bases.of(&change.case);
    let b = change.run(base).expect("it costs more than 10 %");
    let diagnosis = diagnose(&base.trace, &b, RunEnding::WorkDone);
    assert_eq!(
        diagnosis.component.map(|one| one.name()),
        Some("driver"),
        "{diagnosis:?}"
    );
    assert!(diagnosis.deadline.is_some(), "{diagnosis:?}");
}
