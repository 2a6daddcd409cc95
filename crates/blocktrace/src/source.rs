//! File of a trace, read as lines or as records of a binary format.

use crate::error::ReadError;
use crate::form::Form;
use crate::forms::block_layer::Begin;
use crate::forms::{Context, LONGEST_HEADER, Said, Srt};
use crate::lines::{Got, Input, trimmed};
use crate::own::{self, Own};
use crate::reader::ReadOptions;
use crate::sniff::{Parser, sniff};

/// File of a trace, with its parser.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) input: Input,
    pub(crate) parser: Parser,
    /// Next event of the file and its time, if the trace has several files.
    pub(crate) next: Option<(u64, Vec<u8>)>,
    /// Number of consecutive empty lines up to now.
    empty_lines: u64,
}

/// Maximum number of consecutive empty lines. A compressed file of a few megabytes can hold
/// thousands of millions.
const EMPTY_LINES_MAX: u64 = 1 << 20;

/// Outcome of reading the next line or record of a file.
pub(crate) enum Step {
    Said(Said),
    /// Truncation: the trace ends within a line or record.
    Cut,
    End,
}

/// Outcome of reading a record of a binary format.
pub(crate) enum Read1 {
    Whole,
    Cut,
    End,
}

/// Returns the time of a blktrace event, in nanoseconds.
pub(crate) fn event_ns(event: &[u8], source: &Source) -> u64 {
    match &source.parser {
        Parser::Blktrace(of) => of.time(event),
        _ => 0,
    }
}

/// Makes the files of all CPUs begin requests at the same step: at Q if any of them has Q events.
pub(crate) fn begin_alike(sources: &mut [Source]) {
    let begins_with_queue = |source: &Source| match &source.parser {
        Parser::Blktrace(of) => of.begin == Begin::Queue,
        _ => false,
    };
    if sources.iter().any(begins_with_queue) {
        for source in sources {
            if let Parser::Blktrace(of) = &mut source.parser {
                of.begin = Begin::Queue;
            }
        }
    }
}

