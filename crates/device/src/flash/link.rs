//! Link between host and flash drive: PCIe lanes with separate directions, or SATA, whose
//! directions share the link.

use super::specification::LinkSpecification;
use crate::WhatIf;
use diskperf_sim::Time;
use diskperf_spans::Stage;
use std::collections::VecDeque;

/// Time span of a transfer over the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    pub(super) begins: Time,
    pub(super) ends: Time,
}

impl Crossing {
    /// Returns the transfer, starting at `ready` if a counterfactual assumption lets data bypass
    /// the link's queue.
    #[inline]
    pub(super) fn supposing(self, what_if: WhatIf, ready: Time) -> Self {
        match what_if.passes {
            Some(Stage::BusWait) => Self {
                begins: ready,
                ends: ready + (self.ends - self.begins),
            },
            _ => self,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toward {
    Host,
    Drive,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Transfer time per byte toward the host and toward the drive.
    ns_per_byte: [f64; 2],
    full_duplex: bool,
    /// Unfinished transfers in order of time, toward the host and toward the drive.
    taken: [VecDeque<Crossing>; 2],
    /// Total time of all transfers so far, including those in `taken`, by direction.
    booked: [Time; 2],
}

impl Link {
    pub(super) fn new(specification: &LinkSpecification) -> Self {
        Self {
            ns_per_byte: [
                1e9 / specification.read_bytes_per_s,
                1e9 / specification.write_bytes_per_s,
            ],
            full_duplex: specification.full_duplex,
            taken: Default::default(),
            booked: [Time::ZERO; 2],
        }
    }

    /// Returns the time for which each direction has carried data or commands up to `now`.
    pub(super) fn busy(&self, now: Time) -> [Time; 2] {
        std::array::from_fn(|way| {
            let later = self.taken[way].iter().filter(|of| of.ends > now);
            let pending: Time = later.map(|of| of.ends - of.begins.max(now)).sum();
            self.booked[way] - pending
        })
    }

    /// Applies a power cut: drops all transfers, and keeps the busy time up to `now`.
    pub(super) fn lose_power(&mut self, now: Time) {
        self.booked = self.busy(now);
        self.taken = Default::default();
    }

    /// Reserves the link for data that are available at `ready`, as soon as it is free for their
    /// transfer time plus `overhead`. A transfer of zero duration reserves nothing.
    pub(super) fn cross(
        &mut self,
        now: Time,
        toward: Toward,
        (ready, bytes, overhead): (Time, u64, Time),
    ) -> Crossing {
        let ns_per_byte = self.ns_per_byte[usize::from(toward == Toward::Drive)];
        let takes = Time((bytes as f64 * ns_per_byte + 0.5) as u64) + overhead;
        let way = usize::from(self.full_duplex && toward == Toward::Drive);
        let taken = &mut self.taken[way];
        while taken.front().is_some_and(|of| of.ends <= now) {
            taken.pop_front();
        }
        if takes == Time::ZERO {
            return Crossing {
                begins: ready,
                ends: ready,
            };
        }
        self.booked[way] += takes;
        if taken.back().is_none_or(|last| last.ends <= ready) {
            let ends = ready + takes;
            let crossing = Crossing {
                begins: ready,
                ends,
            };
            taken.push_back(crossing);
            return crossing;
        }
        let mut begins = ready;
        let mut place = taken.len();
        for (number, of) in taken.iter().enumerate() {
            if begins + takes <= of.begins {
                place = number;
                break;
            }
            begins = begins.max(of.ends);
        }
        let crossing = Crossing {
            begins,
            ends: begins + takes,
        };
        taken.insert(place, crossing);
        crossing
    }
}
