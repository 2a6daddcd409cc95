//! Kernel accounting of CPU time, page faults, context switches and storage reads for a thread and
//! its helpers.

use diskperf_timeline::Nanoseconds;
use rustix::io::Errno;
use rustix::thread::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Returns the CPU time of this process, summed over all threads.
pub fn process_cpu_time() -> Nanoseconds {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Resource usage since the start of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    /// CPU time at the resolution of the scheduler's clock.
    pub(crate) cpu_time: Nanoseconds,
    /// CPU time in user mode, counted in kernel ticks like `system`.
    pub(crate) user_time: Nanoseconds,
    pub(crate) system_time: Nanoseconds,
    pub(crate) voluntary_switch_count: u64,
    pub(crate) involuntary_switch_count: u64,
    pub(crate) minor_fault_count: u64,
    pub(crate) major_fault_count: u64,
}

impl ThreadUsage {
    /// Returns the usage of the calling thread from getrusage(2). The total CPU time comes from the
    /// thread's clock, since getrusage updates it only at a tick.
    #[allow(unsafe_code)]
    pub(crate) fn of_current_thread() -> Result<Self, Errno> {
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
            cpu_time: thread_cpu_time(),
            user_time: span(usage.ru_utime),
            system_time: span(usage.ru_stime),
            voluntary_switch_count: usage.ru_nvcsw as u64,
            involuntary_switch_count: usage.ru_nivcsw as u64,
            minor_fault_count: usage.ru_minflt as u64,
            major_fault_count: usage.ru_majflt as u64,
        })
    }
}

fn thread_cpu_time() -> Nanoseconds {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CPU time and storage reads of a thread's helpers: the threads that [`helper_thread_name`] names, and
/// those that the kernel creates for its ring (`iou-wrk-`, `iou-sqp-`), whose names contain the
/// thread's id. In a container, the thread does not know the id that the kernel uses there, so only
/// the former count.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelperThreads {
    usage_by_thread: BTreeMap<String, HelperUsage>,
}

/// CPU time and storage reads of helper threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HelperUsage {
    pub(crate) cpu_time: Nanoseconds,
    pub(crate) user_time: Nanoseconds,
    pub(crate) system_time: Nanoseconds,
    /// Bytes that storage delivered to the helpers; 0 if the kernel does not account them.
    pub(crate) storage_read_bytes: u64,
}

/// Returns the name of a thread's helpers, of at most 15 characters.
pub(crate) fn helper_thread_name(thread: Pid) -> String {
    format!("io-{thread}")
}

/// Frequency of the ticks in which `/proc` gives user and system time, the same on all
/// architectures.
const TICKS_PER_SECOND: u64 = 100;

impl HelperThreads {
    pub(crate) fn read_helper_threads(thread: Pid) -> Self {
        let names = [
            helper_thread_name(thread),
            format!("iou-wrk-{thread}"),
            format!("iou-sqp-{thread}"),
        ];
        let mut usage_by_thread = BTreeMap::new();
        for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten() {
            let Ok(entry) = entry else { continue };
            let read = |name| std::fs::read_to_string(entry.path().join(name)).ok();
            let is_helper = |name: String| {
                names
                    .iter()
                    .any(|helper| helper.as_str() == name.trim_end())
            };
            if read("comm").is_some_and(is_helper)
                && let Some(mut usage) = HelperUsage::from_proc(read("schedstat"), read("stat"))
            {
                let account = read("io").and_then(|text| storage_read_bytes(&text));
                usage.storage_read_bytes = account.unwrap_or_default();
                let number = entry.file_name().to_string_lossy().into_owned();
                usage_by_thread.insert(number, usage);
            }
        }
        Self { usage_by_thread }
    }

    /// Returns the usage since an earlier reading. Helpers that ended meanwhile count nothing.
    pub(crate) fn usage_since(&self, before: &Self) -> HelperUsage {
        let mut sum = HelperUsage::default();
        for (thread, now) in &self.usage_by_thread {
            let before = before
                .usage_by_thread
                .get(thread)
                .copied()
                .unwrap_or_default();
            let used = HelperUsage {
                cpu_time: now.cpu_time.since(before.cpu_time),
                user_time: now.user_time.since(before.user_time),
                system_time: now.system_time.since(before.system_time),
                storage_read_bytes: now
                    .storage_read_bytes
                    .saturating_sub(before.storage_read_bytes),
            };
            sum = sum + used;
        }
        sum
    }
}

