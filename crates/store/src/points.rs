//! Points of a search for better settings, stored so that a killed search can continue.

use crate::Store;
use crate::error::StoreError;
use rusqlite::OptionalExtension;

impl Store {
    /// Stores the outcomes of points by their fingerprints, all of them or none. They are on the
    /// disk when this returns. An outcome for a stored fingerprint is replaced.
    ///
    /// # Errors
    ///
    /// Fails like any write.
    pub fn add_points(&mut self, points: &[(String, String)]) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            let mut insert =
                connection.prepare_cached("INSERT OR REPLACE INTO points VALUES (?1, ?2)")?;
            for (fingerprint, document) in points {
                insert.execute([fingerprint, document])?;
            }
            Ok(())
        })
    }

    /// Returns the outcome of the point with this fingerprint, or `None` if it is not stored.
    ///
    /// # Errors
    ///
    /// As for [`Store::list`].
    pub fn read_point(&self, fingerprint: &str) -> Result<Option<String>, StoreError> {
        self.read_snapshot(|connection| {
            let mut select =
                connection.prepare_cached("SELECT document FROM points WHERE fingerprint = ?1")?;
            Ok(select
                .query_row([fingerprint], |row| row.get(0))
                .optional()?)
        })
    }
}
