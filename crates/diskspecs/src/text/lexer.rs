//! Lexer of parameter files, which follows included files.

use diskperf_diagnostics::{Problem, SourceSpan, Text};
use std::ops::Range;
use std::sync::Arc;

use super::excerpt;
use crate::files::Files;

/// Maximum size of a parameter file with all included files, in bytes. The largest known files are
/// maps of a few hundred kilobytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 4 << 20;
const SOURCE_DEPTH_MAX: usize = 16;
const SOURCES_MAX: usize = 256;
const COMMENTED_KEYS_MAX: usize = 200;
const DEEPEST_NESTING: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    OpenBlock,
    CloseBlock,
    OpenList,
    CloseList,
    Comma,
    Equals,
    /// End of the text: the end of the outermost file.
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) place: SourceSpan,
}

/// File that is being read, with the position in it.
struct SourceFrame {
    text: Arc<Text>,
    at_byte: usize,
    /// Number of open brackets at the start of the file.
    open_before_count: usize,
}

pub(super) struct Lexer<'f> {
    files: &'f Files,
    frames: Vec<SourceFrame>,
    open: Vec<Token>,
    bytes: usize,
    sources: usize,
    commented: Vec<SourceSpan>,
}

impl<'f> Lexer<'f> {
    pub(super) fn new(files: &'f Files, name: &str, content: String) -> Result<Self, Problem> {
        let mut lexer = Lexer {
            files,
            frames: Vec::new(),
            open: Vec::new(),
            bytes: 0,
            sources: 0,
            commented: Vec::new(),
        };
        lexer.enter(name.to_owned(), content)?;
        Ok(lexer)
    }

    fn enter(&mut self, name: String, content: String) -> Result<(), Problem> {
        self.bytes += content.len();
        if self.bytes > SOURCE_BYTES_MAX {
            let title =
                format!("`{name}` and the files that include it exceed {SOURCE_BYTES_MAX} bytes");
            let help =
                "drive parameters are usually a few kilobytes; check that this is such a file";
            return Err(Problem::error(title).help(help));
        }
        let at_byte = if content.starts_with('\u{feff}') {
            3
        } else {
            0
        };
        self.frames.push(SourceFrame {
            text: Arc::new(Text::new(name, content)),
            at_byte,
            open_before_count: self.open.len(),
        });
        Ok(())
    }

    /// Continues in an included file, and returns to the current file at its end.
    pub(super) fn source(&mut self, named: &SourceSpan) -> Result<(), Problem> {
        let chain = || {
            let names = self.frames.iter().map(|frame| frame.text.name());
            names.collect::<Vec<_>>().join(" -> ")
        };
        let name = named.as_str();
        if self.frames.len() >= SOURCE_DEPTH_MAX {
            let title = format!("files are included more than {SOURCE_DEPTH_MAX} deep");
            let help = format!("the chain is {} -> {}", chain(), excerpt(name));
            return Err(Problem::error(title)
                .at(named, "this exceeds the limit")
                .help(help));
        }
        self.sources += 1;
        if self.sources > SOURCES_MAX {
            let title = format!("more than {SOURCES_MAX} files are included");
            return Err(Problem::error(title).at(named, "this file exceeds the limit"));
        }
        let beside = named.file().to_owned();
        let opened = self.files.open(name, &beside, SOURCE_BYTES_MAX);
        let (path, content) = opened.map_err(|why| {
            let title = format!("cannot read `{}`", excerpt(name));
            let help = "diskperf searches this file's directory, then the search directories";
            Problem::error(title).at(named, why).help(help)
        })?;
        if self.frames.iter().any(|frame| frame.text.name() == path) {
            let title = format!("`{}` includes itself", excerpt(&path));
            let help = format!("the chain is {} -> {}", chain(), excerpt(&path));
            return Err(Problem::error(title)
                .at(named, "included again here")
                .help(help));
        }
        self.enter(path, content)
    }

