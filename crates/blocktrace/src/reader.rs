//! A trace, request by request.

use crate::error::ReadError;
use crate::form::{Columns, Form, TimeUnit};
use crate::forms::{Context, LONGEST_HEADER, Said, Srt};
use crate::lines::{Got, Input, trimmed};
use crate::own::{self, About, Own, Part};
use crate::record::Record;
use crate::sniff::{Parser, sniff};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::Read;

/// How a trace is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Its form; found by its beginning if absent.
    pub form: Option<Form>,
    /// What its columns are, of comma-separated values.
    pub columns: Option<Columns>,
    /// The unit of its times, of a form that says none.
    pub time_unit: Option<TimeUnit>,
    /// Whether a trace that is cut off is read as far as it goes.
    pub partial: bool,
}

/// What a reader of a trace should know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notices {
    /// Lines that are no requests, by the reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Requests whose time is before that of the one before them.
    pub out_of_order: u64,
    /// By how much at the most, in nanoseconds.
    pub farthest_back_ns: u64,
    /// Requests whose completion is not in the trace.
    pub without_completion: u64,
    /// Completions whose issue is not in the trace.
    pub without_issue: u64,
    /// The trace is cut off, and was read as far as it goes.
    pub is_cut: bool,
}

/// Requests that are sorted by time, of forms that have them slightly out of order.
const WINDOW: usize = 1024;

/// A trace while it is read; it is an iterator over [`Record`]s in the order of issue, whose
/// times count from the first.
pub struct Reader {
    form: Form,
    sources: Vec<Source>,
    context: Context,
    partial: bool,
    /// Records that are sorted by time: time, number in the trace.
    window: BinaryHeap<Reverse<(u64, u64)>>,
    /// Those records, by number.
    held: VecDeque<Option<Record>>,
    first_held: u64,
    window_length: usize,
    is_over: bool,
    has_failed: bool,
    /// The time of the first record, which is zero for all.
    begins_ns: Option<u64>,
    last_ns: u64,
    notices: Notices,
}

/// A file of a trace.
struct Source {
    name: String,
    input: Input,
    parser: Parser,
    /// Of several files, the next event, and when it was.
    next: Option<(u64, Vec<u8>)>,
}

impl Reader {
    /// Opens a trace that is called `name` in messages.
    ///
    /// # Errors
    ///
    /// An input that fails, or whose form cannot be told.
    pub fn open(
        name: &str,
        input: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        Self::open_all(vec![(name.to_owned(), input)], options)
    }

    /// Opens a trace of several files: those of blktrace, one of each processor.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]; several files of another form.
    ///
    /// # Panics
    ///
    /// Without a file.
    pub fn open_all(
        files: Vec<(String, Box<dyn Read + Send>)>,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        let several = files.len() > 1;
        let mut sources = Vec::new();
        let mut form = None;
        for (name, input) in files {
            let (found, source) = Source::open(name, input, options)?;
            if several && found != Form::Blktrace {
                return Err(ReadError::Form {
                    name: source.name,
                    problem: format!(
                        "it is of the form {found}; of several files only those of blktrace, one of each processor, are one trace"
                    ),
                });
            }
            form = Some(found);
            sources.push(source);
        }
        let form = form.expect("a trace has a file");
        let mut reader = Self {
            form,
            sources,
            context: Context::default(),
            partial: options.partial,
            window: BinaryHeap::new(),
            held: VecDeque::new(),
            first_held: 0,
            window_length: match form {
                Form::Msr | Form::Systor17 => WINDOW,
                _ => 0,
            },
            is_over: false,
            has_failed: false,
            begins_ns: None,
            last_ns: 0,
            notices: Notices::default(),
        };
        if several {
            for number in 0..reader.sources.len() {
                reader.next_event(number)?;
            }
        }
        Ok(reader)
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Names of its devices that were seen so far, by their number.
    pub fn devices(&self) -> &[String] {
        self.context.devices()
    }

    /// What a trace of diskperf's own form says of itself, as far as it is read.
    pub fn about(&self) -> &[About] {
        &self.context.said.about
    }

    /// The parts of such a trace, as far as it is read.
    pub fn parts(&self) -> Vec<Part> {
        self.context.said.parts(self.begins_ns.unwrap_or(0))
    }

    /// The number of the part, from 0, in which a record was issued that was told last.
    pub fn part_of(&self, record: &Record) -> Option<usize> {
        let begins_ns = self.begins_ns.unwrap_or(0);
        let at_ns = record.issued_ns.saturating_add(begins_ns);
        self.context.said.part_at(at_ns)
    }

    /// The time of the first request on the trace's own clock, from which all times count.
    pub fn begins_ns(&self) -> Option<u64> {
        self.begins_ns
    }

    /// What was seen so far.
    pub fn notices(&self) -> Notices {
        Notices {
            dropped: self.context.dropped.clone(),
            without_completion: self.context.order.without_completion,
            without_issue: self.context.order.without_issue,
            ..self.notices.clone()
        }
    }

    /// The next record as the form has it; `None` at the end.
    fn next_said(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            if let Some(record) = self.context.order.next(self.is_over) {
                return Ok(Some(record));
            }
            if self.is_over {
                return Ok(None);
            }
            let said = match self.sources.len() {
                1 => self.sources[0].step(&mut self.context, self.partial)?,
                _ => self.merged_step()?,
            };
            match said {
                Step::Said(Said::Request(record)) => return Ok(Some(record)),
                Step::Said(Said::Other) => {}
                Step::Cut => {
                    self.notices.is_cut = true;
                    self.is_over = true;
                }
                Step::End => self.is_over = true,
            }
        }
    }

