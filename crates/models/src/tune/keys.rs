//! Parameters of a search, with the values that the target has.

use super::over::OverOption;
use super::point::TuningSubject;
use super::search::RunShare;
use crate::error::LaboratoryError;
use crate::plan::ModelPlan;
use diskperf_analysis::tuning::TunedParameter;
use diskperf_timeline::Setting;

/// Returns the target's own value of a parameter, if it has one.
pub(super) fn today_value(today: &ModelPlan, path: &str) -> Option<String> {
    if let Some(name) = path.strip_prefix("program.") {
        let mut programs = today.suite.iter_programs();
        return programs.find_map(|program| program.parameter_values().remove(name));
    }
    let computer = &today.computers[0];
    let component = computer.component_names.iter();
    let component = component.filter(|(component, _)| component.name() == path);
    if let Some((_, name)) = component.into_iter().next() {
        return Some(name.clone());
    }
    // `drive.2.seek_average_ms` is that of all drives where the second has none.
    let of_all: Vec<&str> = path
        .split('.')
        .filter(|part| part.parse::<u32>().is_err())
        .collect();
    let value_of = |path: &str| {
        let mut parameters = computer.parameters.iter();
        let found = parameters.find(|parameter| parameter.path == path);
        found.map(|parameter| parameter.value.trim_matches('"').to_owned())
    };
    value_of(path).or_else(|| value_of(&of_all.join(".")))
}

/// Combines a parameter and its values to try with the target's own value.
pub(super) fn build_parameter(over: &OverOption, today: &ModelPlan) -> TunedParameter {
    let own = today_value(today, &over.path);
    TunedParameter {
        path: over.path.clone(),
        values: over.values.clone(),
        is_ordered: over.is_ordered(),
        today_value_index: own.as_deref().and_then(|own| over.index_of_value(own)),
        today_value: own,
    }
}

/// Maximum number of values that are tried for a key without a current value, to distinguish an
/// unknown key from a forbidden value.
const VALUES_CHECKED_MAX: usize = 16;

/// Rejects an unknown key. A key exists if the target has a value of it, or if at least one of its
/// values can be set.
pub(super) fn check_key(
    subject: &TuningSubject<'_>,
    today: &ModelPlan,
    over: &OverOption,
) -> Result<(), LaboratoryError> {
    if today_value(today, &over.path).is_some() {
        return Ok(());
    }
    let mut first = None;
    let apart = over.values.len().div_ceil(VALUES_CHECKED_MAX);
    for value in over.values.iter().step_by(apart) {
        match subject.plan_with(vec![Setting::new(&over.path, value)], RunShare::Full) {
            Ok(_) => return Ok(()),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    first.map_or(Ok(()), |error| Err(over.conflict_error(&error)))
}
