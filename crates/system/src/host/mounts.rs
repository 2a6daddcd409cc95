//! Table of mounted file systems, from mountinfo in /proc.

use super::device::DeviceNumber;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Path of the calling thread's mount table. A thread may have a mount namespace of its own, and
/// `/proc/self` is that of the process's first thread.
const MOUNTINFO_PATH: &str = "/proc/thread-self/mountinfo";

/// Mounted file system in the calling thread's mount namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Mount id that the kernel assigned.
    pub mount_id: u64,
    /// Device number that files on the mount report. Its major number is 0 if the file system has
    /// no single device (btrfs, tmpfs, overlay, NFS).
    pub device: DeviceNumber,
    /// Directory that the file system is mounted on.
    pub mount_point: PathBuf,
    /// Type of the file system, such as `ext4`.
    pub filesystem_type: String,
    /// Source of the mount: a device's path, or a word such as `tmpfs`.
    pub mount_source: PathBuf,
    /// Options of the mount, such as `rw,relatime`.
    pub mount_options: String,
    /// Options of the file system, such as `rw,errors=continue`.
    pub superblock_options: String,
}

impl Mount {
    /// Returns the options of the mount and of the file system in one list, without duplicates.
    pub fn combined_options(&self) -> String {
        let mut all: Vec<&str> = self.mount_options.split(',').collect();
        for option in self.superblock_options.split(',') {
            if !all.contains(&option) {
                all.push(option);
            }
        }
        all.join(",")
    }
}

/// Mounts of the calling thread's mount namespace, in the order of mounting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the current mounts.
    ///
    /// # Errors
    ///
    /// mountinfo cannot be read or has a malformed line.
    pub fn read_mounts() -> io::Result<Self> {
        let text = std::fs::read(MOUNTINFO_PATH)
            .map_err(|error| io::Error::new(error.kind(), format!("{MOUNTINFO_PATH}: {error}")))?;
        Self::parse_mounts(&text)
    }

    /// Parses the text of a mountinfo file (proc(5)).
    ///
    /// # Errors
    ///
    /// A line is malformed. It cannot be skipped, because a file system that is not listed counts
    /// as not mounted.
    pub fn parse_mounts(text: &[u8]) -> io::Result<Self> {
        text.split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                parse_line(line).ok_or_else(|| {
                    let line = String::from_utf8_lossy(line);
                    io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("{MOUNTINFO_PATH}: `{line}` is not a line of mountinfo"),
                    )
                })
            })
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Returns an iterator over the mounts in the order of mounting.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Mount> {
        self.0.iter()
    }

    /// Returns the mount that a path lies on, following links; `None` if the kernel does not report
    /// it (before Linux 5.8).
    ///
    /// # Errors
    ///
    /// The path does not exist or cannot be reached.
    pub fn mount_of_path(&self, path: &Path) -> io::Result<Option<&Mount>> {
        let status = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
        if status.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return Ok(None);
        }
        Ok(self
            .0
            .iter()
            .find(|mount| mount.mount_id == status.stx_mnt_id))
    }

    /// Returns the mounts on `folder` or below it, the latest first, which is the order to unmount
    /// in. `folder` must be absolute and free of links.
    pub fn mounts_inside(&self, folder: &Path) -> impl Iterator<Item = &Mount> {
        self.iter()
            .rev()
            .filter(move |mount| mount.mount_point.starts_with(folder))
    }
}

/// Returns an identity for the file system of a path that survives unmounting: its type, with its
/// own file-system id or, if it has no lasting id, the source of the mount.
///
/// # Errors
///
/// The path cannot be reached, or mountinfo cannot be read.
pub fn filesystem_type_of(path: &Path) -> io::Result<String> {
    let number = rustix::fs::statvfs(path)?.f_fsid;
    let mounts = Mounts::read_mounts()?;
    let mount = mounts.mount_of_path(path)?;
    let kind = mount.map_or("", |mount| mount.filesystem_type.as_str());
    // One in memory has a new number each time, and nothing to lose.
    let in_memory = matches!(kind, "tmpfs" | "ramfs");
    Ok(match mount {
        Some(mount) if number == 0 || in_memory => {
            format!("{kind} from {}", mount.mount_source.display())
        }
        _ => format!("{kind} {number:x}"),
    })
}

