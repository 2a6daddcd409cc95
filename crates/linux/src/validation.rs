//! Checks that the kernel makes before a file system sees an operation, with its error numbers, and
//! checks of machines, devices and options that cannot be.

use crate::block::{DeviceLimits, SECTOR_BYTES};
use crate::ext4::{DataMode, Ext4Options};
use crate::operation::ByteRange;
use crate::stack::{FileSystemOptions, StackError};
use crate::version::Host;
use crate::xfs::XfsOptions;

/// Longest name of a file in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest pause of one operation: a year.
const SLEEP_NS_MAX: u64 = 365 * 24 * 3600 * 1_000_000_000;
/// End of the largest file that ext4 holds, in blocks.
const EXT4_FILE_BLOCKS_MAX: u64 = u32::MAX as u64;
/// Bytes of a block of XFS, and the least stripe of its log.
const XFS_BLOCK_BYTES: u32 = 4096;
/// Largest stripe of the log of XFS.
const LOG_STRIPE_BYTES_MAX: u32 = 256 << 10;

/// Returns the error of an operation that the kernel refuses.
pub(crate) fn refused(
    operation: &'static str,
    thing: impl Into<String>,
    errno: &'static str,
    remedy: &'static str,
) -> StackError {
    StackError::Refused {
        operation,
        thing: thing.into(),
        errno,
        remedy,
    }
}

/// Checks that a machine, a device and options can be.
pub(crate) fn check_setup(
    host: &Host,
    limits: &DeviceLimits,
    options: &FileSystemOptions,
) -> Result<(), StackError> {
    let invalid = |thing: &str, remedy| Err(refused("mount", thing, "EINVAL", remedy));
    if !(1..=10_000).contains(&host.ticks_per_second) {
        return invalid("a kernel with that HZ", "use 1 to 10000 ticks a second");
    }
    if host.processors == 0 {
        return invalid("a machine without processors", "use at least 1");
    }
    if limits.max_sectors_kib < 4 || limits.segments_max == 0 {
        return invalid(
            "a device that takes no page",
            "use max_sectors_kib of 4 or more, and segments_max of 1 or more",
        );
    }
    match options {
        FileSystemOptions::Ext4(options) => check_ext4(options),
        FileSystemOptions::Xfs(options) => check_xfs(options),
    }
}

fn check_ext4(options: &Ext4Options) -> Result<(), StackError> {
    let invalid = |option: &str, remedy| Err(refused("mount", option, "EINVAL", remedy));
    let mount = &options.mount;
    if mount.is_async_commit && mount.data == DataMode::Ordered && options.make.has_journal {
        return invalid(
            "ext4 with journal_async_commit and data=ordered",
            "use data=writeback or data=journal",
        );
    }
    if !options.make.has_journal && mount.needs_journal() {
        return invalid(
            "ext4 without a journal, and with data= or journal_async_commit",
            "leave the option out, or ^has_journal",
        );
    }
    Ok(())
}

fn check_xfs(options: &XfsOptions) -> Result<(), StackError> {
    let Some(stripe) = options.make.log_stripe_bytes else {
        return Ok(());
    };
    let is_possible = stripe.is_multiple_of(XFS_BLOCK_BYTES)
        && (XFS_BLOCK_BYTES..=LOG_STRIPE_BYTES_MAX).contains(&stripe);
    if !is_possible {
        let thing = format!("XFS with a log stripe of {stripe} bytes");
        let remedy = "use 4 KiB to 256 KiB, a multiple of 4 KiB";
        return Err(refused("mkfs", thing, "EINVAL", remedy));
    }
    if let Some(buffer) = options.mount.log_buffer_bytes
        && buffer < stripe
    {
        let thing = format!("XFS with logbsize={buffer} below the log stripe of {stripe} bytes");
        return Err(refused("mount", thing, "EINVAL", "use at least the stripe"));
    }
    Ok(())
}

/// Checks the last name of a path that is made.
pub(crate) fn check_name(
    operation: &'static str,
    path: &str,
    name: &str,
) -> Result<(), StackError> {
    if matches!(name, "" | "." | "..") {
        return Err(refused(operation, path, "EINVAL", "name a file"));
    }
    if name.len() > NAME_BYTES_MAX {
        let remedy = "use names of at most 255 bytes";
        return Err(refused(operation, path, "ENAMETOOLONG", remedy));
    }
    Ok(())
}

/// Returns the size of the largest file.
pub(crate) fn file_bytes_max(limits: &DeviceLimits, options: &FileSystemOptions) -> u64 {
    match options {
        FileSystemOptions::Ext4(options) => {
            EXT4_FILE_BLOCKS_MAX * options.make.block_bytes_on(limits.bytes())
        }
        FileSystemOptions::Xfs(_) => i64::MAX as u64,
    }
}

/// Checks that a range ends at `bytes_max` or before.
pub(crate) fn check_end(
    operation: &'static str,
    descriptor: &str,
    range: ByteRange,
    bytes_max: u64,
) -> Result<(), StackError> {
    match range.offset.checked_add(range.length) {
        Some(end) if end <= bytes_max => Ok(()),
        _ => Err(refused(
            operation,
            format!("descriptor {descriptor} at {}", range.offset),
            "EFBIG",
            "use smaller offsets",
        )),
    }
}

/// Checks that a transfer past the page cache is of whole sectors.
pub(crate) fn check_direct(
    operation: &'static str,
    descriptor: &str,
    range: ByteRange,
) -> Result<(), StackError> {
    if range.offset.is_multiple_of(SECTOR_BYTES) && range.length.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    let thing = format!("descriptor {descriptor} at {}, O_DIRECT", range.offset);
    let remedy = "use whole sectors of 512 bytes";
    Err(refused(operation, thing, "EINVAL", remedy))
}

/// Checks that a pause ends.
pub(crate) fn check_sleep(duration_ns: u64) -> Result<(), StackError> {
    if duration_ns <= SLEEP_NS_MAX {
        return Ok(());
    }
    let thing = format!("{duration_ns} ns");
    Err(refused(
        "sleep",
        thing,
        "EINVAL",
        "sleep for at most a year",
    ))
}
