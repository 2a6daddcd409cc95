//! Where something stands: a text and a span of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A job file, or a file that one includes.
#[derive(PartialEq, Eq)]
pub(crate) struct Text {
    /// What messages call it: its path as it was asked for.
    pub(crate) name: String,
    pub(crate) content: String,
}

impl fmt::Debug for Text {
    /// The name alone: a whole file helps nobody in a failed assertion.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.name).finish()
    }
}

/// A span of one line of a job file.
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
    pub(crate) fn new(text: &Arc<Text>, span: Range<usize>) -> Place {
        let end = floor_boundary(&text.content, span.end);
        let start = floor_boundary(&text.content, span.start).min(end);
        Place {
            text: Arc::clone(text),
            span: start..end,
        }
    }

    /// A part of this place, in bytes from its start.
    pub(crate) fn part(&self, part: Range<usize>) -> Place {
        let start = self.span.start + part.start;
        Place::new(&self.text, start..self.span.start + part.end)
    }

    /// The file that it is in, as it was asked for.
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
            number: 1 + before.bytes().filter(|&byte| byte == b'\n').count(),
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

fn floor_boundary(content: &str, mut at: usize) -> usize {
    at = at.min(content.len());
    while !content.is_char_boundary(at) {
        at -= 1;
    }
    at
}
