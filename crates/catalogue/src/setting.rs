//! Conversion of user settings into a layer of a system.

use std::sync::Arc;

use super::component::Component;
use super::value::{self, Table, TableEntry, Value, ValueContent};
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::{SourceSpan, Text};
use diskperf_timeline::Setting;
use diskperf_timeline::units::parse_size;

/// Name of a setting in messages, in place of a file path.
pub(crate) const SETTINGS_TEXT_NAME: &str = "--set";

/// Returns the settings as a layer of the system in the form of a system file. Of two settings with
/// the same path, the later one applies.
pub(crate) fn to_layer(settings: &[Setting], problems: &mut Vec<Problem>) -> Table {
    let mut root = Table::default();
    for setting in settings {
        let content = resolve_size_suffix(setting).to_string();
        let text = Arc::new(Text::new(SETTINGS_TEXT_NAME.to_string(), content));
        let value = value::parse_setting_value(&text, setting.path.len() + 1);
        if let Err(problem) = insert_value(&mut root, &split_path(&setting.path), &text, value) {
            problems.push(problem);
        }
    }
    root
}

/// Returns the setting with a plain number if its key counts bytes and its value has a size suffix,
/// as in `filesystem.block_bytes=8K`.
fn resolve_size_suffix(setting: &Setting) -> Setting {
    let key = setting.path.rsplit('.').next().unwrap_or_default();
    let is_of_bytes = key.split('_').any(|word| word == "bytes");
    match parse_size(&setting.value_text) {
        Ok(bytes) if is_of_bytes => Setting::new(&setting.path, &bytes.to_string()),
        _ => setting.clone(),
    }
}

/// Splits a setting's path into the parts of a system file. The numbers are the ends of the parts
/// in the setting's text, for error markers.
fn split_path(path: &str) -> Vec<(String, usize)> {
    let mut parts = Vec::new();
    let mut end = 0;
    for part in path.split('.') {
        end += part.len();
        parts.push((part.to_string(), end));
        end += 1;
    }
    let drive = Component::Drive.name();
    match parts.as_slice() {
        [(name, end)] if Component::from_name(name).is_some() => {
            vec![("components".to_string(), *end), (name.clone(), *end)]
        }
        [(name, _), (number, end)] if name == drive && is_drive_number(number) => {
            let component = ("component".to_string(), *end);
            [parts.clone(), vec![component]].concat()
        }
        _ => parts,
    }
}

pub(crate) fn is_drive_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit())
}

fn insert_value(
    table: &mut Table,
    path: &[(String, usize)],
    text: &Arc<Text>,
    value: Value,
) -> Result<(), Problem> {
    let Some(((name, end), rest)) = path.split_first() else {
        return Ok(());
    };
    let key = SourceSpan::new(text, 0..*end);
    if rest.is_empty() {
        if let Some(earlier) = table.get(name)
            && let ValueContent::Table(_) = earlier.value.value_content
        {
            return Err(conflicting_settings(&key));
        }
        table.entries.insert(
            name.clone(),
            TableEntry {
                key_span: key,
                value,
            },
        );
        return Ok(());
    }
    let entry = table
        .entries
        .entry(name.clone())
        .or_insert_with(|| TableEntry {
            key_span: key.clone(),
            value: Value {
                value_content: ValueContent::Table(Table::default()),
                span: key.clone(),
            },
        });
    match &mut entry.value.value_content {
        ValueContent::Table(inner) => insert_value(inner, rest, text, value),
        _ => Err(conflicting_settings(&key)),
    }
}

fn conflicting_settings(key: &SourceSpan) -> Problem {
    Problem::error(format!(
        "`{}` is set as a value and as a table",
        key.as_str()
    ))
    .at(key, "")
}
