//! Geometry and newfs parameters of a 4.2BSD file system, and the errors in them.

use std::fmt;

/// Geometry of the drive and size of one partition, as disktab describes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskLabel {
    /// Sector size in bytes.
    pub sector_bytes: u32,
    /// Number of sectors on a track.
    pub sectors_per_track: u32,
    /// Tracks per cylinder, which is the number of heads.
    pub tracks_per_cylinder: u32,
    /// Size of the partition in sectors. It need not be a whole number of cylinders: the Eagle's
    /// `g` partition has 450.8.
    pub partition_sectors: u32,
    /// Rotational speed in whole revolutions per second. newfs divides the rpm of disktab by 60 and
    /// drops the remainder: an Eagle that is entered with 3900 rpm has 65.
    pub revolutions_per_second: u32,
}

impl DiskLabel {
    /// Returns the number of sectors per cylinder.
    #[must_use]
    pub fn sectors_per_cylinder(&self) -> u32 {
        self.sectors_per_track * self.tracks_per_cylinder
    }

    pub(super) fn validate(&self) -> Result<(), NewfsError> {
        let parts = [
            ("sector_bytes", self.sector_bytes),
            ("sectors_per_track", self.sectors_per_track),
            ("tracks_per_cylinder", self.tracks_per_cylinder),
            ("partition_sectors", self.partition_sectors),
            ("revolutions_per_second", self.revolutions_per_second),
        ];
        if let Some((what, _)) = parts.iter().find(|(_, value)| *value == 0) {
            return Err(NewfsError::ZeroParameter(what));
        }
        let cylinder = u64::from(self.sectors_per_track) * u64::from(self.tracks_per_cylinder);
        if cylinder > u64::from(SECTORS_PER_CYLINDER_MAX) {
            return Err(NewfsError::CylinderTooLarge { sectors: cylinder });
        }
        if u64::from(self.partition_sectors) * u64::from(self.sector_bytes) > PARTITION_BYTES_MAX {
            return Err(NewfsError::PartitionTooLarge {
                sectors: self.partition_sectors,
            });
        }
        Ok(())
    }
}

/// Maximum number of sectors per cylinder. Products of sectors stay within 32 bits below it.
const SECTORS_PER_CYLINDER_MAX: u32 = 1 << 20;
/// Maximum size of a partition in bytes. The 1983 kernel addresses sectors of 512 bytes with a
/// signed 32-bit number.
const PARTITION_BYTES_MAX: u64 = 1 << 40;
/// Smallest block size of newfs in bytes (`MINBSIZE`).
pub(super) const BLOCK_BYTES_MIN: u32 = 4096;
/// Largest block size offered, in bytes; the 1983 kernel stopped at 8192.
pub(super) const BLOCK_BYTES_MAX: u32 = 65536;
/// Maximum number of fragments per block (`MAXFRAG`).
pub(super) const FRAGMENTS_PER_BLOCK_MAX: u32 = 8;
/// Maximum number of cylinders per cylinder group (`MAXCPG`).
pub(super) const CYLINDERS_PER_GROUP_MAX: u32 = 32;

/// Parameters of `newfs`, which creates a 4.2BSD file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewfsParameters {
    /// Block size in bytes: a power of two, 4096 or more.
    pub block_bytes: u32,
    /// Fragment size in bytes: a power of two, from an eighth of a block to a whole block.
    pub fragment_bytes: u32,
    /// Time between the end of one block and the start of the next of the same file, in ms.
    pub rotdelay_ms: u32,
    /// Number of consecutive blocks without a gap, before the allocator leaves a gap of
    /// `rotdelay_ms`.
    pub maxcontig_blocks: u32,
    /// Number of blocks in one section of a file. After a section the file moves to another
    /// cylinder group.
    pub maxbpg_blocks: u32,
    /// Cylinders per cylinder group, at most 32. The number must be a multiple of the number of
    /// cylinders after which blocks and cylinders start together.
    pub cylinders_per_group: u32,
    /// Share of the data space that only the super-user may allocate, in percent.
    pub minfree_percent: u32,
    /// Bytes of space per inode. newfs creates one inode for this many bytes, up to 2048 per group.
    pub bytes_per_inode: u32,
}

impl NewfsParameters {
    /// Returns the parameters that newfs of 4.2BSD uses when only the block and fragment size are
    /// given (`mkfs.c` 2.14, after 4 July 1983: rotdelay 4 ms, before it 2 ms).
    #[must_use]
    pub fn bsd42_defaults(block_bytes: u32, fragment_bytes: u32) -> Self {
        Self {
            block_bytes,
            fragment_bytes,
            rotdelay_ms: 4,
            maxcontig_blocks: 1,
            // MAXBLKPG of 1983: as many as pointers fit in one *fragment*.
            maxbpg_blocks: fragment_bytes / 4,
            cylinders_per_group: 16,
            minfree_percent: 10,
            bytes_per_inode: 2048,
        }
    }

