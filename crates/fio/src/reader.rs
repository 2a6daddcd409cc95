//! Reader of job files: splits text into sections and options, and handles comments and `include_file`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::surroundings::JobEnvironment;
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::{SourceSpan, Text};

/// Maximum length of a line in bytes. fio silently splits longer lines.
pub(crate) const LINE_BYTES_MAX: usize = 8191;
/// Maximum size of a job file with all included files, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
const INCLUDE_DEPTH_MAX: usize = 16;
const INCLUDES_MAX: usize = 256;
/// Maximum number of reported problems. A file with more is probably not a job file.
pub(crate) const PROBLEMS_MAX: usize = 50;

/// Section header or option line of a job file.
#[derive(Clone, Debug)]
pub(crate) enum JobFileEntry {
    /// Section header, `[name]` alone on its line.
    Section { name: String, place: SourceSpan },
    /// Option line: `key=value`, or a key without a value.
    Option(OptionLine),
}

/// Option `key=value` as written in the job file.
#[derive(Clone, Debug)]
pub(crate) struct OptionLine {
    pub(crate) key: String,
    pub(crate) key_place: SourceSpan,
    pub(crate) value: Option<(String, SourceSpan)>,
}

/// Reader state: entries and problems so far, and the chain of open files.
pub(crate) struct JobFileReader<'s> {
    surroundings: &'s JobEnvironment,
    pub(crate) entries: Vec<JobFileEntry>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// Contents of the included files, by path.
    pub(crate) included: BTreeMap<String, String>,
    include_chain: Vec<String>,
    /// Whether an included file contained a section header, which ends the current section of the
    /// job file.
    is_truncated: bool,
    /// Number of entries before the current file. They remain if the file turns out to contain a
    /// section header.
    accepted_lines: usize,
    read_bytes: usize,
    include_count: usize,
}

