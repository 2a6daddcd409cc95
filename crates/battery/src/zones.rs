//! Write pointers of the zones of a file (`zonemode=zbd`). All jobs that use the file share them,
//! as the jobs of one fio process do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Zones of one file, which its workers share.
pub(crate) type SharedZones = Arc<Mutex<ZoneTable>>;

/// Zone of a file. Bytes count from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ZoneState {
    /// Distance of the write pointer from the start of the zone.
    written_bytes: u64,
    is_open: bool,
    /// Whether the next write to the zone begins at its start.
    must_reset: bool,
}

/// Zones of a file by index. A zone without an entry is empty and closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneTable {
    zone_states: BTreeMap<u64, ZoneState>,
    /// Indices of open zones, in the order in which they were opened. They are tracked if a job
    /// limits their number.
    open_zone_indices: Vec<u64>,
    /// Bytes written in the zones since their last count.
    written_bytes: u64,
    /// Writes until the next one that resets its zone.
    writes_until_reset: u32,
}

impl ZoneTable {
    pub(crate) fn written_bytes(&self, zone: u64) -> u64 {
        self.zone_states
            .get(&zone)
            .map_or(0, |zone| zone.written_bytes)
    }

    pub(crate) fn is_open(&self, zone: u64) -> bool {
        self.zone_states.get(&zone).is_some_and(|zone| zone.is_open)
    }

    pub(crate) fn must_reset(&self, zone: u64) -> bool {
        self.zone_states
            .get(&zone)
            .is_some_and(|zone| zone.must_reset)
    }

    pub(crate) fn open_zone_indices(&self) -> &[u64] {
        &self.open_zone_indices
    }

    pub(crate) fn open_zone(&mut self, zone: u64) {
        self.open_zone_indices.push(zone);
        self.zone_states.entry(zone).or_default().is_open = true;
    }

    /// Closes a zone, and returns whether it was open.
    pub(crate) fn close_zone(&mut self, zone: u64) -> bool {
        if !self.is_open(zone) {
            return false;
        }
        self.open_zone_indices.retain(|open| *open != zone);
        self.zone_states.entry(zone).or_default().is_open = false;
        true
    }

    /// Moves the write pointer of a zone to its start.
    pub(crate) fn reset_zone(&mut self, zone: u64) {
        if let Some(zone) = self.zone_states.get_mut(&zone) {
            self.written_bytes = self.written_bytes.saturating_sub(zone.written_bytes);
            (zone.written_bytes, zone.must_reset) = (0, false);
        }
    }

    /// Advances the write pointer of a zone.
    pub(crate) fn record_write(&mut self, zone: u64, end_bytes: u64) {
        let zone = self.zone_states.entry(zone).or_default();
        self.written_bytes += end_bytes.saturating_sub(zone.written_bytes);
        zone.written_bytes = end_bytes;
    }

    /// Counts the written bytes in a range of zones at the start of a pass, and sets after how many
    /// writes a write resets its zone.
    pub(crate) fn begin_pass(&mut self, range: std::ops::Range<u64>, writes_until_reset: u32) {
        let zones = self.zone_states.range(range);
        self.written_bytes = zones.map(|(_, zone)| zone.written_bytes).sum();
        self.writes_until_reset = writes_until_reset;
    }

    /// Counts a write to a zone once `threshold_bytes` are written, and makes every n-th such write
    /// reset its zone.
    pub(crate) fn count_towards_reset(&mut self, zone: u64, threshold_bytes: f64, writes: u32) {
        if (self.written_bytes as f64) < threshold_bytes {
            return;
        }
        self.writes_until_reset = self.writes_until_reset.saturating_sub(1);
        if self.writes_until_reset == 0 {
            self.writes_until_reset = writes;
            self.zone_states.entry(zone).or_default().must_reset = true;
        }
    }

    /// Returns the zone of a range that is nearest to `zone`, other than `zone`, and has at least
    /// `bytes` written bytes. Of two equally near zones, the later one is returned. Without
    /// `before`, only later zones count.
    pub(crate) fn nearest_written(
        &self,
        zone: u64,
        range: std::ops::Range<u64>,
        bytes: u64,
        before: bool,
    ) -> Option<u64> {
        let fits =
            |(index, zone): (&u64, &ZoneState)| (zone.written_bytes >= bytes).then_some(*index);
        let first_later = (zone + 1).max(range.start);
        let later = match first_later < range.end {
            true => self
                .zone_states
                .range(first_later..range.end)
                .find_map(fits),
            false => None,
        };
        let last_earlier = zone.min(range.end);
        let earlier = match before && range.start < last_earlier {
            true => self
                .zone_states
                .range(range.start..last_earlier)
                .rev()
                .find_map(fits),
            false => None,
        };
        match (later, earlier) {
            (Some(later), Some(earlier)) if zone - earlier < later - zone => Some(earlier),
            (later, earlier) => later.or(earlier),
        }
    }
}
