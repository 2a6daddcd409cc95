//! Lexer of parameter files, which follows included files.

use diskperf_diagnostics::{Problem, SourceSpan, Text};
use std::ops::Range;
use std::sync::Arc;

use super::shorten_text;
use crate::files::SpecificationFiles;

/// Maximum size of a parameter file with all included files, in bytes. The largest known files are
/// maps of a few hundred kilobytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 4 << 20;
const SOURCE_DEPTH_MAX: usize = 16;
const SOURCES_MAX: usize = 256;
const COMMENTED_KEYS_MAX: usize = 200;
const NESTING_DEPTH_MAX: usize = 64;

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
    pub(super) span: SourceSpan,
}

/// File that is being read, with the position in it.
struct SourceFrame {
    text: Arc<Text>,
    next_byte: usize,
    /// Number of open brackets at the start of the file.
    outer_bracket_count: usize,
}

pub(super) struct Tokenizer<'f> {
    files: &'f SpecificationFiles,
    source_frames: Vec<SourceFrame>,
    open_brackets: Vec<Token>,
    read_bytes: usize,
    source_count: usize,
    commented_keys: Vec<SourceSpan>,
}

impl<'f> Tokenizer<'f> {
    pub(super) fn new(
        files: &'f SpecificationFiles,
        name: &str,
        content: String,
    ) -> Result<Self, Problem> {
        let mut lexer = Tokenizer {
            files,
            source_frames: Vec::new(),
            open_brackets: Vec::new(),
            read_bytes: 0,
            source_count: 0,
            commented_keys: Vec::new(),
        };
        lexer.enter_file(name.to_owned(), content)?;
        Ok(lexer)
    }

    fn enter_file(&mut self, name: String, content: String) -> Result<(), Problem> {
        self.read_bytes += content.len();
        if self.read_bytes > SOURCE_BYTES_MAX {
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
        self.source_frames.push(SourceFrame {
            text: Arc::new(Text::new(name, content)),
            next_byte: at_byte,
            outer_bracket_count: self.open_brackets.len(),
        });
        Ok(())
    }

    /// Continues in an included file, and returns to the current file at its end.
    pub(super) fn include_source(&mut self, named: &SourceSpan) -> Result<(), Problem> {
        let chain = || {
            let names = self.source_frames.iter().map(|frame| frame.text.name());
            names.collect::<Vec<_>>().join(" -> ")
        };
        let name = named.as_str();
        if self.source_frames.len() >= SOURCE_DEPTH_MAX {
            let title = format!("files are included more than {SOURCE_DEPTH_MAX} deep");
            let help = format!("the chain is {} -> {}", chain(), shorten_text(name));
            return Err(Problem::error(title)
                .at(named, "this exceeds the limit")
                .help(help));
        }
        self.source_count += 1;
        if self.source_count > SOURCES_MAX {
            let title = format!("more than {SOURCES_MAX} files are included");
            return Err(Problem::error(title).at(named, "this file exceeds the limit"));
        }
        let beside = named.file().to_owned();
        let opened = self.files.read_file(name, &beside, SOURCE_BYTES_MAX);
        let (path, content) = opened.map_err(|why| {
            let title = format!("cannot read `{}`", shorten_text(name));
            let help = "diskperf searches this file's directory, then the search directories";
            Problem::error(title).at(named, why).help(help)
        })?;
        if self
            .source_frames
            .iter()
            .any(|frame| frame.text.name() == path)
        {
            let title = format!("`{}` includes itself", shorten_text(&path));
            let help = format!("the chain is {} -> {}", chain(), shorten_text(&path));
            return Err(Problem::error(title)
                .at(named, "included again here")
                .help(help));
        }
        self.enter_file(path, content)
    }

    pub(super) fn next_token(&mut self) -> Result<Token, Problem> {
        loop {
            let Some(frame) = self.source_frames.last_mut() else {
                unreachable!("the outermost file is never left");
            };
            let rest = &frame.text.content()[frame.next_byte..];
            let start = frame.next_byte + blank_length(rest);
            for key in find_commented_keys(&frame.text, frame.next_byte..start) {
                if self.commented_keys.len() < COMMENTED_KEYS_MAX {
                    self.commented_keys.push(key);
                }
            }
            frame.next_byte = start;
            let end = start + token_length(&frame.text.content()[start..]);
            let place = SourceSpan::new(&frame.text, start..end);
            if start < end {
                frame.next_byte = end;
                return self.make_token(place);
            }
            self.leave_file(&place)?;
            if self.source_frames.len() == 1 {
                return Ok(Token {
                    kind: TokenKind::End,
                    span: place,
                });
            }
            self.source_frames.pop();
        }
    }

    /// Returns the keys found in comments so far.
    pub(super) fn into_commented_keys(self) -> Vec<SourceSpan> {
        self.commented_keys
    }

    fn make_token(&mut self, place: SourceSpan) -> Result<Token, Problem> {
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
        let token = Token { kind, span: place };
        match kind {
            TokenKind::OpenBlock | TokenKind::OpenList => self.push_open(&token)?,
            TokenKind::CloseBlock | TokenKind::CloseList => self.pop_open(&token)?,
            _ => {}
        }
        Ok(token)
    }

    fn push_open(&mut self, token: &Token) -> Result<(), Problem> {
        if self.open_brackets.len() >= NESTING_DEPTH_MAX {
            let title = format!("blocks and lists are nested more than {NESTING_DEPTH_MAX} deep");
            return Err(Problem::error(title).at(&token.span, "this exceeds the limit"));
        }
        self.open_brackets.push(token.clone());
        Ok(())
    }

    fn pop_open(&mut self, token: &Token) -> Result<(), Problem> {
        let before = self
            .source_frames
            .last()
            .map_or(0, |frame| frame.outer_bracket_count);
        let wanted = match token.kind {
            TokenKind::CloseBlock => TokenKind::OpenBlock,
            _ => TokenKind::OpenList,
        };
        let mark = token.span.as_str();
        match self.open_brackets.last() {
            Some(open) if self.open_brackets.len() > before && open.kind == wanted => {
                self.open_brackets.pop();
                Ok(())
            }
            Some(open) if self.open_brackets.len() > before => {
                let title = format!("`{mark}` does not close `{}`", open.span.as_str());
                let help = format!("`{}` is at {}", open.span.as_str(), open.span);
                Err(Problem::error(title).at(&token.span, "here").help(help))
            }
            _ => {
                let title = format!("`{mark}` has no opening counterpart in this file");
                Err(Problem::error(title).at(&token.span, "here"))
            }
        }
    }

    fn leave_file(&self, end: &SourceSpan) -> Result<(), Problem> {
        let before = self
            .source_frames
            .last()
            .map_or(0, |frame| frame.outer_bracket_count);
        match self.open_brackets.last() {
            Some(open) if self.open_brackets.len() > before => {
                let title = format!("`{}` ends too early", end.file());
                let label = format!("`{}` is not closed", open.span.as_str());
                let help =
                    "check that the file is complete: each `{` needs its `}`, each `[` its `]`";
                Err(Problem::error(title).at(&open.span, label).help(help))
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
            && is_key_text(key)
        {
            let from = at + before.len() - key.len();
            keys.push(SourceSpan::new(text, from..from + key.len()));
        }
        at += line.len();
    }
    keys
}

/// Tests whether words may be a key: letters, and other characters found in the keys of drives.
fn is_key_text(words: &str) -> bool {
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
