//! The system calls that can fail beneath diskperf: what each is about, how it
//! fails, and which of them change anything.

use crate::filter::Call;
use libc::{c_int, c_long};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Which file a call is about.
#[derive(Clone, Copy)]
enum About {
    /// The argument of this place is its path.
    Path(usize),
    /// A directory's descriptor, and a path from there.
    At(usize, usize),
    /// The argument of this place is its descriptor.
    Descriptor(usize),
    Nothing,
}

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It only looks.
    Looks,
    /// It does something to what is open, or to the process.
    Acts,
    /// It changes the file that it names.
    Changes,
}

/// A system call, as far as faults are concerned.
pub(crate) struct Kind {
    number: c_long,
    pub(crate) name: &'static str,
    about: About,
    /// What it can fail with.
    pub(crate) errnos: &'static [c_int],
    effect: Effect,
}

const OPEN: &[c_int] = &[libc::EMFILE, libc::EACCES, libc::EIO, libc::EINTR];
const READ: &[c_int] = &[libc::EIO, libc::EINTR];
const WRITE: &[c_int] = &[libc::ENOSPC, libc::EIO, libc::EINTR];
const SYNC: &[c_int] = &[libc::EIO, libc::ENOSPC];
const NAME: &[c_int] = &[libc::EACCES, libc::ENOSPC, libc::EIO];
const REMOVE: &[c_int] = &[libc::EACCES, libc::EIO];
const STATUS: &[c_int] = &[libc::EACCES, libc::EIO];
const MOUNT: &[c_int] = &[libc::EPERM, libc::EBUSY];
const DESCRIPTORS: &[c_int] = &[libc::EMFILE];
const PERMISSION: &[c_int] = &[libc::EPERM];

const fn looks(number: c_long, name: &'static str, about: About, errnos: &'static [c_int]) -> Kind {
    Kind {
        number,
        name,
        about,
        errnos,
        effect: Effect::Looks,
    }
}

const fn acts(number: c_long, name: &'static str, about: About, errnos: &'static [c_int]) -> Kind {
    Kind {
        number,
        name,
        about,
        errnos,
        effect: Effect::Acts,
    }
}

const fn changes(
    number: c_long,
    name: &'static str,
    about: About,
    errnos: &'static [c_int],
) -> Kind {
    Kind {
        number,
        name,
        about,
        errnos,
        effect: Effect::Changes,
    }
}

/// Valid on every architecture except MIPS.
const SYS_CACHESTAT: c_long = 451;

