//! A closed loop of requests.

use super::{Completion, Drive, Refusal};
use crate::Operation;

/// A request that a closed loop submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What is to be done.
    pub operation: Operation,
    /// The first sector.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
}

/// A drive with a constant number of requests in flight: each that completes makes room for
/// the next. An iterator over the completions, without end.
///
/// Whoever takes no more leaves the requests in flight: [`Drive::completions`] has them later.
///
/// ```
/// # use diskperf_device::fixed::{Fixed, FixedConfig, Service};
/// # use diskperf_device::{ClosedLoop, Command, Device, Drive, Operation};
/// # use diskperf_sim::{Streams, Time};
/// # let streams = Streams::new(1);
/// # let service = Service::Constant(Time::from_millis(2));
/// # let config = FixedConfig {
/// #     sectors: 1000, sector_bytes: 512, service, servers: 1, queue_depth: 32, stalls: vec![],
/// # };
/// # let fixed = Fixed::new(config, streams.stream("service"));
/// # let mut drive = Drive::new(Device::Fixed(Box::new(fixed)));
/// let mut draws = streams.stream("places");
/// let reads = ClosedLoop::start(&mut drive, 4, || Command {
///     operation: Operation::Read,
///     sector: draws.below(1000),
///     sectors: 1,
/// })?;
/// let last = reads.take(100).last().expect("100 completions")?;
/// assert_eq!(last.completed, Time::from_millis(200));
/// # Ok::<(), diskperf_device::Refusal>(())
/// ```
#[derive(Debug)]
pub struct ClosedLoop<'d, N> {
    drive: &'d mut Drive,
    next: N,
}

impl<'d, N: FnMut() -> Command> ClosedLoop<'d, N> {
    /// Submits so many requests now; `next` makes each.
    ///
    /// # Errors
    ///
    /// The first [`Refusal`]. The requests before it are in flight.
    pub fn start(drive: &'d mut Drive, depth: u32, next: N) -> Result<Self, Refusal> {
        let mut started = Self { drive, next };
        for _ in 0..depth {
            started.submit()?;
        }
        Ok(started)
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        self.drive
    }

    fn submit(&mut self) -> Result<(), Refusal> {
        let Command {
            operation,
            sector,
            sectors,
        } = (self.next)();
        self.drive.submit(operation, sector, sectors).map(|_| ())
    }
}

/// Runs until a request completes, and submits the next one at that moment. A refusal of it
/// is returned in place of the completion.
impl<N: FnMut() -> Command> Iterator for ClosedLoop<'_, N> {
    type Item = Result<Completion, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let completion = self.drive.next_completion()?;
        Some(self.submit().map(|()| completion))
    }
}
