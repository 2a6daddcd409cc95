//! Waits of a fio clone. Each wait ends early when the job ends or needs a check.

use super::super::search::SearchStep;
use super::JobClone;
use super::source::{DrawnIo, HaltReason};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_fio::job::FileLock;
use diskperf_fio::{Direction, JobDefinition};
use diskperf_system::System;
use diskperf_timeline::Nanoseconds;

/// Interval at which a waiting job checks whether another job ended it. fio checks as often.
const STOP_CHECK_INTERVAL: Nanoseconds = Nanoseconds::from_millis(10);

impl JobClone<'_> {
    /// Takes a turn in the job's flow for one I/O. If other jobs go first, returns the reason why
    /// the clone leaves its ring.
    pub(super) fn wait_for_flow_turn(&self, system: &System) -> Option<HaltReason> {
        if self.job.order.flow_weight == 0 {
            return None;
        }
        let notices = system.notice_count();
        if self.worker.worker_group.take_flow_turn() {
            system.give_notice();
            return None;
        }
        match self.job.order.flow_sleep_us {
            0 => Some(HaltReason::WaitForFlow(notices)),
            _ => Some(HaltReason::FlowSleep),
        }
    }

    /// Waits for a notice of another worker, but not beyond the end of the job and its next check.
    pub(super) async fn await_notice(
        &self,
        system: &mut System,
        notices: u64,
    ) -> Result<(), ProgramError> {
        let wakes = [self.time_limits.time_limit_end, self.next_check(system)];
        let wake = wakes.into_iter().flatten().min();
        Ok(system.await_notice(notices, wake).await?)
    }

    /// Waits for the lock on the file of the held I/O and takes it. Drops the I/O if the job ends
    /// before.
    pub(super) async fn lock_file(&mut self, system: &mut System) -> Result<(), ProgramError> {
        let Some(DrawnIo { file_io: io, .. }) = self.drawn_io else {
            return Ok(());
        };
        let shares = self.job.files.lock == FileLock::ReadWrite && io.direction == Direction::Read;
        // Areas of a device have locks of their own.
        let name = super::super::file_name(
            &self.fio_job.planned_files_of_clone(self.worker)[io.file_index],
        );
        let wait = self.worker.worker_group.file_locks().join_queue(&name);
        loop {
            let notices = system.notice_count();
            self.file_lock = wait.try_lock(shares);
            if self.file_lock.is_some() {
                break;
            }
            let now = system.now();
            self.run_checks(system, now)?;
            if self.is_time_over(now) {
                self.drawn_io = None;
                break;
            }
            self.await_notice(system, notices).await?;
        }
        // The next one that waits may share the lock, or has a turn that this worker gave up.
        drop(wait);
        system.give_notice();
        Ok(())
    }

    /// Releases the file lock of the clone, if it holds one, and wakes the workers that wait for
    /// it.
    pub(super) fn unlock_file(&mut self, system: &System) {
        if self.file_lock.take().is_some() {
            system.give_notice();
        }
    }

    /// Checks the job at a point in time: the end of the ramp, the queue depth search, and
    /// conditions that end the job early.
    pub(super) fn run_checks(
        &mut self,
        system: &mut System,
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        self.is_steady |= self.monitor.run_checks(now)?;
        if let Some(search) = self
            .depth_search
            .as_mut()
            .filter(|_| self.pending_search_step == SearchStep::ContinueWindow)
        {
            match search.evaluate_window(now) {
                SearchStep::NextWindow => search.begin_window(now),
                SearchStep::SearchDone => self.is_steady = true,
                step => self.pending_search_step = step,
            }
        }
        if self.time_limits.ramp_end.is_some_and(|end| now >= end) {
            self.time_limits.ramp_end = None;
            self.phase_start = now;
            self.io_stream.reset_amounts();
            system.restart_measuring()?;
        }
        Ok(())
    }

    /// Returns the time at which the job must be checked next, whatever it waits for. `None` if no
    /// check is due.
    pub(super) fn next_check(&self, system: &System) -> Option<Nanoseconds> {
        let of_others = self
            .may_be_ended_by_others
            .then(|| system.now() + STOP_CHECK_INTERVAL);
        let of_search = self.depth_search.as_ref().map(|search| search.window_end());
        let of_search = of_search.filter(|due| *due > system.now());
        let moments = [
            self.time_limits.ramp_end,
            self.monitor.next_check(),
            of_others,
            of_search,
        ];
        moments.into_iter().flatten().min()
    }

    /// Reports whether the job issues nothing more, because its time has ended, the device is full,
    /// it reached its goal, or another job ended it.
    pub(in super::super) fn is_time_over(&self, now: Nanoseconds) -> bool {
        self.is_steady
            || self.is_device_full
            || self.worker.worker_group.must_end()
            || self
                .time_limits
                .time_limit_end
                .is_some_and(|end| now >= end)
    }

    /// Passes time until a given moment, but not beyond the end of the job, by sleeping or by using
    /// the CPU.
    pub(in super::super) async fn pass_time_until(
        &mut self,
        system: &mut System,
        moment: Nanoseconds,
        sleeps: bool,
    ) -> Result<(), ProgramError> {
        loop {
            let now = system.now();
            self.run_checks(system, now)?;
            if now >= moment || self.is_time_over(now) {
                return Ok(());
            }
            let wakes = [
                Some(moment),
                self.time_limits.time_limit_end,
                self.next_check(system),
            ];
            let wake = wakes.into_iter().flatten().min().unwrap_or(moment);
            match sleeps {
                true => system.sleep_until(wake).await?,
                false => system.consume_cpu_time(wake.since(now)).await?,
            }
        }
    }

    /// Pauses for `thinktime` after an I/O of a direction, with nothing in flight, but not beyond
    /// the end of the job.
    pub(super) async fn pause_for_think_time(
        &mut self,
        system: &mut System,
        direction: Direction,
    ) -> Result<(), ProgramError> {
        let think = &self.job.think;
        let begin = system.now();
        let after = |microseconds: u32| begin + Nanoseconds(u64::from(microseconds) * 1000);
        let (spun, ended) = (
            after(think.busy_us.min(think.pause_us)),
            after(think.pause_us),
        );
        self.pass_time_until(system, spun, false).await?;
        self.pass_time_until(system, ended, true).await?;
        if self.job.rate.ignores_think_time {
            let paused = system.now().since(begin);
            self.rate_limits.exclude_pause(direction, paused);
        }
        Ok(())
    }
}

