//! Finished log of a workload's requests.

use crate::Cut;
use crate::stored::StoredLog;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashMap;
use std::ops::Range;

/// Kind of a recorded request. Reads are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestKind {
    /// Write of data to a range.
    Write,
    /// Flush of the volatile cache.
    Flush,
    /// Discard, after which the range reads as zeroes.
    Trim,
    /// Write of zeroes without data.
    WriteZeroes,
    /// Change of files or names in a directory, whose units are its parts.
    FileChange,
}

impl RequestKind {
    /// Returns the name for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::WriteZeroes => "write_zeroes",
            Self::FileChange => "file_change",
        }
    }
}

/// Recorded request. Instants are indexes of the log's entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Range of units that the request changes; empty for a flush.
    pub units: Range<u64>,
    /// Data of a write; empty for all other requests.
    pub data: Box<[u8]>,
    /// Whether the request has force unit access.
    pub fua: bool,
    /// Whether the drive ignores this flush.
    pub is_ignored: bool,
    /// Index of the entry with the submission.
    pub submitted: usize,
    /// Index of the entry with the completion; `None` if the log ends before it.
    pub completed: Option<usize>,
    /// Index of the entry that made the change durable; `None` if the log ends before it.
    pub durable: Option<usize>,
}

impl Request {
    /// Reports whether the request changes contents: it is no flush.
    pub fn is_change(&self) -> bool {
        self.kind != RequestKind::Flush
    }

    /// Reports whether the request makes a range zero that is too long for an entry for each of
    /// its units.
    pub(crate) fn is_long_zeroes(&self) -> bool {
        let is_zeroes = matches!(self.kind, RequestKind::Trim | RequestKind::WriteZeroes);
        is_zeroes && self.units.end - self.units.start >= LONG_UNITS_MIN
    }

    /// Reports whether the drive must keep the change after a cut before this entry.
    pub fn is_durable_at(&self, position: usize) -> bool {
        self.durable.is_some_and(|durable| durable < position)
    }

    /// Reports whether the request had completed before this entry.
    pub fn is_completed_at(&self, position: usize) -> bool {
        self.completed.is_some_and(|completed| completed < position)
    }
}

/// Line of a log. A request and a mark are given by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// Submission of a request.
    Submit(usize),
    /// Completion of a request.
    Complete(usize),
    /// Mark of the workload.
    Mark(usize),
}

/// Statement of a workload that something is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Name of what is durable.
    pub name: String,
    /// Index of its entry.
    pub position: usize,
}

/// Requests and marks of a workload in order, with the instants at which writes became durable.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "StoredLog<'_>")]
pub struct Log {
    /// Bytes that the drive writes atomically.
    pub unit_bytes: u32,
    /// Number of units of the drive.
    pub unit_count: u64,
    /// Units of a sector of the medium, which the drive reads and writes as a whole: 8 for a disk
    /// with sectors of 4 KiB that shows sectors of 512 bytes.
    pub medium_units: u64,
    /// All requests, in order of submission.
    pub requests: Vec<Request>,
    /// All events, in order.
    pub entries: Vec<Entry>,
    /// All marks, in order.
    pub marks: Vec<Mark>,
    /// Index of the first entry of the workload. Everything before it is durable.
    pub begin: usize,
    /// Index after the last entry of the workload.
    pub end: usize,
    /// Request indexes in order of completion; requests that never complete come last.
    order: Vec<u32>,
    /// Places in `order` of the requests that change each unit, ascending.
    versions: HashMap<u64, Vec<u32>>,
    /// Places in `order` of the long ranges of zeroes, ascending. A trim of a whole drive has no
    /// entry for each unit.
    long_zeroes: Vec<u32>,
}

impl Serialize for Log {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredLog::from(self).serialize(serializer)
    }
}

/// Number of units from which a range of zeroes is long.
const LONG_UNITS_MIN: u64 = 256;

