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
pub struct ModelComputer {
    /// Name of the system: `NAME`, `NAME:VARIANT` or the path of a file.
    pub name: String,
    /// Description of the system, for users.
    pub description: String,
    /// Specification that a machine is built from.
    pub specification: MachineSpecification,
    /// All parameters of the system, with their sources.
    pub parameters: Vec<Parameter>,
    /// Texts of the catalogue files that the system consists of, by name.
    pub catalogue_texts: BTreeMap<String, String>,
    /// Catalogue name of each component of the system. A rig has only drives.
    pub component_names: BTreeMap<Component, String>,
    /// Catalogue name of each drive of the system.
    pub drive_names: Vec<String>,
    /// Available bytes of each volume, computed at the first request.
    free_bytes_by_drive: Vec<OnceLock<u64>>,
}

/// Adds the setting that leaves the drives without file systems.
pub fn bare_drive_settings(settings: &[Setting]) -> Vec<Setting> {
    let none = Setting::new("filesystem", "none");
    settings.iter().cloned().chain([none]).collect()
}

/// Returns the kind of storage that the programs of a system use.
pub fn medium_of_specification(specification: &MachineSpecification) -> Medium {
    let mut layouts =
        (specification.volumes.iter()).map(|volume| specification.volume_layout(volume));
    match layouts.any(|layout| !matches!(layout, VolumeLayout::RawVolume)) {
        true => Medium::Directory,
        false => Medium::Device,
    }
}

impl ModelComputer {
    /// Reads a system.
    ///
    /// # Errors
    ///
    /// Returns all faults of the system's name, its files and the settings, each with its place.
    pub fn read_catalogue(
        catalogue: &Catalogue,
        name: &str,
        settings: &[Setting],
    ) -> Result<Self, LaboratoryError> {
        let system = catalogue
            .resolve(name, settings)
            .map_err(LaboratoryError::catalogue)?;
        let texts = system
            .file_texts()
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        let components = Component::ALL
            .into_iter()
            .filter(|component| system.has_component(*component))
            .map(|component| (component, system.component_name(component, None).to_owned()))
            .collect();
        let drive_names = (1..=system.drive_count())
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
            free_bytes_by_drive: vec![OnceLock::new(); specification.volumes.len()],
            specification,
            parameters,
            catalogue_texts: texts,
            component_names: components,
            drive_names,
        })
    }

    /// Kind and block size of the computer's file systems, in the form of the tables.
    pub fn describe_filesystem(&self) -> String {
        match self.filesystem_kind_and_block() {
            Some((kind, block_bytes)) => format!("{kind}/{block_bytes}"),
            None => "raw".to_owned(),
        }
    }

    /// Kind of the computer's file systems, and their block size in bytes; `None` if programs use
    /// bare drives.
    pub fn filesystem_kind_and_block(&self) -> Option<(&'static str, u64)> {
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
    pub fn measured_mechanism(&self, name: &str) -> Option<(&MechanismSpecification, u32)> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].measured_mechanism()
    }

    /// Finds a disk with firmware by its catalogue name.
    pub fn find_disk(&self, name: &str) -> Option<&DiskSpecification> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].disk_specification()
    }

    /// Finds a flash drive by its catalogue name.
    pub fn find_flash(&self, name: &str) -> Option<&FlashSpecification> {
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
    /// Returns the errors of [`ModelComputer::read_catalogue`].
    pub fn read_for_medium<'a>(
        catalogue: &Catalogue,
        name: &str,
        settings: &[Setting],
        programs: impl IntoIterator<Item = &'a Program>,
    ) -> Result<Self, LaboratoryError> {
        let raw = |program: &Program| !program.supports_medium(Medium::Directory);
        let by_itself = programs
            .into_iter()
            .all(raw)
            .then(|| Self::read_v7_alone(catalogue, name, settings))
            .flatten();
        by_itself.map_or_else(|| Self::read_catalogue(catalogue, name, settings), Ok)
    }

    /// Reads a system with bare drives, if its kernel is of the seventh edition.
    pub fn read_v7_alone(catalogue: &Catalogue, name: &str, settings: &[Setting]) -> Option<Self> {
        let computer = Self::read_catalogue(catalogue, name, &bare_drive_settings(settings)).ok();
        computer.filter(Self::is_v7)
    }

    /// Number of configured drives. If several partitions of a drive are measured, each counts.
    pub fn configured_drive_count(&self) -> usize {
        self.specification.volumes.len()
    }

    /// Kind of storage that the programs of this computer use.
    pub fn medium(&self) -> Medium {
        medium_of_specification(&self.specification)
    }

    /// Size of a drive's partition in bytes.
    pub fn partition_bytes(&self, drive: usize) -> u64 {
        self.specification.volumes[drive].partition.size_bytes()
    }

    /// Bytes that an ordinary user may write to a fresh file system of this drive, numbered from 0;
    /// all bytes of a drive without a file system.
    pub fn free_bytes(&self, drive: usize) -> u64 {
        *self.free_bytes_by_drive[drive].get_or_init(|| self.fresh_free_bytes(drive))
    }

    fn fresh_free_bytes(&self, drive: usize) -> u64 {
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
