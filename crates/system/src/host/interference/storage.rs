//! I/O of others on the program's device.
//!
//! Reads are known to the byte: the kernel accounts them to the thread that asked,
//! read-ahead included, and to its process when it has ended. Of writes only what the calls
//! took is known, and what the file system adds has to be allowed for.

use super::own_bytes;
use diskperf_timeline::{DeviceTraffic, Interference, Repetition};

/// What may go unnamed: a journal's commit, which every machine writes every few
/// seconds.
const UNNAMED_BYTES: u64 = 512 << 10;

/// For its maps and checksums a file system may add this part of the data that it
/// writes or reads.
const METADATA_PART: u64 = 20;

/// For a file that is made or synced: its inode, directory and maps, in the
/// journal and at their place.
const CALL_BYTES: u64 = 32 << 10;

/// Below a loop device, or where a drive has several disks, a byte of the program may be
/// several of a disk: the file system of the image, read-ahead in its file, parity. So only
/// this many times the program's bytes, and so many besides, are named.
const LAYERED: (u64, u64) = (2, 16 << 20);

/// `own_read_bytes`: read by this process, its kernel threads included; unknown where the
/// kernel keeps no account.
pub(super) fn found(
    plain: &[String],
    repetition: &Repetition,
    own_read_bytes: Option<u64>,
) -> Vec<Interference> {
    let others = repetition.devices.iter().filter_map(|device| {
        let is_plain = plain.contains(&device.device);
        let (read, written) = match is_plain {
            true => allowed(repetition, own_read_bytes),
            false => {
                let bytes = own_bytes(repetition) * LAYERED.0 + LAYERED.1;
                (bytes, bytes)
            }
        };
        beyond(device, read, written)
    });
    others.collect()
}

/// The bytes that the program may have had read and written.
fn allowed(repetition: &Repetition, own_read_bytes: Option<u64>) -> (u64, u64) {
    let of_workers =
        || repetition.total(|worker| worker.storage_read_bytes.unwrap_or(worker.read_bytes));
    let read = own_read_bytes.unwrap_or_else(of_workers);
    let written = repetition.total(|worker| worker.written_bytes);
    let calls = repetition.total(|worker| worker.metadata_calls);
    (
        read + read / METADATA_PART,
        written + written / METADATA_PART + calls * CALL_BYTES,
    )
}

fn beyond(device: &DeviceTraffic, read: u64, written: u64) -> Option<Interference> {
    let beyond = |moved: u64, allowed: u64| match moved.saturating_sub(allowed) {
        0..UNNAMED_BYTES => 0,
        bytes => bytes,
    };
    let read_bytes = beyond(device.read_bytes, read);
    let written_bytes = beyond(device.written_bytes, written);
    (read_bytes + written_bytes > 0).then(|| Interference::OtherIo {
        device: device.device.clone(),
        read_bytes,
        written_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::WorkerMeasure;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    /// What a program had read, had written and called, and what the disk moved.
    fn others(
        (read, written, calls): (u64, u64, u64),
        (read_bytes, written_bytes): (u64, u64),
        plain: &[&str],
    ) -> Option<(u64, u64)> {
        let repetition = Repetition {
            workers: vec![WorkerMeasure {
                storage_read_bytes: Some(read),
                written_bytes: written,
                metadata_calls: calls,
                ..WorkerMeasure::default()
            }],
            devices: vec![DeviceTraffic {
                device: "vda".to_owned(),
                read_bytes,
                written_bytes,
                busy_ms: 0,
                ..DeviceTraffic::default()
            }],
            ..Repetition::default()
        };
        let plain: Vec<String> = plain.iter().map(|&name| name.to_owned()).collect();
        match found(&plain, &repetition, None)[..] {
            [
                Interference::OtherIo {
                    read_bytes,
                    written_bytes,
                    ..
                },
            ] => Some((read_bytes / MIB, written_bytes / MIB)),
            _ => None,
        }
    }

    #[test]
    fn what_the_program_explains_is_not_named() {
        for (own, moved, named) in [
            // A cold read, with a commit of the journal beside it.
            ((64 * MIB, 0, 1), (64 * MIB + 48 * KIB, 300 * KIB), None),
            // The same beside `dd`.
            ((64 * MIB, 0, 1), (64 * MIB, 14 * MIB), Some((0, 13))),
            ((64 * MIB, 0, 1), (80 * MIB, 0), Some((12, 0))),
            // A read that the cache had.
            ((0, 0, 1), (2 * MIB, 0), Some((2, 0))),
            // A new file with its inode and maps.
            ((0, 64 * MIB, 1), (0, 65 * MIB), None),
            ((0, 64 * MIB, 1), (0, 90 * MIB), Some((0, 22))),
            // A tree of 4000 files, with what each of them costs the file system.
            ((0, 88 * MIB, 4000), (8 * KIB, 150 * MIB), None),
            // 100 blocks, each synced.
            ((0, 400 * KIB, 100), (0, 2 * MIB), None),
        ] {
            assert_eq!(others(own, moved, &["vda"]), named, "{own:?} {moved:?}");
        }
    }

    #[test]
    fn reads_of_threads_that_ended_are_the_process_s() {
        let device = |read_bytes| DeviceTraffic {
            device: "vda".to_owned(),
            read_bytes,
            ..DeviceTraffic::default()
        };
        for (own, moved, named) in [(64, 64, 0), (64, 80, 1), (0, 64, 1)] {
            let repetition = Repetition {
                devices: vec![device(moved * MIB)],
                ..Repetition::default()
            };
            let found = found(&["vda".to_owned()], &repetition, Some(own * MIB));
            assert_eq!(found.len(), named, "{own} of {moved} MiB");
        }
    }

    #[test]
    fn more_is_allowed_where_a_loop_device_is_between() {
        let own = (16 * MIB, 16 * MIB, 1);
        assert_eq!(others(own, (40 * MIB, 60 * MIB), &["loop0"]), None);
        let named = Some((20, 0));
        assert_eq!(others(own, (100 * MIB, 0), &["loop0"]), named);
    }
}
