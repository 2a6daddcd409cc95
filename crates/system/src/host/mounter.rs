//! Process that mounts and unmounts for a process which serves the disks beneath the mounts.
//!
//! A killed process ends only when none of its threads waits for a file that it serves itself by
//! FUSE. So another process waits in mount(2) and umount(2). It also keeps the private mounts: the
//! last process of a mount namespace unmounts its file systems when it ends, which would wait for
//! the server as well. The mounter ends after the server. The kernel has closed the server's files
//! by then, and refuses what the unmount still writes.
//!
//! The mounter is forked and runs no program: mount(8) and umount(8) cost more processor time than
//! the calls.

use super::fresh::{FreshKind, MountArguments, mount_arguments};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Longest request, in bytes: two paths, and the options, which the kernel limits to a page.
const REQUEST_BYTES_MAX: usize = 4 * 4096;

/// Attempts to unmount a file system that is still in use, and the pause between them.
const UNMOUNT_ATTEMPTS_MAX: u32 = 50;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(20);

/// Process that mounts and unmounts in the mount namespace of the thread that started it. It ends
/// when the value is dropped, or with the process that started it.
#[derive(Debug)]
pub struct Mounter {
    process: Pid,
    /// Socket to the process, by which one request at a time is sent and answered.
    socket: Mutex<Option<OwnedFd>>,
}

