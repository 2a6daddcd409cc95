//! Every value that a system's list of parameters allows gives a result, or an error
//! that says what is wrong: no panic, and no more than the budget. Values are drawn
//! at and near the ends of the ranges, one and several at a time.
//!
//! `PROPTEST_RNG_SEED` repeats what a failure prints, `DISKPERF_LEGAL_CASES` asks for
//! more.

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_laboratory::plan::{Plan, plan};
use diskperf_laboratory::{Experiment, LaboratoryError, SizeChoice, Workload, catalogue};
use diskperf_machine::{RunBudget, Time};
use diskperf_models::explain::{ExplainedSystem, ExplanationOptions, explain_system};
use diskperf_models::model::parse_settings;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Cases of the bounded run.
const CASES: u32 = 150;

/// What a case may take: a fraction of a second, as tests are built.
const BUDGET: RunBudget = RunBudget {
    event_count_max: 100_000,
    virtual_time_max: Time::from_millis(1000 * 3600),
    memory_bytes_max: 64 << 20,
    table_bytes_max: 64 << 20,
};

/// A system with what it says of its parameters: paths and ranges.
struct Ranges {
    system: String,
    parameters: Vec<(String, String)>,
}

fn systems() -> Vec<Ranges> {
    let known = Catalogue::embedded();
    let names = known.system_names().into_iter();
    names
        .map(|system| {
            let entry =
                catalogue::describe_system(&known, &system, &[]).expect("it is in the catalogue");
            let parameters = entry.parameters.into_iter();
            Ranges {
                system,
                parameters: parameters.map(|one| (one.path, one.range)).collect(),
            }
        })
        .collect()
}

/// One value of a range, written as a setting has it; none of a text.
fn value(range: &str, place: u16) -> Option<String> {
    if range.contains(" | ") {
        let choices: Vec<&str> = range.split(" | ").collect();
        return Some(choices[usize::from(place) % choices.len()].to_owned());
    }
    if let Some(pair) = range.strip_prefix('[') {
        let (first, second) = pair.strip_suffix(']')?.split_once(", ")?;
        let (first, second) = (value(first, place)?, value(second, place / 7)?);
        return Some(format!("[[{first}, {second}]]"));
    }
    let (low, high) = range.split_once(" to ")?;
    if let (Ok(low), Ok(high)) = (low.parse::<u64>(), high.parse::<u64>()) {
        let near = |bits: u32| low.saturating_add(1 << bits.min(62)).min(high);
        return Some(match place % 8 {
            0 | 1 => low,
            2 | 3 => high,
            4 => near(0),
            5 => high.saturating_sub(1).max(low),
            // Anywhere, at powers of two.
            _ => near(u32::from(place / 8) % 40),
        })
        .map(|number| number.to_string());
    }
    let (low, high) = (low.parse::<f64>().ok()?, high.parse::<f64>().ok()?);
    let number = match place % 8 {
        0 | 1 => low,
        2 | 3 => high,
        4 => low + (high - low) * 1e-9,
        5 => high - (high - low) * 1e-9,
        _ => low + (high - low) * f64::from(place) / f64::from(u16::MAX),
    };
    Some(format!("{number}"))
}

#[derive(Clone, Debug)]
struct Case {
    system: String,
    what: Option<&'static str>,
    size_bytes: u64,
    drives: u32,
    settings: Vec<String>,
}

impl Case {
    /// Plans and explains it, which runs it with all that happens recorded.
    fn run(&self) -> Result<(), LaboratoryError> {
        let experiment = Experiment {
            workload: Workload::from_suite_name(self.what.map(str::to_owned)),
            drive_count: Some(self.drives),
            size_choice: SizeChoice::SizeBytes(self.size_bytes),
            settings: parse_settings(&self.settings)?,
            repetition_count: Some(1),
            ..Experiment::default()
        };
        explained(&subject(&self.system, experiment, BUDGET)?)
    }
}

fn subject(
    system: &str,
    experiment: Experiment,
    budget: RunBudget,
) -> Result<ExplainedSystem, LaboratoryError> {
    let experiment = Experiment {
        targets: vec![system.into()],
        ..experiment
    };
    let Some(Plan::Model(mut plan)) = plan(&experiment)?.pop() else {
        panic!("{system} is no modelled system")
    };
    plan.budget = budget;
    Ok(ExplainedSystem {
        name: system.to_owned(),
        plan: *plan,
        run: None,
    })
}

fn explained(subject: &ExplainedSystem) -> Result<(), LaboratoryError> {
    let stop = Arc::default();
    let means = ExplanationOptions {
        crew: &diskperf_laboratory::crew::ThreadCrew(1),
        runs_counterfactuals: false,
        stop: &stop,
        progress: &|_, _| (),
    };
    explain_system(subject, &means).map(drop)
}

