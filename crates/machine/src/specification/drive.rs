//! Drive as described in the catalogue.

use crate::hardware::mechanism::{
    DiskFormat, DiskGeometry, HeadGroups, Mechanics, Mechanism, RevectoredExtent, TrackZone,
};
use crate::kernel::ffs;
use crate::volumes::VolumePartition;
use diskperf_catalogue::Reader;
use diskperf_device::DeviceSpecification;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::seek::{SeekCurve, SeekSpecification};
use diskperf_device::disk::spindle::{PERIOD_NS_RANGE, RotationAngle, Spindle};
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_sim::Time;

/// Drive with the partitions in use.
#[derive(Clone, Debug)]
pub struct DriveSpecification {
    /// Hardware of the drive: a bare mechanism or a device.
    pub hardware: DriveHardware,
    /// Name of the drive's type, by which the driver selects its parameters.
    pub driver_type: String,
    /// Partitions in the order in which programs see them; at least one.
    pub partitions: Vec<PartitionSpecification>,
}

/// Hardware of a drive, which a controller or a driver commands.
#[derive(Clone, Debug)]
pub enum DriveHardware {
    /// Bare mechanism of platters and an arm, which a controller commands.
    Mechanism(Box<MechanismSpecification>),
    /// Device that serves requests without an external controller.
    Device(DeviceSpecification),
}

/// Bare disk mechanism, which needs a controller.
#[derive(Clone, Debug)]
pub struct MechanismSpecification {
    /// Layout, seek curve and head times of the mechanism.
    pub mechanics: Mechanics,
    /// Rotational speed, in revolutions per minute.
    pub revolutions_per_minute: f64,
}

impl MechanismSpecification {
    /// Returns the mechanism with another rotational speed, rounded to 0.01 revolutions per minute,
    /// and with the given angle at time zero.
    pub(crate) fn with_rotation(&self, rpm: f64, phase: RotationAngle) -> Mechanism {
        let rpm_min = 60e9 / PERIOD_NS_RANGE.end();
        let rpm = (rpm * 100.0).round() / 100.0;
        let spindle = Spindle::from_rpm(rpm.max(rpm_min), phase);
        Mechanism::new(self.mechanics.clone(), spindle)
    }

    /// Returns the mechanism with its own rotational speed. Its first slot is under the heads at
    /// time zero.
    pub fn new_mechanism(&self) -> Mechanism {
        self.with_rotation(self.revolutions_per_minute, RotationAngle::ZERO)
    }
}

/// Partition of a drive, with its location and label.
#[derive(Clone, Copy, Debug)]
pub struct PartitionSpecification {
    /// First sector of the partition on the drive.
    pub first_sector: u64,
    /// Geometry of the partition according to the drive's label.
    pub disk_label: ffs::DiskLabel,
}

impl DriveSpecification {
    /// Returns the drive's bare mechanism. None for a device.
    pub fn mechanism_specification(&self) -> Option<&MechanismSpecification> {
        match &self.hardware {
            DriveHardware::Mechanism(mechanism) => Some(mechanism),
            DriveHardware::Device(_) => None,
        }
    }

    fn device_specification(&self) -> Option<&DeviceSpecification> {
        match &self.hardware {
            DriveHardware::Device(device) => Some(device),
            DriveHardware::Mechanism(_) => None,
        }
    }

    /// Returns the disk. None if the drive is not a disk with firmware.
    pub fn disk_specification(&self) -> Option<&DiskSpecification> {
        self.device_specification()?.disk()
    }

    /// Reports whether the drive has a rotating medium.
    pub fn has_spindle(&self) -> bool {
        self.mechanism_specification().is_some() || self.disk_specification().is_some()
    }

    /// Returns the flash drive. None for other kinds of drives.
    pub fn flash_specification(&self) -> Option<&FlashSpecification> {
        self.device_specification()?.flash()
    }

