//! Why a trace cannot be read.

/// What is wrong, and where.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input failed.
    #[error("{name}: {source}")]
    Input {
        /// The trace.
        name: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// What is there is of no form, or of several.
    #[error("{name}: {problem}")]
    Form {
        /// The trace.
        name: String,
        /// What was found, and what says what was meant.
        problem: String,
    },
    /// A line, or a record of a binary form, is not of the form.
    #[error("{name}, {what} {number} (byte {byte}): {problem}")]
    Record {
        /// The trace.
        name: String,
        /// `line` or `record`.
        what: &'static str,
        /// Its number, from 1.
        number: u64,
        /// Where it begins, from 0; of a compressed trace, in what it holds.
        byte: u64,
        /// What is wrong, and what would be right.
        problem: String,
    },
}
