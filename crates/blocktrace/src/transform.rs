//! Selection of a part of a trace, and changes of its addresses.

use crate::record::{DeviceIndex, TraceRecord, TracedOperation};

/// Selection of the requests that are kept, and changes of their addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceTransform {
    /// Time window that is kept: from the first time on and before the second one, in nanoseconds
    /// from the beginning. Times then count from the start of the window.
    pub window_ns: Option<(u64, u64)>,
    /// Device whose requests are kept. `None` keeps all devices.
    pub device: Option<DeviceIndex>,
    /// Rounding of reads and writes to whole sectors, before the scaling.
    pub sector_rounding: Option<SectorRounding>,
    /// Linear scaling of addresses.
    pub address_scaling: Option<AddressScaling>,
}

/// Rounding of requests to whole sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorRounding {
    /// Bytes of a sector.
    pub sector_bytes: u64,
}

impl SectorRounding {
    /// Reports whether a sector size is permitted: a power of two from 512 to 65536 bytes.
    pub fn is_sector_size(sector_bytes: u64) -> bool {
        (512..=65_536).contains(&sector_bytes) && sector_bytes.is_power_of_two()
    }

    /// Extends a read or a write to all sectors that it touches. A discard stays as it is, because
    /// an extended one would lose other data.
    pub fn apply(self, record: TraceRecord) -> TraceRecord {
        let is_moved = matches!(
            record.operation,
            TracedOperation::Read | TracedOperation::Write
        );
        let end = record.offset_bytes.checked_add(record.length_bytes);
        let unit = self.sector_bytes.max(1);
        let end = end.and_then(|end| end.checked_next_multiple_of(unit));
        match end {
            Some(end) if is_moved && record.length_bytes > 0 => {
                let offset_bytes = record.offset_bytes / unit * unit;
                TraceRecord {
                    offset_bytes,
                    length_bytes: end - offset_bytes,
                    ..record
                }
            }
            _ => record,
        }
    }
}

/// Scaling of addresses from one address space to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressScaling {
    /// Size of the address space of the trace, in bytes.
    pub from_bytes: u64,
    /// Size of the resulting address space, in bytes.
    pub to_bytes: u64,
    /// Alignment of the resulting addresses, in bytes.
    pub align_bytes: u64,
}

impl AddressScaling {
    /// Returns the scaled address of a record.
    ///
    /// # Errors
    ///
    /// Fails if the range is outside the original address space, or longer than the resulting one.
    pub fn apply(&self, record: &TraceRecord) -> Result<u64, String> {
        let end = record.offset_bytes.checked_add(record.length_bytes);
        if end.is_none_or(|end| end > self.from_bytes) {
            return Err(format!(
                "a request of {} bytes at byte {} is outside the {} bytes of the source address \
                 space",
                record.length_bytes, record.offset_bytes, self.from_bytes
            ));
        }
        let room = self
            .to_bytes
            .checked_sub(record.length_bytes)
            .ok_or_else(|| {
                format!(
                    "a request of {} bytes exceeds the {} bytes of the target address space",
                    record.length_bytes, self.to_bytes
                )
            })?;
        let scaled = u128::from(record.offset_bytes) * u128::from(self.to_bytes)
            / u128::from(self.from_bytes.max(1));
        let align = self.align_bytes.max(1);
        Ok((scaled as u64).min(room) / align * align)
    }
}

impl TraceTransform {
    /// Transforms a record. Returns `None` if the record is not kept.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be scaled.
    pub fn apply(&self, mut record: TraceRecord) -> Result<Option<TraceRecord>, String> {
        if self.device.is_some_and(|device| device != record.device) {
            return Ok(None);
        }
        if let Some((from_ns, to_ns)) = self.window_ns {
            if !(from_ns..to_ns).contains(&record.issued_ns) {
                return Ok(None);
            }
            record.issued_ns -= from_ns;
            record.completed_ns = record.completed_ns.map(|at| at - from_ns);
        }
        if let Some(round) = self.sector_rounding {
            record = round.apply(record);
        }
        if let Some(scale) = &self.address_scaling {
            record.offset_bytes = scale.apply(&record)?;
        }
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(operation: TracedOperation, offset_bytes: u64, length_bytes: u64) -> (u64, u64) {
        let record = TraceRecord {
            operation,
            offset_bytes,
            length_bytes,
            ..TraceRecord::issued_at(0)
        };
        let round = SectorRounding { sector_bytes: 4096 };
        let found = round.apply(record);
        (found.offset_bytes, found.length_bytes)
    }

    #[test]
    fn reads_and_writes_become_all_sectors_that_they_have_a_part_of() {
        for operation in [TracedOperation::Read, TracedOperation::Write] {
            assert_eq!(rounded(operation, 512, 512), (0, 4096));
            assert_eq!(rounded(operation, 3584, 1024), (0, 8192));
            assert_eq!(rounded(operation, 4096, 8192), (4096, 8192));
        }
    }

    /// What gives a range up, moves nothing, or has no whole sectors stays as it is.
    #[test]
    fn others_stay_as_they_are() {
        for operation in [
            TracedOperation::Discard,
            TracedOperation::WriteZeroes,
            TracedOperation::Flush,
        ] {
            assert_eq!(rounded(operation, 512, 512), (512, 512));
        }
        assert_eq!(rounded(TracedOperation::Read, 512, 0), (512, 0));
        for (offset, length) in [(u64::MAX - 100, 100), (u64::MAX - 100, 200)] {
            assert_eq!(
                rounded(TracedOperation::Write, offset, length),
                (offset, length)
            );
        }
    }

    #[test]
    fn sectors_are_powers_of_two() {
        assert!(
            [512, 4096, 65_536]
                .into_iter()
                .all(SectorRounding::is_sector_size)
        );
        assert!(
            ![0, 256, 520, 4160, 131_072]
                .into_iter()
                .any(SectorRounding::is_sector_size)
        );
    }
}