    /// Reports whether the drive is a cloud volume.
    pub fn is_cloud_volume(&self) -> bool {
        matches!(
            self.device_specification(),
            Some(DeviceSpecification::Volume(_))
        )
    }

    /// Size of the drive's cache for reads and writes, in bytes; 0 without a cache.
    pub fn cache_bytes(&self) -> u64 {
        self.device_specification()
            .map_or(0, DeviceSpecification::cache_bytes)
    }

    /// Capacity of the drive, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        let partitions = || {
            self.partitions
                .iter()
                .map(PartitionSpecification::size_bytes)
        };
        self.mechanism_specification().map_or_else(
            || partitions().sum(),
            |of| of.mechanics.geometry.capacity_bytes(),
        )
    }

    /// Returns the drive's mechanism and the cylinder where its first partition begins. None for a
    /// device.
    pub fn measured_mechanism(&self) -> Option<(&MechanismSpecification, u32)> {
        let (mechanism, partition) = (self.mechanism_specification()?, self.partitions.first()?);
        let geometry = &mechanism.mechanics.geometry;
        Some((
            mechanism,
            geometry.locate_sector(partition.first_sector).cylinder,
        ))
    }

    /// Minimum number of slots per track. `u64::MAX` for a drive without tracks.
    pub(crate) fn slots_per_track(&self) -> u64 {
        let slots =
            |of: &MechanismSpecification| u64::from(of.mechanics.geometry.slots_per_track_min());
        self.mechanism_specification().map_or(u64::MAX, slots)
    }

    pub(super) fn read_drive(reader: &mut Reader<'_>) -> Self {
        let kind = reader.optional_text("kind", DRIVE_KIND_MEANING);
        let kind = kind.as_deref().unwrap_or("disk");
        if let Some(device) = DeviceSpecification::read(reader, kind) {
            return Self {
                driver_type: String::new(),
                partitions: vec![PartitionSpecification {
                    first_sector: 0,
                    disk_label: default_disk_label(&device),
                }],
                hardware: DriveHardware::Device(device),
            };
        }
        if kind != "disk" {
            let message = format!("there is no drive of the kind {kind}");
            reader.fail_with_choices("kind", &message, "disk, drive, flash, volume or fixed");
        }
        Self::read_disk(reader)
    }

    fn read_disk(reader: &mut Reader<'_>) -> Self {
        let geometry = read_geometry(reader);
        let seek = read_seek(reader, geometry.cylinders());
        let time =
            |reader: &mut Reader<'_>, key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
        let settle = time(reader, "settle_ms", "settle time after a seek");
        let write_settle = time(
            reader,
            "write_settle_ms",
            "additional settle time of a write",
        );
        let head_switch = time(
            reader,
            "head_switch_ms",
            "head switch time within a cylinder",
        );
        let rpm = reader.number(
            "spindle_rpm",
            60.0..=30_000.0,
            "rotational speed, in revolutions per minute",
        );
        let label = reader.integer(
            "label_rpm",
            60..=30_000,
            "rotational speed in the disk label, which newfs uses, in revolutions per minute",
        );
        let driver_type = reader.text("driver_type", "type of the drive for the driver");
        Self {
            partitions: read_partitions(reader, &geometry, label),
            hardware: DriveHardware::Mechanism(Box::new(MechanismSpecification {
                mechanics: Mechanics {
                    geometry,
                    seek_curve: seek,
                    settle_time: settle,
                    write_settle_time: write_settle,
                    head_switch_time: head_switch,
                },
                revolutions_per_minute: rpm,
            })),
            driver_type,
        }
    }
}

const DRIVE_KIND_MEANING: &str = "kind of drive: disk (bare mechanism that a controller commands), drive (disk with firmware and its own buffer), flash, volume (cloud volume), or fixed (device without mechanics); disk if absent";

