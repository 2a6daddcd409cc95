//! A file that the user asked for: found without following what somebody else
//! put in the way, written beside its name, and renamed. Nothing is ever
//! written in place.

mod abandoned;
mod destination;
mod error;
mod folder;
mod partial;

pub use abandoned::AbandonedOutput;
pub use error::{OutputError, OutputProblem};
pub use folder::make_folder;

use destination::Destination;
use partial::Partial;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// A name under which a regular file may be written, or `/dev/null`.
///
/// Whoever works long for a file opens it before: what is wrong with the name
/// is said then. Until [`Self::write`] the file stays as it was.
#[derive(Debug)]
pub struct OutputFile {
    /// As the user wrote it.
    path: PathBuf,
    /// None of `/dev/null`.
    place: Option<Destination>,
}

impl OutputFile {
    /// Finds the place, and makes sure that a file can be made there.
    ///
    /// Symbolic links are followed, in every part of the path, with the rule of
    /// the kernel's `protected_symlinks` whatever that is set to: in a directory
    /// that others may write to, only links of this user or of the directory's
    /// owner. Root follows another user's link only to what is that user's.
    ///
    /// # Errors
    ///
    /// What is there is no regular file, or one of another user in a directory
    /// that others may write to, or it cannot be written.
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        let opened = Destination::find(path).and_then(|place| {
            if let Some(place) = &place {
                place.require_trusted_links()?;
                place.replaceable()?;
                Partial::create(place.directory(), None)?.remove()?;
            }
            Ok(place)
        });
        match opened {
            Ok(place) => Ok(Self {
                path: path.to_owned(),
                place,
            }),
            Err(problem) => Err(OutputError::new(path, problem)),
        }
    }

    /// Whether another part of the program may open the file for writing by
    /// itself: by the rules for links of [`Self::open`]. It need not be there yet,
    /// nor its directory.
    ///
    /// # Errors
    ///
    /// It is no regular file, or another user's link leads there.
    pub fn check(path: &Path) -> Result<(), OutputError> {
        let found = match Destination::find(path) {
            Ok(Some(place)) => place
                .require_trusted_links()
                .and_then(|()| place.file().map(drop)),
            Ok(None) => Err(OutputProblem::null()),
            Err(OutputProblem::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(problem) => Err(problem),
        };
        found.map_err(|problem| OutputError::new(path, problem))
    }

    /// Writes the file, in the place of the one that is there. A file that is
    /// replaced leaves its owner, group and permissions to the new one, as far
    /// as this user may give them; other hard links of it keep the old bytes.
    ///
    /// # Errors
    ///
    /// It cannot be written, or something else has taken its name meanwhile.
    /// What was there is then as it was.
    pub fn write(self, bytes: &[u8]) -> Result<(), OutputError> {
        self.write_with(|file| file.write_all(bytes))
    }

    /// The same, of what is written piece by piece. What fails leaves nothing.
    ///
    /// # Errors
    ///
    /// As [`Self::write`], and where `produce` fails.
    pub fn write_with<T>(
        self,
        produce: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<T, OutputError> {
        let failed = |problem| OutputError::new(&self.path, problem);
        let Some(place) = &self.place else {
            return produce(&mut io::sink()).map_err(|error| failed(error.into()));
        };
        let written = place.replaceable().and_then(|replaced| {
            let partial = Partial::create(place.directory(), replaced.as_ref())?;
            let produced = produce(&mut partial.file())?;
            partial.publish(place.name())?;
            Ok(produced)
        });
        written.map_err(failed)
    }

    /// Makes the file, empty, under its name at once, for what is written as it happens
    /// and is worth something however early it ends. One that is there is replaced if
    /// `replaces`.
    ///
    /// # Errors
    ///
    /// It cannot be made, or one is there that is to stay.
    pub fn begin(self, replaces: bool) -> Result<File, OutputError> {
        let failed = |problem| OutputError::new(&self.path, problem);
        let Some(place) = &self.place else {
            let null = File::options().write(true).open("/dev/null");
            return null.map_err(|error| failed(error.into()));
        };
        let begun = place.replaceable().and_then(|replaced| {
            let partial = Partial::create(place.directory(), replaced.as_ref())?;
            let file = partial.file().try_clone()?;
            match replaces {
                true => partial.publish(place.name())?,
                false => partial.publish_new(place.name())?,
            }
            Ok(file)
        });
        begun.map_err(failed)
    }

    /// Bytes that the file may take of what is free where it is to be; `None` of
    /// `/dev/null`, and where the file system does not say.
    pub fn available_bytes(&self) -> Option<u64> {
        let place = self.place.as_ref()?;
        let space = rustix::fs::fstatvfs(place.directory()).ok()?;
        Some(space.f_bavail.saturating_mul(space.f_frsize))
    }

    /// Whether a file is there already.
    pub fn is_there(&self) -> bool {
        let place = self.place.as_ref();
        place.is_some_and(|place| !matches!(place.file(), Ok(None)))
    }

    /// Whether this path leads to the file that would be replaced.
    pub fn is(&self, path: &Path) -> bool {
        self.place.as_ref().is_some_and(|place| place.is(path))
    }
}

/// Writes to standard output, past every buffer. A reader that has read enough
/// (`| head`) is no error.
///
/// # Errors
///
/// It cannot be written, as on a full disk.
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