/// Of what is written and read, the calls that open it say where it is.
const KINDS: &[Kind] = &[
    acts(libc::SYS_openat, "openat", About::At(0, 1), OPEN),
    looks(libc::SYS_read, "read", About::Descriptor(0), READ),
    looks(libc::SYS_pread64, "pread64", About::Descriptor(0), READ),
    looks(libc::SYS_readv, "readv", About::Descriptor(0), READ),
    acts(libc::SYS_write, "write", About::Descriptor(0), WRITE),
    acts(libc::SYS_pwrite64, "pwrite64", About::Descriptor(0), WRITE),
    acts(libc::SYS_writev, "writev", About::Descriptor(0), WRITE),
    acts(libc::SYS_fsync, "fsync", About::Descriptor(0), SYNC),
    acts(libc::SYS_fdatasync, "fdatasync", About::Descriptor(0), SYNC),
    acts(libc::SYS_syncfs, "syncfs", About::Descriptor(0), SYNC),
    acts(
        libc::SYS_ftruncate,
        "ftruncate",
        About::Descriptor(0),
        WRITE,
    ),
    acts(
        libc::SYS_fallocate,
        "fallocate",
        About::Descriptor(0),
        WRITE,
    ),
    acts(
        libc::SYS_copy_file_range,
        "copy_file_range",
        About::Descriptor(2),
        WRITE,
    ),
    acts(libc::SYS_sendfile, "sendfile", About::Descriptor(0), WRITE),
    acts(
        libc::SYS_flock,
        "flock",
        About::Descriptor(0),
        &[libc::ENOLCK, libc::EINTR],
    ),
    acts(
        libc::SYS_fcntl,
        "fcntl",
        About::Descriptor(0),
        &[libc::ENOLCK, libc::EIO],
    ),
    acts(
        libc::SYS_ioctl,
        "ioctl",
        About::Descriptor(0),
        &[libc::EIO, libc::EPERM],
    ),
    looks(
        libc::SYS_getdents64,
        "getdents64",
        About::Descriptor(0),
        &[libc::EIO],
    ),
    looks(
        libc::SYS_fadvise64,
        "fadvise64",
        About::Descriptor(0),
        &[libc::EINVAL],
    ),
    looks(
        SYS_CACHESTAT,
        "cachestat",
        About::Descriptor(0),
        &[libc::ENOSYS],
    ),
    acts(
        libc::SYS_mmap,
        "mmap",
        About::Descriptor(4),
        &[libc::ENOMEM],
    ),
    looks(
        libc::SYS_mincore,
        "mincore",
        About::Nothing,
        &[libc::EAGAIN],
    ),
    looks(libc::SYS_statx, "statx", About::At(0, 1), STATUS),
    looks(libc::SYS_newfstatat, "newfstatat", About::At(0, 1), STATUS),
    looks(libc::SYS_fstat, "fstat", About::Descriptor(0), STATUS),
    looks(libc::SYS_statfs, "statfs", About::Path(0), STATUS),
    looks(libc::SYS_fstatfs, "fstatfs", About::Descriptor(0), STATUS),
    looks(libc::SYS_readlinkat, "readlinkat", About::At(0, 1), STATUS),
    looks(libc::SYS_faccessat2, "faccessat2", About::At(0, 1), STATUS),
    looks(libc::SYS_getcwd, "getcwd", About::Nothing, &[libc::EACCES]),
    acts(libc::SYS_pipe2, "pipe2", About::Nothing, DESCRIPTORS),
    acts(
        libc::SYS_socketpair,
        "socketpair",
        About::Nothing,
        DESCRIPTORS,
    ),
    acts(libc::SYS_clone3, "clone3", About::Nothing, &[libc::EAGAIN]),
    acts(
        libc::SYS_execve,
        "execve",
        About::Path(0),
        &[libc::EACCES, libc::ENOMEM],
    ),
    looks(libc::SYS_kill, "kill", About::Nothing, PERMISSION),
    acts(libc::SYS_unshare, "unshare", About::Nothing, PERMISSION),
    acts(libc::SYS_fsopen, "fsopen", About::Nothing, PERMISSION),
    acts(libc::SYS_fsconfig, "fsconfig", About::Nothing, PERMISSION),
    acts(libc::SYS_fsmount, "fsmount", About::Nothing, PERMISSION),
    acts(libc::SYS_fchmod, "fchmod", About::Descriptor(0), PERMISSION),
    acts(libc::SYS_fchown, "fchown", About::Descriptor(0), PERMISSION),
    changes(libc::SYS_mount, "mount", About::Path(1), MOUNT),
    changes(libc::SYS_move_mount, "move_mount", About::At(2, 3), MOUNT),
    changes(libc::SYS_umount2, "umount2", About::Path(0), MOUNT),
    changes(libc::SYS_mkdirat, "mkdirat", About::At(0, 1), NAME),
    changes(libc::SYS_unlinkat, "unlinkat", About::At(0, 1), REMOVE),
    changes(libc::SYS_renameat, "renameat", About::At(2, 3), NAME),
    changes(libc::SYS_renameat2, "renameat2", About::At(2, 3), NAME),
    changes(libc::SYS_linkat, "linkat", About::At(2, 3), NAME),
    changes(libc::SYS_symlinkat, "symlinkat", About::At(1, 2), NAME),
    changes(libc::SYS_mknodat, "mknodat", About::At(0, 1), NAME),
    changes(libc::SYS_fchmodat, "fchmodat", About::At(0, 1), PERMISSION),
    changes(libc::SYS_fchownat, "fchownat", About::At(0, 1), PERMISSION),
    changes(libc::SYS_truncate, "truncate", About::Path(0), WRITE),
];

