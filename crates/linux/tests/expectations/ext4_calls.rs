//! What ext4 makes of single calls, as it was measured on two kernels.

use crate::ext4_tables::{BOTH, COMMIT, Case, FILE, OPTIONS, OTHER_FILES, SINGLE_CALLS};
use crate::notation::{core, device, ext4, prepare, run};
use diskperf_linux::block::DeviceLimits;
use diskperf_linux::request_list::describe_bios;
use diskperf_linux::version::KernelVersion;

fn check(cases: &[Case]) {
    for case in cases {
        for version in case.versions {
            let mut stack = ext4(*version, device(), case.make, case.mount);
            prepare(&mut stack, case.before);
            for (index, (text, expected)) in case.steps.iter().enumerate() {
                let effects = run(&mut stack, text);
                let expected = expected.replace('C', COMMIT);
                assert_eq!(
                    core(&stack, &effects),
                    expected,
                    "{} on {}, step {index}: {text}",
                    case.name,
                    version.name()
                );
            }
        }
    }
}

#[test]
fn single_calls_make_the_measured_lists() {
    check(SINGLE_CALLS);
}

#[test]
fn mount_options_change_the_lists_as_measured() {
    check(OPTIONS);
}

#[test]
fn fsync_of_one_file_does_to_others_what_was_measured() {
    check(OTHER_FILES);
}

#[test]
fn a_durable_direct_overwrite_is_one_bio_on_a_device_with_fua() {
    for (has_fua, expected) in [(true, "W f 0+4 f"), (false, "W f 0+4, F")] {
        let limits = DeviceLimits {
            has_fua,
            ..device()
        };
        let mut stack = ext4(KernelVersion::V6_18, limits, "", "");
        prepare(
            &mut stack,
            &["open d f creat", "pwrite d 0 65536", "close d"],
        );
        run(&mut stack, "open d f direct,dsync");
        let effects = run(&mut stack, "pwrite d 0 4096");
        assert_eq!(core(&stack, &effects), expected);
    }
}

#[test]
fn a_hundred_creations_are_one_commit_without_data() {
    for version in BOTH {
        let mut stack = ext4(*version, device(), "", "");
        prepare(&mut stack, &["open s s creat", "open t t creat"]);
        for index in 0..100 {
            run(&mut stack, &format!("open d{index} f{index:03} creat"));
            run(&mut stack, &format!("pwrite d{index} 0 4096"));
        }
        let effects = run(&mut stack, "fsyncdir .");
        assert_eq!(
            core(&stack, &effects),
            "J 48, F, J 4 f",
            "{}",
            version.name()
        );
        let effects = run(&mut stack, "syncfs");
        let made = core(&stack, &effects);
        assert!(made.starts_with("W f000 0+4, W f001 0+4"), "{made}");
        assert!(made.contains("W f099 0+4, J 44, F, J 4 f"), "{made}");
        let places: Vec<u64> = effects
            .bios()
            .filter(|bio| matches!(bio.content, diskperf_linux::block::BioContent::Data { .. }))
            .map(|bio| bio.sector)
            .collect();
        assert!(
            places.windows(2).all(|pair| pair[1] == pair[0] + 8),
            "files lie one behind the other"
        );
    }
}

#[test]
fn the_first_commit_after_the_mount_writes_the_superblock_of_the_journal_first() {
    for version in BOTH {
        let mut stack = ext4(*version, device(), "", "");
        run(&mut stack, "open d f creat");
        let effects = run(&mut stack, "fsync d");
        let list = describe_bios(effects.bios(), |_| "f");
        assert_eq!(list[0], "M jsb 4 sm");
    }
}

