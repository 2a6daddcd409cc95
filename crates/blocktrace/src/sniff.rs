//! Which form a trace is of, by what it begins with. What fits several is refused.

use crate::form::{Columns, Form, TimeUnit};
use crate::forms::{
    Blkparse, Blktrace, Context, Csv, DiskSim, FioIolog, Ftrace, Pause, Said, Simple, Srt, Vscsi,
    VscsiCsv, srt_magic,
};
use crate::own::Own;
use crate::reader::ReadOptions;

/// The parser of a form, at its beginning.
#[derive(Clone, Debug)]
pub(crate) enum Parser {
    Simple(Simple),
    Fio(FioIolog),
    Blkparse(Blkparse),
    Ftrace(Ftrace),
    VscsiCsv(VscsiCsv),
    DiskSim(DiskSim),
    Csv(Csv),
    Blktrace(Blktrace),
    Vscsi(Vscsi),
    Own(Own),
    /// The header is still to be read.
    Srt(Option<Srt>),
}

impl Parser {
    /// What a line of text says.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        match self {
            Self::Simple(of) => of.line(line, context),
            Self::Fio(of) => of.line(line, context),
            Self::Blkparse(of) => of.line(line, context),
            Self::Ftrace(of) => of.line(line, context),
            Self::VscsiCsv(of) => of.line(line, context),
            Self::DiskSim(of) => of.line(line, context),
            Self::Csv(of) => of.line(line, context),
            Self::Own(_) | Self::Blktrace(_) | Self::Vscsi(_) | Self::Srt(_) => {
                unreachable!("a binary form has no lines")
            }
        }
    }
}

/// The lines of the beginning that are tried.
const LINES: usize = 200;

/// The form, and its parser.
///
/// # Errors
///
/// What was found, and which option says what was meant.
pub(crate) fn sniff(head: &[u8], options: &ReadOptions) -> Result<(Form, Parser), String> {
    if head.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some(form) = options.form {
        return Ok((form, parser(form, head, options)?));
    }
    if options.columns.is_some() || heading(head).is_some() {
        return Ok((Form::Csv, parser(Form::Csv, head, options)?));
    }
    if let Some(found) = binary(head)? {
        return Ok(found);
    }
    let lines = lines(head);
    let fits = |form: &Form| fits(*form, head, &lines, options);
    let found: Vec<Form> = Form::ALL
        .into_iter()
        .filter(|form| !form.is_binary() && form.is_told_by_its_beginning())
        .filter(fits)
        .collect();
    match found.as_slice() {
        [form] => Ok((*form, parser(*form, head, options)?)),
        [] => Err(unknown(&lines)),
        several => {
            let names: Vec<&str> = several.iter().map(|form| form.name()).collect();
            Err(format!(
                "its beginning is of several forms: {}; say which with --form",
                names.join(", ")
            ))
        }
    }
}

/// The columns that the first line names, of comma-separated values with a heading.
fn heading(head: &[u8]) -> Option<Columns> {
    let first = head.split(|byte| *byte == b'\n').next()?;
    Columns::of_heading(std::str::from_utf8(first).ok()?)
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

/// Whole lines of the beginning.
fn lines(head: &[u8]) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    // The last may go on.
    if all.len() > 1 {
        all.pop();
    }
    all.truncate(LINES);
    all.into_iter()
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty())
        .collect()
}

fn unknown(lines: &[&[u8]]) -> String {
    const LONGEST: usize = 60;
    let first = lines.first().copied().unwrap_or_default();
    let shown = String::from_utf8_lossy(&first[..first.len().min(LONGEST)]);
    let whole = lines.iter().all(|line| {
        let (words, count) = crate::forms::words::<5>(line);
        count == 5
            && words
                .iter()
                .all(|word| crate::number::whole(word).is_some())
    });
    if whole && !lines.is_empty() {
        return "five whole numbers a line are of DiskSim or of MQSim, in what unit of time the trace does not say: give --form mqsim --time-unit ns (or us, ps), or --form disksim".to_owned();
    }
    format!(
        "no form begins with `{}`; give --form NAME, or --columns time_us=1,op=3,offset=4,length=5 of comma-separated values",
        shown.escape_debug()
    )
}

/// Whether all lines of the beginning are of a form, and a request is among them.
fn fits(form: Form, head: &[u8], lines: &[&[u8]], options: &ReadOptions) -> bool {
    let first = lines.first().copied().unwrap_or_default();
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
    let mut context = Context::default();
    let mut requests = 0;
    for line in lines {
        match parser.line(line, &mut context) {
            Ok(Said::Request(_)) => requests += 1,
            Ok(Said::Other) => {}
            Err(_) => return false,
        }
    }
    let dropped: u64 = context.dropped.values().sum();
    let matched = context.order.next(true).is_some() || context.order.without_issue > 0;
    let mostly = (dropped as usize) < lines.len();
    begins && mostly && (requests > 0 || matched)
}

/// The parser of a form.
///
/// # Errors
///
/// An option that the form needs, or bytes that are not of it.
pub(crate) fn parser(form: Form, head: &[u8], options: &ReadOptions) -> Result<Parser, String> {
    let unit = options.time_unit;
    Ok(match form {
        Form::Msr | Form::Spc | Form::Systor17 | Form::Alibaba | Form::Tencent => {
            Parser::Simple(Simple(form))
        }
        Form::FioIolog2 => Parser::Fio(FioIolog::new(false)),
        Form::FioIolog3 => Parser::Fio(FioIolog::new(true)),
        Form::Blkparse => Parser::Blkparse(Blkparse {
            from_queue: has_queue_events(head),
        }),
        Form::Ftrace => Parser::Ftrace(Ftrace),
        Form::VscsiCsv => Parser::VscsiCsv(VscsiCsv),
        Form::DiskSim => Parser::DiskSim(DiskSim::Open(unit.unwrap_or(TimeUnit::Milliseconds))),
        Form::MqSim => Parser::DiskSim(DiskSim::Open(unit.ok_or(
            "MQSim's times have a unit that its parameters say: give --time-unit ns, us or ps",
        )?)),
        Form::Validate => Parser::DiskSim(DiskSim::validate(Pause::After)),
        Form::ValidateBefore => Parser::DiskSim(DiskSim::validate(Pause::Before)),
        Form::Csv => Parser::Csv(Csv::new(options.columns.or_else(|| heading(head)).ok_or(
            "comma-separated values have columns that somebody must name: give --columns time_us=1,op=3,offset=4,length=5",
        )?)),
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

/// Whether blkparse printed when requests were queued.
fn has_queue_events(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let (words, count) = crate::forms::words::<7>(line);
        count >= 7 && words[5] == b"Q"
    })
}
