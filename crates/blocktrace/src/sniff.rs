//! Detection of a trace's format from its beginning. An ambiguous beginning is refused.

use crate::form::{Form, TimeUnit};
use crate::forms::block_layer::{IssueStep, MESSAGE_RECORD, SUMMARY_RECORD};
use crate::forms::{
    BiosnoopParser, BlkparseParser, BlktraceParser, CsvLineParser, CsvParser, DiskSimParser,
    FtraceParser, IologParser, LineMeaning, ParseContext, SrtParser, ThinkPosition, VscsiCsvParser,
    VscsiParser, srt_magic,
};
use crate::own::OwnFormatParser;
use crate::reader::ReadOptions;

/// Parser of a trace, by format.
#[derive(Clone, Debug)]
pub(crate) enum FormParser {
    Simple(CsvLineParser),
    Fio(IologParser),
    Blkparse(BlkparseParser),
    Ftrace(FtraceParser),
    Biosnoop(BiosnoopParser),
    VscsiCsv(VscsiCsvParser),
    DiskSim(DiskSimParser),
    Csv(CsvParser),
    Blktrace(BlktraceParser),
    Vscsi(VscsiParser),
    OwnFormat(OwnFormatParser),
    /// Parser of an SRT trace. `None` until the header of the trace was read.
    Srt(Option<SrtParser>),
}

impl FormParser {
    #[inline]
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        match self {
            Self::Simple(of) => of.parse_line(line, context),
            Self::Fio(of) => of.parse_line(line, context),
            Self::Blkparse(of) => of.parse_line(line, context),
            Self::Ftrace(of) => of.parse_line(line, context),
            Self::Biosnoop(of) => of.parse_line(line, context),
            Self::VscsiCsv(of) => of.parse_line(line, context),
            Self::DiskSim(of) => of.parse_line(line, context),
            Self::Csv(of) => of.parse_line(line, context),
            Self::OwnFormat(_) | Self::Blktrace(_) | Self::Vscsi(_) | Self::Srt(_) => {
                unreachable!("a binary form has no lines")
            }
        }
    }
}

/// Number of lines at the beginning that are tried.
const TRIED_LINES_MAX: usize = 200;

/// Detects the format of a trace, and returns it with its parser.
///
/// # Errors
///
/// Fails with a description of the beginning, and of the option that selects a format.
pub(crate) fn detect_form(
    head: &[u8],
    options: &ReadOptions,
) -> Result<(Form, FormParser), String> {
    if head.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some(form) = options.form {
        return Ok((form, new_parser(form, head, options)?));
    }
    if options.columns.is_some() || CsvParser::parse_heading(first_line(head)).is_some() {
        return Ok((Form::Csv, new_parser(Form::Csv, head, options)?));
    }
    if let Some(found) = detect_binary(head)? {
        return Ok(found);
    }
    let lines = sample_lines(head);
    let fitting = |lines: &[SampleLine]| -> Vec<Form> {
        let fits = |form: &Form| fits_form(*form, head, lines, options);
        text_forms().filter(fits).collect()
    };
    let mut found = fitting(&lines);
    // The last line of a trace may be cut off.
    if let [before @ .., _] = lines.as_slice()
        && (1..TRIED_LINES_MAX - 1).contains(&before.len())
        && found.is_empty()
    {
        found = fitting(before);
    }
    match found.as_slice() {
        [form] => Ok((*form, new_parser(*form, head, options)?)),
        [] => Err(unknown_form_message(head, &lines, options)),
        several => {
            let names: Vec<&str> = several.iter().map(|form| form.name()).collect();
            Err(format!(
                "its beginning fits several forms: {}; choose one with --form",
                names.join(", ")
            ))
        }
    }
}

/// Returns the first line that is not empty, as far as it is buffered.
fn first_line(head: &[u8]) -> &[u8] {
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

fn detect_binary(head: &[u8]) -> Result<Option<(Form, FormParser)>, String> {
    if let Some(found) = OwnFormatParser::from_head(head) {
        return Ok(Some((Form::Diskperf, FormParser::OwnFormat(found?))));
    }
    if let Some(found) = BlktraceParser::from_head(head) {
        return Ok(Some((Form::Blktrace, FormParser::Blktrace(found?))));
    }
    if head.starts_with(srt_magic()) {
        return Ok(Some((Form::Srt, FormParser::Srt(None))));
    }
    let is_text = !head[..head.len().min(4096)].contains(&0);
    match VscsiParser::from_head(head).filter(|_| !is_text) {
        Some(of) => Ok(Some((Form::VscsiBinary, FormParser::Vscsi(of)))),
        None if is_text => Ok(None),
        None => Err(
            "it is binary, and none of the binary forms: blktrace, vscsiStats, SRT and diskperf's \
             own"
            .to_owned(),
        ),
    }
}

#[derive(Clone, Copy)]
struct SampleLine<'h> {
    number: usize,
    text: &'h [u8],
}

