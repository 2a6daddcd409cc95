//! Errors of reading a trace.

/// Reason why a trace cannot be read, with its position.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input cannot be read.
    #[error("{name}: {source}")]
    Input {
        /// Name of the trace.
        name: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The format of the trace is unknown or ambiguous.
    #[error("{name}: {problem}")]
    Form {
        /// Name of the trace.
        name: String,
        /// Description of the beginning of the trace, and of the option that selects a format.
        problem: String,
    },
    /// A line, or a record of a binary format, does not conform to the format.
    #[error("{name}, {what} {number} (byte {byte}): {problem}")]
    Record {
        /// Name of the trace.
        name: String,
        /// Kind of the unit that is invalid: `line`, `record` or `block`.
        what: &'static str,
        /// Number of the line or record, from 1.
        number: u64,
        /// Offset of the line or record in bytes, from 0. In a compressed trace, the offset counts
        /// decompressed bytes.
        byte: u64,
        /// Description of the error and of a valid value.
        problem: String,
    },
}
