//! Detection of memory pressure, and of memory that other processes allocated.

use super::share_if_notable;
use diskperf_timeline::{Interference, Nanoseconds};

/// Counters of `/proc/vmstat` and `/proc/pressure/memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryCounters {
    /// Microseconds during which at least one thread waited for memory; absent on kernels without
    /// the counter.
    stall_time_us: Option<u64>,
    /// Pages that the kernel scanned for reclaim.
    scanned_page_count: u64,
    swapped_page_count: u64,
    allocated_page_count: u64,
}

/// Page scans that a program's own I/O may cause: this multiple of its bytes, plus this many bytes.
/// When memory is full of pages from other files, the page cache reclaims one for each new page.
const ALLOWED_SCAN_BYTES: (u64, u64) = (2, 64 << 20);

/// Minimum swapping that is reported, in bytes. Less is a page here and there.
const REPORTED_SWAP_BYTES_MIN: u64 = 1 << 20;

/// Rate of allocation above which memory counts as taken, in bytes per second. It is a tenth of
/// what one processor can allocate page by page.
const ALLOWED_ALLOCATION_BYTES_PER_S: u64 = 128 << 20;

/// Divisor of a program's bytes that gives the kernel's own data on its pages.
const PAGE_TABLE_SHARE_DIVISOR: u64 = 20;

/// Allocation that is always allowed, in bytes, because each new process allocates a few MiB.
const ALLOWED_ALLOCATION_BYTES: u64 = 4 << 20;

impl MemoryCounters {
    /// Reads the kernel's memory counters; `None` if the system does not provide them.
    pub(super) fn read_counters() -> Option<Self> {
        let vmstat = std::fs::read_to_string("/proc/vmstat").ok()?;
        let pressure = std::fs::read_to_string("/proc/pressure/memory");
        Some(Self::parse_counters(&vmstat, &pressure.unwrap_or_default()))
    }

    fn parse_counters(vmstat: &str, pressure: &str) -> Self {
        let mut counters = Self::default();
        for line in vmstat.lines() {
            let Some((name, count)) = line.split_once(' ') else {
                continue;
            };
            let sum = match name {
                "pgscan_direct" | "pgscan_kswapd" => &mut counters.scanned_page_count,
                "pswpin" | "pswpout" => &mut counters.swapped_page_count,
                _ if name.starts_with("pgalloc_") => &mut counters.allocated_page_count,
                _ => continue,
            };
            *sum += count.parse().unwrap_or(0);
        }
        let some = pressure.lines().find(|line| line.starts_with("some "));
        counters.stall_time_us = some.and_then(|line| line.rsplit_once("total=")?.1.parse().ok());
        counters
    }
}

pub(super) fn detect_memory_interference(
    (before, after): (&MemoryCounters, &MemoryCounters),
    span: Nanoseconds,
    program_io_bytes: u64,
) -> Vec<Interference> {
    let bytes = |count: fn(&MemoryCounters) -> u64| {
        let pages = count(after).saturating_sub(count(before));
        pages.saturating_mul(rustix::param::page_size() as u64)
    };
    let stalled = after.stall_time_us.zip(before.stall_time_us);
    let stalled_us = stalled.map_or(0, |(after, before)| after.saturating_sub(before));
    let stalled = Nanoseconds(stalled_us.saturating_mul(1000));
    let scanned_bytes = bytes(|one| one.scanned_page_count);
    let swapped_bytes = bytes(|one| one.swapped_page_count);
    let is_short = share_if_notable(stalled, span).is_some()
        || scanned_bytes > program_io_bytes * ALLOWED_SCAN_BYTES.0 + ALLOWED_SCAN_BYTES.1
        || swapped_bytes >= REPORTED_SWAP_BYTES_MIN;
    let short = is_short.then(|| Interference::MemoryPressure {
        stalled_us,
        share: stalled.0 as f64 / span.0.max(1) as f64,
        scanned_bytes,
        swapped_bytes,
    });
    let own = program_io_bytes + program_io_bytes / PAGE_TABLE_SHARE_DIVISOR;
    let taken_bytes = bytes(|one| one.allocated_page_count).saturating_sub(own);
    let most =
        ALLOWED_ALLOCATION_BYTES + (ALLOWED_ALLOCATION_BYTES_PER_S as f64 * span.seconds()) as u64;
    let taken = (taken_bytes > most)
        .then_some(Interference::MemoryAllocatedByOthers { bytes: taken_bytes });
    short.into_iter().chain(taken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMSTAT: &str = "nr_free_pages 4811041\npgalloc_dma 0\npgalloc_normal 512\npgalloc_movable 1024\npgscan_kswapd 30\npgscan_direct 12\npgscan_direct_throttle 9\npswpin 3\npswpout 4\n";
    const PRESSURE: &str = "some avg10=0.00 avg60=0.44 avg300=1.38 total=8552274\nfull avg10=0.00 avg60=0.11 avg300=0.35 total=2434849\n";

    #[test]
    fn the_kernels_lines_are_read() {
        let counters = MemoryCounters {
            stall_time_us: Some(8_552_274),
            scanned_page_count: 42,
            swapped_page_count: 7,
            allocated_page_count: 1536,
        };
        assert_eq!(MemoryCounters::parse_counters(VMSTAT, PRESSURE), counters);
        assert_eq!(
            MemoryCounters::parse_counters("", ""),
            MemoryCounters::default()
        );
    }

    #[test]
    fn what_the_program_itself_needs_is_not_named() {
        let pages = |mib: u64| (mib << 20) / rustix::param::page_size() as u64;
        let span = Nanoseconds::from_millis(100);
        for (after, kinds) in [
            (MemoryCounters::default(), &[][..]),
            // The page cache is full: what is read takes the place of older pages.
            (
                MemoryCounters {
                    scanned_page_count: pages(70),
                    allocated_page_count: pages(70),
                    stall_time_us: Some(900),
                    ..MemoryCounters::default()
                },
                &[],
            ),
            (
                MemoryCounters {
                    stall_time_us: Some(12_000),
                    ..MemoryCounters::default()
                },
                &["memory_short"],
            ),
            (
                MemoryCounters {
                    scanned_page_count: pages(400),
                    allocated_page_count: pages(500),
                    ..MemoryCounters::default()
                },
                &["memory_short", "memory_taken"],
            ),
            (
                MemoryCounters {
                    swapped_page_count: pages(2),
                    ..MemoryCounters::default()
                },
                &["memory_short"],
            ),
        ] {
            let before = MemoryCounters {
                stall_time_us: Some(0),
                ..MemoryCounters::default()
            };
            let found = detect_memory_interference((&before, &after), span, 64 << 20);
            let named: Vec<&str> = found.iter().map(Interference::kind_name).collect();
            assert_eq!(named, kinds, "{after:?}");
        }
    }
}
