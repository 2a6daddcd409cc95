//! Result of the power cuts of a workload.

use std::ops::Range;

/// File or name that a request of a recorded directory changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Name of the kind of change, such as `rename`.
    pub kind: &'static str,
    /// Text with the changed pages, size or names.
    pub place: String,
    /// Path of the file or directory whose sync makes the change durable.
    pub synced: String,
}

/// Step of the workload at which the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutStep {
    /// Start of the workload.
    Start,
    /// Moment before the completion of the request.
    BeforeCompletion(NumberedRequest),
    /// Moment after the submission of the request.
    AfterSubmission(NumberedRequest),
    /// Moment after the completion of the request.
    AfterCompletion(NumberedRequest),
    /// Moment after the last mark before the cut.
    AfterMark,
    /// End of the workload.
    End,
}

/// Request by its number and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedRequest {
    /// Number of the request in the workload, from 1.
    pub request: usize,
    /// Name of the kind of request, such as `flush`.
    pub kind: &'static str,
}

/// Moment of a power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutMoment {
    /// Number of submissions, completions and marks of the workload before the cut.
    pub position: usize,
    /// Step of the workload at which the power is cut.
    pub step: CutStep,
    /// Name of the last mark before the cut; `None` before the first one.
    pub last_mark: Option<String>,
}

/// Request whose fate is part of a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRequest {
    /// Number of the request in the workload, from 1.
    pub request: usize,
    /// Name of the kind of request, such as `write`.
    pub kind: &'static str,
    /// File or name that the request changes; `None` for requests of a drive.
    pub file: Option<ChangedFile>,
    /// First unit of the drive that the request changes.
    pub unit: u64,
    /// Number of units that the request changes.
    pub unit_count: u64,
    /// Number of units that the cut lost; fewer than all in a torn write.
    pub lost_unit_count: u64,
    /// Units that are unreadable, because the drive was writing their sector; they may be more than
    /// the request changes.
    pub unreadable: Option<Range<u64>>,
}

/// Place at which a flush would have prevented a loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavingFlush {
    /// Number of the request that the flush has to follow; `None` if the data had not been sent
    /// to the drive at all.
    pub after_request: Option<usize>,
    /// Name of the mark that the flush has to precede.
    pub before_mark: Option<String>,
    /// Number of the request that the flush has to precede.
    pub before_request: Option<usize>,
    /// Number of a flush in the right place that the drive ignored.
    pub ignored_flush: Option<usize>,
    /// Number of the next flush of the workload, which came too late.
    pub next_flush: Option<usize>,
    /// Path of the file or directory that has to be synced; `None` for a flush of a drive.
    pub synced: Option<String>,
}

/// Cut after which the check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Moment of the cut.
    pub cut: CutMoment,
    /// Name of the first mark whose data is lost; `None` if the check fails without any mark, or
    /// if this loss was not examined further.
    pub mark: Option<String>,
    /// Smallest set of requests whose loss suffices while all others are kept; `None` if this
    /// loss was not examined further.
    pub requests_before: Option<Vec<LostRequest>>,
    /// Requests that must be kept while all others are lost; empty if losing everything fails,
    /// too.
    pub kept_requests: Vec<LostRequest>,
    /// Place at which a flush would have prevented the loss; `None` if no flush would have, or if
    /// this loss was not examined further.
    pub would_have_saved: Option<SavingFlush>,
    /// Output of the check.
    pub output: String,
}

/// Cut after which the file system does not mount, or its checker finds damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemFailure {
    /// Moment of the cut.
    pub cut: CutMoment,
    /// Output of mount or of the checker.
    pub output: String,
}

/// Result of the power cuts of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// Number of writes, trims and writes of zeroes of the workload.
    pub change_count: usize,
    /// Number of flushes of the workload.
    pub flush_count: usize,
    /// Number of marks of the workload.
    pub mark_count: usize,
    /// Number of instants at which the power was cut.
    pub instant_count: usize,
    /// Number of media that were checked: several for an instant, if the cut may lose more or
    /// less.
    pub cut_count: usize,
    /// Cuts after which the check failed. The first one is examined.
    pub lost: Vec<Loss>,
    /// Cuts after which the file system is damaged.
    pub fsck_failures: Vec<FileSystemFailure>,
}

impl CrashReport {
    /// Reports whether every medium passed its checks.
    pub fn is_good(&self) -> bool {
        self.lost.is_empty() && self.fsck_failures.is_empty()
    }
}
