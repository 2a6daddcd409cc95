//! The power fails, and comes back.

use super::*;
use diskperf_ftl::Recovered;

/// What a power cut cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// What the translation layer lost and scanned.
    pub recovered: Recovered,
    /// When the drive begins with commands again: dies scan side by side, a page of each
    /// program, which has its logical units and its number beside the data.
    pub ready: Time,
}

impl Flash {
    /// The power fails now and is back at once. Commands under way are forgotten. A buffer
    /// that is protected has what it had; of another one, what is not programmed is lost.
    ///
    /// # Panics
    ///
    /// When its specification leaves power cuts out of account.
    pub fn power_cut(&mut self, now: Time) -> Recovery {
        let protected = self.specification.buffer.is_some_and(|of| of.protected);
        let contents = self.contents.as_mut().expect("power cuts count");
        contents.lose_power(protected);
        let recovered = self.ftl.power_cut(protected);
        self.buffer.lose_power(protected);
        self.forget_all(now);
        let times = &self.specification.times;
        let page = self.specification.geometry.page_units();
        let one =
            self.specification.channel.command + times.read[0] + self.transfer_times[page as usize];
        let scans = recovered.scanned.div_ceil(self.dies.len() as u64);
        let ready = now + Time(one.0 * scans);
        self.controller = ready;
        Recovery { recovered, ready }
    }

    /// The controller begins anew: nothing is under way anywhere.
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

    /// Which write's data a sector has, counted as units come to the buffer; 0: from before
    /// the first; none: it has zeroes.
    ///
    /// # Panics
    ///
    /// When its specification leaves power cuts out of account.
    pub fn version(&self, sector: u64) -> Option<u64> {
        let contents = self.contents.as_ref().expect("power cuts count");
        let logical = sector as u32;
        let waits = self.buffer.waiting_version(logical);
        waits.or_else(|| match self.ftl.is_untouched(logical) {
            true => Some(0),
            false => Some(contents.version(self.ftl.read(logical)?)),
        })
    }

    /// A program is over: which places it filled.
    pub(super) fn note_programmed(&mut self, placement: Placement) {
        let units = self.units_by(self.ftl.is_cache(placement.superblock));
        if let Some(contents) = &mut self.contents {
            let offset = placement.physical % self.specification.layer_superblock_units();
            contents.programmed(placement.physical - offset % units, units);
        }
    }

    /// A die begins to erase its blocks of the victim.
    pub(super) fn note_erase(&mut self, die: u32) {
        let (Some(contents), Progress::Erase(superblock)) =
            (&mut self.contents, self.ftl.progress())
        else {
            return;
        };
        let units = self.specification.layer_superblock_units();
        let cached = self.ftl.is_cache(superblock);
        let of_die = (superblock * units..(superblock + 1) * units)
            .filter(|physical| self.places.of(*physical, cached).die == die);
        of_die.for_each(|physical| contents.erase(physical));
    }
}
