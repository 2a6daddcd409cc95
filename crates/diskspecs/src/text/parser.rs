//! Parser of parameter files: tokens to a syntax tree.

use diskperf_diagnostics::{Problem, SourceSpan};
use std::collections::HashSet;

use super::lexer::{Token, TokenKind, Tokenizer};
use super::shorten_text;
use super::tree::{
    BlockInstances, ParameterBlock, ParameterDocument, ParameterEntry, ParameterValue,
    TopologyComponent, ValueKind,
};
use crate::files::SpecificationFiles;

const WARNINGS_MAX: usize = 50;

/// Parses a file with all included files.
///
/// # Errors
///
/// First syntax error.
pub(crate) fn parse(
    files: &SpecificationFiles,
    name: &str,
    content: String,
) -> Result<ParameterDocument, Problem> {
    let mut parser = ParameterParser {
        lexer: Tokenizer::new(files, name, content)?,
        lookahead: None,
        document: ParameterDocument {
            blocks: Vec::new(),
            instances: Vec::new(),
            topology_roots: Vec::new(),
            warnings: Vec::new(),
            commented_keys: Vec::new(),
        },
    };
    parser.parse_statements()?;
    let commented = parser.lexer.into_commented_keys();
    Ok(ParameterDocument {
        commented_keys: commented,
        ..parser.document
    })
}

struct ParameterParser<'f> {
    lexer: Tokenizer<'f>,
    /// Token that was read ahead. It is empty wherever `source` is allowed.
    lookahead: Option<Token>,
    document: ParameterDocument,
}

