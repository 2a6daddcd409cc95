//! Search for runs in the store, and loading of runs.

use crate::Store;
use crate::documents;
use crate::error::{StoreError, StoreErrorKind};
use diskperf_timeline::check::RUN_ID_LENGTH_MAX;
use diskperf_timeline::units::CALENDAR_END_UNIX_MS;
use diskperf_timeline::{MeasuredWorld, ProgramResult, Repetition, Run, RunState};
use rusqlite::{Connection, Row, Rows, params};

/// Summary of a stored run for a list.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeading {
    /// Id of the run.
    pub id: String,
    /// Start of the run, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// Name of the suite, or of the program if it was run alone.
    pub suite: String,
    /// Target of the run, as the user named it.
    pub target: String,
    /// Absolute paths that were measured, for a run on real storage. Empty for a run without
    /// recorded paths.
    pub target_paths: Vec<String>,
    /// World of the run: host or model.
    pub world: MeasuredWorld,
    /// Label that the user gave the run.
    pub label: Option<String>,
    /// State of the run.
    pub state: RunState,
    /// Number of the run's results.
    pub result_count: u32,
    /// Number of repetitions of all results, including discarded ones.
    pub repetition_count: u32,
}

/// Row in the table of runs that is not a valid run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRun {
    /// SQLite's row number, by which the row can be removed.
    pub row: i64,
    /// Text in the column of the id, as far as it is text.
    pub id: String,
    /// Description of the damage.
    pub problem: String,
}

impl Store {
    /// Returns the stored runs, the newest first, without loading their measurements. Rows that are
    /// not valid runs are left to [`Store::damaged`].
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::Corrupt`] for a damaged file.
    pub fn list_runs(&self) -> Result<Vec<RunHeading>, StoreError> {
        self.read_snapshot(|connection| {
            let mut found = Vec::new();
            for row in list_run_rows(connection)? {
                if let Ok(heading) = read_heading(connection, row)? {
                    found.push((heading.started_unix_ms, row, heading));
                }
            }
            found.sort_by_key(|(started_unix_ms, row, _)| (*started_unix_ms, *row));
            Ok(found.into_iter().rev().map(|(_, _, one)| one).collect())
        })
    }

    /// Returns the rows in the table of runs that are not valid runs.
    ///
    /// # Errors
    ///
    /// As for [`Store::list`].
    pub fn list_damaged_runs(&self) -> Result<Vec<DamagedRun>, StoreError> {
        self.read_snapshot(|connection| {
            let mut found = Vec::new();
            for row in list_run_rows(connection)? {
                found.extend(read_heading(connection, row)?.err());
            }
            Ok(found)
        })
    }

    /// Loads a whole run. A run in progress is loaded as it is at one moment.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchRun`] (`id` must be a full id: see [`Store::resolve`]),
    /// [`StoreErrorKind::Corrupt`] or [`StoreErrorKind::Malformed`].
    pub fn load_run(&self, id: &str) -> Result<Run, StoreError> {
        self.read_snapshot(|connection| {
            let mut run = read_run_row(connection, id)?;
            let mut statement = connection.prepare(
                "SELECT ordinal, document FROM results WHERE run_id = ?1 ORDER BY ordinal",
            )?;
            let mut rows = statement.query([id])?;
            while let Some(row) = rows.next()? {
                let ordinal = row.get(0)?;
                let place = || documents::describe_result_row(id, ordinal);
                let mut result: ProgramResult = read_document(row, 1, place)?;
                result.repetitions = read_repetitions(connection, id, ordinal)?;
                run.results.push(result);
            }
            let malformed = |detail: String| StoreErrorKind::Malformed {
                place: documents::describe_run_row(id),
                detail,
            };
            run.check_run()
                .map_err(|impossible| malformed(impossible.to_string()))?;
            match run.run_id == id {
                true => Ok(run),
                false => Err(malformed(format!(
                    "its document is that of run `{}`",
                    run.run_id
                ))),
            }
        })
    }

    /// Returns the id of the run that `text` names: a full id, the beginning of exactly one id, or
    /// `last`. The last run is the one with the latest start among the runs with at least one
    /// repetition. A run in progress without measurements, or one that failed immediately, thus
    /// does not hide the run before it.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchRun`], [`StoreErrorKind::NoLastRun`], or
    /// [`StoreErrorKind::Ambiguous`], which lists the candidates.
    pub fn resolve_run_id(&self, text: &str) -> Result<String, StoreError> {
        self.read_snapshot(|connection| match text {
            "last" => last_run_id(connection),
            _ => run_id_by_prefix(connection, text),
        })
    }
}

/// Returns a run from its own row, without its results.
pub(crate) fn read_run_row(connection: &Connection, id: &str) -> Result<Run, StoreErrorKind> {
    let mut statement = connection.prepare("SELECT document FROM runs WHERE id = ?1")?;
    let mut rows = statement.query([id])?;
    match rows.next()? {
        Some(row) => read_document(row, 0, || documents::describe_run_row(id)),
        None => Err(StoreErrorKind::NoSuchRun { run: id.to_owned() }),
    }
}

