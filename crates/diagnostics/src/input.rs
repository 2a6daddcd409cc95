//! Access to input files that a user names. Only regular files and shell pipes are accepted;
//! anything else is refused with a message that names its kind.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// Opens an input file that is sure to end: a regular file, or a pipe that the shell passes by
/// descriptor number (`<(...)`).
///
/// # Errors
///
/// For anything else, a message with the kind of file and the remedy. The system's error if the
/// file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let is_of_shell = ["/dev/fd", "/proc/self/fd"]
        .iter()
        .any(|folder| path.starts_with(folder));
    // A file that is opened may already wait for who writes it.
    if let Some(problem) = refusal_reason(path, is_of_shell)? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    File::open(path)
}

/// Reads all of a file that is meant to be short. Returns `None` if it has more than `bytes_max`
/// bytes.
///
/// # Errors
///
/// The system's error if the file cannot be read.
pub fn read_short(file: File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

/// Describes the kind of file behind a path and the remedy, if reading the file may never end or
/// never begin. Returns None for an acceptable file.
fn refusal_reason(path: &Path, is_of_shell: bool) -> io::Result<Option<&'static str>> {
    let kind = path.metadata()?.file_type();
    if is_of_shell && (is_pipe(kind) || kind.is_file()) {
        return Ok(None);
    }
    Ok(match kind.is_file() {
        true => kernel_file_system(&path.canonicalize()?),
        false => Some(describe_special_file(kind)),
    })
}

/// Describes the problem with a regular file of the kernel (`/proc`, or a trace pipe in `/sys`),
/// which may never end. Returns None for other files.
fn kernel_file_system(path: &Path) -> Option<&'static str> {
    let is_stream = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("trace_pipe"));
    if path.starts_with("/proc") || (path.starts_with("/sys") && is_stream) {
        Some(
            "is a file of the kernel, which may never end; copy its content to a regular file, and name that file",
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
fn describe_special_file(_: FileType) -> &'static str {
    "is not a regular file; name a regular file"
}

#[cfg(unix)]
fn describe_special_file(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_dir() {
        "is a directory; name a file"
    } else if kind.is_fifo() {
        "is a named pipe, which may never end; copy its content to a regular file, and name that file"
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
    fn a_file_that_is_too_long_is_not_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let length = path.metadata().expect("it is in the sources").len();
        let read = |bytes_max| read_short(open(&path).expect("a file"), bytes_max).expect("text");
        assert_eq!(read(length).map(|bytes| bytes.len() as u64), Some(length));
        assert_eq!(read(length - 1), None);
    }

    #[test]
    fn a_file_that_may_never_end_is_refused_by_its_kind() {
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
        assert!(kernel_file_system(Path::new("/sys/kernel/tracing/trace_pipe")).is_some());
        assert!(kernel_file_system(Path::new("/sys/kernel/tracing/trace")).is_none());
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
