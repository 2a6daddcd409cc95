//! Finding and loading runs.

use crate::Store;
use crate::documents;
use crate::error::{StoreError, StoreErrorKind};
use diskperf_timeline::check::LONGEST_ID;
use diskperf_timeline::units::PAST_CALENDAR_MS;
use diskperf_timeline::{ProgramResult, Repetition, Run, RunState, World};
use rusqlite::{Connection, Row, Rows, params};

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
    /// On real storage the absolute paths that were measured; none of a run that keeps none.
    pub places: Vec<String>,
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

/// A row among the runs that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRun {
    /// SQLite's number of the row, by which it can be removed.
    pub row: i64,
    /// What stands in place of its id, as far as that is text.
    pub id: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Store {
    /// The stored runs, the newest first, without loading what they measured.
    /// Rows that are no run are left to [`Store::damaged`].
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Corrupt`].
    pub fn list(&self) -> Result<Vec<RunHeading>, StoreError> {
        self.reading(|connection| {
            let mut found = Vec::new();
            for row in rows_of_runs(connection)? {
                if let Ok(heading) = heading(connection, row)? {
                    found.push((heading.started_unix_ms, row, heading));
                }
            }
            found.sort_by_key(|(started_unix_ms, row, _)| (*started_unix_ms, *row));
            Ok(found.into_iter().rev().map(|(_, _, one)| one).collect())
        })
    }

    /// The rows among the runs that are none.
    ///
    /// # Errors
    ///
    /// Those of [`Store::list`].
    pub fn damaged(&self) -> Result<Vec<DamagedRun>, StoreError> {
        self.reading(|connection| {
            let mut found = Vec::new();
            for row in rows_of_runs(connection)? {
                found.extend(heading(connection, row)?.err());
            }
            Ok(found)
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
            let malformed = |detail: String| StoreErrorKind::Malformed {
                place: documents::place_of_run(id),
                detail,
            };
            run.check()
                .map_err(|impossible| malformed(impossible.to_string()))?;
            match run.id == id {
                true => Ok(run),
                false => Err(malformed(format!(
                    "its document is that of run `{}`",
                    run.id
                ))),
            }
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

/// The numbers of all rows among the runs. Nothing else of them is looked at,
/// which could be anything.
fn rows_of_runs(connection: &Connection) -> Result<Vec<i64>, StoreErrorKind> {
    let mut statement = connection.prepare("SELECT rowid FROM runs NOT INDEXED")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What a list says of the run in this row, or what is wrong with it. A damaged
/// file is the only error.
fn heading(
    connection: &Connection,
    row: i64,
) -> Result<Result<RunHeading, DamagedRun>, StoreErrorKind> {
    match whole_heading(connection, row) {
        Ok(heading) => Ok(Ok(heading)),
        Err(StoreErrorKind::Malformed { detail, .. }) => Ok(Err(DamagedRun {
            row,
            id: id_of_row(connection, row),
            problem: detail,
        })),
        Err(error) => Err(error),
    }
}

fn whole_heading(connection: &Connection, row: i64) -> Result<RunHeading, StoreErrorKind> {
    let mut statement = connection.prepare_cached(
        "SELECT id, started_unix_ms, suite, target, world, label, state, error,
             (SELECT count(*) FROM results WHERE run_id = id),
             (SELECT count(*) FROM repetitions WHERE run_id = id),
             CASE WHEN world = 'host' AND json_valid(document) THEN
                 (SELECT json_group_array(json_extract(value, '$.path'))
                  FROM json_each(document, '$.environment.places'))
             END
         FROM runs WHERE rowid = ?1",
    )?;
    let mut rows = statement.query([row])?;
    let Some(row) = rows.next()? else {
        return Err(malformed("its row is gone".to_owned()));
    };
    let started_unix_ms: i64 = row.get(1)?;
    let world: String = row.get(4)?;
    let state: String = row.get(6)?;
    let places: Option<String> = row.get(10)?;
    Ok(RunHeading {
        id: row.get(0)?,
        started_unix_ms: u64::try_from(started_unix_ms)
            .ok()
            .filter(|started| *started < PAST_CALENDAR_MS)
            .ok_or_else(|| {
                malformed(format!(
                    "its start is `{started_unix_ms}`, which is no moment from 1970 to 9999"
                ))
            })?,
        suite: row.get(2)?,
        target: row.get(3)?,
        // What is wrong with the document is said by whoever needs all of it.
        places: places
            .and_then(|places| serde_json::from_str(&places).ok())
            .unwrap_or_default(),
        world: documents::world_of_column(&world)
            .ok_or_else(|| malformed(format!("its world is `{world}`")))?,
        label: row.get(5)?,
        state: documents::state_of_columns(&state, row.get(7)?)
            .ok_or_else(|| malformed(format!("its state is `{state}`")))?,
        results: row.get(8)?,
        repetitions: row.get(9)?,
    })
}

fn malformed(detail: String) -> StoreErrorKind {
    StoreErrorKind::Malformed {
        place: "a run".to_owned(),
        detail,
    }
}

/// What stands in the place of an id; nothing where that is not even text.
fn id_of_row(connection: &Connection, row: i64) -> String {
    let text = connection.query_row(
        "SELECT CAST(substr(id, 1, 64) AS BLOB) FROM runs WHERE rowid = ?1",
        [row],
        |row| row.get::<_, Vec<u8>>(0),
    );
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

/// The newest run with a repetition. One that starts past the calendar is none,
/// and would be the newest for ever.
fn last(connection: &Connection) -> Result<String, StoreErrorKind> {
    let mut statement = connection.prepare(
        "SELECT id FROM runs
         WHERE CASE WHEN octet_length(id) <= ?2 AND started_unix_ms BETWEEN 0 AND ?1
             THEN EXISTS (SELECT * FROM repetitions WHERE run_id = id) END
         ORDER BY started_unix_ms DESC, rowid DESC",
    )?;
    let rows = statement.query(params![PAST_CALENDAR_MS as i64 - 1, LONGEST_ID as i64])?;
    let newest = ids(rows)?.into_iter().next();
    newest.ok_or(StoreErrorKind::NoLastRun)
}

fn by_prefix(connection: &Connection, prefix: &str) -> Result<String, StoreErrorKind> {
    let mut statement = connection.prepare(
        "SELECT id FROM runs NOT INDEXED
         WHERE CASE WHEN octet_length(id) <= ?2 THEN substr(id, 1, length(?1)) END = ?1",
    )?;
    let mut candidates = ids(statement.query(params![prefix, LONGEST_ID as i64])?)?;
    candidates.sort_unstable();
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

/// The ids in the first column, without what is no text.
fn ids(mut rows: Rows<'_>) -> Result<Vec<String>, StoreErrorKind> {
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.extend(row.get_ref(0)?.as_str().ok().map(str::to_owned));
    }
    Ok(ids)
}
