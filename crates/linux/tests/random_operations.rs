//! Laws that hold for any sequence of operations, on any version and with any options.

use std::collections::BTreeMap;

use diskperf_linux::block::{Bio, BioContent, BioOperation, DeviceLimits};
use diskperf_linux::ext4::Ext4Options;
use diskperf_linux::file_system::FileSystemError;
use diskperf_linux::operation::{
    ByteRange, FallocateMode, FileAdvice, FileOperation, OpenOptions, SyncRangeFlags,
};
use diskperf_linux::request_list::{core_form, describe_bios, first_difference};
use diskperf_linux::stack::{FileSystemOptions, Stack, StackError};
use diskperf_linux::version::{Host, KernelVersion};
use diskperf_linux::xfs::XfsOptions;
use proptest::prelude::*;

const FILES: u64 = 4;
const DEVICE_BYTES: u64 = 512 << 20;

/// Operations on a few files, most of which are open; some name what is not there.
fn operations() -> impl Strategy<Value = Vec<FileOperation>> {
    let data = (0..FILES, ranges(), modes(), 0..14_u32)
        .prop_map(|(file, range, mode, choice)| vec![data_operation(file, range, mode, choice)]);
    let names = (0..FILES, 0..FILES, 0..8_u32)
        .prop_map(|(file, other, choice)| name_operations(file, other, choice));
    prop::collection::vec(prop_oneof![3 => data, 1 => names], 1..25)
        .prop_map(|parts| parts.into_iter().flatten().collect())
}

fn ranges() -> impl Strategy<Value = ByteRange> {
    (0..2048_u64, 1..600_u64, any::<bool>()).prop_map(|(block, blocks, is_aligned)| {
        let (unit, length) = if is_aligned {
            (4096, 4096)
        } else {
            (2048, 3000)
        };
        ByteRange {
            offset: block * unit,
            length: blocks * length,
        }
    })
}

fn modes() -> impl Strategy<Value = FallocateMode> {
    prop::sample::select(vec![
        FallocateMode::Extend,
        FallocateMode::KeepSize,
        FallocateMode::PunchHole,
        FallocateMode::ZeroRange,
    ])
}

fn data_operation(file: u64, range: ByteRange, mode: FallocateMode, choice: u32) -> FileOperation {
    let descriptor = format!("d{file}");
    let write = SyncRangeFlags {
        write: true,
        ..SyncRangeFlags::default()
    };
    match choice {
        0..=4 => FileOperation::Write { descriptor, range },
        5 => FileOperation::Read { descriptor, range },
        6 => FileOperation::Sync {
            descriptor,
            data_only: true,
        },
        7 => FileOperation::Sync {
            descriptor,
            data_only: false,
        },
        8 | 9 => FileOperation::Fallocate {
            descriptor,
            mode,
            range,
        },
        10 => FileOperation::Truncate {
            descriptor,
            size: range.offset,
        },
        11 => FileOperation::SyncFileSystem,
        12 if range.offset.is_multiple_of(3) => FileOperation::SyncRange {
            descriptor,
            range,
            flags: write,
        },
        12 => FileOperation::Advise {
            descriptor,
            advice: FileAdvice::DontNeed,
            range,
        },
        _ => FileOperation::Sleep {
            duration_ns: range.length * 1_000_000,
        },
    }
}

/// Operations on names; a descriptor that is opened is closed before.
fn name_operations(file: u64, other: u64, choice: u32) -> Vec<FileOperation> {
    let path = |file: u64| format!("f{file}");
    let descriptor = format!("d{file}");
    let mut options = OpenOptions {
        create: true,
        ..OpenOptions::default()
    };
    match choice {
        0 => {
            return vec![FileOperation::Rename {
                from: path(file),
                to: path(other),
            }];
        }
        1 => return vec![FileOperation::Unlink { path: path(file) }],
        2 => {
            return vec![FileOperation::SyncDirectory {
                path: ".".to_owned(),
            }];
        }
        3 => options.truncate = true,
        4 => options.direct = true,
        5 => options.data_sync = true,
        6 => options.sync = true,
        _ => {}
    }
    vec![
        FileOperation::Close {
            descriptor: descriptor.clone(),
        },
        FileOperation::Open {
            descriptor,
            path: path(other),
            options,
        },
    ]
}

