//! Data of a served drive as faults show them.

use crate::{Extent, Served};
use diskperf_device::faults::{FaultEffects, FaultOverlay, SilentChange};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

impl Served {
    /// Reads bytes from an offset, as the faults that are on show them. A request that fails reads
    /// nothing.
    ///
    /// # Errors
    ///
    /// The data cannot be read.
    pub fn read(&self, offset: u64, bytes: &mut [u8], effects: &FaultEffects) -> io::Result<()> {
        if effects.fails {
            return Ok(());
        }
        self.data.read(offset, bytes)?;
        if let Some(overlay) = &self.overlay {
            lock(overlay).show(effects.faults_on, offset, bytes);
            for flip in &effects.flips {
                bytes[(flip.offset - offset) as usize] ^= flip.mask;
            }
        }
        Ok(())
    }

    /// Writes bytes at an offset. The true data have them, whatever faults show. A request that
    /// fails writes nothing.
    ///
    /// # Errors
    ///
    /// The data cannot be written, or there is no memory.
    pub fn write(&self, offset: u64, bytes: &[u8], effects: &FaultEffects) -> io::Result<()> {
        if effects.fails {
            return Ok(());
        }
        let Some(overlay) = &self.overlay else {
            return self.data.write(offset, bytes);
        };
        let mut overlay = lock(overlay);
        let Some((fault, change)) = effects.silent else {
            self.data.write(offset, bytes)?;
            overlay.overwrite(offset, bytes);
            return Ok(());
        };
        let end = offset + bytes.len() as u64;
        let written = match change {
            SilentChange::Lost | SilentChange::Misdirected { .. } => 0,
            SilentChange::Torn { bytes: torn } => torn.min(bytes.len() as u64),
        };
        let on = effects.faults_on;
        let unwritten = self.sectors_around(offset + written..end);
        let old = self.shown(&overlay, on, &unwritten)?;
        let elsewhere = match change {
            SilentChange::Misdirected { offset: other } => {
                let first = unwritten.start;
                let there = other..other + (unwritten.end - first);
                let mut found = self.shown(&overlay, on, &there)?;
                let at = (offset - first) as usize;
                found[at..at + bytes.len()].copy_from_slice(bytes);
                Some((other, found))
            }
            _ => None,
        };
        self.data.write(offset, bytes)?;
        overlay.overwrite(offset, bytes);
        overlay.keep(fault, unwritten.start, &old);
        if let Some((other, found)) = elsewhere {
            overlay.keep(fault, other, &found);
        }
        Ok(())
    }

    /// Makes a range zero. A request that fails changes nothing.
    ///
    /// # Errors
    ///
    /// The data cannot be written.
    pub fn zero(
        &self,
        offset: u64,
        bytes: u64,
        keep_allocated: bool,
        effects: &FaultEffects,
    ) -> io::Result<()> {
        if effects.fails {
            return Ok(());
        }
        let mut overlay = self.overlay.as_ref().map(lock);
        self.data.zero(offset, bytes, keep_allocated)?;
        if let Some(overlay) = &mut overlay {
            overlay.zero(offset, bytes);
        }
        Ok(())
    }

    /// Returns the extents of a range, at most `count_max`. A drive with faults has no holes:
    /// clients would not read them, and miss what faults show there.
    ///
    /// # Errors
    ///
    /// The file's holes cannot be read.
    pub fn extents(&self, offset: u64, bytes: u64, count_max: usize) -> io::Result<Vec<Extent>> {
        let is_hole = false;
        match self.overlay {
            Some(_) => Ok(vec![Extent { bytes, is_hole }]),
            None => self.data.extents(offset, bytes, count_max),
        }
    }

    /// Returns the range of whole sectors that contains a range.
    fn sectors_around(&self, range: Range<u64>) -> Range<u64> {
        let sector_bytes = u64::from(self.sector_bytes);
        let start = range.start / sector_bytes * sector_bytes;
        start..range.end.div_ceil(sector_bytes) * sector_bytes
    }

    /// Returns the bytes of a range as a read finds them now.
    fn shown(&self, overlay: &FaultOverlay, on: u64, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let length = (range.end - range.start) as usize;
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(length);
        reserved.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        bytes.resize(length, 0);
        self.data.read(range.start, &mut bytes)?;
        overlay.show(on, range.start, &mut bytes);
        Ok(bytes)
    }
}

fn lock(overlay: &Mutex<FaultOverlay>) -> MutexGuard<'_, FaultOverlay> {
    overlay.lock().unwrap_or_else(PoisonError::into_inner)
}
