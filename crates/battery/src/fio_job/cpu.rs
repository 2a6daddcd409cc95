//! The fio engine `cpuio`: a clone that uses the CPU and does no I/O.

use super::clone::JobClone;
use crate::program::ProgramError;
use diskperf_system::System;
use diskperf_timeline::Nanoseconds;

impl JobClone<'_> {
    /// Uses the CPU in chunks until the job's time has ended, with pauses between the chunks that
    /// `cpuload` sets. As in fio, the job checks after each chunk whether another job ended it.
    pub(super) async fn use_processor(&mut self, system: &mut System) -> Result<(), ProgramError> {
        let cpu = self.job.engine.cpu_load;
        let chunk_us = u64::from(cpu.chunk_us);
        let load = u64::from(cpu.load_percent.clamp(1, 100));
        let chunk = Nanoseconds(chunk_us * 1000);
        let idle = Nanoseconds(chunk_us * (100 - load) / load * 1000);
        loop {
            let now = system.now();
            let io_is_over = cpu.exits_with_io && self.worker.worker_group.has_all_io_ended();
            if io_is_over || self.is_time_over(now) {
                return Ok(());
            }
            self.pass_time_until(system, now + chunk, false).await?;
            let busy_until = system.now();
            self.pass_time_until(system, busy_until + idle, true)
                .await?;
        }
    }
}
