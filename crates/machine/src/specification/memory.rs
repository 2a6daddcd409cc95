//! Memory of a machine, computed before the machine is built.

use super::{DriveSpecification, MachineSpecification, VolumeLayout, VolumeSpecification};
use crate::budget::{ExceededLimit, RunBudget};
use crate::kernel::ffs::FastFileSystem;
use crate::medium;
use diskperf_device::flash::specification::FlashSpecification;

/// Memory of a machine that is built from a specification, by the parameter that determines the
/// size of each part.
#[derive(Clone, Debug)]
pub struct MemoryRequirement {
    table_sizes: Vec<(&'static str, u64)>,
}

impl MachineSpecification {
    /// Returns the memory of a machine that uses the first `volumes` volumes.
    pub fn memory_requirement(&self, volumes: usize) -> MemoryRequirement {
        let used = self.volumes.iter().take(volumes);
        let of_drives = self.drives.iter().map(DriveSpecification::memory_bytes);
        let of_flash = self
            .drives
            .iter()
            .filter_map(DriveSpecification::flash_specification);
        let of_flash: u64 = of_flash.map(FlashSpecification::memory_bytes).sum();
        MemoryRequirement {
            table_sizes: vec![
                (
                    "drive.partition_sectors",
                    used.map(|volume| self.volume_bytes(volume)).sum(),
                ),
                ("drive.cylinders", of_drives.sum()),
                ("drive.blocks_per_plane", of_flash),
            ]
            .into_iter()
            .chain(
                self.software
                    .kernel()
                    .map(|kernel| kernel.cache_memory_bytes()),
            )
            .collect(),
        }
    }

    /// Returns the memory of a volume's block table and of its file system in core, in bytes.
    fn volume_bytes(&self, volume: &VolumeSpecification) -> u64 {
        let (block_bytes, _) = self.block_sizes(volume);
        let blocks = volume.partition.size_bytes() / u64::from(block_bytes);
        let made = volume.file_system.map(|parameters| {
            let made = FastFileSystem::memory_bytes(volume.partition.disk_label, parameters);
            made.expect("the specification was checked")
        });
        let places = match self.volume_layout(volume) {
            // Of a drive by itself, next to nothing may be written.
            VolumeLayout::RawVolume => medium::empty_bytes(blocks),
            VolumeLayout::Ffs(_) | VolumeLayout::Minix(_) | VolumeLayout::V7(_) => {
                blocks * medium::BLOCK_ENTRY_BYTES
            }
        };
        places.saturating_add(made.unwrap_or(0))
    }
}

impl MemoryRequirement {
    /// Memory of all parts, in bytes.
    pub fn total_bytes(&self) -> u64 {
        let table_sizes = self.table_sizes.iter().map(|(_, bytes)| *bytes);
        table_sizes.fold(0, u64::saturating_add)
    }

    /// Checks the memory against a budget.
    ///
    /// # Errors
    ///
    /// [`ExceededLimit`], with the parameter that takes most of the memory.
    pub fn require_within_budget(&self, budget: RunBudget) -> Result<(), ExceededLimit> {
        let bytes = self.total_bytes();
        if bytes <= budget.table_bytes_max {
            return Ok(());
        }
        let table_sizes = self.table_sizes.iter().copied();
        let (parameter, part) = table_sizes
            .max_by_key(|(_, bytes)| *bytes)
            .expect("a machine has parts");
        Err(ExceededLimit::Tables {
            bytes,
            parameter,
            part,
            limit: budget.table_bytes_max,
        })
    }
}

impl DriveSpecification {
    fn memory_bytes(&self) -> u64 {
        let cylinders = self
            .mechanism_specification()
            .map_or(0, |of| of.mechanics.geometry.cylinders());
        u64::from(cylinders) * size_of::<u64>() as u64
    }
}
