//! The way between host and disk: a SCSI bus, SATA, SAS. One transfer at a time.

use diskperf_sim::Time;
use serde::Deserialize;
use std::collections::VecDeque;

/// A link, as a catalogue file or an importer describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpecification {
    /// What it carries of data, in bytes per second, with what the protocol takes off.
    pub bytes_per_s: f64,
    /// What each transfer takes besides, in ms: arbitration, selection, frames.
    #[serde(default)]
    pub overhead_ms: f64,
    /// When a read's data begin to cross it.
    #[serde(default)]
    pub delivery: Delivery,
}

/// When the data of a read begin to cross the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// With the first sector, while the others pass: speeds are matched, so that a faster
    /// link ends with the last sector and a slower one is never idle.
    #[default]
    WhileReading,
    /// When all have passed.
    WhenWhole,
}

/// The link's state.
#[derive(Clone, Debug)]
pub struct Link {
    sector_ns: f64,
    overhead: Time,
    delivery: Delivery,
    /// Transfers that are not over, in order: one of a read that has begun is known
    /// before its data pass, and others cross until then.
    taken: VecDeque<Crossing>,
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
        Self {
            sector_ns: f64::from(sector_bytes) * 1e9 / specification.bytes_per_s,
            overhead: Time((specification.overhead_ms * 1e6 + 0.5) as u64),
            delivery: specification.delivery,
            taken: VecDeque::new(),
        }
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

    /// Sectors will cross of which the first is there at `first` and the last at `last`.
    /// The link is taken only for as long as it carries them: what crosses piece by piece
    /// leaves it to others in between.
    #[inline]
    pub fn cross_while_read(
        &mut self,
        now: Time,
        (first, last): (Time, Time),
        sectors: u32,
    ) -> Crossing {
        let takes = self.overhead + self.crossing(sectors);
        let begins = match self.delivery {
            Delivery::WhenWhole => last,
            Delivery::WhileReading => {
                let ends = last + self.crossing(1);
                first.max(Time(ends.0.saturating_sub(takes.0)))
            }
        };
        self.take((now, begins), takes)
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
