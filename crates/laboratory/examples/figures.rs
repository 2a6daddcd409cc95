//! Hashes of all figures of the modelled computers: two builds that print the same
//! lines model the same, to the last digit.
//!
//! `figures quick` is a subset that takes seconds: one seed, without counterfactuals.
//! `figures whole` is every suite on every system, on one and on two drives, with two
//! seeds: the figures of `run`, the explanation with its counterfactuals, and all that
//! was recorded. `figures reproduce` is the accuracy card as JSON.
//!
//! Hash before a change, hash after it, and compare: `figures quick > before`.

use diskperf_analysis::report::{self, ReportFormat};
use diskperf_battery::Suite;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::reproduce::{ReproduceOptions, reproduce};
use diskperf_laboratory::{
    Experiment, Observer, ObserverEvent, Plan, RunRecorder, SizeChoice, Workload, plan,
};
use diskperf_models::explain::{ExplainedSystem, ExplanationOptions, explain_system};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::trace::TracedRequest;
use diskperf_timeline::{Run, Trace};
use std::fmt::{self, Debug, Write};
use std::sync::Arc;

/// Bytes that each program moves: enough for indirect blocks and for a controller's
/// cache to fill.
const SIZE: SizeChoice = SizeChoice::SizeBytes(512 << 10);
const SEEDS: [u64; 2] = [1983, 2026];

/// FNV-1a, of all that is written to it.
struct Hash(u64);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 ^= u64::from(byte);
            self.0 = self.0.wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

fn hash(of: &dyn Debug) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    write!(hash, "{of:?}").expect("a hash takes everything");
    hash.0
}

struct Silent;

impl Observer for Silent {
    fn handle_event(&mut self, _event: ObserverEvent<'_>) {}
}

fn experiment(suite: &str, system: &str, (drives, seed): (u32, u64)) -> Experiment {
    Experiment {
        workload: Workload::NamedSuite(suite.to_owned()),
        targets: vec![system.into()],
        drive_count: Some(drives),
        size_choice: SIZE,
        repetition_count: Some(2),
        seed,
        ..Experiment::default()
    }
}

/// What `run` measures; without what names the build, the moment and the machine.
fn run_of(plan: &Plan) -> Result<Run, String> {
    let mut recorder = RunRecorder::without_store();
    let executed = execute(plan, &Arc::default(), &mut Silent, &mut recorder);
    match executed.error {
        None => Ok(executed.run),
        Some(error) => Err(error.to_string()),
    }
}

/// The numbers of a request, whatever they are kept in.
fn numbers(of: &TracedRequest) -> impl Debug + '_ {
    let on_disk = of.disk_position().unwrap_or_default();
    let on_disk = (on_disk.cylinder, on_disk.head, on_disk.slot, on_disk.slots);
    (
        (of.drive_index, of.sector, of.sector_count, of.purpose),
        on_disk,
        (of.issued_at, &of.spans, &of.buffer_uses),
    )
}

fn hash_of_trace(trace: &Trace) -> u64 {
    let requests: Vec<_> = trace.requests.iter().map(numbers).collect();
    hash(&(
        &requests,
        &trace.drives,
        &trace.processes,
        &trace.handler_work,
        (
            &trace.controller_kinds,
            &trace.busy_samples,
            &trace.clock_ticks,
        ),
    ))
}

/// One line: a suite on a system.
fn line(plan: Plan, whole: bool) -> String {
    let mut found = String::new();
    if whole {
        match run_of(&plan) {
            Ok(run) => found += &format!(" run {:016x}", hash(&run.results)),
            Err(error) => found += &format!(" run fails: {error}"),
        }
    }
    let Plan::Model(plan) = plan else {
        panic!("a system of the catalogue is modelled")
    };
    let subject = ExplainedSystem {
        name: String::new(),
        plan: *plan,
        run: None,
    };
    let means = ExplanationOptions {
        crew: &diskperf_laboratory::crew::ThreadCrew(1),
        runs_counterfactuals: whole,
        stop: &Arc::default(),
        progress: &|_, _| (),
    };
    match explain_system(&subject, &means) {
        Ok((explanation, traces)) => {
            let traces: Vec<u64> = traces.iter().map(hash_of_trace).collect();
            found += &format!(" explain {:016x}", hash(&explanation));
            found += &format!(" spans {:016x}", hash(&traces));
        }
        Err(error) => found += &format!(" explain fails: {error}"),
    }
    found
}

fn every_suite(whole: bool) {
    let catalogue = load_catalogue(None).expect("the catalogue");
    let seeds = if whole { &SEEDS[..] } else { &SEEDS[..1] };
    for system in catalogue.system_names() {
        for (suite, _) in &Suite::list_suites() {
            for drives in [1, 2] {
                for seed in seeds {
                    // Not every suite runs on every system, nor on two drives.
                    let experiment = experiment(suite, &system, (drives, *seed));
                    let plans = plan::plan(&experiment).ok();
                    let Some(plan) = plans.and_then(|mut all| all.pop()) else {
                        continue;
                    };
                    println!(
                        "{system} {suite} drives {drives} seed {seed}{}",
                        line(plan, whole)
                    );
                }
            }
        }
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("quick") => every_suite(false),
        Some("whole") => every_suite(true),
        Some("reproduce") => {
            let catalogue = load_catalogue(None).expect("the catalogue");
            let card = reproduce(&catalogue, &ReproduceOptions::default()).expect("the card");
            println!("{}", report::render_card(&card, ReportFormat::Json, 80));
        }
        _ => {
            eprintln!("figures quick|whole|reproduce");
            std::process::exit(2);
        }
    }
}