    /// The earliest event of all files.
    fn merged_step(&mut self) -> Result<Step, ReadError> {
        let times = self.sources.iter().enumerate();
        let earliest = times
            .filter_map(|(number, of)| Some((of.next.as_ref()?.0, number)))
            .min();
        let Some((_, number)) = earliest else {
            return Ok(Step::End);
        };
        let source = &mut self.sources[number];
        let (_, event) = source.next.take().expect("the earliest event");
        let said = source.event(&event, &mut self.context)?;
        self.next_event(number)?;
        Ok(Step::Said(said))
    }

    fn next_event(&mut self, number: usize) -> Result<(), ReadError> {
        let source = &mut self.sources[number];
        match source.read_event(self.partial)? {
            Read1::Whole => {
                let event = source.input.last().to_vec();
                let at = u64_of(&event, source);
                source.next = Some((at, event));
            }
            Read1::Cut => self.notices.is_cut = true,
            Read1::End => {}
        }
        Ok(())
    }

    /// Times count from the first; what is out of order is counted.
    fn finish(&mut self, mut record: Record) -> Record {
        let begins = *self.begins_ns.get_or_insert(record.issued_ns);
        let issued = record.issued_ns.saturating_sub(begins);
        record.completed_ns = record
            .response_ns()
            .map(|response| issued.saturating_add(response));
        record.issued_ns = issued;
        if issued < self.last_ns {
            self.notices.out_of_order += 1;
            let back = self.last_ns - issued;
            self.notices.farthest_back_ns = self.notices.farthest_back_ns.max(back);
        }
        self.last_ns = self.last_ns.max(issued);
        record
    }

    fn next_sorted(&mut self) -> Result<Option<Record>, ReadError> {
        if self.window_length == 0 {
            return self.next_said();
        }
        while self.window.len() < self.window_length {
            let Some(record) = self.next_said()? else {
                break;
            };
            let number = self.first_held + self.held.len() as u64;
            self.window.push(Reverse((record.issued_ns, number)));
            self.held.push_back(Some(record));
        }
        let Some(Reverse((_, number))) = self.window.pop() else {
            return Ok(None);
        };
        let record = self.held[(number - self.first_held) as usize].take();
        while self.held.front().is_some_and(Option::is_none) {
            self.held.pop_front();
            self.first_held += 1;
        }
        Ok(record)
    }
}

impl Iterator for Reader {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        match self.next_sorted() {
            Ok(record) => record.map(|record| Ok(self.finish(record))),
            Err(error) => {
                self.has_failed = true;
                Some(Err(error))
            }
        }
    }
}

enum Step {
    Said(Said),
    /// The trace is cut off here.
    Cut,
    End,
}

/// What was read of a binary form.
enum Read1 {
    Whole,
    Cut,
    End,
}

/// When an event of blktrace was.
fn u64_of(event: &[u8], source: &Source) -> u64 {
    match &source.parser {
        Parser::Blktrace(of) => of.time(event),
        _ => 0,
    }
}

impl Source {
    fn open(
        name: String,
        input: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<(Form, Self), ReadError> {
        let failed = |source| ReadError::Input {
            name: name.clone(),
            source,
        };
        let mut input = Input::open(input).map_err(failed)?;
        let head = input.head().map_err(failed)?;
        let found = sniff(head, options);
        let (form, parser) = found.map_err(|problem| ReadError::Form {
            name: name.clone(),
            problem,
        })?;
        let next = None;
        Ok((
            form,
            Self {
                name,
                input,
                parser,
                next,
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

    /// The next line or record.
    fn step(&mut self, context: &mut Context, partial: bool) -> Result<Step, ReadError> {
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

    /// The next block of diskperf's own form.
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

    /// The same; the inner error is of a trace that is cut off or damaged.
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
        Ok(Ok(Step::Said(Said::Other)))
    }

    fn line(&mut self, context: &mut Context, partial: bool) -> Result<Step, ReadError> {
        let got = self.input.read_line().map_err(|error| self.failed(error))?;
        if matches!(got, Got::End) {
            return Ok(Step::End);
        }
        let line = trimmed(self.input.last());
        if line.is_empty() {
            return Ok(Step::Said(Said::Other));
        }
        match self.parser.line(line, context) {
            Ok(said) => Ok(Step::Said(said)),
            Err(_) if partial && matches!(got, Got::Cut) => Ok(Step::Cut),
            Err(problem) if matches!(got, Got::Cut) => Err(self.refused(format!(
                "the trace ends inside this line: {problem}; --partial reads what is before it"
            ))),
            Err(problem) => Err(self.refused(problem)),
        }
    }

    /// Reads the next record of a binary form.
    fn read_event(&mut self, partial: bool) -> Result<Read1, ReadError> {
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

    /// What a record of a binary form says.
    fn event(&self, event: &[u8], context: &mut Context) -> Result<Said, ReadError> {
        let said = match &self.parser {
            Parser::Blktrace(of) => of.event(event, context),
            Parser::Vscsi(of) => of.record(event, context),
            Parser::Srt(Some(of)) => of.record(event, context),
            _ => Ok(Said::Other),
        };
        said.map_err(|problem| self.refused(problem))
    }
}