    pub(super) fn validate(&self, geometry: &DiskLabel) -> Result<(), NewfsError> {
        let &Self {
            block_bytes,
            fragment_bytes,
            ..
        } = self;
        for (what, bytes) in [
            ("block_bytes", block_bytes),
            ("fragment_bytes", fragment_bytes),
        ] {
            if !bytes.is_power_of_two() {
                return Err(NewfsError::NotPowerOfTwo { what, bytes });
            }
        }
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return Err(NewfsError::InvalidBlockSize { block_bytes });
        }
        if fragment_bytes > block_bytes || block_bytes / fragment_bytes > FRAGMENTS_PER_BLOCK_MAX {
            return Err(NewfsError::InvalidFragmentSize {
                fragment_bytes,
                block_bytes,
            });
        }
        if !fragment_bytes.is_multiple_of(geometry.sector_bytes) {
            let sector_bytes = geometry.sector_bytes;
            return Err(NewfsError::FragmentNotSectors {
                fragment_bytes,
                sector_bytes,
            });
        }
        if self.bytes_per_inode == 0 {
            return Err(NewfsError::ZeroParameter("bytes_per_inode"));
        }
        if !(1..=CYLINDERS_PER_GROUP_MAX).contains(&self.cylinders_per_group) {
            return Err(NewfsError::InvalidCylindersPerGroup {
                given: self.cylinders_per_group,
            });
        }
        FileSystemTuning::from_parameters(self).validate(geometry.revolutions_per_second)
    }
}

/// Parameters that `tunefs` can change on an existing file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemTuning {
    /// Rotational delay between blocks in ms, as in [`NewfsParameters::rotdelay_ms`].
    pub rotdelay_ms: u32,
    /// Consecutive blocks without a gap, as in [`NewfsParameters::maxcontig_blocks`].
    pub maxcontig_blocks: u32,
    /// Blocks per section of a file, as in [`NewfsParameters::maxbpg_blocks`].
    pub maxbpg_blocks: u32,
    /// Reserve of the super-user in percent, as in [`NewfsParameters::minfree_percent`].
    pub minfree_percent: u32,
}

impl FileSystemTuning {
    /// Returns the tunable part of the newfs parameters.
    #[must_use]
    pub fn from_parameters(parameters: &NewfsParameters) -> Self {
        Self {
            rotdelay_ms: parameters.rotdelay_ms,
            maxcontig_blocks: parameters.maxcontig_blocks,
            maxbpg_blocks: parameters.maxbpg_blocks,
            minfree_percent: parameters.minfree_percent,
        }
    }

    pub(super) fn validate(&self, revolutions_per_second: u32) -> Result<(), NewfsError> {
        if u64::from(self.rotdelay_ms) * u64::from(revolutions_per_second) > 1000 {
            return Err(NewfsError::RotdelayOverRevolution {
                rotdelay_ms: self.rotdelay_ms,
                revolutions_per_second,
            });
        }
        if self.maxcontig_blocks == 0 {
            return Err(NewfsError::ZeroParameter("maxcontig_blocks"));
        }
        if self.maxbpg_blocks == 0 {
            return Err(NewfsError::ZeroParameter("maxbpg_blocks"));
        }
        if self.minfree_percent > 99 {
            return Err(NewfsError::InvalidMinfree {
                minfree_percent: self.minfree_percent,
            });
        }
        Ok(())
    }
}

