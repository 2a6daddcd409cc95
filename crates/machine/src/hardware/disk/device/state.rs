//! What the firmware goes by besides the command itself.

use super::*;

impl Disk {
    /// What was before a command for these sectors of the host.
    #[cold]
    pub(super) fn before(
        &mut self,
        now: Time,
        kind: CommandKind,
        (first, end): (u64, u64),
    ) -> Before {
        let last = std::mem::replace(&mut self.last_asked, (kind == CommandKind::Write, end));
        let reads_on = self.ahead.as_mut().is_some_and(|ahead| {
            ahead.progress(&mut self.mechanism, now);
            !ahead.is_over(now)
        });
        match (reads_on, last == (kind == CommandKind::Write, first)) {
            (true, _) => Before::ReadingAhead,
            (false, true) => Before::Sequential,
            (false, false) if self.after_write => Before::Write,
            (false, false) => Before::Read,
        }
    }
}
