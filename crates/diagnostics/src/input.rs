//! Files that a user names as input: regular files, or refused by what they are.

use std::fs::{File, FileType};
use std::io;
use std::path::Path;

/// Opens a file that ends: a regular one, or a pipe that the shell passes by the number of a
/// descriptor (`<(...)`).
///
/// # Errors
///
/// What is there instead, and what to do; the system's reason where nothing can be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let is_of_shell = ["/dev/fd", "/proc/self/fd"]
        .iter()
        .any(|folder| path.starts_with(folder));
    // A file that is opened may already wait for who writes it.
    if let Some(problem) = unfit(path, is_of_shell)? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    File::open(path)
}

/// Describes what a path leads to, if it may never end, or never begin.
fn unfit(path: &Path, is_of_shell: bool) -> io::Result<Option<&'static str>> {
    let kind = path.metadata()?.file_type();
    if is_of_shell && (is_pipe(kind) || kind.is_file()) {
        return Ok(None);
    }
    Ok(match kind.is_file() {
        true => of_kernel(&path.canonicalize()?),
        false => Some(special(kind)),
    })
}

/// Regular files of the kernel have no end of their own.
fn of_kernel(path: &Path) -> Option<&'static str> {
    let is_stream = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("trace_pipe"));
    if path.starts_with("/proc") || (path.starts_with("/sys") && is_stream) {
        Some(
            "is a file of the kernel, which may never end; write what it holds to a regular file, and name that",
        )
    } else {
        None
    }
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "is no regular file; name one"
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_dir() {
        "is a directory; name a file"
    } else if kind.is_fifo() {
        "is a named pipe, which may never end; write what it holds to a regular file, and name that"
    } else if kind.is_socket() {
        "is a socket; name a regular file"
    } else if kind.is_block_device() {
        "is a block device; name a regular file"
    } else {
        "is a character device, which may never end; name a regular file"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_end_is_refused_by_what_it_is() {
        let cases = [
            ("/", "is a directory"),
            ("/dev/zero", "is a character device"),
            ("/proc/kmsg", "is a file of the kernel"),
            ("/proc/self/status", "is a file of the kernel"),
        ];
        for (path, says) in cases {
            let error = open(Path::new(path)).expect_err(path);
            assert!(error.to_string().contains(says), "{path}: {error}");
        }
        let absent = open(Path::new("/proc/self/no such file")).expect_err("nothing");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert!(of_kernel(Path::new("/sys/kernel/tracing/trace_pipe")).is_some());
        assert!(of_kernel(Path::new("/sys/kernel/tracing/trace")).is_none());
        assert!(
            open(
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("Cargo.toml")
                    .as_path()
            )
            .is_ok()
        );
    }
}
