//! Specification of a fresh file system: `ext4:block_bytes=1024,size=512M`.

use super::options::{check_mkfs, check_mount};
use diskperf_timeline::units::{MIB, SizeError, parse_size};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Kind of file system that diskperf can create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshKind {
    /// Second extended file system (ext2), which has no journal.
    Ext2,
    /// Fourth extended file system (ext4), with a journal.
    Ext4,
    /// XFS, with a log of its metadata.
    Xfs,
    /// btrfs, with copy on write and checksums.
    Btrfs,
}

impl FreshKind {
    /// Every kind of fresh file system.
    pub const ALL_KINDS: [Self; 4] = [Self::Ext2, Self::Ext4, Self::Xfs, Self::Btrfs];

    /// Returns the kernel's name of the file system kind.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Reports whether the kernel mounts several copies of one file system at the same time. btrfs
    /// tells file systems by a number that copies share, until Linux 6.7 lets it give a copy another.
    pub fn mounts_copies(self) -> bool {
        match self {
            Self::Ext2 | Self::Ext4 | Self::Xfs => true,
            // Absent as well while the module is not loaded.
            Self::Btrfs => Path::new("/sys/fs/btrfs/features/temp_fsid").exists(),
        }
    }

    /// Returns the size of the smallest image on which mkfs creates a usable file system.
    fn image_bytes_min(self) -> u64 {
        match self {
            Self::Ext2 | Self::Ext4 => 4 * MIB,
            Self::Xfs => 300 * MIB,
            Self::Btrfs => 128 * MIB,
        }
    }

    /// Returns the size of an image with room for files of `payload_bytes` and the file system's
    /// own data: inode tables and 5 % reserved for root in ext, the journal or log, and the chunks
    /// of 10 % each, twice, in btrfs.
    fn image_bytes_for(self, payload_bytes: u64) -> u64 {
        let own_bytes = match self {
            Self::Ext2 | Self::Ext4 => (payload_bytes / 8).saturating_add(64 * MIB),
            Self::Xfs => (payload_bytes / 16).saturating_add(128 * MIB),
            Self::Btrfs => (payload_bytes / 3).saturating_add(512 * MIB),
        };
        payload_bytes
            .saturating_add(own_bytes)
            .max(self.image_bytes_min())
            .checked_next_multiple_of(MIB)
            .unwrap_or(u64::MAX)
    }

    /// Returns the block sizes in bytes that the kind supports on this machine, in ascending order.
    pub fn block_sizes(self) -> Vec<u64> {
        let page_bytes = rustix::param::page_size() as u64;
        let powers = |least: u64, most: u64| {
            std::iter::successors(Some(least), |bytes| Some(bytes * 2))
                .take_while(|&bytes| bytes <= most)
                .collect()
        };
        match self {
            Self::Ext2 | Self::Ext4 | Self::Xfs => powers(1024, page_bytes),
            Self::Btrfs => {
                std::fs::read_to_string("/sys/fs/btrfs/features/supported_sectorsizes")
                    .map(|line| {
                        line.split_ascii_whitespace()
                            .filter_map(|bytes| bytes.parse().ok())
                            .collect()
                    })
                    // The module is not loaded yet; every version has this one.
                    .unwrap_or_else(|_| vec![page_bytes])
            }
        }
    }
}

impl fmt::Display for FreshKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind_name())
    }
}

/// Error in the text or the figures of a fresh file system's specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreshSpecError {
    /// Unknown kind of file system.
    #[error("diskperf cannot create the file system `{kind}`; {}", suggest_nearest(.kind, &FreshKind::ALL_KINDS.map(FreshKind::kind_name)))]
    UnknownKind {
        /// Kind of file system as the user wrote it.
        kind: String,
    },
    /// Unknown key in the specification.
    #[error("`{key}` is not a key of a fresh file system; {}", suggest_nearest(.key, &SPEC_KEYS))]
    UnknownKey {
        /// Unknown key as the user wrote it.
        key: String,
    },
    /// Part of the specification without `=`.
    #[error(
        "`{piece}` of a fresh file system is not KEY=VALUE: a comma starts the next KEY=VALUE; repeat `mount` or `mkfs` for several options (mount=noatime,mount=data=journal)"
    )]
    NotKeyValue {
        /// Part of the specification as the user wrote it.
        piece: String,
    },
    /// Value of a key that is not a valid size.
    #[error("{key} of a fresh file system: {source}")]
    InvalidSize {
        /// Key with the invalid size.
        key: &'static str,
        /// Error in the text of the size.
        source: SizeError,
    },
    /// Argument of mkfs that might name a device or a file.
    #[error(
        "mkfs=`{option}`: diskperf passes mkfs.{kind} no argument that could name a device or a file, which mkfs would overwrite; allowed: {allowed}"
    )]
    MkfsArgument {
        /// Kind of the fresh file system: ext2, ext4, XFS or btrfs.
        kind: FreshKind,
        /// Argument of mkfs as the user wrote it.
        option: String,
        /// Arguments of mkfs that are accepted instead.
        allowed: String,
    },
    /// Mount option that might name a device or a file.
    #[error(
        "mount=`{option}`: diskperf mounts a fresh {kind} with no option that could name a device or a file other than its image; allowed: {allowed}"
    )]
    MountOption {
        /// Kind of the fresh file system: ext2, ext4, XFS or btrfs.
        kind: FreshKind,
        /// Mount option as the user wrote it.
        option: String,
        /// Mount options that are accepted instead.
        allowed: String,
    },
    /// Block size that the file system kind does not support on this machine.
    #[error("{kind} does not support blocks of {block_bytes} bytes on this machine: block_bytes must be {}", format_sizes(.allowed))]
    InvalidBlockBytes {
        /// Kind of the fresh file system: ext2, ext4, XFS or btrfs.
        kind: FreshKind,
        /// Block size that was requested, in bytes.
        block_bytes: u64,
        /// Block sizes that are supported, in bytes.
        allowed: Vec<u64>,
    },
    /// Image that is too small for the file system or the files.
    #[error("an image of {size_bytes} bytes is too small: {kind} needs at least {needed_bytes} here (size={}M)", needed_bytes.div_ceil(MIB))]
    ImageTooSmall {
        /// Kind of the fresh file system: ext2, ext4, XFS or btrfs.
        kind: FreshKind,
        /// Requested size of the image, in bytes.
        size_bytes: u64,
        /// Smallest sufficient size of the image, in bytes.
        needed_bytes: u64,
    },
}