/// Returns a nominal label for a device that hides its tracks. File systems need the label.
fn default_disk_label(device: &DeviceSpecification) -> ffs::DiskLabel {
    // What contradicts itself is refused; its label is never used.
    let sectors = device.sectors().unwrap_or(1).max(1);
    let of_spindle = |disk: &DiskSpecification| 1e9 / disk.mechanism.period_ns;
    let revolutions_per_second = device.disk().map_or(NOMINAL_REVOLUTIONS_PER_S, of_spindle);
    let (tracks_per_cylinder, sectors_per_track) = match device {
        DeviceSpecification::Disk(_) | DeviceSpecification::Flash(_) => (255, 63),
        _ => (16, 32),
    };
    ffs::DiskLabel {
        sector_bytes: device.sector_bytes(),
        sectors_per_track,
        tracks_per_cylinder,
        partition_sectors: u32::try_from(sectors).unwrap_or(u32::MAX),
        revolutions_per_second: revolutions_per_second as u32,
    }
}

/// Rotational speed in the label of a device without platters, in revolutions per second.
const NOMINAL_REVOLUTIONS_PER_S: f64 = 60.0;

impl PartitionSpecification {
    /// Returns the partition as programs see it without a file system.
    pub(crate) fn raw_partition(&self, drive: usize) -> VolumePartition {
        VolumePartition {
            drive,
            first_sector: self.first_sector,
            sector_count: self.disk_label.partition_sectors,
            sector_bytes: self.disk_label.sector_bytes,
        }
    }

    /// Size of the partition, in bytes.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.disk_label.partition_sectors) * u64::from(self.disk_label.sector_bytes)
    }
}

/// Number of partitions in a label: a to h.
const PARTITIONS_MAX: usize = 8;

fn read_partitions(
    reader: &mut Reader<'_>,
    geometry: &DiskGeometry,
    label_rpm: u64,
) -> Vec<PartitionSpecification> {
    let cylinders = 0..=1_000_000;
    let sectors = 1..=u64::from(u32::MAX);
    let start = reader.integer(
        "partition_start_cylinder",
        cylinders.clone(),
        "first cylinder of the measured partition",
    );
    let length = reader.integer(
        "partition_sectors",
        sectors.clone(),
        "sectors of the measured partition",
    );
    let several = reader.pairs(
        "partitions",
        [cylinders, sectors],
        "first cylinder and sectors of each partition, if several are measured; the single partition if absent",
    );
    for unread in ["partition_start_cylinder", "partition_sectors"] {
        if !several.is_empty() && reader.is_set(unread) {
            reader.fail_with_choices(
                unread,
                "this drive already has a list of partitions, which takes precedence",
                "in `partitions`, as [first cylinder, sectors]",
            );
        }
    }
    let (key, mut all) = if several.is_empty() {
        ("partition_sectors", vec![[start, length]])
    } else {
        ("partitions", several)
    };
    if all.len() > PARTITIONS_MAX {
        let message = format!("{} partitions", all.len());
        let allowed = format!("up to {PARTITIONS_MAX}, as a label has");
        reader.fail_with_choices(key, &message, &allowed);
        all.truncate(PARTITIONS_MAX);
    }
    let mut partitions: Vec<PartitionSpecification> = Vec::new();
    for [start, length] in all {
        let cylinder = start as u32;
        let first_sector = geometry.first_sector(cylinder);
        if first_sector + length > geometry.sector_count() {
            let allowed = format!(
                "a partition that ends at sector {} or before",
                geometry.sector_count()
            );
            reader.fail_with_choices(key, "the partition ends beyond the drive", &allowed);
        }
        let shared = partitions.iter().any(|other| {
            let ends_at = other.first_sector + u64::from(other.disk_label.partition_sectors);
            other.first_sector < first_sector + length && first_sector < ends_at
        });
        if shared {
            reader.fail_with_choices(
                key,
                "two partitions share sectors",
                "partitions that do not overlap",
            );
        }
        if let Some(sector) = geometry.first_replacement_in(first_sector..first_sector + length) {
            let message =
                format!("the partition contains sector {sector}, the replacement of a bad sector");
            reader.fail_with_choices(key, &message, "partitions without replacement sectors");
        }
        partitions.push(PartitionSpecification {
            first_sector,
            disk_label: ffs::DiskLabel {
                sector_bytes: geometry.sector_bytes(),
                sectors_per_track: geometry.sectors_per_track(cylinder),
                tracks_per_cylinder: geometry.heads(),
                partition_sectors: length as u32,
                revolutions_per_second: (label_rpm / 60) as u32,
            },
        });
    }
    partitions
}