/// Reason why newfs cannot create a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewfsError {
    /// Parameter that is zero and must be at least 1, by name.
    ZeroParameter(&'static str),
    /// Block or fragment size that is not a power of two.
    NotPowerOfTwo {
        /// Name of the size parameter.
        what: &'static str,
        /// Requested size in bytes.
        bytes: u32,
    },
    /// Block size outside the offered range.
    InvalidBlockSize {
        /// Requested block size in bytes.
        block_bytes: u32,
    },
    /// Fragment larger than a block or smaller than an eighth of it.
    InvalidFragmentSize {
        /// Requested fragment size in bytes.
        fragment_bytes: u32,
        /// Block size in bytes.
        block_bytes: u32,
    },
    /// Fragment that is not a whole number of sectors.
    FragmentNotSectors {
        /// Requested fragment size in bytes.
        fragment_bytes: u32,
        /// Sector size in bytes.
        sector_bytes: u32,
    },
    /// Cylinder group with no cylinders, or with too many.
    InvalidCylindersPerGroup {
        /// Requested number of cylinders per group.
        given: u32,
    },
    /// Cylinder groups that would not start at a block boundary.
    CylindersPerGroupNotMultiple {
        /// Requested number of cylinders per group.
        given: u32,
        /// Number that the cylinders per group must be a multiple of.
        multiple_of: u32,
    },
    /// Block size for which blocks and cylinders start together only after more cylinders than a
    /// group may have.
    NoAlignment {
        /// Block size in bytes.
        block_bytes: u32,
        /// Number of cylinders after which blocks and cylinders start together.
        cylinders: u32,
    },
    /// Rotational delay longer than one revolution.
    RotdelayOverRevolution {
        /// Requested rotational delay in ms.
        rotdelay_ms: u32,
        /// Rotational speed of the drive in revolutions per second.
        revolutions_per_second: u32,
    },
    /// Reserve as large as the whole data space, or larger.
    InvalidMinfree {
        /// Requested reserve in percent.
        minfree_percent: u32,
    },
    /// Cylinder with more sectors than the address arithmetic can represent.
    CylinderTooLarge {
        /// Number of sectors per cylinder.
        sectors: u64,
    },
    /// Partition with more bytes than the address arithmetic can represent.
    PartitionTooLarge {
        /// Size of the partition in sectors.
        sectors: u32,
    },
    /// Partition too small for the first group's metadata and the root directory.
    PartitionTooSmall {
        /// Size of the partition in sectors.
        sectors: u32,
        /// Number of sectors that the first group needs.
        needed: u32,
    },
    /// Cylinder group whose metadata leaves no data blocks.
    GroupTooSmall {
        /// Number of fragments that the metadata of a cylinder group takes.
        metadata_fragments: u32,
        /// Number of fragments in a cylinder group.
        group_fragments: u32,
    },
    /// Cylinder group map that does not fit in one block.
    GroupMapTooLarge {
        /// Size of the cylinder group's map in bytes.
        map_bytes: u32,
        /// Block size in bytes.
        block_bytes: u32,
    },
}

impl fmt::Display for NewfsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroParameter(what) => write!(f, "{what} is 0; it must be at least 1"),
            Self::NotPowerOfTwo { what, bytes } => {
                write!(f, "{what} is {bytes}; it must be a power of two")
            }
            Self::InvalidBlockSize { block_bytes } => write!(
                f,
                "block_bytes is {block_bytes}; allowed are {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX}"
            ),
            Self::InvalidFragmentSize {
                fragment_bytes,
                block_bytes,
            } => write!(
                f,
                "fragment_bytes is {fragment_bytes}; a block of {block_bytes} allows {} to \
                 {block_bytes}",
                block_bytes / FRAGMENTS_PER_BLOCK_MAX
            ),
            Self::FragmentNotSectors {
                fragment_bytes,
                sector_bytes,
            } => write!(
                f,
                "fragment_bytes is {fragment_bytes}; it must be a multiple of the sector's \
                 {sector_bytes}"
            ),
            Self::InvalidCylindersPerGroup { given } => write!(
                f,
                "cylinders_per_group is {given}; allowed are 1 to {CYLINDERS_PER_GROUP_MAX}"
            ),
            Self::CylindersPerGroupNotMultiple { given, multiple_of } => write!(
                f,
                "cylinders_per_group is {given}; on this geometry it must be a multiple of \
                 {multiple_of}"
            ),
            Self::NoAlignment {
                block_bytes,
                cylinders,
            } => write!(
                f,
                "blocks of {block_bytes} bytes start at a cylinder only every {cylinders} \
                 cylinders, and a group has {CYLINDERS_PER_GROUP_MAX} at most; choose a smaller block"
            ),
            Self::RotdelayOverRevolution {
                rotdelay_ms,
                revolutions_per_second,
            } => write!(
                f,
                "rotdelay_ms is {rotdelay_ms}; one revolution is {} ms at \
                 {revolutions_per_second} revolutions per second",
                1000 / revolutions_per_second
            ),
            Self::InvalidMinfree { minfree_percent } => {
                write!(
                    f,
                    "minfree_percent is {minfree_percent}; allowed are 0 to 99"
                )
            }
            Self::CylinderTooLarge { sectors } => write!(
                f,
                "a cylinder has {sectors} sectors; at most {SECTORS_PER_CYLINDER_MAX} are allowed"
            ),
            Self::PartitionTooLarge { sectors } => write!(
                f,
                "partition_sectors is {sectors}; at most {} GiB are allowed",
                PARTITION_BYTES_MAX >> 30
            ),
            Self::PartitionTooSmall { sectors, needed } => write!(
                f,
                "partition_sectors is {sectors}; the first cylinder group alone needs {needed}"
            ),
            Self::GroupTooSmall {
                metadata_fragments,
                group_fragments,
            } => write!(
                f,
                "a cylinder group has {group_fragments} fragments and needs \
                 {metadata_fragments} for itself; take more cylinders_per_group"
            ),
            Self::GroupMapTooLarge {
                map_bytes,
                block_bytes,
            } => write!(
                f,
                "the map of a cylinder group takes {map_bytes} bytes and must fit in a block of \
                 {block_bytes}; take fewer cylinders_per_group"
            ),
        }
    }
}

impl std::error::Error for NewfsError {}
