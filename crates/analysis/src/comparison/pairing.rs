//! Assignment of the results of one run to those of another.

use crate::caps;
use diskperf_timeline::{ProgramResult, Run};

/// Pairs of results from two runs, each result in at most one pair.
pub(super) struct ResultPairing<'a> {
    pub(super) pairs: Vec<(&'a ProgramResult, &'a ProgramResult)>,
    pub(super) base_only: Vec<&'a ProgramResult>,
    pub(super) other_only: Vec<&'a ProgramResult>,
}

impl<'a> ResultPairing<'a> {
    /// Pairs results of the same program and distinguishing parameters, the most similar first: the
    /// same number of drives, then the same kind of file system, then the same block size.
    ///
    /// The arms of one A/B measurement ran the same programs in the same order, whatever their
    /// parameters are, so their results are paired by position.
    pub(super) fn match_results(base: &'a Run, other: &'a Run) -> Self {
        if super::are_ab_partners(base, other) {
            let mut pairs: Vec<_> = base.results.iter().zip(&other.results).collect();
            pairs.sort_by_key(|(result, _)| result.table_row);
            let beyond = |one: &'a Run| one.results.iter().skip(pairs.len()).collect();
            return Self {
                base_only: beyond(base),
                other_only: beyond(other),
                pairs,
            };
        }
        let base = results_in_table_order(base);
        let other = results_in_table_order(other);
        let mut candidates = Vec::new();
        for (b, base_result) in base.iter().enumerate() {
            for (o, other_result) in other.iter().enumerate() {
                let alone = is_only_result_of_program(base_result, &base)
                    && is_only_result_of_program(other_result, &other);
                if let Some(unlikeness_score) = unlikeness_score(base_result, other_result, alone) {
                    candidates.push((unlikeness_score, b, o));
                }
            }
        }
        candidates.sort_unstable();
        let mut partner: Vec<Option<usize>> = vec![None; base.len()];
        let mut taken = vec![false; other.len()];
        for (_, b, o) in candidates {
            if partner[b].is_none() && !taken[o] {
                partner[b] = Some(o);
                taken[o] = true;
            }
        }
        let mut pairing = Self {
            pairs: Vec::new(),
            base_only: Vec::new(),
            other_only: Vec::new(),
        };
        for (result, partner) in base.iter().zip(partner) {
            match partner {
                Some(o) => pairing.pairs.push((result, other[o])),
                None => pairing.base_only.push(result),
            }
        }
        let left = other.iter().zip(taken).filter(|(_, taken)| !taken);
        pairing.other_only = left.map(|(result, _)| *result).collect();
        pairing
    }
}

/// Returns the results in the order of the table, without probes for caps, which measure no load.
fn results_in_table_order(run: &Run) -> Vec<&ProgramResult> {
    let loads = run.results.iter().filter(|one| !caps::is_probe(one));
    let mut results: Vec<&ProgramResult> = loads.collect();
    results.sort_by_key(|result| result.table_row);
    results
}

fn is_only_result_of_program(result: &ProgramResult, results: &[&ProgramResult]) -> bool {
    let same = |other: &&&ProgramResult| other.program == result.program;
    results.iter().filter(same).count() == 1
}

/// Returns the dissimilarity of two results, 0 for alike results; `None` if they may not be
/// compared. Parameters may differ only where the program occurs once in each run.
fn unlikeness_score(base: &ProgramResult, other: &ProgramResult, alone: bool) -> Option<u32> {
    let parameters = !differing_parameters(base, other).is_empty();
    if base.program != other.program || (parameters && !alone) {
        return None;
    }
    let (base_kind, base_block) = split_filesystem_kind(&base.filesystem_type);
    let (other_kind, other_block) = split_filesystem_kind(&other.filesystem_type);
    let differences = [
        parameters,
        base.drive_count != other.drive_count,
        base_kind != other_kind,
        base_block != other_block,
    ];
    Some(
        differences
            .iter()
            .fold(0, |sum, &differs| 2 * sum + u32::from(differs)),
    )
}

fn split_filesystem_kind(filesystem: &str) -> (&str, &str) {
    filesystem.split_once('/').unwrap_or((filesystem, ""))
}

/// Returns the distinguishing parameters of either result in which the two results differ.
pub(super) fn differing_parameters<'a>(
    base: &'a ProgramResult,
    other: &'a ProgramResult,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = base
        .distinguishing
        .iter()
        .chain(&other.distinguishing)
        .map(String::as_str)
        .filter(|&name| base.parameters.get(name) != other.parameters.get(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