fn read_seek(reader: &mut Reader<'_>, cylinders: u32) -> SeekCurve {
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=4000.0, doc)).as_millis();
    let seek = SeekSpecification::DataSheet {
        single_cylinder_ms: time("seek_minimum_ms", "seek time to an adjacent cylinder"),
        average_ms: time(
            "seek_average_ms",
            "mean seek time over all pairs of cylinders",
        ),
        full_stroke_ms: time("seek_maximum_ms", "full-stroke seek time"),
    };
    SeekCurve::new(&seek, cylinders).unwrap_or_else(|error| {
        reader.fail("seek_average_ms", &error.to_string());
        let flat = SeekSpecification::Constant { time_ms: 0.0 };
        SeekCurve::new(&flat, 1).expect("a flat curve fits")
    })
}

fn read_geometry(reader: &mut Reader<'_>) -> DiskGeometry {
    let cylinders = reader.integer("cylinders", 1..=1_000_000, "number of cylinders") as u32;
    let heads = reader.integer(
        "heads",
        1..=255,
        "number of data heads, which equals the tracks per cylinder",
    ) as u32;
    let per_track =
        reader.integer("sectors_per_track", 1..=100_000, "data sectors per track") as u32;
    let sector_bytes = reader.integer("sector_bytes", 128..=65_536, "sector size") as u32;
    let interleave = reader.integer(
        "interleave",
        1..=100_000,
        "interleave, in slots from one sector to the next; 1 for none",
    ) as u32;
    let spare = reader.integer("spare_sectors_per_track", 0..=1000, "spare slots per track") as u32;
    let track_skew = reader.integer(
        "track_skew_sectors",
        0..=100_000,
        "skew of a track against the previous one, in slots",
    ) as u32;
    let cylinder_skew = reader.integer(
        "cylinder_skew_sectors",
        0..=100_000,
        "skew of a cylinder against the previous one, in slots",
    ) as u32;
    check_skew(reader, "track_skew_sectors", track_skew, per_track + spare);
    check_skew(
        reader,
        "cylinder_skew_sectors",
        cylinder_skew,
        per_track + spare,
    );
    let head_groups = read_head_groups(reader, heads, per_track + spare);
    check_format(reader, sector_bytes, per_track + spare);
    let index_gap_share = reader
        .optional_number(
            "index_gap_share",
            0.0..=0.5,
            "gap between a track's last slot and the index, as a share of a revolution; none if absent",
        )
        .unwrap_or(0.0);
    let zones = reader.pairs(
        "zones",
        [0..=1_000_000, 1..=100_000],
        "first cylinder and sectors per track of each zone",
    );
    let slipped = reader.integers(
        "slipped_sectors",
        0..=1 << 40,
        "bad sectors remapped by slipping",
    );
    let moved = reader.pairs(
        "revectored_sectors",
        [0..=1 << 40, 0..=1 << 40],
        "bad sectors with their replacement sectors",
    );
    let tracks = reader.pairs(
        "revectored_tracks",
        [0..=1 << 40, 0..=1 << 40],
        "bad tracks with their replacement tracks",
    );
    let zones = match zones.is_empty() {
        true => vec![[0, u64::from(per_track)]],
        false => zones,
    };
    let zones = zones.iter().map(|[first, sectors]| TrackZone {
        first_cylinder: *first as u32,
        sectors_per_track: *sectors as u32,
    });
    let per_track = u64::from(per_track);
    let of_tracks = tracks.iter().map(|[from, to]| RevectoredExtent {
        first_bad_sector: from * per_track,
        first_replacement_sector: to * per_track,
        sector_count: per_track,
    });
    let moved = moved
        .iter()
        .map(|[from, to]| RevectoredExtent::from((*from, *to)));
    let format = DiskFormat {
        cylinders,
        heads,
        sector_bytes,
        zones: zones.collect(),
        spare_slots_per_track: spare,
        interleave_step: interleave,
        track_skew_slots: track_skew,
        cylinder_skew_slots: cylinder_skew,
        head_groups,
        index_gap_share,
        slipped_sectors: slipped,
        revectored_extents: moved.chain(of_tracks).collect(),
    };
    DiskGeometry::new(&format).unwrap_or_else(|error| {
        reader.fail(error.catalogue_key(), &error.to_string());
        DiskGeometry::new(&DiskFormat::new_single_sector()).expect("one sector is a drive")
    })
}

