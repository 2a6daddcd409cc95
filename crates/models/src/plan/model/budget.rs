//! Budget of a plan's machines, and the message if it does not suffice.

use super::ModelPlan;
use crate::error::{LaboratoryError, OverBudget};
use diskperf_battery::{Program, Suite};
use diskperf_machine::RunBudget;
use diskperf_timeline::{Experiment, SizeChoice};

const SETTINGS_NAMED_MAX: usize = 3;

struct ChangedParameter {
    path: String,
    value: String,
    default_value: String,
}

/// Returns the budget of all machines of a run. Without settings, systems behave as their catalogue
/// entries say, and any suite stays within the usual budget in each repetition. A setting within
/// its range may make a system a million times slower. With settings there is therefore one budget
/// for the whole run, which ends in seconds, plus an amount in proportion to a size that the user
/// chose.
pub(super) fn from_experiment(experiment: &Experiment, suite: &Suite) -> RunBudget {
    if experiment.has_no_budget {
        return RunBudget::UNLIMITED;
    }
    let repetitions = suite
        .iter_jobs()
        .map(|job| suite.protocol_of_job(job).repetition_count);
    let repetitions = repetitions.map(u64::from).sum::<u64>().max(1);
    let usual = RunBudget::DEFAULT.for_repetitions(repetitions);
    if experiment.settings.is_empty() {
        return usual;
    }
    let asked_bytes = match experiment.size_choice {
        SizeChoice::AutomaticSize => 0,
        SizeChoice::SizeBytes(bytes) => bytes.saturating_mul(repetitions),
    };
    RunBudget::with_settings(asked_bytes).stricter_of(usual)
}

impl ModelPlan {
    /// Adds the settings that are far from the system's own values to a budget error.
    pub fn with_settings_named(&self, error: LaboratoryError) -> LaboratoryError {
        match error {
            LaboratoryError::Budget(over) => LaboratoryError::Budget(OverBudget {
                settings: self.list_far_settings(),
                ..over
            }),
            other => other,
        }
    }

    /// Describes the settings, the farthest from the system's own values first, such as
    /// `driver.complete_ms is 10000, 25000 times the 0.4 of vax780-sc780-eagle`.
    fn list_far_settings(&self) -> Vec<String> {
        let mut changed = self.list_changed_parameters();
        changed.extend(
            self.suite
                .iter_jobs()
                .flat_map(|job| list_changed_of_program(&job.program)),
        );
        changed.sort_by(|one, other| other.log_distance().total_cmp(&one.log_distance()));
        changed.dedup_by(|one, other| one.path == other.path);
        let named = changed.iter().take(SETTINGS_NAMED_MAX);
        named.map(|one| one.describe(&self.target)).collect()
    }

    fn list_changed_parameters(&self) -> Vec<ChangedParameter> {
        let Ok(usual) = self.rebuild_computers(&[]) else {
            return Vec::new();
        };
        let set = self.computers[0].parameters.iter();
        let set = set.filter(|parameter| parameter.file == "--set");
        let changed = set.filter_map(|parameter| {
            let usual = usual[0].parameters.iter();
            // A drive of its own may have been like all others.
            let common = strip_index(&parameter.path);
            let usual = usual
                .clone()
                .find(|one| one.path == parameter.path)
                .or_else(|| usual.clone().find(|one| one.path == common))?;
            Some(ChangedParameter {
                path: parameter.path.clone(),
                value: parameter.value.clone(),
                default_value: usual.value.clone(),
            })
        });
        changed
            .filter(|one| one.value != one.default_value)
            .collect()
    }
}

fn list_changed_of_program(program: &Program) -> Vec<ChangedParameter> {
    let Some(usual) = Program::from_name(program.name()) else {
        return Vec::new();
    };
    let usual = usual.parameter_values();
    let changed = program
        .parameter_values()
        .into_iter()
        .filter_map(|(name, value)| {
            let usual = usual.get(&name)?.clone();
            (usual != value).then(|| ChangedParameter {
                path: format!("program.{name}"),
                value,
                default_value: usual,
            })
        });
    changed.collect()
}

fn strip_index(path: &str) -> String {
    let is_word = |part: &&str| part.parse::<u32>().is_err();
    path.split('.')
        .filter(is_word)
        .collect::<Vec<_>>()
        .join(".")
}

impl ChangedParameter {
    fn value_and_default(&self) -> Option<(f64, f64)> {
        let number = |text: &str| text.replace('_', "").parse::<f64>().ok();
        let (value, usual) = (number(&self.value)?, number(&self.default_value)?);
        (value > 0.0 && usual > 0.0).then_some((value, usual))
    }

    /// Distance of the value from the usual one: the logarithm of their ratio. A value that is no
    /// number counts like a ratio of two.
    fn log_distance(&self) -> f64 {
        match self.value_and_default() {
            Some((value, usual)) => (value / usual).ln().abs(),
            None => 2_f64.ln(),
        }
    }

    fn describe(&self, system: &str) -> String {
        let Self {
            path,
            value,
            default_value: usual,
        } = self;
        let whose = match path.starts_with("program.") {
            true => "that it usually has".to_owned(),
            false => format!("of {system}"),
        };
        match self.value_and_default() {
            Some((set, before)) if set >= 2.0 * before => {
                format!(
                    "{path} is {value}, {} times the {usual} {whose}",
                    format_ratio(set / before)
                )
            }
            Some((set, before)) if before >= 2.0 * set => {
                format!(
                    "{path} is {value}, a {}th of the {usual} {whose}",
                    format_ratio(before / set)
                )
            }
            _ => format!("{path} is {value} and not the {usual} {whose}"),
        }
    }
}

fn format_ratio(ratio: f64) -> String {
    match ratio {
        few if few < 9.95 => format!("{few:.1}"),
        many => format!("{many:.0}"),
    }
}
