//! Errors and warnings about a text that a user wrote, with their location in the text.

use crate::place::{SourceSpan, floor_char_boundary};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// Number of bytes of a line that a message shows after the start of the marked location, at most.
const SHOWN_LINE_BYTES_MAX: usize = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

/// Error or warning about a text that a user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    severity: Severity,
    title: String,
    span: Option<SourceSpan>,
    label: String,
    help: Vec<String>,
}

impl Problem {
    /// Returns an error with a one-line title.
    pub fn error(title: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Error,
            title: title.into(),
            span: None,
            label: String::new(),
            help: Vec::new(),
        }
    }

    /// Returns a warning with a one-line title, for input that is valid but perhaps not meant.
    pub fn warning(title: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(title)
        }
    }

    /// Adds the location of the problem, and the label that the message shows beside the caret.
    #[must_use]
    pub fn at(mut self, place: &SourceSpan, label: impl Into<String>) -> Problem {
        self.span = Some(place.clone());
        self.label = label.into();
        self
    }

    /// Adds advice: the text that the user should write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help.push(help.into());
        self
    }

    /// Title of the problem in one line, without the location.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Location of the problem. None if the problem has no location.
    pub fn span(&self) -> Option<&SourceSpan> {
        self.span.as_ref()
    }

    /// Formats the title and the label of the caret in one line.
    pub fn brief(&self) -> String {
        let parts = [&self.title, &self.label];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    /// Formats the message with the source line and a caret, in terminal colours if `colour` is
    /// set.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(&self.title);
        let mut group: Group<'_> = match &self.span {
            Some(place) => {
                let line = place.line();
                let (content, span) = truncate_line(line.content, line.marked_range);
                let mut annotation = AnnotationKind::Primary.span(span);
                if !self.label.is_empty() {
                    annotation = annotation.label(&self.label);
                }
                let snippet = Snippet::source(content)
                    .line_start(line.line_number)
                    .path(place.file())
                    .annotation(annotation);
                title.element(snippet)
            }
            None => Group::with_title(title),
        };
        for help in &self.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

/// Returns the first part of a long line, which includes the start of the marked location. Nothing
/// is cut at the start of the line, because the column in a message counts from there.
fn truncate_line(line: &str, span: Range<usize>) -> (&str, Range<usize>) {
    let end = floor_char_boundary(line, span.start.saturating_add(SHOWN_LINE_BYTES_MAX));
    (&line[..end], span.start..span.end.min(end))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Problems of one input, at least one, each with file, line, column, label and advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Errors {
    problems: Vec<Problem>,
}

impl Errors {
    /// Returns an error if the list of problems is not empty. Problems of one text come in the order
    /// of their locations.
    ///
    /// # Errors
    ///
    /// All of these problems, if there is at least one.
    pub fn fail_if_any(mut problems: Vec<Problem>) -> Result<(), Errors> {
        if problems.is_empty() {
            return Ok(());
        }
        let file = |problem: &Problem| problem.span.as_ref().map(|span| span.file().to_owned());
        let mut files = Vec::new();
        for problem in &problems {
            let file = file(problem);
            if !files.contains(&file) {
                files.push(file);
            }
        }
        problems.sort_by_cached_key(|problem| {
            let span = problem.span.as_ref();
            (
                files.iter().position(|one| *one == file(problem)),
                span.map(|span| (span.line_number(), span.column())),
            )
        });
        Err(Errors { problems })
    }

    /// Problems in the order of the text; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Formats the messages in one line without locations, for lists of many inputs.
    pub fn brief(&self) -> String {
        let all: Vec<String> = self.problems.iter().map(Problem::brief).collect();
        all.join("; ")
    }

    /// Formats all messages, in terminal colours if `colour` is set, with an empty line between
    /// messages.
    pub fn render(&self, colour: bool) -> String {
        let rendered = self.problems.iter().map(|problem| problem.render(colour));
        rendered.collect::<Vec<_>>().join("\n\n")
    }
}

impl From<Problem> for Errors {
    fn from(problem: Problem) -> Errors {
        Errors {
            problems: vec![problem],
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
