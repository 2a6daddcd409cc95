//! JSON output in fio's format: fixed member order, `"key" : value`, six decimals.

use std::fmt::Write;

/// JSON value in fio's output.
pub(super) enum Node {
    Integer(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// Creates an object from fixed names and values.
pub(super) fn object<const N: usize>(members: [(&str, Node); N]) -> Vec<(String, Node)> {
    let members = members.into_iter();
    members
        .map(|(name, node)| (name.to_owned(), node))
        .collect()
}

/// Formats a JSON value as text.
pub(super) fn text(node: &Node) -> String {
    let mut text = String::new();
    write(&mut text, node, 0);
    text
}

fn write(text: &mut String, node: &Node, depth: usize) {
    match node {
        Node::Integer(value) => write!(text, "{value}").expect("a string"),
        // There is no way to write these in JSON.
        Node::Float(value) if !value.is_finite() => text.push_str("0.000000"),
        Node::Float(value) => write!(text, "{value:.6}").expect("a string"),
        Node::Text(value) => text.push_str(&quoted(value)),
        Node::List(items) => {
            let items = items.iter().map(|item| (String::new(), item));
            between(text, ['[', ']'], depth, items);
        }
        Node::Object(members) => {
            let members = members
                .iter()
                .map(|(name, node)| (quoted(name) + " : ", node));
            between(text, ['{', '}'], depth, members);
        }
    }
}

fn between<'n>(
    text: &mut String,
    brackets: [char; 2],
    depth: usize,
    members: impl Iterator<Item = (String, &'n Node)>,
) {
    text.push(brackets[0]);
    for (at, (name, node)) in members.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, "{comma}\n{:1$}{name}", "", 2 * (depth + 1)).expect("a string");
        write(text, node, depth + 1);
    }
    write!(text, "\n{:1$}{2}", "", 2 * depth, brackets[1]).expect("a string");
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