impl<'s> JobFileReader<'s> {
    pub(crate) fn new(surroundings: &'s JobEnvironment) -> JobFileReader<'s> {
        JobFileReader {
            surroundings,
            entries: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            included: BTreeMap::new(),
            include_chain: Vec::new(),
            is_truncated: false,
            accepted_lines: 0,
            read_bytes: 0,
            include_count: 0,
        }
    }

    pub(crate) fn read_text(&mut self, name: &str, content: &str) {
        self.read_bytes += content.len();
        if self.read_bytes > FILE_BYTES_MAX {
            let title =
                format!("`{name}` and the files that include it exceed {FILE_BYTES_MAX} bytes");
            let help = "job files are usually a few kilobytes; check that this is one";
            self.errors.push(Problem::error(title).help(help));
            return;
        }
        self.include_chain.push(name.to_owned());
        let text = Arc::new(Text::new(name.to_owned(), content.to_owned()));
        let mut start = 0;
        for line in content.split_inclusive('\n') {
            self.read_line(&text, start, line.trim_end_matches('\n'));
            let is_left_out = self.include_chain.len() > 1 && self.is_truncated;
            if is_left_out || self.errors.len() >= PROBLEMS_MAX {
                break;
            }
            start += line.len();
        }
        self.include_chain.pop();
    }

    fn read_line(&mut self, text: &Arc<Text>, start: usize, line: &str) {
        let place =
            |span: Range<usize>| SourceSpan::new(text, start + span.start..start + span.end);
        if line.len() > LINE_BYTES_MAX {
            let title = format!("a line of {} bytes", line.len());
            let label = format!("fio takes at most {LINE_BYTES_MAX}");
            self.errors
                .push(Problem::error(title).at(&place(0..1), label));
            return;
        }
        if start == 0 && line.starts_with('\u{feff}') {
            let problem = Problem::error("the file starts with a byte order mark")
                .at(&place(0..3), "fio takes this for an option")
                .help("save the file as UTF-8 without a byte order mark");
            self.errors.push(problem);
            return;
        }
        if let Some(nul) = line.find('\0') {
            let problem = Problem::error("a NUL character").at(&place(nul..nul + 1), "here");
            self.errors
                .push(problem.help("check that this is a text file"));
            return;
        }
        let comment = line.find([';', '#']);
        let option_text = &line[..comment.unwrap_or(line.len())];
        let from = option_text.len() - option_text.trim_start().len();
        let option_text = option_text.trim();
        let span = from..from + option_text.len();
        if option_text.is_empty() {
        } else if option_text.starts_with('[') {
            let mark = comment.map(|at| &line[at..at + 1]);
            self.begin_section((option_text, mark), &place(span));
        } else if self.is_truncated {
            let title = format!(
                "`{}` stands outside of a section",
                shorten_text(option_text)
            );
            let label =
                "the include above ended the section, because the included file contains a section";
            let help = "keep sections in the job file, and only options in included files";
            let problem = Problem::error(title).at(&place(span), label);
            self.errors.push(problem.help(help));
        } else if option_text.starts_with("include") {
            self.include_file(option_text, &place(span));
        } else if !self.is_in_section() {
            let problem = Problem::error(format!(
                "`{}` stands outside of a section",
                shorten_text(option_text)
            ))
            .at(&place(span), "before the first `[name]`")
            .help("write `[global]` or a job name in brackets above it");
            self.errors.push(problem);
        } else {
            let cut = comment
                .filter(|&at| !line[..at].ends_with([' ', '\t']) && option_text.contains('='));
            if let Some(at) = cut {
                self.warn_of_truncated_value(option_text, &line[at..at + 1], &place(at..at + 1));
            }
            self.add_option(option_text, &place(span));
        }
    }

    fn is_in_section(&self) -> bool {
        !self.entries.is_empty()
    }

    fn warn_of_truncated_value(&mut self, option_text: &str, mark: &str, place: &SourceSpan) {
        let (key, value) = option_text.split_once('=').unwrap_or((option_text, ""));
        let title = format!("`{mark}` starts a comment inside a value");
        let label = format!("{} is `{}`", key.trim(), shorten_text(value));
        let warning = Problem::warning(title)
            .at(place, label)
            .help("fio has no quotes: a value holds neither `;` nor `#`");
        self.warnings.push(warning);
    }

    /// Reads a section header. `mark` is the character that starts a comment after it, if there is
    /// one.
    fn begin_section(&mut self, (option_text, mark): (&str, Option<&str>), place: &SourceSpan) {
        if self.include_chain.len() > 1 {
            self.is_truncated = true;
            self.entries.truncate(self.accepted_lines);
            let title = "fio ignores the options above a section in an included file";
            let help = "include only options, and keep sections in the job file";
            let warning = Problem::warning(title).at(place, "fio reads no further");
            return self.warnings.push(warning.help(help));
        }
        self.is_truncated = false;
        let problem = {
            // fio drops the last letter, whatever it is.
            let mut name = option_text[1..].to_owned();
            let last = name.pop();
            match &*name {
                "" => Problem::error("a section without a name")
                    .at(place, "a job needs a name")
                    .help("write `[name]`"),
                name if name.len() > 255 => {
                    Problem::error("the section name exceeds 255 bytes").at(place, "here")
                }
                _ => {
                    if last != Some(']') {
                        self.warnings
                            .push(truncated_section_warning((&name, mark), place));
                    }
                    let place = place.clone();
                    return self.entries.push(JobFileEntry::Section { name, place });
                }
            }
        };
        self.errors.push(problem);
        // What follows in the job file belongs to it all the same.
        let (name, place) = (String::from("?"), place.clone());
        self.entries.push(JobFileEntry::Section { name, place });
    }

    fn include_file(&mut self, option_text: &str, place: &SourceSpan) {
        let rest = &option_text["include".len()..];
        let name = rest.trim();
        let refused = if name.is_empty() || !rest.starts_with([' ', '\t']) {
            // fio skips the word and one letter, whatever it is.
            let file = rest.get(1..).unwrap_or("").trim();
            let reading = format!("fio reads this as the file `{}`", shorten_text(file));
            let problem =
                Problem::error("fio treats a line that starts with `include` as an include");
            Some(problem.at(place, reading).help("write `include FILE`"))
        } else if !self.is_in_section() {
            let problem = Problem::error("`include` stands outside of a section");
            let problem = problem.at(place, "before the first `[name]`");
            Some(problem.help("put `[global]` above it"))
        } else if self.include_chain.len() >= INCLUDE_DEPTH_MAX {
            let chain = self.include_chain.join(" -> ");
            let title = format!("included files are nested more than {INCLUDE_DEPTH_MAX} deep");
            let problem = Problem::error(title).at(place, "this exceeds the limit");
            Some(problem.help(format!("the chain is {chain} -> {name}")))
        } else if self.include_count >= INCLUDES_MAX {
            let title = format!("more than {INCLUDES_MAX} files are included");
            Some(Problem::error(title).at(place, "this file exceeds the limit"))
        } else {
            None
        };
        if let Some(problem) = refused {
            // One way round a loop says it all.
            self.include_count = INCLUDES_MAX.max(self.include_count);
            return self.errors.push(problem);
        }
        self.include_count += 1;
        let beside = self.include_chain.last().map_or("", String::as_str);
        match self
            .surroundings
            .file_source
            .read_included_file(name, beside, FILE_BYTES_MAX as u64)
        {
            Ok((path, content)) => {
                let of_outer = std::mem::replace(&mut self.accepted_lines, self.entries.len());
                self.read_text(&path, &content);
                self.accepted_lines = of_outer;
                self.included.insert(path, content);
            }
            Err(why) => {
                let title = format!("cannot read the included file `{}`", shorten_text(name));
                let help = "diskperf searches the working directory, then this file's directory";
                self.errors
                    .push(Problem::error(title).at(place, why).help(help));
            }
        }
    }

    fn add_option(&mut self, option_text: &str, place: &SourceSpan) {
        let (key, value) = match option_text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (option_text, None),
        };
        let value = value.map(|value| {
            let start = option_text.len() - value.len();
            (value.to_owned(), place.subspan(start..option_text.len()))
        });
        let key = key.trim_end();
        self.entries.push(JobFileEntry::Option(OptionLine {
            key: key.to_owned(),
            key_place: place.subspan(0..key.len().max(1).min(option_text.len())),
            value,
        }));
    }
}

/// Warns about a section name that ends early because of a comment or a missing bracket.
fn truncated_section_warning((name, mark): (&str, Option<&str>), place: &SourceSpan) -> Problem {
    let (why, help) = match mark {
        Some(mark) => (
            format!("`{mark}` begins a comment inside the name of a section"),
            "a name cannot contain `;` or `#`",
        ),
        None => (
            "a section without its closing bracket".to_owned(),
            "end the line with `]`",
        ),
    };
    let title = format!("{why}: fio calls this job `{}`", shorten_text(name));
    Problem::warning(title)
        .at(place, "the name ends here")
        .help(help)
}

/// Returns the first 60 characters of user text, for a message.
pub(crate) fn shorten_text(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
