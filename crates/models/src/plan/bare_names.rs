//! Bare parameter names without their component: `depth=4` for `program.depth=4`.

use super::workload::parameter_names;
use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use diskperf_battery::Suite;
use diskperf_battery::program::nearest_name;
use diskperf_catalogue::Component;
use diskperf_timeline::Setting;
use std::collections::BTreeSet;

/// Keys of a modelled system itself, which have no component before them.
const SYSTEM_KEYS: [&str; 2] = ["drives", "components"];

/// Paths of all parameters that an experiment can set.
pub struct BareNames {
    paths: BTreeSet<String>,
    /// Subject of the error for an unknown name, such as `no program of today26`.
    nothing: String,
}

impl BareNames {
    /// Collects the parameters of programs. Real storage has no others.
    pub fn of_programs(suite: &Suite) -> Self {
        let names = parameter_names(suite).into_iter();
        Self {
            paths: names.map(|name| format!("program.{name}")).collect(),
            nothing: format!("no program of {}", suite.name),
        }
    }

    /// Collects the parameters of programs and of a modelled computer.
    pub fn of_computer(suite: &Suite, computer: &Computer) -> Self {
        let mut all = Self::of_programs(suite);
        all.nothing += &format!(" and no component of {}", computer.name);
        for parameter in &computer.parameters {
            if let Some((component, rest)) = parameter.path.split_once('.') {
                // A number between them is that of one drive of several.
                let key = rest.rsplit('.').next().unwrap_or(rest);
                all.paths.insert(format!("{component}.{key}"));
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
    pub fn whole(&self, key: &str) -> Result<String, LaboratoryError> {
        if !is_bare(key) {
            return Ok(key.to_owned());
        }
        let has_key = |path: &&String| path.split_once('.').is_some_and(|(_, name)| name == key);
        let found: Vec<&str> = (self.paths.iter().filter(has_key).map(String::as_str)).collect();
        match found[..] {
            [path] => Ok(path.to_owned()),
            [] => Err(self.unknown(key)),
            _ => Err(LaboratoryError::Request(format!(
                "several parameters are called `{key}`: write {}",
                found.join(" or ")
            ))),
        }
    }

    fn unknown(&self, key: &str) -> LaboratoryError {
        // A component and a key of the system itself are settings too.
        let has_components = self.paths.iter().any(|path| !path.starts_with("program."));
        let components = Component::ALL.into_iter().map(Component::name);
        let alone = components.chain(SYSTEM_KEYS).filter(|_| has_components);
        let paths = self.paths.iter().map(String::as_str);
        let known: Vec<(&str, &str)> = alone
            .map(|name| (name, name))
            .chain(paths.filter_map(|path| Some((path.split_once('.')?.1, path))))
            .collect();
        let near = nearest_name(key, known.iter().map(|(name, _)| *name));
        let near = near.and_then(|near| known.iter().find(|(name, _)| *name == near));
        let of_programs = self.paths.iter().map(String::as_str);
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
            self.nothing
        ))
    }

    /// Returns the settings with full paths.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::whole`].
    pub fn settings(&self, settings: &[Setting]) -> Result<Vec<Setting>, LaboratoryError> {
        let whole = |one: &Setting| Ok(Setting::new(&self.whole(&one.path)?, &one.value_text));
        settings.iter().map(whole).collect()
    }
}

/// Reports whether a key is a parameter name without its component.
pub(crate) fn is_bare(key: &str) -> bool {
    !key.contains('.') && Component::of_name(key).is_none() && !SYSTEM_KEYS.contains(&key)
}
