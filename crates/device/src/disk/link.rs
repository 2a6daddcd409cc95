//! Link between host and disk (SCSI bus, SATA or SAS), with one transfer at a time.

use diskperf_sim::Time;
use std::collections::VecDeque;

/// Specification of a link, from a catalogue file or an importer.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DiskLinkSpecification {
    /// Net data rate, without protocol overhead, in bytes per second.
    pub bytes_per_s: f64,
    /// Net data rate of writes, in bytes per second; `bytes_per_s` if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_bytes_per_s: Option<f64>,
    /// Fixed overhead of each transfer, in ms: arbitration, selection, frames.
    #[cfg_attr(feature = "serde", serde(default))]
    pub overhead_ms: f64,
    /// Time to reconnect for a drive that leaves the link during a seek, in ms: arbitration and
    /// reselection.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reconnect_ms: f64,
    /// Whether a write pays no reconnect time before its data transfer. The link is free for other
    /// transfers until then in either case.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "holds_writes"))]
    pub disconnects_for_writes: bool,
    /// Start of the data transfer of a read.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "delivery"))]
    pub read_delivery: ReadDelivery,
}

/// Start of a read's data transfer over the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ReadDelivery {
    /// The transfer overlaps the media transfer from the first sector on. Speeds are matched: a
    /// faster link ends with the last sector, and a slower link never idles.
    #[default]
    WhileReading,
    /// The read holds the SCSI bus from the start of the seek to the last sector; no other transfer
    /// can use the bus meanwhile.
    #[cfg_attr(feature = "serde", serde(rename = "held"))]
    HeldUntilComplete,
    /// The read leaves the SCSI bus during the seek. The drive reconnects when a share of the
    /// sectors, at least one, has passed. It then holds the bus to the last sector, even while it
    /// waits for the platter: DiskSim's `High (read) water mark`.
    Reconnected {
        /// Share of the sectors that pass before the drive reconnects, from 0 to 1.
        share: f64,
    },
}

/// State of a link, with its reserved transfers.
#[derive(Clone, Debug)]
pub struct DiskLink {
    read_sector_ns: f64,
    read_sector_time: Time,
    write_sector_ns: f64,
    read_overhead: Time,
    /// Overhead of a write transfer, including the reconnect.
    write_overhead: Time,
    reconnect: Time,
    delivery: ReadDelivery,
    /// Transfers that have not ended, in order of time. A read's transfer is reserved before its
    /// data pass the head; other transfers use the link until then.
    reserved_crossings: VecDeque<LinkTransfer>,
}

/// Times at which the sectors of a read pass under the head, for their transfer over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPassage {
    /// Time at which the first sector has passed.
    pub first_sector_passed: Time,
    /// Time at which the last sector has passed.
    pub last_sector_passed: Time,
    /// Earliest time at which a slow link can begin to transfer the last sector. On each track, the
    /// transfer starts when the first sector of that track has passed.
    pub complete_by: Time,
}

/// Time span of a transfer over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTransfer {
    /// Time at which the transfer over the link starts.
    pub start: Time,
    /// Time at which the transfer over the link ends.
    pub end: Time,
}

impl DiskLink {
    /// Creates an idle link for sectors of `sector_bytes` bytes.
    pub fn new(specification: &DiskLinkSpecification, sector_bytes: u32) -> Self {
        let time = |ms: f64| Time((ms * 1e6 + 0.5) as u64);
        let of = specification;
        let sector_ns = |rate: f64| f64::from(sector_bytes) * 1e9 / rate;
        let again_ms = |holds: bool| if holds { 0.0 } else { of.reconnect_ms };
        let read_ns = sector_ns(of.bytes_per_s);
        Self {
            read_sector_ns: read_ns,
            read_sector_time: Time((read_ns + 0.5) as u64),
            write_sector_ns: sector_ns(of.write_bytes_per_s.unwrap_or(of.bytes_per_s)),
            read_overhead: time(of.overhead_ms),
            write_overhead: time(of.overhead_ms + again_ms(of.disconnects_for_writes)),
            reconnect: time(of.reconnect_ms),
            delivery: specification.read_delivery,
            reserved_crossings: VecDeque::new(),
        }
    }

    /// Returns the transfer time of one sector of a read, in ns.
    #[inline]
    pub fn read_sector_ns(&self) -> f64 {
        self.read_sector_ns
    }

    /// Returns the transfer time of sectors of a read, without overhead.
    #[inline]
    pub fn read_transfer_time(&self, sectors: u32) -> Time {
        Time((f64::from(sectors) * self.read_sector_ns + 0.5) as u64)
    }

