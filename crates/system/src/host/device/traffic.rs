//! The counters that the kernel keeps of each block device.

use super::BlockDevice;
use diskperf_timeline::DeviceTraffic;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The unit of the counters, whatever the device's own block size is.
const SECTOR_BYTES: u64 = 512;

/// What a device has done since the system started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u64,
}

impl Counters {
    /// Reads a line of `/sys/block/*/stat`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        let mut field = |skipped: usize| fields.nth(skipped)?.ok();
        Some(Self {
            read_bytes: field(2)? * SECTOR_BYTES,
            written_bytes: field(3)? * SECTOR_BYTES,
            busy_ms: field(2)?,
        })
    }
}

/// Reads the counters of one device again and again: one system call each
/// time, and no allocation.
#[derive(Debug)]
pub struct TrafficMeter {
    device: String,
    stat: File,
}

impl TrafficMeter {
    /// Opens the counters of a device.
    ///
    /// # Errors
    /// sysfs has none.
    pub fn open(device: &BlockDevice) -> io::Result<Self> {
        Ok(Self {
            device: device.name().to_owned(),
            stat: File::open(device.sysfs().join("stat"))?,
        })
    }

    /// The kernel's name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The counters now.
    ///
    /// # Errors
    /// The device has gone, or the kernel's line is not of its format.
    pub fn read(&self) -> io::Result<Counters> {
        let mut line = [0; 512];
        let length = self.stat.read_at(&mut line, 0)?;
        std::str::from_utf8(&line[..length])
            .ok()
            .and_then(Counters::parse)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("the counters of {} are not readable", self.device),
                )
            })
    }

    /// What moved between two readings.
    pub fn traffic(&self, before: Counters, after: Counters) -> DeviceTraffic {
        DeviceTraffic {
            device: self.device.clone(),
            read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
            busy_ms: after.busy_ms.saturating_sub(before.busy_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let line = "  168425     8747 12583922    53222    81319    20005  5273968    10777        0    27680    66297     3801       20  2598328     2286      472       11\n";
        let counters = Counters {
            read_bytes: 12_583_922 * 512,
            written_bytes: 5_273_968 * 512,
            busy_ms: 27_680,
        };
        assert_eq!(Counters::parse(line), Some(counters));
        assert_eq!(Counters::parse("1 2 3"), None);
        assert_eq!(Counters::parse("a b c d e f g h i j k"), None);
    }
}
