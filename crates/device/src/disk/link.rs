//! The way between host and disk: a SCSI bus, SATA, SAS. One transfer at a time.

use diskperf_sim::Time;
use std::collections::VecDeque;

/// A link, as a catalogue file or an importer describes it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LinkSpecification {
    /// What it carries of data, in bytes per second, with what the protocol takes off.
    pub bytes_per_s: f64,
    /// The same of what is written, where that is another rate.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_bytes_per_s: Option<f64>,
    /// What each transfer takes besides, in ms: arbitration, selection, frames.
    #[cfg_attr(feature = "serde", serde(default))]
    pub overhead_ms: f64,
    /// What a drive that leaves the link while the arm is on its way takes to come back to
    /// it, in ms: arbitration and reselection.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reconnect_ms: f64,
    /// Whether a write does not pay for coming back to the link with its data. It is free for
    /// others before they cross all the same.
    #[cfg_attr(feature = "serde", serde(default))]
    pub holds_writes: bool,
    /// When a read's data begin to cross it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub delivery: Delivery,
}

/// When the data of a read begin to cross the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Delivery {
    /// With the first sector, while the others pass: speeds are matched, so that a faster
    /// link ends with the last sector and a slower one is never idle.
    #[default]
    WhileReading,
    /// On a SCSI bus that is kept from the beginning of the arm's way to the last sector:
    /// nothing else crosses it meanwhile.
    Held,
    /// On a SCSI bus that is left meanwhile. The drive comes back when this share of the
    /// sectors has passed, at least one, and keeps the bus from there to the last one, also
    /// while it waits for the platter: DiskSim's `High (read) water mark`.
    Reconnected {
        /// From 0 to 1.
        share: f64,
    },
}

/// The link's state.
#[derive(Clone, Debug)]
pub struct Link {
    sector_ns: f64,
    /// One sector's crossing.
    sector: Time,
    write_sector_ns: f64,
    overhead: Time,
    /// Of writes, with what it takes to come back.
    write_overhead: Time,
    /// To come back for a read.
    reconnect: Time,
    delivery: Delivery,
    /// Transfers that are not over, in order: one of a read that has begun is known
    /// before its data pass, and others cross until then.
    taken: VecDeque<Crossing>,
}

/// When sectors pass under the head that are to cross the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When the first one has passed.
    pub first: Time,
    /// When the last one has.
    pub last: Time,
    /// When the last one can begin to cross where those of a track have to wait for its first
    /// one: not the platter's time, but that of a slow link.
    pub whole_by: Time,
}

/// A transfer over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When it begins.
    pub begins: Time,
    /// When it ends.
    pub ends: Time,
}

impl Link {
    /// An idle link, for sectors of so many bytes.
    pub fn new(specification: &LinkSpecification, sector_bytes: u32) -> Self {
        let time = |ms: f64| Time((ms * 1e6 + 0.5) as u64);
        let of = specification;
        let sector_ns = |rate: f64| f64::from(sector_bytes) * 1e9 / rate;
        let again_ms = |holds: bool| if holds { 0.0 } else { of.reconnect_ms };
        let read_ns = sector_ns(of.bytes_per_s);
        Self {
            sector_ns: read_ns,
            sector: Time((read_ns + 0.5) as u64),
            write_sector_ns: sector_ns(of.write_bytes_per_s.unwrap_or(of.bytes_per_s)),
            overhead: time(of.overhead_ms),
            write_overhead: time(of.overhead_ms + again_ms(of.holds_writes)),
            reconnect: time(of.reconnect_ms),
            delivery: specification.delivery,
            taken: VecDeque::new(),
        }
    }

    /// How long a sector takes to cross, in ns.
    #[inline]
    pub fn sector_ns(&self) -> f64 {
        self.sector_ns
    }

    /// How long so many sectors take to cross.
    #[inline]
    pub fn crossing(&self, sectors: u32) -> Time {
        Time((f64::from(sectors) * self.sector_ns + 0.5) as u64)
    }

    /// Sectors cross, now or as soon as the link is free for that long.
    #[inline]
    pub fn cross(&mut self, now: Time, sectors: u32) -> Crossing {
        self.take((now, now), self.overhead + self.crossing(sectors))
    }

    /// How long so many sectors of a write take to cross.
    #[inline]
    pub fn crossing_of_write(&self, sectors: u32) -> Time {
        Time((f64::from(sectors) * self.write_sector_ns + 0.5) as u64)
    }

    /// Sectors of a write cross, now or as soon as the link is free for that long.
    #[inline]
    pub fn cross_write(&mut self, now: Time, sectors: u32) -> Crossing {
        let takes = self.write_overhead + self.crossing_of_write(sectors);
        self.take((now, now), takes)
    }

    /// Whether a read keeps the link while it waits for the platter.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.delivery != Delivery::WhileReading
    }

    /// Sectors will cross that pass, for which the arm is on its way from `begins` on.
    /// The link is taken only for as long as it carries them: what crosses piece by piece
    /// leaves it to others in between.
    #[inline]
    pub fn cross_while_read(
        &mut self,
        (now, begins): (Time, Time),
        passing: Passage,
        sectors: u32,
    ) -> Crossing {
        let takes = self.overhead + self.crossing(sectors);
        let Passage {
            first,
            last,
            whole_by,
        } = passing;
        let latest = last.max(whole_by);
        let begins = match self.delivery {
            Delivery::WhileReading => {
                let ends = latest + self.sector;
                first.max(Time(ends.0.saturating_sub(takes.0)))
            }
            Delivery::Held => return self.cross_kept((now, begins), (first, latest), sectors),
            Delivery::Reconnected { share } => {
                let others = f64::from(sectors.saturating_sub(1));
                let marked = (share * f64::from(sectors)).ceil().max(1.0) - 1.0;
                let passed = (last.0 - first.0) as f64 * marked / others.max(1.0);
                let back = first + Time(passed as u64);
                return self.cross_kept((now, back), (back, latest), sectors);
            }
        };
        self.take((now, begins), takes)
    }

    /// The link is kept from a moment on until sectors have crossed of which the first is
    /// there at `first` and the last at `last`.
    #[cold]
    fn cross_kept(
        &mut self,
        (now, from): (Time, Time),
        (first, last): (Time, Time),
        sectors: u32,
    ) -> Crossing {
        let again = match self.delivery {
            Delivery::Held => Time::ZERO,
            _ => self.reconnect,
        };
        let takes = self.overhead + again + self.crossing(sectors);
        let platter = last + self.sector;
        let ends = |begins: Time| platter.max(begins.max(first) + takes);
        self.taken.retain(|of| of.ends > now);
        let mut begins = from;
        let mut place = self.taken.len();
        for (number, of) in self.taken.iter().enumerate() {
            if ends(begins) <= of.begins {
                place = number;
                break;
            }
            begins = begins.max(of.ends);
        }
        let ends = ends(begins);
        self.taken.insert(place, Crossing { begins, ends });
        Crossing { begins, ends }
    }

    /// Takes the link for the first time from `from` on that it is free for as long.
    #[inline(always)]
    fn take(&mut self, (now, from): (Time, Time), takes: Time) -> Crossing {
        while self.taken.front().is_some_and(|of| of.ends <= now) {
            self.taken.pop_front();
        }
        let mut begins = from;
        let mut place = self.taken.len();
        for (number, of) in self.taken.iter().enumerate() {
            if begins + takes <= of.begins {
                place = number;
                break;
            }
            begins = begins.max(of.ends);
        }
        let ends = begins + takes;
        self.taken.insert(place, Crossing { begins, ends });
        Crossing { begins, ends }
    }
}
