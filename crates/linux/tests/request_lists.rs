//! The lists of requests of two kernels against those of the stack, sequence by sequence.

mod lists;

use diskperf_linux::operation::FileOperation;
use diskperf_linux::sequence::Sequence;
use diskperf_linux::stack::FileSystemOptions;
use diskperf_linux::version::KernelVersion;

use lists::{first_difference_of, read_lists, run_sequence, unmount_difference};

/// Sequences that are equal in a part of the recordings.
#[derive(Debug, PartialEq, Eq)]
struct Score {
    sequences: usize,
    equal: usize,
    unmounts_equal: usize,
}

fn score(file_system: &str, version: KernelVersion, is_hold_out: bool) -> Score {
    let (sequences, observed) = read_lists(file_system, version, is_hold_out);
    let mut score = Score {
        sequences: 0,
        equal: 0,
        unmounts_equal: 0,
    };
    for sequence in &sequences {
        score.sequences += 1;
        let sequence = match sequence {
            Ok(sequence) => sequence,
            Err(error) => {
                println!("{} {file_system}: {error}", version.name());
                continue;
            }
        };
        let options = match file_system {
            "ext4" => FileSystemOptions::Ext4(sequence.ext4),
            _ => FileSystemOptions::Xfs(sequence.xfs),
        };
        let observed = &observed[&format!("{}/{file_system}", sequence.id)];
        let place = format!("{} {file_system} {}", version.name(), sequence.id);
        match run_sequence(version, options, sequence) {
            Err(error) => println!("{place}: {error}"),
            Ok(modelled) => {
                let is_ext4 = file_system == "ext4";
                match first_difference_of(sequence, observed, &modelled, is_ext4) {
                    None => score.equal += 1,
                    Some(difference) => println!("{place}: {difference}"),
                }
                match unmount_difference(observed, &modelled, is_ext4) {
                    None => score.unmounts_equal += 1,
                    Some(difference) => println!("{place}: unmount: {difference}"),
                }
            }
        }
    }
    println!("{} {file_system}: {score:?}", version.name());
    score
}

/// Sequences that are equal at least.
struct Floor {
    version: KernelVersion,
    equal: usize,
    unmounts_equal: usize,
}

#[test]
fn ext4_makes_the_lists_of_the_development_sequences() {
    for floor in [
        Floor {
            version: KernelVersion::V6_18,
            equal: 45,
            unmounts_equal: 45,
        },
        Floor {
            version: KernelVersion::V6_1,
            equal: 45,
            unmounts_equal: 45,
        },
    ] {
        let score = score("ext4", floor.version, false);
        assert_eq!(score.sequences, 45);
        assert!(
            score.equal >= floor.equal,
            "{} {score:?}",
            floor.version.name()
        );
        assert!(
            score.unmounts_equal >= floor.unmounts_equal,
            "{} {score:?}",
            floor.version.name()
        );
    }
}

/// The score of the hold-out when development ended.
#[test]
#[ignore = "the hold-out: for the end of development, and not to develop on"]
fn ext4_makes_the_lists_of_the_hold_out() {
    for (version, equal_min) in [(KernelVersion::V6_18, 15), (KernelVersion::V6_1, 14)] {
        let score = score("ext4", version, true);
        assert_eq!(score.sequences, 15);
        assert!(score.equal >= equal_min, "{} {score:?}", version.name());
    }
}

/// Whether pages of user memory, whose adjacency nobody knows, decide where requests end.
fn is_direct(sequence: &Sequence) -> bool {
    let is_direct = |operation: &FileOperation| matches!(operation, FileOperation::Open { options, .. } if options.direct);
    sequence.operations.iter().any(is_direct)
}

#[test]
fn buffered_data_is_split_and_merged_into_the_observed_requests() {
    let (sequences, observed) = read_lists("ext4", KernelVersion::V6_18, false);
    let is_data = |text: &&String| text.starts_with("W ") || text.starts_with("R ");
    let mut compared = 0;
    let mut equal = 0;
    let sequences = sequences
        .iter()
        .map(|sequence| sequence.as_ref().expect("it is modelled"));
    for sequence in sequences.filter(|sequence| !is_direct(sequence)) {
        let observed = &observed[&format!("{}/ext4", sequence.id)];
        let options = FileSystemOptions::Ext4(sequence.ext4);
        let modelled = run_sequence(KernelVersion::V6_18, options, sequence).expect("it runs");
        for (index, requests) in observed.req.iter().enumerate() {
            let expected: Vec<&String> = requests.iter().filter(is_data).collect();
            let made: Vec<&String> = modelled.requests[index].iter().filter(is_data).collect();
            if expected.is_empty() && made.is_empty() {
                continue;
            }
            compared += 1;
            if expected == made {
                equal += 1;
            } else {
                println!(
                    "{} {index}: {expected:?} observed, {made:?} made",
                    sequence.id
                );
            }
        }
    }
    println!("{equal} of {compared} operations have the observed requests of data");
    assert!(
        compared >= 106,
        "{compared} operations with data are compared"
    );
    // Two reads race with writeback: fadvise drops pages that are written in time.
    assert!(compared - equal <= 2, "{equal} of {compared}");
}

#[test]
fn xfs_makes_the_lists_of_the_development_sequences() {
    // In two of 6.1, the recorder named a block by its state at the end: as of another file, or of
    // none.
    for (version, equal_min) in [(KernelVersion::V6_18, 45), (KernelVersion::V6_1, 43)] {
        let score = score("xfs", version, false);
        assert!(score.equal >= equal_min, "{} {score:?}", version.name());
        assert_eq!(score.unmounts_equal, score.sequences, "{}", version.name());
    }
}

#[test]
#[ignore = "the hold-out: for the end of development, and not to develop on"]
fn xfs_makes_the_lists_of_the_hold_out() {
    // One sequence has an option that is refused by name. In one more of 6.1, the recorder gave a
    // block the name of the file that had it later.
    for (version, equal_min) in [(KernelVersion::V6_18, 14), (KernelVersion::V6_1, 13)] {
        let score = score("xfs", version, true);
        assert_eq!(score.sequences, 15);
        assert!(score.equal >= equal_min, "{} {score:?}", version.name());
    }
}

#[test]
fn xfs_makes_all_observed_bios_and_requests_with_their_flags() {
    let (sequences, observed) = read_lists("xfs", KernelVersion::V6_18, false);
    for sequence in sequences {
        let sequence = sequence.expect("it is modelled");
        let observed = &observed[&format!("{}/xfs", sequence.id)];
        let options = FileSystemOptions::Xfs(sequence.xfs);
        let made = run_sequence(KernelVersion::V6_18, options, &sequence).expect("it runs");
        assert_eq!(made.operations, observed.bio, "{}", sequence.id);
        assert_eq!(made.requests, observed.req, "{}", sequence.id);
        assert_eq!(made.umount, observed.umount, "{}", sequence.id);
    }
}
