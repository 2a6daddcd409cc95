//! What the kernel charges to one thread.

use diskperf_timeline::Nanoseconds;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Totals since the thread started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// To the resolution of the scheduler's clock.
    pub(crate) cpu: Nanoseconds,
    /// By the kernel's ticks, as `system` is.
    pub(crate) user: Nanoseconds,
    pub(crate) system: Nanoseconds,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
}

impl Usage {
    /// getrusage(2) and the CPU clock of the calling thread. The clock is read
    /// for the sum, which getrusage updates only at a tick.
    #[allow(unsafe_code)]
    pub(crate) fn of_this_thread() -> Result<Self, Errno> {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the kernel fills the whole structure when it returns 0, and
        // it is read only then.
        let usage = unsafe {
            if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
                return Err(
                    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
                );
            }
            usage.assume_init()
        };
        let span = |time: libc::timeval| {
            Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000)
        };
        Ok(Self {
            cpu: thread_cpu_time(),
            user: span(usage.ru_utime),
            system: span(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        })
    }
}

fn thread_cpu_time() -> Nanoseconds {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How long one thread was ready to run while something else had the CPU.
pub(crate) struct CpuWait {
    file: File,
}

impl CpuWait {
    /// Of the calling thread; `None` where the kernel keeps no account.
    pub(crate) fn of_this_thread() -> Option<Self> {
        let wait = Self {
            file: File::open("/proc/thread-self/schedstat").ok()?,
        };
        wait.read().map(|_| wait)
    }

    /// Since the thread started: the second number of the line.
    pub(crate) fn read(&self) -> Option<Nanoseconds> {
        let mut text = [0; 128];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split_ascii_whitespace()
            .nth(1)?
            .parse()
            .ok()
            .map(Nanoseconds)
    }
}

/// The kernel's account of the bytes that storage delivered for one thread.
pub(crate) struct StorageAccount {
    file: File,
}

impl StorageAccount {
    /// Of the calling thread; `None` where the kernel keeps no such account
    /// or does not show it to this user.
    pub(crate) fn of_this_thread() -> Option<Self> {
        let account = Self {
            file: File::open("/proc/thread-self/io").ok()?,
        };
        account.read_bytes().map(|_| account)
    }

    /// Bytes read from storage so far, read-ahead included.
    pub(crate) fn read_bytes(&self) -> Option<u64> {
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.lines()
            .find_map(|line| line.strip_prefix("read_bytes: "))?
            .parse()
            .ok()
    }
}
