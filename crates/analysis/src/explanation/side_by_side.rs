//! Comparison of two explanations stage by stage, where the cause of their difference cannot be
//! tried out: two runs on real storage, or one of them and a model.

use super::difference::{
    ExplanationDifferences, ProgramDifference, RequestCounts, WorkRatio, compare_stages,
};
use super::{Explanation, ProgramExplanation};
use diskperf_timeline::Nanoseconds;

/// One of the two explanations that are compared side by side.
pub struct ExplanationSide<'a> {
    /// Name of the side for the reader.
    pub name: &'a str,
    /// Explanation of the time of this side's programs.
    pub explanation: &'a Explanation,
    /// Amounts of work of the side's programs.
    pub work_amounts: &'a [WorkAmount],
}

/// Amount of work of one program, in bytes and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkAmount {
    /// Bytes that the program had to move.
    pub size_bytes: u64,
    /// Requests that the program completed in the explained repetition; 0 where they were not
    /// counted.
    pub request_count: u64,
}

/// Compares the stages of the programs that both sides have; `None` where they have none in common.
/// `unlike` lists the known differences.
pub fn compare_sides(
    a: &ExplanationSide<'_>,
    b: &ExplanationSide<'_>,
    unlike: Vec<String>,
) -> Option<ExplanationDifferences> {
    let mut taken = vec![false; b.explanation.programs.len()];
    let mut programs = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for (one, of_a) in a.explanation.programs.iter().zip(a.work_amounts) {
        let Some(place) = find_partner_program(one, &b.explanation.programs, &taken) else {
            continue;
        };
        taken[place] = true;
        let (other, of_b) = (&b.explanation.programs[place], b.work_amounts[place]);
        let (a_bytes, b_bytes) = (of_a.size_bytes, of_b.size_bytes);
        // As much to do, and more done: it ended by its time.
        let lasts = a_bytes == b_bytes && one.drive_count == other.drive_count;
        let requests = RequestCounts::new_if_different(of_a.request_count, of_b.request_count)
            .filter(|_| lasts);
        notes.extend(requests.map(|requests| requests.describe_counts(&one.program)));
        if a_bytes != b_bytes {
            notes.push(format!(
                "{}: A moved {a_bytes} bytes and B {b_bytes}; B's times are scaled to the bytes of A",
                one.program
            ));
        }
        let bytes = WorkRatio {
            a: a_bytes,
            b: b_bytes,
        };
        let work = requests.map_or(bytes, WorkRatio::from);
        programs.push(ProgramDifference {
            request_counts: requests,
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
    Some(ExplanationDifferences {
        a_name: a.name.to_owned(),
        b_name: b.name.to_owned(),
        programs,
        setting_differences: unlike,
        notes,
    })
}

/// Finds the same program among others, if possible on the same file system.
fn find_partner_program(
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

fn build_difference(
    a: &ProgramExplanation,
    b: &ProgramExplanation,
    work: WorkRatio,
) -> ProgramDifference {
    let stages = compare_stages(&a.time_account, &b.time_account, work);
    ProgramDifference {
        program: a.program.clone(),
        filesystems: (a.filesystem.clone(), b.filesystem.clone()),
        drives: (a.drive_count, b.drive_count),
        elapsed: (
            a.time_account.elapsed,
            stages.iter().map(|one| one.b).sum::<Nanoseconds>(),
        ),
        request_counts: None,
        stage_differences: stages,
        diagnosis: None,
        contributions: Vec::new(),
        method: None,
    }
}

#[cfg(test)]
mod tests;
