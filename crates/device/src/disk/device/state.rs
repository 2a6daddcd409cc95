//! Drive state that firmware overheads depend on: the previous command and the read-ahead.

use super::*;

impl Disk {
    /// Returns the state that determines a command's overhead. `asked` are the host sectors of the
    /// command; `None` if it transfers none.
    #[cold]
    pub(super) fn preceding_state(
        &mut self,
        now: Time,
        kind: OverheadKind,
        asked: Option<(u64, u64)>,
    ) -> PrecedingState {
        let write = kind == OverheadKind::Write;
        let follows = asked.is_some_and(|(first, _)| self.last_command_end == (write, first));
        if let Some((_, end)) = asked {
            self.last_command_end = (write, end);
        }
        let reads_on = self.is_reading_ahead(now);
        self.overheads
            .classify_state(kind, (reads_on, follows), self.follows_write)
    }
    /// Tests whether a read-ahead is active at time `now`.
    pub(super) fn is_reading_ahead(&mut self, now: Time) -> bool {
        self.read_ahead.as_mut().is_some_and(|ahead| {
            ahead.advance_to(&mut self.mechanism, now);
            !ahead.has_reached_limit(now)
        })
    }
}