impl std::ops::Add for HelperUsage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            cpu_time: self.cpu_time + other.cpu_time,
            user_time: self.user_time + other.user_time,
            system_time: self.system_time + other.system_time,
            storage_read_bytes: self.storage_read_bytes + other.storage_read_bytes,
        }
    }
}

impl HelperUsage {
    /// Parses the CPU time of a thread. `schedstat` begins with nanoseconds. In `stat`, fields 14
    /// and 15 count ticks, after a name in parentheses that may contain anything.
    fn from_proc(schedstat: Option<String>, stat: Option<String>) -> Option<Self> {
        let stat = stat?;
        let (_, fields) = stat.rsplit_once(')')?;
        let mut ticks = fields.split_ascii_whitespace().skip(11).map(|field| {
            let ticks: u64 = field.parse().ok()?;
            Some(Nanoseconds(ticks * (1_000_000_000 / TICKS_PER_SECOND)))
        });
        let (user, system) = (ticks.next()??, ticks.next()??);
        let exact = schedstat.and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
        Some(Self {
            cpu_time: exact.map_or(user + system, Nanoseconds),
            user_time: user,
            system_time: system,
            storage_read_bytes: 0,
        })
    }
}

/// Reader of the time that one thread was ready to run while another task had the CPU.
pub(crate) struct CpuWaitFile {
    file: File,
}

impl CpuWaitFile {
    /// Opens the calling thread's reader of CPU waiting time; `None` if the kernel does not account
    /// it.
    pub(crate) fn of_current_thread() -> Option<Self> {
        let wait = Self {
            file: File::open("/proc/thread-self/schedstat").ok()?,
        };
        wait.read_wait_time().map(|_| wait)
    }

    /// Returns the waiting time since the thread started, the second number of the line.
    pub(crate) fn read_wait_time(&self) -> Option<Nanoseconds> {
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

/// Reader of the bytes that storage delivered to one thread, from the kernel's accounting.
pub(crate) struct ProcIoFile {
    file: File,
}

impl ProcIoFile {
    /// Opens the calling thread's reader of storage reads; `None` if the kernel does not account
    /// them or hides them from this user.
    pub(crate) fn of_current_thread() -> Option<Self> {
        let account = Self {
            file: File::open("/proc/thread-self/io").ok()?,
        };
        account.storage_read_bytes().map(|_| account)
    }

    /// Returns the bytes read from storage so far, including read-ahead.
    pub(crate) fn storage_read_bytes(&self) -> Option<u64> {
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0).ok()?;
        storage_read_bytes(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Returns the bytes that storage delivered to this process, including ended threads; `None` if the
/// kernel does not account them.
pub(crate) fn process_storage_read_bytes() -> Option<u64> {
    storage_read_bytes(&std::fs::read_to_string("/proc/self/io").ok()?)
}

/// Parses the line `read_bytes` of an `io` file in `/proc`.
fn storage_read_bytes(account: &str) -> Option<u64> {
    let mut lines = account.lines();
    let bytes = lines.find_map(|line| line.strip_prefix("read_bytes: "))?;
    bytes.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_s_time_is_its_owner_s() {
        let own = rustix::thread::gettid();
        let before = HelperThreads::read_helper_threads(own);
        let (done, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let spin = move || {
            let begin = thread_cpu_time();
            while thread_cpu_time().since(begin) < Nanoseconds::from_millis(5) {}
            done.send(()).unwrap();
            ended.recv().unwrap_err();
        };
        let helper = std::thread::Builder::new().name(helper_thread_name(own));
        let helper = helper.spawn(spin).unwrap();
        told.recv().unwrap();
        let used = HelperThreads::read_helper_threads(own).usage_since(&before);
        assert!(used.cpu_time >= Nanoseconds::from_millis(5), "{used:?}");
        assert_eq!(
            HelperThreads::read_helper_threads(own)
                .usage_by_thread
                .len(),
            1
        );
        drop(end);
        helper.join().unwrap();
    }
}