/// Refuses a skew of a full track or more. It has the effect of a smaller skew, and most likely is
/// a mistake.
fn check_skew(reader: &mut Reader<'_>, key: &'static str, skew: u32, slots: u32) {
    if skew >= slots {
        let allowed = format!("less than the {slots} slots of a track");
        reader.fail_with_choices(key, "a skew over the track", &allowed);
    }
}

/// Reads the head groups, if a switch to another group takes longer than one within a group.
fn read_head_groups(reader: &mut Reader<'_>, heads: u32, slots: u32) -> Option<HeadGroups> {
    let group = reader.optional_integer(
        "head_group_heads",
        1..=255,
        "heads per head group; a step to another group has the skew head_group_skew_sectors",
    );
    let skew = reader.optional_integer(
        "head_group_skew_sectors",
        0..=100_000,
        "additional skew in slots of the first track of a head group; none if absent",
    );
    let skew = skew.unwrap_or(0) as u32;
    check_skew(reader, "head_group_skew_sectors", skew, slots);
    let group = match group {
        Some(group) => group as u32,
        None if skew > 0 => {
            reader.fail_with_choices(
                "head_group_skew_sectors",
                "a skew between groups of heads, and no groups",
                "head_group_heads with it",
            );
            return None;
        }
        None => return None,
    };
    if group > heads {
        let allowed = format!("up to the drive's {heads}");
        reader.fail_with_choices(
            "head_group_heads",
            "more heads than the drive has",
            &allowed,
        );
        return None;
    }
    Some(HeadGroups {
        heads_per_group: group,
        skew_slots: skew,
    })
}

/// Checks that the track has room for the slots of the format, with all that the controller writes
/// around each sector. Done only for drives whose unformatted track size is known.
fn check_format(reader: &mut Reader<'_>, sector_bytes: u32, slots: u32) {
    let Some(track_bytes) = reader.optional_integer(
        "track_bytes",
        1..=10_000_000,
        "bytes of an unformatted track; formats are not checked if absent",
    ) else {
        return;
    };
    let mut bytes = |key, doc| reader.optional_integer(key, 0..=10_000, doc).unwrap_or(0);
    let context = bytes("id_preamble_bytes", "gap before a sector's header (gap 1)")
        + bytes("data_preamble_bytes", "gap before a sector's data (gap 2)")
        + bytes("recovery_bytes", "gap after a sector's data")
        + bytes(
            "header_bytes",
            "header of a sector, with check bytes and marks",
        );
    let slot_bytes = u64::from(sector_bytes) + context;
    if slot_bytes * u64::from(slots) > track_bytes {
        let allowed = format!(
            "up to {} slots of {slot_bytes} bytes on a track of {track_bytes}, spare ones among them",
            track_bytes / slot_bytes
        );
        let wrong = format!("{slots} slots, which do not fit with their gaps");
        reader.fail_with_choices("sectors_per_track", &wrong, &allowed);
    }
}
