//! Bare parameter names without their component: `depth=4` for `program.depth=4`.

use super::workload::list_parameter_names;
use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use diskperf_battery::Suite;
use diskperf_battery::program::nearest_name;
use diskperf_catalogue::Component;
use diskperf_timeline::Setting;
use std::collections::BTreeSet;

/// Keys of a modelled system itself, which have no component before them.
const SYSTEM_KEYS: [&str; 2] = ["drives", "components"];

/// Paths of all parameters that an experiment can set.
pub struct BareNames {
    known_paths: BTreeSet<String>,
    /// Subject of the error for an unknown name, such as `no program of today26`.
    unknown_message: String,
}

impl BareNames {
    /// Collects the parameters of programs. Real storage has no others.
    pub fn from_programs(suite: &Suite) -> Self {
        let names = list_parameter_names(suite).into_iter();
        Self {
            known_paths: names.map(|name| format!("program.{name}")).collect(),
            unknown_message: format!("no program of {}", suite.name),
        }
    }

    /// Collects the parameters of programs and of a modelled computer.
    pub fn from_computer(suite: &Suite, computer: &ModelComputer) -> Self {
        let mut all = Self::from_programs(suite);
        all.unknown_message += &format!(" and no component of {}", computer.name);
        for parameter in &computer.parameters {
            if let Some((component, rest)) = parameter.path.split_once('.') {
                // A number between them is that of one drive of several.
                let key = rest.rsplit('.').next().unwrap_or(rest);
                all.known_paths.insert(format!("{component}.{key}"));
            }
        }
        all
    }

    /// Returns the full path of a setting's key. A key that has a component or is one stays
    /// unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error for a bare name that several components have, or none.
    pub fn complete_path(&self, key: &str) -> Result<String, LaboratoryError> {
        if !is_bare_name(key) {
            return Ok(key.to_owned());
        }
        let has_key = |path: &&String| path.split_once('.').is_some_and(|(_, name)| name == key);
        let found: Vec<&str> =
            (self.known_paths.iter().filter(has_key).map(String::as_str)).collect();
        match found[..] {
            [path] => Ok(path.to_owned()),
            [] => Err(self.unknown_name_error(key)),
            _ => Err(LaboratoryError::Request(format!(
                "several parameters are called `{key}`: write {}",
                found.join(" or ")
            ))),
        }
    }

    fn unknown_name_error(&self, key: &str) -> LaboratoryError {
        // A component and a key of the system itself are settings too.
        let has_components = self
            .known_paths
            .iter()
            .any(|path| !path.starts_with("program."));
        let components = Component::ALL.into_iter().map(Component::name);
        let alone = components.chain(SYSTEM_KEYS).filter(|_| has_components);
        let paths = self.known_paths.iter().map(String::as_str);
        let known: Vec<(&str, &str)> = alone
            .map(|name| (name, name))
            .chain(paths.filter_map(|path| Some((path.split_once('.')?.1, path))))
            .collect();
        let near = nearest_name(key, known.iter().map(|(name, _)| *name));
        let near = near.and_then(|near| known.iter().find(|(name, _)| *name == near));
        let of_programs = self.known_paths.iter().map(String::as_str);
        let of_programs: Vec<&str> = of_programs
            .filter(|path| path.starts_with("program."))
            .collect();
        let meant = match near {
            Some((_, path)) => format!("; did you mean `{path}`?"),
            None if of_programs.is_empty() => String::new(),
            None => format!("; programs have {}", of_programs.join(", ")),
        };
        LaboratoryError::Request(format!(
            "{} has a parameter `{key}`{meant}\n`diskperf list parameters` names what a system and a program have",
            self.unknown_message
        ))
    }

    /// Returns the settings with full paths.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::complete_path`].
    pub fn complete_settings(&self, settings: &[Setting]) -> Result<Vec<Setting>, LaboratoryError> {
        let whole = |one: &Setting| {
            Ok(Setting::new(
                &self.complete_path(&one.path)?,
                &one.value_text,
            ))
        };
        settings.iter().map(whole).collect()
    }
}

/// Reports whether a key is a parameter name without its component.
pub(crate) fn is_bare_name(key: &str) -> bool {
    !key.contains('.') && Component::from_name(key).is_none() && !SYSTEM_KEYS.contains(&key)
}