impl Log {
    pub(crate) fn new(
        unit_bytes: u32,
        unit_count: u64,
        medium_units: u64,
        requests: Vec<Request>,
        entries: Vec<Entry>,
        marks: Vec<Mark>,
        workload: Range<usize>,
    ) -> Self {
        let mut order: Vec<u32> = (0..requests.len() as u32).collect();
        let key = |index: &u32| requests[*index as usize].completed.unwrap_or(usize::MAX);
        order.sort_by_key(key);
        let mut versions: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut long_zeroes = Vec::new();
        for (place, index) in (0..).zip(&order) {
            let request = &requests[*index as usize];
            if request.is_long_zeroes() {
                long_zeroes.push(place);
                continue;
            }
            if request.kind == RequestKind::FileChange {
                continue;
            }
            for unit in request.units.clone() {
                versions.entry(unit).or_default().push(place);
            }
        }
        Self {
            unit_bytes,
            unit_count,
            medium_units,
            requests,
            entries,
            marks,
            begin: workload.start,
            end: workload.end,
            order,
            versions,
            long_zeroes,
        }
    }

    /// Returns the changes that a cut before this entry may lose, in order of completion; those
    /// in flight come last, in order of submission.
    pub fn at_risk(&self, position: usize) -> Vec<usize> {
        let submitted = self.requests.iter().enumerate();
        let mut at_risk: Vec<usize> = submitted
            .take_while(|(_, request)| request.submitted < position)
            .filter(|(_, request)| request.is_change() && !request.is_durable_at(position))
            .map(|(index, _)| index)
            .collect();
        at_risk.sort_by_key(|&index| {
            let request = &self.requests[index];
            let completed = request.completed.filter(|at| *at < position);
            completed.unwrap_or(usize::MAX)
        });
        at_risk
    }

    /// Returns the units of the sector of the medium with a unit.
    pub fn medium_sector(&self, unit: u64) -> Range<u64> {
        let start = unit - unit % self.medium_units;
        start..(start + self.medium_units).min(self.unit_count)
    }

    /// Returns the marks that were made before this entry.
    pub fn marks_before(&self, position: usize) -> &[Mark] {
        let count = self.marks.partition_point(|mark| mark.position < position);
        &self.marks[..count]
    }

    /// Returns the contents of a unit after a cut; `None` where it reads as zeroes.
    pub fn read(&self, cut: &Cut, unit: u64) -> Option<&[u8]> {
        let is_kept = |place: &&u32| {
            let index = self.order[**place as usize] as usize;
            let request = &self.requests[index];
            request.units.contains(&unit)
                && request.submitted < cut.position
                && (request.is_durable_at(cut.position) || cut.keeps(self, index, unit))
        };
        let own = self.versions.get(&unit);
        let own = own.and_then(|places| places.iter().rev().find(is_kept))?;
        let newer = self.long_zeroes.iter().rev();
        let mut newer = newer.take_while(|place| *place > own);
        if newer.any(|place| is_kept(&place)) {
            return None;
        }
        self.data(self.order[*own as usize] as usize, unit)
    }

    fn data(&self, index: usize, unit: u64) -> Option<&[u8]> {
        let request = &self.requests[index];
        if request.kind != RequestKind::Write {
            return None;
        }
        let unit_bytes = self.unit_bytes as usize;
        let at = (unit - request.units.start) as usize * unit_bytes;
        Some(&request.data[at..at + unit_bytes])
    }

    /// Returns the number of a request in the workload, from 1. Earlier requests have 0.
    pub fn number(&self, index: usize) -> usize {
        let first = self
            .requests
            .partition_point(|request| request.submitted < self.begin);
        (index + 1).saturating_sub(first)
    }

    /// Returns the flushes that were submitted in the workload.
    pub fn flush_count(&self) -> usize {
        let of_workload = |request: &&Request| (self.begin..self.end).contains(&request.submitted);
        let flushes = self.requests.iter().filter(of_workload);
        flushes.filter(|request| !request.is_change()).count()
    }

    /// Returns the changes that were submitted in the workload.
    pub fn change_count(&self) -> usize {
        let of_workload = |request: &&Request| (self.begin..self.end).contains(&request.submitted);
        let changes = self.requests.iter().filter(of_workload);
        changes.filter(|request| request.is_change()).count()
    }

    /// Returns the first flush of the workload that completes at or after this entry, among those
    /// for which `covers` is true.
    pub fn next_flush(&self, position: usize, covers: impl Fn(usize) -> bool) -> Option<usize> {
        let entries = self.entries[..self.end].iter().skip(position);
        let mut flushes = entries.filter_map(|entry| match entry {
            Entry::Complete(index) if !self.requests[*index].is_change() => Some(*index),
            _ => None,
        });
        flushes.find(|flush| covers(*flush))
    }
}