/// Returns the complete lines of the beginning that are not empty.
fn sample_lines(head: &[u8]) -> Vec<SampleLine<'_>> {
    let mut all: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    // The last may go on.
    if all.len() > 1 {
        all.pop();
    }
    all.truncate(TRIED_LINES_MAX);
    let numbered = all.into_iter().zip(1..).map(|(text, number)| SampleLine {
        number,
        text: text.trim_ascii_end(),
    });
    numbered.filter(|line| !line.text.is_empty()).collect()
}

/// Describes why no format fits: because of a single line, or at all.
fn unknown_form_message(head: &[u8], lines: &[SampleLine], options: &ReadOptions) -> String {
    const SHOWN_BYTES_MAX: usize = 60;
    let first = lines.first().map(|line| line.text).unwrap_or_default();
    let shown = String::from_utf8_lossy(&first[..first.len().min(SHOWN_BYTES_MAX)]);
    let whole = lines.iter().all(|line| {
        let (words, count) = crate::forms::split_words::<5>(line.text);
        count == 5
            && words
                .iter()
                .all(|word| crate::number::parse_decimal(word).is_some())
    });
    if whole && !lines.is_empty() {
        return "five whole numbers per line fit both DiskSim and MQSim, and the unit of time is \
        unknown: give --form mqsim --time-unit ns (or us, ps), or --form disksim"
            .to_owned();
    }
    if first.is_empty() {
        return "its first lines are empty: give --form NAME if a trace follows".to_owned();
    }
    nearest_form_message(head, lines, options).unwrap_or_else(|| {
        format!(
            "no form begins with `{}`; give --form NAME, or for comma-separated values --columns \
             such as time_us=1,op=3,offset=4,length=5",
            shown.escape_debug()
        )
    })
}

/// Names the format of most lines and the error of the first line that does not fit. Returns `None`
/// if there is no such format.
fn nearest_form_message(
    head: &[u8],
    lines: &[SampleLine],
    options: &ReadOptions,
) -> Option<String> {
    let tried = text_forms().filter_map(|form| {
        let mut parser = new_parser(form, head, options).ok()?;
        let fit = FormFit::try_lines(&mut parser, lines);
        let takes_most = 2 * fit.accepted_lines >= lines.len() && fit.has_requests;
        let is_heading = |line: &SampleLine| line.text.starts_with(b"TIME(");
        let is_table = form == Form::Biosnoop && lines.iter().any(is_heading);
        (takes_most || is_table).then_some((form, fit))
    });
    let (form, fit) = tried.max_by_key(|(_, fit)| fit.accepted_lines)?;
    let (line, problem) = fit.first_rejected?;
    Some(format!(
        "it fits the form {form} except for line {line}: {problem}; correct or remove that line, \
         or give --form NAME if the form is another"
    ))
}

/// Iterates over the text formats that a beginning can identify.
fn text_forms() -> impl Iterator<Item = Form> {
    let all = Form::ALL.into_iter();
    all.filter(|form| !form.is_binary() && form.has_signature())
}

#[derive(Default)]
struct FormFit {
    accepted_lines: usize,
    /// Number of accepted lines that are left out.
    dropped_lines: usize,
    /// Number of left-out lines that are not kernel events.
    no_event_lines: usize,
    /// Whether the lines contain a request or a completion.
    has_requests: bool,
    /// Number of the first line that the format rejects, and the error.
    first_rejected: Option<(usize, String)>,
}

impl FormFit {
    fn try_lines(parser: &mut FormParser, lines: &[SampleLine]) -> Self {
        let mut context = ParseContext::default();
        let mut fit = Self::default();
        for line in lines {
            match parser.parse_line(line.text, &mut context) {
                Ok(said) => {
                    fit.accepted_lines += 1;
                    fit.has_requests |=
                        matches!(said, LineMeaning::Request(_) | LineMeaning::RequestIssue);
                }
                Err(problem) => {
                    fit.first_rejected.get_or_insert((line.number, problem));
                }
            }
        }
        fit.dropped_lines = context.dropped_counts.values().sum::<u64>() as usize;
        let no_events = [SUMMARY_RECORD, MESSAGE_RECORD];
        let no_events = no_events
            .iter()
            .filter_map(|why| context.dropped_counts.get(why));
        fit.no_event_lines = no_events.sum::<u64>() as usize;
        fit.has_requests |= context.open_requests.without_issue_count > 0;
        fit
    }
}

