//! What the firmware goes by besides the command itself.

use super::*;

impl Disk {
    /// What was before a command, which is for these sectors of the host if it moves any.
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
    /// Whether the arm reads ahead.
    pub(super) fn reads_ahead(&mut self, now: Time) -> bool {
        self.ahead.as_mut().is_some_and(|ahead| {
            ahead.progress(&mut self.mechanism, now);
            !ahead.is_over(now)
        })
    }
}
