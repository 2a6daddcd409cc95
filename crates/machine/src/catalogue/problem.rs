//! What is wrong with a catalogue file or a setting, and where.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;

use super::place::Place;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    title: String,
    place: Option<Place>,
    label: String,
    help: Vec<String>,
}

impl Problem {
    pub(crate) fn new(title: impl Into<String>) -> Problem {
        Problem {
            title: title.into(),
            place: None,
            label: String::new(),
            help: Vec::new(),
        }
    }

    /// Where it is, and what the caret says there.
    pub(crate) fn at(mut self, place: &Place, label: impl Into<String>) -> Problem {
        self.place = Some(place.clone());
        self.label = label.into();
        self
    }

    /// What to write instead.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help.push(help.into());
        self
    }

    fn render(&self, renderer: &Renderer) -> String {
        let mut group: Group<'_> = match &self.place {
            Some(place) => {
                let line = place.line();
                let mut annotation = AnnotationKind::Primary.span(line.span);
                if !self.label.is_empty() {
                    annotation = annotation.label(&self.label);
                }
                let snippet = Snippet::source(line.content)
                    .line_start(line.number)
                    .path(&place.text.name)
                    .annotation(annotation);
                Level::ERROR.primary_title(&self.title).element(snippet)
            }
            None => Group::with_title(Level::ERROR.primary_title(&self.title)),
        };
        for help in &self.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

/// Everything that is wrong with what was asked for: each with the file, line
/// and column, what is wrong there, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Errors {
    problems: Vec<Problem>,
}

impl Errors {
    /// An error if there is any problem.
    pub(crate) fn none_of(problems: Vec<Problem>) -> Result<(), Errors> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Errors { problems })
        }
    }

    /// How many things are wrong: at least one.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// The messages on one line, without the places: for where many are listed.
    pub fn brief(&self) -> String {
        let brief = |problem: &Problem| {
            let parts = [&problem.title, &problem.label];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            parts.map(String::as_str).collect::<Vec<_>>().join(": ")
        };
        let all: Vec<String> = self.problems.iter().map(brief).collect();
        all.join("; ")
    }

    /// The messages, with terminal colours if wanted, separated by empty lines.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let rendered: Vec<String> = self
            .problems
            .iter()
            .map(|problem| problem.render(&renderer))
            .collect();
        rendered.join("\n\n")
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