fn read_repetitions(
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
        let place = || documents::describe_repetition_row(id, ordinal, number);
        repetitions.push(read_document(row, 1, place)?);
    }
    Ok(repetitions)
}

fn read_document<T: serde::de::DeserializeOwned>(
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
    documents::decode_document(text, place)
}

/// Returns the numbers of all rows in the table of runs. The contents of the rows, which may be
/// invalid, are not read.
fn list_run_rows(connection: &Connection) -> Result<Vec<i64>, StoreErrorKind> {
    let mut statement = connection.prepare("SELECT rowid FROM runs NOT INDEXED")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the summary of the run in a row, or the damage of the row. Only a damaged file is an
/// error.
fn read_heading(
    connection: &Connection,
    row: i64,
) -> Result<Result<RunHeading, DamagedRun>, StoreErrorKind> {
    match read_complete_heading(connection, row) {
        Ok(heading) => Ok(Ok(heading)),
        Err(StoreErrorKind::Malformed { detail, .. }) => Ok(Err(DamagedRun {
            row,
            id: run_id_of_row(connection, row),
            problem: detail,
        })),
        Err(error) => Err(error),
    }
}

fn read_complete_heading(connection: &Connection, row: i64) -> Result<RunHeading, StoreErrorKind> {
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
        return Err(to_malformed_error("its row was deleted".to_owned()));
    };
    let started_unix_ms: i64 = row.get(1)?;
    let world: String = row.get(4)?;
    let state: String = row.get(6)?;
    let places: Option<String> = row.get(10)?;
    Ok(RunHeading {
        id: row.get(0)?,
        started_unix_ms: u64::try_from(started_unix_ms)
            .ok()
            .filter(|started| *started < CALENDAR_END_UNIX_MS)
            .ok_or_else(|| {
                to_malformed_error(format!(
                    "its start is `{started_unix_ms}`, which is no time from 1970 to 9999"
                ))
            })?,
        suite: row.get(2)?,
        target: row.get(3)?,
        // What is wrong with the document is said by whoever needs all of it.
        target_paths: places
            .and_then(|places| serde_json::from_str(&places).ok())
            .unwrap_or_default(),
        world: documents::world_from_column(&world)
            .ok_or_else(|| to_malformed_error(format!("its world is `{world}`")))?,
        label: row.get(5)?,
        state: documents::state_from_columns(&state, row.get(7)?)
            .ok_or_else(|| to_malformed_error(format!("its state is `{state}`")))?,
        result_count: row.get(8)?,
        repetition_count: row.get(9)?,
    })
}

fn to_malformed_error(detail: String) -> StoreErrorKind {
    StoreErrorKind::Malformed {
        place: "a run".to_owned(),
        detail,
    }
}

/// Returns the text in the id column of a row, or an empty text if there is none.
fn run_id_of_row(connection: &Connection, row: i64) -> String {
    let text = connection.query_row(
        "SELECT CAST(substr(id, 1, 64) AS BLOB) FROM runs WHERE rowid = ?1",
        [row],
        |row| row.get::<_, Vec<u8>>(0),
    );
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

/// Returns the id of the newest run with a repetition. A run whose start is past the calendar does
/// not count, because it would remain the newest forever.
fn last_run_id(connection: &Connection) -> Result<String, StoreErrorKind> {
    let mut statement = connection.prepare(
        "SELECT id FROM runs
         WHERE CASE WHEN octet_length(id) <= ?2 AND started_unix_ms BETWEEN 0 AND ?1
             THEN EXISTS (SELECT * FROM repetitions WHERE run_id = id) END
         ORDER BY started_unix_ms DESC, rowid DESC",
    )?;
    let rows = statement.query(params![
        CALENDAR_END_UNIX_MS as i64 - 1,
        RUN_ID_LENGTH_MAX as i64
    ])?;
    let newest = collect_ids(rows)?.into_iter().next();
    newest.ok_or(StoreErrorKind::NoLastRun)
}

fn run_id_by_prefix(connection: &Connection, prefix: &str) -> Result<String, StoreErrorKind> {
    let mut statement = connection.prepare(
        "SELECT id FROM runs NOT INDEXED
         WHERE CASE WHEN octet_length(id) <= ?2 THEN substr(id, 1, length(?1)) END = ?1",
    )?;
    let mut candidates = collect_ids(statement.query(params![prefix, RUN_ID_LENGTH_MAX as i64])?)?;
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

/// Returns the ids in the first column. Values that are not text are skipped.
fn collect_ids(mut rows: Rows<'_>) -> Result<Vec<String>, StoreErrorKind> {
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.extend(row.get_ref(0)?.as_str().ok().map(str::to_owned));
    }
    Ok(ids)
}
