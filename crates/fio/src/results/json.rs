//! JSON output in fio's format: fixed member order, `"key" : value`, six decimals.

use std::fmt::Write;

/// JSON value in fio's output.
pub(super) enum JsonNode {
    Integer(u64),
    Float(f64),
    Text(String),
    List(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
}

/// Creates an object from fixed names and values.
pub(super) fn object_members<const N: usize>(
    members: [(&str, JsonNode); N],
) -> Vec<(String, JsonNode)> {
    let members = members.into_iter();
    members
        .map(|(name, node)| (name.to_owned(), node))
        .collect()
}

pub(super) fn to_text(node: &JsonNode) -> String {
    let mut text = String::new();
    write_node(&mut text, node, 0);
    text
}

fn write_node(text: &mut String, node: &JsonNode, depth: usize) {
    match node {
        JsonNode::Integer(value) => write!(text, "{value}").expect("a string"),
        // There is no way to write these in JSON.
        JsonNode::Float(value) if !value.is_finite() => text.push_str("0.000000"),
        JsonNode::Float(value) => write!(text, "{value:.6}").expect("a string"),
        JsonNode::Text(value) => text.push_str(&quote_text(value)),
        JsonNode::List(items) => {
            let items = items.iter().map(|item| (String::new(), item));
            write_members(text, ['[', ']'], depth, items);
        }
        JsonNode::Object(members) => {
            let members = members
                .iter()
                .map(|(name, node)| (quote_text(name) + " : ", node));
            write_members(text, ['{', '}'], depth, members);
        }
    }
}

fn write_members<'n>(
    text: &mut String,
    brackets: [char; 2],
    depth: usize,
    members: impl Iterator<Item = (String, &'n JsonNode)>,
) {
    text.push(brackets[0]);
    for (at, (name, node)) in members.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, "{comma}\n{:1$}{name}", "", 2 * (depth + 1)).expect("a string");
        write_node(text, node, depth + 1);
    }
    write!(text, "\n{:1$}{2}", "", 2 * depth, brackets[1]).expect("a string");
}

fn quote_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