#[test]
fn a_second_overwrite_within_a_tick_does_not_change_the_inode() {
    for version in BOTH {
        let mut stack = ext4(*version, device(), "", "");
        prepare(&mut stack, FILE);
        run(&mut stack, "pwrite d 0 4096");
        for text in ["fdatasync d", "pwrite d 0 4096", "fdatasync d"] {
            stack
                .run(&crate::notation::operation(text))
                .expect("it runs");
        }
        // The inode is in the transaction from the first write on.
        let effects = stack
            .run(&crate::notation::operation("fsync d"))
            .expect("it runs");
        assert_eq!(core(&stack, &effects), "J 8, F, J 4 f");
        stack
            .run(&crate::notation::operation("pwrite d 0 4096"))
            .expect("it runs");
        stack
            .run(&crate::notation::operation("fdatasync d"))
            .expect("it runs");
        let effects = stack
            .run(&crate::notation::operation("fsync d"))
            .expect("it runs");
        assert_eq!(core(&stack, &effects), "F");
    }
}

#[test]
fn lazytime_delays_only_what_the_version_lets_it_delay() {
    // Section 3: before 6.6 an overwrite leaves no trace until fsync; later its inode is in the
    // running transaction, which the timer commits.
    for (version, timer_list) in [
        (KernelVersion::V6_1, ""),
        (KernelVersion::V6_18, "J 8, F, J 4 f"),
    ] {
        let mut stack = ext4(version, device(), "", "lazytime");
        prepare(&mut stack, FILE);
        run(&mut stack, "pwrite d 0 4096");
        let effects = run(&mut stack, "fdatasync d");
        assert_eq!(core(&stack, &effects), "W f 0+4, F");
        let effects = run(&mut stack, "sleep 6.5");
        assert_eq!(core(&stack, &effects), timer_list, "{}", version.name());
        let effects = run(&mut stack, "fsync d");
        let expected = if timer_list.is_empty() {
            "J 8, F, J 4 f"
        } else {
            "F"
        };
        assert_eq!(core(&stack, &effects), expected, "{}", version.name());
    }
}

#[test]
fn what_is_left_of_a_small_unwritten_extent_is_zeroed() {
    // Without delayed allocation, a write converts its blocks at once.
    let mut stack = ext4(KernelVersion::V6_18, device(), "", "nodelalloc");
    prepare(
        &mut stack,
        &["open d f creat", "fallocate d extend 0 65536"],
    );
    let effects = run(&mut stack, "pwrite d 16384 4096");
    assert_eq!(core(&stack, &effects), "W f 0+16");
    let effects = run(&mut stack, "pwrite d 49152 4096");
    assert_eq!(core(&stack, &effects), "W f 52+12");
}

#[test]
fn three_thousand_creations_are_one_commit() {
    // Measured: J 844. How full the blocks of the directory are depends on the seed of its hash.
    for version in BOTH {
        let mut stack = ext4(*version, device(), "", "");
        for index in 0..3000 {
            let text = format!("open d f{index:04} creat");
            stack
                .run(&crate::notation::operation(&text))
                .expect("it runs");
            stack
                .run(&crate::notation::operation("close d"))
                .expect("it runs");
        }
        let effects = run(&mut stack, "fsyncdir .");
        let made = core(&stack, &effects);
        let length = made
            .strip_prefix("J ")
            .and_then(|rest| rest.strip_suffix(", F, J 4 f"));
        let length: u64 = length
            .and_then(|length| length.parse().ok())
            .expect("one commit");
        assert!((828..=860).contains(&length), "{}: {made}", version.name());
    }
}

#[test]
fn unmounting_a_clean_file_system_brings_its_log_home() {
    // Expectation 143: flushes of the syncs, and one for each transaction of the log.
    for version in BOTH {
        let mut stack = ext4(*version, device(), "", "");
        prepare(&mut stack, FILE);
        for text in ["pwrite d 0 4096", "fsync d", "syncfs"] {
            run(&mut stack, text);
        }
        let effects = stack.unmount().expect("it unmounts");
        let list = diskperf_linux::request_list::describe_bios(effects.bios(), |_| "f");
        let expected = [
            "F",
            "F",
            "F",
            "F",
            "F",
            "M jsb 4 fsm",
            "F",
            "M jsb 4 fsm",
            "M jsb 4 pfsm",
            "M sb 4 fsm",
        ];
        assert_eq!(list, expected, "{}", version.name());
    }
}
