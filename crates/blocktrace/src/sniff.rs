//! Detection of a trace's format from its beginning. An ambiguous beginning is refused.

use crate::form::{Form, TimeUnit};
use crate::forms::block_layer::{Begin, NO_EVENT, NO_TEXT_OF_BLKPARSE};
use crate::forms::{
    Biosnoop, Blkparse, Blktrace, Context, Csv, DiskSim, FioIolog, Ftrace, Pause, Said, Simple,
    Srt, Vscsi, VscsiCsv, srt_magic,
};
use crate::own::Own;
use crate::reader::ReadOptions;

/// Parser of a trace, by format.
#[derive(Clone, Debug)]
pub(crate) enum Parser {
    Simple(Simple),
    Fio(FioIolog),
    Blkparse(Blkparse),
    Ftrace(Ftrace),
    Biosnoop(Biosnoop),
    VscsiCsv(VscsiCsv),
    DiskSim(DiskSim),
    Csv(Csv),
    Blktrace(Blktrace),
    Vscsi(Vscsi),
    Own(Own),
    /// Parser of an SRT trace. `None` until the header of the trace was read.
    Srt(Option<Srt>),
}

impl Parser {
    /// Parses a line of a text format.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        match self {
            Self::Simple(of) => of.line(line, context),
            Self::Fio(of) => of.line(line, context),
            Self::Blkparse(of) => of.line(line, context),
            Self::Ftrace(of) => of.line(line, context),
            Self::Biosnoop(of) => of.line(line, context),
            Self::VscsiCsv(of) => of.line(line, context),
            Self::DiskSim(of) => of.line(line, context),
            Self::Csv(of) => of.line(line, context),
            Self::Own(_) | Self::Blktrace(_) | Self::Vscsi(_) | Self::Srt(_) => {
                unreachable!("a binary form has no lines")
            }
        }
    }
}

/// Number of lines at the beginning that are tried.
const LINES: usize = 200;

