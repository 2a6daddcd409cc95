//! Specification of a machine: a system of the catalogue, read and validated.

pub(crate) mod drive;
pub(crate) mod kernel;
mod memory;
mod minix;
mod v7;

pub use drive::{
    DriveHardware, DriveSpecification, MechanismSpecification, PartitionSpecification,
};
pub(crate) use kernel::KernelFamily;
use kernel::KernelReader;
pub use kernel::KernelSpecification;
pub(crate) use kernel::{COST_MS_MAX, scale_cost};
pub use memory::MemoryRequirement;

use crate::driver::QueueOrder;
use crate::kernel::computer::Computer;
use crate::kernel::ffs::{FastFileSystem, NewfsParameters};
use crate::kernel::list::each_kernel;
use crate::kernel::minix::{MinixConfig, MinixFileSystemParameters};
use crate::kernel::v7::{BLOCK_BYTES as V7_BLOCK_BYTES, V7Parameters};
use crate::parts::{Attachment, ControllerSpecification, DriverSource, Drivers, PartKind};
use crate::software::Kernel;
use diskperf_catalogue::{Component, Errors, Parameter, Reader, ResolvedSystem};

/// System of the catalogue, ready to be built.
#[derive(Clone, Debug)]
pub struct MachineSpecification {
    /// Name of the system in the catalogue.
    pub name: String,
    /// Drives of the system as configured.
    pub drives: Vec<DriveSpecification>,
    /// Partitions that programs see, in the order of the drives.
    pub volumes: Vec<VolumeSpecification>,
    /// Kernel and its hardware, or a rig (drives without a computer).
    pub software: Software,
}

/// Kernel as described in the catalogue.
pub(crate) trait KernelBuilder {
    fn computer(&self) -> &ComputerSpecification;

    /// Controllers of the computer, with their drives.
    fn attachments(&self) -> &[Attachment];

    /// Request order of drivers that sort their queues.
    fn queue_order(&self) -> QueueOrder {
        QueueOrder::ArrivalOrder
    }

    /// Returns the file layout of a volume. None if programs use the raw drive.
    fn volume_layout(&self, volume: &VolumeSpecification) -> Option<VolumeLayout>;

