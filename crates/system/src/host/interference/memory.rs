//! Detection of memory pressure, and of memory that other processes allocated.

use super::notable;
use diskperf_timeline::{Interference, Nanoseconds};

/// Counters of `/proc/vmstat` and `/proc/pressure/memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Microseconds during which at least one thread waited for memory; absent on kernels without
    /// the counter.
    stalled_us: Option<u64>,
    /// Pages that the kernel scanned for reclaim.
    scanned: u64,
    swapped: u64,
    allocated: u64,
}

/// Page scans that a program's own I/O may cause: this multiple of its bytes, plus this many bytes.
/// When memory is full of pages from other files, the page cache reclaims one for each new page.
const SCANNED: (u64, u64) = (2, 64 << 20);

/// Minimum swapping that is reported, in bytes. Less is a page here and there.
const SWAPPED_BYTES: u64 = 1 << 20;

/// Rate of allocation above which memory counts as taken, in bytes per second. It is a tenth of
/// what one processor can allocate page by page.
const TAKEN_BYTES_PER_S: u64 = 128 << 20;

/// Divisor of a program's bytes that gives the kernel's own data on its pages.
const TABLES_PART: u64 = 20;

/// Allocation that is always allowed, in bytes, because each new process allocates a few MiB.
const TAKEN_BYTES: u64 = 4 << 20;

impl Counters {
    /// Reads the kernel's memory counters; `None` if the system does not provide them.
    pub(super) fn read() -> Option<Self> {
        let vmstat = std::fs::read_to_string("/proc/vmstat").ok()?;
        let pressure = std::fs::read_to_string("/proc/pressure/memory");
        Some(Self::parse(&vmstat, &pressure.unwrap_or_default()))
    }

    fn parse(vmstat: &str, pressure: &str) -> Self {
        let mut counters = Self::default();
        for line in vmstat.lines() {
            let Some((name, count)) = line.split_once(' ') else {
                continue;
            };
            let sum = match name {
                "pgscan_direct" | "pgscan_kswapd" => &mut counters.scanned,
                "pswpin" | "pswpout" => &mut counters.swapped,
                _ if name.starts_with("pgalloc_") => &mut counters.allocated,
                _ => continue,
            };
            *sum += count.parse().unwrap_or(0);
        }
        let some = pressure.lines().find(|line| line.starts_with("some "));
        counters.stalled_us = some.and_then(|line| line.rsplit_once("total=")?.1.parse().ok());
        counters
    }
}

pub(super) fn found(
    (before, after): (&Counters, &Counters),
    span: Nanoseconds,
    own_bytes: u64,
) -> Vec<Interference> {
    let bytes = |count: fn(&Counters) -> u64| {
        let pages = count(after).saturating_sub(count(before));
        pages.saturating_mul(rustix::param::page_size() as u64)
    };
    let stalled = after.stalled_us.zip(before.stalled_us);
    let stalled_us = stalled.map_or(0, |(after, before)| after.saturating_sub(before));
    let stalled = Nanoseconds(stalled_us.saturating_mul(1000));
    let scanned_bytes = bytes(|one| one.scanned);
    let swapped_bytes = bytes(|one| one.swapped);
    let is_short = notable(stalled, span).is_some()
        || scanned_bytes > own_bytes * SCANNED.0 + SCANNED.1
        || swapped_bytes >= SWAPPED_BYTES;
    let short = is_short.then(|| Interference::MemoryShort {
        stalled_us,
        share: stalled.0 as f64 / span.0.max(1) as f64,
        scanned_bytes,
        swapped_bytes,
    });
    let own = own_bytes + own_bytes / TABLES_PART;
    let taken_bytes = bytes(|one| one.allocated).saturating_sub(own);
    let most = TAKEN_BYTES + (TAKEN_BYTES_PER_S as f64 * span.seconds()) as u64;
    let taken = (taken_bytes > most).then_some(Interference::MemoryTaken { bytes: taken_bytes });
    short.into_iter().chain(taken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMSTAT: &str = "nr_free_pages 4811041\npgalloc_dma 0\npgalloc_normal 512\npgalloc_movable 1024\npgscan_kswapd 30\npgscan_direct 12\npgscan_direct_throttle 9\npswpin 3\npswpout 4\n";
    const PRESSURE: &str = "some avg10=0.00 avg60=0.44 avg300=1.38 total=8552274\nfull avg10=0.00 avg60=0.11 avg300=0.35 total=2434849\n";

    #[test]
    fn the_kernels_lines_are_read() {
        let counters = Counters {
            stalled_us: Some(8_552_274),
            scanned: 42,
            swapped: 7,
            allocated: 1536,
        };
        assert_eq!(Counters::parse(VMSTAT, PRESSURE), counters);
        assert_eq!(Counters::parse("", ""), Counters::default());
    }

    #[test]
    fn what_the_program_itself_needs_is_not_named() {
        let pages = |mib: u64| (mib << 20) / rustix::param::page_size() as u64;
        let span = Nanoseconds::from_millis(100);
        for (after, kinds) in [
            (Counters::default(), &[][..]),
            // The page cache is full: what is read takes the place of older pages.
            (
                Counters {
                    scanned: pages(70),
                    allocated: pages(70),
                    stalled_us: Some(900),
                    ..Counters::default()
                },
                &[],
            ),
            (
                Counters {
                    stalled_us: Some(12_000),
                    ..Counters::default()
                },
                &["memory_short"],
            ),
            (
                Counters {
                    scanned: pages(400),
                    allocated: pages(500),
                    ..Counters::default()
                },
                &["memory_short", "memory_taken"],
            ),
            (
                Counters {
                    swapped: pages(2),
                    ..Counters::default()
                },
                &["memory_short"],
            ),
        ] {
            let before = Counters {
                stalled_us: Some(0),
                ..Counters::default()
            };
            let found = found((&before, &after), span, 64 << 20);
            let named: Vec<&str> = found.iter().map(Interference::kind).collect();
            assert_eq!(named, kinds, "{after:?}");
        }
    }
}