/// Waits for all clones of the job that `wait_for` names, unless another job ends this one before.
/// Returns whether it waited.
pub(super) async fn wait_for_job(
    (system, worker): (&mut System, &Worker),
    job: &JobDefinition,
) -> Result<bool, ProgramError> {
    let Some(name) = &job.order.awaited_job else {
        return Ok(false);
    };
    let company = &worker.worker_group;
    let may_be_ended = company.may_be_ended_by_others();
    let mut has_waited = false;
    loop {
        let notices = system.notice_count();
        if company.must_end() || !company.has_running_job(name) {
            return Ok(has_waited);
        }
        has_waited = true;
        let look = may_be_ended.then(|| system.now() + STOP_CHECK_INTERVAL);
        system.await_notice(notices, look).await?;
    }
}

/// Sleeps until a given moment, unless another job ends this job before.
pub(super) async fn sleep_until(
    (system, worker): (&mut System, &Worker),
    moment: Nanoseconds,
) -> Result<(), ProgramError> {
    let may_be_ended = worker.worker_group.may_be_ended_by_others();
    loop {
        let now = system.now();
        if now >= moment || worker.worker_group.must_end() {
            return Ok(());
        }
        let wake = match may_be_ended {
            true => moment.min(now + STOP_CHECK_INTERVAL),
            false => moment,
        };
        system.sleep_until(wake).await?;
    }
}
