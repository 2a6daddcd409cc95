//! What is wrong with a text, or worth a word, and where.

use crate::place::{Place, floor_boundary};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// At most this many bytes of a line are shown behind the start of a place.
const SHOWN_BYTES: usize = 160;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Error,
    Warning,
}

/// One thing that is wrong with a text, or that its author may not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    weight: Weight,
    title: String,
    place: Option<Place>,
    label: String,
    help: Vec<String>,
}

impl Problem {
    /// Something that is wrong, on one line.
    pub fn error(title: impl Into<String>) -> Problem {
        Problem {
            weight: Weight::Error,
            title: title.into(),
            place: None,
            label: String::new(),
            help: Vec::new(),
        }
    }

    /// Something that may not be meant.
    pub fn warning(title: impl Into<String>) -> Problem {
        Problem {
            weight: Weight::Warning,
            ..Problem::error(title)
        }
    }

    /// Where it is, and what the caret says there.
    #[must_use]
    pub fn at(mut self, place: &Place, label: impl Into<String>) -> Problem {
        self.place = Some(place.clone());
        self.label = label.into();
        self
    }

    /// What to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help.push(help.into());
        self
    }

    /// What is wrong, on one line, without the place.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Where it is, if it is somewhere.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The title and what the caret says, on one line.
    pub fn brief(&self) -> String {
        let parts = [&self.title, &self.label];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    /// The message with the line and a caret, with terminal colours if wanted.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let level = match self.weight {
            Weight::Error => Level::ERROR,
            Weight::Warning => Level::WARNING,
        };
        let title = level.primary_title(&self.title);
        let mut group: Group<'_> = match &self.place {
            Some(place) => {
                let line = place.line();
                let (content, span) = shortened(line.content, line.span);
                let mut annotation = AnnotationKind::Primary.span(span);
                if !self.label.is_empty() {
                    annotation = annotation.label(&self.label);
                }
                let snippet = Snippet::source(content)
                    .line_start(line.number)
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

/// The first part of a long line that holds the start of a place. The column in a
/// message counts from the line's start, so nothing is cut there.
fn shortened(line: &str, span: Range<usize>) -> (&str, Range<usize>) {
    let end = floor_boundary(line, span.start.saturating_add(SHOWN_BYTES));
    (&line[..end], span.start..span.end.min(end))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Everything that is wrong with what was read: each with the file, line and column, what
/// is wrong there, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Errors {
    problems: Vec<Problem>,
}

impl Errors {
    /// An error if there is any problem.
    ///
    /// # Errors
    ///
    /// These problems, unless there is none.
    pub fn none_of(problems: Vec<Problem>) -> Result<(), Errors> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Errors { problems })
        }
    }

    /// What is wrong, in the order of the text: at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The messages on one line, without the places: for where many are listed.
    pub fn brief(&self) -> String {
        let all: Vec<String> = self.problems.iter().map(Problem::brief).collect();
        all.join("; ")
    }

    /// The messages, with terminal colours if wanted, separated by empty lines.
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
