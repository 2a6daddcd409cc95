//! Closed loop of requests on a drive.

use super::{Completion, Drive, Refusal};
use crate::Operation;

/// Request that a closed loop submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Operation of the request to submit.
    pub operation: Operation,
    /// First sector of the request to submit.
    pub sector: u64,
    /// Number of sectors of the request to submit.
    pub sectors: u32,
}

/// Closed loop on a drive: a constant number of requests in flight, each of which is replaced
/// when it completes. Iterates over the completions without end.
///
/// Requests in flight remain when the loop is dropped; [`Drive::completions`] returns them later.
///
/// ```
/// # use diskperf_device::fixed::{FixedConfig, FixedDevice, ServiceTime};
/// # use diskperf_device::{ClosedLoop, Command, Device, Drive, Operation};
/// # use diskperf_sim::{RandomStreams, Time};
/// # let streams = RandomStreams::new(1);
/// # let service_time = ServiceTime::Constant(Time::from_millis(2));
/// # let config = FixedConfig {
/// #     sectors: 1000, sector_bytes: 512, service_time, server_count: 1, queue_depth: 32,
/// #     stall_periods: vec![],
/// # };
/// # let fixed = FixedDevice::new(config, streams.named_stream("service"));
/// # let mut drive = Drive::new(Device::Fixed(Box::new(fixed)));
/// let mut draws = streams.named_stream("places");
/// let reads = ClosedLoop::start(&mut drive, 4, || Command {
///     operation: Operation::Read,
///     sector: draws.draw_below(1000),
///     sectors: 1,
/// })?;
/// let last = reads.take(100).last().expect("100 completions")?;
/// assert_eq!(last.completed, Time::from_millis(200));
/// # Ok::<(), diskperf_device::Refusal>(())
/// ```
#[derive(Debug)]
pub struct ClosedLoop<'d, N> {
    drive: &'d mut Drive,
    next_command: N,
}

impl<'d, N: FnMut() -> Command> ClosedLoop<'d, N> {
    /// Submits `depth` requests now. `next` generates each request.
    ///
    /// # Errors
    ///
    /// The first [`Refusal`]. The requests before it are in flight.
    pub fn start(drive: &'d mut Drive, depth: u32, next: N) -> Result<Self, Refusal> {
        let mut started = Self {
            drive,
            next_command: next,
        };
        for _ in 0..depth {
            started.submit()?;
        }
        Ok(started)
    }

    /// Returns the drive on which the closed loop runs.
    pub fn drive(&self) -> &Drive {
        self.drive
    }

    fn submit(&mut self) -> Result<(), Refusal> {
        let Command {
            operation,
            sector,
            sectors,
        } = (self.next_command)();
        self.drive.submit(operation, sector, sectors).map(|_| ())
    }
}

/// Runs the drive until a request completes, and submits the next one at that time. If the drive
/// rejects that one, returns the refusal instead of the completion.
impl<N: FnMut() -> Command> Iterator for ClosedLoop<'_, N> {
    type Item = Result<Completion, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let completion = self.drive.next_completion()?;
        Some(self.submit().map(|()| completion))
    }
}
