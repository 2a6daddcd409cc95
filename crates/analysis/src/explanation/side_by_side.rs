//! Comparison of two explanations stage by stage, where the cause of their difference cannot be
//! tried out: two runs on real storage, or one of them and a model.

use super::difference::{Difference, Differences, Requests, Work, stages};
use super::{Explanation, ProgramExplanation};
use diskperf_timeline::Nanoseconds;

/// One of the two explanations that are compared side by side.
pub struct Side<'a> {
    /// Name of the side for the reader.
    pub name: &'a str,
    /// Explanation of the time of this side's programs.
    pub explanation: &'a Explanation,
    /// Amounts of work of the side's programs.
    pub amounts: &'a [Amount],
}

/// Amount of work of one program, in bytes and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Bytes that the program had to move.
    pub size_bytes: u64,
    /// Requests that the program completed in the explained repetition; 0 where they were not
    /// counted.
    pub requests: u64,
}

/// Compares the stages of the programs that both sides have; `None` where they have none in common.
/// `unlike` lists the known differences.
pub fn side_by_side(a: &Side<'_>, b: &Side<'_>, unlike: Vec<String>) -> Option<Differences> {
    let mut taken = vec![false; b.explanation.programs.len()];
    let mut programs = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for (one, of_a) in a.explanation.programs.iter().zip(a.amounts) {
        let Some(place) = find_partner(one, &b.explanation.programs, &taken) else {
            continue;
        };
        taken[place] = true;
        let (other, of_b) = (&b.explanation.programs[place], b.amounts[place]);
        let (a_bytes, b_bytes) = (of_a.size_bytes, of_b.size_bytes);
        // As much to do, and more done: it ended by its time.
        let lasts = a_bytes == b_bytes && one.drives == other.drives;
        let requests = Requests::if_unlike(of_a.requests, of_b.requests).filter(|_| lasts);
        notes.extend(requests.map(|requests| requests.note(&one.program)));
        if a_bytes != b_bytes {
            notes.push(format!(
                "{}: A moved {a_bytes} bytes and B {b_bytes}; B's times are scaled to the bytes of A",
                one.program
            ));
        }
        let bytes = Work {
            a: a_bytes,
            b: b_bytes,
        };
        let work = requests.map_or(bytes, Work::from);
        programs.push(Difference {
            requests,
            ..build_difference(one, other, work)
        });
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
        "the changes are listed but not modelled: only stages divide the difference".to_owned(),
    );
    Some(Differences {
        a: a.name.to_owned(),
        b: b.name.to_owned(),
        programs,
        unlike,
        notes,
    })
}

/// Finds the same program among others, if possible on the same file system.
fn find_partner(
    program_explanation: &ProgramExplanation,
    among: &[ProgramExplanation],
    taken: &[bool],
) -> Option<usize> {
    let free =
        |place: &usize| !taken[*place] && among[*place].program == program_explanation.program;
    let places = || (0..among.len()).filter(free);
    places()
        .find(|place| among[*place].filesystem == program_explanation.filesystem)
        .or_else(|| places().next())
}

fn build_difference(a: &ProgramExplanation, b: &ProgramExplanation, work: Work) -> Difference {
    let stages = stages(&a.account, &b.account, work);
    Difference {
        program: a.program.clone(),
        filesystems: (a.filesystem.clone(), b.filesystem.clone()),
        drives: (a.drives, b.drives),
        elapsed: (
            a.account.elapsed,
            stages.iter().map(|one| one.b).sum::<Nanoseconds>(),
        ),
        requests: None,
        stages,
        diagnosis: None,
        parts: Vec::new(),
        method: None,
    }
}

#[cfg(test)]
mod tests;
