//! File systems on devices of any size: they work, or they are refused by name.

use diskperf_linux::block::DeviceLimits;
use diskperf_linux::ext4::Ext4Options;
use diskperf_linux::file_system::FileSystemError;
use diskperf_linux::operation::{ByteRange, FileOperation, OpenOptions};
use diskperf_linux::stack::{FileSystemOptions, Stack, StackError};
use diskperf_linux::version::{Host, KernelVersion};
use diskperf_linux::xfs::XfsOptions;
use proptest::prelude::*;

/// Makes a file system, and syncs a file of one page on it. Returns the last sector of a bio.
fn sync_one_file(bytes: u64, options: FileSystemOptions) -> Result<u64, StackError> {
    let host = Host {
        version: KernelVersion::V6_18,
        ticks_per_second: 250,
        processors: 2,
    };
    let mut stack = Stack::new(host, DeviceLimits::loop_device(bytes), options)?;
    let descriptor = || "d".to_owned();
    let mut end = 0;
    for operation in [
        FileOperation::Open {
            descriptor: descriptor(),
            path: "f".to_owned(),
            options: OpenOptions {
                create: true,
                ..OpenOptions::default()
            },
        },
        FileOperation::Write {
            descriptor: descriptor(),
            range: ByteRange {
                offset: 0,
                length: 4096,
            },
        },
        FileOperation::Sync {
            descriptor: descriptor(),
            data_only: false,
        },
    ] {
        let effects = stack.run(&operation)?;
        end = effects
            .bios()
            .map(|bio| bio.end_sector())
            .fold(end, u64::max);
    }
    let effects = stack.unmount()?;
    Ok(effects
        .bios()
        .map(|bio| bio.end_sector())
        .fold(end, u64::max))
}

fn ext4_options(block_bytes: Option<u32>) -> FileSystemOptions {
    let mut options = Ext4Options::default();
    options.make.block_bytes = block_bytes;
    FileSystemOptions::Ext4(options)
}

fn is_refused(result: &Result<u64, StackError>, bytes: u64) -> bool {
    matches!(
        result,
        Err(StackError::FileSystem(FileSystemError::Unsupported { call, .. }))
            if call.contains(&bytes.to_string())
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn a_file_is_written_inside_a_device_of_any_size(
        bits in 20..39_u32,
        low in any::<u64>(),
        block_bytes in prop::sample::select(vec![None, Some(1024), Some(2048), Some(4096)]),
    ) {
        let bytes = ((1 << bits) | (low & ((1 << bits) - 1))) / 512 * 512;
        let ext4 = sync_one_file(bytes, ext4_options(block_bytes));
        match ext4 {
            Ok(end) => prop_assert!(end > 0 && end * 512 <= bytes),
            Err(_) => prop_assert!(is_refused(&ext4, bytes) && bytes >= 64 << 30, "{:?}", ext4),
        }
        let xfs = sync_one_file(bytes, FileSystemOptions::Xfs(XfsOptions::default()));
        match xfs {
            Ok(end) => prop_assert!(end > 0 && end * 512 <= bytes),
            Err(_) => prop_assert!(is_refused(&xfs, bytes) && bytes < 300 << 20, "{:?}", xfs),
        }
    }
}

#[test]
fn devices_of_unmodelled_sizes_are_refused_by_name() {
    for bytes in [0, 512, 60 << 10, 16 << 40, 20 << 40, u64::MAX / 512 * 512] {
        let ext4 = sync_one_file(bytes, ext4_options(None));
        assert!(is_refused(&ext4, bytes), "{ext4:?}");
    }
    for bytes in [0, 4096, 256 << 20, 299 << 20, 5 << 40, 20 << 40] {
        let xfs = sync_one_file(bytes, FileSystemOptions::Xfs(XfsOptions::default()));
        assert!(is_refused(&xfs, bytes), "{xfs:?}");
    }
}
