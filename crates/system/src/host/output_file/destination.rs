//! Resolution of a path, part by part, through open directories. Nobody can replace a directory
//! once it is found.

use super::error::OutputProblem;
use crate::host::device::FileNumber;
use crate::host::workspace::path_through;
use rustix::fs::{FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links in one path, as in the kernel.
const SYMBOLIC_LINKS_MAX: usize = 40;

/// Symbolic link of another user that root followed.
#[derive(Debug)]
struct FollowedLink {
    link_path: PathBuf,
    owner_id: u32,
}

impl FollowedLink {
    fn to_problem(&self) -> OutputProblem {
        OutputProblem::LinkOfOtherUser {
            link: self.link_path.clone(),
            owner: self.owner_id,
        }
    }
}

/// Checks that all followed links belong to the owner of the file that they lead to.
fn require_link_owner(owner: u32, followed_links: &[FollowedLink]) -> Result<(), OutputProblem> {
    match followed_links
        .iter()
        .find(|followed_link| followed_link.owner_id != owner)
    {
        Some(link) => Err(link.to_problem()),
        None => Ok(()),
    }
}

/// Name of a file in an open directory.
#[derive(Debug)]
pub(super) struct Destination {
    directory: OwnedFd,
    name: OsString,
    is_reached_by_link: bool,
    /// Links of other users that led to the file. They may lead only to their owners' files.
    followed_links: Vec<FollowedLink>,
}

/// Entry of a directory: a file, a directory or a link.
pub(super) struct DirectoryEntry {
    file: OwnedFd,
    file_status: Stat,
}

impl DirectoryEntry {
    /// Returns the directory entry with a name, without following a link; `None` if there is none.
    /// Nothing is opened for reading or writing, since some devices would react to it.
    fn find_entry(directory: BorrowedFd<'_>, name: &OsStr) -> Result<Option<Self>, Errno> {
        let plain = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // As a directory first: only so is one mounted that is mounted on demand.
        let file = [plain | OFlags::DIRECTORY, plain]
            .into_iter()
            .map(|flags| rustix::fs::openat(directory, name, flags, Mode::empty()))
            .find(|opened| !matches!(opened, Err(Errno::NOTDIR | Errno::LOOP)))
            .unwrap_or(Err(Errno::NOTDIR));
        match file {
            Ok(file) => Ok(Some(Self {
                file_status: rustix::fs::fstat(&file)?,
                file,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.file_status.st_mode)
    }

    fn is_null(&self) -> bool {
        self.kind() == FileType::CharacterDevice
            && self.file_status.st_rdev == rustix::fs::makedev(1, 3)
    }
}

impl Destination {
    /// Resolves a path to its destination; `None` for `/dev/null`.
    pub(super) fn find_destination(path: &Path) -> Result<Option<Self>, OutputProblem> {
        let mut resolver = PathResolver::from_current_directory()?;
        let mut left = split_reversed(path);
        if left.is_empty() {
            return Err(Errno::NOENT.into());
        }
        while let Some(part) = left.pop() {
            match resolver.resolve_next(&part, &mut left)? {
                PathStep::EnteredDirectory => {}
                PathStep::MissingEntry if left.is_empty() => {
                    return Ok(Some(resolver.into_destination(part)));
                }
                PathStep::MissingEntry => return Err(Errno::NOENT.into()),
                PathStep::NotADirectory(_) if !left.is_empty() => return Err(Errno::NOTDIR.into()),
                PathStep::NotADirectory(entry) if entry.is_null() => return Ok(None),
                PathStep::NotADirectory(_) => return Ok(Some(resolver.into_destination(part))),
            }
        }
        Err(new_not_regular_file(FileType::Directory, None))
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(super) fn file_name(&self) -> &Path {
        Path::new(&self.name)
    }

    /// Returns the regular file at the destination; `None` if there is no file yet.
    pub(super) fn open_entry(&self) -> Result<Option<DirectoryEntry>, OutputProblem> {
        let Some(entry) = DirectoryEntry::find_entry(self.directory(), &self.name)? else {
            return Ok(None);
        };
        if entry.kind() != FileType::RegularFile {
            let real = || std::fs::read_link(path_through(entry.file.as_fd())).ok();
            let real = self.is_reached_by_link.then(real).flatten();
            return Err(new_not_regular_file(entry.kind(), real));
        }
        Ok(Some(entry))
    }

    /// Returns the status of an existing file that this user may replace; `None` if there is no
    /// file yet.
    pub(super) fn require_replaceable(&self) -> Result<Option<Stat>, OutputProblem> {
        let Some(entry) = self.open_entry()? else {
            return Ok(None);
        };
        let directory = rustix::fs::fstat(&self.directory)?;
        let owner = entry.file_status.st_uid;
        if is_shared_directory(&directory)
            && owner != effective_user_id()
            && owner != directory.st_uid
        {
            return Err(OutputProblem::FileOfOtherUser { owner });
        }
        // Whoever made it read-only wants it to stay, whatever the directory allows.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(path_through(entry.file.as_fd()), flags, Mode::empty())?;
        Ok(Some(entry.file_status))
    }

    /// Checks that followed links of other users lead to their owners' files.
    pub(super) fn require_trusted_links(&self) -> Result<(), OutputProblem> {
        let there = match DirectoryEntry::find_entry(self.directory(), &self.name)? {
            Some(entry) => entry.file_status,
            None => rustix::fs::fstat(&self.directory)?,
        };
        require_link_owner(there.st_uid, &self.followed_links)
    }

    /// Reports whether a path leads to the existing file at the destination.
    pub(super) fn is_same_file(&self, path: &Path) -> bool {
        let there = DirectoryEntry::find_entry(self.directory(), &self.name);
        match (there, rustix::fs::stat(path)) {
            (Ok(Some(there)), Ok(other)) => {
                FileNumber::from_status(&there.file_status) == FileNumber::from_status(&other)
            }
            _ => false,
        }
    }
}

/// Outcome of resolving one part of a path.
pub(super) enum PathStep {
    /// Directory that was entered, or link whose parts were added to the remaining ones.
    EnteredDirectory,
    MissingEntry,
    /// Entry that is neither a directory nor a link.
    NotADirectory(DirectoryEntry),
}

/// State of a path's resolution: the current directory and the links followed so far.
pub(super) struct PathResolver {
    directory: OwnedFd,
    /// Path resolved so far, for messages.
    path: PathBuf,
    link_count: usize,
    followed_links: Vec<FollowedLink>,
}

impl PathResolver {
    /// Starts the resolution of a path at the current directory.
    pub(super) fn from_current_directory() -> Result<Self, Errno> {
        Ok(Self {
            directory: open_directory(".")?,
            path: PathBuf::new(),
            link_count: 0,
            followed_links: Vec::new(),
        })
    }

    /// Resolves the next part of a path. A link adds its own parts to the remaining ones.
    pub(super) fn resolve_next(
        &mut self,
        part: &OsStr,
        left: &mut Vec<OsString>,
    ) -> Result<PathStep, OutputProblem> {
        if part == "/" {
            self.enter_directory(open_directory("/")?, part);
            return Ok(PathStep::EnteredDirectory);
        }
        let Some(entry) = DirectoryEntry::find_entry(self.directory.as_fd(), part)? else {
            return Ok(PathStep::MissingEntry);
        };
        match entry.kind() {
            FileType::Directory => self.enter_directory(entry.file, part),
            FileType::Symlink => left.extend(self.follow_link(&entry, part)?),
            _ => return Ok(PathStep::NotADirectory(entry)),
        }
        Ok(PathStep::EnteredDirectory)
    }

    /// Creates a subdirectory that belongs to this user.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, or a link of another user leads here.
    pub(super) fn make_directory(&self, name: &OsStr) -> Result<(), OutputProblem> {
        if let Some(followed_link) = self.followed_links.first() {
            return Err(followed_link.to_problem());
        }
        match rustix::fs::mkdirat(&self.directory, name, Mode::from_raw_mode(0o777)) {
            // Somebody was quicker: the next step shows what that made.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that followed links of other users lead to a directory of their owner.
    pub(super) fn require_trusted_links(&self) -> Result<(), OutputProblem> {
        let owner = rustix::fs::fstat(&self.directory)?.st_uid;
        require_link_owner(owner, &self.followed_links)
    }

    fn enter_directory(&mut self, directory: OwnedFd, name: &OsStr) {
        self.directory = directory;
        self.path.push(name);
    }

    /// Returns the parts of a link's target, if the link may be followed.
    fn follow_link(
        &mut self,
        link: &DirectoryEntry,
        name: &OsStr,
    ) -> Result<Vec<OsString>, OutputProblem> {
        self.link_count += 1;
        if self.link_count > SYMBOLIC_LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let path = self.path.join(name);
        // Such a link is no path: the kernel follows it to an open file.
        if rustix::fs::fstatfs(&self.directory)?.f_type == PROC_SUPER_MAGIC {
            return Err(OutputProblem::FileInUse { link: path });
        }
        let directory = rustix::fs::fstat(&self.directory)?;
        let owner = link.file_status.st_uid;
        if is_shared_directory(&directory)
            && owner != effective_user_id()
            && owner != directory.st_uid
        {
            return Err(OutputProblem::LinkOfOtherUser { link: path, owner });
        }
        if effective_user_id() == 0 && owner != 0 {
            self.followed_links.push(FollowedLink {
                link_path: path,
                owner_id: owner,
            });
        }
        let target = rustix::fs::readlinkat(&link.file, "", Vec::new())?;
        Ok(split_reversed(Path::new(OsStr::from_bytes(
            target.as_bytes(),
        ))))
    }

    /// Returns the destination with this name in the current directory.
    fn into_destination(self, name: OsString) -> Destination {
        Destination {
            directory: self.directory,
            name,
            is_reached_by_link: self.link_count > 0,
            followed_links: self.followed_links,
        }
    }
}

fn open_directory(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Splits a path into its parts, in reverse order. The root is `/`. A trailing slash gives a part
/// `.`, which only a directory has.
pub(super) fn split_reversed(path: &Path) -> Vec<OsString> {
    let path = path.as_os_str().as_bytes();
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let ends_open = path.last() == Some(&b'/');
    let root = path.first() == Some(&b'/');
    let named = path.split(|byte| *byte == b'/').rev();
    let named = named.filter(|name| !name.is_empty()).map(part);
    let open = ends_open.then(|| OsString::from("."));
    let root = root.then(|| OsString::from("/"));
    open.into_iter().chain(named).chain(root).collect()
}

/// Reports whether users other than a directory's owner can change its entries.
fn is_shared_directory(directory: &Stat) -> bool {
    let others = directory.st_mode & 0o002 != 0;
    let group = directory.st_mode & 0o1020 == 0o1020;
    others || group
}

/// Returns the user whose rights apply to following links.
fn effective_user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn new_not_regular_file(kind: FileType, real: Option<PathBuf>) -> OutputProblem {
    let kind = match kind {
        FileType::Directory => "a directory",
        FileType::BlockDevice => "a block device",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symbolic link that was just created",
        FileType::RegularFile | FileType::Unknown => "not a regular file",
    };
    OutputProblem::NotRegularFile { kind, real }
}
