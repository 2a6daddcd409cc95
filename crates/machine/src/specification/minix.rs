//! Minix as described in the catalogue.

use super::DriveSpecification;
use super::kernel::{LONGEST_MS, scaled};
use crate::kernel::costs::Costs;
use crate::kernel::minix::{BLOCK_BYTES, MinixConfig, MinixParameters, room_bytes};
use diskperf_catalogue::{Component, Reader, System};
use diskperf_sim::Time;

/// Reads the costs and sizes of Minix, and the costs that the code shared by all kernels uses.
pub(super) fn read_minix(reader: &mut Reader<'_>, speed: f64) -> (Costs, MinixConfig) {
    let mut cost = |key, doc| scaled(reader.milliseconds(key, 0.0..=LONGEST_MS, doc), speed);
    let message = cost(
        "message_ms",
        "sending a message, with the switch to the one who gets it",
    );
    let call = cost(
        "call_ms",
        "a system call: the library, and the file server's way to it and back",
    );
    let task = cost(
        "task_ms",
        "processing of a message by a task, from its receipt to the request, and to the answer",
    );
    let cache_lookup = cost(
        "cache_lookup_ms",
        "finding a block in the cache, and giving it back (get_block, put_block)",
    );
    let buffer_replace = cost(
        "buffer_replace_ms",
        "reassigning a buffer to another block, and requesting the block (get_block, rw_block)",
    );
    let clock = cost("clock_tick_ms", "a tick of the clock, with its task");
    let mut blocks = |key, range, doc| reader.integer(key, range, doc) as u32;
    let config = MinixConfig {
        message,
        call,
        task,
        cache_lookup,
        buffer_replace,
        cache_blocks: blocks(
            "cache_blocks",
            8..=1_000_000,
            "blocks in the cache (NR_BUFS)",
        ),
        blocks_per_request: blocks(
            "blocks_per_request",
            1..=64,
            "blocks that one message requests from the disk task, if a call needs as many",
        ),
        read_ahead_blocks: blocks(
            "read_ahead_blocks",
            0..=63,
            "blocks that are read into the cache behind the one that is wanted",
        ),
    };
    let update_interval = Time(reader.seconds(
        "update_interval_s",
        0.001..=1e6,
        "between two rounds of update",
    ));
    let costs = Costs {
        clock,
        update_interval,
        ..Costs::default()
    };
    (costs, config)
}

/// Reads the parameters of mkfs, and validates them against every drive.
pub(super) fn read_filesystem(
    system: &System,
    drives: &[DriveSpecification],
) -> Option<MinixParameters> {
    let mut reader = system.reader(Component::Filesystem, None);
    let kinds = [("minix", true), ("none", false)];
    if !reader.choice("kind", &kinds, "which file system, if any") {
        reader.optional_integer("bytes_per_inode", 0..=u64::MAX, "of a file system");
        reader.finish();
        return None;
    }
    let parameters = MinixParameters {
        bytes_per_inode: reader.integer(
            "bytes_per_inode",
            BLOCK_BYTES as u64..=1 << 30,
            "one inode is made for this much",
        ) as u32,
    };
    for partition in drives.iter().flat_map(|drive| &drive.partitions) {
        let sector_bytes = partition.label.sector_bytes as usize;
        if !BLOCK_BYTES.is_multiple_of(sector_bytes) {
            let message = format!(
                "its blocks of {BLOCK_BYTES} bytes are not whole sectors of {sector_bytes}, as the drive has them (drive.sector_bytes)"
            );
            reader.fail("kind", &message);
            break;
        }
        if let Err(error) = room_bytes(partition.bytes(), parameters) {
            reader.fail("kind", &error.to_string());
            break;
        }
    }
    reader.finish();
    Some(parameters)
}
