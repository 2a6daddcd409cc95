//! Expectations of XFS that were measured call by call.

use diskperf_linux::block::{Bio, BioContent, DeviceLimits};
use diskperf_linux::stack::{FileSystemOptions, Stack};
use diskperf_linux::version::KernelVersion;
use diskperf_linux::xfs::XfsOptions;

use crate::notation::{core, device, host, operation, run};

const VERSIONS: [KernelVersion; 2] = [KernelVersion::V6_1, KernelVersion::V6_18];
/// Call with what each version makes of it, in core form.
#[derive(Debug)]
struct ExpectedCall {
    text: String,
    expected: Vec<(KernelVersion, String)>,
}

/// Calls on a fresh file system.
#[derive(Debug, Default)]
struct ExpectedCase {
    title: String,
    mkfs: Vec<String>,
    mount: String,
    calls: Vec<ExpectedCall>,
}

fn read_cases(text: &str) -> Vec<ExpectedCase> {
    let mut cases: Vec<ExpectedCase> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(title) = line.strip_prefix("case ") {
            cases.push(ExpectedCase {
                title: title.to_owned(),
                ..ExpectedCase::default()
            });
            continue;
        }
        let case = cases.last_mut().expect("a case comes first");
        if let Some(options) = line.strip_prefix("mkfs ") {
            case.mkfs = options.split(' ').map(str::to_owned).collect();
        } else if let Some(options) = line.strip_prefix("mount ") {
            options.clone_into(&mut case.mount);
        } else {
            case.calls.push(read_call(line.trim()));
        }
    }
    cases
}

fn read_call(line: &str) -> ExpectedCall {
    let end = line.find(" =").unwrap_or(line.len());
    let (text, marks) = line.split_at(end);
    let expected = VERSIONS.map(|version| {
        let own = format!("={}>", version.name());
        let list = marks.split_once(&own).or_else(|| marks.split_once("=>"));
        let list = list.map_or("", |(_, list)| list);
        (
            version,
            list.split('=').next().unwrap_or("").trim().to_owned(),
        )
    });
    ExpectedCall {
        text: with_flags(text),
        expected: expected.into(),
    }
}

/// Adds the empty list of flags to an open without flags.
fn with_flags(text: &str) -> String {
    let has_none = text.starts_with("open ") && text.split(' ').count() == 3;
    format!("{text}{}", if has_none { " -" } else { "" })
}

/// Device of a version's measurements: that of 6.1 had FUA.
fn measured_device(version: KernelVersion) -> DeviceLimits {
    DeviceLimits {
        has_fua: version == KernelVersion::V6_1,
        ..device()
    }
}

fn stack_with_log_written(version: KernelVersion, options: XfsOptions) -> Stack {
    let limits = measured_device(version);
    let mut stack =
        Stack::new(host(version), limits, FileSystemOptions::Xfs(options)).expect("it is modelled");
    for text in ["open first first creat", "syncfs"] {
        stack.run(&operation(text)).expect("it runs");
    }
    stack
}

