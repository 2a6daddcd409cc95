//! File of a test that may be interrupted: the recorded requests, and the cuts that were checked.
//!
//! The file begins with a line. Each part behind it has its length and a digest, so that a part
//! that was being written when the test was killed is known. The first part says of which test the
//! file is, the second has the log, and each other one a cut with its verdict. The last one says
//! that the test has ended.

use super::check::Verdict;
use super::{CrashOptions, DriveRequests, RequestSource};
use crate::LaboratoryError;
use diskperf_system::host::output_file::OutputFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// First line of the file.
const FIRST_LINE: &[u8] = b"diskperf crash test 1\n";

/// Bytes of a part's length, and of its digest.
const LENGTH_BYTES: usize = 8;
const DIGEST_BYTES: usize = 8;

/// Part of the file behind the log.
#[derive(Serialize, Deserialize)]
enum KeptStep {
    Checked { cut: u64, verdict: Verdict },
    Ended,
}

/// Test whose log and verdicts a file keeps until it has ended.
pub(super) struct KeptTest {
    path: PathBuf,
    output: Option<OutputFile>,
    /// Description of the test, which has to be that of the file.
    description: Vec<u8>,
    /// Log of the interrupted test that this one continues.
    log: Option<Vec<u8>>,
    verdicts: BTreeMap<usize, Verdict>,
    /// File to which the verdicts go; `None` until there is a log.
    file: Option<File>,
}

impl KeptTest {
    /// Opens the file, and takes what it has of the same test. A test that had ended, or had not
    /// recorded its log, begins anew.
    ///
    /// # Errors
    ///
    /// The file cannot be written, is another user's, or is something else or of another test.
    pub(super) fn open(path: &Path, options: &CrashOptions) -> Result<Self, LaboratoryError> {
        let output = OutputFile::open_output(path).map_err(LaboratoryError::request)?;
        let exists = output.already_exists();
        let mut test = Self {
            path: path.to_owned(),
            output: Some(output),
            description: describe(options),
            log: None,
            verdicts: BTreeMap::new(),
            file: None,
        };
        let bytes = match exists {
            true => read_own(path).map_err(|error| test.refused(&error))?,
            false => Vec::new(),
        };
        if !bytes.is_empty() {
            test.take(&bytes)?;
        }
        Ok(test)
    }

    fn refused(&self, error: &dyn std::fmt::Display) -> LaboratoryError {
        LaboratoryError::Request(format!("--resume {}: {error}", self.path.display()))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), LaboratoryError> {
        let Some(mut rest) = bytes.strip_prefix(FIRST_LINE) else {
            let text = "is no interrupted crash test: name another file, or remove it";
            return Err(self.refused(&text));
        };
        let Some(description) = take_part(&mut rest) else {
            return Ok(());
        };
        if description != self.description {
            let text = "is of a test with other options, or of another version of diskperf: name another file, or remove it";
            return Err(self.refused(&text));
        }
        let Some(log) = take_part(&mut rest) else {
            return Ok(());
        };
        let mut verdicts = BTreeMap::new();
        while let Some(part) = take_part(&mut rest) {
            match postcard::from_bytes(part) {
                Ok(KeptStep::Checked { cut, verdict }) => {
                    verdicts.insert(cut as usize, verdict);
                }
                Ok(KeptStep::Ended) => return Ok(()),
                Err(error) => return Err(self.refused(&error)),
            }
        }
        (self.log, self.verdicts) = (Some(log.to_vec()), verdicts);
        Ok(())
    }

    /// Returns the log of the interrupted test; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The file has no log.
    pub(super) fn log<T: DeserializeOwned>(&self) -> Result<Option<T>, LaboratoryError> {
        let log = self.log.as_deref().map(postcard::from_bytes).transpose();
        log.map_err(|error| self.refused(&error))
    }