impl Mounter {
    /// Starts the process. It has none of the caller's files.
    ///
    /// # Errors
    ///
    /// The kernel refuses another process.
    #[allow(unsafe_code)]
    pub fn start() -> io::Result<Self> {
        let kind = SocketType::SEQPACKET;
        let (socket, other_end) =
            socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        // SAFETY: the child takes no lock and allocates nothing: it makes system calls with memory
        // that is its own, until it ends.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                serve(other_end.as_fd());
                // SAFETY: it ends the process at once, and runs nothing of the parent's.
                unsafe { libc::_exit(0) }
            }
            process => Ok(Self {
                process: Pid::from_raw(process).ok_or(Errno::CHILD)?,
                socket: Mutex::new(Some(socket)),
            }),
        }
    }

    /// Mounts a file system of a device on a directory.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or the process has ended.
    pub fn mount(
        &self,
        kind: FreshKind,
        device: &Path,
        directory: &Path,
        options: &[&str],
    ) -> io::Result<()> {
        let MountArguments { flags, data } = mount_arguments(options);
        let texts = [
            device.as_os_str().as_bytes(),
            directory.as_os_str().as_bytes(),
            kind.kind_name().as_bytes(),
            data.as_bytes(),
        ];
        self.request(flags.bits(), texts)
    }

    /// Unmounts the file system of a directory. Retries while it is in use.
    ///
    /// # Errors
    ///
    /// The file system stays in use, the kernel refuses, or the process has ended.
    pub fn unmount(&self, directory: &Path) -> io::Result<()> {
        let mut attempts = 1;
        loop {
            match self.request_unmount(directory, UnmountFlags::NOFOLLOW) {
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy
                        && attempts < UNMOUNT_ATTEMPTS_MAX =>
                {
                    attempts += 1;
                    thread::sleep(UNMOUNT_PAUSE);
                }
                unmounted => return unmounted,
            }
        }
    }

    /// Takes a file system from its directory at once, and unmounts it with its last user.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or the process has ended.
    pub fn unmount_lazily(&self, directory: &Path) -> io::Result<()> {
        self.request_unmount(directory, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)
    }

    fn request_unmount(&self, directory: &Path, flags: UnmountFlags) -> io::Result<()> {
        self.request(
            flags.bits(),
            [b"", directory.as_os_str().as_bytes(), b"", b""],
        )
    }

    /// Sends a request and waits for its answer. Without a type of file system it is an unmount.
    fn request(&self, flags: u32, texts: [&[u8]; 4]) -> io::Result<()> {
        let mut request = flags.to_ne_bytes().to_vec();
        for text in texts {
            request.extend_from_slice(text);
            request.push(0);
        }
        let has_zero = texts.iter().any(|text| text.contains(&0));
        if has_zero || request.len() > REQUEST_BYTES_MAX {
            return Err(Errno::INVAL.into());
        }
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = socket.as_ref().ok_or(Errno::PIPE)?;
        send(socket, &request, SendFlags::NOSIGNAL)?;
        let mut answer = [0; 4];
        loop {
            match recv(socket, &mut answer, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok((4, _)) => break,
                Ok(_) => return Err(io::Error::other("the process that mounts has ended")),
            }
        }
        match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for Mounter {
    fn drop(&mut self) {
        let socket = self
            .socket
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // The end of its requests ends it; nobody is left to report to.
        drop(socket.take());
        while let Err(Errno::INTR) = waitpid(Some(self.process), WaitOptions::empty()) {}
    }
}

/// Carries out requests until the other end is closed. Runs after a fork, so it allocates nothing.
fn serve(socket: BorrowedFd<'_>) {
    // A signal to the group of the server does not end the mounter first.
    let _ = rustix::process::setpgid(None, None);
    close_all_but(socket);
    let mut buffer = [0; REQUEST_BYTES_MAX];
    loop {
        let done = match recv(socket, &mut buffer, RecvFlags::empty()) {
            Err(Errno::INTR) => continue,
            Ok((1.., length)) => carry_out(&buffer[..length.min(REQUEST_BYTES_MAX)]),
            Ok(_) | Err(_) => return,
        };
        let answer = done.err().map_or(0, Errno::raw_os_error).to_ne_bytes();
        if send(socket, &answer, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

/// Closes all files of this process but one. What stays open before Linux 5.9 keeps the other
/// mounters until this one has ended.
#[allow(unsafe_code)]
fn close_all_but(kept: BorrowedFd<'_>) {
    let kept = kept.as_raw_fd() as libc::c_uint;
    let below = kept.checked_sub(1).map(|last| (0, last));
    for (first, last) in below.into_iter().chain([(kept + 1, libc::c_uint::MAX)]) {
        // SAFETY: this process has one thread, which uses no other file any more.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

fn carry_out(request: &[u8]) -> Result<(), Errno> {
    let (flags, mut rest) = request.split_first_chunk().ok_or(Errno::INVAL)?;
    let flags = u32::from_ne_bytes(*flags);
    let mut texts = [c""; 4];
    for text in &mut texts {
        *text = CStr::from_bytes_until_nul(rest).map_err(|_| Errno::INVAL)?;
        rest = &rest[text.to_bytes_with_nul().len()..];
    }
    let [device, directory, kind, data] = texts;
    match kind.is_empty() {
        true => unmount(directory, UnmountFlags::from_bits_retain(flags)),
        false => {
            let flags = MountFlags::from_bits_retain(flags);
            mount(device, directory, kind, flags, data)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_are_returned() {
        let mounter = Mounter::start().unwrap();
        let nowhere = Path::new("/nowhere at all");
        let error = mounter.unmount_lazily(nowhere).unwrap_err();
        let expected = match rustix::process::geteuid().is_root() {
            true => io::ErrorKind::NotFound,
            false => io::ErrorKind::PermissionDenied,
        };
        assert_eq!(error.kind(), expected);
        assert!(
            mounter
                .mount(FreshKind::Ext4, nowhere, nowhere, &[])
                .is_err()
        );
        let too_long = "x".repeat(REQUEST_BYTES_MAX);
        let refused = mounter.unmount_lazily(Path::new(&too_long)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_mounter_has_no_file_of_its_starter_and_ends_with_its_value() {
        let (mine, others) = rustix::pipe::pipe().unwrap();
        let mounters = [Mounter::start().unwrap(), Mounter::start().unwrap()];
        for mounter in &mounters {
            // An answer shows that the process has closed the files.
            let _ = mounter.unmount_lazily(Path::new("/nowhere at all"));
        }
        drop(others);
        // The pipe has an end only if no mounter has its other side.
        assert_eq!(rustix::io::read(&mine, &mut [0; 1]), Ok(0));
        let [first, second] = mounters;
        let process = first.process;
        drop(first);
        assert_eq!(
            rustix::process::test_kill_process(process),
            Err(Errno::SRCH)
        );
        drop(second);
    }
}
