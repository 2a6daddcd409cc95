//! Power cut of a flash drive, and its recovery.

use super::*;
use diskperf_ftl::PowerCutRecovery;

/// Loss and recovery time of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Data that the translation layer lost and pages that it scanned.
    pub recovered: PowerCutRecovery,
    /// Time at which the drive accepts commands again. Dies scan in parallel, one page of each
    /// program, whose spare area holds the logical units and a sequence number.
    pub ready: Time,
}

impl Flash {
    /// Cuts the power and restores it at the same time. Commands in flight are forgotten. A
    /// protected buffer keeps its data; another buffer loses all that is not programmed.
    ///
    /// # Panics
    ///
    /// When the specification does not model power cuts.
    pub fn power_cut(&mut self, now: Time) -> Recovery {
        let protected = self.specification.buffer.is_some_and(|of| of.protected);
        let contents = self.contents.as_mut().expect("power cuts count");
        contents.lose_power(protected);
        let recovered = self.ftl.recover_from_power_cut(protected);
        self.buffer.lose_power(protected);
        self.forget_all(now);
        let times = &self.specification.times;
        let page = self.specification.geometry.page_units();
        let one =
            self.specification.channel.command + times.read[0] + self.transfer_times[page as usize];
        let scans = recovered.scanned_units.div_ceil(self.dies.len() as u64);
        let ready = now + Time(one.0 * scans);
        self.controller = ready;
        Recovery { recovered, ready }
    }

    /// Resets the controller, and drops all work in progress.
    fn forget_all(&mut self, now: Time) {
        self.agenda = Agenda::default();
        self.link.lose_power(now);
        self.ops = Pool::default();
        self.programs = Pool::default();
        self.dies.iter_mut().for_each(|die| die.lose_power(now));
        self.channels.iter_mut().for_each(Channel::lose_power);
        self.commands.clear();
        self.crowded.clear();
        self.done.clear();
        self.under_way = 0;
        self.collecting.lose_power(now);
        self.flushes.lose_power();
        self.used = std::array::from_fn(|_| (u32::MAX, vec![0; self.dies.len()]));
        self.free.fill(Free::Now);
        self.rests = false;
        if let Some(pages) = self
            .specification
            .map_cache_pages
            .filter(|_| self.map.is_some())
        {
            self.map = Some(Map::new(pages, self.specification.layer.logical_units));
        }
    }

    /// Returns the version of a sector's data: the number of the write, in the order in which
    /// mapping units reach the buffer. 0 is data from before the first write; `None` means zeroes.
    ///
    /// # Panics
    ///
    /// When the specification does not model power cuts.
    pub fn version(&self, sector: u64) -> Option<u64> {
        let contents = self.contents.as_ref().expect("power cuts count");
        let logical = sector as u32;
        let waits = self.buffer.waiting_version(logical);
        waits.or_else(|| match self.ftl.is_untouched(logical) {
            true => Some(0),
            false => Some(contents.version(self.ftl.read(logical)?)),
        })
    }

    /// Marks the physical units of a finished program as durable.
    pub(super) fn note_programmed(&mut self, placement: Placement) {
        let units = self.units_by(self.ftl.is_slc_superblock(placement.superblock));
        if let Some(contents) = &mut self.contents {
            let offset = placement.physical % self.specification.layer_superblock_units();
            contents.programmed(placement.physical - offset % units, units);
        }
    }

    /// Marks the mapping units of a die's blocks in the victim as erased.
    pub(super) fn note_erase(&mut self, die: u32) {
        let (Some(contents), CollectionStep::EraseVictim(superblock)) =
            (&mut self.contents, self.ftl.next_collection_step())
        else {
            return;
        };
        let units = self.specification.layer_superblock_units();
        let cached = self.ftl.is_slc_superblock(superblock);
        let of_die = (superblock * units..(superblock + 1) * units)
            .filter(|physical| self.places.of(*physical, cached).die == die);
        of_die.for_each(|physical| contents.erase(physical));
    }
}