/// Detects the format of a trace, and returns it with its parser.
///
/// # Errors
///
/// Fails with a description of the beginning, and of the option that selects a format.
pub(crate) fn sniff(head: &[u8], options: &ReadOptions) -> Result<(Form, Parser), String> {
    if head.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some(form) = options.form {
        return Ok((form, parser(form, head, options)?));
    }
    if options.columns.is_some() || Csv::heading(first_line(head)).is_some() {
        return Ok((Form::Csv, parser(Form::Csv, head, options)?));
    }
    if let Some(found) = binary(head)? {
        return Ok(found);
    }
    let lines = lines(head);
    let fitting = |lines: &[Line]| -> Vec<Form> {
        let fits = |form: &Form| fits(*form, head, lines, options);
        text_forms().filter(fits).collect()
    };
    let mut found = fitting(&lines);
    // The last line of a trace may be cut off.
    if let [before @ .., _] = lines.as_slice()
        && (1..LINES - 1).contains(&before.len())
        && found.is_empty()
    {
        found = fitting(before);
    }
    match found.as_slice() {
        [form] => Ok((*form, parser(*form, head, options)?)),
        [] => Err(unknown(head, &lines, options)),
        several => {
            let names: Vec<&str> = several.iter().map(|form| form.name()).collect();
            Err(format!(
                "its beginning is of several forms: {}; say which with --form",
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

fn binary(head: &[u8]) -> Result<Option<(Form, Parser)>, String> {
    if let Some(found) = Own::of(head) {
        return Ok(Some((Form::Diskperf, Parser::Own(found?))));
    }
    if let Some(found) = Blktrace::of(head) {
        return Ok(Some((Form::Blktrace, Parser::Blktrace(found?))));
    }
    if head.starts_with(srt_magic()) {
        return Ok(Some((Form::Srt, Parser::Srt(None))));
    }
    let is_text = !head[..head.len().min(4096)].contains(&0);
    match Vscsi::of(head).filter(|_| !is_text) {
        Some(of) => Ok(Some((Form::VscsiBinary, Parser::Vscsi(of)))),
        None if is_text => Ok(None),
        None => Err(
            "it is binary, and neither blktrace nor vscsiStats nor SRT nor diskperf's own"
                .to_owned(),
        ),
    }
}

#[derive(Clone, Copy)]
struct Line<'h> {
    number: usize,
    text: &'h [u8],
}

/// Returns the complete lines of the beginning that are not empty.
fn lines(head: &[u8]) -> Vec<Line<'_>> {
    let mut all: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    // The last may go on.
    if all.len() > 1 {
        all.pop();
    }
    all.truncate(LINES);
    let numbered = all.into_iter().zip(1..).map(|(text, number)| Line {
        number,
        text: text.trim_ascii_end(),
    });
    numbered.filter(|line| !line.text.is_empty()).collect()
}

/// Describes why no format fits: because of a single line, or at all.
fn unknown(head: &[u8], lines: &[Line], options: &ReadOptions) -> String {
    const LONGEST: usize = 60;
    let first = lines.first().map(|line| line.text).unwrap_or_default();
    let shown = String::from_utf8_lossy(&first[..first.len().min(LONGEST)]);
    let whole = lines.iter().all(|line| {
        let (words, count) = crate::forms::words::<5>(line.text);
        count == 5
            && words
                .iter()
                .all(|word| crate::number::whole(word).is_some())
    });
    if whole && !lines.is_empty() {
        return "five whole numbers a line are of DiskSim or of MQSim, in what unit of time the trace does not say: give --form mqsim --time-unit ns (or us, ps), or --form disksim".to_owned();
    }
    if first.is_empty() {
        return "its first lines are empty: give --form NAME if a trace follows".to_owned();
    }
    nearly(head, lines, options).unwrap_or_else(|| {
        format!(
            "no form begins with `{}`; give --form NAME, or --columns time_us=1,op=3,offset=4,length=5 of comma-separated values",
            shown.escape_debug()
        )
    })
}

/// Names the format of most lines and the error of the first line that does not fit. Returns `None`
/// if there is no such format.
fn nearly(head: &[u8], lines: &[Line], options: &ReadOptions) -> Option<String> {
    let tried = text_forms().filter_map(|form| {
        let mut parser = parser(form, head, options).ok()?;
        let fit = Fit::of(&mut parser, lines);
        let takes_most = 2 * fit.taken >= lines.len() && fit.has_requests;
        let is_heading = |line: &Line| line.text.starts_with(b"TIME(");
        let is_table = form == Form::Biosnoop && lines.iter().any(is_heading);
        (takes_most || is_table).then_some((form, fit))
    });
    let (form, fit) = tried.max_by_key(|(_, fit)| fit.taken)?;
    let (line, problem) = fit.refused?;
    Some(format!(
        "it is of the form {form} but for line {line}: {problem}; mend or cut out that line, or give --form NAME if it is another form"
    ))
}

/// Iterates over the text formats that a beginning can identify.
fn text_forms() -> impl Iterator<Item = Form> {
    let all = Form::ALL.into_iter();
    all.filter(|form| !form.is_binary() && form.is_told_by_its_beginning())
}

/// Result of parsing the beginning with one format.
#[derive(Default)]
struct Fit {
    /// Number of lines that the format accepts.
    taken: usize,
    /// Number of accepted lines that are left out.
    left_out: usize,
    /// Number of left-out lines that are not kernel events.
    no_events: usize,
    /// Whether the lines contain a request or a completion.
    has_requests: bool,
    /// Number of the first line that the format rejects, and the error.
    refused: Option<(usize, String)>,
}

impl Fit {
    fn of(parser: &mut Parser, lines: &[Line]) -> Self {
        let mut context = Context::default();
        let mut fit = Self::default();
        for line in lines {
            match parser.line(line.text, &mut context) {
                Ok(said) => {
                    fit.taken += 1;
                    fit.has_requests |= matches!(said, Said::Request(_) | Said::Begin);
                }
                Err(problem) => {
                    fit.refused.get_or_insert((line.number, problem));
                }
            }
        }
        fit.left_out = context.dropped.values().sum::<u64>() as usize;
        let no_events = [NO_EVENT, NO_TEXT_OF_BLKPARSE];
        let no_events = no_events.iter().filter_map(|why| context.dropped.get(why));
        fit.no_events = no_events.sum::<u64>() as usize;
        fit.has_requests |= context.order.without_issue > 0;
        fit
    }
}

/// Reports whether all lines of the beginning fit a format and contain a request.
fn fits(form: Form, head: &[u8], lines: &[Line], options: &ReadOptions) -> bool {
    let first = lines.first().map(|line| line.text).unwrap_or_default();
    let begins = match form {
        Form::FioIolog2 => return first.starts_with(b"fio version 2"),
        Form::FioIolog3 => return first.starts_with(b"fio version 3"),
        // Of five columns of whole numbers nobody can tell the unit.
        Form::DiskSim => first.contains(&b'.'),
        Form::MqSim => options.time_unit.is_some() && !first.contains(&b'.'),
        _ => true,
    };
    let Ok(mut parser) = parser(form, head, options) else {
        return false;
    };
    let fit = Fit::of(&mut parser, lines);
    // What the kernel and its tools print is theirs, whatever of it is of requests.
    let is_known = match form {
        Form::Ftrace => fit.has_requests || fit.left_out > 0 || first.starts_with(b"# tracer: "),
        Form::Blkparse => fit.no_events < lines.len(),
        Form::Biosnoop => fit.taken > 0,
        _ => fit.has_requests && fit.left_out < lines.len(),
    };
    begins && is_known && fit.refused.is_none()
}

/// Creates the parser of a format.
///
/// # Errors
///
/// Fails if a required option is missing, or if the bytes do not fit the format.
pub(crate) fn parser(form: Form, head: &[u8], options: &ReadOptions) -> Result<Parser, String> {
    let unit = options.time_unit;
    Ok(match form {
        Form::Msr | Form::Spc | Form::Systor17 | Form::Alibaba | Form::Tencent => {
            Parser::Simple(Simple::new(form))
        }
        Form::FioIolog2 => Parser::Fio(FioIolog::new(false)),
        Form::FioIolog3 => Parser::Fio(FioIolog::new(true)),
        Form::Blkparse => Parser::Blkparse(Blkparse {
            begin: match has_queue_events(head) {
                true => Begin::Queue,
                false => Begin::Issue,
            },
        }),
        Form::Ftrace => Parser::Ftrace(Ftrace),
        Form::Biosnoop => Parser::Biosnoop(Biosnoop::default()),
        Form::VscsiCsv => Parser::VscsiCsv(VscsiCsv),
        Form::DiskSim => Parser::DiskSim(DiskSim::Open(unit.unwrap_or(TimeUnit::Milliseconds))),
        Form::MqSim => Parser::DiskSim(DiskSim::Open(unit.ok_or(
            "MQSim's times have a unit that its parameters say: give --time-unit ns, us or ps",
        )?)),
        Form::Validate => Parser::DiskSim(DiskSim::validate(Pause::After)),
        Form::ValidateBefore => Parser::DiskSim(DiskSim::validate(Pause::Before)),
        Form::Csv => {
            let first = first_line(head);
            let columns = options.columns.clone().or_else(|| Csv::heading(first));
            let columns = columns.ok_or(
                "comma-separated values have columns that somebody must name: give --columns time_us=1,op=3,offset=4,length=5",
            )?;
            Parser::Csv(Csv::new(&columns, first)?)
        }
        Form::Diskperf => match Own::of(head) {
            Some(of) => Parser::Own(of?),
            None => return Err("it does not begin as diskperf's own form does".to_owned()),
        },
        Form::Blktrace => match Blktrace::of(head) {
            Some(of) => Parser::Blktrace(of?),
            None => return Err("it does not begin with an event of blktrace".to_owned()),
        },
        Form::VscsiBinary => match Vscsi::of(head) {
            Some(of) => Parser::Vscsi(of),
            None => return Err("its first records are of neither version of vscsiStats".to_owned()),
        },
        Form::Srt => match head.starts_with(srt_magic()) {
            true => Parser::Srt(None),
            false => return Err("it does not begin with $$TR_IOREC-1.3".to_owned()),
        },
    })
}

/// Reports whether blkparse printed the queueing of requests (Q).
fn has_queue_events(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let (words, count) = crate::forms::words::<7>(line);
        count >= 7 && words[5] == b"Q"
    })
}
