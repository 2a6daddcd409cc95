//! Notes on rate limits that this process has by its control group.

use crate::target::StorageTarget;
use diskperf_system::host::group_limits::{GroupLimit, LimitedRate, list_group_limits};
use diskperf_timeline::units::format_size;

/// Describes the limits of this process's control groups on the disks of a target. A figure at a
/// limit is that of the limit and not that of the disk.
pub(super) fn describe_limits(target: &StorageTarget) -> Vec<String> {
    let disks = target.location.devices.iter().map(|device| &device.name);
    disks
        .flat_map(|disk| {
            let limits = list_group_limits(disk).into_iter();
            limits.map(move |limit| describe_limit(disk, &limit))
        })
        .collect()
}

fn describe_limit(disk: &str, limit: &GroupLimit) -> String {
    let per_s = limit.per_s;
    let rate = match limit.rate {
        LimitedRate::ReadRequests => format!("reads of {disk} to {per_s} requests/s"),
        LimitedRate::WriteRequests => format!("writes to {disk} to {per_s} requests/s"),
        LimitedRate::ReadBytes => format!("reads of {disk} to {}/s", format_size(per_s)),
        LimitedRate::WriteBytes => format!("writes to {disk} to {}/s", format_size(per_s)),
    };
    format!(
        "own limit: the control group of this process limits {rate} ({}); a figure at this rate is not the disk's, and cannot get worse",
        limit.file.display()
    )
}