impl Source {
    /// Opens a file and detects its format from its beginning.
    pub(crate) fn open(
        name: String,
        mut input: Input,
        options: &ReadOptions,
    ) -> Result<(Form, Self), ReadError> {
        let failed = |source| ReadError::Input {
            name: name.clone(),
            source,
        };
        let head = input.head().map_err(failed)?;
        let found = sniff(head, options);
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
                next: None,
                empty_lines: 0,
            },
        ))
    }

    fn failed(&self, source: std::io::Error) -> ReadError {
        ReadError::Input {
            name: self.name.clone(),
            source,
        }
    }

    fn refused(&self, problem: String) -> ReadError {
        let (number, byte) = self.input.place();
        ReadError::Record {
            name: self.name.clone(),
            what: match self.parser {
                Parser::Own(_) => "block",
                Parser::Blktrace(_) | Parser::Vscsi(_) | Parser::Srt(_) => "record",
                _ => "line",
            },
            number,
            byte,
            problem,
        }
    }

    /// Reads the next line or record of the trace file.
    pub(crate) fn step(&mut self, context: &mut Context, partial: bool) -> Result<Step, ReadError> {
        match self.parser {
            Parser::Own(_) => self.own_block(context, partial),
            Parser::Blktrace(_) | Parser::Vscsi(_) | Parser::Srt(_) => {
                match self.read_event(partial)? {
                    Read1::Whole => {}
                    Read1::Cut => return Ok(Step::Cut),
                    Read1::End => return Ok(Step::End),
                }
                let event = std::mem::take(self.input.last_mut());
                let said = self.event(&event, context);
                *self.input.last_mut() = event;
                Ok(Step::Said(said?))
            }
            _ => self.line(context, partial),
        }
    }

    /// Reads the next block of diskperf's own format.
    fn own_block(&mut self, context: &mut Context, partial: bool) -> Result<Step, ReadError> {
        let Parser::Own(mut own) = std::mem::replace(&mut self.parser, Parser::Own(Own::default()))
        else {
            unreachable!("a block is of diskperf's own form");
        };
        let step = self.next_block(&mut own, context);
        self.parser = Parser::Own(own);
        match step? {
            Ok(step) => Ok(step),
            Err(_) if partial => Ok(Step::Cut),
            Err(problem) => {
                Err(self.refused(format!("{problem}; --partial reads the requests before it")))
            }
        }
    }

    /// Reads the next block of diskperf's own format. The inner error is that of a truncated or
    /// damaged trace.
    fn next_block(
        &mut self,
        own: &mut Own,
        context: &mut Context,
    ) -> Result<Result<Step, String>, ReadError> {
        let failed = |name: &str, source| ReadError::Input {
            name: name.to_owned(),
            source,
        };
        if !own.has_begun() {
            let read = self.input.read_piece(own::HEADER_BYTES, false);
            read.map_err(|error| failed(&self.name, error))?;
            self.input.begin_to_count();
            own.begin();
        }
        let read = self.input.read_piece(own::BLOCK_HEADER_BYTES, false);
        match read.map_err(|error| failed(&self.name, error))? {
            Got::End if own.has_ended() => return Ok(Ok(Step::End)),
            Got::End => {
                return Ok(Err(
                    "the trace has no end: who recorded it was stopped".to_owned()
                ));
            }
            Got::Cut => return Ok(Err("the trace ends inside this block".to_owned())),
            Got::Whole if own.has_ended() => {
                return Ok(Err("something follows the last block".to_owned()));
            }
            Got::Whole => {}
        }
        let bytes = match own.payload_bytes(self.input.last()) {
            Ok(bytes) => bytes,
            Err(problem) => return Ok(Err(problem)),
        };
        let read = self.input.read_piece(bytes, true);
        match read.map_err(|error| failed(&self.name, error))? {
            Got::Whole => {}
            Got::Cut | Got::End => return Ok(Err("the trace ends inside this block".to_owned())),
        }
        if !Own::is_whole(self.input.last()) {
            return Ok(Err("the block is damaged: its checksum differs".to_owned()));
        }
        let told = own.block(self.input.last(), context);
        told.map_err(|problem| self.refused(problem))?;
        Ok(Ok(Step::Said(Said::Aside)))
    }

    fn line(&mut self, context: &mut Context, partial: bool) -> Result<Step, ReadError> {
        let got = self.input.read_line().map_err(|error| self.failed(error))?;
        if matches!(got, Got::End) {
            return Ok(Step::End);
        }
        let line = trimmed(self.input.last());
        if line.is_empty() {
            self.empty_lines += 1;
            return match self.empty_lines > EMPTY_LINES_MAX {
                true => Err(self.refused(format!(
                    "more than {EMPTY_LINES_MAX} lines before this one are empty, one after the other: this is no trace"
                ))),
                false => Ok(Step::Said(Said::Aside)),
            };
        }
        self.empty_lines = 0;
        let said = self.parser.line(line, context);
        match said.and_then(|said| context.validate(said)) {
            Ok(said) => Ok(Step::Said(said)),
            Err(problem) => self.unreadable(problem, &got, partial),
        }
    }

    /// Handles a line that does not fit the format. The last line of a trace may be truncated,
    /// either by a copy that stopped early or by the recorder, which then ends the line.
    fn unreadable(&mut self, problem: String, got: &Got, partial: bool) -> Result<Step, ReadError> {
        let head = self.input.head();
        let is_last = head.map(<[u8]>::is_empty);
        let is_last = is_last.map_err(|error| self.failed(error))?;
        Err(self.refused(match got {
            _ if is_last && partial => return Ok(Step::Cut),
            Got::Cut => format!(
                "the trace ends inside this line: {problem}; --partial reads what is before it"
            ),
            _ if is_last && self.input.place().0 > 1 => {
                format!("{problem}; it is the last line, and --partial reads what is before it")
            }
            _ if partial => {
                format!("{problem}; --partial leaves out no line but the last of a trace")
            }
            _ => problem,
        }))
    }

    /// Reads the next record of a binary format.
    pub(crate) fn read_event(&mut self, partial: bool) -> Result<Read1, ReadError> {
        if matches!(self.parser, Parser::Srt(None)) {
            self.read_header()?;
        }
        let (first, more): (usize, _) = match &self.parser {
            Parser::Blktrace(of) => (of.event_bytes(), true),
            Parser::Vscsi(of) => (of.record_bytes(), false),
            _ => (4, true),
        };
        let got = self.input.read_piece(first, false);
        match got.map_err(|error| self.failed(error))? {
            Got::End => return Ok(Read1::End),
            Got::Cut => return self.cut(partial),
            Got::Whole => {}
        }
        if !more {
            return Ok(Read1::Whole);
        }
        let behind = match &self.parser {
            Parser::Blktrace(of) => of.data_bytes(self.input.last()),
            Parser::Srt(Some(of)) => {
                let bytes = of.record_bytes(self.input.last());
                bytes.map(|bytes| bytes - first)
            }
            _ => Ok(0),
        };
        let behind = behind.map_err(|problem| self.refused(problem))?;
        if behind > 0 {
            let got = self.input.read_piece(behind, true);
            match got.map_err(|error| self.failed(error))? {
                Got::Whole => {}
                Got::Cut | Got::End => return self.cut(partial),
            }
        }
        Ok(Read1::Whole)
    }

    fn cut(&self, partial: bool) -> Result<Read1, ReadError> {
        match partial {
            true => Ok(Read1::Cut),
            false => Err(self.refused(
                "the trace ends inside this record; --partial reads what is before it".to_owned(),
            )),
        }
    }

    /// Reads the header of SRT: text up to a form feed.
    fn read_header(&mut self) -> Result<(), ReadError> {
        let header = self.input.head().map(|head| {
            let end = head
                .iter()
                .take(LONGEST_HEADER)
                .position(|byte| *byte == 0x0c);
            end.map(|end| (end, String::from_utf8_lossy(&head[..end]).into_owned()))
        });
        let Some((end, header)) = header.map_err(|error| self.failed(error))? else {
            return Err(self.refused(format!(
                "no form feed ends its header within {LONGEST_HEADER} bytes"
            )));
        };
        let read = self.input.read_piece(end + 1, false);
        read.map_err(|error| self.failed(error))?;
        self.parser = Parser::Srt(Some(Srt::of(&header)));
        Ok(())
    }

    /// Parses a record of a binary format.
    pub(crate) fn event(&self, event: &[u8], context: &mut Context) -> Result<Said, ReadError> {
        let said = match &self.parser {
            Parser::Blktrace(of) => of.event(event, context),
            Parser::Vscsi(of) => of.record(event, context),
            Parser::Srt(Some(of)) => of.record(event, context),
            _ => Ok(Said::Aside),
        };
        let said = said.and_then(|said| context.validate(said));
        said.map_err(|problem| self.refused(problem))
    }
}