    /// Memory of the cache, in bytes, with the parameter that determines its size.
    fn cache_memory_bytes(&self) -> (&'static str, u64);

    /// Builds the kernel with file systems on the given volumes.
    fn build(
        &self,
        specification: &MachineSpecification,
        volumes: &[VolumeSpecification],
        computer: Computer,
        drivers: Drivers,
    ) -> Kernel;
}

macro_rules! software {
    ({} $($(#[$doc:meta])* $Kernel:ident($running:ty, $described:ty, $session:ty);)*) => {
        /// Kernel with its computer and attached hardware, or a rig (drives without a computer).
        #[derive(Clone, Debug)]
        pub enum Software {
            /// Rig without a computer: programs use the drives directly.
            Rig,
            $($(#[$doc])* $Kernel($described),)*
        }

        impl Software {
            /// Returns the described kernel. None for a rig (drives without a computer).
            pub(crate) fn kernel(&self) -> Option<&dyn KernelBuilder> {
                match self {
                    Self::Rig => None,
                    $(Self::$Kernel(kernel) => Some(kernel),)*
                }
            }

            fn read_software(system: &ResolvedSystem, drives: &[DriveSpecification]) -> (Self, Vec<VolumeSpecification>) {
                let kinds = [$(<$described>::KERNEL_KINDS,)*].concat();
                let bus = read_bus(system);
                let controllers = read_controllers(system, drives.len());
                let kernel_reader = KernelReader::read_common(system, &kinds);
                $(if <$described>::KERNEL_KINDS.contains(&&*kernel_reader.kind) {
                    let (kernel, volumes) = read_kernel(bus, controllers, kernel_reader, system, drives);
                    return (Self::$Kernel(kernel), volumes);
                })*
                unreachable!("the kind is one of {kinds:?}")
            }
        }
    };
}
each_kernel! { software! {} }

/// Description of a computer, without the hardware attached to its bus.
#[derive(Clone, Debug)]
pub struct ComputerSpecification {
    /// Bandwidth of the bus, in bytes per second.
    pub bus_bytes_per_s: u64,
    /// Share of the processor's speed that a transfer of 1 MB/s costs.
    pub memory_contention_share: f64,
    /// Parameters common to all kinds of kernels.
    pub kernel: KernelSpecification,
}

/// UNIX kernel on its computer.
#[derive(Clone, Debug)]
pub struct UnixSpecification {
    /// Computer of the kernel: its bus, its speed and the costs of its software.
    pub computer: ComputerSpecification,
    /// Controllers of the computer, with their drives.
    pub attachments: Vec<Attachment>,
    /// Memory of the buffer cache, in bytes.
    pub cache_bytes: u32,
    /// Request order of drivers that sort their queues.
    pub queue_order: QueueOrder,
    /// UNIX edition, which determines the kind of file system.
    pub unix_edition: UnixEdition,
}

/// UNIX edition: 4.2BSD or the seventh edition.
#[derive(Clone, Copy, Debug)]
pub enum UnixEdition {
    /// 4.2BSD and similar kernels. Each volume has its own file layout.
    Bsd42,
    /// Seventh edition, with the parameters of mkfs. None if programs use the raw drives.
    SeventhEdition(Option<V7Parameters>),
}

/// Minix kernel on its computer.
#[derive(Clone, Debug)]
pub struct MinixSpecification {
    /// Computer of the kernel: its bus, its speed and the costs of its software.
    pub computer: ComputerSpecification,
    /// Controllers of the computer, with their drives.
    pub attachments: Vec<Attachment>,
    /// Costs and sizes of Minix.
    pub config: MinixConfig,
    /// Parameters of mkfs. None if programs use the raw drives.
    pub file_system: Option<MinixFileSystemParameters>,
}

/// File layout of a volume: raw, or the layout of a file system.
#[derive(Clone, Copy, Debug)]
pub enum VolumeLayout {
    /// Raw drive without a file system.
    RawVolume,
    /// Layout of the fast file system (FFS).
    Ffs(NewfsParameters),
    /// Layout of the Minix file system.
    Minix(MinixFileSystemParameters),
    /// Layout of the seventh edition's file system.
    V7(V7Parameters),
}

/// Partition that programs see, with its file layout.
#[derive(Clone, Copy, Debug)]
pub struct VolumeSpecification {
    /// Drive of the volume, as an index into [`MachineSpecification::drives`].
    pub drive: usize,
    /// Location of the partition on the drive.
    pub partition: PartitionSpecification,
    /// Parameters of the fast file system. None without a modelled one. Either all volumes of a
    /// system have one, or none has.
    pub file_system: Option<NewfsParameters>,
}

impl MachineSpecification {
    /// Reports whether data may be late at times. Program speed then depends on chance.
    pub fn may_lose_data(&self) -> bool {
        let mut parts = self
            .software
            .kernel()
            .into_iter()
            .flat_map(KernelBuilder::attachments);
        parts.any(|entry| entry.controller_part.may_lose_data())
    }

    /// Reads and validates a system. Also returns all parameters read, for lists and for the
    /// accuracy card.
    ///
    /// # Errors
    ///
    /// All problems of the system, each with its place.
    pub fn read_machine(system: ResolvedSystem) -> Result<(Self, Vec<Parameter>), Errors> {
        let mut drives = Vec::new();
        for number in 1..=system.drive_count() {
            let mut reader = system.reader(Component::Drive, Some(number));
            drives.push(DriveSpecification::read_drive(&mut reader));
            reader.finish();
        }
        let (software, volumes) = match system.is_rig() {
            true => read_rig(&system, &drives),
            false => Software::read_software(&system, &drives),
        };
        let specification = Self {
            name: system.name().to_string(),
            drives,
            volumes,
            software,
        };
        let parameters = system.finish()?;
        Ok((specification, parameters))
    }

    /// Returns the file layout of a volume.
    pub fn volume_layout(&self, volume: &VolumeSpecification) -> VolumeLayout {
        let layout = self
            .software
            .kernel()
            .and_then(|kernel| kernel.volume_layout(volume));
        layout.unwrap_or(VolumeLayout::RawVolume)
    }

    /// Returns the sizes of a volume's blocks and fragments, in bytes. Without a file system, these
    /// are the units in which the drive's contents are stored.
    pub(crate) fn block_sizes(&self, volume: &VolumeSpecification) -> (u32, u32) {
        match self.volume_layout(volume) {
            VolumeLayout::Ffs(parameters) => (parameters.block_bytes, parameters.fragment_bytes),
            VolumeLayout::V7(_) => (V7_BLOCK_BYTES as u32, V7_BLOCK_BYTES as u32),
            VolumeLayout::RawVolume | VolumeLayout::Minix(_) => (4096, 512),
        }
    }

    /// Returns the parameters of the fast file system on the first volume, if any.
    pub fn file_system_parameters(&self) -> Option<NewfsParameters> {
        self.volumes.first().and_then(|volume| volume.file_system)
    }
}

impl UnixSpecification {
    /// Number of buffers of the cache. The seventh edition has one per block, because its buffers
    /// never trade memory. 4.2BSD has one per 2 KiB. A cache has a minimum number of buffers.
    pub(crate) fn buffer_count(&self) -> u32 {
        let bytes_each = match self.unix_edition {
            UnixEdition::SeventhEdition(Some(_)) => V7_BLOCK_BYTES as u32,
            UnixEdition::SeventhEdition(None) | UnixEdition::Bsd42 => 2048,
        };
        (self.cache_bytes / bytes_each).max(BUFFER_COUNT_MIN)
    }
}

fn read_rig(
    system: &ResolvedSystem,
    drives: &[DriveSpecification],
) -> (Software, Vec<VolumeSpecification>) {
    for (number, drive) in drives.iter().enumerate() {
        if drive.mechanism_specification().is_some() {
            let mut reader = system.reader(Component::Drive, Some(number as u32 + 1));
            let message = format!("drive {} {CONTROLLER_MISSING}", number + 1);
            reader.fail("kind", &message);
        }
    }
    let all = drives.iter().enumerate();
    let volumes = all.flat_map(|(number, drive)| list_volumes(number, drive, None));
    (Software::Rig, volumes.collect())
}

/// Parameters of the bus that connects processor, memory and controllers.
struct BusProperties {
    bytes_per_s: u64,
    /// Share of the processor's speed that a transfer of 1 MB/s costs.
    memory_contention_share: f64,
}

fn read_bus(system: &ResolvedSystem) -> BusProperties {
    let mut bus = system.reader(Component::Bus, None);
    let bytes_per_s = bus.integer(
        "bytes_per_s",
        1000..=1_000_000_000_000,
        "maximum transfer rate of the bus",
    );
    let memory_contention_share = bus.number(
        "memory_contention_share",
        0.0..=0.9,
        "share of the processor's speed lost per MB/s of bus traffic",
    );
    bus.finish();
    BusProperties {
        bytes_per_s,
        memory_contention_share,
    }
}

fn read_kernel<K: KernelFamily>(
    bus: BusProperties,
    mut entries: Vec<ControllerEntry<'_>>,
    kernel_reader: KernelReader<'_>,
    system: &ResolvedSystem,
    drives: &[DriveSpecification],
) -> (K, Vec<VolumeSpecification>) {
    let (kernel, own) = kernel_reader.finish_kernel::<K>(entries.iter().map(|entry| entry.kind));
    // The others were refused.
    entries.retain(|entry| K::has_driver(entry.kind));
    let attachments = read_attachments(system, drives, kernel.processor_speed, entries);
    let computer = ComputerSpecification {
        bus_bytes_per_s: bus.bytes_per_s,
        memory_contention_share: bus.memory_contention_share,
        kernel,
    };
    K::attach_part(own, computer, attachments, system, drives)
}

struct ControllerEntry<'a> {
    /// Drive that has a controller for itself, counted from 1. None for the shared controller.
    dedicated_drive: Option<u32>,
    reader: Reader<'a>,
    kind: PartKind,
    drives: Vec<usize>,
}

/// Begins to read the controllers: the shared one, and those that a single drive has for itself.
fn read_controllers(system: &ResolvedSystem, drives: usize) -> Vec<ControllerEntry<'_>> {
    let (own, shared): (Vec<usize>, Vec<usize>) = (0..drives)
        .partition(|drive| system.has_own_component(Component::Controller, *drive as u32 + 1));
    let own = own
        .into_iter()
        .map(|drive| (Some(drive as u32 + 1), vec![drive]));
    let groups = [(None, shared)].into_iter().chain(own);
    let read = |(dedicated_drive, drives): (Option<u32>, Vec<usize>)| {
        let mut reader = system.reader(Component::Controller, dedicated_drive);
        ControllerEntry {
            dedicated_drive,
            kind: PartKind::read_kind(&mut reader),
            reader,
            drives,
        }
    };
    groups.map(read).collect()
}

fn read_attachments(
    system: &ResolvedSystem,
    drives: &[DriveSpecification],
    speed: f64,
    entries: Vec<ControllerEntry<'_>>,
) -> Vec<Attachment> {
    let attachment = |mut entry: ControllerEntry<'_>| {
        let dedicated_drive = entry
            .dedicated_drive
            .filter(|drive| system.has_own_component(Component::Driver, *drive));
        let driver = DriverSource {
            system,
            dedicated_drive,
            drives,
            attached_drives: &entry.drives,
            speed,
        };
        let commands = entry.kind.commands_mechanisms();
        let is_misfit =
            |drive: &&usize| drives[**drive].mechanism_specification().is_some() != commands;
        if let Some(drive) = entry.drives.iter().find(is_misfit) {
            let why = match commands {
                true => "is not a bare mechanism, and this controller commands only those",
                false => CONTROLLER_MISSING,
            };
            let message = format!("drive {} {why}", drive + 1);
            entry.reader.fail("kind", &message);
        }
        let part =
            ControllerSpecification::read_specification(entry.kind, &mut entry.reader, &driver);
        entry.reader.finish();
        Attachment {
            controller_part: part,
            drive_indices: entry.drives,
        }
    };
    entries.into_iter().map(attachment).collect()
}

const CONTROLLER_MISSING: &str = "is a bare mechanism and needs a controller";

fn list_volumes(
    number: usize,
    drive: &DriveSpecification,
    filesystem: Option<NewfsParameters>,
) -> impl Iterator<Item = VolumeSpecification> {
    drive
        .partitions
        .iter()
        .map(move |partition| VolumeSpecification {
            drive: number,
            partition: *partition,
            file_system: filesystem,
        })
}

/// Reads all partitions with their file systems.
pub(crate) fn read_volumes(
    system: &ResolvedSystem,
    drives: &[DriveSpecification],
    is_bsd: bool,
) -> Vec<VolumeSpecification> {
    let mut volumes = Vec::new();
    let shared = (0..drives.len())
        .filter(|drive| !system.has_own_component(Component::Filesystem, *drive as u32 + 1));
    let shared: Vec<usize> = shared.collect();
    // The other kernels have file systems of their own.
    let shared_filesystem = is_bsd
        .then(|| read_filesystem(system, None, drives, &shared))
        .flatten();
    for (number, drive) in drives.iter().enumerate() {
        let own = Some(number as u32 + 1).filter(|_| !shared.contains(&number));
        let filesystem = match own {
            Some(_) if is_bsd => read_filesystem(system, own, drives, &[number]),
            _ => shared_filesystem,
        };
        // Drives by themselves are so all together.
        volumes.extend(list_volumes(
            number,
            drive,
            shared_filesystem.and(filesystem),
        ));
    }
    volumes
}

/// Reads the parameters of newfs, and validates them against the given drives.
fn read_filesystem(
    system: &ResolvedSystem,
    number: Option<u32>,
    drives: &[DriveSpecification],
    file_system_drives: &[usize],
) -> Option<NewfsParameters> {
    let mut reader = system.reader(Component::Filesystem, number);
    let kinds = [("ffs", true), ("none", false)];
    if !reader.choice("kind", &kinds, "kind of file system, if any") {
        // What a system says of its own file system is known, and means
        // nothing here.
        for key in FILESYSTEM_KEYS {
            reader.optional_integer(
                key,
                0..=u64::MAX,
                "parameter of a file system, unused without one",
            );
        }
        reader.finish();
        return None;
    }
    let parameters = NewfsParameters {
        block_bytes: reader.integer("block_bytes", 4096..=65_536, "block size") as u32,
        fragment_bytes: reader.integer(
            "fragment_bytes",
            512..=65_536,
            "fragment size, the smallest unit of allocation",
        ) as u32,
        rotdelay_ms: reader.integer(
            "rotdelay_ms",
            0..=1000,
            "rotational delay between consecutive blocks of a file",
        ) as u32,
        maxcontig_blocks: reader.integer(
            "maxcontig",
            1..=1024,
            "consecutive blocks of a file without a rotational delay",
        ) as u32,
        maxbpg_blocks: reader.integer(
            "blocks_per_section",
            1..=1_000_000,
            "blocks of a file in a cylinder group, before it continues in another group",
        ) as u32,
        cylinders_per_group: reader.integer(
            "cylinders_per_group",
            1..=32,
            "cylinders per cylinder group",
        ) as u32,
        minfree_percent: reader.integer(
            "minfree_percent",
            0..=99,
            "share of the space that only the super-user may allocate",
        ) as u32,
        bytes_per_inode: reader.integer(
            "bytes_per_inode",
            512..=1 << 30,
            "file-system space per inode",
        ) as u32,
    };
    if reader.is_without_problems() {
        let mut labels = file_system_drives
            .iter()
            .flat_map(|drive| &drives[*drive].partitions);
        let refused = labels.find_map(|partition| {
            FastFileSystem::check_parameters(partition.disk_label, parameters).err()
        });
        if let Some(error) = refused {
            let (key, message) = catalogue_error(&error);
            reader.fail(key, &message);
        }
    }
    reader.finish();
    Some(parameters)
}

pub(crate) const BUFFER_COUNT_MIN: u32 = 16;

const FILESYSTEM_KEYS: [&str; 8] = [
    "block_bytes",
    "fragment_bytes",
    "rotdelay_ms",
    "maxcontig",
    "blocks_per_section",
    "cylinders_per_group",
    "minfree_percent",
    "bytes_per_inode",
];

/// Returns the catalogue key that a newfs error is about, and the error's message.
fn catalogue_error(error: &crate::kernel::ffs::NewfsError) -> (&'static str, String) {
    let message = error.to_string();
    let key = [
        ("rotdelay", "rotdelay_ms"),
        ("cylinders", "cylinders_per_group"),
        ("fragment", "fragment_bytes"),
        ("maxcontig", "maxcontig"),
        ("inode", "bytes_per_inode"),
        ("minfree", "minfree_percent"),
    ]
    .into_iter()
    .find(|(word, _)| message.contains(word))
    .map_or("block_bytes", |(_, key)| key);
    (key, message)
}
