//! Description of the machine and of the directories and devices that a run is measured on.

use super::device::BlockDevice;
use super::mounts::Mounts;
use diskperf_timeline::{Device, Environment, Filesystem, TargetDescription};
use std::io::Read;
use std::path::Path;

/// Describes the machine and `places` (directories, files or block devices) in their current state.
/// `call_clock` names the clock that times single calls.
///
/// Facts that the system does not report are left empty: a run is useful without its CPU's name.
pub fn describe_environment(places: &[&Path], call_clock: &str) -> Environment {
    let mounts = Mounts::read_mounts().unwrap_or_default();
    let uname = rustix::system::uname();
    Environment {
        kernel_version: format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        ),
        cpu_model: read_cpu_model()
            .unwrap_or_else(|| uname.machine().to_string_lossy().into_owned()),
        cpu_count: usable_cpu_count(),
        memory_bytes: total_memory_bytes(),
        load_average: read_load_average().unwrap_or_default(),
        call_clock: call_clock.to_owned(),
        places: places
            .iter()
            .map(|path| describe_target_with(path, &mounts, BlockDevice::describe_with_health))
            .collect(),
        known_limits: Vec::new(),
    }
}

/// Describes one directory, file or block device; see [`describe_environment`]. It does not query the health of
/// the devices.
pub fn describe_target(path: &Path) -> TargetDescription {
    let mounts = Mounts::read_mounts().unwrap_or_default();
    describe_target_with(path, &mounts, BlockDevice::describe)
}

fn describe_target_with(
    path: &Path,
    mounts: &Mounts,
    describe: fn(&BlockDevice) -> Device,
) -> TargetDescription {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (filesystem, disks) = match BlockDevice::from_path(path) {
        Ok(device) => (None, disks_under_device(&device)),
        Err(_) => (
            describe_filesystem(path, mounts),
            BlockDevice::devices_of_directory(path).unwrap_or_default(),
        ),
    };
    TargetDescription {
        path: absolute.to_string_lossy().into_owned(),
        filesystem,
        devices: disks.iter().map(describe).collect(),
    }
}

/// Returns the named device's own disk, whose queue the run's calls go through, and then the other
/// disks underneath it.
fn disks_under_device(device: &BlockDevice) -> Vec<BlockDevice> {
    let mut disks: Vec<BlockDevice> = device.whole_disk().into_iter().collect();
    for disk in device.underlying_disks().unwrap_or_default() {
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    disks
}

/// Reports whether a path lies on a file system that is mounted read-only.
pub fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path)
        .is_ok_and(|space| space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

fn describe_filesystem(path: &Path, mounts: &Mounts) -> Option<Filesystem> {
    let space = rustix::fs::statvfs(path).ok()?;
    let mount = mounts.mount_of_path(path).ok().flatten()?;
    Some(Filesystem {
        filesystem_type: mount.filesystem_type.clone(),
        mount_source: mount.mount_source.to_string_lossy().into_owned(),
        mount_point: mount.mount_point.to_string_lossy().into_owned(),
        mount_options: mount.combined_options(),
        block_bytes: space.f_bsize,
        total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        available_bytes: space.f_bavail.saturating_mul(space.f_frsize),
    })
}

/// Returns the first CPU's model name. It reads only the start of /proc/cpuinfo, because the kernel
/// is slow to write the paragraph of each CPU.
fn read_cpu_model() -> Option<String> {
    let mut start = [0; 4096];
    let length = std::fs::File::open("/proc/cpuinfo")
        .ok()?
        .read(&mut start)
        .ok()?;
    String::from_utf8_lossy(&start[..length])
        .lines()
        .find_map(|line| {
            let (key, value) = line.split_once(':')?;
            matches!(key.trim(), "model name" | "cpu model" | "Model")
                .then(|| value.trim().to_owned())
        })
}

fn total_memory_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram * u64::from(system.mem_unit)
}

/// Returns the number of CPUs that this thread may run on, which a container or taskset may limit.
fn usable_cpu_count() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or_else(
        // More CPUs than the set of this size can hold.
        |_| std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        |cpus| cpus.count(),
    )
}

fn read_load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let directory = tempfile::tempdir().unwrap();
        let environment = describe_environment(&[directory.path(), Path::new("/proc")], "tsc");
        assert!(
            environment.kernel_version.starts_with("Linux "),
            "{environment:?}"
        );
        assert!(!environment.cpu_model.is_empty());
        assert!(environment.cpu_count >= 1);
        assert!(environment.memory_bytes > 1 << 20);
        assert_eq!(environment.call_clock, "tsc");

        let [place, proc] = &environment.places[..] else {
            panic!("two places, two descriptions: {environment:?}");
        };
        assert_eq!(Path::new(&place.path), directory.path());
        let filesystem = place.filesystem.as_ref().unwrap();
        assert!(filesystem.total_bytes >= filesystem.available_bytes);
        assert!(directory.path().starts_with(&filesystem.mount_point));
        assert_eq!(proc.filesystem.as_ref().unwrap().filesystem_type, "proc");
        assert_eq!(proc.devices, []);
    }
}
