//! Checks of values against the key tables: rejected values and keys without effect.

use diskperf_diagnostics::Problem;

use super::{ActsAs, Findings, real, to_integer};
use crate::table::{BlockKeys, Effect, Key, Legal, Max, Missing};
use crate::text::{Block, Entry, Value, ValueKind, excerpt};

/// Lists a block without effect and its nested blocks: their keys, or the block's title if it has
/// no key table. Values that DiskSim does not accept are rejected, too.
pub(crate) fn note_block_without_effect(block: &Block, why: &'static str, findings: &Findings) {
    let Some(table) = BlockKeys::find(block.kind.as_str()) else {
        return findings.without_effect(block.title(), &block.kind, why);
    };
    for entry in &block.entries {
        let key = table.key(&entry.key);
        let why = match key.map(|key| key.effect) {
            Some(Effect::None(own)) if table.missing == Missing::Nothing => own,
            Some(_) => why,
            None => "DiskSim has no such key in this block",
        };
        findings.note_key_without_effect(block, entry, why);
        if let Some(key) = key {
            is_legal(entry, key, findings);
        }
        note_nested_without_effect(&entry.value, why, findings);
    }
}

fn note_nested_without_effect(value: &Value, why: &'static str, findings: &Findings) {
    match &value.kind {
        ValueKind::Block(block) => note_block_without_effect(block, why, findings),
        // Lists are at most as deep as the reader takes.
        ValueKind::List(values) => {
            for value in values {
                note_nested_without_effect(value, why, findings);
            }
        }
        _ => {}
    }
}

/// Checks values whose maximum depends on other values of the file.
pub(crate) fn check_limits(block: &Block, sectors: u64, findings: &Findings) {
    let table = BlockKeys::find(block.kind.as_str());
    let keyed = |entry: &Entry| table.and_then(|table| table.key(&entry.key));
    for entry in &block.entries {
        let Some(key) = keyed(entry) else { continue };
        let limit = match key.legal {
            // A layout without sectors is an error of its own.
            Legal::Whole {
                max: Max::Sectors, ..
            } => i64::try_from(sectors).ok().filter(|&sectors| sectors > 0),
            Legal::Whole {
                max: Max::OfKey(other),
                ..
            } => {
                let other = block.entries.iter().find(|entry| entry.key == other);
                let limit = other.and_then(|other| to_integer(&other.value));
                limit.map(|limit| limit.max(1))
            }
            _ => None,
        };
        if let (Some(limit), Some(number)) = (limit, to_integer(&entry.value))
            && number > limit
        {
            findings.error(out_of_range_problem(entry, key, Some(limit)));
        }
    }
}

/// Records the effect of a key unless the model uses the key.
pub(super) fn report_effect(block: &Block, entry: &Entry, key: &Key, findings: &Findings) {
    match key.effect {
        Effect::Used => {}
        Effect::None(why) => findings.note(block, entry, why, None),
        Effect::ActsAs(modelled, why) => {
            let written = real(&entry.value).filter(|written| *written != modelled);
            let acts_as = written.map(|_| ActsAs {
                written: excerpt(entry.value.place.as_str()),
                modelled: modelled.to_string(),
            });
            findings.note(block, entry, why, acts_as);
        }
    }
}

/// Tests whether DiskSim accepts a value, and reports an error if not. Limits that depend on other
/// values are not checked.
pub(super) fn is_legal(entry: &Entry, key: &Key, findings: &Findings) -> bool {
    let value = &entry.value;
    let is_legal = match key.legal {
        Legal::Whole { min, max } => to_integer(value).is_some_and(|number| {
            let is_low = min.is_some_and(|min| number < min);
            let is_high = matches!(max, Max::Value(max) if number > max);
            !is_low && !is_high
        }),
        Legal::Number {
            min,
            is_above_min,
            max,
        } => real(value).is_some_and(|number| {
            let is_low = min.is_some_and(|min| number < min || (is_above_min && number == min));
            !is_low && max.is_none_or(|max| number <= max)
        }),
        // A file may be called `1`.
        Legal::Word => !matches!(
            value.kind,
            ValueKind::List(_) | ValueKind::Block(_) | ValueKind::Range(_)
        ),
        Legal::List => matches!(value.kind, ValueKind::List(_)),
        Legal::Block => matches!(value.kind, ValueKind::Block(_)),
    };
    if !is_legal {
        findings.error(out_of_range_problem(entry, key, None));
    }
    is_legal
}

fn out_of_range_problem(entry: &Entry, key: &Key, limit: Option<i64>) -> Problem {
    let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
    let problem = Problem::error(title).at(&entry.value.place, key.legal.describe(limit));
    problem.help(format!(
        "write `{} = {}`",
        key.name,
        legal_example(entry, key, limit)
    ))
}

/// Returns a legal value close to the written one, as an example.
fn legal_example(entry: &Entry, key: &Key, limit: Option<i64>) -> String {
    // `1e3` and `.5` are words to DiskSim.
    let text = entry.value.place.as_str().parse::<f64>();
    let written = real(&entry.value).or_else(|| text.ok().filter(|number| number.is_finite()));
    match key.legal {
        Legal::Whole { min, max } => {
            let limit = match max {
                Max::Value(max) => Some(max),
                _ => limit,
            };
            let near = written.map_or(0, |written| written.round() as i64);
            let near = near.max(min.unwrap_or(near));
            near.min(limit.unwrap_or(near)).to_string()
        }
        Legal::Number {
            min,
            is_above_min,
            max,
        } => {
            let near = written.unwrap_or(0.0).max(min.unwrap_or(f64::MIN));
            let near = near.min(max.unwrap_or(f64::MAX));
            match is_above_min && Some(near) == min {
                true => "1.0".to_owned(),
                false => with_decimal_point(near),
            }
        }
        Legal::Word => "WORD".to_owned(),
        Legal::List => "[ .. ]".to_owned(),
        Legal::Block => "type { .. }".to_owned(),
    }
}

/// Formats a number in DiskSim's syntax, with digits on both sides of the decimal point.
fn with_decimal_point(number: f64) -> String {
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

pub(super) fn unknown_key_problem(block: &Block, entry: &Entry, table: &BlockKeys) -> Problem {
    let title = format!("{} has no key `{}`", block.title(), excerpt(&entry.key));
    let problem = Problem::error(title).at(&entry.key_place, "unknown");
    let mut names = table.keys.iter().map(|key| key.name);
    let near = names.find(|name| strsim::jaro_winkler(name, &entry.key) > 0.9);
    problem.help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "remove it; DiskSim has no such key in this block".to_owned(),
    })
}