fn options() -> impl Strategy<Value = FileSystemOptions> {
    prop_oneof![
        ext4_options().prop_map(FileSystemOptions::Ext4),
        xfs_options().prop_map(FileSystemOptions::Xfs),
    ]
}

fn xfs_options() -> impl Strategy<Value = XfsOptions> {
    let make = prop::sample::select(vec!["", "-s size=4096", "-l su=32k", "-m reflink=0"]);
    let mount = prop::sample::select(vec!["", "wsync", "discard", "allocsize=1m", "lazytime"]);
    (make, mount).prop_map(|(make, mount)| {
        let make: Vec<String> = make.split_whitespace().map(str::to_owned).collect();
        XfsOptions::parse(&make, mount).expect("the options are modelled")
    })
}

fn ext4_options() -> impl Strategy<Value = Ext4Options> {
    let make = prop::sample::select(vec!["", "-b 1024", "-O fast_commit", "-O ^has_journal"]);
    let mount = prop::sample::select(vec![
        "",
        "data=journal",
        "data=writeback",
        "nodelalloc",
        "discard",
    ]);
    // The kernel refuses data= without a journal.
    let is_mounted =
        |(make, mount): &(&str, &str)| *make != "-O ^has_journal" || !mount.starts_with("data=");
    let drawn = (make, mount).prop_filter("data= needs a journal", is_mounted);
    drawn.prop_map(|(make, mount)| {
        let make: Vec<String> = make.split_whitespace().map(str::to_owned).collect();
        Ext4Options::parse(&make, mount).expect("the options are modelled")
    })
}

fn versions() -> impl Strategy<Value = KernelVersion> {
    prop::sample::select(vec![
        KernelVersion::V6_1,
        KernelVersion::V6_12,
        KernelVersion::V6_18,
    ])
}

/// Stack with the files open, or closed and removed again.
fn stack(version: KernelVersion, options: FileSystemOptions) -> Stack {
    let host = Host {
        version,
        ticks_per_second: 250,
        processors: 2,
    };
    let limits = DeviceLimits::loop_device(DEVICE_BYTES);
    let mut stack = Stack::new(host, limits, options).expect("it is modelled");
    for file in 0..FILES {
        let options = OpenOptions {
            create: true,
            ..OpenOptions::default()
        };
        let (descriptor, path) = (format!("d{file}"), format!("f{file}"));
        stack
            .run(&FileOperation::Open {
                descriptor,
                path,
                options,
            })
            .expect("it opens");
    }
    stack
}

/// Bios of a sequence, of removing its files, and of unmounting.
fn run_all(stack: &mut Stack, operations: &[FileOperation]) -> Vec<Bio> {
    let mut bios = Vec::new();
    for operation in operations {
        // Some operations name what is not there, direct I/O of parts of sectors is refused, and
        // XFS refuses that inside blocks by name; nothing else may fail.
        match stack.run(operation) {
            Ok(effects) => bios.extend(effects.bios().copied()),
            Err(StackError::UnknownFile(_) | StackError::UnknownDescriptor(_)) => {}
            Err(StackError::Refused {
                errno: "EINVAL", ..
            }) => {}
            Err(StackError::FileSystem(FileSystemError::Unsupported { call, .. }))
                if call.starts_with("direct I/O") => {}
            Err(error) => panic!("{operation:?}: {error}"),
        }
    }
    bios
}

fn remove_all(stack: &mut Stack) {
    let mut operations = Vec::new();
    for file in 0..FILES {
        operations.push(FileOperation::Close {
            descriptor: format!("d{file}"),
        });
        operations.push(FileOperation::Unlink {
            path: format!("f{file}"),
        });
    }
    run_all(stack, &operations);
    // A worker of XFS frees unlinked files a tick later.
    stack.sleep(10_000_000).expect("time passes");
    run_all(stack, &[FileOperation::SyncFileSystem]);
}