const SPEC_KEYS: [&str; 4] = ["block_bytes", "size", "mkfs", "mount"];
const DEFAULT_BLOCK_BYTES: u64 = 4096;

/// Fresh file system to create: `KIND[:KEY=VALUE[,KEY=VALUE...]]`. The keys are `block_bytes`,
/// `size` (of the image), `mkfs` (additional arguments of mkfs, split at blanks) and `mount` (mount
/// options). An `mkfs` option replaces diskperf's own if mkfs accepts it only once. `mkfs` and
/// `mount` may be repeated; options that could name a device or a file are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshSpec {
    /// Kind of the fresh file system: ext2, ext4, XFS or btrfs.
    pub filesystem_kind: FreshKind,
    /// Block size of the file system in bytes.
    pub block_bytes: u64,
    /// Size of the image in bytes. If absent, it follows from the data to be written.
    pub size_bytes: Option<u64>,
    /// Additional arguments of mkfs.
    pub mkfs_arguments: Vec<String>,
    /// Mount options beyond the kernel's defaults.
    pub mount_options: Vec<String>,
}

impl FreshSpec {
    /// Returns the image's size in bytes, for files of `payload_bytes` that exist on the file
    /// system at the same time.
    ///
    /// # Errors
    ///
    /// The requested image size is too small, or the block size is not supported.
    pub fn image_bytes(&self, payload_bytes: u64) -> Result<u64, FreshSpecError> {
        let allowed = self.filesystem_kind.block_sizes();
        if !allowed.contains(&self.block_bytes) {
            return Err(FreshSpecError::InvalidBlockBytes {
                kind: self.filesystem_kind,
                block_bytes: self.block_bytes,
                allowed,
            });
        }
        let Some(size_bytes) = self.size_bytes else {
            return Ok(self.filesystem_kind.image_bytes_for(payload_bytes));
        };
        // Whether the payload fits on an image of the user's own size is seen
        // once it is made; below this, it certainly does not.
        let needed_bytes = self.filesystem_kind.image_bytes_min().max(payload_bytes);
        if size_bytes < needed_bytes {
            return Err(FreshSpecError::ImageTooSmall {
                kind: self.filesystem_kind,
                size_bytes,
                needed_bytes,
            });
        }
        Ok(size_bytes)
    }

    fn check_mkfs(&self) -> Result<(), FreshSpecError> {
        let kind = self.filesystem_kind;
        check_mkfs(kind, &self.mkfs_arguments).map_err(|refused| FreshSpecError::MkfsArgument {
            kind,
            option: refused.option_text,
            allowed: refused.allowed_options,
        })
    }

    fn check_mount(&self, option: &str) -> Result<(), FreshSpecError> {
        let kind = self.filesystem_kind;
        check_mount(kind, option).map_err(|refused| FreshSpecError::MountOption {
            kind,
            option: refused.option_text,
            allowed: refused.allowed_options,
        })
    }
}

impl FromStr for FreshSpec {
    type Err = FreshSpecError;

