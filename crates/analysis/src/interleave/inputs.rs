//! What the calculation is made from.

use serde::{Serialize, Serializer};

/// A character on a line: a start bit, eight of data, a stop bit.
const BITS_PER_CHARACTER: f64 = 10.0;

/// The case: a drive, a service, and what disturbs it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inputs {
    /// The track that is read.
    pub track: Track,
    /// The service time, as measured.
    pub service: Service,
    /// Every time of the processor is divided by this; 1 is the machine that
    /// the times were measured on.
    pub cpu_speed: f64,
    /// The clock, if its ticks count.
    pub clock: Option<Clock>,
    /// Serial lines, if any are active.
    pub serial: Option<Serial>,
    /// Whether two consecutive service times are averaged.
    pub read_ahead: bool,
    /// Requests that the controller holds at a time; 1 is none but the current.
    pub outstanding: u32,
}

/// A drive's track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Track {
    /// Revolutions per minute.
    pub rpm: f64,
    /// Sectors with data.
    pub sectors_per_track: u32,
    /// Sectors without data, which pass all the same.
    pub spare_sectors_per_track: u32,
    /// Bytes of data in a sector.
    pub sector_bytes: u32,
}

impl Track {
    /// The time of one revolution.
    pub fn revolution_ms(&self) -> f64 {
        60_000.0 / self.rpm
    }

    /// How many slots each sector of a track lies behind the one before it,
    /// the next track's first the last. Formatting puts a sector `factor`
    /// slots on, or into the next free slot after that; the spare sectors are
    /// the last slots of the track.
    pub(super) fn spacings(&self, factor: u32) -> Vec<u32> {
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

    /// The time in which a sector passes.
    pub fn sector_ms(&self) -> f64 {
        let slots = f64::from(self.sectors_per_track) + f64::from(self.spare_sectors_per_track);
        self.revolution_ms() / slots
    }
}

/// Bass's parts of the service time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Service {
    /// From the controller's interrupt to the first instruction of the driver.
    pub interrupt_latency_ms: f64,
    /// The driver's work in the interrupt.
    pub driver_ms: f64,
    /// The driver's work to start a transfer.
    pub transfer_start_ms: f64,
    /// Waking and switching to the process.
    pub reschedule_ms: f64,
    /// Kernel processes and interrupts that always come first.
    pub higher_priority_ms: f64,
    /// The read system call.
    pub system_call_ms: f64,
    /// What the program does with a sector.
    pub application_ms: f64,
}

impl Service {
    /// Its parts, in the order in which they come, each with its name.
    pub fn parts(&self) -> [(&'static str, f64); 7] {
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

/// The clock's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clock {
    /// Ticks in a second.
    pub hz: f64,
    /// What a tick takes, callouts included.
    pub tick_ms: f64,
}

/// Serial lines, all of them active.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Serial {
    /// How many.
    pub lines: u32,
    /// Bits in a second on each.
    pub baud: u32,
    /// How characters get to memory.
    pub method: SerialMethod,
    /// What the interrupt of each character takes; none with DMA.
    pub us_per_char: f64,
    /// Work for each character that is done once for each buffer; none with
    /// programmed I/O.
    pub done_us_per_char: f64,
    /// Characters in a buffer.
    pub buffer_chars: u32,
    /// What waking the reader takes at each character, where input is raw.
    pub raw_wakeup_us: Option<f64>,
}

impl Serial {
    /// From a character to the next.
    pub(super) fn char_ms(&self) -> f64 {
        1e3 * BITS_PER_CHARACTER / f64::from(self.baud)
    }
}

/// How characters get from a line to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialMethod {
    /// An interrupt for each character, served in C.
    Programmed,
    /// A short interrupt for each character, and one for each buffer.
    PseudoDma,
    /// One interrupt for each buffer.
    Dma,
}

impl SerialMethod {
    /// Its name as an option and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Programmed => "programmed",
            Self::PseudoDma => "pseudo-dma",
            Self::Dma => "dma",
        }
    }

    /// What a character's interrupt takes in microseconds, if there is one: the
    /// middle of Bass's 500 to 1500 in C, and 50 to 150 of pseudo-DMA.
    pub fn us_per_char(self) -> Option<f64> {
        match self {
            Self::Programmed => Some(1000.0),
            Self::PseudoDma => Some(100.0),
            Self::Dma => None,
        }
    }

    /// The work of a full buffer for each of its characters in microseconds, if
    /// there are buffers: the middle of Bass's 50 to 400.
    pub fn done_us_per_char(self) -> Option<f64> {
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

impl Inputs {
    /// About how many interrupts come while a sector is awaited and served.
    pub fn interrupts_per_sector(&self) -> f64 {
        let interruptions = self.interruptions();
        let load: f64 = interruptions.iter().map(|one| one.processor_share).sum();
        let service_ms = self.service_ms() / (1.0 - load).max(f64::MIN_POSITIVE);
        self.interrupts_per_ms() * (service_ms + self.track.revolution_ms())
    }

    /// How many interrupts come in a millisecond.
    pub(super) fn interrupts_per_ms(&self) -> f64 {
        let all = self.interruptions().into_iter();
        all.map(|one| f64::from(one.sources) / one.period_ms).sum()
    }

    /// The service time without interruptions, at the processor's speed.
    pub fn service_ms(&self) -> f64 {
        let parts = self.service.parts();
        parts.iter().map(|(_, ms)| ms).sum::<f64>() / self.cpu_speed
    }
}
