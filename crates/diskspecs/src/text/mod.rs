//! Grammar of parameter files: parses text into a tree of blocks, lists and values.

mod lexer;
mod parser;
mod tree;

pub(crate) use lexer::SOURCE_BYTES_MAX;
pub(crate) use parser::parse;
pub(crate) use tree::{
    ParameterBlock, ParameterDocument, ParameterEntry, ParameterValue, TopologyComponent, ValueKind,
};

/// Returns the start of user text, for a message.
pub(crate) fn shorten_text(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
