//! Tables of fio's options, with their names and treatment.
//!
//! Each table row is an option. An option that affects the workload sets a field of the [`JobDefinition`]. An
//! option without effect on the measured results is listed with them. Every other option is
//! rejected, with the reason.

mod access;
mod course;
mod engine;
mod idle;
mod iolog;
mod reporting;
mod storage;
mod unsupported;

use crate::job::{Direction, IoEngine, JobDefinition, PerDirection};
use crate::value::{OptionValue, WrittenOption};
use diskperf_diagnostics::Problem;

pub(crate) type Setter = fn(&mut JobDefinition, &WrittenOption<'_>) -> Result<(), Problem>;

/// Treatment of an option of a job file.
#[derive(Clone, Copy)]
pub(crate) enum OptionTreatment {
    /// Option that changes the job, with the function that applies it.
    Applied(Setter),
    /// Option that has no effect on the results; the text is the reason.
    NoEffect(&'static str),
    /// Option that is an error, with the reason and the alternative.
    Rejected {
        why: &'static str,
        instead: &'static str,
    },
}

/// Job option of fio, with its aliases and treatment.
#[derive(Clone, Copy)]
pub(crate) struct OptionKey {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// Engines that have the option; empty for an option of all engines.
    pub(crate) engines: &'static [IoEngine],
    pub(crate) treatment: OptionTreatment,
}

const fn applied_option(name: &'static str, setter: Setter) -> OptionKey {
    OptionKey {
        name,
        aliases: &[],
        engines: &[],
        treatment: OptionTreatment::Applied(setter),
    }
}

const fn ineffective_option(name: &'static str, why: &'static str) -> OptionKey {
    OptionKey {
        name,
        aliases: &[],
        engines: &[],
        treatment: OptionTreatment::NoEffect(why),
    }
}

const fn rejected_option(
    name: &'static str,
    why: &'static str,
    instead: &'static str,
) -> OptionKey {
    OptionKey {
        name,
        aliases: &[],
        engines: &[],
        treatment: OptionTreatment::Rejected { why, instead },
    }
}

impl OptionKey {
    const fn with_aliases(self, aliases: &'static [&'static str]) -> OptionKey {
        OptionKey { aliases, ..self }
    }

    const fn for_engines(self, engines: &'static [IoEngine]) -> OptionKey {
        OptionKey { engines, ..self }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

const TABLES: [&[OptionKey]; 8] = [
    access::OPTIONS,
    storage::OPTIONS,
    engine::OPTIONS,
    iolog::OPTIONS,
    course::OPTIONS,
    reporting::OPTIONS,
    idle::OPTIONS,
    unsupported::OPTIONS,
];

fn all_options() -> impl Iterator<Item = &'static OptionKey> + Clone {
    TABLES.into_iter().flatten()
}

/// Returns the names and aliases of all known options; used by tests.
pub(crate) fn option_names() -> impl Iterator<Item = &'static str> {
    all_options().flat_map(|key| [key.name].into_iter().chain(key.aliases.iter().copied()))
}

/// Finds an option by name for an engine. An option that means different things to different
/// engines has one entry for each meaning.
pub(crate) fn find_option(name: &str, engine: IoEngine) -> Option<&'static OptionKey> {
    let fits = |key: &&OptionKey| key.engines.is_empty() || key.engines.contains(&engine);
    let mut named = all_options().filter(|key| key.is_called(name));
    let first = named.clone().next()?;
    Some(named.find(fits).unwrap_or(first))
}

/// Returns an unsupported engine that has an option of this name.
pub(crate) fn find_other_engine(name: &str) -> Option<&'static str> {
    engine::find_engine_by_option(name)
}

/// Suggests the known option name that is most similar to an unknown one.
pub(crate) fn find_similar_name(name: &str) -> Option<&'static str> {
    // What is longer than any name is no name that was mistyped.
    if name.len() > 40 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let likeness = |known: &&str| (strsim::jaro_winkler(&name, known) * 1e6) as u64;
    option_names().max_by_key(likeness)
}

/// Reads values for reads, writes and trims. An empty field keeps the default, and the last field
/// also applies to the directions after it.
fn parse_per_direction<T: Clone>(
    parts: &[OptionValue<'_>],
    into: &mut PerDirection<T>,
    read: impl Fn(&OptionValue<'_>) -> Result<T, Problem>,
) -> Result<(), Problem> {
    for (at, part) in parts.iter().enumerate() {
        if part.text().is_empty() {
            continue;
        }
        let value = read(part)?;
        let is_last = at + 1 == parts.len();
        let until = if is_last { 3 } else { at + 1 };
        for &direction in &Direction::ALL[at..until] {
            *into.get_mut(direction) = value.clone();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
