//! Checks of values against the key tables: rejected values and keys without effect.

use diskperf_diagnostics::Problem;

use super::{ImportFindings, SubstitutedValue, to_integer, to_number};
use crate::table::{
    BlockKeyTable, IntegerMax, KeyEffect, LegalValues, MissingKey, SpecificationKey,
};
use crate::text::{ParameterBlock, ParameterEntry, ParameterValue, ValueKind, shorten_text};

/// Lists a block without effect and its nested blocks: their keys, or the block's title if it has
/// no key table. Values that DiskSim does not accept are rejected, too.
pub(crate) fn report_ignored_block(
    block: &ParameterBlock,
    why: &'static str,
    findings: &ImportFindings,
) {
    let Some(table) = BlockKeyTable::find(block.kind.as_str()) else {
        return findings.report_ignored_key(block.title(), &block.kind, why);
    };
    for entry in &block.entries {
        let key = table.find_key(&entry.key);
        let why = match key.map(|key| key.effect) {
            Some(KeyEffect::Ignored(own)) if table.missing_key_treatment == MissingKey::Accept => {
                own
            }
            Some(_) => why,
            None => "DiskSim has no such key in this block",
        };
        findings.report_ignored_entry(block, entry, why);
        if let Some(key) = key {
            is_legal(entry, key, findings);
        }
        report_ignored_nested(&entry.value, why, findings);
    }
}

fn report_ignored_nested(value: &ParameterValue, why: &'static str, findings: &ImportFindings) {
    match &value.kind {
        ValueKind::Block(block) => report_ignored_block(block, why, findings),
        // Lists are at most as deep as the reader takes.
        ValueKind::List(values) => {
            for value in values {
                report_ignored_nested(value, why, findings);
            }
        }
        _ => {}
    }
}

/// Checks values whose maximum depends on other values of the file.
pub(crate) fn check_sector_limits(block: &ParameterBlock, sectors: u64, findings: &ImportFindings) {
    let table = BlockKeyTable::find(block.kind.as_str());
    let keyed = |entry: &ParameterEntry| table.and_then(|table| table.find_key(&entry.key));
    for entry in &block.entries {
        let Some(key) = keyed(entry) else { continue };
        let limit = match key.legal_values {
            // A layout without sectors is an error of its own.
            LegalValues::Integer {
                max: IntegerMax::DiskSectors,
                ..
            } => i64::try_from(sectors).ok().filter(|&sectors| sectors > 0),
            LegalValues::Integer {
                max: IntegerMax::OtherKey(other),
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
            findings.report_error(out_of_range_problem(entry, key, Some(limit)));
        }
    }
}

/// Records the effect of a key unless the model uses the key.
pub(super) fn report_effect(
    block: &ParameterBlock,
    entry: &ParameterEntry,
    key: &SpecificationKey,
    findings: &ImportFindings,
) {
    match key.effect {
        KeyEffect::Used => {}
        KeyEffect::Ignored(why) => findings.report_ignored(block, entry, why, None),
        KeyEffect::Substituted(modelled, why) => {
            let written = to_number(&entry.value).filter(|written| *written != modelled);
            let acts_as = written.map(|_| SubstitutedValue {
                file_value: shorten_text(entry.value.span.as_str()),
                modelled_value: modelled.to_string(),
            });
            findings.report_ignored(block, entry, why, acts_as);
        }
    }
}

/// Tests whether DiskSim accepts a value, and reports an error if not. Limits that depend on other
/// values are not checked.
pub(super) fn is_legal(
    entry: &ParameterEntry,
    key: &SpecificationKey,
    findings: &ImportFindings,
) -> bool {
    let value = &entry.value;
    let is_legal = match key.legal_values {
        LegalValues::Integer { min, max } => to_integer(value).is_some_and(|number| {
            let is_low = min.is_some_and(|min| number < min);
            let is_high = matches!(max, IntegerMax::Value(max) if number > max);
            !is_low && !is_high
        }),
        LegalValues::Number {
            min,
            is_above_min,
            max,
        } => to_number(value).is_some_and(|number| {
            let is_low = min.is_some_and(|min| number < min || (is_above_min && number == min));
            !is_low && max.is_none_or(|max| number <= max)
        }),
        // A file may be called `1`.
        LegalValues::Word => !matches!(
            value.kind,
            ValueKind::List(_) | ValueKind::Block(_) | ValueKind::Range(_)
        ),
        LegalValues::List => matches!(value.kind, ValueKind::List(_)),
        LegalValues::Block => matches!(value.kind, ValueKind::Block(_)),
    };
    if !is_legal {
        findings.report_error(out_of_range_problem(entry, key, None));
    }
    is_legal
}

fn out_of_range_problem(
    entry: &ParameterEntry,
    key: &SpecificationKey,
    limit: Option<i64>,
) -> Problem {
    let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
    let problem = Problem::error(title).at(&entry.value.span, key.legal_values.describe(limit));
    problem.help(format!(
        "write `{} = {}`",
        key.name,
        legal_example(entry, key, limit)
    ))
}

/// Returns a legal value close to the written one, as an example.
fn legal_example(entry: &ParameterEntry, key: &SpecificationKey, limit: Option<i64>) -> String {
    // `1e3` and `.5` are words to DiskSim.
    let text = entry.value.span.as_str().parse::<f64>();
    let written = to_number(&entry.value).or_else(|| text.ok().filter(|number| number.is_finite()));
    match key.legal_values {
        LegalValues::Integer { min, max } => {
            let limit = match max {
                IntegerMax::Value(max) => Some(max),
                _ => limit,
            };
            let near = written.map_or(0, |written| written.round() as i64);
            let near = near.max(min.unwrap_or(near));
            near.min(limit.unwrap_or(near)).to_string()
        }
        LegalValues::Number {
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
        LegalValues::Word => "WORD".to_owned(),
        LegalValues::List => "[ .. ]".to_owned(),
        LegalValues::Block => "type { .. }".to_owned(),
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

pub(super) fn unknown_key_problem(
    block: &ParameterBlock,
    entry: &ParameterEntry,
    table: &BlockKeyTable,
) -> Problem {
    let title = format!(
        "{} has no key `{}`",
        block.title(),
        shorten_text(&entry.key)
    );
    let problem = Problem::error(title).at(&entry.key_span, "unknown");
    let mut names = table.keys.iter().map(|key| key.name);
    let near = names.find(|name| strsim::jaro_winkler(name, &entry.key) > 0.9);
    problem.help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "remove it; DiskSim has no such key in this block".to_owned(),
    })
}
