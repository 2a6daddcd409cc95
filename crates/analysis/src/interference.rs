//! Notes on repetitions that were disturbed from outside.

use diskperf_timeline::{Interference, ProgramResult, Repetition};

/// Treatment of repetitions that were disturbed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DisturbanceHandling {
    /// The disturbed repetitions were run again, and do not count.
    RepeatedRepetitions,
    /// The disturbed repetitions count, since too few were undisturbed.
    CountedRepetitions,
    /// The disturbed repetitions are blocks of an A/B measurement, where each counts.
    KeptInBlocks,
}

fn list_counted_repetitions(result: &ProgramResult) -> &[Repetition] {
    let first = result.protocol.discarded_count as usize;
    result.repetitions.get(first..).unwrap_or_default()
}

fn list_disturbed_repetitions(result: &ProgramResult) -> impl Iterator<Item = &Repetition> {
    list_counted_repetitions(result)
        .iter()
        .filter(|one| one.is_disturbed())
}

/// Returns the treatment of a result's disturbed repetitions; `None` if nothing disturbed it.
fn choose_disturbance_handling(result: &ProgramResult) -> Option<DisturbanceHandling> {
    let count = list_disturbed_repetitions(result).count();
    let left_out = list_disturbed_repetitions(result)
        .filter(|one| one.is_discarded)
        .count();
    let of_blocks = list_counted_repetitions(result)
        .iter()
        .any(|one| one.interleaved_block.is_some());
    match (count, of_blocks) {
        (0, _) => None,
        (_, true) => Some(DisturbanceHandling::KeptInBlocks),
        (count, false) if left_out == count => Some(DisturbanceHandling::RepeatedRepetitions),
        (_, false) => Some(DisturbanceHandling::CountedRepetitions),
    }
}

/// Describes the disturbances of a result: the number of disturbed repetitions, their causes, and
/// whether they count.
pub fn describe_disturbances(result: &ProgramResult) -> Option<String> {
    let fate = choose_disturbance_handling(result)?;
    Some(format_disturbance_note(fate, &[result]))
}

/// Describes the disturbances of several results in one note per treatment, each with the indices
/// of its results.
pub fn describe_disturbances_together(results: &[&ProgramResult]) -> Vec<(Vec<usize>, String)> {
    [
        DisturbanceHandling::RepeatedRepetitions,
        DisturbanceHandling::CountedRepetitions,
        DisturbanceHandling::KeptInBlocks,
    ]
    .into_iter()
    .filter_map(|wanted| {
        let all = results.iter().enumerate();
        let alike = all.filter(|(_, result)| choose_disturbance_handling(result) == Some(wanted));
        let (numbers, alike): (Vec<usize>, Vec<&ProgramResult>) =
            alike.map(|(number, result)| (number, *result)).unzip();
        (!alike.is_empty()).then(|| (numbers, format_disturbance_note(wanted, &alike)))
    })
    .collect()
}

fn format_disturbance_note(fate: DisturbanceHandling, results: &[&ProgramResult]) -> String {
    let count: usize = results
        .iter()
        .map(|one| list_disturbed_repetitions(one).count())
        .sum();
    let of: usize = results
        .iter()
        .map(|one| list_counted_repetitions(one).len())
        .sum();
    let what = describe_sources(
        results
            .iter()
            .flat_map(|one| list_disturbed_repetitions(one)),
    );
    let what = what.unwrap_or_default();
    let plural = if of == 1 { "" } else { "s" };
    match fate {
        DisturbanceHandling::KeptInBlocks => {
            format!("{count} of {of} blocks disturbed, which still count: {what}")
        }
        DisturbanceHandling::RepeatedRepetitions => {
            format!("{count} of {of} repetition{plural} disturbed and repeated: {what}")
        }
        DisturbanceHandling::CountedRepetitions => format!(
            "{count} of {of} repetition{plural} disturbed, and all count, because too few were undisturbed: {what}"
        ),
    }
}

/// Describes the disturbances of some repetitions: each kind by its worst case, with the number of
/// affected repetitions.
pub fn describe_sources<'a>(
    repetitions: impl IntoIterator<Item = &'a Repetition>,
) -> Option<String> {
    let mut kinds: Vec<(&Interference, usize)> = Vec::new();
    for one in repetitions.into_iter().flat_map(|one| &one.interference) {
        match kinds
            .iter_mut()
            .find(|(known, _)| has_same_sources(known, one))
        {
            None => kinds.push((one, 1)),
            Some((worst, count)) => {
                *count += 1;
                if one.severity() > worst.severity() {
                    *worst = one;
                }
            }
        }
    }
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let told = kinds.iter().map(|(worst, count)| match count {
        1 => worst.to_string(),
        _ => format!("{worst} ({count})"),
    });
    (!kinds.is_empty()).then(|| told.collect::<Vec<_>>().join("; "))
}

