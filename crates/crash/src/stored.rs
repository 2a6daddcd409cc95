//! Log as a file keeps it: whoever wrote the file, a log that is read has no index beyond its end.

use crate::{Entry, Log, Mark, Request, RequestKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Largest device of a log, in bytes.
const DEVICE_BYTES_MAX: u64 = 1 << 60;

/// Largest number of units in a sector of the medium.
const MEDIUM_UNITS_MAX: u64 = 1 << 10;

/// Largest number of parts of a change of files.
const PARTS_MAX: u64 = 1 << 20;

/// Reason why stored data is no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log has {0}")]
pub struct InvalidLog(pub(crate) &'static str);

/// Part of a log that the other parts follow from.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredLog<'l> {
    unit_bytes: u32,
    unit_count: u64,
    medium_units: u64,
    requests: Cow<'l, [Request]>,
    entries: Cow<'l, [Entry]>,
    marks: Cow<'l, [Mark]>,
    begin: usize,
    end: usize,
}

impl<'l> From<&'l Log> for StoredLog<'l> {
    fn from(log: &'l Log) -> Self {
        Self {
            unit_bytes: log.unit_bytes,
            unit_count: log.unit_count,
            medium_units: log.medium_units,
            requests: Cow::Borrowed(&log.requests),
            entries: Cow::Borrowed(&log.entries),
            marks: Cow::Borrowed(&log.marks),
            begin: log.begin,
            end: log.end,
        }
    }
}

impl TryFrom<StoredLog<'_>> for Log {
    type Error = InvalidLog;

    fn try_from(stored: StoredLog<'_>) -> Result<Self, InvalidLog> {
        stored.validate()?;
        Ok(Self::new(
            stored.unit_bytes,
            stored.unit_count,
            stored.medium_units,
            stored.requests.into_owned(),
            stored.entries.into_owned(),
            stored.marks.into_owned(),
            stored.begin..stored.end,
        ))
    }
}

impl StoredLog<'_> {
    fn validate(&self) -> Result<(), InvalidLog> {
        let size_bytes = self.unit_count.checked_mul(u64::from(self.unit_bytes));
        let is_size = size_bytes.is_some_and(|bytes| bytes <= DEVICE_BYTES_MAX);
        let has_sectors = (1..=MEDIUM_UNITS_MAX).contains(&self.medium_units);
        if self.unit_bytes == 0 || !is_size || !has_sectors {
            return Err(InvalidLog("a size that no device has"));
        }
        if self.begin > self.end || self.end > self.entries.len() {
            return Err(InvalidLog("a workload beyond its entries"));
        }
        for (index, request) in self.requests.iter().enumerate() {
            self.validate_request(index, request)?;
        }
        let is_known = |(position, entry): (usize, &Entry)| match *entry {
            Entry::Submit(index) => {
                let request = self.requests.get(index);
                request.is_some_and(|request| request.submitted == position)
            }
            Entry::Complete(index) => {
                let request = self.requests.get(index);
                request.is_some_and(|request| request.completed == Some(position))
            }
            Entry::Mark(index) => {
                let mark = self.marks.get(index);
                mark.is_some_and(|mark| mark.position == position)
            }
        };
        let are_marks_known = self.marks.iter().enumerate().all(|(index, mark)| {
            matches!(self.entries.get(mark.position), Some(Entry::Mark(of)) if *of == index)
        });
        match self.entries.iter().enumerate().all(is_known) && are_marks_known {
            true => Ok(()),
            false => Err(InvalidLog(
                "entries that are none of its requests and marks",
            )),
        }
    }

    fn validate_request(&self, index: usize, request: &Request) -> Result<(), InvalidLog> {
        let Request { units, data, .. } = request;
        let has_data = data.len() as u64
            == match request.kind {
                RequestKind::Write => {
                    units.end.saturating_sub(units.start) * u64::from(self.unit_bytes)
                }
                _ => 0,
            };
        let has_place = match request.kind {
            RequestKind::Write | RequestKind::Trim | RequestKind::WriteZeroes => {
                units.start <= units.end && units.end <= self.unit_count
            }
            RequestKind::Flush => units.is_empty(),
            RequestKind::FileChange => units.start == 0 && units.end <= PARTS_MAX,
        };
        if !has_data || !has_place {
            return Err(InvalidLog("a request beyond its device"));
        }
        let is_entry = |position: usize, expected: fn(usize) -> Entry| {
            self.entries.get(position) == Some(&expected(index))
        };
        let is_submitted = is_entry(request.submitted, Entry::Submit);
        let completed = request.completed;
        let is_completed = completed.is_none_or(|at| is_entry(at, Entry::Complete));
        let is_durable = request.durable.is_none_or(|at| at < self.entries.len());
        match is_submitted && is_completed && is_durable {
            true => Ok(()),
            false => Err(InvalidLog("a request that is none of its entries")),
        }
    }
}
