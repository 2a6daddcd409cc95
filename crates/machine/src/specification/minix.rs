//! Minix as described in the catalogue.

use super::DriveSpecification;
use super::kernel::{COST_MS_MAX, scale_cost};
use crate::kernel::costs::KernelCosts;
use crate::kernel::minix::{
    BLOCK_BYTES, MinixConfig, MinixFileSystemParameters, file_capacity_bytes,
};
use diskperf_catalogue::{Component, Reader, ResolvedSystem};
use diskperf_sim::Time;

/// Reads the costs and sizes of Minix, and the costs that the code shared by all kernels uses.
pub(super) fn read_minix(reader: &mut Reader<'_>, speed: f64) -> (KernelCosts, MinixConfig) {
    let mut cost = |key, doc| scale_cost(reader.milliseconds(key, 0.0..=COST_MS_MAX, doc), speed);
    let message = cost(
        "message_ms",
        "processor time to send a message and switch to its receiver",
    );
    let call = cost(
        "call_ms",
        "processor time of a system call in the library and in the file server's dispatch",
    );
    let task = cost(
        "task_ms",
        "processor time of a task to process a message, up to the request and up to the reply",
    );
    let cache_lookup = cost(
        "cache_lookup_ms",
        "processor time to find and release a cached block (get_block, put_block)",
    );
    let buffer_replace = cost(
        "buffer_replace_ms",
        "processor time to reassign a buffer to another block and request the block (get_block, rw_block)",
    );
    let clock = cost(
        "clock_tick_ms",
        "processor time of a clock tick, with the clock task",
    );
    let mut blocks = |key, range, doc| reader.integer(key, range, doc) as u32;
    let config = MinixConfig {
        message_time: message,
        call_time: call,
        disk_task_time: task,
        cache_lookup_time: cache_lookup,
        buffer_replace_time: buffer_replace,
        cache_blocks: blocks(
            "cache_blocks",
            8..=1_000_000,
            "blocks in the cache (NR_BUFS)",
        ),
        blocks_per_request: blocks(
            "blocks_per_request",
            1..=64,
            "maximum number of blocks that one message requests from the disk task",
        ),
        read_ahead_blocks: blocks(
            "read_ahead_blocks",
            0..=63,
            "read-ahead into the cache, in blocks",
        ),
    };
    let update_interval = Time(reader.seconds(
        "update_interval_s",
        0.001..=1e6,
        "interval between two rounds of update",
    ));
    let costs = KernelCosts {
        clock_tick_time: clock,
        update_interval,
        ..KernelCosts::default()
    };
    (costs, config)
}

/// Reads the parameters of mkfs, and validates them against every drive.
pub(super) fn read_filesystem(
    system: &ResolvedSystem,
    drives: &[DriveSpecification],
) -> Option<MinixFileSystemParameters> {
    let mut reader = system.reader(Component::Filesystem, None);
    let kinds = [("minix", true), ("none", false)];
    if !reader.choice("kind", &kinds, "kind of file system, if any") {
        reader.optional_integer(
            "bytes_per_inode",
            0..=u64::MAX,
            "parameter of a file system, unused without one",
        );
        reader.finish();
        return None;
    }
    let parameters = MinixFileSystemParameters {
        bytes_per_inode: reader.integer(
            "bytes_per_inode",
            BLOCK_BYTES as u64..=1 << 30,
            "file-system space per inode",
        ) as u32,
    };
    for partition in drives.iter().flat_map(|drive| &drive.partitions) {
        let sector_bytes = partition.disk_label.sector_bytes as usize;
        if !BLOCK_BYTES.is_multiple_of(sector_bytes) {
            let message = format!(
                "its blocks of {BLOCK_BYTES} bytes are not whole sectors of {sector_bytes}, as the drive has them (drive.sector_bytes)"
            );
            reader.fail("kind", &message);
            break;
        }
        if let Err(error) = file_capacity_bytes(partition.size_bytes(), parameters) {
            reader.fail("kind", &error.to_string());
            break;
        }
    }
    reader.finish();
    Some(parameters)
}