/// Tests whether two disturbances have the same kind and the same source.
fn has_same_sources(one: &Interference, other: &Interference) -> bool {
    let thing = |of: &Interference| match of {
        Interference::ForeignIo { device, .. } => Some((device.clone(), String::new())),
        Interference::SettingChanged {
            device, setting, ..
        } => Some((device.clone(), setting.clone())),
        _ => None,
    };
    one.kind_name() == other.kind_name() && thing(one) == thing(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_result, write_repetition};
    use diskperf_timeline::InterleavedBlock;

    fn waited_share(percent: u64) -> Interference {
        Interference::ProcessorWait {
            waited_us: percent * 1000,
            share: percent as f64 / 100.0,
            preempted: 1,
        }
    }

    fn storage_writes(mib: u64) -> Interference {
        Interference::ForeignIo {
            device: "vda".to_owned(),
            read_bytes: 0,
            written_bytes: mib << 20,
        }
    }

    /// The note on a discarded repetition and five more, of which these were disturbed.
    fn noted(disturbed: &[(usize, bool, Interference)]) -> Option<String> {
        let mut result = build_result(
            "write_8192",
            0,
            vec![write_repetition(1 << 23, 500.0, 10.0); 6],
        );
        result.protocol.discarded_count = 1;
        result.repetitions[0].is_discarded = true;
        for (number, discarded, interference) in disturbed {
            let repetition = &mut result.repetitions[*number];
            repetition.interference.push(interference.clone());
            repetition.is_discarded = *discarded;
        }
        describe_disturbances(&result)
    }

    /// A block is never left out.
    #[test]
    fn blocks_count_whatever_disturbed_them() {
        let mut result = build_result(
            "write_8192",
            0,
            vec![write_repetition(1 << 23, 500.0, 10.0); 6],
        );
        result.protocol.discarded_count = 1;
        for (number, repetition) in (0..).zip(&mut result.repetitions).skip(1) {
            repetition.interleaved_block = Some(InterleavedBlock {
                block_number: number,
                is_second_run: false,
                is_after_verdict: false,
            });
        }
        result.repetitions[2].interference.push(waited_share(41));
        assert_eq!(
            describe_disturbances(&result),
            Some("1 of 5 blocks disturbed, which still count: waited 41 % of the time for a processor".to_owned())
        );
    }

    /// A busy machine disturbs every row of a suite.
    #[test]
    fn several_results_have_one_note_for_each_fate() {
        let result = |found: &[(usize, bool, Interference)]| {
            let mut one = build_result(
                "write_8192",
                0,
                vec![write_repetition(1 << 23, 500.0, 10.0); 6],
            );
            one.protocol.discarded_count = 1;
            for (number, discarded, interference) in found {
                one.repetitions[*number]
                    .interference
                    .push(interference.clone());
                one.repetitions[*number].is_discarded = *discarded;
            }
            one
        };
        let counts = result(&[(1, false, waited_share(41)), (2, false, storage_writes(3))]);
        let more = result(&[(1, false, waited_share(50)), (3, false, waited_share(12))]);
        let again = result(&[(1, true, waited_share(20))]);
        let calm = result(&[]);
        let all = [&counts, &calm, &again, &more];
        assert_eq!(
            describe_disturbances_together(&all),
            [
                (vec![2], describe_disturbances(&again).unwrap()),
                (
                    vec![0, 3],
                    "4 of 10 repetitions disturbed, and all count, because too few were undisturbed: waited 50 % of the time for a processor (3); other I/O on vda, 3 MiB written".to_owned()
                )
            ]
        );
        assert_eq!(
            describe_disturbances_together(&[&counts]),
            [(vec![0], describe_disturbances(&counts).unwrap())]
        );
        assert_eq!(describe_disturbances_together(&[&calm]), []);
    }

    #[test]
    fn the_worst_disturbance_is_reported() {
        assert_eq!(noted(&[]), None);
        // The first does not count anyhow.
        assert_eq!(noted(&[(0, true, waited_share(41))]), None);
        assert_eq!(
            noted(&[(1, true, waited_share(41)), (2, true, waited_share(12)), (4, true, storage_writes(210))]),
            Some("3 of 5 repetitions disturbed and repeated: waited 41 % of the time for a processor (2); other I/O on vda, 210 MiB written".to_owned())
        );
        assert_eq!(
            noted(&[(1, false, waited_share(41)), (2, false, storage_writes(3))]),
            Some("2 of 5 repetitions disturbed, and all count, because too few were undisturbed: waited 41 % of the time for a processor; other I/O on vda, 3 MiB written".to_owned())
        );
    }
}
