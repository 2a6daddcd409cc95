//! Memory of a machine, computed before the machine is built.

use super::{DriveSpecification, Layout, Specification, Volume};
use crate::budget::{Budget, Exceeded};
use crate::kernel::ffs::FileSystem;
use crate::medium;
use diskperf_device::flash::specification::FlashSpecification;

/// Memory of a machine that is built from a specification, by the parameter that determines the
/// size of each part.
#[derive(Clone, Debug)]
pub struct Memory {
    table_sizes: Vec<(&'static str, u64)>,
}

impl Specification {
    /// Returns the memory of a machine that uses the first `volumes` volumes.
    pub fn memory(&self, volumes: usize) -> Memory {
        let used = self.volumes.iter().take(volumes);
        let of_drives = self.drives.iter().map(DriveSpecification::memory_bytes);
        let of_flash = self.drives.iter().filter_map(DriveSpecification::flash);
        let of_flash: u64 = of_flash.map(FlashSpecification::memory_bytes).sum();
        Memory {
            table_sizes: vec![
                (
                    "drive.partition_sectors",
                    used.map(|volume| self.volume_bytes(volume)).sum(),
                ),
                ("drive.cylinders", of_drives.sum()),
                ("drive.blocks_per_plane", of_flash),
            ]
            .into_iter()
            .chain(self.software.kernel().map(|kernel| kernel.cache_memory()))
            .collect(),
        }
    }

    /// Returns the memory of a volume's block table and of its file system in core, in bytes.
    fn volume_bytes(&self, volume: &Volume) -> u64 {
        let (block_bytes, _) = self.block_sizes(volume);
        let blocks = volume.partition.bytes() / u64::from(block_bytes);
        let made = volume.filesystem.map(|parameters| {
            let made = FileSystem::memory_bytes(volume.partition.label, parameters);
            made.expect("the specification was checked")
        });
        let places = match self.layout(volume) {
            // Of a drive by itself, next to nothing may be written.
            Layout::Raw => medium::empty_bytes(blocks),
            Layout::Ffs(_) | Layout::Minix(_) | Layout::V7(_) => blocks * medium::PLACE_BYTES,
        };
        places.saturating_add(made.unwrap_or(0))
    }
}

impl Memory {
    /// Memory of all parts, in bytes.
    pub fn bytes(&self) -> u64 {
        let table_sizes = self.table_sizes.iter().map(|(_, bytes)| *bytes);
        table_sizes.fold(0, u64::saturating_add)
    }

    /// Checks the memory against a budget.
    ///
    /// # Errors
    ///
    /// [`Exceeded`], with the parameter that takes most of the memory.
    pub fn within(&self, budget: Budget) -> Result<(), Exceeded> {
        let bytes = self.bytes();
        if bytes <= budget.table_bytes {
            return Ok(());
        }
        let table_sizes = self.table_sizes.iter().copied();
        let (parameter, part) = table_sizes
            .max_by_key(|(_, bytes)| *bytes)
            .expect("a machine has parts");
        Err(Exceeded::Tables {
            bytes,
            parameter,
            part,
            limit: budget.table_bytes,
        })
    }
}

impl DriveSpecification {
    fn memory_bytes(&self) -> u64 {
        let cylinders = self
            .mechanism()
            .map_or(0, |of| of.mechanics.geometry.cylinders());
        u64::from(cylinders) * size_of::<u64>() as u64
    }
}
