//! A modelled computer: a system of the catalogue, or of a file of the user's.

use crate::error::LaboratoryError;
use diskperf_battery::{Medium, Program};
use diskperf_catalogue::{Catalogue, Component, Parameter, Setting};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_machine::kernel::ffs::FileSystem;
use diskperf_machine::kernel::{minix, v7};
use diskperf_machine::specification::{
    Edition, Layout, MechanismSpecification, Software, Specification,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A system with its settings, ready to be built.
#[derive(Clone, Debug)]
pub struct Computer {
    /// `NAME`, `NAME:VARIANT` or the path of a file.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// What it is built from.
    pub specification: Specification,
    /// Every number of it, with its source.
    pub parameters: Vec<Parameter>,
    /// The files of the catalogue that it consists of, by name.
    pub texts: BTreeMap<String, String>,
    /// The catalogue's name of each component; a rig has drives alone.
    pub components: BTreeMap<Component, String>,
    /// The catalogue's name of each drive.
    pub drive_names: Vec<String>,
    /// Of each volume, once somebody has asked.
    rooms_bytes: Vec<OnceLock<u64>>,
}

/// These settings, with drives that have no file systems.
pub fn by_itself(settings: &[Setting]) -> Vec<Setting> {
    let none = Setting::new("filesystem", "none");
    settings.iter().cloned().chain([none]).collect()
}

/// What the programs of a system work on.
pub fn medium_of(specification: &Specification) -> Medium {
    let mut layouts = (specification.volumes.iter()).map(|volume| specification.layout(volume));
    match layouts.any(|layout| !matches!(layout, Layout::Raw)) {
        true => Medium::Directory,
        false => Medium::Device,
    }
}

impl Computer {
    /// Reads a system.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the system's name, its files and the
    /// settings, each with its place.
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
            Specification::read(system).map_err(LaboratoryError::catalogue)?;
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

    /// The kind and block size of its file systems, as the tables name them.
    pub fn filesystem(&self) -> String {
        match self.filesystem_kind() {
            Some((kind, block_bytes)) => format!("{kind}/{block_bytes}"),
            None => "raw".to_owned(),
        }
    }

    /// The same, apart; none where programs have the drives by themselves.
    pub fn filesystem_kind(&self) -> Option<(&'static str, u64)> {
        let specification = &self.specification;
        let volume = specification.volumes.first()?;
        match specification.layout(volume) {
            Layout::Raw => None,
            Layout::Ffs(parameters) => Some(("ffs", u64::from(parameters.block_bytes))),
            Layout::Minix(_) => Some(("minix", minix::BLOCK_BYTES as u64)),
            Layout::V7(_) => Some(("v7", v7::BLOCK_BYTES as u64)),
        }
    }

    /// The mechanism of a drive that the catalogue has under this name, if it has one, and
    /// the cylinder where what is measured of it begins.
    pub fn measured(&self, name: &str) -> Option<(&MechanismSpecification, u32)> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].measured()
    }

    /// The disk with firmware that the catalogue has under this name, if it is one.
    pub fn disk(&self, name: &str) -> Option<&DiskSpecification> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].disk()
    }

    /// The flash drive that the catalogue has under this name, if it is one.
    pub fn flash(&self, name: &str) -> Option<&FlashSpecification> {
        let place = self.drive_names.iter().position(|drive| drive == name)?;
        self.specification.drives[place].flash()
    }

    /// Whether its kernel is Minix, whose programs see a drive's files, and
    /// the drive itself as a character and as a block device.
    pub fn is_minix(&self) -> bool {
        matches!(self.specification.software, Software::Minix(_))
    }

    /// Whether its kernel is of the seventh edition, whose programs see a
    /// drive's files, and the drive itself as a character device.
    pub fn is_v7(&self) -> bool {
        match &self.specification.software {
            Software::Unix(unix) => matches!(unix.edition, Edition::Seventh(_)),
            _ => false,
        }
    }

    /// The system as these programs need it: a drive that they read by itself
    /// has no file system, where the system can do without.
    ///
    /// # Errors
    ///
    /// As [`Computer::read`].
    pub fn read_for<'a>(
        catalogue: &Catalogue,
        name: &str,
        settings: &[Setting],
        programs: impl IntoIterator<Item = &'a Program>,
    ) -> Result<Self, LaboratoryError> {
        let raw = |program: &Program| !program.is_of(Medium::Directory);
        let by_itself = programs
            .into_iter()
            .all(raw)
            .then(|| Self::v7_by_itself(catalogue, name, settings))
            .flatten();
        by_itself.map_or_else(|| Self::read(catalogue, name, settings), Ok)
    }

    /// A system with drives by themselves, if its kernel is of the seventh
    /// edition.
    pub fn v7_by_itself(catalogue: &Catalogue, name: &str, settings: &[Setting]) -> Option<Self> {
        let computer = Self::read(catalogue, name, &by_itself(settings)).ok();
        computer.filter(Self::is_v7)
    }

    /// Drives that are configured; of a drive of which several partitions are
    /// measured, each counts.
    pub fn configured_drives(&self) -> usize {
        self.specification.volumes.len()
    }

    /// What its programs work on.
    pub fn medium(&self) -> Medium {
        medium_of(&self.specification)
    }

    /// Bytes of a partition.
    pub fn partition_bytes(&self, drive: usize) -> u64 {
        self.specification.volumes[drive].partition.bytes()
    }

    /// Bytes that an ordinary user may write to a fresh file system of this
    /// drive, counted from 0; without one, all.
    pub fn room_bytes(&self, drive: usize) -> u64 {
        *self.rooms_bytes[drive].get_or_init(|| self.room_of_fresh_bytes(drive))
    }

    fn room_of_fresh_bytes(&self, drive: usize) -> u64 {
        let volume = self.specification.volumes[drive];
        let bytes = volume.partition.bytes();
        let checked = "the specification was checked";
        match self.specification.layout(&volume) {
            Layout::Raw => bytes,
            Layout::Minix(parameters) => minix::room_bytes(bytes, parameters).expect(checked),
            Layout::V7(parameters) => v7::room_bytes(bytes, parameters).expect(checked),
            Layout::Ffs(parameters) => {
                let label = volume.partition.label;
                let filesystem = FileSystem::newfs(label, parameters).expect(checked);
                let fragments = filesystem.free_space_fragments().max(0) as u64;
                fragments * u64::from(parameters.fragment_bytes)
            }
        }
    }
}
