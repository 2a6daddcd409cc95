//! Safety checks before a block device is written. Only the device that the user named may be
//! written, and only if it is provably idle. The checks write nothing.

mod backing;
mod extents;
mod modelled;
mod refusal;
mod usage;
mod writers;

pub use modelled::MODELLED_DRIVE_SOURCE;
pub use refusal::WriteRefusal;

use super::device::BlockDevice;
use super::device::tool::{ExternalTool, ToolError};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Maximum number of gaps that a note lists, of possibly hundreds.
const LISTED_FACTS_MAX: usize = 3;

/// Device that may be written and is claimed from the kernel. While the claim exists, the device
/// cannot be mounted, used as swap, or added to a device mapper or md device.
#[derive(Debug)]
pub struct ClaimedDevice {
    device: BlockDevice,
    /// Facts about other processes that could not be determined.
    undetermined_facts: BTreeSet<String>,
    /// Exclusive open descriptor of the device, which is the claim.
    _claim: OwnedFd,
}

impl ClaimedDevice {
    /// Returns the device that was claimed for writing.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Describes the facts about other processes that could not be determined; `None` if all were.
    pub fn undetermined_facts_note(&self) -> Option<String> {
        if self.undetermined_facts.is_empty() {
            return None;
        }
        let named: Vec<&str> = self
            .undetermined_facts
            .iter()
            .take(LISTED_FACTS_MAX)
            .map(String::as_str)
            .collect();
        let others = match self.undetermined_facts.len() - named.len() {
            0 => String::new(),
            count => format!(", and {count} more"),
        };
        Some(format!(
            "diskperf could not determine {}{others}: make sure that nothing there writes to {}",
            named.join(", "),
            self.device.path().display()
        ))
    }
}

/// Claims a device for writing. `named` is the device that the user permitted to overwrite. With
/// `ignore_signature`, existing data on it is no reason for refusal.
///
/// The claim precedes the checks, so that nothing can start to use the device in between. A refusal
/// releases the claim.
///
/// # Errors
///
/// A [`WriteRefusal`] for every reason not to write.
pub fn claim_for_writing(
    device: &BlockDevice,
    named: &Path,
    ignore_signature: bool,
) -> Result<ClaimedDevice, WriteRefusal> {
    require_same_device(device, named)?;
    if device.is_read_only() {
        return Err(WriteRefusal::ReadOnlyDevice {
            device: device.path().to_owned(),
        });
    }
    let claim = device.open_device(OFlags::RDWR | OFlags::EXCL);
    // Where the claim failed, this says more than "busy".
    usage::require_idle(device)?;
    let claim = claim.map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::BUSY) => WriteRefusal::InUseByKernel {
            device: device.path().to_owned(),
            source,
        },
        _ => WriteRefusal::CannotOpen {
            device: device.path().to_owned(),
            source,
        },
    })?;
    let undetermined = usage::require_no_writer(device)?;
    if !ignore_signature {
        require_no_signature(device)?;
    }
    Ok(ClaimedDevice {
        device: device.clone(),
        undetermined_facts: undetermined,
        _claim: claim,
    })
}

fn require_same_device(device: &BlockDevice, named: &Path) -> Result<(), WriteRefusal> {
    let named_device =
        BlockDevice::from_path(named).map_err(|source| WriteRefusal::PermittedNoDevice {
            device: device.path().to_owned(),
            source,
        })?;
    if named_device.device_number() != device.device_number() {
        return Err(WriteRefusal::PermittedOtherDevice {
            device: device.path().to_owned(),
            number: device.device_number(),
            named: named.to_owned(),
            named_number: named_device.device_number(),
        });
    }
    Ok(())
}

/// Refuses a device with a signature. A partition table counts, even one that only the kernel still
/// knows.
fn require_no_signature(device: &BlockDevice) -> Result<(), WriteRefusal> {
    let not_proven = |why: String| WriteRefusal::UseUnknown {
        device: device.path().to_owned(),
        why,
    };
    let mut found = find_signatures(device).map_err(|error| not_proven(error.to_string()))?;
    let partitions = device
        .list_partitions()
        .map_err(|error| not_proven(error.to_string()))?;
    // Partitions of no table are what a former user of a loop device left.
    let stale = match found.is_empty() {
        true => format!(
            " without a partition table (`partx --delete {}` makes the kernel forget it)",
            device.path().display()
        ),
        false => String::new(),
    };
    found.extend(
        partitions
            .iter()
            .map(|partition| format!("partition {}{stale}", partition.name())),
    );
    if found.is_empty() {
        return Ok(());
    }
    Err(WriteRefusal::HasSignature {
        device: device.path().to_owned(),
        found,
    })
}

/// Returns the signatures that wipefs finds on the device, such as `ext4 at 0x438`.
fn find_signatures(device: &BlockDevice) -> Result<Vec<String>, ToolError> {
    let options = ["--no-act", "--noheadings", "--output", "OFFSET,TYPE"].map(OsStr::new);
    let arguments = [&options[..], &[device.path().as_os_str()]].concat();
    let list = ExternalTool::Wipefs.run_checked(&arguments)?;
    Ok(list
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| match line.trim().split_once(char::is_whitespace) {
            Some((offset, kind)) => format!("{} at {offset}", kind.trim()),
            None => line.trim().to_owned(),
        })
        .collect())
}
