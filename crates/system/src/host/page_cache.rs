//! Page cache of the kernel: residency of files, dropping pages, and whether O_DIRECT bypasses it.

use super::device::{BlockDevice, DeviceNumber};
use super::mounts::{Mount, Mounts};
use rustix::fs::{Advice, AtFlags, FileType, Mode, OFlags, StatxFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

/// Magic number of tmpfs and of file systems based on its code (devtmpfs, shmem).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// Bytes of a file that one call of mincore(2) covers. Its answer takes one byte for each page.
const MINCORE_WINDOW_BYTES: u64 = 1 << 30;

/// Number of the cachestat system call. It is valid on every architecture except MIPS, which has no
/// such number and returns ENOSYS.
const SYS_CACHESTAT: libc::c_long = 451;

/// Error for a failure to drop all caches.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot drop the caches of the whole machine (/proc/sys/vm/drop_caches: {source}): this needs root; without root, omit `--drop-caches`: diskperf then drops only the pages of its own files"
)]
pub struct DropCachesError {
    pub(crate) source: io::Error,
}

/// Support for O_DIRECT: whether reads and writes of a file bypass the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectSupport {
    /// O_DIRECT bypasses the page cache.
    DirectSupported {
        /// Required alignment of the buffer in memory, in bytes.
        memory_alignment: u64,
        /// Required alignment of offset and length, in bytes.
        offset_alignment: u64,
    },
    /// O_DIRECT does not bypass the page cache, whether or not open(2) accepts the flag.
    DirectUnsupported {
        /// Reason, with a remedy if there is one.
        why: String,
    },
    /// Unknown: the kernel does not say, and only the residency after a read can show it.
    DirectUnknown,
}

/// Writes a file's dirty pages to storage and drops all its pages from the page cache. Pages that
/// another process has mapped or locked stay.
///
/// # Errors
///
/// The data could not be written, or the file is a pipe.
pub fn drop_pages(file: BorrowedFd<'_>) -> io::Result<()> {
    // A changed page cannot be dropped. This is done for a file that is open
    // for reading only as well, since others may have written it.
    match rustix::fs::fdatasync(file) {
        // /dev/null and its like have nothing to write; a read-only file
        // system has nothing changed.
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::ROFS) => {}
        Err(error) => return Err(error.into()),
    }
    drop_clean_pages(file)
}

/// Drops a file's clean pages from the page cache, without waiting for anything.
///
/// # Errors
///
/// The file is a pipe.
pub fn drop_clean_pages(file: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

pub use crate::DROP_CACHES_PATH;

/// Writes all dirty data of the machine to storage, and drops the clean page cache, directory
/// entries and inodes of the whole machine.
///
/// # Errors
///
/// The user is not root, or /proc is not that of the initial name space.
pub fn drop_all_caches() -> Result<(), DropCachesError> {
    rustix::fs::sync();
    std::fs::write(DROP_CACHES_PATH, "3\n").map_err(|source| DropCachesError { source })
}

/// Returns the bytes of the first `length_bytes` of a file or block device that are in the page
/// cache. `None` if the system does not report it (for a pipe, or a file of another user).
pub fn resident_bytes(file: BorrowedFd<'_>, length_bytes: u64) -> Option<u64> {
    let status = rustix::fs::fstat(file).ok()?;
    let size_bytes = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => u64::try_from(status.st_size).ok()?,
        FileType::BlockDevice => {
            let number = DeviceNumber::from_raw(status.st_rdev);
            BlockDevice::from_number(number).ok()?.size_bytes()
        }
        _ => return None,
    };
    let size_bytes = size_bytes.min(length_bytes);
    if size_bytes == 0 {
        return Some(0);
    }
    let pages =
        count_cached_pages(file, size_bytes).or_else(|| count_mapped_pages(file, size_bytes))?;
    // The last page of a file is counted whole.
    Some((pages * rustix::param::page_size() as u64).min(size_bytes))
}

