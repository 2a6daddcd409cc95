//! Finding and loading runs.

use crate::Store;
use crate::documents;
use crate::error::{StoreError, StoreErrorKind};
use diskperf_timeline::{ProgramResult, Repetition, Run, RunState, World};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// What a list says of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeading {
    /// The run's id.
    pub id: String,
    /// When it started, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// The suite, or the program when it was run by itself.
    pub suite: String,
    /// The target as the user named it.
    pub target: String,
    /// Host or model.
    pub world: World,
    /// The user's own name for it.
    pub label: Option<String>,
    /// How far it came.
    pub state: RunState,
    /// How many results it has.
    pub results: u32,
    /// How many repetitions all its results have, the discarded ones included.
    pub repetitions: u32,
}

impl Store {
    /// The stored runs, the newest first, without loading what they measured.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Corrupt`] and [`StoreErrorKind::Malformed`].
    pub fn list(&self) -> Result<Vec<RunHeading>, StoreError> {
        self.reading(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, started_unix_ms, suite, target, world, label, state, error,
                     (SELECT count(*) FROM results WHERE run_id = id),
                     (SELECT count(*) FROM repetitions WHERE run_id = id)
                 FROM runs ORDER BY started_unix_ms DESC, rowid DESC",
            )?;
            let mut rows = statement.query([])?;
            let mut headings = Vec::new();
            while let Some(row) = rows.next()? {
                headings.push(heading(row)?);
            }
            Ok(headings)
        })
    }

    /// A whole run, as it was at one moment if it is still under way.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NoSuchRun`] (`id` is a full id: see
    /// [`Store::resolve`]), [`StoreErrorKind::Corrupt`] and
    /// [`StoreErrorKind::Malformed`].
    pub fn load(&self, id: &str) -> Result<Run, StoreError> {
        self.reading(|connection| {
            let mut run = run_row(connection, id)?;
            let mut statement = connection.prepare(
                "SELECT ordinal, document FROM results WHERE run_id = ?1 ORDER BY ordinal",
            )?;
            let mut rows = statement.query([id])?;
            while let Some(row) = rows.next()? {
                let ordinal = row.get(0)?;
                let place = || documents::place_of_result(id, ordinal);
                let mut result: ProgramResult = document(row, 1, place)?;
                result.repetitions = repetitions(connection, id, ordinal)?;
                run.results.push(result);
            }
            Ok(run)
        })
    }

    /// The id of the run that `text` names: a full id, the beginning of just
    /// one id, or `last`, the run that started last of those that have at
    /// least one repetition (so that neither a run under way that has measured
    /// nothing yet, nor one that failed at once, hides the one before it).
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NoSuchRun`], [`StoreErrorKind::NoLastRun`] and
    /// [`StoreErrorKind::Ambiguous`], which lists the candidates.
    pub fn resolve(&self, text: &str) -> Result<String, StoreError> {
        self.reading(|connection| match text {
            "last" => last(connection),
            _ => by_prefix(connection, text),
        })
    }
}

/// A run's own row: the run without its results.
pub(crate) fn run_row(connection: &Connection, id: &str) -> Result<Run, StoreErrorKind> {
    let mut statement = connection.prepare("SELECT document FROM runs WHERE id = ?1")?;
    let mut rows = statement.query([id])?;
    match rows.next()? {
        Some(row) => document(row, 0, || documents::place_of_run(id)),
        None => Err(StoreErrorKind::NoSuchRun { run: id.to_owned() }),
    }
}

fn repetitions(
    connection: &Connection,
    id: &str,
    ordinal: u32,
) -> Result<Vec<Repetition>, StoreErrorKind> {
    let mut statement = connection.prepare(
        "SELECT number, document FROM repetitions
         WHERE run_id = ?1 AND ordinal = ?2 ORDER BY number",
    )?;
    let mut rows = statement.query(params![id, ordinal])?;
    let mut repetitions = Vec::new();
    while let Some(row) = rows.next()? {
        let number = row.get(0)?;
        let place = || documents::place_of_repetition(id, ordinal, number);
        repetitions.push(document(row, 1, place)?);
    }
    Ok(repetitions)
}

/// The document in a column.
fn document<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    place: impl Fn() -> String,
) -> Result<T, StoreErrorKind> {
    let text = row
        .get_ref(column)?
        .as_str()
        .map_err(|error| StoreErrorKind::Malformed {
            place: place(),
            detail: error.to_string(),
        })?;
    documents::read(text, place)
}

fn heading(row: &Row<'_>) -> Result<RunHeading, StoreErrorKind> {
    let id: String = row.get(0)?;
    let started_unix_ms: i64 = row.get(1)?;
    let world: String = row.get(4)?;
    let state: String = row.get(6)?;
    let malformed = |column: &str, value: &str| StoreErrorKind::Malformed {
        place: documents::place_of_run(&id),
        detail: format!("its {column} is `{value}`"),
    };
    Ok(RunHeading {
        started_unix_ms: u64::try_from(started_unix_ms)
            .map_err(|_| malformed("start", &started_unix_ms.to_string()))?,
        suite: row.get(2)?,
        target: row.get(3)?,
        world: documents::world_of_column(&world).ok_or_else(|| malformed("world", &world))?,
        label: row.get(5)?,
        state: documents::state_of_columns(&state, row.get(7)?)
            .ok_or_else(|| malformed("state", &state))?,
        results: row.get(8)?,
        repetitions: row.get(9)?,
        id,
    })
}

fn last(connection: &Connection) -> Result<String, StoreErrorKind> {
    connection
        .query_row(
            "SELECT id FROM runs
             WHERE EXISTS (SELECT * FROM repetitions WHERE run_id = id)
             ORDER BY started_unix_ms DESC, rowid DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?
        .ok_or(StoreErrorKind::NoLastRun)
}

fn by_prefix(connection: &Connection, prefix: &str) -> Result<String, StoreErrorKind> {
    let mut statement = connection
        .prepare("SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id")?;
    let candidates: Vec<String> = statement
        .query_map([prefix], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    match candidates.as_slice() {
        [id] if !prefix.is_empty() => Ok(id.clone()),
        // A full id is found even where it begins another one.
        [id, ..] if id == prefix => Ok(id.clone()),
        [_, _, ..] if !prefix.is_empty() => Err(StoreErrorKind::Ambiguous {
            prefix: prefix.to_owned(),
            candidates,
        }),
        _ => Err(StoreErrorKind::NoSuchRun {
            run: prefix.to_owned(),
        }),
    }
}
