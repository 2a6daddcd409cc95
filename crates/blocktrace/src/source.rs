//! File of a trace, read as lines or as records of a binary format.

use crate::error::ReadError;
use crate::form::Form;
use crate::forms::block_layer::IssueStep;
use crate::forms::{HEADER_BYTES_MAX, LineMeaning, ParseContext, SrtParser};
use crate::lines::{ReadOutcome, TraceInput, trim_line};
use crate::own::{self, OwnFormatParser};
use crate::reader::ReadOptions;
use crate::sniff::{FormParser, detect_form};

/// File of a trace, with its parser.
pub(crate) struct TraceFile {
    pub(crate) name: String,
    pub(crate) input: TraceInput,
    pub(crate) parser: FormParser,
    /// Next event of the file and its time, if the trace has several files.
    pub(crate) next_event: Option<(u64, Vec<u8>)>,
    /// Number of consecutive empty lines up to now.
    empty_lines: u64,
}

/// Maximum number of consecutive empty lines. A compressed file of a few megabytes can hold
/// thousands of millions.
const EMPTY_LINES_MAX: u64 = 1 << 20;

/// Outcome of reading the next line or record of a file.
pub(crate) enum ReadStep {
    Line(LineMeaning),
    /// Truncation: the trace ends within a line or record.
    Truncated,
    End,
}

pub(crate) enum RecordOutcome {
    Complete,
    Truncated,
    End,
}

/// Returns the time of a blktrace event, in nanoseconds.
pub(crate) fn parse_event_time_ns(event: &[u8], source: &TraceFile) -> u64 {
    match &source.parser {
        FormParser::Blktrace(of) => of.event_time_ns(event),
        _ => 0,
    }
}

/// Makes the files of all CPUs begin requests at the same step: at Q if any of them has Q events.
pub(crate) fn align_issue_steps(sources: &mut [TraceFile]) {
    let begins_with_queue = |source: &TraceFile| match &source.parser {
        FormParser::Blktrace(of) => of.issue_step == IssueStep::Queue,
        _ => false,
    };
    if sources.iter().any(begins_with_queue) {
        for source in sources {
            if let FormParser::Blktrace(of) = &mut source.parser {
                of.issue_step = IssueStep::Queue;
            }
        }
    }
}

impl TraceFile {
    pub(crate) fn open(
        name: String,
        mut input: TraceInput,
        options: &ReadOptions,
    ) -> Result<(Form, Self), ReadError> {
        let failed = |source| ReadError::Input {
            name: name.clone(),
            source,
        };
        let head = input.peek_head().map_err(failed)?;
        let found = detect_form(head, options);
        let (form, parser) = found.map_err(|problem| ReadError::Form {
            name: name.clone(),
            problem,
        })?;
        Ok((
            form,
            Self {
                name,
                input,
                parser,
                next_event: None,
                empty_lines: 0,
            },
        ))
    }

    fn input_error(&self, source: std::io::Error) -> ReadError {
        ReadError::Input {
            name: self.name.clone(),
            source,
        }
    }

    fn record_error(&self, problem: String) -> ReadError {
        let (number, byte) = self.input.line_and_offset();
        ReadError::Record {
            name: self.name.clone(),
            what: match self.parser {
                FormParser::OwnFormat(_) => "block",
                FormParser::Blktrace(_) | FormParser::Vscsi(_) | FormParser::Srt(_) => "record",
                _ => "line",
            },
            number,
            byte,
            problem,
        }
    }

    pub(crate) fn next_step(
        &mut self,
        context: &mut ParseContext,
        partial: bool,
    ) -> Result<ReadStep, ReadError> {
        match self.parser {
            FormParser::OwnFormat(_) => self.read_own_block(context, partial),
            FormParser::Blktrace(_) | FormParser::Vscsi(_) | FormParser::Srt(_) => {
                match self.read_event(partial)? {
                    RecordOutcome::Complete => {}
                    RecordOutcome::Truncated => return Ok(ReadStep::Truncated),
                    RecordOutcome::End => return Ok(ReadStep::End),
                }
                let event = std::mem::take(self.input.last_piece_mut());
                let said = self.parse_event(&event, context);
                *self.input.last_piece_mut() = event;
                Ok(ReadStep::Line(said?))
            }
            _ => self.read_line(context, partial),
        }
    }