/// Returns the type of the file system that a file lies on, if it keeps its files in memory; `None`
/// for others.
pub fn memory_file_system_name(file: BorrowedFd<'_>) -> Option<&'static str> {
    let status = rustix::fs::fstat(file).ok()?;
    if !is_data_file(FileType::from_raw_mode(status.st_mode)) {
        // The node of a device lies in memory; what it names does not.
        return None;
    }
    // The field is signed on some machines; the numbers have 32 bits.
    let kind = rustix::fs::fstatfs(file).ok()?.f_type as u64 & 0xffff_ffff;
    match kind {
        TMPFS_MAGIC => Some("tmpfs"),
        RAMFS_MAGIC => Some("ramfs"),
        HUGETLBFS_MAGIC => Some("hugetlbfs"),
        _ => None,
    }
}

/// Returns the support for O_DIRECT of a file or block device. For a directory it is known only if
/// no file in it has support (tmpfs).
///
/// # Errors
///
/// The file's status cannot be read.
pub fn direct_io_support(file: BorrowedFd<'_>) -> io::Result<DirectSupport> {
    // Since Linux 6.6 open(2) takes O_DIRECT on tmpfs, and caches as before.
    if let Some(name) = memory_file_system_name(file) {
        return Ok(DirectSupport::DirectUnsupported {
            why: format!("{name} keeps its files in memory"),
        });
    }
    let status = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    if status.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(DirectSupport::DirectUnknown);
    }
    if status.stx_dio_offset_align == 0 {
        return Ok(DirectSupport::DirectUnsupported {
            why: explain_direct_refusal(file),
        });
    }
    Ok(DirectSupport::DirectSupported {
        memory_alignment: u64::from(status.stx_dio_mem_align),
        offset_alignment: u64::from(status.stx_dio_offset_align),
    })
}

/// Returns the support for O_DIRECT of files in a directory, from a test with an unnamed file. It
/// is unknown if no file can be created, as on a read-only file system.
///
/// # Errors
///
/// The status of the file cannot be read.
pub fn direct_io_support_in_directory(directory: &Path) -> io::Result<DirectSupport> {
    let nameless = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(directory, nameless, Mode::RUSR | Mode::WUSR) else {
        return Ok(DirectSupport::DirectUnknown);
    };
    match direct_io_support(file.as_fd())? {
        DirectSupport::DirectUnknown if refuses_direct(file.as_fd()) => {
            Ok(DirectSupport::DirectUnsupported {
                why: explain_direct_refusal(file.as_fd()),
            })
        }
        support => Ok(support),
    }
}

/// Reports whether a file rejects O_DIRECT, or the first aligned write with it, with EINVAL.
fn refuses_direct(file: BorrowedFd<'_>) -> bool {
    let invalid = |result: rustix::io::Result<()>| result == Err(rustix::io::Errno::INVAL);
    if invalid(rustix::fs::fcntl_setfl(file, OFlags::DIRECT)) {
        return true;
    }
    let buffer = vec![0; 2 * DIRECT_ALIGNMENT_BYTES_MAX];
    let start = buffer.as_ptr().align_offset(DIRECT_ALIGNMENT_BYTES_MAX);
    let aligned = &buffer[start..start + DIRECT_ALIGNMENT_BYTES_MAX];
    invalid(rustix::io::pwrite(file, aligned, 0).map(|_| ()))
}

/// Largest alignment that O_DIRECT requires on the devices in use, in bytes.
const DIRECT_ALIGNMENT_BYTES_MAX: usize = 65_536;

/// Returns the reason why a file has no direct I/O, as far as the mount shows it. open(2) may
/// accept O_DIRECT all the same: ext4 then caches silently.
fn explain_direct_refusal(file: BorrowedFd<'_>) -> String {
    match find_mount_of_file(file) {
        Some(mount)
            if mount
                .superblock_options
                .split(',')
                .any(|word| word == "data=journal") =>
        {
            format!(
                "{} is mounted with data=journal, which sends all file data through the page cache and the journal: mount it without data=journal",
                mount.filesystem_type
            )
        }
        Some(mount) => format!(
            "{} does not support direct I/O for this file (for example, because it is compressed, encrypted, verified or journalled)",
            mount.filesystem_type
        ),
        None => "its file system does not support direct I/O for this file".to_owned(),
    }
}

/// Returns the mount that a file was opened on; `None` if the kernel does not report it (before
/// Linux 5.8).
pub(super) fn find_mount_of_file(file: BorrowedFd<'_>) -> Option<Mount> {
    let status = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let mounts = Mounts::read_mounts().ok()?;
    let mount = mounts
        .iter()
        .find(|mount| mount.mount_id == status.stx_mnt_id);
    mount.cloned()
}