/// What only older architectures have, and C libraries still use there.
#[cfg(target_arch = "x86_64")]
const OLD_KINDS: &[Kind] = &[
    acts(libc::SYS_open, "open", About::Path(0), OPEN),
    looks(libc::SYS_stat, "stat", About::Path(0), STATUS),
    looks(libc::SYS_lstat, "lstat", About::Path(0), STATUS),
    looks(libc::SYS_readlink, "readlink", About::Path(0), STATUS),
    looks(libc::SYS_access, "access", About::Path(0), STATUS),
    changes(libc::SYS_mkdir, "mkdir", About::Path(0), NAME),
    changes(libc::SYS_rmdir, "rmdir", About::Path(0), REMOVE),
    changes(libc::SYS_unlink, "unlink", About::Path(0), REMOVE),
    changes(libc::SYS_rename, "rename", About::Path(1), NAME),
    changes(libc::SYS_link, "link", About::Path(1), NAME),
    changes(libc::SYS_symlink, "symlink", About::Path(1), NAME),
    changes(libc::SYS_chmod, "chmod", About::Path(0), PERMISSION),
    changes(libc::SYS_chown, "chown", About::Path(0), PERMISSION),
];

#[cfg(not(target_arch = "x86_64"))]
const OLD_KINDS: &[Kind] = &[];

/// The numbers of all of them.
pub(crate) fn numbers() -> Vec<c_long> {
    let all = KINDS.iter().chain(OLD_KINDS);
    all.map(|kind| kind.number).collect()
}

fn kind_of(call: &Call) -> &'static Kind {
    let mut all = KINDS.iter().chain(OLD_KINDS);
    let kind = all.find(|kind| kind.number == call.number);
    kind.expect("only these are asked about")
}

/// A call, and the file that it is about.
#[derive(Clone)]
pub(crate) struct Operation {
    pub(crate) kind: &'static Kind,
    pub(crate) path: PathBuf,
    descriptor: Option<u64>,
    arguments: [u64; 6],
}

impl std::fmt::Display for Operation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {}", self.kind.name, self.path.display())
    }
}

impl Operation {
    /// Reads what the call is about; whoever made it waits.
    pub(crate) fn of(call: &Call) -> Self {
        let kind = kind_of(call);
        let argument = |place: usize| call.arguments[place];
        let (path, descriptor) = match kind.about {
            About::Path(place) => (named(call.thread, None, argument(place)), None),
            About::At(folder, place) => {
                let folder = argument(folder);
                (named(call.thread, Some(folder), argument(place)), None)
            }
            About::Descriptor(place) => {
                let descriptor = argument(place);
                (link(call.thread, descriptor), Some(descriptor))
            }
            About::Nothing => (PathBuf::new(), None),
        };
        Self {
            kind,
            path,
            descriptor,
            arguments: call.arguments,
        }
    }