    /// Reserves the link for a read transfer from the buffer, now or as soon as the link is free
    /// for that long.
    #[inline]
    pub fn transfer_read(&mut self, now: Time, sectors: u32) -> LinkTransfer {
        self.reserve(
            (now, now),
            self.read_overhead + self.read_transfer_time(sectors),
        )
    }

    /// Returns the transfer time of sectors of a write, without overhead.
    #[inline]
    pub fn write_transfer_time(&self, sectors: u32) -> Time {
        Time((f64::from(sectors) * self.write_sector_ns + 0.5) as u64)
    }

    /// Reserves the link for a write transfer, now or as soon as the link is free for that long.
    #[inline]
    pub fn transfer_write(&mut self, now: Time, sectors: u32) -> LinkTransfer {
        let takes = self.write_overhead + self.write_transfer_time(sectors);
        self.reserve((now, now), takes)
    }

    /// Reports whether a read holds the link while it waits for the platter.
    #[inline]
    pub fn is_held_while_reading(&self) -> bool {
        self.delivery != ReadDelivery::WhileReading
    }

    /// Reserves the link for sectors that are still to pass under the head. The arm starts its seek
    /// at `begins`. Under [`ReadDelivery::WhileReading`], the link is taken only for the net transfer
    /// time, and other transfers can use it in between.
    #[inline]
    pub fn transfer_while_reading(
        &mut self,
        (now, begins): (Time, Time),
        passing: MediaPassage,
        sectors: u32,
    ) -> LinkTransfer {
        let takes = self.read_overhead + self.read_transfer_time(sectors);
        let MediaPassage {
            first_sector_passed: first,
            last_sector_passed: last,
            complete_by: whole_by,
        } = passing;
        let latest = last.max(whole_by);
        let begins = match self.delivery {
            ReadDelivery::WhileReading => {
                let ends = latest + self.read_sector_time;
                first.max(Time(ends.0.saturating_sub(takes.0)))
            }
            ReadDelivery::HeldUntilComplete => {
                return self.transfer_holding_link((now, begins), (first, latest), sectors);
            }
            ReadDelivery::Reconnected { share } => {
                let others = f64::from(sectors.saturating_sub(1));
                let marked = (share * f64::from(sectors)).ceil().max(1.0) - 1.0;
                let passed = (last.0 - first.0) as f64 * marked / others.max(1.0);
                let back = first + Time(passed as u64);
                return self.transfer_holding_link((now, back), (back, latest), sectors);
            }
        };
        self.reserve((now, begins), takes)
    }

    /// Reserves the link from a time on, without interruption, until all sectors are transferred.
    /// The first sector is available at `first`, the last one at `last`.
    #[cold]
    fn transfer_holding_link(
        &mut self,
        (now, from): (Time, Time),
        (first, last): (Time, Time),
        sectors: u32,
    ) -> LinkTransfer {
        let again = match self.delivery {
            ReadDelivery::HeldUntilComplete => Time::ZERO,
            _ => self.reconnect,
        };
        let takes = self.read_overhead + again + self.read_transfer_time(sectors);
        let platter = last + self.read_sector_time;
        let ends = |begins: Time| platter.max(begins.max(first) + takes);
        self.reserved_crossings.retain(|of| of.end > now);
        let mut begins = from;
        let mut place = self.reserved_crossings.len();
        for (number, of) in self.reserved_crossings.iter().enumerate() {
            if ends(begins) <= of.start {
                place = number;
                break;
            }
            begins = begins.max(of.end);
        }
        let ends = ends(begins);
        self.reserved_crossings.insert(
            place,
            LinkTransfer {
                start: begins,
                end: ends,
            },
        );
        LinkTransfer {
            start: begins,
            end: ends,
        }
    }

    /// Reserves the link for the first period from `from` on in which it is free for long enough.
    #[inline(always)]
    fn reserve(&mut self, (now, from): (Time, Time), takes: Time) -> LinkTransfer {
        while self
            .reserved_crossings
            .front()
            .is_some_and(|of| of.end <= now)
        {
            self.reserved_crossings.pop_front();
        }
        let mut begins = from;
        let mut place = self.reserved_crossings.len();
        for (number, of) in self.reserved_crossings.iter().enumerate() {
            if begins + takes <= of.start {
                place = number;
                break;
            }
            begins = begins.max(of.end);
        }
        let ends = begins + takes;
        self.reserved_crossings.insert(
            place,
            LinkTransfer {
                start: begins,
                end: ends,
            },
        );
        LinkTransfer {
            start: begins,
            end: ends,
        }
    }
}
