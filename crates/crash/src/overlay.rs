//! Medium after a cut, with what was written since.

use crate::{Cut, Log, OutOfRange};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Contents of a drive after a cut. Writes are kept apart from the log, and are durable at once.
#[derive(Clone, Debug)]
pub struct Overlay {
    log: Arc<Log>,
    cut: Cut,
    /// Units that were written since; `None` for zeroes.
    written: HashMap<u64, Option<Box<[u8]>>>,
    /// Units that cannot be read and were not written since.
    unreadable: BTreeSet<u64>,
}

/// Reason why a range of a medium cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Range that is no whole number of units within the drive.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// Unit of a sector that the drive was writing when its power was cut.
    #[error("unit {0} is unreadable")]
    Unreadable(u64),
}

impl Overlay {
    /// Creates the medium of a cut.
    pub fn new(log: Arc<Log>, cut: Cut) -> Self {
        Self {
            unreadable: cut.unreadable(&log),
            log,
            cut,
            written: HashMap::new(),
        }
    }

    fn units(&self, offset: u64, bytes: u64) -> Result<std::ops::Range<u64>, OutOfRange> {
        let unit_bytes = u64::from(self.log.unit_bytes);
        let end = offset.checked_add(bytes);
        let is_whole = offset.is_multiple_of(unit_bytes) && bytes.is_multiple_of(unit_bytes);
        match end {
            Some(end) if is_whole && end <= self.log.unit_count * unit_bytes => {
                Ok(offset / unit_bytes..end / unit_bytes)
            }
            _ => Err(OutOfRange {
                offset,
                bytes,
                unit_bytes: self.log.unit_bytes,
            }),
        }
    }

    /// Reads bytes.
    ///
    /// # Errors
    ///
    /// The range is no whole number of units within the drive, or a unit is unreadable.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let units = self.units(offset, into.len() as u64)?;
        if let Some(unit) = self.unreadable.range(units.clone()).next() {
            return Err(ReadError::Unreadable(*unit));
        }
        let unit_bytes = self.log.unit_bytes as usize;
        for (unit, into) in units.zip(into.chunks_exact_mut(unit_bytes)) {
            let data = match self.written.get(&unit) {
                Some(written) => written.as_deref(),
                None => self.log.read(&self.cut, unit),
            };
            match data {
                Some(data) => into.copy_from_slice(data),
                None => into.fill(0),
            }
        }
        Ok(())
    }

    /// Writes bytes.
    ///
    /// # Errors
    ///
    /// The range is no whole number of units within the drive.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), OutOfRange> {
        let units = self.units(offset, data.len() as u64)?;
        let pieces = data.chunks_exact(self.log.unit_bytes as usize);
        for (unit, data) in units.zip(pieces) {
            self.written.insert(unit, Some(data.into()));
            self.unreadable.remove(&unit);
        }
        Ok(())
    }

    /// Makes a range zero.
    ///
    /// # Errors
    ///
    /// The range is no whole number of units within the drive.
    pub fn zero(&mut self, offset: u64, bytes: u64) -> Result<(), OutOfRange> {
        for unit in self.units(offset, bytes)? {
            self.written.insert(unit, None);
            self.unreadable.remove(&unit);
        }
        Ok(())
    }
}