#[test]
fn calls_make_the_lists_that_were_measured() {
    let mut failures = Vec::new();
    for case in read_cases(include_str!("xfs-calls.txt")) {
        let options = XfsOptions::parse(&case.mkfs, &case.mount).expect("options are modelled");
        for version in VERSIONS {
            let mut stack = stack_with_log_written(version, options);
            for call in &case.calls {
                let effects = run(&mut stack, &call.text);
                let made = core(&stack, &effects);
                let (_, expected) = call
                    .expected
                    .iter()
                    .find(|(other, _)| *other == version)
                    .expect("both are there");
                if made != *expected {
                    let name = version.name();
                    let (title, text) = (&case.title, &call.text);
                    failures.push(format!(
                        "{title}: {name}: {text}: `{made}`, not `{expected}`"
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs calls, and returns the bios of each.
fn bios_of(version: KernelVersion, calls: &[&str]) -> Vec<Vec<Bio>> {
    let mut stack = stack_with_log_written(version, XfsOptions::default());
    let bios = |text: &&str| run(&mut stack, &with_flags(text)).bios().copied().collect();
    calls.iter().map(bios).collect()
}

fn is_data(bio: &&Bio) -> bool {
    matches!(bio.content, BioContent::Data { .. })
}

#[test]
fn appends_of_a_block_allocate_at_powers_of_two() {
    for version in VERSIONS {
        let mut calls = vec!["open a f creat".to_owned(), "fsync a".to_owned()];
        for block in 0..40 {
            calls.push(format!("pwrite a {} 4096", block * 4096));
            calls.push("fdatasync a".to_owned());
        }
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let bios = bios_of(version, &calls);
        let syncs = bios[3..].iter().step_by(2);
        let log_bytes: Vec<u64> = syncs
            .map(|bios| bios.last().map_or(0, Bio::bytes))
            .collect();
        let allocates = |block: usize| block <= 16 || block == 32;
        let expected: Vec<u64> = (0..40)
            .map(|block| if allocates(block) { 1536 } else { 1024 })
            .collect();
        assert_eq!(log_bytes, expected, "{}", version.name());
    }
}

#[test]
fn direct_appends_of_two_files_alternate_on_the_device() {
    let calls = [
        "open a a creat,direct",
        "open b b creat,direct",
        "pwrite a 0 16384",
        "pwrite b 0 16384",
        "pwrite a 16384 16384",
        "pwrite b 16384 16384",
    ];
    let bios = bios_of(KernelVersion::V6_18, &calls);
    let data = bios.iter().flatten().filter(is_data);
    let sectors: Vec<u64> = data.map(|bio| bio.sector).collect();
    // The first piece fills a gap before the inodes.
    assert_eq!(sectors[2..], [sectors[1] + 32, sectors[1] + 64]);
}

#[test]
fn directories_go_to_the_groups_in_turn_and_files_to_that_of_their_directory() {
    let mut calls = Vec::new();
    for directory in 0..5 {
        calls.push(format!("mkdir d{directory}"));
        calls.push(format!("open f{directory} d{directory}/f creat"));
        calls.push(format!("pwrite f{directory} 0 4096"));
        calls.push(format!("fsync f{directory}"));
    }
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let bios = bios_of(KernelVersion::V6_18, &calls);
    let group_sectors = (512 << 20) / 512 / 4;
    let groups: Vec<u64> = bios
        .iter()
        .flatten()
        .filter(is_data)
        .map(|bio| bio.sector / group_sectors)
        .collect();
    assert_eq!(groups, [0, 1, 2, 3, 0]);
}

#[test]
fn many_new_files_are_one_checkpoint_of_as_many_log_buffers_as_it_takes() {
    // The first record after the mount holds the superblock, too.
    for (count, is_first, expected) in [
        (100, false, "F, J 30 f"),
        (200, true, "F, J 32, F, J 27 f"),
        (3000, true, "F, J 864, F, J 16.5 f"),
    ] {
        let version = KernelVersion::V6_18;
        let options = XfsOptions::default();
        let mut stack = if is_first {
            let options = FileSystemOptions::Xfs(options);
            Stack::new(host(version), measured_device(version), options).expect("it is modelled")
        } else {
            stack_with_log_written(version, options)
        };
        for index in 0..count {
            let create = operation(&format!("open f{index} f{index} creat"));
            stack.run(&create).expect("one node holds the names");
        }
        let effects = run(&mut stack, "fsyncdir .");
        assert_eq!(core(&stack, &effects), expected, "{count} files");
    }
}

#[test]
fn unmounting_covers_the_log_twice_and_flushes_last() {
    for version in VERSIONS {
        let mut stack = stack_with_log_written(version, XfsOptions::default());
        let effects = stack.unmount().expect("it is modelled");
        let made = core(&stack, &effects);
        assert_eq!(
            made,
            "F, J 1 f, F, J 1 f, F, J 1 f, F",
            "{}",
            version.name()
        );
    }
}

/// Reads of a file that is not cached, in KiB.
#[derive(Debug)]
struct ReadPattern {
    call_kib: u64,
    offsets_kib: Vec<u64>,
    advice: &'static str,
    /// Offset of each call that reads from the device, and what it reads, as `offset+length`.
    expected: &'static str,
}

fn read_patterns() -> Vec<ReadPattern> {
    let steps = |start: u64, step: u64, count: u64| (0..count).map(|i| start + i * step).collect();
    let pattern = |call_kib, offsets_kib, advice, expected| ReadPattern {
        call_kib,
        offsets_kib,
        advice,
        expected,
    };
    vec![
        pattern(
            4,
            steps(0, 4, 64),
            "",
            "0+16 4+32 16+64 48+128 112+128 240+128",
        ),
        pattern(16, steps(0, 16, 8), "", "0+32 16+64 32+128 96+128"),
        pattern(
            16,
            steps(1024, 16, 8),
            "",
            "1024+16 1040+32 1056+64 1072+128 1136+128",
        ),
        pattern(64, steps(0, 64, 2), "", "0+128 64+128"),
        pattern(
            4,
            steps(1024, 4, 32),
            "",
            "1024+4 1028+16 1032+32 1044+64 1076+128 1140+128",
        ),
        pattern(4, steps(8, 8, 8), "", "8+4 16+16 32+96 64+128"),
        pattern(4, vec![1000, 996, 992], "", "1000+4 996+4 992+4"),
        pattern(64, vec![512, 0, 1024], "random", "512+64 0+64 1024+64"),
        pattern(
            4,
            steps(0, 4, 64),
            "sequential",
            "0+16 4+32 16+64 48+128 112+256 240+256",
        ),
    ]
}

#[test]
fn reads_before_6_18_use_windows_without_natural_boundaries() {
    read_patterns().iter().for_each(check_reads);
}

fn check_reads(pattern: &ReadPattern) {
    let mut calls = vec![
        "open w f creat".to_owned(),
        "pwrite w 0 4194304".to_owned(),
        "fsync w".to_owned(),
        "fadvise w dontneed 0 0".to_owned(),
        "open a f".to_owned(),
    ];
    if !pattern.advice.is_empty() {
        calls.push(format!("fadvise a {} 0 0", pattern.advice));
    }
    let first = calls.len();
    let offsets = pattern.offsets_kib.iter();
    calls.extend(offsets.map(|kib| format!("pread a {} {}", kib * 1024, pattern.call_kib * 1024)));
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let bios = bios_of(KernelVersion::V6_1, &calls);
    let reads = pattern.offsets_kib.iter().zip(&bios[first..]);
    let reads: Vec<String> = reads
        .filter(|(_, bios)| bios.iter().any(|bio| is_data(&bio)))
        .map(|(offset, bios)| {
            let bytes: u64 = bios.iter().filter(is_data).map(Bio::bytes).sum();
            format!("{offset}+{}", bytes / 1024)
        })
        .collect();
    assert_eq!(reads.join(" "), pattern.expected, "{pattern:?}");
}