    pub(super) fn next(&mut self) -> Result<Token, Problem> {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                unreachable!("the outermost file is never left");
            };
            let rest = &frame.text.content()[frame.at_byte..];
            let start = frame.at_byte + blank_length(rest);
            for key in find_commented_keys(&frame.text, frame.at_byte..start) {
                if self.commented.len() < COMMENTED_KEYS_MAX {
                    self.commented.push(key);
                }
            }
            frame.at_byte = start;
            let end = start + token_length(&frame.text.content()[start..]);
            let place = SourceSpan::new(&frame.text, start..end);
            if start < end {
                frame.at_byte = end;
                return self.next_token(place);
            }
            self.end_of_file(&place)?;
            if self.frames.len() == 1 {
                return Ok(Token {
                    kind: TokenKind::End,
                    place,
                });
            }
            self.frames.pop();
        }
    }

    /// Returns the keys found in comments so far.
    pub(super) fn into_commented_keys(self) -> Vec<SourceSpan> {
        self.commented
    }

    fn next_token(&mut self, place: SourceSpan) -> Result<Token, Problem> {
        let kind = match place.as_str() {
            "{" => TokenKind::OpenBlock,
            "}" => TokenKind::CloseBlock,
            "[" => TokenKind::OpenList,
            "]" => TokenKind::CloseList,
            "," => TokenKind::Comma,
            "=" => TokenKind::Equals,
            word => {
                if let Some(at) = word.find(|c: char| c.is_control()) {
                    let problem = Problem::error("the file contains a control character");
                    let problem = problem.at(&place.subspan(at..at + 1), "here");
                    return Err(problem.help("check that this is a text file"));
                }
                TokenKind::Word
            }
        };
        let token = Token { kind, place };
        match kind {
            TokenKind::OpenBlock | TokenKind::OpenList => self.push_open(&token)?,
            TokenKind::CloseBlock | TokenKind::CloseList => self.pop_open(&token)?,
            _ => {}
        }
        Ok(token)
    }

    fn push_open(&mut self, token: &Token) -> Result<(), Problem> {
        if self.open.len() >= DEEPEST_NESTING {
            let title = format!("blocks and lists are nested more than {DEEPEST_NESTING} deep");
            return Err(Problem::error(title).at(&token.place, "this exceeds the limit"));
        }
        self.open.push(token.clone());
        Ok(())
    }

    fn pop_open(&mut self, token: &Token) -> Result<(), Problem> {
        let before = self
            .frames
            .last()
            .map_or(0, |frame| frame.open_before_count);
        let wanted = match token.kind {
            TokenKind::CloseBlock => TokenKind::OpenBlock,
            _ => TokenKind::OpenList,
        };
        let mark = token.place.as_str();
        match self.open.last() {
            Some(open) if self.open.len() > before && open.kind == wanted => {
                self.open.pop();
                Ok(())
            }
            Some(open) if self.open.len() > before => {
                let title = format!("`{mark}` does not close `{}`", open.place.as_str());
                let help = format!("`{}` is at {}", open.place.as_str(), open.place);
                Err(Problem::error(title).at(&token.place, "here").help(help))
            }
            _ => {
                let title = format!("`{mark}` has no opening counterpart in this file");
                Err(Problem::error(title).at(&token.place, "here"))
            }
        }
    }

    fn end_of_file(&self, end: &SourceSpan) -> Result<(), Problem> {
        let before = self
            .frames
            .last()
            .map_or(0, |frame| frame.open_before_count);
        match self.open.last() {
            Some(open) if self.open.len() > before => {
                let title = format!("`{}` ends too early", end.file());
                let label = format!("`{}` is not closed", open.place.as_str());
                let help =
                    "check that the file is complete: each `{` needs its `}`, each `[` its `]`";
                Err(Problem::error(title).at(&open.place, label).help(help))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the length of the blanks and comments at the start of a text, in bytes.
fn blank_length(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if !rest.starts_with('#') {
            return text.len() - rest.len();
        }
        rest = rest.find('\n').map_or("", |end| &rest[end..]);
    }
}

/// Returns the keys of comment lines `# KEY = VALUE`, which someone has disabled.
fn find_commented_keys(text: &Arc<Text>, blanks: Range<usize>) -> Vec<SourceSpan> {
    let mut keys = Vec::new();
    let mut at = blanks.start;
    for line in text.content()[blanks].split_inclusive('\n') {
        let key = line.split_once('=').map(|(key, _)| key.trim_end());
        let key = key.and_then(|key| Some((key, key.trim_start().strip_prefix('#')?.trim_start())));
        if let Some((before, key)) = key
            && is_key(key)
        {
            let from = at + before.len() - key.len();
            keys.push(SourceSpan::new(text, from..from + key.len()));
        }
        at += line.len();
    }
    keys
}

/// Tests whether words may be a key: letters, and other characters found in the keys of drives.
fn is_key(words: &str) -> bool {
    let of_key = |c: char| c.is_ascii_alphanumeric() || " ()-/.+|".contains(c);
    words.starts_with(|c: char| c.is_ascii_uppercase()) && words.chars().all(of_key)
}

/// Returns the length of the token at the start of a text, in bytes.
fn token_length(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || "{}[],=#".contains(c);
    match text.find(ends) {
        // A mark is a byte; blanks and comments were passed over before.
        Some(0) => 1,
        Some(end) => end,
        None => text.len(),
    }
}
