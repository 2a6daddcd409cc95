//! Trying every value of some parameters of a modelled system.

use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use crate::plan::apply_settings;
use crate::reproduce::jobs::{Job, Workshop};
use diskperf_analysis::tuning::{Key, Tuned};
use diskperf_battery::{Medium, Program, Suite};
use diskperf_machine::catalogue::{Catalogue, Setting};
use diskperf_timeline::CacheMode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is tried, on what.
#[derive(Clone)]
pub struct Search {
    /// The program.
    pub program: String,
    /// `program.KEY=VALUE` and settings of the system, the same in every run.
    pub settings: Vec<String>,
    /// The system.
    pub target: String,
    /// Drives that run the program at once.
    pub drives: u32,
    /// Bytes that it moves on each; the least whole number of calls from
    /// there on.
    pub size_bytes: u64,
    /// `KEY=VALUES`: see [`key`].
    pub over: Vec<String>,
    /// Of all random choices.
    pub seed: u64,
    /// Machines at a time; the results do not depend on it.
    pub threads: usize,
    /// Set when the user ends it.
    pub stop: Arc<AtomicBool>,
}

/// More combinations than these are a slip of the finger.
const MOST: usize = 100_000;

/// Runs every combination.
///
/// # Errors
///
/// A program, a system or a parameter that there is not, values that do not
/// fit, and what a machine fails with.
pub fn tune(
    catalogue: &Catalogue,
    search: &Search,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Tuned, LaboratoryError> {
    let keys: Vec<Key> = search
        .over
        .iter()
        .map(|text| key(text))
        .collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err(LaboratoryError::Request(
            "nothing to try: give --over drive.interleave=1..6, once or for several parameters"
                .to_owned(),
        ));
    }
    let lengths = keys.iter().map(|key| key.values.len());
    let count = lengths.fold(1_usize, usize::saturating_mul);
    if count > MOST {
        return Err(LaboratoryError::Request(format!(
            "{count} combinations are more than {MOST}; give fewer values"
        )));
    }
    let mut tuned = Tuned {
        what: format!("{} on {}", search.program, search.target),
        keys,
        kb_per_s: Vec::new(),
    };
    let jobs: Vec<Job> = (0..count)
        .map(|combination| job(catalogue, search, &tuned, combination))
        .collect::<Result<_, _>>()?;
    let workshop = Workshop {
        threads: search.threads,
        stop: &search.stop,
        progress,
    };
    let done = workshop.carry_out(&jobs)?;
    tuned.kb_per_s = done.iter().map(|figures| figures[0].kb_per_s).collect();
    Ok(tuned)
}

fn job(
    catalogue: &Catalogue,
    search: &Search,
    tuned: &Tuned,
    combination: usize,
) -> Result<Job, LaboratoryError> {
    let tried = tuned
        .keys
        .iter()
        .zip(tuned.places(combination))
        .map(|(key, place)| format!("{}={}", key.path, key.values[place]));
    let all = search.settings.iter().cloned().chain(tried);
    let (of_program, of_system): (Vec<String>, Vec<String>) =
        all.partition(|setting| setting.starts_with("program."));
    let program = program(&search.program, &of_program)?;
    let settings: Vec<Setting> = crate::model::settings(&of_system)?;
    let computer = Computer::read_for(catalogue, &search.target, &settings, [&program])?;
    let configured = computer.configured_drives();
    if search.drives as usize > configured {
        return Err(LaboratoryError::Request(format!(
            "--drives {}: {} has {configured} configured",
            search.drives, computer.name
        )));
    }
    let medium = computer.medium();
    // A drive by itself is read past every cache or not at all.
    let asked = match medium {
        Medium::Device => CacheMode::Direct,
        Medium::Directory | Medium::File => CacheMode::Cold,
    };
    let cached = program.cache_mode(asked) != CacheMode::Direct;
    if !program.is_of(medium) || (medium == Medium::Device && cached) {
        return Err(LaboratoryError::Request(format!(
            "{} cannot run on {}: one works on drives by themselves, the other on files; --set filesystem=none takes a system's files away",
            search.program, search.target
        )));
    }
    let call_bytes = program.call_bytes();
    let size_bytes = search.size_bytes.div_ceil(call_bytes) * call_bytes;
    program.check(size_bytes)?;
    let room = computer.room_bytes(0);
    if program.file_bytes(size_bytes) > room {
        return Err(LaboratoryError::Request(format!(
            "{size_bytes} bytes do not fit on a drive of {}, which has room for {room}; give a smaller --size",
            search.target
        )));
    }
    Ok(Job {
        drives: search.drives as usize,
        speed_difference: crate::reproduce::two_drives().speed_difference_share,
        ..Job::of(Arc::new(computer), program, size_bytes, search.seed)
    })
}

fn program(name: &str, settings: &[String]) -> Result<Program, LaboratoryError> {
    let program = Program::named(name).ok_or_else(|| {
        LaboratoryError::Request(format!(
            "no program is called `{name}`; `diskperf list programs` names them"
        ))
    })?;
    let mut suite = Suite::of_program(program);
    apply_settings(&mut suite, settings)?;
    Ok(suite.steps.remove(0).program)
}

/// A parameter with the values to try: `KEY=A..B`, every whole number from A
/// to B, `KEY=A..B/S` in steps of S, or `KEY=X,Y,Z`.
fn key(text: &str) -> Result<Key, LaboratoryError> {
    let wrong = |why: &str| {
        LaboratoryError::Request(format!(
            "--over {text}: {why}; give KEY=1..6, KEY=0..100/10 or KEY=2,4,8"
        ))
    };
    let (path, values) = text.split_once('=').ok_or_else(|| wrong("no values"))?;
    let values: Vec<String> = match values.split_once("..") {
        Some((from, to)) => {
            let (to, step) = to.split_once('/').unwrap_or((to, "1"));
            let parsed = (from.parse(), to.parse(), step.parse());
            let (Ok(from), Ok(to), Ok(step)) = parsed else {
                return Err(wrong("a range is of whole numbers"));
            };
            range(from, to, step).ok_or_else(|| wrong("an empty or too long range"))?
        }
        None => values.split(',').map(str::to_owned).collect(),
    };
    if path.is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong("a parameter or a value is missing"));
    }
    Ok(Key {
        path: path.to_owned(),
        values,
    })
}

fn range(from: u64, to: u64, step: u64) -> Option<Vec<String>> {
    if step == 0 || from > to || (to - from) / step >= MOST as u64 {
        return None;
    }
    let steps = (to - from) / step;
    Some((0..=steps).map(|n| (from + n * step).to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn values_are_a_range_or_a_list() {
        let values = |text| key(text).map(|key| key.values.join(" ")).ok();
        assert_eq!(values("a=1..3").as_deref(), Some("1 2 3"));
        assert_eq!(values("a=0..10/4").as_deref(), Some("0 4 8"));
        assert_eq!(values("a=8k,4k").as_deref(), Some("8k 4k"));
        for wrong in [
            "a",
            "a=",
            "=1",
            "a=3..1",
            "a=1..3/0",
            "a=x..y",
            "a=1,,2",
            "a=0..99999999",
        ] {
            assert!(values(wrong).is_none(), "{wrong}");
        }
    }
}
