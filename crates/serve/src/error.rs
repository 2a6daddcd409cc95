//! Errors that end or prevent serving.

/// Reason why a drive is not served, with the remedy in its text.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The request names something that cannot be served or used.
    #[error("{0}")]
    Request(String),
    /// A name, entry or setting of the catalogue, or a file of faults is wrong.
    #[error("{0}")]
    Catalogue(Box<diskperf_catalogue::Errors>),
    /// The request was right, and serving failed.
    #[error("{0}")]
    Work(String),
}
