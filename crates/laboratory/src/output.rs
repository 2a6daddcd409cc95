//! Where what a user asked for goes: a file, or standard output.

use diskperf_models::LaboratoryError;
use diskperf_system::host::output_file::{OutputError, OutputFile, write_standard_output};
use std::io::{self, Write};
use std::path::Path;

/// What an option of the command line names as the place for its output.
#[derive(Debug)]
pub enum Output {
    /// `-`, or `/dev/stdout`.
    Standard,
    /// A file, which takes the place of one that is there when it is written.
    File(OutputFile),
}

impl Output {
    /// Checks that it can be written: whoever works long for a file asks before.
    ///
    /// # Errors
    ///
    /// It is no regular file, somebody else's link leads there, or nothing can
    /// be written there.
    pub fn open(path: &Path) -> Result<Self, LaboratoryError> {
        if is_standard(path) {
            return Ok(Self::Standard);
        }
        Ok(Self::File(OutputFile::open(path).map_err(failed)?))
    }

    /// Of an option beside which standard output has a table.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]; and where it is standard output.
    pub fn open_beside_table(option: &str, path: &Path) -> Result<Self, LaboratoryError> {
        match Self::open(path)? {
            Self::Standard => Err(LaboratoryError::Request(format!(
                "{option} {}: standard output has the table; name a file",
                path.display()
            ))),
            file => Ok(file),
        }
    }

    /// Writes what is made piece by piece, or leaves a file as it was.
    ///
    /// # Errors
    ///
    /// It cannot be written, or cannot be made.
    pub fn write_with<T>(
        self,
        produce: impl FnOnce(&mut dyn Write) -> Result<T, LaboratoryError>,
    ) -> Result<T, LaboratoryError> {
        let file = match self {
            Self::Standard => return produce(&mut Pieces),
            Self::File(file) => file,
        };
        let mut refused = None;
        let written = file.write_with(|output| {
            produce(output).map_err(|error| {
                refused = Some(error);
                io::Error::other("what was to be written could not be made")
            })
        });
        match refused {
            Some(error) => Err(error),
            None => written.map_err(failed),
        }
    }

    /// Bytes that it may take of what is free where it goes; `None` where nobody says.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        match self {
            Self::Standard => None,
            Self::File(file) => file.available_bytes(),
        }
    }

    /// Makes a file that is written as things happen, under its name from the start; one
    /// that is there is replaced if `force`.
    ///
    /// # Errors
    ///
    /// It cannot be made, or one is there that is to stay.
    pub fn begin(self, force: bool) -> Result<Box<dyn Write + Send>, LaboratoryError> {
        match self {
            Self::Standard => Ok(Box::new(Pieces)),
            Self::File(file) => Ok(Box::new(file.begin(force).map_err(failed)?)),
        }
    }

    /// Makes sure that no file is there, unless `force`.
    ///
    /// # Errors
    ///
    /// One is there.
    pub fn new_unless(self, force: bool, path: &Path) -> Result<Self, LaboratoryError> {
        match &self {
            Self::File(file) if !force && file.is_there() => Err(LaboratoryError::File {
                path: path.to_owned(),
                reason: "it exists, and a recording that was made is not made again: name another file, or replace it with --force".to_owned(),
            }),
            _ => Ok(self),
        }
    }

    /// Writes all of it, or leaves a file as it was.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(self, bytes: &[u8]) -> Result<(), LaboratoryError> {
        match self {
            Self::Standard => write_standard_output(bytes).map_err(|error| {
                LaboratoryError::Work(format!("cannot write to standard output: {error}"))
            }),
            Self::File(file) => file.write(bytes).map_err(failed),
        }
    }
}

/// Standard output, piece by piece.
struct Pieces;

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_standard_output(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// By the names that people type for it; `./-` is a file.
fn is_standard(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path == Path::new(name))
}

/// A name that is wrong is the user's to mend; a full disk is a failure.
pub(crate) fn failed(error: OutputError) -> LaboratoryError {
    match error.problem.is_of_the_name() {
        true => LaboratoryError::File {
            reason: error.problem.to_string(),
            path: error.path,
        },
        false => LaboratoryError::Work(error.to_string()),
    }
}
