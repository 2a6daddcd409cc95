//! Drive state that firmware overheads depend on: the previous command and the read-ahead.

use super::*;

impl Disk {
    /// Returns the state that determines a command's overhead. `asked` are the host sectors of the
    /// command; `None` if it transfers none.
    #[cold]
    pub(super) fn before(
        &mut self,
        now: Time,
        kind: CommandKind,
        asked: Option<(u64, u64)>,
    ) -> Before {
        let write = kind == CommandKind::Write;
        let follows = asked.is_some_and(|(first, _)| self.last_asked == (write, first));
        if let Some((_, end)) = asked {
            self.last_asked = (write, end);
        }
        let reads_on = self.reads_ahead(now);
        self.overheads
            .before(kind, (reads_on, follows), self.after_write)
    }
    /// Tests whether a read-ahead is active at time `now`.
    pub(super) fn reads_ahead(&mut self, now: Time) -> bool {
        self.ahead.as_mut().is_some_and(|ahead| {
            ahead.progress(&mut self.mechanism, now);
            !ahead.is_over(now)
        })
    }
}
