//! Recording of requests and marks while a workload runs.

use crate::{Entry, Log, Mark, Request, RequestKind};
use diskperf_device::WriteCache;
use std::collections::HashMap;
use std::ops::Range;

/// Share of the flushes that a drive completes and ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LyingFlush {
    /// Flushes of a round that are ignored, which come first.
    pub ignored: u32,
    /// Flushes of a round; 0 for a drive that does not lie.
    pub round: u32,
}

impl LyingFlush {
    pub(crate) fn ignores(self, flush: u32) -> bool {
        self.round > 0 && flush % self.round < self.ignored
    }
}

/// Request beyond the end of the drive, or for a part of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes at {offset} are no whole units of {unit_bytes} bytes within the drive")]
pub struct OutOfRange {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of the range, in bytes.
    pub bytes: u64,
    /// Bytes that the drive writes atomically.
    pub unit_bytes: u32,
}

/// Requests and marks so far, and the newest contents.
#[derive(Debug)]
pub struct Recording {
    unit_bytes: u32,
    unit_count: u64,
    medium_units: u64,
    cache: WriteCache,
    lying: LyingFlush,
    requests: Vec<Request>,
    entries: Vec<Entry>,
    marks: Vec<Mark>,
    /// Completed changes that are not durable, oldest first.
    volatile: Vec<usize>,
    /// Latest completed write of each unit that does not read as zeroes.
    newest: HashMap<u64, usize>,
    flush_count: u32,
    begin: usize,
    end: Option<usize>,
}

impl Recording {
    /// Creates a recording of a drive that reads as zeroes. Its size is rounded down to whole
    /// units.
    pub fn new(unit_bytes: u32, size_bytes: u64, cache: WriteCache, lying: LyingFlush) -> Self {
        Self {
            unit_bytes,
            unit_count: size_bytes / u64::from(unit_bytes),
            medium_units: 1,
            cache,
            lying,
            requests: Vec::new(),
            entries: Vec::new(),
            marks: Vec::new(),
            volatile: Vec::new(),
            newest: HashMap::new(),
            flush_count: 0,
            begin: 0,
            end: None,
        }
    }

    /// Sets the size of a sector of the medium, which is that of a unit at first. It is rounded down
    /// to whole units.
    #[must_use]
    pub fn with_medium_sector(mut self, bytes: u64) -> Self {
        self.medium_units = (bytes / u64::from(self.unit_bytes)).max(1);
        self
    }

