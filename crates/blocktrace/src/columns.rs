//! Mapping from the columns of a table to the fields of a request, as a user or the table's heading
//! names them.

use crate::form::TimeUnit;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnPosition {
    /// Column number, counted from 1.
    Index(usize),
    Heading(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredColumn<C, U> {
    pub(crate) column: C,
    pub(crate) unit: U,
}

/// Bytes of one unit of an address or a length.
type UnitBytes = u64;

/// Columns that make up a request, by their numbers from 1 or by their names in the heading:
/// `time_us=1,op=3,offset=4,length=5`, `time_us=Timestamp,op=Type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumns<C = NamedColumn> {
    pub(crate) time: MeasuredColumn<C, TimeUnit>,
    pub(crate) operation: C,
    pub(crate) offset: MeasuredColumn<C, UnitBytes>,
    pub(crate) length: MeasuredColumn<C, UnitBytes>,
    pub(crate) response: Option<MeasuredColumn<C, TimeUnit>>,
    pub(crate) device: Option<C>,
}

/// Column as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedColumn(pub(crate) ColumnPosition);

impl<C> CsvColumns<C> {
    /// Converts the position of each column by `find`.
    ///
    /// # Errors
    ///
    /// Returns the error of the first column that `find` rejects.
    fn try_map<D>(
        &self,
        mut find: impl FnMut(&C) -> Result<D, String>,
    ) -> Result<CsvColumns<D>, String> {
        Ok(CsvColumns {
            time: self.time.try_map_column(&mut find)?,
            operation: find(&self.operation)?,
            offset: self.offset.try_map_column(&mut find)?,
            length: self.length.try_map_column(&mut find)?,
            response: match &self.response {
                Some(response) => Some(response.try_map_column(&mut find)?),
                None => None,
            },
            device: self.device.as_ref().map(find).transpose()?,
        })
    }
}

impl<C, U: Copy> MeasuredColumn<C, U> {
    fn try_map_column<D>(
        &self,
        find: &mut impl FnMut(&C) -> Result<D, String>,
    ) -> Result<MeasuredColumn<D, U>, String> {
        Ok(MeasuredColumn {
            column: find(&self.column)?,
            unit: self.unit,
        })
    }
}

impl CsvColumns {
    pub(crate) fn needs_heading(&self) -> bool {
        let mut have = false;
        let found = self.try_map(|NamedColumn(column)| {
            have |= matches!(column, ColumnPosition::Heading(_));
            Ok(())
        });
        have && found.is_ok()
    }

    /// Returns the column numbers, from 0, with the names looked up in a heading.
    ///
    /// # Errors
    ///
    /// Fails for a name that the heading lacks.
    pub(crate) fn resolve_indices(&self, heading: &[&str]) -> Result<CsvColumns<usize>, String> {
        self.try_map(|NamedColumn(column)| match column {
            ColumnPosition::Index(number) => Ok(number - 1),
            ColumnPosition::Heading(name) => heading
                .iter()
                .position(|one| one.eq_ignore_ascii_case(name))
                .ok_or_else(|| {
                    format!(
                        "the heading has no column `{}`; its columns are {}",
                        name.escape_debug(),
                        format_heading(heading)
                    )
                }),
        })
    }

    /// Recognises the columns of a heading by usual names such as `time_us,op,offset,length` and
    /// synonyms. Other columns are ignored. Returns `None` if a needed column is missing or appears
    /// twice.
    pub(crate) fn from_heading(heading: &[&str]) -> Option<Self> {
        let mut known: Vec<(String, usize)> = Vec::new();
        for (name, number) in heading.iter().zip(1..) {
            let Some(usual) = suggest_column_option(&name.to_ascii_lowercase()) else {
                continue;
            };
            if known.iter().any(|(one, _)| *one == usual) {
                return None;
            }
            known.push((usual, number));
        }
        let named = known
            .iter()
            .map(|(name, number)| format!("{name}={number}"));
        named.collect::<Vec<_>>().join(",").parse().ok()
    }
}

/// Returns the `--columns` name of a heading's column, such as `time_us` for `timestamp_us`.
fn suggest_column_option(name: &str) -> Option<String> {
    const UNITS: [&str; 4] = ["s", "ms", "us", "ns"];
    const TIME_SUFFIXES: [(&str, &str); 4] = [
        ("time_", "time_"),
        ("timestamp_", "time_"),
        ("response_", "response_"),
        ("latency_", "response_"),
    ];
    let of_time = TIME_SUFFIXES.iter().find_map(|(prefix, usual)| {
        let unit = name.strip_prefix(prefix)?;
        UNITS.contains(&unit).then(|| format!("{usual}{unit}"))
    });
    let of_place = || match name {
        "op" | "operation" | "opcode" => Some("op"),
        "offset" | "offset_bytes" => Some("offset"),
        "sector" | "lba" => Some("sector"),
        "length" | "length_bytes" | "size" | "size_bytes" | "bytes" => Some("length"),
        "sectors" => Some("sectors"),
        "device" => Some("device"),
        _ => None,
    };
    of_time.or_else(|| of_place().map(str::to_owned))
}

/// Formats the names of a heading for a message, at most 20 of them.
fn format_heading(heading: &[&str]) -> String {
    const LISTED_NAMES_MAX: usize = 20;
    let listed = &heading[..heading.len().min(LISTED_NAMES_MAX)];
    let more = if heading.len() > LISTED_NAMES_MAX {
        ", ..."
    } else {
        ""
    };
    let names: Vec<String> = listed
        .iter()
        .map(|name| name.escape_debug().to_string())
        .collect();
    format!("{}{more}", names.join(", "))
}

impl FromStr for CsvColumns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut time, mut operation, mut offset, mut length) = (None, None, None, None);
        let (mut response, mut device) = (None, None);
        for part in split_parts(text) {
            let (name, place) = part.split_once('=').ok_or_else(|| usage_error(part))?;
            let column = parse_column(part, place.trim())?;
            let unit = |prefix: &str| name.trim().strip_prefix(prefix).map(TimeUnit::from_str);
            let bytes = |column, unit| Some(MeasuredColumn { column, unit });
            match name.trim() {
                "op" => operation = Some(column),
                "offset" => offset = bytes(column, 1),
                "sector" => offset = bytes(column, 512),
                "length" => length = bytes(column, 1),
                "sectors" => length = bytes(column, 512),
                "device" => device = Some(column),
                _ => match (unit("time_"), unit("response_")) {
                    (Some(unit), _) => {
                        let unit = unit?;
                        time = Some(MeasuredColumn { column, unit });
                    }
                    (_, Some(unit)) => {
                        let unit = unit?;
                        response = Some(MeasuredColumn { column, unit });
                    }
                    (None, None) => return Err(usage_error(part)),
                },
            }
        }
        let missing = |what: &str| format!("`{text}` lacks the column {what}; {USAGE}");
        Ok(Self {
            time: time.ok_or_else(|| missing("time"))?,
            operation: operation.ok_or_else(|| missing("op"))?,
            offset: offset.ok_or_else(|| missing("offset or sector"))?,
            length: length.ok_or_else(|| missing("length or sectors"))?,
            response,
            device,
        })
    }
}

/// Splits the text at commas, or at blanks if it has no comma.
fn split_parts(text: &str) -> Vec<&str> {
    match text.contains(',') {
        true => text.split(',').collect(),
        false => text.split_whitespace().collect(),
    }
}

fn parse_column(part: &str, place: &str) -> Result<NamedColumn, String> {
    let is_number = place.bytes().all(|byte| byte.is_ascii_digit());
    Ok(NamedColumn(match place {
        "" => return Err(usage_error(part)),
        place if is_number => match place.parse().map_err(|_| usage_error(part))? {
            0 => return Err(format!("`{part}`: column numbers start at 1")),
            number => ColumnPosition::Index(number),
        },
        name => ColumnPosition::Heading(name.to_owned()),
    }))
}

const USAGE: &str = "required columns are time_UNIT, op, offset or sector, and length or sectors; \
optional ones are response_UNIT and device; UNIT is s, ms, us or ns; give each as a column \
number or a name of the heading, such as time_us=1,op=3,offset=4,length=5 or \
time_us=Timestamp,op=Type,offset=Offset,length=Size";

fn usage_error(part: &str) -> String {
    format!("`{part}` is not a column; {USAGE}")
}