    /// Whether it can fail in a way that a program can do something about: not
    /// what the loader does, nor memory of the process's own.
    pub(crate) fn counts(&self) -> bool {
        const OF_LOADER: [&str; 5] = [
            "/lib",
            "/lib64",
            "/usr/lib",
            "/etc/ld.so.cache",
            "/etc/ld.so.preload",
        ];
        if OF_LOADER.iter().any(|place| self.path.starts_with(place)) {
            return false;
        }
        let argument = |place: usize| self.arguments[place] as c_int;
        match self.kind.number {
            // What a pipe never refuses, as the standard library knows.
            libc::SYS_ioctl | libc::SYS_read
                if self.path.to_string_lossy().starts_with("pipe:") =>
            {
                false
            }
            libc::SYS_mmap => {
                let shared = argument(3) & libc::MAP_SHARED != 0;
                let anonymous = argument(3) & libc::MAP_ANONYMOUS != 0;
                // A thread's stack, before its guard page is made one.
                let stack = argument(3) & libc::MAP_STACK != 0 && argument(2) == libc::PROT_NONE;
                (shared && !anonymous) || stack
            }
            libc::SYS_fcntl => matches!(
                argument(1),
                libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_DUPFD_CLOEXEC
            ),
            _ => true,
        }
    }

    /// Whether it makes a process the program of this name.
    pub(crate) fn starts(&self, program: &str) -> bool {
        self.kind.name == "execve" && self.path.file_name() == Some(program.as_ref())
    }

    /// Whether it leaves everything as it is.
    pub(crate) fn only_looks(&self) -> bool {
        let opens = self.kind.name.starts_with("open") && !self.changes();
        opens || self.kind.effect == Effect::Looks
    }

    /// What it can fail with.
    pub(crate) fn errnos(&self) -> &'static [c_int] {
        let duplicates = self.kind.number == libc::SYS_fcntl
            && self.arguments[1] as c_int == libc::F_DUPFD_CLOEXEC;
        if duplicates {
            DESCRIPTORS
        } else {
            self.kind.errnos
        }
    }

    pub(crate) fn is_to_standard_output(&self) -> bool {
        self.writes_to(1)
    }

    pub(crate) fn is_to_standard_error(&self) -> bool {
        self.writes_to(2)
    }

    fn writes_to(&self, descriptor: u64) -> bool {
        ["write", "writev"].contains(&self.kind.name) && self.descriptor == Some(descriptor)
    }

    /// Whether it changes the file that it names, or opens it for that.
    pub(crate) fn changes(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.kind.number == libc::SYS_open {
            return changes_by(self.arguments[1] as c_int);
        }
        match self.kind.number {
            libc::SYS_openat => changes_by(self.arguments[2] as c_int),
            _ => self.kind.effect == Effect::Changes,
        }
    }
}

fn changes_by(flags: c_int) -> bool {
    let changing =
        flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    changing && flags & libc::O_PATH != libc::O_PATH
}

/// A path of the process's memory, made absolute by way of its descriptors.
fn named(thread: u32, folder: Option<u64>, address: u64) -> PathBuf {
    let path = text_at(thread, address);
    if let Ok(rest) = path.strip_prefix("/proc/self/fd") {
        let mut parts = rest.components();
        let descriptor = parts
            .next()
            .map(|part| part.as_os_str().to_string_lossy().parse());
        if let Some(Ok(descriptor)) = descriptor {
            return link(thread, descriptor).join(parts.as_path());
        }
    }
    match folder {
        _ if path.is_absolute() => path,
        Some(folder) if folder as c_int != libc::AT_FDCWD => {
            let folder = link(thread, folder & u64::from(u32::MAX));
            if path.as_os_str().is_empty() {
                folder
            } else {
                folder.join(path)
            }
        }
        _ => {
            let current = std::fs::read_link(format!("/proc/{thread}/cwd"));
            current.unwrap_or_default().join(path)
        }
    }
}

fn link(thread: u32, descriptor: u64) -> PathBuf {
    let link = std::fs::read_link(format!("/proc/{thread}/fd/{}", descriptor as c_int));
    link.unwrap_or_default()
}

/// A text that ends with a zero byte.
fn text_at(thread: u32, address: u64) -> PathBuf {
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    let length = File::open(format!("/proc/{thread}/mem"))
        .and_then(|memory| memory.read_at(&mut bytes, address))
        .unwrap_or(0);
    bytes.truncate(length);
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Whether a path is in one of these places, by name alone.
pub(crate) fn is_in(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}
