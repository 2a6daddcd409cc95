//! Single combinations of a search, so that one that was killed can go on.

use crate::Store;
use crate::error::StoreError;
use rusqlite::OptionalExtension;

impl Store {
    /// Stores what points came to, all of them or none, each by its
    /// fingerprint. They are on the disk when this returns; a point that was
    /// stored before is replaced.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn add_points(&mut self, points: &[(String, String)]) -> Result<(), StoreError> {
        self.writing(|connection| {
            let mut insert =
                connection.prepare_cached("INSERT OR REPLACE INTO points VALUES (?1, ?2)")?;
            for (fingerprint, document) in points {
                insert.execute([fingerprint, document])?;
            }
            Ok(())
        })
    }

    /// What the point with this fingerprint came to, if it is stored.
    ///
    /// # Errors
    ///
    /// Those of [`Store::list`].
    pub fn point(&self, fingerprint: &str) -> Result<Option<String>, StoreError> {
        self.reading(|connection| {
            let mut select =
                connection.prepare_cached("SELECT document FROM points WHERE fingerprint = ?1")?;
            Ok(select
                .query_row([fingerprint], |row| row.get(0))
                .optional()?)
        })
    }
}