    /// Size of the drive, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.unit_count * u64::from(self.unit_bytes)
    }

    fn units(&self, offset: u64, bytes: u64) -> Result<Range<u64>, OutOfRange> {
        let unit_bytes = u64::from(self.unit_bytes);
        let end = offset.checked_add(bytes);
        let is_whole = offset.is_multiple_of(unit_bytes) && bytes.is_multiple_of(unit_bytes);
        match end {
            Some(end) if is_whole && end <= self.size_bytes() => {
                Ok(offset / unit_bytes..end / unit_bytes)
            }
            _ => Err(OutOfRange {
                offset,
                bytes,
                unit_bytes: self.unit_bytes,
            }),
        }
    }

    fn push(&mut self, kind: RequestKind, units: Range<u64>, fua: bool, data: &[u8]) -> usize {
        let index = self.requests.len();
        self.requests.push(Request {
            kind,
            units,
            data: data.into(),
            fua,
            is_ignored: false,
            submitted: self.entries.len(),
            completed: None,
            durable: None,
        });
        self.entries.push(Entry::Submit(index));
        index
    }

    /// Submits a write, and returns the index of the request.
    ///
    /// # Errors
    ///
    /// The range is no whole number of units within the drive.
    pub fn submit_write(
        &mut self,
        offset: u64,
        data: &[u8],
        fua: bool,
    ) -> Result<usize, OutOfRange> {
        let units = self.units(offset, data.len() as u64)?;
        Ok(self.push(RequestKind::Write, units, fua, data))
    }

    /// Submits a trim or write of zeroes, and returns the index of the request.
    ///
    /// # Errors
    ///
    /// The range is no whole number of units within the drive.
    pub fn submit_zeroes(
        &mut self,
        kind: RequestKind,
        offset: u64,
        bytes: u64,
        fua: bool,
    ) -> Result<usize, OutOfRange> {
        let units = self.units(offset, bytes)?;
        Ok(self.push(kind, units, fua, &[]))
    }

    /// Submits a change of files, which a cut keeps or loses in parts.
    pub(crate) fn submit_file_change(&mut self, parts: u64, is_durable: bool) -> usize {
        self.push(RequestKind::FileChange, 0..parts, is_durable, &[])
    }

    /// Index of the request that is submitted next.
    pub(crate) fn next_request(&self) -> usize {
        self.requests.len()
    }

    /// Submits a flush, and returns the index of the request.
    pub fn submit_flush(&mut self) -> usize {
        let index = self.push(RequestKind::Flush, 0..0, false, &[]);
        self.requests[index].is_ignored = self.lying.ignores(self.flush_count);
        // What formats the drive is no part of the workload, which begins a round.
        self.flush_count += 1;
        index
    }

    /// Records the completion of a request.
    pub fn complete(&mut self, index: usize) {
        let position = self.entries.len();
        self.entries.push(Entry::Complete(index));
        let request = &mut self.requests[index];
        request.completed = Some(position);
        if !request.is_change() {
            let (submitted, is_ignored) = (request.submitted, request.is_ignored);
            if !is_ignored {
                self.end_flush(submitted, position, |_| true);
            }
            return;
        }
        if request.fua || self.cache == WriteCache::Durable {
            request.durable = Some(position);
        } else {
            self.volatile.push(index);
        }
        let request = &self.requests[index];
        let units = request.units.clone();
        match request.kind {
            // Files have contents of their own.
            RequestKind::FileChange => {}
            RequestKind::Write => self.newest.extend(units.map(|unit| (unit, index))),
            // A trim of a whole drive has more units than were ever written.
            _ if request.is_long_zeroes() => self.newest.retain(|unit, _| !units.contains(unit)),
            _ => {
                for unit in units {
                    self.newest.remove(&unit);
                }
            }
        }
    }

    /// Records the completion of a sync, which covers a part of the completed changes.
    pub(crate) fn complete_sync(&mut self, index: usize, covers: impl Fn(usize) -> bool) {
        let position = self.entries.len();
        self.entries.push(Entry::Complete(index));
        let request = &mut self.requests[index];
        request.completed = Some(position);
        let (submitted, is_ignored) = (request.submitted, request.is_ignored);
        if !is_ignored {
            self.end_flush(submitted, position, covers);
        }
    }

    /// Records the failure of a sync. No later sync covers what this one did.
    pub(crate) fn fail_sync(&mut self, index: usize, covers: impl Fn(usize) -> bool) {
        self.requests[index].is_ignored = true;
        self.complete_sync(index, |_| false);
        self.volatile.retain(|change| !covers(*change));
    }

    fn end_flush(&mut self, submitted: usize, position: usize, covers: impl Fn(usize) -> bool) {
        let requests = &mut self.requests;
        self.volatile.retain(|&index| {
            let is_covered = requests[index].is_completed_at(submitted) && covers(index);
            if is_covered {
                requests[index].durable = Some(position);
            }
            !is_covered
        });
    }

    /// Records a mark: something is durable from now on.
    pub fn mark(&mut self, name: &str) {
        let position = self.entries.len();
        self.entries.push(Entry::Mark(self.marks.len()));
        self.marks.push(Mark {
            name: name.to_owned(),
            position,
        });
    }

    /// Begins the workload. All that was completed before is durable.
    pub fn begin(&mut self) {
        self.begin = self.entries.len();
        self.flush_count = 0;
        for index in std::mem::take(&mut self.volatile) {
            self.requests[index].durable = Some(self.begin.saturating_sub(1));
        }
    }

    /// Ends the workload. Later requests are carried out, and no cut falls among them.
    pub fn end(&mut self) {
        self.end = Some(self.entries.len());
    }

    /// Reads the newest completed contents.
    ///
    /// # Errors
    ///
    /// The range is no whole number of units within the drive.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfRange> {
        let units = self.units(offset, into.len() as u64)?;
        let unit_bytes = self.unit_bytes as usize;
        for (unit, into) in units.zip(into.chunks_exact_mut(unit_bytes)) {
            match self.newest.get(&unit).map(|&index| &self.requests[index]) {
                None => into.fill(0),
                Some(request) => {
                    let at = (unit - request.units.start) as usize * unit_bytes;
                    into.copy_from_slice(&request.data[at..at + unit_bytes]);
                }
            }
        }
        Ok(())
    }

    /// Returns the log of the workload.
    pub fn finish(self) -> Log {
        let end = self.end.unwrap_or(self.entries.len());
        Log::new(
            self.unit_bytes,
            self.unit_count,
            self.medium_units,
            self.requests,
            self.entries,
            self.marks,
            self.begin..end,
        )
    }
}