impl ParameterParser<'_> {
    fn next_token(&mut self) -> Result<Token, Problem> {
        match self.lookahead.take() {
            Some(token) => Ok(token),
            None => self.lexer.next_token(),
        }
    }

    fn peek_token(&mut self) -> Result<&Token, Problem> {
        let token = self.next_token()?;
        Ok(self.lookahead.insert(token))
    }

    fn expect(&mut self, kind: TokenKind, what: &str) -> Result<SourceSpan, Problem> {
        let token = self.next_token()?;
        match token.kind == kind {
            true => Ok(token.span),
            false => Err(unexpected_token(&token, what)),
        }
    }

    /// Returns the next token after processing `source FILE` statements.
    fn expect_item(&mut self) -> Result<Token, Problem> {
        loop {
            let token = self.next_token()?;
            if token.kind != TokenKind::Word || token.span.as_str() != "source" {
                return Ok(token);
            }
            let name = self.expect(TokenKind::Word, "the name of a file")?;
            self.lexer.include_source(&name)?;
        }
    }

    fn parse_statements(&mut self) -> Result<(), Problem> {
        let mut names = HashSet::new();
        loop {
            let token = self.expect_item()?;
            match (token.kind, token.span.as_str()) {
                (TokenKind::End, _) => return Ok(()),
                (TokenKind::Word, "instantiate") => self.parse_instantiate()?,
                (TokenKind::Word, "topology") => {
                    let kind = self.expect(TokenKind::Word, "the type of a component")?;
                    let component = self.parse_component(kind)?;
                    self.document.topology_roots.push(component);
                }
                (TokenKind::Word, _) => {
                    let line = token.span.line_number();
                    let block = self.parse_block(token.span);
                    let block = block.map_err(|problem| match self.document.blocks.is_empty() {
                        true => explain_other_format(problem, line),
                        false => problem,
                    })?;
                    match block
                        .name
                        .as_ref()
                        .filter(|name| !names.insert(name.as_str().to_owned()))
                    {
                        Some(name) => self.report_duplicate("this name", &name.clone()),
                        None => self.document.blocks.push(block),
                    }
                }
                _ => {
                    return Err(unexpected_token(
                        &token,
                        "a block, as in `dm_disk NAME { .. }`",
                    ));
                }
            }
        }
    }

    fn report_duplicate(&mut self, what: &str, place: &SourceSpan) {
        if self.document.warnings.len() < WARNINGS_MAX {
            let title = format!("duplicate definition of `{}`", shorten_text(place.as_str()));
            let label = format!("{what} was defined before; the first definition is used");
            let warning = Problem::warning(title).at(place, label);
            self.document.warnings.push(warning);
        }
    }

    fn parse_instantiate(&mut self) -> Result<(), Problem> {
        self.expect(TokenKind::OpenList, "`[` and names")?;
        let names = self.parse_list()?;
        let wanted = "`as` and the name of a block";
        let as_place = self.expect(TokenKind::Word, wanted)?;
        if as_place.as_str() != "as" {
            let kind = TokenKind::Word;
            return Err(unexpected_token(
                &Token {
                    kind,
                    span: as_place,
                },
                wanted,
            ));
        }
        let of = self.expect(TokenKind::Word, "the name of a block")?;
        self.document.instances.push(BlockInstances {
            names,
            block_name: of,
        });
        Ok(())
    }

    fn parse_component(&mut self, kind: SourceSpan) -> Result<TopologyComponent, Problem> {
        let name = self.expect(TokenKind::Word, "the name of a component")?;
        self.expect(TokenKind::OpenList, "`[` and what hangs on the component")?;
        let mut parts = Vec::new();
        loop {
            let token = self.next_token()?;
            match token.kind {
                TokenKind::CloseList => {
                    return Ok(TopologyComponent {
                        kind,
                        name,
                        attached_components: parts,
                    });
                }
                TokenKind::Comma => {}
                TokenKind::Word => parts.push(self.parse_component(token.span)?),
                _ => return Err(unexpected_token(&token, "a component or `]`")),
            }
        }
    }

    fn parse_block(&mut self, kind: SourceSpan) -> Result<ParameterBlock, Problem> {
        let token = self.next_token()?;
        let name = match token.kind {
            TokenKind::OpenBlock => None,
            TokenKind::Word => {
                self.expect(TokenKind::OpenBlock, "`{` and the keys of the block")?;
                Some(token.span)
            }
            _ => return Err(unexpected_token(&token, "the name of a block or `{`")),
        };
        let entries = self.parse_entries()?;
        Ok(ParameterBlock {
            kind,
            name,
            entries,
        })
    }

    fn parse_entries(&mut self) -> Result<Vec<ParameterEntry>, Problem> {
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        loop {
            let token = self.expect_item()?;
            match token.kind {
                TokenKind::CloseBlock => return Ok(entries),
                TokenKind::Word => {
                    let entry = self.parse_entry(token.span)?;
                    match keys.insert(entry.key.clone()) {
                        true => entries.push(entry),
                        false => self.report_duplicate("this key", &entry.key_span),
                    }
                }
                _ => return Err(unexpected_token(&token, "a key or `}`")),
            }
            let token = self.next_token()?;
            match token.kind {
                TokenKind::Comma => {}
                TokenKind::CloseBlock => return Ok(entries),
                _ => return Err(unexpected_token(&token, "`,` or `}`")),
            }
        }
    }

    fn parse_entry(&mut self, first: SourceSpan) -> Result<ParameterEntry, Problem> {
        let mut key = first.as_str().to_owned();
        loop {
            let token = self.next_token()?;
            match token.kind {
                TokenKind::Equals => break,
                TokenKind::Word => {
                    key.push(' ');
                    key.push_str(token.span.as_str());
                }
                _ => return Err(unexpected_token(&token, "`=` and a value")),
            }
        }
        let key_place = first.subspan(0..key.len());
        let value = self.parse_value()?;
        Ok(ParameterEntry {
            key,
            key_span: key_place,
            value,
        })
    }

    fn parse_value(&mut self) -> Result<ParameterValue, Problem> {
        let token = self.expect_item()?;
        self.parse_value_from(token)
    }

    fn parse_value_from(&mut self, token: Token) -> Result<ParameterValue, Problem> {
        let place = token.span;
        let kind = match token.kind {
            TokenKind::OpenList => ValueKind::List(self.parse_list()?),
            TokenKind::Word => match self.peek_token()? {
                Token {
                    kind: TokenKind::OpenBlock,
                    ..
                } => ValueKind::Block(self.parse_block(place.clone())?.into()),
                Token {
                    kind: TokenKind::Word,
                    span: dots,
                } if dots.as_str() == ".." => {
                    self.next_token()?;
                    ValueKind::Range(self.expect(TokenKind::Word, "the last name of a range")?)
                }
                Token {
                    kind: TokenKind::Word,
                    ..
                } => {
                    let name = self.next_token()?.span;
                    let open = self.expect(TokenKind::OpenBlock, "`{` and the keys of a block");
                    let help =
                        format!("is a `,` missing after `{}`?", shorten_text(place.as_str()));
                    open.map_err(|problem| problem.help(help))?;
                    let entries = self.parse_entries()?;
                    let (kind, name) = (place.clone(), Some(name));
                    ValueKind::Block(Box::new(ParameterBlock {
                        kind,
                        name,
                        entries,
                    }))
                }
                _ => parse_scalar_kind(&place)?,
            },
            _ => {
                let kind = token.kind;
                return Err(unexpected_token(&Token { kind, span: place }, "a value"));
            }
        };
        Ok(ParameterValue { kind, span: place })
    }

    fn parse_list(&mut self) -> Result<Vec<ParameterValue>, Problem> {
        let mut values = Vec::new();
        loop {
            let token = self.expect_item()?;
            if token.kind == TokenKind::CloseList {
                return Ok(values);
            }
            values.push(self.parse_value_from(token)?);
            let token = self.next_token()?;
            match token.kind {
                TokenKind::Comma => {}
                TokenKind::CloseList => return Ok(values),
                _ => return Err(unexpected_token(&token, "`,` or `]`")),
            }
        }
    }
}

