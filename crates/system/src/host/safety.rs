//! Safety checks before a block device is written. Only the device that the user named may be
//! written, and only if it is provably idle. The checks write nothing.

mod backing;
mod extents;
mod refusal;
mod usage;
mod writers;

pub use refusal::Refusal;

use super::device::BlockDevice;
use super::device::tool::{Tool, ToolError};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Maximum number of gaps that a note lists, of possibly hundreds.
const NAMED_FACTS_MAX: usize = 3;

/// Device that may be written and is claimed from the kernel. While the claim exists, the device
/// cannot be mounted, used as swap, or added to a device mapper or md device.
#[derive(Debug)]
pub struct ClaimedDevice {
    device: BlockDevice,
    /// Facts about other processes that could not be determined.
    undetermined: BTreeSet<String>,
    /// Exclusive open descriptor of the device, which is the claim.
    _claim: OwnedFd,
}

impl ClaimedDevice {
    /// Returns the device that was claimed for writing.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Describes the facts about other processes that could not be determined; `None` if all were.
    pub fn note(&self) -> Option<String> {
        if self.undetermined.is_empty() {
            return None;
        }
        let named: Vec<&str> = self
            .undetermined
            .iter()
            .take(NAMED_FACTS_MAX)
            .map(String::as_str)
            .collect();
        let others = match self.undetermined.len() - named.len() {
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
/// A [`Refusal`] for every reason not to write.
pub fn claim_for_writing(
    device: &BlockDevice,
    named: &Path,
    ignore_signature: bool,
) -> Result<ClaimedDevice, Refusal> {
    require_same_device(device, named)?;
    if device.is_read_only() {
        return Err(Refusal::ReadOnly {
            device: device.path().to_owned(),
        });
    }
    let claim = device.open(OFlags::RDWR | OFlags::EXCL);
    // Where the claim failed, this says more than "busy".
    usage::require_idle(device)?;
    let claim = claim.map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::BUSY) => Refusal::InUse {
            device: device.path().to_owned(),
            source,
        },
        _ => Refusal::NotOpened {
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
        undetermined,
        _claim: claim,
    })
}

fn require_same_device(device: &BlockDevice, named: &Path) -> Result<(), Refusal> {
    let named_device =
        BlockDevice::from_path(named).map_err(|source| Refusal::PermittedNoDevice {
            device: device.path().to_owned(),
            source,
        })?;
    if named_device.number() != device.number() {
        return Err(Refusal::PermittedOtherDevice {
            device: device.path().to_owned(),
            number: device.number(),
            named: named.to_owned(),
            named_number: named_device.number(),
        });
    }
    Ok(())
}

/// Refuses a device with a signature. A partition table counts, even one that only the kernel still
/// knows.
fn require_no_signature(device: &BlockDevice) -> Result<(), Refusal> {
    let not_proven = |why: String| Refusal::IdleUnproven {
        device: device.path().to_owned(),
        why,
    };
    let mut found = signatures(device).map_err(|error| not_proven(error.to_string()))?;
    let partitions = device
        .partitions()
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
    Err(Refusal::Signature {
        device: device.path().to_owned(),
        found,
    })
}

/// Returns the signatures that wipefs finds on the device, such as `ext4 at 0x438`.
fn signatures(device: &BlockDevice) -> Result<Vec<String>, ToolError> {
    let options = ["--no-act", "--noheadings", "--output", "OFFSET,TYPE"].map(OsStr::new);
    let arguments = [&options[..], &[device.path().as_os_str()]].concat();
    let list = Tool::Wipefs.run_checked(&arguments)?;
    Ok(list
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| match line.trim().split_once(char::is_whitespace) {
            Some((offset, kind)) => format!("{} at {offset}", kind.trim()),
            None => line.trim().to_owned(),
        })
        .collect())
}
