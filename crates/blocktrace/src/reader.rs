//! Reader of traces, which returns one request after another.

use crate::columns::CsvColumns;
use crate::error::ReadError;
use crate::form::{Form, TimeUnit};
use crate::forms::{LineMeaning, ParseContext};
use crate::lines::TraceInput;
use crate::own::{TraceFact, TracePart};
use crate::record::TraceRecord;
use crate::source::{ReadStep, RecordOutcome, TraceFile, align_issue_steps, parse_event_time_ns};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::Read;

/// Options for reading a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Format of the trace. `None` means that the beginning of the trace determines it.
    pub form: Option<Form>,
    /// Columns of comma-separated values.
    pub columns: Option<CsvColumns>,
    /// Unit of the times, for a format that does not define one.
    pub time_unit: Option<TimeUnit>,
    /// Whether a truncated trace is read as far as possible.
    pub is_partial_allowed: bool,
}

/// Number of lines of a trace, or records of a binary one, by kind. [`Notices`] lists the reasons
/// of those that are left out. `read` is the sum of all kinds, except for diskperf's own format,
/// which has no lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    /// Number of all lines of the trace.
    #[serde(rename = "read")]
    pub line_count: u64,
    /// Number of lines that begin a request, which is the number of requests.
    #[serde(rename = "requests")]
    pub request_lines: u64,
    /// Number of lines that add to a request, such as its completion.
    #[serde(rename = "more")]
    pub update_lines: u64,
    /// Number of headings, comments and empty lines, which cannot be requests.
    #[serde(rename = "asides")]
    pub other_lines: u64,
}

/// Observations on a trace that its reader should know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notices {
    /// Number of lines read, by kind.
    #[serde(rename = "lines")]
    pub line_counts: LineCounts,
    /// Number of lines that are not requests, by reason.
    #[serde(rename = "dropped")]
    pub dropped_lines: BTreeMap<&'static str, u64>,
    /// Number of requests that are earlier than the previous request.
    #[serde(rename = "out_of_order")]
    pub out_of_order_requests: u64,
    /// Maximum distance by which a request's time is before an earlier one, in nanoseconds.
    #[serde(rename = "farthest_back_ns")]
    pub time_regression_ns_max: u64,
    /// Number of requests whose completion is not in the trace.
    #[serde(rename = "without_completion")]
    pub unfinished_requests: u64,
    /// Number of completions whose issue is not in the trace.
    #[serde(rename = "without_issue")]
    pub unmatched_completions: u64,
    /// Whether the trace is truncated and was read as far as possible.
    #[serde(rename = "is_cut")]
    pub is_truncated: bool,
}

/// Number of requests that are sorted by time, for formats with slightly unordered lines.
const SORTING_WINDOW_REQUESTS: usize = 1024;

/// Reader of a trace. It iterates over the [`TraceRecord`]s in the order of issue, with times from the
/// first request.
pub struct TraceReader {
    form: Form,
    files: Vec<TraceFile>,
    context: ParseContext,
    accepts_truncation: bool,
    /// Records in the sorting window, as pairs of time and number in the trace.
    sorting_window: BinaryHeap<Reverse<(u64, u64)>>,
    /// Records in the sorting window, by number.
    window_records: VecDeque<Option<TraceRecord>>,
    first_window_number: u64,
    window_size_max: usize,
    is_at_end: bool,
    has_failed: bool,
    /// Time of the first record on the trace's clock, from which all times count.
    first_record_ns: Option<u64>,
    last_ns: u64,
    notices: Notices,
}

impl TraceReader {
    /// Opens a trace that messages call `name`.
    ///
    /// # Errors
    ///
    /// Fails if the input cannot be read or its format cannot be determined.
    pub fn open(
        name: &str,
        input: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        Self::open_all(vec![(name.to_owned(), input)], options)
    }

    /// Opens a trace of several files: those of blktrace, one for each CPU.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::open`], and for several files of another format.
    ///
    /// # Panics
    ///
    /// Panics if no file is given.
    pub fn open_all(
        files: Vec<(String, Box<dyn Read + Send>)>,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        let mut opened = Vec::new();
        for (name, input) in files {
            let input = TraceInput::open(input).map_err(|source| ReadError::Input {
                name: name.clone(),
                source,
            })?;
            opened.push((name, input));
        }
        // A processor that did nothing leaves an empty file.
        if opened.iter().any(|(_, input)| !input.is_empty()) {
            opened.retain(|(_, input)| !input.is_empty());
        }
        let several = opened.len() > 1;
        let mut sources = Vec::new();
        let mut form = None;
        for (name, input) in opened {
            let (found, source) = TraceFile::open(name, input, options)?;
            if several && found != Form::Blktrace {
                return Err(ReadError::Form {
                    name: source.name,
                    problem: format!(
                        "it has the form {found}; only blktrace traces may consist of several \
                         files, one for each CPU"
                    ),
                });
            }
            form = Some(found);
            sources.push(source);
        }
        let form = form.expect("a trace has a file");
        align_issue_steps(&mut sources);
        let mut reader = Self {
            form,
            files: sources,
            context: ParseContext::default(),
            accepts_truncation: options.is_partial_allowed,
            sorting_window: BinaryHeap::new(),
            window_records: VecDeque::new(),
            first_window_number: 0,
            window_size_max: match form {
                Form::Msr | Form::Systor17 | Form::Biosnoop => SORTING_WINDOW_REQUESTS,
                _ => 0,
            },
            is_at_end: false,
            has_failed: false,
            first_record_ns: None,
            last_ns: 0,
            notices: Notices::default(),
        };
        if several {
            for number in 0..reader.files.len() {
                reader.read_ahead_event(number)?;
            }
        }
        Ok(reader)
    }

