//! Detection of I/O by other processes on the program's device.
//!
//! Reads are known to the byte: the kernel accounts them, including read-ahead, to the thread that
//! requested them, and to its process when the thread has ended. For writes, only the bytes
//! accepted by the calls are known, so the file system's own writes have to be estimated.

use super::program_io_bytes;
use diskperf_timeline::{DeviceTraffic, Interference, Repetition};

/// Traffic of other processes that goes unreported, in bytes. Every machine commits a file system
/// journal every few seconds.
const REPORTED_BYTES_MIN: u64 = 512 << 10;

/// Divisor of a program's bytes that gives the file system's own I/O for maps and checksums.
const METADATA_SHARE_DIVISOR: u64 = 20;

/// Allowance for each file that is created or synced: its inode, directory and maps, both in the
/// journal and in place.
const METADATA_CALL_BYTES: u64 = 32 << 10;

/// Allowance for a drive with several disks or below a loop device: this multiple of the program's
/// bytes, plus this many bytes. A byte of the program may be several on a disk: the file system of
/// the image, read-ahead in its file, parity.
const LAYERED_TRAFFIC_ALLOWANCE: (u64, u64) = (2, 16 << 20);

/// Returns the I/O of other processes on each device. `own_read_bytes` is the number of bytes read
/// by this process, including its kernel threads; `None` if the kernel does not account them.
pub(super) fn detect_foreign_io(
    sole_disks: &[String],
    repetition: &Repetition,
    own_read_bytes: Option<u64>,
) -> Vec<Interference> {
    let others = repetition.devices.iter().filter_map(|device| {
        let is_plain = sole_disks.contains(&device.device_name);
        let (read, written) = match is_plain {
            true => allowed_bytes(repetition, own_read_bytes),
            false => {
                let bytes = program_io_bytes(repetition) * LAYERED_TRAFFIC_ALLOWANCE.0
                    + LAYERED_TRAFFIC_ALLOWANCE.1;
                (bytes, bytes)
            }
        };
        excess_traffic(device, read, written)
    });
    others.collect()
}

/// Returns the bytes of reads and writes that the program may have caused.
fn allowed_bytes(repetition: &Repetition, own_read_bytes: Option<u64>) -> (u64, u64) {
    let of_workers = || {
        repetition.sum_over_workers(|worker| worker.storage_read_bytes.unwrap_or(worker.read_bytes))
    };
    let read = own_read_bytes.unwrap_or_else(of_workers);
    let written = repetition.sum_over_workers(|worker| worker.written_bytes);
    let calls = repetition.sum_over_workers(|worker| worker.metadata_call_count);
    (
        read + read / METADATA_SHARE_DIVISOR,
        written + written / METADATA_SHARE_DIVISOR + calls * METADATA_CALL_BYTES,
    )
}

fn excess_traffic(device: &DeviceTraffic, read: u64, written: u64) -> Option<Interference> {
    let beyond = |moved: u64, allowed: u64| match moved.saturating_sub(allowed) {
        0..REPORTED_BYTES_MIN => 0,
        bytes => bytes,
    };
    let read_bytes = beyond(device.read_bytes, read);
    let written_bytes = beyond(device.written_bytes, written);
    (read_bytes + written_bytes > 0).then(|| Interference::ForeignIo {
        device: device.device_name.clone(),
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
        sole_disks: &[&str],
    ) -> Option<(u64, u64)> {
        let repetition = Repetition {
            workers: vec![WorkerMeasure {
                storage_read_bytes: Some(read),
                written_bytes: written,
                metadata_call_count: calls,
                ..WorkerMeasure::default()
            }],
            devices: vec![DeviceTraffic {
                device_name: "vda".to_owned(),
                read_bytes,
                written_bytes,
                busy_ms: 0,
                ..DeviceTraffic::default()
            }],
            ..Repetition::default()
        };
        let sole_disks: Vec<String> = sole_disks.iter().map(|&name| name.to_owned()).collect();
        match detect_foreign_io(&sole_disks, &repetition, None)[..] {
            [
                Interference::ForeignIo {
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
            device_name: "vda".to_owned(),
            read_bytes,
            ..DeviceTraffic::default()
        };
        for (own, moved, named) in [(64, 64, 0), (64, 80, 1), (0, 64, 1)] {
            let repetition = Repetition {
                devices: vec![device(moved * MIB)],
                ..Repetition::default()
            };
            let found = detect_foreign_io(&["vda".to_owned()], &repetition, Some(own * MIB));
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
