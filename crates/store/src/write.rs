//! Storing of runs: piece by piece while they are made, or as a whole.

use crate::documents::{self, to_sqlite_integer};
use crate::error::{StoreError, StoreErrorKind};
use crate::{Store, read};
use diskperf_timeline::{ProgramResult, Repetition, Run, RunState};
use rusqlite::{Connection, named_params, params};

impl Store {
    /// Stores a run without its results, which follow with [`Store::begin_result`].
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::RunExists`], or the errors of any write:
    /// [`StoreErrorKind::Locked`], [`StoreErrorKind::DiskFull`], [`StoreErrorKind::ReadOnly`],
    /// [`StoreErrorKind::Corrupt`], [`StoreErrorKind::NotStorable`].
    pub fn begin_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.write_transaction(|connection| insert_run(connection, run))
    }

    /// Stores a program's result without its repetitions, even if it has any. `ordinal` is its
    /// position in the order of execution.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchRun`], [`StoreErrorKind::ResultExists`], or the errors of
    /// any write.
    pub fn begin_result(
        &mut self,
        run_id: &str,
        ordinal: u32,
        result: &ProgramResult,
    ) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            read::read_run_row(connection, run_id)?;
            insert_result(connection, run_id, ordinal, result)
        })
    }

    /// Stores a repetition after those that the result has already. It is on the disk when this
    /// returns.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchResult`], or the errors of any write.
    pub fn add_repetition(
        &mut self,
        run_id: &str,
        ordinal: u32,
        repetition: &Repetition,
    ) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            let (results, number) = connection.query_row(
                "SELECT (SELECT count(*) FROM results WHERE run_id = ?1 AND ordinal = ?2),
                        (SELECT coalesce(max(number) + 1, 0) FROM repetitions
                         WHERE run_id = ?1 AND ordinal = ?2)",
                params![run_id, ordinal],
                |row| Ok((row.get::<_, u32>(0)?, row.get(1)?)),
            )?;
            if results == 0 {
                return Err(no_such_result_error(run_id, ordinal));
            }
            insert_repetition(connection, run_id, ordinal, number, repetition)
        })
    }

    /// Replaces a result except for its repetitions, and marks the repetitions that are discarded
    /// now.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchResult`], or the errors of any write.
    pub fn update_result(
        &mut self,
        run_id: &str,
        ordinal: u32,
        result: &ProgramResult,
    ) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            let updated = connection.execute(
                "UPDATE results SET program = :program, title = :title, drives = :drives,
                     filesystem = :filesystem, size_bytes = :size_bytes, cache = :cache,
                     document = :document
                 WHERE run_id = :run_id AND ordinal = :ordinal",
                named_params! {
                        ":run_id": run_id,
                        ":ordinal": ordinal,
                        ":program": result.program,
                        ":title": result.result_key(),
                        ":drives": result.drive_count,
                        ":filesystem": result.filesystem_type,
                        ":size_bytes": to_sqlite_integer(result.size_bytes),
                ":cache": result.cache_mode.mode_name(),
                        ":document": documents::encode_result(run_id, ordinal, result)?,
                    },
            )?;
            if updated == 0 {
                return Err(no_such_result_error(run_id, ordinal));
            }
            for (number, repetition) in (0..).zip(&result.repetitions) {
                if repetition.is_discarded {
                    discard_repetition(connection, run_id, ordinal, number, repetition)?;
                }
            }
            Ok(())
        })
    }

    /// Stores the final state of a run, and replaces its notes.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchRun`], or the errors of any write.
    pub fn finish_run(
        &mut self,
        run_id: &str,
        state: &RunState,
        notes: &[String],
    ) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            let mut run = read::read_run_row(connection, run_id)?;
            run.state = state.clone();
            run.notes = notes.to_vec();
            let (state, error) = documents::state_columns(&run.state);
            connection.execute(
                "UPDATE runs SET state = ?2, error = ?3, document = ?4 WHERE id = ?1",
                params![run_id, state, error, documents::encode_run(&run)?],
            )?;
            Ok(())
        })
    }

    /// Stores a whole run with its results and repetitions, or nothing of it.
    ///
    /// # Errors
    ///
    /// As for [`Store::begin_run`].
    pub fn insert_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.write_transaction(|connection| insert_all(connection, run))
    }

    /// Removes runs with all their results and repetitions, by their full ids: either all of them
    /// or none.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoSuchRun`], or the errors of any write.
    pub fn delete_runs(&mut self, ids: &[&str]) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            for id in ids {
                if connection.execute("DELETE FROM runs WHERE id = ?1", [id])? == 0 {
                    return Err(StoreErrorKind::NoSuchRun {
                        run: (*id).to_owned(),
                    });
                }
            }
            Ok(())
        })
    }

    /// Stores a whole run in place of its stored version, if there is one.
    ///
    /// # Errors
    ///
    /// Fails like any write. The stored version then remains.
    pub fn replace_run(&mut self, run: &Run) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            // Its results and repetitions go with it.
            connection.execute("DELETE FROM runs WHERE id = ?1", [&run.run_id])?;
            insert_all(connection, run)
        })
    }
}

