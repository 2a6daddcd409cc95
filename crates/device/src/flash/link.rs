//! Link between host and flash drive: PCIe lanes with separate directions, or SATA, whose
//! directions share the link.

use super::specification::FlashLinkSpecification;
use crate::WhatIf;
use diskperf_sim::Time;
use diskperf_spans::Stage;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) struct FlashTransfer {
    pub(super) start: Time,
    pub(super) end: Time,
}

impl FlashTransfer {
    /// Returns the transfer, starting at `ready` if a counterfactual assumption lets data bypass
    /// the link's queue.
    #[inline]
    pub(super) fn with_what_if(self, what_if: WhatIf, ready: Time) -> Self {
        match what_if.bypassed_stage {
            Some(Stage::BusWait) => Self {
                start: ready,
                end: ready + (self.end - self.start),
            },
            _ => self,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferDirection {
    ToHost,
    ToDrive,
}

#[derive(Clone, Debug)]
pub(super) struct FlashLink {
    /// Transfer time per byte toward the host and toward the drive.
    ns_per_byte: [f64; 2],
    is_full_duplex: bool,
    /// Unfinished transfers in order of time, toward the host and toward the drive.
    taken: [VecDeque<FlashTransfer>; 2],
    /// Total time of all transfers so far, including those in `taken`, by direction.
    booked: [Time; 2],
}

impl FlashLink {
    pub(super) fn new(specification: &FlashLinkSpecification) -> Self {
        Self {
            ns_per_byte: [
                1e9 / specification.read_bytes_per_s,
                1e9 / specification.write_bytes_per_s,
            ],
            is_full_duplex: specification.is_full_duplex,
            taken: Default::default(),
            booked: [Time::ZERO; 2],
        }
    }

    /// Returns the time for which each direction has carried data or commands up to `now`.
    pub(super) fn busy_times(&self, now: Time) -> [Time; 2] {
        std::array::from_fn(|way| {
            let later = self.taken[way].iter().filter(|of| of.end > now);
            let pending: Time = later.map(|of| of.end - of.start.max(now)).sum();
            self.booked[way] - pending
        })
    }

    /// Applies a power cut: drops all transfers, and keeps the busy time up to `now`.
    pub(super) fn lose_power(&mut self, now: Time) {
        self.booked = self.busy_times(now);
        self.taken = Default::default();
    }

    /// Reserves the link for data that are available at `ready`, as soon as it is free for their
    /// transfer time plus `overhead`. A transfer of zero duration reserves nothing.
    pub(super) fn transfer(
        &mut self,
        now: Time,
        toward: TransferDirection,
        ready: Time,
        bytes: u64,
        overhead: Time,
    ) -> FlashTransfer {
        let ns_per_byte = self.ns_per_byte[usize::from(toward == TransferDirection::ToDrive)];
        let takes = Time((bytes as f64 * ns_per_byte + 0.5) as u64) + overhead;
        let way = usize::from(self.is_full_duplex && toward == TransferDirection::ToDrive);
        let taken = &mut self.taken[way];
        while taken.front().is_some_and(|of| of.end <= now) {
            taken.pop_front();
        }
        if takes == Time::ZERO {
            return FlashTransfer {
                start: ready,
                end: ready,
            };
        }
        self.booked[way] += takes;
        if taken.back().is_none_or(|last| last.end <= ready) {
            let ends = ready + takes;
            let crossing = FlashTransfer {
                start: ready,
                end: ends,
            };
            taken.push_back(crossing);
            return crossing;
        }
        let mut begins = ready;
        let mut place = taken.len();
        for (number, of) in taken.iter().enumerate() {
            if begins + takes <= of.start {
                place = number;
                break;
            }
            begins = begins.max(of.end);
        }
        let crossing = FlashTransfer {
            start: begins,
            end: begins + takes,
        };
        taken.insert(place, crossing);
        crossing
    }
}
