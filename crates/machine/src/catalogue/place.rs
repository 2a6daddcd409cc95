//! Where something stands: a text and a span of it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A file of the catalogue, or the text of one setting.
pub(crate) struct Text {
    /// What messages call it: a path, or `--set`.
    pub(crate) name: String,
    pub(crate) content: String,
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
    pub(crate) fn new(name: String, content: String) -> Text {
        Text {
            name,
            content,
            newlines: OnceLock::new(),
        }
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

/// A span of a text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) text: Arc<Text>,
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

    /// The start of a text: where something is missing.
    pub(crate) fn start(text: &Arc<Text>) -> Place {
        Place::new(text, 0..0)
    }

    /// What is written there.
    pub(crate) fn written(&self) -> &str {
        &self.text.content[self.span.clone()]
    }

    /// The line where the place starts, and the part of the place on it.
    pub(crate) fn line(&self) -> Line<'_> {
        let content = &self.text.content;
        let start = content[..self.span.start]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let end = content[start..]
            .find('\n')
            .map_or(content.len(), |length| start + length);
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

fn floor_boundary(content: &str, mut at: usize) -> usize {
    at = at.min(content.len());
    while !content.is_char_boundary(at) {
        at -= 1;
    }
    at
}
