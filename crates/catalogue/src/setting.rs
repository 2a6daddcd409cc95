//! Conversion of user settings into a layer of a system.

use std::sync::Arc;

use super::component::Component;
use super::value::{self, Content, Entry, Table, Value};
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::{Place, Text};
use diskperf_timeline::Setting;
use diskperf_timeline::units::parse_size;

/// Name of a setting in messages, in place of a file path.
pub(crate) const SETTING_NAME: &str = "--set";

/// Returns the settings as a layer of the system in the form of a system file. Of two settings with
/// the same path, the later one applies.
pub(crate) fn layer(settings: &[Setting], problems: &mut Vec<Problem>) -> Table {
    let mut root = Table::default();
    for setting in settings {
        let content = resolve_size_suffix(setting).to_string();
        let text = Arc::new(Text::new(SETTING_NAME.to_string(), content));
        let value = value::parse_setting(&text, setting.path.len() + 1);
        if let Err(problem) = insert(&mut root, &split_path(&setting.path), &text, value) {
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

/// Tests whether a key of `[drive]` is a drive number.
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
            return Err(conflicting_settings(&key));
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
        _ => Err(conflicting_settings(&key)),
    }
}

fn conflicting_settings(key: &Place) -> Problem {
    Problem::error(format!(
        "`{}` is set as a value and as a table",
        key.written()
    ))
    .at(key, "")
}
