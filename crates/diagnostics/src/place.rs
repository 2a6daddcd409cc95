//! Where something stands: a text and a span of it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A file, or the text of one argument.
pub struct Text {
    name: String,
    content: String,
    /// Where its lines end, once somebody has asked for one.
    newlines: OnceLock<Vec<usize>>,
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        (&self.name, &self.content) == (&other.name, &other.content)
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    /// The name alone: a whole file helps nobody in a failed assertion.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.name).finish()
    }
}

impl Text {
    /// A text under the name that messages call it by: its path as it was asked for, or
    /// the argument.
    pub fn new(name: String, content: String) -> Text {
        Text {
            name,
            content,
            newlines: OnceLock::new(),
        }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// How many lines end before a byte.
    fn lines_before(&self, byte: usize) -> usize {
        let newlines = self.newlines.get_or_init(|| {
            let newlines = self.content.match_indices('\n');
            newlines.map(|(at, _)| at).collect()
        });
        newlines.partition_point(|&newline| newline < byte)
    }
}

/// A span of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    text: Arc<Text>,
    /// In bytes from the start of the text.
    span: Range<usize>,
}

/// The one line of a text that a message shows.
pub(crate) struct Line<'a> {
    /// Counted from one.
    pub(crate) number: usize,
    pub(crate) content: &'a str,
    /// The place within the line, in bytes.
    pub(crate) span: Range<usize>,
}

impl Place {
    /// A span in bytes, drawn in to the bounds of the text and of its characters.
    pub fn new(text: &Arc<Text>, span: Range<usize>) -> Place {
        let end = floor_boundary(&text.content, span.end);
        let start = floor_boundary(&text.content, span.start).min(end);
        Place {
            text: Arc::clone(text),
            span: start..end,
        }
    }

    /// The start of a text: where something is missing.
    pub fn start(text: &Arc<Text>) -> Place {
        Place::new(text, 0..0)
    }

    /// A part of this place, in bytes from its start.
    pub fn part(&self, part: Range<usize>) -> Place {
        let start = self.span.start + part.start;
        Place::new(&self.text, start..self.span.start + part.end)
    }

    /// What is written there.
    pub fn written(&self) -> &str {
        &self.text.content[self.span.clone()]
    }

    /// The name of the text that it is in.
    pub fn file(&self) -> &str {
        &self.text.name
    }

    /// The line, counted from one.
    pub fn line_number(&self) -> usize {
        self.line().number
    }

    /// The column where it starts, in characters counted from one.
    pub fn column(&self) -> usize {
        let line = self.line();
        1 + line.content[..line.span.start].chars().count()
    }

    /// The line where the place starts, and the part of the place on it.
    pub(crate) fn line(&self) -> Line<'_> {
        let content = &self.text.content;
        let before = &content[..self.span.start];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let length = content[start..].find('\n');
        let end = length.map_or(content.len(), |length| start + length);
        let line = content[start..end].trim_end_matches('\r');
        let from = (self.span.start - start).min(line.len());
        let to = (self.span.end - start).clamp(from, line.len());
        Line {
            number: 1 + self.text.lines_before(start),
            content: line,
            span: from..to,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line_number(), self.column());
        write!(f, "{}:{line}:{column}", self.file())
    }
}

/// The last boundary of characters that is not behind a byte.
pub(crate) fn floor_boundary(content: &str, mut at: usize) -> usize {
    at = at.min(content.len());
    while !content.is_char_boundary(at) {
        at -= 1;
    }
    at
}
