//! Work that time starts: commits of old transactions, and the flusher.

use super::Ext4;
use crate::effect::{CallContext, Task};
use crate::file_system::FileSystemError;
use crate::version::{Host, KernelVersion};

const SECOND_NS: u64 = 1_000_000_000;
/// Interval of the flusher (`dirty_writeback_centisecs`).
const WAKE_INTERVAL_NS: u64 = 5 * SECOND_NS;
/// Age at which dirty data is written (`dirty_expire_centisecs`).
const EXPIRE_AGE_NS: u64 = 30 * SECOND_NS;
/// Period in which the count of written pages is halved.
const WRITEOUT_PERIOD_NS: u64 = 3 * SECOND_NS;

/// Flusher of the device.
#[derive(Clone, Debug, Default)]
pub(super) struct Flusher {
    /// Next wake. `None`: nothing was dirty at the last one.
    wake_ns: Option<u64>,
    /// Time since which metadata is dirty. `None`: none is.
    metadata_since_ns: Option<u64>,
    /// Pages written lately, halved each period.
    writeouts: u64,
    period: u64,
}

impl Flusher {
    /// Has the flusher wake, if it does not anyway.
    pub(super) fn start(&mut self, host: &Host, now_ns: u64) {
        self.wake_ns
            .get_or_insert_with(|| timer_ns(host, now_ns, WAKE_INTERVAL_NS));
    }

    /// Notes that metadata is dirty.
    pub(super) fn note_metadata(&mut self, host: &Host, now_ns: u64) {
        self.metadata_since_ns.get_or_insert(now_ns);
        self.start(host, now_ns);
    }

    /// Notes that no metadata is dirty.
    pub(super) fn forget_metadata(&mut self) {
        self.metadata_since_ns = None;
    }

    /// Counts pages that were written.
    pub(super) fn note_writeout(&mut self, now_ns: u64, pages: u64) {
        self.decay(now_ns);
        self.writeouts += pages;
    }

    fn decay(&mut self, now_ns: u64) {
        let period = now_ns / WRITEOUT_PERIOD_NS;
        let passed = u32::try_from(period - self.period).unwrap_or(u32::MAX);
        self.writeouts = self.writeouts.checked_shr(passed).unwrap_or(0);
        self.period = period;
    }
}

/// Time at which a timer fires that is set at `now_ns`. Long timers are rounded up: by 8 ticks from
/// 64 ticks on, by 64 from 512, and so on.
fn timer_ns(host: &Host, now_ns: u64, delay_ns: u64) -> u64 {
    let tick_ns = SECOND_NS / u64::from(host.ticks_per_second);
    let ticks = delay_ns / tick_ns;
    let mut granularity = 1;
    while ticks >= 64 * granularity {
        granularity *= 8;
    }
    (now_ns / tick_ns + ticks).next_multiple_of(granularity) * tick_ns
}

impl Ext4 {
    /// Time at which the running transaction is committed for its age.
    fn commit_due_ns(&self) -> Option<u64> {
        let running = self.journal.as_ref()?.running()?;
        let interval = u64::from(self.options.mount.commit_seconds) * SECOND_NS;
        // The timer is rounded up to a whole second of the machine.
        Some((running.started_ns + interval).next_multiple_of(SECOND_NS))
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        [self.commit_due_ns(), self.flusher.wake_ns]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn run_timers(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        if self
            .commit_due_ns()
            .is_some_and(|due| due <= context.now_ns)
        {
            self.commit(context)?;
        }
        if self
            .flusher
            .wake_ns
            .is_some_and(|due| due <= context.now_ns)
        {
            self.run_flusher(context)?;
        }
        Ok(())
    }

    /// Writes what is dirty for long. A device that wrote nothing lately has no share of the dirty
    /// pages before 6.12: all goes out.
    fn run_flusher(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        let now_ns = context.now_ns;
        self.flusher.decay(now_ns);
        let has_no_share = self.host.version < KernelVersion::V6_12 && self.flusher.writeouts == 0;
        let is_due = |since: u64| has_no_share || since + EXPIRE_AGE_NS <= now_ns;
        let task = context.effects.switch(Task::Flusher);
        self.write_all_data(context, |inode| is_due(inode.dirtied_ns))?;
        if self.flusher.metadata_since_ns.is_some_and(is_due) {
            self.write_dirty_blocks(context, false);
        }
        context.effects.switch(task);
        self.flusher.wake_ns = None;
        let is_dirty = self.flusher.metadata_since_ns.is_some()
            || self
                .inodes
                .values()
                .any(|inode| inode.dirty_order.is_some());
        if is_dirty {
            self.flusher.start(&self.host, now_ns);
        }
        Ok(())
    }
}