/// Adds advice to an error in the first line of the first block, which suggests a file of another
/// kind.
fn explain_other_format(problem: Problem, line: usize) -> Problem {
    match problem.span().map(SourceSpan::line_number) == Some(line) {
        true => problem.help(
            "use a DiskSim parameter file, such as NAME.diskspecs; its trace is for `--calibrate` and `diskperf replay`",
        ),
        false => problem,
    }
}

fn unexpected_token(token: &Token, wanted: &str) -> Problem {
    let title = match token.kind {
        TokenKind::End => "the file ends too early".to_owned(),
        _ => format!("`{}` is unexpected here", shorten_text(token.span.as_str())),
    };
    Problem::error(title).at(&token.span, format!("expected {wanted}"))
}

/// Parses a number, or returns a word if the text is not a number.
fn parse_scalar_kind(place: &SourceSpan) -> Result<ValueKind, Problem> {
    let text = place.as_str();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let hexadecimal = hexadecimal.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let too_large = |what: &str| Problem::error("the number is too large").at(place, what);
    if let Some(hex) = hexadecimal.filter(|hex| !hex.is_empty()) {
        let number = i64::from_str_radix(hex, 16);
        let number = number.map_err(|_| too_large("it exceeds 63 bits"))?;
        return Ok(ValueKind::Integer(if negative { -number } else { number }));
    }
    if all_digits(digits) {
        let number = text.parse();
        return number
            .map(ValueKind::Integer)
            .map_err(|_| too_large("it exceeds 63 bits"));
    }
    let mantissa = digits.split(['e', 'E']).next().unwrap_or(digits);
    let parts = mantissa.split_once('.');
    if parts.is_some_and(|(whole, part)| all_digits(whole) && all_digits(part))
        && let Ok(number) = text.parse::<f64>()
    {
        return match number.is_finite() {
            true => Ok(ValueKind::Real(number)),
            false => Err(too_large("it exceeds the range of floating-point numbers")),
        };
    }
    Ok(ValueKind::Word)
}
