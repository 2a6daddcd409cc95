//! fio's options: what each is called, and what becomes of it here.
//!
//! A row of a table is an option. An option that says what is done sets a field of the
//! [`Job`]; one that changes nothing of what is measured is listed with the result; all
//! others are refused, with why.

mod access;
mod course;
mod engine;
mod idle;
mod iolog;
mod reporting;
mod storage;
mod unsupported;

use crate::job::{Direction, Engine, Job, PerDirection};
use crate::value::{Value, Written};
use diskperf_diagnostics::Problem;

/// Sets what an option says.
pub(crate) type Setter = fn(&mut Job, &Written<'_>) -> Result<(), Problem>;

/// What becomes of an option.
#[derive(Clone, Copy)]
pub(crate) enum Treatment {
    /// It is done.
    Honoured(Setter),
    /// It is listed, for it does not matter because of this.
    Harmless(&'static str),
    /// It is an error: why, and what to do instead.
    Refused {
        why: &'static str,
        instead: &'static str,
    },
}

/// An option of fio's.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The engines that know it; all if there is none.
    pub(crate) engines: &'static [Engine],
    pub(crate) treatment: Treatment,
}

const fn honoured(name: &'static str, setter: Setter) -> Key {
    Key {
        name,
        aliases: &[],
        engines: &[],
        treatment: Treatment::Honoured(setter),
    }
}

const fn harmless(name: &'static str, why: &'static str) -> Key {
    Key {
        name,
        aliases: &[],
        engines: &[],
        treatment: Treatment::Harmless(why),
    }
}

const fn refused(name: &'static str, why: &'static str, instead: &'static str) -> Key {
    Key {
        name,
        aliases: &[],
        engines: &[],
        treatment: Treatment::Refused { why, instead },
    }
}

impl Key {
    const fn or(self, aliases: &'static [&'static str]) -> Key {
        Key { aliases, ..self }
    }

    const fn of(self, engines: &'static [Engine]) -> Key {
        Key { engines, ..self }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

const TABLES: [&[Key]; 8] = [
    access::KEYS,
    storage::KEYS,
    engine::KEYS,
    iolog::KEYS,
    course::KEYS,
    reporting::KEYS,
    idle::KEYS,
    unsupported::KEYS,
];

fn all() -> impl Iterator<Item = &'static Key> + Clone {
    TABLES.into_iter().flatten()
}

/// Names of options, for tests: of all that are known, with their aliases.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().flat_map(|key| [key.name].into_iter().chain(key.aliases.iter().copied()))
}

/// The option of this name, as an engine knows it. An option that some engines share is
/// there once for each meaning.
pub(crate) fn find(name: &str, engine: Engine) -> Option<&'static Key> {
    let fits = |key: &&Key| key.engines.is_empty() || key.engines.contains(&engine);
    let mut named = all().filter(|key| key.is_called(name));
    let first = named.clone().next()?;
    Some(named.find(fits).unwrap_or(first))
}

/// An engine that is not supported here and has an option of this name.
pub(crate) fn other_engine(name: &str) -> Option<&'static str> {
    engine::other_with_option(name)
}

/// The name that was probably meant: the most similar one, as fio names it too.
pub(crate) fn similar(name: &str) -> Option<&'static str> {
    // What is longer than any name is no name that was mistyped.
    if name.len() > 40 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let likeness = |known: &&str| (strsim::jaro_winkler(&name, known) * 1e6) as u64;
    names().max_by_key(likeness)
}

/// Reads a list of numbers into directions: an empty field changes nothing, and what the
/// last field says, all after it say too.
fn each<T: Clone>(
    parts: &[Value<'_>],
    into: &mut PerDirection<T>,
    read: impl Fn(&Value<'_>) -> Result<T, Problem>,
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
