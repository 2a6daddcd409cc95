//! Two explanations stage by stage, where what makes them differ cannot be tried
//! out: of runs on real storage, or of one and a model.

use super::difference::{Difference, Differences, rounded};
use super::{Explanation, ProgramExplanation};
use crate::explanation::difference::StageDifference;
use diskperf_timeline::{Nanoseconds, Stage};

/// One of the two.
pub struct Side<'a> {
    /// In words.
    pub name: &'a str,
    /// Where its time went.
    pub explanation: &'a Explanation,
    /// What each of its programs moved.
    pub sizes_bytes: &'a [u64],
}

/// The difference by stages of the programs that both have; none where they
/// have none in common. `unlike` is what is known to differ.
pub fn side_by_side(a: &Side<'_>, b: &Side<'_>, unlike: Vec<String>) -> Option<Differences> {
    let mut taken = vec![false; b.explanation.programs.len()];
    let mut programs = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for (one, a_bytes) in a.explanation.programs.iter().zip(a.sizes_bytes) {
        let Some(place) = partner(one, &b.explanation.programs, &taken) else {
            continue;
        };
        taken[place] = true;
        let (other, b_bytes) = (&b.explanation.programs[place], b.sizes_bytes[place]);
        if *a_bytes != b_bytes {
            notes.push(format!(
                "{}: A moved {a_bytes} bytes and B {b_bytes}; B's times are scaled to the bytes of A",
                one.program
            ));
        }
        programs.push(difference(one, other, (*a_bytes, b_bytes)));
    }
    if programs.is_empty() {
        return None;
    }
    let of_both = a.explanation.notes.iter().chain(&b.explanation.notes);
    for note in of_both {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes.push(
        "the changes are listed and not modelled: the difference is divided by stages alone"
            .to_owned(),
    );
    Some(Differences {
        a: a.name.to_owned(),
        b: b.name.to_owned(),
        programs,
        unlike,
        notes,
    })
}

/// Finds the same program, if possible on the same file system.
fn partner(of: &ProgramExplanation, among: &[ProgramExplanation], taken: &[bool]) -> Option<usize> {
    let free = |place: &usize| !taken[*place] && among[*place].program == of.program;
    let places = || (0..among.len()).filter(free);
    places()
        .find(|place| among[*place].filesystem == of.filesystem)
        .or_else(|| places().next())
}

fn difference(
    a: &ProgramExplanation,
    b: &ProgramExplanation,
    (a_bytes, b_bytes): (u64, u64),
) -> Difference {
    // The second as if it had moved as much as the first; its stages still sum
    // to its time.
    let shares = Stage::ALL
        .map(|stage| i128::from(b.account.ledger.stage(stage).0) * i128::from(a_bytes.max(1)));
    let scaled = rounded(&shares, i128::from(b_bytes.max(1)));
    let stages: Vec<StageDifference> = Stage::ALL
        .into_iter()
        .zip(scaled)
        .map(|(stage, ns)| StageDifference {
            stage,
            a: a.account.ledger.stage(stage),
            b: Nanoseconds(ns as u64),
        })
        .filter(|one| one.a.0 + one.b.0 > 0)
        .collect();
    Difference {
        program: a.program.clone(),
        filesystems: (a.filesystem.clone(), b.filesystem.clone()),
        drives: (a.drives, b.drives),
        elapsed: (
            a.account.elapsed,
            stages.iter().map(|one| one.b).sum::<Nanoseconds>(),
        ),
        stages,
        diagnosis: None,
        parts: Vec::new(),
        method: None,
    }
}

#[cfg(test)]
mod tests;
