//! Rate limits that the control groups of this process set on a block device.
//!
//! cgroup v1 limits the requests of a group's own members: a group below it is free. cgroup v2 limits
//! all groups below, and the smallest limit holds.

use std::fs;
use std::path::{Path, PathBuf};

/// Rate that a control group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitedRate {
    /// Read requests per second.
    ReadRequests,
    /// Written requests per second.
    WriteRequests,
    /// Read bytes per second.
    ReadBytes,
    /// Written bytes per second.
    WriteBytes,
}

/// Files of cgroup v1 and keys of `io.max` of cgroup v2, by rate.
const LIMITS: [(LimitedRate, &str, &str); 4] = [
    (
        LimitedRate::ReadRequests,
        "blkio.throttle.read_iops_device",
        "riops",
    ),
    (
        LimitedRate::WriteRequests,
        "blkio.throttle.write_iops_device",
        "wiops",
    ),
    (
        LimitedRate::ReadBytes,
        "blkio.throttle.read_bps_device",
        "rbps",
    ),
    (
        LimitedRate::WriteBytes,
        "blkio.throttle.write_bps_device",
        "wbps",
    ),
];

/// Limit of a control group on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// Rate that is limited.
    pub rate: LimitedRate,
    /// Highest rate in requests or bytes per second.
    pub per_s: u64,
    /// File that sets the limit.
    pub file: PathBuf,
}

/// Lists the limits that hold for this process on a whole disk, given by its kernel name: the
/// smallest one for each rate. The list is empty where nothing can be read.
pub fn list_group_limits(disk: &str) -> Vec<GroupLimit> {
    let number = fs::read_to_string(format!("/sys/class/block/{disk}/dev"));
    let groups = fs::read_to_string("/proc/self/cgroup");
    match (number, groups) {
        (Ok(number), Ok(groups)) => {
            read_limits(number.trim(), &groups, Path::new("/sys/fs/cgroup"))
        }
        _ => Vec::new(),
    }
}

/// Reads the limits on a device number of the groups of a text of `/proc/PID/cgroup`, below `root`.
fn read_limits(number: &str, groups: &str, root: &Path) -> Vec<GroupLimit> {
    let mut found: Vec<GroupLimit> = Vec::new();
    let mut add = |limit: GroupLimit| match found.iter_mut().find(|one| one.rate == limit.rate) {
        Some(known) if known.per_s > limit.per_s => *known = limit,
        Some(_) => {}
        None => found.push(limit),
    };
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let group = Path::new(group.trim_start_matches('/'));
        if controllers.split(',').any(|one| one == "blkio") {
            let folder = root.join("blkio").join(group);
            for (rate, name, _) in LIMITS {
                let file = folder.join(name);
                let per_s = find_value(&file, number, |rest| rest.parse().ok());
                if let Some(per_s) = per_s.filter(|per_s| *per_s > 0) {
                    add(GroupLimit { rate, per_s, file });
                }
            }
        }
        if controllers.is_empty() {
            for folder in group.ancestors().map(|above| root.join(above)) {
                for (rate, _, key) in LIMITS {
                    let file = folder.join("io.max");
                    let per_s = find_value(&file, number, |rest| parse_key(rest, key));
                    if let Some(per_s) = per_s {
                        add(GroupLimit { rate, per_s, file });
                    }
                }
            }
        }
    }
    found.sort_by_key(|limit| limit.rate);
    found
}

/// Returns the value in the line of a device: the rest of the line behind its number, parsed.
fn find_value(file: &Path, number: &str, parse: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let mut rests = text.lines().filter_map(|line| line.split_once(' '));
    let (_, rest) = rests.find(|(device, _)| *device == number)?;
    parse(rest.trim())
}

/// Returns a value of `rbps=2097152 wbps=max`; `None` for `max`.
fn parse_key(rest: &str, key: &str) -> Option<u64> {
    let mut pairs = rest.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        fs::write(path, text).expect("a new file");
    }

    #[test]
    fn the_smallest_limit_of_own_groups_on_the_device_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let reads = "blkio/a/b/blkio.throttle.read_iops_device";
        write(root, reads, "8:0 5\n254:0 1000\n");
        write(
            root,
            "blkio/a/b/blkio.throttle.write_bps_device",
            "254:0 0\n",
        );
        // cgroup v1 is flat: the limit of the group above does not hold.
        write(
            root,
            "blkio/a/blkio.throttle.read_iops_device",
            "254:0 10\n",
        );
        write(
            root,
            "a/io.max",
            "254:0 rbps=2097152 wbps=max riops=max wiops=120\n",
        );
        write(
            root,
            "a/b/io.max",
            "254:0 rbps=max wbps=max riops=max wiops=300\n",
        );
        let limits = |groups: &str, number: &str| -> Vec<(LimitedRate, u64)> {
            let found = read_limits(number, groups, root);
            found.iter().map(|one| (one.rate, one.per_s)).collect()
        };
        assert_eq!(
            limits("7:blkio:/a/b\n", "254:0"),
            [(LimitedRate::ReadRequests, 1000)]
        );
        assert_eq!(
            limits("0::/a/b\n", "254:0"),
            [
                (LimitedRate::WriteRequests, 120),
                (LimitedRate::ReadBytes, 2_097_152)
            ]
        );
        assert_eq!(limits("7:blkio:/a/b\n0::/a/b\n", "254:1"), []);
        assert_eq!(limits("7:cpu:/a/b\nnonsense\n", "254:0"), []);
    }
}
