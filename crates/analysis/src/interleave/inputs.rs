//! Inputs of the interleave calculation: track, service time, clock and serial lines.

use serde::{Serialize, Serializer};

/// Bits per character on a serial line: a start bit, eight data bits, a stop bit.
const BITS_PER_CHARACTER: f64 = 10.0;

/// Inputs of the calculation: a drive, a service, and the interruptions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterleaveInputs {
    /// Track of the drive that is read.
    pub track: TrackFormat,
    /// Service time of a sector, divided into measured parts.
    pub service: ServiceTimes,
    /// Speed of the processor relative to the machine that the times were measured on. Every
    /// processor time is divided by it.
    pub cpu_speed: f64,
    /// Clock of the machine, if its ticks count.
    #[serde(rename = "clock")]
    pub clock_interrupts: Option<ClockInterrupts>,
    /// Serial lines of the machine, if any are active.
    #[serde(rename = "serial")]
    pub serial_input: Option<SerialInput>,
    /// Whether two consecutive service times are averaged.
    #[serde(rename = "read_ahead")]
    pub has_read_ahead: bool,
    /// Requests that the controller holds at a time; 1 for only the current one.
    #[serde(rename = "outstanding")]
    pub outstanding_reads: u32,
}

/// Geometry and speed of a drive's track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrackFormat {
    /// Rotational speed in revolutions per minute.
    pub rpm: f64,
    /// Number of sectors with data on the track.
    pub sectors_per_track: u32,
    /// Sectors without data on the track, which pass the head as well.
    pub spare_sectors_per_track: u32,
    /// Data bytes of a sector.
    pub sector_bytes: u32,
}

impl TrackFormat {
    /// Returns the duration of one revolution in ms.
    pub fn revolution_ms(&self) -> f64 {
        60_000.0 / self.rpm
    }

    /// Returns the distance in slots of each sector of a track from the one before it; the last
    /// entry leads to the first sector of the next track.
    ///
    /// Formatting puts a sector `factor` slots further, or into the next free slot after that. The
    /// spare sectors are the last slots of the track.
    pub(super) fn sector_spacings(&self, factor: u32) -> Vec<u32> {
        let sectors = self.sectors_per_track as usize;
        let mut taken = vec![false; sectors];
        let mut places = Vec::with_capacity(sectors);
        let mut slot = 0;
        for _ in 0..sectors {
            while taken[slot] {
                slot = (slot + 1) % sectors;
            }
            taken[slot] = true;
            places.push(slot as u32);
            slot = (slot + factor as usize) % sectors;
        }
        let slots = self.sectors_per_track + self.spare_sectors_per_track;
        let next = places.iter().cycle().skip(1);
        let behind = places
            .iter()
            .zip(next)
            .map(|(one, next)| (next + slots - one) % slots);
        // The only sector of a track follows itself.
        behind
            .map(|spacing| if spacing == 0 { slots } else { spacing })
            .collect()
    }

    /// Returns the time in which a sector passes the head, in ms.
    pub fn sector_ms(&self) -> f64 {
        let slots = f64::from(self.sectors_per_track) + f64::from(self.spare_sectors_per_track);
        self.revolution_ms() / slots
    }
}

/// Parts of the service time of a sector, as Bass lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServiceTimes {
    /// Time from the controller's interrupt to the first instruction of the driver, in ms.
    pub interrupt_latency_ms: f64,
    /// Time of the driver's work in the interrupt, in ms.
    pub driver_ms: f64,
    /// Time of the driver's work to start a transfer, in ms.
    pub transfer_start_ms: f64,
    /// Time to wake the process and switch to it, in ms.
    pub reschedule_ms: f64,
    /// Time of kernel processes and interrupts that always come first, in ms.
    pub higher_priority_ms: f64,
    /// Time of the read system call, in ms.
    pub system_call_ms: f64,
    /// Time of the program's work on a sector, in ms.
    pub application_ms: f64,
}

