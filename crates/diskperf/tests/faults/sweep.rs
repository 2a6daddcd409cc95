//! One run after the other, each with another fault.

use crate::calls::Operation;
use crate::filter;
use crate::injector::{Answer, Fault, Watched, watch};
use crate::invariants;
use crate::scenarios::{Scenario, Stage};
use crate::support::Random;
use crate::support::machine::can_run;
use std::collections::BTreeMap;

/// Faults of each scenario, unless the environment says otherwise.
const SAMPLE: usize = 24;

/// Which operations fail.
enum Which {
    All,
    Sample(usize),
}

impl Which {
    fn asked() -> Self {
        match std::env::var("DISKPERF_FAULTS").ok().as_deref() {
            None => Self::Sample(SAMPLE),
            Some("all") => Self::All,
            Some(number) => {
                let number = number.parse();
                Self::Sample(number.expect("DISKPERF_FAULTS is `all` or a number"))
            }
        }
    }
}

/// What was broken, each with the faults after which it was.
#[derive(Default)]
struct Findings {
    runs: usize,
    broken: BTreeMap<String, Vec<String>>,
}

impl Findings {
    /// Runs the scenario once.
    fn once(&mut self, stage: &Stage, fault: Option<Fault>) -> Watched {
        let user = stage.user();
        let watched = watch(stage.command(&user), fault);
        let plain = |text: String| text.replace(&user.home().display().to_string(), "HOME");
        let outcome = &watched.outcome;
        let at = plain(format!(
            "{}: exit code {:?}, {}",
            watched.seen.fault(),
            outcome.code,
            outcome.stderr
        ));
        for broken in invariants::broken(stage, &user, &watched) {
            self.broken
                .entry(plain(broken))
                .or_default()
                .push(at.clone());
        }
        self.runs += 1;
        watched
    }

    /// Faults all over the run, and all of what once broke something.
    fn sample(
        &mut self,
        stage: &Stage,
        (operations, size): (&[Operation], usize),
        random: &mut Random,
    ) {
        let of = |(number, operation): (usize, &Operation)| {
            let errnos = (0..operation.errnos().len()).map(Answer::Errno);
            let answers = errnos.chain([Answer::Kill]);
            let faults = answers.map(move |answer| Fault { number, answer });
            faults.collect::<Vec<_>>()
        };
        let all: Vec<Fault> = operations.iter().enumerate().flat_map(of).collect();
        let stride = (all.len() / size).max(1);
        let offset = random.below(stride);
        for fault in all.iter().skip(offset).step_by(stride) {
            self.once(stage, Some(*fault));
        }
        for (number, operation) in operations.iter().enumerate() {
            if stage.scenario.once_broke_by(operation) {
                let answer = Answer::Errno(random.below(operation.errnos().len()));
                self.once(stage, Some(Fault { number, answer }));
            }
        }
    }

    /// The first operation, the second, the third, ... until a run passes.
    fn all(&mut self, stage: &Stage, operations: &[Operation], random: &mut Random) {
        let turn = random.below(6);
        for number in 0.. {
            let answer = Answer::Errno(number + turn);
            let watched = self.once(stage, Some(Fault { number, answer }));
            if watched.seen.failed.is_none() {
                break;
            }
            if operations.get(number).is_some_and(|one| !one.only_looks()) {
                let answer = Answer::Kill;
                self.once(stage, Some(Fault { number, answer }));
            }
        }
    }

    fn told(&self) -> String {
        let told = self.broken.iter().map(|(what, after)| {
            let after = after.join("\n    after ");
            format!("{what}\n    after {after}\n")
        });
        told.collect()
    }
}

pub(crate) fn sweep(scenario: Scenario) {
    let test = format!("faults of {scenario:?}");
    if let Some(why) = filter::missing() {
        eprintln!("SKIPPED {test}: {why}");
        return;
    }
    if !can_run(&test, scenario.needs()) {
        return;
    }
    let mut random = Random::new(&test);
    let stage = Stage::new(scenario);
    let mut findings = Findings::default();
    let passed = findings.once(&stage, None);
    assert_eq!(passed.outcome.code, Some(0), "{:?}", passed.outcome);
    assert!(findings.broken.is_empty(), "{}", findings.told());
    let operations = passed.seen.operations;
    match Which::asked() {
        Which::All => findings.all(&stage, &operations, &mut random),
        Which::Sample(size) => findings.sample(&stage, (&operations, size), &mut random),
    }
    let (number, runs) = (operations.len(), findings.runs);
    eprintln!("{test}: {number} operations, {runs} runs");
    assert!(
        findings.broken.is_empty(),
        "{scenario:?}:\n{}",
        findings.told()
    );
}
