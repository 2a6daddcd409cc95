//! Locations in a text that a user wrote: the text and a span of bytes.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Text that a user wrote: a file, or the value of one argument.
pub struct Text {
    name: String,
    content: String,
    /// Byte offset of each line feed of the text, computed at the first use.
    newlines: OnceLock<Vec<usize>>,
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        (&self.name, &self.content) == (&other.name, &other.content)
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    /// Formats a text as its name alone, because the whole content is of no use in a failed
    /// assertion.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.name).finish()
    }
}

impl Text {
    /// Returns a text with the name that messages show: the path as the user wrote it, or the
    /// argument.
    pub fn new(name: String, content: String) -> Text {
        Text {
            name,
            content,
            newlines: OnceLock::new(),
        }
    }

    /// Name of the text in messages: the path as the user wrote it, or the argument.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whole content of the text.
    pub fn content(&self) -> &str {
        &self.content
    }

    fn count_lines_before(&self, byte: usize) -> usize {
        let newlines = self.newlines.get_or_init(|| {
            let newlines = self.content.match_indices('\n');
            newlines.map(|(at, _)| at).collect()
        });
        newlines.partition_point(|&newline| newline < byte)
    }
}

/// Location in a text: a span of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpan {
    text: Arc<Text>,
    /// Location in the text, in bytes from its start.
    byte_range: Range<usize>,
}

/// Line of a text that a message shows.
pub(crate) struct SourceLine<'a> {
    /// Line number, counted from 1.
    pub(crate) line_number: usize,
    pub(crate) content: &'a str,
    /// Part of the line that the message marks, in bytes from the start of the line.
    pub(crate) marked_range: Range<usize>,
}

impl SourceSpan {
    /// Returns the location of a span of bytes. The span is clipped to the text and to character
    /// boundaries.
    pub fn new(text: &Arc<Text>, span: Range<usize>) -> SourceSpan {
        let end = floor_char_boundary(&text.content, span.end);
        let start = floor_char_boundary(&text.content, span.start).min(end);
        SourceSpan {
            text: Arc::clone(text),
            byte_range: start..end,
        }
    }

    /// Returns the location of the first byte of a text, for messages about something that is
    /// missing.
    pub fn start(text: &Arc<Text>) -> SourceSpan {
        SourceSpan::new(text, 0..0)
    }

    /// Returns a part of this location; `part` counts bytes from the start of the location.
    pub fn subspan(&self, part: Range<usize>) -> SourceSpan {
        let start = self.byte_range.start + part.start;
        SourceSpan::new(&self.text, start..self.byte_range.start + part.end)
    }

    /// Part of the user's text that a location marks.
    pub fn as_str(&self) -> &str {
        &self.text.content[self.byte_range.clone()]
    }

    /// Name of the text that contains the location.
    pub fn file(&self) -> &str {
        &self.text.name
    }

    /// Line number of the location, counted from 1.
    pub fn line_number(&self) -> usize {
        self.line().line_number
    }

    /// Column of the start of the location, in characters counted from 1.
    pub fn column(&self) -> usize {
        let line = self.line();
        1 + line.content[..line.marked_range.start].chars().count()
    }

    /// Returns the line where the location starts, and the part of the location on this line.
    pub(crate) fn line(&self) -> SourceLine<'_> {
        let content = &self.text.content;
        let before = &content[..self.byte_range.start];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let length = content[start..].find('\n');
        let end = length.map_or(content.len(), |length| start + length);
        let line = content[start..end].trim_end_matches('\r');
        let from = (self.byte_range.start - start).min(line.len());
        let to = (self.byte_range.end - start).clamp(from, line.len());
        SourceLine {
            line_number: 1 + self.text.count_lines_before(start),
            content: line,
            marked_range: from..to,
        }
    }
}

impl fmt::Display for SourceSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line_number(), self.column());
        write!(f, "{}:{line}:{column}", self.file())
    }
}

/// Returns the last character boundary at or before a byte offset.
pub(crate) fn floor_char_boundary(content: &str, mut at: usize) -> usize {
    at = at.min(content.len());
    while !content.is_char_boundary(at) {
        at -= 1;
    }
    at
}
