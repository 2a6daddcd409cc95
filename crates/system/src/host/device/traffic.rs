//! I/O counters that the kernel keeps for each block device.

use super::BlockDevice;
use diskperf_timeline::{DeviceRequests, DeviceTraffic};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Unit of the kernel's sector counters in bytes, independent of the device's own block size.
const SECTOR_BYTES: u64 = 512;

/// I/O counters of a device since the system started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Bytes written to the device.
    pub written_bytes: u64,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u64,
    /// Counts and times of the device's requests.
    pub request_counters: DeviceRequests,
}

impl DiskCounters {
    /// Parses a line of `/sys/block/*/stat` (Documentation/block/stat.rst).
    fn parse_stat(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        let mut field = || fields.next()?.ok();
        let [reads, read_merges, read_sectors, read_ms] = [field()?, field()?, field()?, field()?];
        let [writes, write_merges, written_sectors, write_ms] =
            [field()?, field()?, field()?, field()?];
        let [_in_flight, busy_ms, queue_ms] = [field()?, field()?, field()?];
        Some(Self {
            read_bytes: read_sectors * SECTOR_BYTES,
            written_bytes: written_sectors * SECTOR_BYTES,
            busy_ms,
            request_counters: DeviceRequests {
                read_count: reads,
                read_merge_count: read_merges,
                read_ms,
                write_count: writes,
                write_merge_count: write_merges,
                write_ms,
                queue_ms,
            },
        })
    }
}

/// Reader of one device's I/O counters. Each reading takes one system call and no allocation.
#[derive(Debug)]
pub struct TrafficMeter {
    device_name: String,
    stat_file: File,
}

impl TrafficMeter {
    /// Opens the I/O counters of a device.
    ///
    /// # Errors
    ///
    /// sysfs has no counters for it.
    pub fn open_meter(device: &BlockDevice) -> io::Result<Self> {
        Ok(Self {
            device_name: device.name().to_owned(),
            stat_file: File::open(device.sysfs_path().join("stat"))?,
        })
    }

    /// Returns the kernel's name of the measured device.
    pub fn device_name(&self) -> &str {
        &self.device_name
    }

    /// Reads the device's I/O counters.
    ///
    /// # Errors
    ///
    /// The device has gone, or the kernel's line is malformed.
    pub fn read_counters(&self) -> io::Result<DiskCounters> {
        let mut line = [0; 512];
        let length = self.stat_file.read_at(&mut line, 0)?;
        std::str::from_utf8(&line[..length])
            .ok()
            .and_then(DiskCounters::parse_stat)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("the counters of {} are malformed", self.device_name),
                )
            })
    }

    /// Returns the device's traffic between two readings of its counters.
    pub fn traffic_between(&self, before: DiskCounters, after: DiskCounters) -> DeviceTraffic {
        let moved = |of: fn(&DiskCounters) -> u64| of(&after).saturating_sub(of(&before));
        DeviceTraffic {
            device_name: self.device_name.clone(),
            read_bytes: moved(|of| of.read_bytes),
            written_bytes: moved(|of| of.written_bytes),
            busy_ms: moved(|of| of.busy_ms),
            request_counters: DeviceRequests {
                read_count: moved(|of| of.request_counters.read_count),
                read_merge_count: moved(|of| of.request_counters.read_merge_count),
                read_ms: moved(|of| of.request_counters.read_ms),
                write_count: moved(|of| of.request_counters.write_count),
                write_merge_count: moved(|of| of.request_counters.write_merge_count),
                write_ms: moved(|of| of.request_counters.write_ms),
                queue_ms: moved(|of| of.request_counters.queue_ms),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let line = "  168425     8747 12583922    53222    81319    20005  5273968    10777        0    27680    66297     3801       20  2598328     2286      472       11\n";
        let counters = DiskCounters {
            read_bytes: 12_583_922 * 512,
            written_bytes: 5_273_968 * 512,
            busy_ms: 27_680,
            request_counters: DeviceRequests {
                read_count: 168_425,
                read_merge_count: 8_747,
                read_ms: 53_222,
                write_count: 81_319,
                write_merge_count: 20_005,
                write_ms: 10_777,
                queue_ms: 66_297,
            },
        };
        assert_eq!(DiskCounters::parse_stat(line), Some(counters));
        assert_eq!(DiskCounters::parse_stat("1 2 3"), None);
        assert_eq!(DiskCounters::parse_stat("a b c d e f g h i j k"), None);
    }
}