    /// Begins the file with the log that was recorded or taken over, and the verdicts so far.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or has the log of another test.
    pub(super) fn begin<T: Serialize>(&mut self, log: &T) -> Result<(), LaboratoryError> {
        let log = postcard::to_allocvec(log).map_err(LaboratoryError::work)?;
        if self.log.take().is_some_and(|kept| kept != log) {
            let text = "is of a test with another log: name another file, or remove it";
            return Err(self.refused(&text));
        }
        let mut bytes = FIRST_LINE.to_vec();
        for part in [&self.description, &log] {
            bytes.extend_from_slice(&part_head(part));
            bytes.extend_from_slice(part);
        }
        for (cut, verdict) in &self.verdicts {
            bytes.extend(checked_part(*cut, verdict)?);
        }
        if let Some(output) = self.output.take() {
            let begun = output.begin_output_with(&bytes, true);
            self.file = Some(begun.map_err(LaboratoryError::work)?);
        }
        Ok(())
    }

    /// Verdicts of the cuts that were checked before, by number of the cut.
    pub(super) fn verdicts(&self) -> &BTreeMap<usize, Verdict> {
        &self.verdicts
    }

    /// Keeps the verdict of a cut.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn add(&mut self, cut: usize, verdict: &Verdict) -> Result<(), LaboratoryError> {
        self.write(&checked_part(cut, verdict)?)
    }

    /// Notes that the test has ended, so that the next one begins anew.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn end(&mut self) -> Result<(), LaboratoryError> {
        self.write(&step_part(&KeptStep::Ended)?)
    }

    fn write(&mut self, part: &[u8]) -> Result<(), LaboratoryError> {
        let written = self.file.as_mut().map(|file| file.write_all(part));
        written.transpose().map_err(|error| LaboratoryError::File {
            path: self.path.clone(),
            reason: format!("cannot be written: {error}: see that there is space"),
        })?;
        Ok(())
    }
}

/// Describes a test by all that decides its report, but the log.
fn describe(options: &CrashOptions) -> Vec<u8> {
    let CrashOptions {
        source,
        filesystem,
        check,
        check_time_max,
        instants,
        policy,
        seed,
        jobs: _,
        resume: _,
    } = options;
    let source = match source {
        RequestSource::Drive(DriveRequests::Log(_)) => "log".to_owned(),
        source => format!("{source:?}"),
    };
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "{version} {source} {filesystem:?} {check:?} {check_time_max:?} {instants:?} {policy:?} {seed}"
    );
    Sha256::digest(text).to_vec()
}

/// Reads a file of this user.
fn read_own(path: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut file = diskperf_diagnostics::input::open(path)?;
    if file.metadata()?.uid() != diskperf_system::host::user_id() {
        return Err("belongs to another user: name another file".into());
    }
    // Whoever writes the file has locked it.
    if file.try_lock_shared().is_err() {
        return Err("is in use by a test that runs".into());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Takes the next part; `None` where it is not whole.
fn take_part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk::<LENGTH_BYTES>()?;
    let (digest, after) = after.split_first_chunk::<DIGEST_BYTES>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    let is_whole = Sha256::digest(part).starts_with(digest);
    *rest = after;
    is_whole.then_some(part)
}

fn part_head(part: &[u8]) -> [u8; LENGTH_BYTES + DIGEST_BYTES] {
    let mut head = [0; LENGTH_BYTES + DIGEST_BYTES];
    head[..LENGTH_BYTES].copy_from_slice(&(part.len() as u64).to_le_bytes());
    head[LENGTH_BYTES..].copy_from_slice(&Sha256::digest(part)[..DIGEST_BYTES]);
    head
}

fn checked_part(cut: usize, verdict: &Verdict) -> Result<Vec<u8>, LaboratoryError> {
    step_part(&KeptStep::Checked {
        cut: cut as u64,
        verdict: verdict.clone(),
    })
}

fn step_part(step: &KeptStep) -> Result<Vec<u8>, LaboratoryError> {
    let part = postcard::to_allocvec(step).map_err(LaboratoryError::work)?;
    Ok([&part_head(&part)[..], &part].concat())
}