    fn read_own_block(
        &mut self,
        context: &mut ParseContext,
        partial: bool,
    ) -> Result<ReadStep, ReadError> {
        let FormParser::OwnFormat(mut own) = std::mem::replace(
            &mut self.parser,
            FormParser::OwnFormat(OwnFormatParser::default()),
        ) else {
            unreachable!("a block is of diskperf's own form");
        };
        let step = self.next_block(&mut own, context);
        self.parser = FormParser::OwnFormat(own);
        match step? {
            Ok(step) => Ok(step),
            Err(_) if partial => Ok(ReadStep::Truncated),
            Err(problem) => {
                Err(self.record_error(format!("{problem}; --partial reads the requests before it")))
            }
        }
    }

    /// Reads the next block of diskperf's own format. The inner error is that of a truncated or
    /// damaged trace.
    fn next_block(
        &mut self,
        own: &mut OwnFormatParser,
        context: &mut ParseContext,
    ) -> Result<Result<ReadStep, String>, ReadError> {
        let failed = |name: &str, source| ReadError::Input {
            name: name.to_owned(),
            source,
        };
        if !own.has_begun() {
            let read = self.input.read_piece(own::HEADER_BYTES, false);
            read.map_err(|error| failed(&self.name, error))?;
            self.input.restart_numbering();
            own.skip_header();
        }
        let read = self.input.read_piece(own::BLOCK_HEADER_BYTES, false);
        match read.map_err(|error| failed(&self.name, error))? {
            ReadOutcome::End if own.has_ended() => return Ok(Ok(ReadStep::End)),
            ReadOutcome::End => {
                return Ok(Err(
                    "the trace has no end: its recorder was stopped".to_owned()
                ));
            }
            ReadOutcome::Truncated => {
                return Ok(Err("the trace ends within this block".to_owned()));
            }
            ReadOutcome::Complete if own.has_ended() => {
                return Ok(Err("data follows the last block".to_owned()));
            }
            ReadOutcome::Complete => {}
        }
        let bytes = match own.payload_bytes(self.input.last_piece()) {
            Ok(bytes) => bytes,
            Err(problem) => return Ok(Err(problem)),
        };
        let read = self.input.read_piece(bytes, true);
        match read.map_err(|error| failed(&self.name, error))? {
            ReadOutcome::Complete => {}
            ReadOutcome::Truncated | ReadOutcome::End => {
                return Ok(Err("the trace ends within this block".to_owned()));
            }
        }
        if !OwnFormatParser::is_checksum_correct(self.input.last_piece()) {
            return Ok(Err("the block is damaged: its checksum differs".to_owned()));
        }
        let told = own.parse_block(self.input.last_piece(), context);
        told.map_err(|problem| self.record_error(problem))?;
        Ok(Ok(ReadStep::Line(LineMeaning::Heading)))
    }

    fn read_line(
        &mut self,
        context: &mut ParseContext,
        partial: bool,
    ) -> Result<ReadStep, ReadError> {
        let got = self
            .input
            .read_line()
            .map_err(|error| self.input_error(error))?;
        if matches!(got, ReadOutcome::End) {
            return Ok(ReadStep::End);
        }
        let line = trim_line(self.input.last_piece());
        if line.is_empty() {
            self.empty_lines += 1;
            return match self.empty_lines > EMPTY_LINES_MAX {
                true => Err(self.record_error(format!(
                    "more than {EMPTY_LINES_MAX} consecutive lines before this one are empty: the \
                     file is not a trace"
                ))),
                false => Ok(ReadStep::Line(LineMeaning::Heading)),
            };
        }
        self.empty_lines = 0;
        let said = self.parser.parse_line(line, context);
        match said.and_then(|said| context.validate(said)) {
            Ok(said) => Ok(ReadStep::Line(said)),
            Err(problem) => self.handle_unreadable(problem, &got, partial),
        }
    }

