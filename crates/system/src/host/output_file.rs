//! Output files that the user requests. The path is resolved without following links of other
//! users. A file is written beside its name and renamed; existing files are never written in place.

mod abandoned;
mod destination;
mod error;
mod folder;
mod partial;

pub use abandoned::AbandonedOutput;
pub use error::{OutputError, OutputProblem};
pub use folder::make_folder;

use destination::Destination;
use partial::PartialFile;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Destination for output: a regular file to be written, or `/dev/null`.
///
/// A long computation opens its output before it starts, so that errors in the name appear early.
/// Until [`Self::write_bytes`] an existing file stays unchanged.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// Resolved name of the file; `None` for `/dev/null`.
    destination: Option<Destination>,
}

impl OutputFile {
    /// Resolves the path, and checks that a file can be created there.
    ///
    /// Symbolic links are followed, in every part of the path, by the rule of the kernel's
    /// `protected_symlinks`, whatever its setting. In a directory that others may write to, only
    /// links of this user or of the directory's owner are followed. Root follows another user's
    /// link only to files of that user.
    ///
    /// # Errors
    ///
    /// The path leads to something other than a regular file, or to another user's file in a
    /// directory that others may write to, or it cannot be written.
    pub fn open_output(path: &Path) -> Result<Self, OutputError> {
        let opened = Destination::find_destination(path).and_then(|destination| {
            if let Some(destination) = &destination {
                destination.require_trusted_links()?;
                destination.require_replaceable()?;
                PartialFile::create_partial(destination.directory(), None)?.remove_partial()?;
            }
            Ok(destination)
        });
        match opened {
            Ok(destination) => Ok(Self {
                path: path.to_owned(),
                destination,
            }),
            Err(problem) => Err(OutputError::new(path, problem)),
        }
    }

    /// Checks that another part of the program may open the file for writing, by the rules for
    /// links of [`Self::open_output`]. Neither the file nor its directory needs to exist yet.
    ///
    /// # Errors
    ///
    /// The path leads to something other than a regular file, or through another user's link.
    pub fn check_output(path: &Path) -> Result<(), OutputError> {
        let found = match Destination::find_destination(path) {
            Ok(Some(destination)) => destination
                .require_trusted_links()
                .and_then(|()| destination.open_entry().map(drop)),
            Ok(None) => Err(OutputProblem::null_device_problem()),
            Err(OutputProblem::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(problem) => Err(problem),
        };
        found.map_err(|problem| OutputError::new(path, problem))
    }

    /// Writes the file and replaces an existing one. The new file gets the owner, group and
    /// permissions of the old one, as far as this user may set them. Other hard links of the old
    /// file keep the old bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or something else has taken its name meanwhile. The old file is
    /// then unchanged.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), OutputError> {
        self.write_with(|file| file.write_all(bytes))
    }

    /// Writes the file with the bytes that `produce` writes piece by piece. A failure leaves no new
    /// file.
    ///
    /// # Errors
    ///
    /// As [`Self::write_bytes`], and if `produce` fails.
    pub fn write_with<T>(
        self,
        produce: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<T, OutputError> {
        let failed = |problem| OutputError::new(&self.path, problem);
        let Some(destination) = &self.destination else {
            return produce(&mut io::sink()).map_err(|error| failed(error.into()));
        };
        let written = destination.require_replaceable().and_then(|replaced| {
            let partial = PartialFile::create_partial(destination.directory(), replaced.as_ref())?;
            let produced = produce(&mut partial.file())?;
            partial.publish_as(destination.file_name())?;
            Ok(produced)
        });
        written.map_err(failed)
    }

    /// Creates an empty file under its final name, for data that is useful even if writing ends
    /// early. An existing file is replaced if `replaces`.
    ///
    /// # Errors
    ///
    /// The file cannot be created, or one exists and must stay.
    pub fn begin_output(self, replaces: bool) -> Result<File, OutputError> {
        self.begin_output_with(b"", replaces)
    }

    /// Creates a file as [`Self::begin_output`] does, with its first bytes: at any time there is the
    /// old file, or the new one with these.
    ///
    /// # Errors
    ///
    /// As [`Self::begin_output`].
    pub fn begin_output_with(self, first: &[u8], replaces: bool) -> Result<File, OutputError> {
        let failed = |problem| OutputError::new(&self.path, problem);
        let Some(destination) = &self.destination else {
            let null = File::options().write(true).open("/dev/null");
            return null.map_err(|error| failed(error.into()));
        };
        let begun = destination.require_replaceable().and_then(|replaced| {
            let partial = PartialFile::create_partial(destination.directory(), replaced.as_ref())?;
            let mut file = partial.file().try_clone()?;
            file.write_all(first)?;
            match replaces {
                true => partial.publish_as(destination.file_name())?,
                false => partial.publish_as_new(destination.file_name())?,
            }
            Ok(file)
        });
        begun.map_err(failed)
    }

    /// Returns the free bytes of the file system that the file may use. `None` for `/dev/null`, or
    /// if the file system does not report it.
    pub fn available_bytes(&self) -> Option<u64> {
        let destination = self.destination.as_ref()?;
        let space = rustix::fs::fstatvfs(destination.directory()).ok()?;
        Some(space.f_bavail.saturating_mul(space.f_frsize))
    }

    /// Reports whether the output file exists already.
    pub fn already_exists(&self) -> bool {
        let destination = self.destination.as_ref();
        destination.is_some_and(|destination| !matches!(destination.open_entry(), Ok(None)))
    }

    /// Reports whether a path leads to the file that would be replaced.
    pub fn is_same_file_as(&self, path: &Path) -> bool {
        self.destination
            .as_ref()
            .is_some_and(|destination| destination.is_same_file(path))
    }
}

/// Writes to standard output without buffering. A reader that stops early (`| head`) is no error.
///
/// # Errors
///
/// The bytes cannot be written, for example to a full disk.
pub fn write_standard_output(mut bytes: &[u8]) -> io::Result<()> {
    let out = io::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(out.as_fd(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::PIPE) => return Ok(()),
            Err(Errno::INTR) => {}
            // Whoever shares the pipe may have set it not to wait.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&out, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
