//! A `--set PATH=VALUE`.

use std::sync::Arc;

use super::component::Component;
use super::place::{Place, Text};
use super::problem::{Errors, Problem};
use super::value::{self, Content, Entry, Table, Value};

/// One change to a system: `filesystem.block_bytes=4096` changes a parameter,
/// `drive=capricorn` puts another entry of the catalogue in a component's
/// place, `drive.2=capricorn` in one drive's, and `drives=1` changes how many
/// are configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The path: `filesystem.block_bytes`.
    pub path: String,
    /// The value as it was written: `4096`.
    pub text: String,
}

/// What messages call a setting's text, where a file would have its path.
pub(crate) const SETTING_NAME: &str = "--set";

impl Setting {
    /// A setting of a path to a value, as TOML or as a bare word.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// A setting from the argument `PATH=VALUE`.
    ///
    /// # Errors
    ///
    /// No `=`, or an empty path or value.
    pub fn parse(argument: &str) -> Result<Setting, Errors> {
        let wrong = |title: &str| {
            let text = Arc::new(Text::new(SETTING_NAME.to_string(), argument.to_string()));
            let place = Place::new(&text, 0..argument.len());
            let problem = Problem::new(title)
                .at(&place, "")
                .help("write PATH=VALUE, as in `filesystem.block_bytes=4096` or `drive=capricorn`");
            Errors::none_of(vec![problem])
        };
        let Some((path, text)) = argument.split_once('=') else {
            wrong("a setting without `=`")?;
            unreachable!("a list with a problem is an error");
        };
        let (path, text) = (path.trim(), text.trim());
        if path.is_empty() || path.split('.').any(|part| part.trim().is_empty()) {
            wrong("a setting without a path")?;
        }
        if text.is_empty() {
            wrong("a setting without a value")?;
        }
        Ok(Setting {
            path: path.to_string(),
            text: text.to_string(),
        })
    }
}

/// The settings as one more layer of the system, in the shape of a system file.
/// Of two settings with the same path, the later one counts.
pub(crate) fn layer(settings: &[Setting], problems: &mut Vec<Problem>) -> Table {
    let mut root = Table::default();
    for setting in settings {
        let content = format!("{}={}", setting.path, setting.text);
        let text = Arc::new(Text::new(SETTING_NAME.to_string(), content));
        let value = value::parse_setting(&text, setting.path.len() + 1);
        if let Err(problem) = insert(&mut root, &spelt_out(&setting.path), &text, value) {
            problems.push(problem);
        }
    }
    root
}

/// The path in the terms of a system file. The numbers are where each part
/// ends in the setting's own text, for the caret.
fn spelt_out(path: &str) -> Vec<(String, usize)> {
    let mut parts = Vec::new();
    let mut end = 0;
    for part in path.split('.') {
        end += part.len();
        parts.push((part.to_string(), end));
        end += 1;
    }
    let drive = Component::Drive.name();
    match parts.as_slice() {
        [(name, end)] if Component::of_name(name).is_some() => {
            vec![("components".to_string(), *end), (name.clone(), *end)]
        }
        [(name, _), (number, end)] if name == drive && is_number(number) => {
            let component = ("component".to_string(), *end);
            [parts.clone(), vec![component]].concat()
        }
        _ => parts,
    }
}

/// Whether a key of `[drive]` is the number of a drive.
pub(crate) fn is_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit())
}

fn insert(
    table: &mut Table,
    path: &[(String, usize)],
    text: &Arc<Text>,
    value: Value,
) -> Result<(), Problem> {
    let Some(((name, end), rest)) = path.split_first() else {
        return Ok(());
    };
    let key = Place::new(text, 0..*end);
    if rest.is_empty() {
        if let Some(earlier) = table.get(name)
            && let Content::Table(_) = earlier.value.content
        {
            return Err(both(&key));
        }
        table.entries.insert(name.clone(), Entry { key, value });
        return Ok(());
    }
    let entry = table.entries.entry(name.clone()).or_insert_with(|| Entry {
        key: key.clone(),
        value: Value {
            content: Content::Table(Table::default()),
            place: key.clone(),
        },
    });
    match &mut entry.value.content {
        Content::Table(inner) => insert(inner, rest, text, value),
        _ => Err(both(&key)),
    }
}

fn both(key: &Place) -> Problem {
    Problem::new(format!(
        "`{}` is set as a value and as a table",
        key.written()
    ))
    .at(key, "")
}
