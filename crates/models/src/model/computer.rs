//! Modelled computer: a system of the catalogue, or of a user's file.

use crate::error::LaboratoryError;
use diskperf_battery::{Medium, Program};
use diskperf_catalogue::{Catalogue, Component, Parameter, Setting};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_machine::kernel::ffs::FastFileSystem;
use diskperf_machine::kernel::{minix, v7};
use diskperf_machine::specification::{
    MachineSpecification, MechanismSpecification, Software, UnixEdition, VolumeLayout,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A system with its settings, ready to be built.
#[derive(Clone, Debug)]
pub struct Computer {
    /// Name of the system: `NAME`, `NAME:VARIANT` or the path of a file.
    pub name: String,
    /// Description of the system, for users.
    pub description: String,
    /// Specification that a machine is built from.
    pub specification: MachineSpecification,
    /// All parameters of the system, with their sources.
    pub parameters: Vec<Parameter>,
    /// Texts of the catalogue files that the system consists of, by name.
    pub texts: BTreeMap<String, String>,
    /// Catalogue name of each component of the system. A rig has only drives.
    pub components: BTreeMap<Component, String>,
    /// Catalogue name of each drive of the system.
    pub drive_names: Vec<String>,
    /// Available bytes of each volume, computed at the first request.
    rooms_bytes: Vec<OnceLock<u64>>,
}

/// Adds the setting that leaves the drives without file systems.
pub fn by_itself(settings: &[Setting]) -> Vec<Setting> {
    let none = Setting::new("filesystem", "none");
    settings.iter().cloned().chain([none]).collect()
}

/// Returns the kind of storage that the programs of a system use.
pub fn medium_of(specification: &MachineSpecification) -> Medium {
    let mut layouts =
        (specification.volumes.iter()).map(|volume| specification.volume_layout(volume));
    match layouts.any(|layout| !matches!(layout, VolumeLayout::RawVolume)) {
        true => Medium::Directory,
        false => Medium::Device,
    }
}

impl Computer {
    /// Reads a system.
    ///
    /// # Errors
    ///
    /// Returns all faults of the system's name, its files and the settings, each with its place.
    pub fn read(
        catalogue: &Catalogue,
        name: &str,
        settings: &[Setting],
    ) -> Result<Self, LaboratoryError> {
        let system = catalogue
            .resolve(name, settings)
            .map_err(LaboratoryError::catalogue)?;
        let texts = system
            .texts()
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        let components = Component::ALL
            .into_iter()
            .filter(|component| system.has(*component))
            .map(|component| (component, system.component_name(component, None).to_owned()))
            .collect();
        let drive_names = (1..=system.drives())
            .map(|number| {
                system
                    .component_name(Component::Drive, Some(number))
                    .to_owned()
            })
            .collect();
        let description = system.description().to_owned();
        let (specification, parameters) =
            MachineSpecification::read_machine(system).map_err(LaboratoryError::catalogue)?;
        Ok(Self {
            name: name.to_owned(),
            description,
            rooms_bytes: vec![OnceLock::new(); specification.volumes.len()],
            specification,
            parameters,
            texts,
            components,
            drive_names,
        })
    }

    /// Kind and block size of the computer's file systems, in the form of the tables.
    pub fn filesystem(&self) -> String {
        match self.filesystem_kind() {
            Some((kind, block_bytes)) => format!("{kind}/{block_bytes}"),
            None => "raw".to_owned(),
        }
    }

    /// Kind of the computer's file systems, and their block size in bytes; `None` if programs use
    /// bare drives.
    pub fn filesystem_kind(&self) -> Option<(&'static str, u64)> {
        let specification = &self.specification;
        let volume = specification.volumes.first()?;
        match specification.volume_layout(volume) {
            VolumeLayout::RawVolume => None,
            VolumeLayout::Ffs(parameters) => Some(("ffs", u64::from(parameters.block_bytes))),
            VolumeLayout::Minix(_) => Some(("minix", minix::BLOCK_BYTES as u64)),
            VolumeLayout::V7(_) => Some(("v7", v7::BLOCK_BYTES as u64)),
        }
    }

    /// Finds the mechanism of a drive by its catalogue name. Returns it with the cylinder where its
    /// benchmarks start.
    pub fn measured(&self, name: &str) -> Option<(&MechanismSpecification, u32)> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].measured_mechanism()
    }

    /// Finds a disk with firmware by its catalogue name.
    pub fn disk(&self, name: &str) -> Option<&DiskSpecification> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].disk_specification()
    }

    /// Finds a flash drive by its catalogue name.
    pub fn flash(&self, name: &str) -> Option<&FlashSpecification> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].flash_specification()
    }

    /// Reports whether the kernel is Minix. Its programs see the files of a drive, and the drive
    /// itself as a character and as a block device.
    pub fn is_minix(&self) -> bool {
        matches!(self.specification.software, Software::Minix(_))
    }

    /// Reports whether the kernel is of the seventh edition. Its programs see the files of a drive,
    /// and the drive itself as a character device.
    pub fn is_v7(&self) -> bool {
        match &self.specification.software {
            Software::Unix(unix) => matches!(unix.unix_edition, UnixEdition::SeventhEdition(_)),
            _ => false,
        }
    }

    /// Reads a system in the form that these programs need. If all programs use a bare drive and
    /// the system permits it, the drive has no file system.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Computer::read`].
    pub fn read_for<'a>(
        catalogue: &Catalogue,
        name: &str,
        settings: &[Setting],
        programs: impl IntoIterator<Item = &'a Program>,
    ) -> Result<Self, LaboratoryError> {
        let raw = |program: &Program| !program.supports_medium(Medium::Directory);
        let by_itself = programs
            .into_iter()
            .all(raw)
            .then(|| Self::v7_by_itself(catalogue, name, settings))
            .flatten();
        by_itself.map_or_else(|| Self::read(catalogue, name, settings), Ok)
    }

    /// Reads a system with bare drives, if its kernel is of the seventh edition.
    pub fn v7_by_itself(catalogue: &Catalogue, name: &str, settings: &[Setting]) -> Option<Self> {
        let computer = Self::read(catalogue, name, &by_itself(settings)).ok();
        computer.filter(Self::is_v7)
    }

    /// Number of configured drives. If several partitions of a drive are measured, each counts.
    pub fn configured_drives(&self) -> usize {
        self.specification.volumes.len()
    }

    /// Kind of storage that the programs of this computer use.
    pub fn medium(&self) -> Medium {
        medium_of(&self.specification)
    }

    /// Size of a drive's partition in bytes.
    pub fn partition_bytes(&self, drive: usize) -> u64 {
        self.specification.volumes[drive].partition.size_bytes()
    }

    /// Bytes that an ordinary user may write to a fresh file system of this drive, numbered from 0;
    /// all bytes of a drive without a file system.
    pub fn room_bytes(&self, drive: usize) -> u64 {
        *self.rooms_bytes[drive].get_or_init(|| self.room_of_fresh_bytes(drive))
    }

    fn room_of_fresh_bytes(&self, drive: usize) -> u64 {
        let volume = self.specification.volumes[drive];
        let bytes = volume.partition.size_bytes();
        let checked = "the specification was checked";
        match self.specification.volume_layout(&volume) {
            VolumeLayout::RawVolume => bytes,
            VolumeLayout::Minix(parameters) => {
                minix::file_capacity_bytes(bytes, parameters).expect(checked)
            }
            VolumeLayout::V7(parameters) => {
                v7::file_capacity_bytes(bytes, parameters).expect(checked)
            }
            VolumeLayout::Ffs(parameters) => {
                let label = volume.partition.disk_label;
                let filesystem =
                    FastFileSystem::make_file_system(label, parameters).expect(checked);
                let fragments = filesystem.free_space_fragments().max(0) as u64;
                fragments * u64::from(parameters.fragment_bytes)
            }
        }
    }
}