    fn from_str(text: &str) -> Result<Self, FreshSpecError> {
        let (kind, pieces) = text.split_once(':').unwrap_or((text, ""));
        let kind = FreshKind::ALL_KINDS
            .into_iter()
            .find(|known| known.kind_name() == kind)
            .ok_or_else(|| FreshSpecError::UnknownKind {
                kind: kind.to_owned(),
            })?;
        let mut spec = Self {
            filesystem_kind: kind,
            block_bytes: DEFAULT_BLOCK_BYTES,
            size_bytes: None,
            mkfs_arguments: Vec::new(),
            mount_options: Vec::new(),
        };
        for piece in pieces.split(',').filter(|piece| !piece.is_empty()) {
            let (key, value) =
                piece
                    .split_once('=')
                    .ok_or_else(|| FreshSpecError::NotKeyValue {
                        piece: piece.to_owned(),
                    })?;
            let size = |key| {
                parse_size(value).map_err(|source| FreshSpecError::InvalidSize { key, source })
            };
            match key.trim() {
                "block_bytes" => spec.block_bytes = size("block_bytes")?,
                "size" => spec.size_bytes = Some(size("size")?),
                "mkfs" => spec
                    .mkfs_arguments
                    .extend(value.split_ascii_whitespace().map(str::to_owned)),
                "mount" => {
                    spec.check_mount(value)?;
                    spec.mount_options.push(value.to_owned());
                }
                key => {
                    return Err(FreshSpecError::UnknownKey {
                        key: key.to_owned(),
                    });
                }
            }
        }
        spec.check_mkfs()?;
        Ok(spec)
    }
}

/// Returns a hint with the known word nearest to `word` and the list of known words, such as "did
/// you mean ext4? (ext2, ext4, xfs, btrfs)"; only the list if none is near.
fn suggest_nearest(word: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::osa_distance(word, name), name))
        .min()
        .filter(|(distance, name)| *distance * 2 <= name.len());
    let all = known.join(", ");
    match nearest {
        Some((_, name)) => format!("did you mean `{name}`? (known: {all})"),
        None => format!("known: {all}"),
    }
}

fn format_sizes(sizes: &[u64]) -> String {
    let words: Vec<String> = sizes.iter().map(u64::to_string).collect();
    words.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let plain = FreshSpec {
            filesystem_kind: FreshKind::Ext4,
            block_bytes: 4096,
            size_bytes: None,
            mkfs_arguments: vec![],
            mount_options: vec![],
        };
        for (text, spec) in [
            ("ext4", plain.clone()),
            ("ext4:", plain.clone()),
            (
                "ext2:block_bytes=1K",
                FreshSpec {
                    filesystem_kind: FreshKind::Ext2,
                    block_bytes: 1024,
                    ..plain.clone()
                },
            ),
            (
                "xfs:size=1G,mkfs=-m reflink=0 -d agcount=2,mount=noatime,mount=logbufs=8",
                FreshSpec {
                    filesystem_kind: FreshKind::Xfs,
                    size_bytes: Some(1 << 30),
                    mkfs_arguments: words(&["-m", "reflink=0", "-d", "agcount=2"]),
                    mount_options: words(&["noatime", "logbufs=8"]),
                    ..plain
                },
            ),
        ] {
            assert_eq!(text.parse(), Ok(spec), "{text}");
        }
    }

    #[test]
    fn what_is_misspelt_gets_the_nearest_name() {
        for (text, parts) in [
            ("ext5", &["`ext5`", "did you mean `ext"][..]),
            ("btfs", &["`btfs`", "did you mean `btrfs`?"]),
            ("fat32", &["`fat32`", "known: ext2, ext4, xfs, btrfs"]),
            ("ext4:block_byte=1024", &["did you mean `block_bytes`?"]),
            (
                "ext4:mount=noatime,nodiratime",
                &["`nodiratime`", "KEY=VALUE"],
            ),
            ("ext4:size=1X", &["size", "`1X` is not a size"]),
            (
                "xfs:mkfs=-l logdev=/dev/loop2",
                &["`-l logdev=/dev/loop2`", "mkfs.xfs", "-l with agnum"],
            ),
            ("btrfs:mkfs=/dev/loop2", &["`/dev/loop2`", "--label"]),
            ("ext4:mount=loop=a", &["`loop=a`", "data_err", "noatime"]),
        ] {
            let message = text.parse::<FreshSpec>().unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }

    #[test]
    fn images_are_large_enough_or_refused() {
        let image = |text: &str, payload_mib: u64| {
            let spec: FreshSpec = text.parse().unwrap();
            spec.image_bytes(payload_mib * MIB)
                .map_err(|error| error.to_string())
        };
        assert_eq!(image("ext4", 8), Ok(73 * MIB));
        assert_eq!(image("xfs", 8), Ok(300 * MIB));
        assert_eq!(image("ext2:size=16M", 8), Ok(16 * MIB));
        for (text, payload_mib, part) in [
            ("ext4:size=16M", 17, "size=17M"),
            ("xfs:size=100M", 8, "size=300M"),
            ("ext4:block_bytes=3000", 8, "1024 or 2048 or 4096"),
            ("ext4:block_bytes=512", 8, "1024 or 2048 or 4096"),
            ("btrfs:block_bytes=512", 8, "4096"),
        ] {
            let message = image(text, payload_mib).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
