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
    pub ready_at: Time,
}

impl Flash {
    /// Cuts the power and restores it at the same time. Commands in flight are forgotten. A
    /// protected buffer keeps its data; another buffer loses all that is not programmed.
    ///
    /// # Panics
    ///
    /// When the specification does not model power cuts.
    pub fn power_cut(&mut self, now: Time) -> Recovery {
        let protected = self
            .specification
            .buffer
            .is_some_and(|of| of.is_power_protected);
        let contents = self.contents.as_mut().expect("power cuts count");
        contents.lose_power(protected);
        let recovered = self.translation_layer.recover_from_power_cut(protected);
        self.buffer.lose_power(protected);
        self.forget_all(now);
        let times = &self.specification.times;
        let page = self.specification.geometry.page_units();
        let one = self.specification.channel.command_time
            + times.read_time_by_page[0]
            + self.transfer_times_by_pages[page as usize];
        let scans = recovered.scanned_units.div_ceil(self.dies.len() as u64);
        let ready = now + Time(one.0 * scans);
        self.controller_free_at = ready;
        Recovery {
            recovered,
            ready_at: ready,
        }
    }

    /// Resets the controller, and drops all work in progress.
    fn forget_all(&mut self, now: Time) {
        self.event_queue = EventQueue::default();
        self.link.lose_power(now);
        self.read_operations = SlotPool::default();
        self.programs = SlotPool::default();
        self.dies.iter_mut().for_each(|die| die.lose_power(now));
        self.channels.iter_mut().for_each(FlashChannel::lose_power);
        self.commands_by_slot.clear();
        self.writes_awaiting_buffer.clear();
        self.completed_requests.clear();
        self.in_flight_count = 0;
        self.collection.lose_power(now);
        self.flushes.lose_power();
        self.used = std::array::from_fn(|_| (u32::MAX, vec![0; self.dies.len()]));
        self.die_readiness.fill(LoadReadiness::ReadyNow);
        self.is_idle = false;
        if let Some(pages) = self
            .specification
            .map_cache_pages
            .filter(|_| self.map_cache.is_some())
        {
            self.map_cache = Some(MapReads::new(
                pages,
                self.specification.translation.logical_units,
            ));
        }
    }

    /// Returns the version of a sector's data: the number of the write, in the order in which
    /// mapping units reach the buffer. 0 is data from before the first write; `None` means zeroes.
    ///
    /// # Panics
    ///
    /// When the specification does not model power cuts.
    pub fn version_of_sector(&self, sector: u64) -> Option<u64> {
        let contents = self.contents.as_ref().expect("power cuts count");
        let logical = sector as u32;
        let waits = self.buffer.waiting_version(logical);
        waits.or_else(|| match self.translation_layer.is_untouched(logical) {
            true => Some(0),
            false => Some(contents.version_of(self.translation_layer.read(logical)?)),
        })
    }

    /// Marks the physical units of a finished program as durable.
    pub(super) fn note_programmed_units(&mut self, placement: Placement) {
        let units = self.units_per_program(
            self.translation_layer
                .is_slc_superblock(placement.superblock),
        );
        if let Some(contents) = &mut self.contents {
            let offset = placement.physical % self.specification.superblock_units();
            contents.mark_programmed(placement.physical - offset % units, units);
        }
    }

    /// Marks the mapping units of a die's blocks in the victim as erased.
    pub(super) fn note_erase(&mut self, die: u32) {
        let (Some(contents), CollectionStep::EraseVictim(superblock)) = (
            &mut self.contents,
            self.translation_layer.next_collection_step(),
        ) else {
            return;
        };
        let units = self.specification.superblock_units();
        let cached = self.translation_layer.is_slc_superblock(superblock);
        let of_die = (superblock * units..(superblock + 1) * units)
            .filter(|physical| self.address_map.locate(*physical, cached).die == die);
        of_die.for_each(|physical| contents.erase_unit(physical));
    }
}
