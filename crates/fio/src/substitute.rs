//! `${NAME}`, `$pagesize`, `$mb_memory` and `$ncpus` in a value.

use crate::expression::{self, Grammar};
use crate::reader::{LONGEST_LINE_BYTES, excerpt};
use crate::surroundings::Surroundings;
use diskperf_diagnostics::Place;
use diskperf_diagnostics::Problem;

/// A value with everything in its place, and what fio does without a word.
pub(crate) fn substitute(
    value: &str,
    place: &Place,
    surroundings: &Surroundings,
    warnings: &mut Vec<Problem>,
) -> Result<String, Problem> {
    let value = variables(value, place, surroundings, warnings);
    let (value, replaced) = keywords(&value, surroundings);
    if value.len() > LONGEST_LINE_BYTES {
        let title = format!("a value of {} bytes", value.len());
        let label = "with what the variables stand for";
        return Err(Problem::error(title).at(place, label));
    }
    if !replaced || !value.contains(['+', '-', '*', '/']) {
        return Ok(value);
    }
    let worked_out = expression::evaluate(&value, Grammar::Plain);
    worked_out.map(|value| value.to_string()).map_err(|fault| {
        let title = format!("`{}` cannot be worked out: {}", excerpt(&value), fault.why);
        Problem::error(title)
            .at(place, "fio gives this to bc")
            .help("bc knows numbers, `+ - * / % ^` and parentheses, but no k or m: write 1024")
    })
}

/// The variables that a value names.
pub(crate) fn names(value: &str) -> impl Iterator<Item = &str> {
    let parts = value.split("${").skip(1);
    parts.filter_map(|part| Some(part.split_once('}')?.0))
}

/// `${NAME}`: what the environment says, or nothing.
fn variables(
    value: &str,
    place: &Place,
    surroundings: &Surroundings,
    warnings: &mut Vec<Problem>,
) -> String {
    let mut done = String::new();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let name = &rest[start + 2..start + length];
        done.push_str(&rest[..start]);
        match surroundings.variables.get(name) {
            Some(variable) => done.push_str(variable),
            None => {
                let title = format!("the variable `{}` is not set", excerpt(name));
                warnings.push(Problem::warning(title).at(place, "fio puts nothing in its place"));
            }
        }
        rest = &rest[start + length + 1..];
        if done.len() > LONGEST_LINE_BYTES {
            break;
        }
    }
    done.push_str(rest);
    done
}

/// The numbers of this machine, and whether there was any.
fn keywords(value: &str, surroundings: &Surroundings) -> (String, bool) {
    let words = [
        ("$pagesize", surroundings.page_bytes),
        ("$mb_memory", surroundings.memory_mib),
        ("$ncpus", surroundings.processors),
    ];
    let mut done = value.to_owned();
    for (word, number) in words {
        done = done.replace(word, &number.to_string());
    }
    let replaced = words.iter().any(|(word, _)| value.contains(word));
    (done, replaced)
}