impl ServiceTimes {
    /// Returns the parts of the service time in their order, each with its name.
    pub fn list_parts(&self) -> [(&'static str, f64); 7] {
        [
            ("interrupt latency", self.interrupt_latency_ms),
            ("driver's interrupt processing", self.driver_ms),
            ("transfer start", self.transfer_start_ms),
            ("reschedule and context switch", self.reschedule_ms),
            ("higher priority work", self.higher_priority_ms),
            ("read system call", self.system_call_ms),
            ("application", self.application_ms),
        ]
    }
}

/// Clock of the machine, whose ticks interrupt the service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockInterrupts {
    /// Clock interrupts per second.
    #[serde(rename = "hz")]
    pub frequency_hz: f64,
    /// Processor time of a tick including callouts, in ms.
    pub tick_ms: f64,
}

/// Active serial lines of the machine, whose characters interrupt the service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SerialInput {
    /// Number of active serial lines.
    #[serde(rename = "lines")]
    pub line_count: u32,
    /// Bits per second on each serial line.
    #[serde(rename = "baud")]
    pub baud_rate: u32,
    /// Method by which characters of the serial lines get to memory.
    pub method: SerialMethod,
    /// Processor time of each character's interrupt, in microseconds; 0 with DMA.
    pub us_per_char: f64,
    /// Processor time per character that is spent once for each buffer, in microseconds; 0 with
    /// programmed I/O.
    #[serde(rename = "done_us_per_char")]
    pub completion_us_per_char: f64,
    /// Number of characters in the buffer of a serial line.
    pub buffer_chars: u32,
    /// Processor time to wake the reader at each character, in microseconds; `None` unless input is
    /// raw.
    pub raw_wakeup_us: Option<f64>,
}

impl SerialInput {
    /// Returns the time between two characters on a serial line, in ms.
    pub(super) fn char_ms(&self) -> f64 {
        1e3 * BITS_PER_CHARACTER / f64::from(self.baud_rate)
    }
}

/// Method by which characters get from a serial line to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialMethod {
    /// Programmed I/O: an interrupt for each character, served in C.
    Programmed,
    /// Pseudo-DMA: a short interrupt for each character, and one for each buffer.
    PseudoDma,
    /// DMA: one interrupt for each buffer of characters.
    Dma,
}

impl SerialMethod {
    /// Returns the name of the method as an option and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Programmed => "programmed",
            Self::PseudoDma => "pseudo-dma",
            Self::Dma => "dma",
        }
    }

    /// Returns the default time of a character's interrupt in microseconds, if there is one: the
    /// middle of Bass's 500 to 1500 in C, and 50 to 150 of pseudo-DMA.
    pub fn us_per_char(self) -> Option<f64> {
        match self {
            Self::Programmed => Some(1000.0),
            Self::PseudoDma => Some(100.0),
            Self::Dma => None,
        }
    }

    /// Returns the default time per character for a full buffer in microseconds, if there are
    /// buffers: the middle of Bass's 50 to 400.
    pub fn completion_us_per_char(self) -> Option<f64> {
        match self {
            Self::Programmed => None,
            Self::PseudoDma | Self::Dma => Some(225.0),
        }
    }
}

impl Serialize for SerialMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl InterleaveInputs {
    /// Estimates the number of interrupts while a sector is awaited and served, which bounds the
    /// calculation's work.
    pub fn interrupts_per_sector(&self) -> f64 {
        let interruptions = self.list_interruptions();
        let load: f64 = interruptions.iter().map(|one| one.processor_share).sum();
        let service_ms = self.service_ms() / (1.0 - load).max(f64::MIN_POSITIVE);
        self.interrupts_per_ms() * (service_ms + self.track.revolution_ms())
    }

    /// Returns the mean number of interrupts per millisecond.
    pub(super) fn interrupts_per_ms(&self) -> f64 {
        let all = self.list_interruptions().into_iter();
        all.map(|one| f64::from(one.source_count) / one.period_ms)
            .sum()
    }

    /// Returns the service time without interruptions in ms, at the processor's speed.
    pub fn service_ms(&self) -> f64 {
        let parts = self.service.list_parts();
        parts.iter().map(|(_, ms)| ms).sum::<f64>() / self.cpu_speed
    }
}