fn is_data_file(kind: FileType) -> bool {
    matches!(kind, FileType::RegularFile | FileType::Directory)
}

/// Returns the pages of a file in the page cache, by cachestat(2), since Linux 6.5.
#[allow(unsafe_code)]
fn count_cached_pages(file: BorrowedFd<'_>, length_bytes: u64) -> Option<u64> {
    /// Layout of the kernel's `struct cachestat_range`.
    #[repr(C)]
    struct CachestatRange {
        offset_bytes: u64,
        length_bytes: u64,
    }
    /// Kernel's `struct cachestat`: pages cached, dirty, under write-back, evicted, and recently
    /// evicted.
    #[repr(C)]
    #[derive(Default)]
    struct CachestatResult {
        cached_pages: u64,
        other_counts: [u64; 4],
    }
    let range = CachestatRange {
        offset_bytes: 0,
        length_bytes,
    };
    let mut statistics = CachestatResult::default();
    // SAFETY: the descriptor is open for as long as it is borrowed, and both
    // pointers are to structures of the kernel's layout that outlive the call.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut statistics,
            0,
        )
    };
    (result == 0).then_some(statistics.cached_pages)
}

/// Returns the pages of a file in the page cache, by mincore(2) over a mapping of the file.
fn count_mapped_pages(file: BorrowedFd<'_>, size_bytes: u64) -> Option<u64> {
    if !is_mincore_reliable(file) {
        return None;
    }
    let mut pages = 0;
    let mut offset = 0;
    while offset < size_bytes {
        let length = MINCORE_WINDOW_BYTES.min(size_bytes - offset);
        pages += count_resident_in_window(file, offset, usize::try_from(length).ok()?)?;
        offset += length;
    }
    Some(pages)
}

/// Reports whether mincore(2) is reliable for a file. If the caller neither owns nor may write the
/// file, mincore(2) reports all of it as resident.
fn is_mincore_reliable(file: BorrowedFd<'_>) -> bool {
    let owned = rustix::fs::fstat(file)
        .is_ok_and(|status| status.st_uid == rustix::process::geteuid().as_raw());
    owned
        || rustix::fs::accessat(
            rustix::fs::CWD,
            format!("/proc/self/fd/{}", file.as_raw_fd()),
            rustix::fs::Access::WRITE_OK,
            AtFlags::EACCESS,
        )
        .is_ok()
}

#[allow(unsafe_code)]
fn count_resident_in_window(file: BorrowedFd<'_>, offset: u64, length: usize) -> Option<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let mut residency = vec![0_u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: the kernel chooses the place of the mapping, nothing reads
    // through it, and it is unmapped before its address is forgotten. The
    // vector has the one byte for each page that mincore writes.
    unsafe {
        let address = mmap(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ,
            MapFlags::SHARED,
            file,
            offset,
        )
        .ok()?;
        let result = libc::mincore(address, length, residency.as_mut_ptr());
        munmap(address, length).ok()?;
        if result != 0 {
            return None;
        }
    }
    // The other bits are reserved.
    Some(residency.iter().filter(|&page| page & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn both_ways_of_counting_agree() {
        let page_bytes = rustix::param::page_size();
        for (bytes, pages) in [(0, 0), (1, 1), (page_bytes, 1), (10 * page_bytes + 7, 11)] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![1; bytes]).unwrap();
            let mapped = count_mapped_pages(file.as_fd(), bytes as u64);
            assert_eq!(mapped, Some(pages), "{bytes} bytes");
            match count_cached_pages(file.as_fd(), bytes as u64) {
                Some(cached) => assert_eq!(cached, pages, "{bytes} bytes"),
                None => eprintln!("SKIPPED cachestat: Linux before 6.5"),
            }
            assert_eq!(resident_bytes(file.as_fd(), u64::MAX), Some(bytes as u64));
        }
    }

    #[test]
    fn what_has_no_pages_is_not_counted() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(resident_bytes(null.as_fd(), u64::MAX), None);
        assert_eq!(memory_file_system_name(null.as_fd()), None);
        drop_pages(null.as_fd()).unwrap();
        let (pipe, _write_end) = std::io::pipe().unwrap();
        assert_eq!(resident_bytes(pipe.as_fd(), u64::MAX), None);
        assert!(drop_pages(pipe.as_fd()).is_err());
    }
}