    /// Returns the format of the trace.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the names of the devices seen so far, by device index.
    pub fn devices(&self) -> &[String] {
        self.context.device_names()
    }

    /// Returns the information that a trace of diskperf's own format gives on itself, as far as it
    /// was read.
    pub fn facts(&self) -> &[TraceFact] {
        &self.context.information.facts
    }

    /// Returns the parts of a trace of diskperf's own format, as far as it was read.
    pub fn parts(&self) -> Vec<TracePart> {
        self.context
            .information
            .relative_parts(self.first_record_ns.unwrap_or(0))
    }

    /// Returns the index of the part in which the most recently returned record was issued.
    pub fn find_part_of(&self, record: &TraceRecord) -> Option<usize> {
        let begins_ns = self.first_record_ns.unwrap_or(0);
        let at_ns = record.issued_ns.saturating_add(begins_ns);
        self.context.information.find_part_at(at_ns)
    }

    /// Returns the time of the first request on the trace's own clock, from which all times count.
    pub fn first_issue_ns(&self) -> Option<u64> {
        self.first_record_ns
    }

    /// Returns the observations on the trace so far.
    pub fn notices(&self) -> Notices {
        Notices {
            dropped_lines: self.context.dropped_counts.clone(),
            unfinished_requests: self.context.open_requests.without_completion_count,
            unmatched_completions: self.context.open_requests.without_issue_count,
            ..self.notices.clone()
        }
    }

    /// Returns the next record as the format gives it, or `None` at the end.
    fn next_unsorted(&mut self) -> Result<Option<TraceRecord>, ReadError> {
        loop {
            if let Some(record) = self.context.open_requests.pop_ready(self.is_at_end) {
                return Ok(Some(record));
            }
            if self.is_at_end {
                return Ok(None);
            }
            let said = match self.files.len() {
                1 => self.files[0].next_step(&mut self.context, self.accepts_truncation)?,
                _ => self.read_earliest_step()?,
            };
            match said {
                ReadStep::Line(said) => {
                    self.count_line(&said);
                    if let LineMeaning::Request(record) = said {
                        return Ok(Some(record));
                    }
                }
                ReadStep::Truncated => {
                    self.notices.is_truncated = true;
                    self.is_at_end = true;
                }
                ReadStep::End => self.is_at_end = true,
            }
        }
    }

    #[inline]
    fn count_line(&mut self, said: &LineMeaning) {
        if self.form == Form::Diskperf {
            return;
        }
        let lines = &mut self.notices.line_counts;
        lines.line_count += 1;
        match said {
            LineMeaning::Request(_) | LineMeaning::RequestIssue => lines.request_lines += 1,
            LineMeaning::RequestUpdate => lines.update_lines += 1,
            LineMeaning::Heading => lines.other_lines += 1,
            LineMeaning::Ignored => {}
        }
    }

    /// Processes the earliest event of all files.
    fn read_earliest_step(&mut self) -> Result<ReadStep, ReadError> {
        let times = self.files.iter().enumerate();
        let earliest = times
            .filter_map(|(number, of)| Some((of.next_event.as_ref()?.0, number)))
            .min();
        let Some((_, number)) = earliest else {
            return Ok(ReadStep::End);
        };
        let source = &mut self.files[number];
        let (_, event) = source.next_event.take().expect("the earliest event");
        let said = source.parse_event(&event, &mut self.context)?;
        self.read_ahead_event(number)?;
        Ok(ReadStep::Line(said))
    }

    fn read_ahead_event(&mut self, number: usize) -> Result<(), ReadError> {
        let source = &mut self.files[number];
        match source.read_event(self.accepts_truncation)? {
            RecordOutcome::Complete => {
                let event = source.input.last_piece().to_vec();
                let at = parse_event_time_ns(&event, source);
                source.next_event = Some((at, event));
            }
            RecordOutcome::Truncated => self.notices.is_truncated = true,
            RecordOutcome::End => {}
        }
        Ok(())
    }

    /// Converts the times of a record to count from the first request, and counts records that are
    /// out of order.
    fn convert_times(&mut self, mut record: TraceRecord) -> TraceRecord {
        let begins = *self.first_record_ns.get_or_insert(record.issued_ns);
        let issued = record.issued_ns.saturating_sub(begins);
        record.completed_ns = record
            .response_ns()
            .map(|response| issued.saturating_add(response));
        record.issued_ns = issued;
        if issued < self.last_ns {
            self.notices.out_of_order_requests += 1;
            let back = self.last_ns - issued;
            self.notices.time_regression_ns_max = self.notices.time_regression_ns_max.max(back);
        }
        self.last_ns = self.last_ns.max(issued);
        record
    }

    fn next_sorted(&mut self) -> Result<Option<TraceRecord>, ReadError> {
        if self.window_size_max == 0 {
            return self.next_unsorted();
        }
        while self.sorting_window.len() < self.window_size_max {
            let Some(record) = self.next_unsorted()? else {
                break;
            };
            let number = self.first_window_number + self.window_records.len() as u64;
            self.sorting_window
                .push(Reverse((record.issued_ns, number)));
            self.window_records.push_back(Some(record));
        }
        let Some(Reverse((_, number))) = self.sorting_window.pop() else {
            return Ok(None);
        };
        let record = self.window_records[(number - self.first_window_number) as usize].take();
        while self.window_records.front().is_some_and(Option::is_none) {
            self.window_records.pop_front();
            self.first_window_number += 1;
        }
        Ok(record)
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRecord, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        match self.next_sorted() {
            Ok(record) => record.map(|record| Ok(self.convert_times(record))),
            Err(error) => {
                self.has_failed = true;
                Some(Err(error))
            }
        }
    }
}