    /// Handles a line that does not fit the format. The last line of a trace may be truncated,
    /// either by a copy that stopped early or by the recorder, which then ends the line.
    fn handle_unreadable(
        &mut self,
        problem: String,
        got: &ReadOutcome,
        partial: bool,
    ) -> Result<ReadStep, ReadError> {
        let head = self.input.peek_head();
        let is_last = head.map(<[u8]>::is_empty);
        let is_last = is_last.map_err(|error| self.input_error(error))?;
        Err(self.record_error(match got {
            _ if is_last && partial => return Ok(ReadStep::Truncated),
            ReadOutcome::Truncated => format!(
                "the trace ends within this line: {problem}; --partial reads the requests before \
                 it"
            ),
            _ if is_last && self.input.line_and_offset().0 > 1 => {
                format!(
                    "{problem}; it is the last line, and --partial reads the requests before \
                it"
                )
            }
            _ if partial => {
                format!("{problem}; --partial can leave out only the last line of a trace")
            }
            _ => problem,
        }))
    }

    pub(crate) fn read_event(&mut self, partial: bool) -> Result<RecordOutcome, ReadError> {
        if matches!(self.parser, FormParser::Srt(None)) {
            self.read_header()?;
        }
        let (first, more): (usize, _) = match &self.parser {
            FormParser::Blktrace(of) => (of.event_bytes(), true),
            FormParser::Vscsi(of) => (of.record_bytes(), false),
            _ => (4, true),
        };
        let got = self.input.read_piece(first, false);
        match got.map_err(|error| self.input_error(error))? {
            ReadOutcome::End => return Ok(RecordOutcome::End),
            ReadOutcome::Truncated => return self.handle_truncation(partial),
            ReadOutcome::Complete => {}
        }
        if !more {
            return Ok(RecordOutcome::Complete);
        }
        let behind = match &self.parser {
            FormParser::Blktrace(of) => of.data_bytes(self.input.last_piece()),
            FormParser::Srt(Some(of)) => {
                let bytes = of.record_bytes(self.input.last_piece());
                bytes.map(|bytes| bytes - first)
            }
            _ => Ok(0),
        };
        let behind = behind.map_err(|problem| self.record_error(problem))?;
        if behind > 0 {
            let got = self.input.read_piece(behind, true);
            match got.map_err(|error| self.input_error(error))? {
                ReadOutcome::Complete => {}
                ReadOutcome::Truncated | ReadOutcome::End => {
                    return self.handle_truncation(partial);
                }
            }
        }
        Ok(RecordOutcome::Complete)
    }

    fn handle_truncation(&self, partial: bool) -> Result<RecordOutcome, ReadError> {
        match partial {
            true => Ok(RecordOutcome::Truncated),
            false => Err(self.record_error(
                "the trace ends within this record; --partial reads the requests before it"
                    .to_owned(),
            )),
        }
    }

    /// Reads the header of SRT: text up to a form feed.
    fn read_header(&mut self) -> Result<(), ReadError> {
        let header = self.input.peek_head().map(|head| {
            let end = head
                .iter()
                .take(HEADER_BYTES_MAX)
                .position(|byte| *byte == 0x0c);
            end.map(|end| (end, String::from_utf8_lossy(&head[..end]).into_owned()))
        });
        let Some((end, header)) = header.map_err(|error| self.input_error(error))? else {
            return Err(self.record_error(format!(
                "the header has no form feed at its end within {HEADER_BYTES_MAX} bytes"
            )));
        };
        let read = self.input.read_piece(end + 1, false);
        read.map_err(|error| self.input_error(error))?;
        self.parser = FormParser::Srt(Some(SrtParser::from_header(&header)));
        Ok(())
    }

    pub(crate) fn parse_event(
        &self,
        event: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, ReadError> {
        let said = match &self.parser {
            FormParser::Blktrace(of) => of.parse_event(event, context),
            FormParser::Vscsi(of) => of.parse_record(event, context),
            FormParser::Srt(Some(of)) => of.parse_record(event, context),
            _ => Ok(LineMeaning::Heading),
        };
        let said = said.and_then(|said| context.validate(said));
        said.map_err(|problem| self.record_error(problem))
    }
}
