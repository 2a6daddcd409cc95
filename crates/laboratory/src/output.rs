//! Destinations of requested output: a file or standard output.

use diskperf_models::LaboratoryError;
use diskperf_system::host::output_file::{OutputError, OutputFile, write_standard_output};
use std::io::{self, Write};
use std::path::Path;

/// Destination of output that a command-line option names.
#[derive(Debug)]
pub enum Output {
    /// Standard output, written as `-` or `/dev/stdout`.
    StandardOutput,
    /// A file as destination. It replaces an existing one when it is written.
    File(OutputFile),
}

impl Output {
    /// Opens a destination and checks that it can be written, so that long work does not start in
    /// vain.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is no regular file, if a link of another user leads there, or
    /// if the destination cannot be written.
    pub fn open(path: &Path) -> Result<Self, LaboratoryError> {
        if is_standard_output(path) {
            return Ok(Self::StandardOutput);
        }
        Ok(Self::File(
            OutputFile::open_output(path).map_err(output_error)?,
        ))
    }

    /// Opens the destination of an option that cannot share standard output with a table.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::open`], and an error if the path is standard output.
    pub fn open_beside_table(option: &str, path: &Path) -> Result<Self, LaboratoryError> {
        match Self::open(path)? {
            Self::StandardOutput => Err(LaboratoryError::Request(format!(
                "{option} {}: standard output has the table; name a file",
                path.display()
            ))),
            file => Ok(file),
        }
    }

    /// Writes output piece by piece. After an error an existing file stays unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if the output cannot be produced or written.
    pub fn write_with<T>(
        self,
        produce: impl FnOnce(&mut dyn Write) -> Result<T, LaboratoryError>,
    ) -> Result<T, LaboratoryError> {
        let file = match self {
            Self::StandardOutput => return produce(&mut StandardPieces),
            Self::File(file) => file,
        };
        let mut refused = None;
        let written = file.write_with(|output| {
            produce(output).map_err(|error| {
                refused = Some(error);
                io::Error::other("the output could not be generated")
            })
        });
        match refused {
            Some(error) => Err(error),
            None => written.map_err(output_error),
        }
    }

    /// Returns the free bytes that the output may use; `None` if unknown.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        match self {
            Self::StandardOutput => None,
            Self::File(file) => file.available_bytes(),
        }
    }

    /// Creates a file that is written as events happen and has its final name from the start. An
    /// existing file is replaced if `force` is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created, or if it exists and `force` is not set.
    pub fn open_writer(self, force: bool) -> Result<Box<dyn Write + Send>, LaboratoryError> {
        match self {
            Self::StandardOutput => Ok(Box::new(StandardPieces)),
            Self::File(file) => Ok(Box::new(file.begin_output(force).map_err(output_error)?)),
        }
    }

    /// Verifies that the file does not exist yet, unless `force` is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists and `force` is not set.
    pub fn require_new(self, force: bool, path: &Path) -> Result<Self, LaboratoryError> {
        match &self {
            Self::File(file) if !force && file.already_exists() => Err(LaboratoryError::File {
                path: path.to_owned(),
                reason: "it exists: name another file, or replace it with --force".to_owned(),
            }),
            _ => Ok(self),
        }
    }

    /// Writes all bytes. After an error an existing file stays unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if the output cannot be written.
    pub fn write(self, bytes: &[u8]) -> Result<(), LaboratoryError> {
        match self {
            Self::StandardOutput => write_standard_output(bytes).map_err(|error| {
                LaboratoryError::Failure(format!("cannot write to standard output: {error}"))
            }),
            Self::File(file) => file.write_bytes(bytes).map_err(output_error),
        }
    }
}

struct StandardPieces;

impl Write for StandardPieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_standard_output(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reports whether a path is one of the usual names of standard output. `./-` is a file.
fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path == Path::new(name))
}

/// Converts an output error: a wrong name is the user's mistake, a full disk is a failure.
pub(crate) fn output_error(error: OutputError) -> LaboratoryError {
    match error.problem.is_caused_by_name() {
        true => LaboratoryError::File {
            reason: error.problem.to_string(),
            path: error.path,
        },
        false => LaboratoryError::Failure(error.to_string()),
    }
}
