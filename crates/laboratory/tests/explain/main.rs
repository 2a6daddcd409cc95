//! Explanations of modelled runs: ledgers that sum, differences taken apart, and
//! causes that are found from what happened alone.

mod causes;
mod counterfactuals;
mod differences;
mod disks;
mod ledgers;
mod rounds;

use diskperf_laboratory::plan::{Plan, plan};
use diskperf_laboratory::{Experiment, LaboratoryError, SizeChoice, Workload};
use diskperf_models::explain::{ExplainedSystem, ExplanationOptions, explain_system};
use diskperf_models::model::parse_settings;
use diskperf_timeline::{CacheMode, Trace};
use std::sync::Arc;

/// A program, or a suite, on a system, with settings.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    what: Option<&'static str>,
    system: String,
    drives: u32,
    size: SizeChoice,
    settings: Vec<String>,
    cache: CacheMode,
}

impl Case {
    fn of(what: &'static str, system: &str) -> Self {
        Self {
            what: Some(what),
            system: system.to_owned(),
            drives: 1,
            size: SizeChoice::SizeBytes(2 << 20),
            settings: Vec::new(),
            cache: CacheMode::Cold,
        }
    }

    fn with(&self, settings: &[&str]) -> Self {
        let more = settings.iter().map(|setting| (*setting).to_owned());
        Self {
            settings: self.settings.iter().cloned().chain(more).collect(),
            ..self.clone()
        }
    }

    fn subject(&self) -> Result<ExplainedSystem, LaboratoryError> {
        let experiment = Experiment {
            workload: Workload::from_suite_name(self.what.map(str::to_owned)),
            targets: vec![self.system.clone().into()],
            drive_count: Some(self.drives),
            size_choice: self.size,
            settings: parse_settings(&self.settings)?,
            repetition_count: Some(2),
            cache_mode: self.cache,
            ..Experiment::default()
        };
        let Some(Plan::Model(plan)) = plan(&experiment)?.pop() else {
            panic!("{self:?} is no modelled system")
        };
        Ok(ExplainedSystem {
            name: self.system.clone(),
            plan: *plan,
            run: None,
        })
    }

    /// What happened, program by program.
    fn traces(&self) -> Result<Vec<Trace>, LaboratoryError> {
        let stop = Arc::default();
        let (found, traces) = explain_system(&self.subject()?, &means(&stop, false))?;
        for program in &found.programs {
            assert_eq!(
                program.time_account.ledger.total_duration(),
                program.time_account.elapsed
            );
            for one in &program.time_account.program_ledgers {
                assert_eq!(one.ledger.total_duration(), one.elapsed, "{self:?}");
            }
        }
        Ok(traces)
    }
}

fn means<'m>(
    stop: &'m Arc<std::sync::atomic::AtomicBool>,
    counterfactuals: bool,
) -> ExplanationOptions<'m> {
    ExplanationOptions {
        crew: &diskperf_laboratory::crew::ThreadCrew(2),
        runs_counterfactuals: counterfactuals,
        stop,
        progress: &|_, _| (),
    }
}
