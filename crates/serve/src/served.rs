//! A drive, its data and its statistics, as transports share them.

use crate::{Clock, Data, ServeError, ServedDrive, Statistics};
use diskperf_device::faults::{FaultOverlay, FaultSpecification, Faults};
use diskperf_device::{Device, DeviceSpecification, Drive, Unit};
use diskperf_sim::RandomStreams;
use std::path::PathBuf;
use std::sync::Mutex;

/// Choices of a user about a served drive.
#[derive(Clone, Debug)]
pub struct ServedOptions {
    /// File that holds the data; in memory without one.
    pub data: Option<PathBuf>,
    /// Whether the file is left as it is: what is written is kept in memory.
    pub copies_on_write: bool,
    /// Bytes that clients see; the whole drive without a choice.
    pub size_bytes: Option<u64>,
    /// Virtual seconds per elapsed second.
    pub speed: f64,
    /// Whether clients may only read.
    pub is_read_only: bool,
    /// Seed of the drive's random choices.
    pub seed: u64,
    /// Whether the arrivals are kept, for [`ServedDrive::take_arrivals`].
    pub keeps_arrivals: bool,
    /// Faults of the drive, within [`served_sectors`].
    pub faults: Vec<FaultSpecification>,
}

impl Default for ServedOptions {
    fn default() -> Self {
        Self {
            data: None,
            copies_on_write: false,
            size_bytes: None,
            speed: 1.0,
            is_read_only: false,
            seed: 1983,
            keeps_arrivals: false,
            faults: Vec::new(),
        }
    }
}

/// A served drive. Dropping it ends the drive's thread.
#[derive(Debug)]
pub struct Served {
    /// The drive in real time.
    pub drive: ServedDrive,
    /// Contents of the drive.
    pub data: Data,
    /// Figures of the requests.
    pub statistics: Statistics,
    /// Bytes that clients see.
    pub size_bytes: u64,
    /// Bytes of a sector of the drive. Requests for parts of sectors cost whole ones.
    pub sector_bytes: u32,
    /// Whether clients may only read.
    pub is_read_only: bool,
    /// Whether the drive has a rotating medium.
    pub is_rotational: bool,
    /// Data that faults show; none of a drive without faults.
    pub(crate) overlay: Option<Mutex<FaultOverlay>>,
}

/// Returns the number of sectors that clients see of a drive.
///
/// # Errors
///
/// A size that the drive does not have, or that is no multiple of its sector size.
pub fn served_sectors(
    specification: &DeviceSpecification,
    size_bytes: Option<u64>,
) -> Result<u64, ServeError> {
    let sector_bytes = specification.sector_bytes();
    let sectors = specification.sectors().unwrap_or(0);
    let drive_bytes = sectors.saturating_mul(u64::from(sector_bytes));
    let size_bytes = size_bytes.unwrap_or(drive_bytes);
    if size_bytes == 0 || size_bytes > drive_bytes {
        return Err(ServeError::Request(format!(
            "--size {size_bytes}: the drive has {drive_bytes} bytes: give from {sector_bytes} to {drive_bytes}"
        )));
    }
    if !size_bytes.is_multiple_of(u64::from(sector_bytes)) {
        return Err(ServeError::Request(format!(
            "--size {size_bytes}: the drive has sectors of {sector_bytes} bytes: give a multiple"
        )));
    }
    Ok(size_bytes / u64::from(sector_bytes))
}

impl Served {
    /// Builds the drive, opens its data, and starts its clock.
    ///
    /// # Errors
    ///
    /// A size that the drive does not have, or a file that cannot hold the data.
    ///
    /// # Panics
    ///
    /// When a fault's sectors are not within [`served_sectors`].
    pub fn start(
        specification: &DeviceSpecification,
        options: &ServedOptions,
    ) -> Result<Self, ServeError> {
        let sector_bytes = specification.sector_bytes();
        let sectors = served_sectors(specification, options.size_bytes)?;
        let size_bytes = sectors * u64::from(sector_bytes);
        let data = match &options.data {
            Some(path) if options.copies_on_write => Data::copy_on_write(path, size_bytes)?,
            Some(path) => Data::in_file(path, size_bytes, options.is_read_only)?,
            None => Data::in_memory(),
        };
        let streams = RandomStreams::new(options.seed);
        let device = specification.build(&streams, Unit::default());
        let is_rotational = matches!(device, Device::Disk(_));
        let faults = Faults::new(&options.faults, sectors, sector_bytes);
        let overlay = (!faults.is_empty()).then(|| Mutex::new(FaultOverlay::new(sector_bytes)));
        let drive = Drive::new(device);
        let clock = Clock::start(options.speed);
        Ok(Self {
            drive: ServedDrive::start_with_faults(drive, faults, clock, options.keeps_arrivals)?,
            data,
            statistics: Statistics::new(options.speed),
            size_bytes,
            sector_bytes,
            is_read_only: options.is_read_only,
            is_rotational,
            overlay,
        })
    }
}