/// Parses a line of mountinfo: `36 35 98:0 /root /mount/point rw,noatime [tags ...] - ext3 /dev/sda
/// rw`.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let separator = 6 + fields.get(6..)?.iter().position(|field| field == b"-")?;
    let [kind, source, super_options] = fields.get(separator + 1..separator + 4)? else {
        return None;
    };
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape_octal(field)).into_owned();
    Some(Mount {
        mount_id: std::str::from_utf8(fields[0]).ok()?.parse().ok()?,
        device: std::str::from_utf8(fields[2]).ok()?.parse().ok()?,
        mount_point: unescape_path(fields[4]),
        mount_options: text(fields[5]),
        filesystem_type: text(kind),
        mount_source: unescape_path(source),
        superblock_options: text(super_options),
    })
}

/// Decodes a path in a file of /proc, where blanks, tabs, newlines and backslashes are written as a
/// backslash and three octal digits.
pub(super) fn unescape_path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape_octal(field)))
}

fn unescape_octal(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, after) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    remaining @ ..,
                ],
            ) => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = remaining;
            }
            _ => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,errors=continue
41 27 0:35 /@home /home rw,noatime shared:3 master:1 - btrfs /dev/sdb2 rw,ssd,subvolid=257
42 27 7:3 / /mnt/a\\040b\\134c\\011d rw - ext2 /dev/loop3 rw
43 42 0:41 / /mnt/a\\040b\\134c\\011d/in rw - tmpfs  rw,size=4k
";

    #[test]
    fn fields_and_escapes_are_read() {
        let mounts = Mounts::parse_mounts(TEXT).unwrap();
        let seen: Vec<_> = mounts
            .iter()
            .map(|mount| {
                (
                    mount.mount_id,
                    mount.device.to_string(),
                    mount.mount_point.to_str().unwrap().to_owned(),
                    mount.filesystem_type.as_str(),
                    mount.mount_source.to_str().unwrap(),
                    mount.combined_options(),
                )
            })
            .collect();
        let expected = [
            (
                27,
                "254:0",
                "/",
                "ext4",
                "/dev/vda",
                "rw,relatime,discard,errors=continue",
            ),
            (
                41,
                "0:35",
                "/home",
                "btrfs",
                "/dev/sdb2",
                "rw,noatime,ssd,subvolid=257",
            ),
            (42, "7:3", "/mnt/a b\\c\td", "ext2", "/dev/loop3", "rw"),
            (43, "0:41", "/mnt/a b\\c\td/in", "tmpfs", "", "rw,size=4k"),
        ];
        assert_eq!(seen.len(), expected.len());
        for (seen, expected) in seen.iter().zip(expected) {
            let (id, device, mount_point, kind, source, options) = seen;
            let seen = (
                *id,
                device.as_str(),
                mount_point.as_str(),
                *kind,
                *source,
                options.as_str(),
            );
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn what_is_inside_comes_in_the_order_to_unmount() {
        let mounts = Mounts::parse_mounts(TEXT).unwrap();
        let ids = |folder: &str| -> Vec<u64> {
            mounts
                .mounts_inside(Path::new(folder))
                .map(|mount| mount.mount_id)
                .collect()
        };
        assert_eq!(ids("/mnt/a b\\c\td"), [43, 42]);
        assert_eq!(ids("/mnt/a"), [0_u64; 0]);
        assert_eq!(ids("/home"), [41]);
    }

    #[test]
    fn a_broken_line_is_an_error() {
        for text in [
            "27 1 254:0 / / rw,relatime",
            "27 1 254 / / rw - ext4 a b",
            "x",
        ] {
            let error = Mounts::parse_mounts(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn file_systems_are_told_apart() {
        let of = |path: &str| filesystem_type_of(Path::new(path)).unwrap();
        assert_eq!(of("/proc/self"), of("/proc"));
        assert_ne!(of("/proc"), of("/"));
        assert!(filesystem_type_of(Path::new("/proc/no such file")).is_err());
    }

    #[test]
    fn the_mount_of_a_path_is_found_by_its_number() {
        let mounts = Mounts::read_mounts().unwrap();
        let proc = mounts
            .mount_of_path(Path::new("/proc/self/status"))
            .unwrap();
        assert_eq!(proc.unwrap().filesystem_type, "proc");
        assert!(
            mounts
                .mount_of_path(Path::new("/proc/no such file"))
                .is_err()
        );
    }
}