/// Sectors that a trim discards.
fn free_sectors(stack: &mut Stack) -> u64 {
    let effects = stack.run(&FileOperation::Trim).expect("it trims");
    effects
        .bios()
        .filter(|bio| bio.operation == BioOperation::Discard)
        .map(|bio| bio.sectors)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn the_same_sequence_makes_the_same_bios(
        version in versions(),
        options in options(),
        operations in operations(),
    ) {
        let first = run_all(&mut stack(version, options), &operations);
        let second = run_all(&mut stack(version, options), &operations);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_place_on_the_device_belongs_to_one_place_of_one_file(
        version in versions(),
        options in options(),
        operations in operations(),
    ) {
        let mut stack = stack(version, options);
        // Without freeing, a sector holds the same data for ever.
        let keeps = |operation: &&FileOperation| match operation {
            FileOperation::Open { options, .. } => !options.truncate,
            FileOperation::Fallocate { mode, .. } => {
                matches!(mode, FallocateMode::Extend | FallocateMode::KeepSize)
            }
            FileOperation::Truncate { .. }
            | FileOperation::Unlink { .. }
            | FileOperation::Rename { .. } => false,
            _ => true,
        };
        let operations: Vec<FileOperation> = operations.iter().filter(keeps).cloned().collect();
        let mut owners = BTreeMap::new();
        for bio in run_all(&mut stack, &operations) {
            prop_assert!(bio.end_sector() * 512 <= DEVICE_BYTES, "{:?}", bio);
            let BioContent::Data { file, offset } = bio.content else { continue };
            for sector in 0..bio.sectors {
                let owner = (file, offset / 512 + sector);
                let before = owners.insert(bio.sector + sector, owner);
                prop_assert!(before.is_none_or(|before| before == owner), "{:?}", bio);
            }
        }
    }

    #[test]
    fn files_that_are_removed_give_all_their_blocks_back(
        version in versions(),
        options in options(),
        operations in operations(),
    ) {
        let mut used = stack(version, options);
        run_all(&mut used, &operations);
        remove_all(&mut used);
        let mut unused = stack(version, options);
        remove_all(&mut unused);
        // What a processor of ext4 has in reserve for small files is in use.
        let reserve = match options {
            FileSystemOptions::Ext4(options) => u64::from(options.make.block_bytes.unwrap_or(4096)),
            FileSystemOptions::Xfs(_) => 0,
        };
        let (fresh, after) = (free_sectors(&mut unused), free_sectors(&mut used));
        prop_assert!(after <= fresh && fresh - after <= reserve, "{} of {}", after, fresh);
    }

    #[test]
    fn after_fsync_a_second_one_writes_nothing(
        version in versions(),
        options in options(),
        operations in operations(),
    ) {
        let mut stack = stack(version, options);
        run_all(&mut stack, &operations);
        let open = (0..FILES).map(|file| format!("d{file}"));
        // In data=journal before 6.12, what the first one committed goes home with the second.
        for descriptor in open {
            let sync = FileOperation::Sync { descriptor, data_only: false };
            run_all(&mut stack, &[FileOperation::SyncFileSystem, sync.clone(), sync.clone()]);
            let bios = run_all(&mut stack, &[sync]);
            let is_flush = |bio: &Bio| bio.operation == BioOperation::Flush;
            prop_assert!(bios.iter().all(is_flush), "{:?}", bios);
        }
    }
}

#[test]
fn a_list_with_another_length_is_found_to_differ() {
    let options = FileSystemOptions::Ext4(Ext4Options::default());
    let mut stack = stack(KernelVersion::V6_18, options);
    let range = ByteRange {
        offset: 0,
        length: 4096,
    };
    let bios = run_all(
        &mut stack,
        &[
            FileOperation::Write {
                descriptor: "d0".to_owned(),
                range,
            },
            FileOperation::Sync {
                descriptor: "d0".to_owned(),
                data_only: false,
            },
        ],
    );
    let list = describe_bios(&bios, |file| stack.label(file));
    let core = core_form(&list).expect("it is well formed");
    let mut other = core.clone();
    other.pop();
    let difference = first_difference(&core, &other).expect("they differ");
    assert_eq!(difference.index, core.len() - 1);
    assert!(
        difference.to_string().ends_with("nothing made"),
        "{difference}"
    );
}
