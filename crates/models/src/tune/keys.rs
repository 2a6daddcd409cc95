//! Parameters of a search, with the values that the target has.

use super::over::Over;
use super::point::Subject;
use super::search::Share;
use crate::error::LaboratoryError;
use crate::plan::ModelPlan;
use diskperf_analysis::tuning::Key;
use diskperf_timeline::Setting;

/// Returns the target's own value of a parameter, if it has one.
pub(super) fn own_value(today: &ModelPlan, path: &str) -> Option<String> {
    if let Some(name) = path.strip_prefix("program.") {
        let mut programs = today.suite.iter_programs();
        return programs.find_map(|program| program.parameter_values().remove(name));
    }
    let computer = &today.computers[0];
    let component = computer.components.iter();
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
pub(super) fn key(over: &Over, today: &ModelPlan) -> Key {
    let own = own_value(today, &over.path);
    Key {
        path: over.path.clone(),
        values: over.values.clone(),
        ordered: over.is_ordered(),
        today_place: own.as_deref().and_then(|own| over.place_of(own)),
        today: own,
    }
}

/// Maximum number of values that are tried for a key without a current value, to distinguish an
/// unknown key from a forbidden value.
const TRIED_VALUES: usize = 16;

/// Rejects an unknown key. A key exists if the target has a value of it, or if at least one of its
/// values can be set.
pub(super) fn check_key(
    subject: &Subject<'_>,
    today: &ModelPlan,
    over: &Over,
) -> Result<(), LaboratoryError> {
    if own_value(today, &over.path).is_some() {
        return Ok(());
    }
    let mut first = None;
    let apart = over.values.len().div_ceil(TRIED_VALUES);
    for value in over.values.iter().step_by(apart) {
        match subject.with(vec![Setting::new(&over.path, value)], Share::Full) {
            Ok(_) => return Ok(()),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    first.map_or(Ok(()), |error| Err(over.refused(&error)))
}