/// Programs of file systems; others have suites of their own.
const PROGRAMS: [Option<&str>; 5] = [
    None,
    Some("read_8192"),
    Some("write_8192"),
    Some("random_mix"),
    Some("copy"),
];

fn cases() -> impl Strategy<Value = Case> {
    let systems = Arc::new(systems());
    let setting = (any::<Index>(), any::<u16>());
    let settings = prop_oneof![
        3 => prop::collection::vec(setting.clone(), 1),
        1 => prop::collection::vec(setting, 2..5),
    ];
    let rest = (0_usize..PROGRAMS.len(), 16_u32..21, 1_u32..3);
    (any::<Index>(), settings, rest).prop_map(move |(system, drawn, (program, bits, drives))| {
        let Ranges { system, parameters } = system.get(&systems);
        let setting = |(parameter, place): (Index, u16)| {
            let (path, range) = parameter.get(parameters);
            Some(format!("{path}={}", value(range, place)?))
        };
        Case {
            system: system.clone(),
            what: PROGRAMS[program],
            size_bytes: 1 << bits,
            drives,
            settings: drawn.into_iter().filter_map(setting).collect(),
        }
    })
}

fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_legal_value_panics() {
    let seed = asked("PROPTEST_RNG_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.expect("the clock is past 1970").as_nanos() as u64
    });
    println!("PROPTEST_RNG_SEED={seed}");
    let mut runner = TestRunner::new(Config {
        cases: asked("DISKPERF_LEGAL_CASES").map_or(CASES, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    });
    let outcomes = std::cell::RefCell::new([0_u32; 3]);
    let outcome = runner.run(&cases(), |case| {
        let place = match case.run() {
            Ok(()) => 0,
            Err(LaboratoryError::Budget(_)) => 1,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                if asked("DISKPERF_LEGAL_CASES").is_some() {
                    println!("{case:?}: {error}");
                }
                2
            }
        };
        outcomes.borrow_mut()[place] += 1;
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let [results, beyond, refused] = outcomes.into_inner();
    println!("{results} results, {beyond} beyond the budget, {refused} refused");
    // Whole sectors of 4 KiB, which drives of today ask for, refuse most sizes of a call.
    assert!(results > CASES / 5, "many values give a result");
}

/// Cases that panicked, asked for more memory than there is, or came to no end.
#[test]
fn values_that_were_trouble_give_results() {
    for (system, what, settings) in [
        (
            "sun3-rimfire-2344",
            Some("read_8192"),
            &["drive.1.spindle_rpm=60"][..],
        ),
        ("atarist-supra", None, &["kernel.message_ms=8543"]),
    ] {
        let case = Case {
            system: system.to_owned(),
            what,
            size_bytes: 1 << 16,
            drives: 1,
            settings: settings.iter().map(|one| (*one).to_owned()).collect(),
        };
        match case.run() {
            Ok(()) | Err(LaboratoryError::Budget(_)) => {}
            Err(error) => panic!("{case:?}: {error}"),
        }
    }
}

/// The list says what may be set: a value at either end of a range is not refused as
/// out of it.
#[test]
fn ends_of_ranges_are_in_them() {
    let known = Catalogue::embedded();
    let mut tried = 0;
    for Ranges { system, parameters } in systems() {
        for (path, range) in &parameters {
            for place in [0, 2] {
                let Some(value) = value(range, place) else {
                    continue;
                };
                tried += 1;
                let setting = Setting::new(path, &value);
                let read = catalogue::describe_system(&known, &system, &[setting]);
                if let Err(error) = read {
                    let text = error.to_string();
                    assert!(
                        !text.contains("out of range"),
                        "{system} {path}={value}: {text}"
                    );
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

/// Each system's own suite, as `diskperf explain` has it at its usual size, takes a
/// small part of what a machine may take: the budget is for what is absurd.
#[test]
fn usual_suites_are_far_below_the_budget() {
    let share = 20;
    let small = RunBudget {
        event_count_max: RunBudget::DEFAULT.event_count_max / share,
        virtual_time_max: Time(RunBudget::DEFAULT.virtual_time_max.0 / share),
        // Records of all repetitions are kept until one stands for all.
        memory_bytes_max: RunBudget::DEFAULT.memory_bytes_max / 8,
        table_bytes_max: RunBudget::DEFAULT.table_bytes_max / 8,
    };
    let systems = Catalogue::embedded().system_names().into_iter();
    for system in systems.filter(|system| !system.contains(':')) {
        let subject = subject(&system, Experiment::default(), small).expect("a plan");
        let explained = explained(&subject);
        explained.unwrap_or_else(|error| panic!("{system}: {error}"));
    }
}