fn insert_all(connection: &Connection, run: &Run) -> Result<(), StoreErrorKind> {
    insert_run(connection, run)?;
    for (ordinal, result) in (0..).zip(&run.results) {
        insert_result(connection, &run.run_id, ordinal, result)?;
        for (number, repetition) in (0..).zip(&result.repetitions) {
            insert_repetition(connection, &run.run_id, ordinal, number, repetition)?;
        }
    }
    Ok(())
}

fn no_such_result_error(run_id: &str, ordinal: u32) -> StoreErrorKind {
    StoreErrorKind::NoSuchResult {
        run: run_id.to_owned(),
        ordinal,
    }
}

fn insert_run(connection: &Connection, run: &Run) -> Result<(), StoreErrorKind> {
    let (state, error) = documents::state_columns(&run.state);
    let inserted = connection.execute(
        "INSERT INTO runs VALUES (:id, :started_unix_ms, :version, :suite, :target, :world,
             :label, :cache, :state, :error, :document)
         ON CONFLICT DO NOTHING",
        named_params! {
            ":id": run.run_id,
            ":started_unix_ms": to_sqlite_integer(run.started_unix_ms),
            ":version": run.program_version,
            ":suite": run.suite_name,
            ":target": run.target_label,
            ":world": documents::world_column(run.world),
            ":label": run.user_label,
            ":cache": run.cache_mode.mode_name(),
            ":state": state,
            ":error": error,
            ":document": documents::encode_run(run)?,
        },
    )?;
    match inserted {
        0 => Err(StoreErrorKind::RunExists {
            run: run.run_id.clone(),
        }),
        _ => Ok(()),
    }
}

fn insert_result(
    connection: &Connection,
    run_id: &str,
    ordinal: u32,
    result: &ProgramResult,
) -> Result<(), StoreErrorKind> {
    let inserted = connection.execute(
        "INSERT INTO results VALUES (:run_id, :ordinal, :program, :title, :drives,
             :filesystem, :size_bytes, :cache, :document)
         ON CONFLICT DO NOTHING",
        named_params! {
            ":run_id": run_id,
            ":ordinal": ordinal,
            ":program": result.program,
            ":title": result.result_key(),
            ":drives": result.drive_count,
            ":filesystem": result.filesystem_type,
            ":size_bytes": to_sqlite_integer(result.size_bytes),
            ":cache": result.cache_mode.mode_name(),
            ":document": documents::encode_result(run_id, ordinal, result)?,
        },
    )?;
    match inserted {
        0 => Err(StoreErrorKind::ResultExists {
            run: run_id.to_owned(),
            ordinal,
        }),
        _ => Ok(()),
    }
}

fn insert_repetition(
    connection: &Connection,
    run_id: &str,
    ordinal: u32,
    number: u32,
    repetition: &Repetition,
) -> Result<(), StoreErrorKind> {
    connection.execute(
        "INSERT INTO repetitions VALUES (:run_id, :ordinal, :number, :discarded, :elapsed_ns,
             :durable_ns, :kb_per_s, :durable_kb_per_s, :cpu_percent, :payload_bytes, :document)",
        named_params! {
            ":run_id": run_id,
            ":ordinal": ordinal,
            ":number": number,
            ":discarded": repetition.is_discarded,
            ":elapsed_ns": to_sqlite_integer(repetition.elapsed_time().0),
            ":durable_ns": repetition.durable_time().map(|durable| to_sqlite_integer(durable.0)),
            ":kb_per_s": repetition.kb_per_s(),
            ":durable_kb_per_s": repetition.durable_kb_per_s(),
            ":cpu_percent": repetition.cpu_percent(),
            ":payload_bytes": to_sqlite_integer(repetition.payload_bytes()),
            ":document": documents::encode_repetition(run_id, ordinal, number, repetition)?,
        },
    )?;
    Ok(())
}

fn discard_repetition(
    connection: &Connection,
    run_id: &str,
    ordinal: u32,
    number: u32,
    repetition: &Repetition,
) -> Result<(), StoreErrorKind> {
    connection.execute(
        "UPDATE repetitions SET discarded = TRUE, document = ?4
         WHERE run_id = ?1 AND ordinal = ?2 AND number = ?3 AND NOT discarded",
        params![
            run_id,
            ordinal,
            number,
            documents::encode_repetition(run_id, ordinal, number, repetition)?
        ],
    )?;
    Ok(())
}