/// Reports whether all lines of the beginning fit a format and contain a request.
fn fits_form(form: Form, head: &[u8], lines: &[SampleLine], options: &ReadOptions) -> bool {
    let first = lines.first().map(|line| line.text).unwrap_or_default();
    let begins = match form {
        Form::FioIolog2 => return first.starts_with(b"fio version 2"),
        Form::FioIolog3 => return first.starts_with(b"fio version 3"),
        // Of five columns of whole numbers nobody can tell the unit.
        Form::DiskSim => first.contains(&b'.'),
        Form::MqSim => options.time_unit.is_some() && !first.contains(&b'.'),
        _ => true,
    };
    let Ok(mut parser) = new_parser(form, head, options) else {
        return false;
    };
    let fit = FormFit::try_lines(&mut parser, lines);
    // What the kernel and its tools print is theirs, whatever of it is of requests.
    let is_known = match form {
        Form::Ftrace => {
            fit.has_requests || fit.dropped_lines > 0 || first.starts_with(b"# tracer: ")
        }
        Form::Blkparse => fit.no_event_lines < lines.len(),
        Form::Biosnoop => fit.accepted_lines > 0,
        _ => fit.has_requests && fit.dropped_lines < lines.len(),
    };
    begins && is_known && fit.first_rejected.is_none()
}

/// Creates the parser of a format.
///
/// # Errors
///
/// Fails if a required option is missing, or if the bytes do not fit the format.
pub(crate) fn new_parser(
    form: Form,
    head: &[u8],
    options: &ReadOptions,
) -> Result<FormParser, String> {
    let unit = options.time_unit;
    Ok(match form {
        Form::Msr | Form::Spc | Form::Systor17 | Form::Alibaba | Form::Tencent => {
            FormParser::Simple(CsvLineParser::new(form))
        }
        Form::FioIolog2 => FormParser::Fio(IologParser::new(false)),
        Form::FioIolog3 => FormParser::Fio(IologParser::new(true)),
        Form::Blkparse => FormParser::Blkparse(BlkparseParser {
            issue_step: match has_queue_events(head) {
                true => IssueStep::Queue,
                false => IssueStep::Issue,
            },
        }),
        Form::Ftrace => FormParser::Ftrace(FtraceParser),
        Form::Biosnoop => FormParser::Biosnoop(BiosnoopParser::default()),
        Form::VscsiCsv => FormParser::VscsiCsv(VscsiCsvParser),
        Form::DiskSim => FormParser::DiskSim(DiskSimParser::OpenTrace(
            unit.unwrap_or(TimeUnit::Milliseconds),
        )),
        Form::MqSim => FormParser::DiskSim(DiskSimParser::OpenTrace(unit.ok_or(
            "a trace of MQSim does not contain its unit of time: give --time-unit ns, us or ps",
        )?)),
        Form::Validate => {
            FormParser::DiskSim(DiskSimParser::new_validate(ThinkPosition::AfterCompletion))
        }
        Form::ValidateBefore => {
            FormParser::DiskSim(DiskSimParser::new_validate(ThinkPosition::BeforeIssue))
        }
        Form::Csv => {
            let first = first_line(head);
            let columns = options
                .columns
                .clone()
                .or_else(|| CsvParser::parse_heading(first));
            let columns = columns.ok_or(
                "comma-separated values need the meaning of their columns: give --columns such as \
                 time_us=1,op=3,offset=4,length=5",
            )?;
            FormParser::Csv(CsvParser::new(&columns, first)?)
        }
        Form::Diskperf => match OwnFormatParser::from_head(head) {
            Some(of) => FormParser::OwnFormat(of?),
            None => {
                return Err("it does not begin with the header of diskperf's own form".to_owned());
            }
        },
        Form::Blktrace => match BlktraceParser::from_head(head) {
            Some(of) => FormParser::Blktrace(of?),
            None => return Err("it does not begin with an event of blktrace".to_owned()),
        },
        Form::VscsiBinary => match VscsiParser::from_head(head) {
            Some(of) => FormParser::Vscsi(of),
            None => return Err("its first records fit neither version of vscsiStats".to_owned()),
        },
        Form::Srt => match head.starts_with(srt_magic()) {
            true => FormParser::Srt(None),
            false => return Err("it does not begin with $$TR_IOREC-1.3".to_owned()),
        },
    })
}

/// Reports whether blkparse printed the queueing of requests (Q).
fn has_queue_events(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let (words, count) = crate::forms::split_words::<7>(line);
        count >= 7 && words[5] == b"Q"
    })
}
