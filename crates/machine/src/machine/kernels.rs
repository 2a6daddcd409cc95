//! Construction of the kernels on their computers from the catalogue's description.

use crate::driver::QueueOrder;
use crate::kernel::buffers::{Buffers, CLICK_BYTES, HEADER_BYTES};
use crate::kernel::computer::Computer;
use crate::kernel::ffs::FastFileSystem;
use crate::kernel::minix::{self, CACHED_BLOCK_BYTES, MinixKernel};
use crate::kernel::v7::V7FileSystems;
use crate::kernel::{FileSystems, Mount, UnixKernel, raw};
use crate::parts::{Attachment, Drivers};
use crate::software::Kernel;
use crate::specification::{
    BUFFER_COUNT_MIN, ComputerSpecification, KernelBuilder, MachineSpecification,
    MinixSpecification, UnixEdition, UnixSpecification, VolumeLayout, VolumeSpecification,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

impl KernelBuilder for UnixSpecification {
    fn computer(&self) -> &ComputerSpecification {
        &self.computer
    }

    fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    fn queue_order(&self) -> QueueOrder {
        self.queue_order
    }

    fn volume_layout(&self, volume: &VolumeSpecification) -> Option<VolumeLayout> {
        match self.unix_edition {
            UnixEdition::Bsd42 => volume.file_system.map(VolumeLayout::Ffs),
            UnixEdition::SeventhEdition(parameters) => parameters.map(VolumeLayout::V7),
        }
    }

    fn cache_memory_bytes(&self) -> (&'static str, u64) {
        (
            "host.memory_bytes",
            u64::from(self.buffer_count()) * HEADER_BYTES,
        )
    }

    fn build(
        &self,
        specification: &MachineSpecification,
        volumes: &[VolumeSpecification],
        computer: Computer,
        drivers: Drivers,
    ) -> Kernel {
        Kernel::Unix(Rc::new(build_unix(
            specification,
            self,
            volumes,
            computer,
            drivers,
        )))
    }
}

impl KernelBuilder for MinixSpecification {
    fn computer(&self) -> &ComputerSpecification {
        &self.computer
    }

    fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    fn volume_layout(&self, _volume: &VolumeSpecification) -> Option<VolumeLayout> {
        self.file_system.map(VolumeLayout::Minix)
    }

    fn cache_memory_bytes(&self) -> (&'static str, u64) {
        let blocks = u64::from(self.config.cache_blocks);
        ("kernel.cache_blocks", blocks * CACHED_BLOCK_BYTES)
    }

    fn build(
        &self,
        _: &MachineSpecification,
        volumes: &[VolumeSpecification],
        computer: Computer,
        drivers: Drivers,
    ) -> Kernel {
        let volumes = build_minix_volumes(self, volumes);
        let config = self.config.clone();
        Kernel::Minix(Rc::new(MinixKernel::new(
            computer, config, drivers, volumes,
        )))
    }
}

/// Builds a UNIX kernel on its computer, with file systems on the media.
fn build_unix(
    specification: &MachineSpecification,
    unix: &UnixSpecification,
    volumes: &[VolumeSpecification],
    computer: Computer,
    drivers: Drivers,
) -> UnixKernel {
    let file_systems = match unix.unix_edition {
        UnixEdition::SeventhEdition(Some(parameters)) => {
            let bytes = volumes.iter().map(|volume| volume.partition.size_bytes());
            FileSystems::SeventhEdition(V7FileSystems::new(&computer.volumes, parameters, bytes))
        }
        UnixEdition::SeventhEdition(None) | UnixEdition::Bsd42 => FileSystems::FastFileSystem(
            RefCell::new(volumes.iter().filter_map(new_mount).collect()),
        ),
    };
    UnixKernel {
        computer,
        drivers,
        buffers: RefCell::new(build_buffers(specification, unix, volumes.len())),
        file_systems,
        request_owners: RefCell::default(),
        raw_headers: raw::new_raw_headers(volumes.len()),
    }
}

fn new_mount(volume: &VolumeSpecification) -> Option<Mount> {
    let fs = FastFileSystem::make_file_system(volume.partition.disk_label, volume.file_system?);
    Some(Mount {
        file_system: fs.expect("the specification was checked"),
        inodes: BTreeMap::new(),
        superblock_modified: false,
    })
}

fn build_buffers(
    specification: &MachineSpecification,
    unix: &UnixSpecification,
    volumes: usize,
) -> Buffers {
    let headers = unix.buffer_count();
    if let UnixEdition::SeventhEdition(Some(_)) = unix.unix_edition {
        // A click is the least that a header can have.
        return Buffers::new(headers, (headers * CLICK_BYTES, CLICK_BYTES), volumes);
    }
    let blocks = specification
        .volumes
        .iter()
        .map(|volume| specification.block_sizes(volume).0);
    let block = blocks.max().unwrap_or(4096);
    let bytes = unix.cache_bytes.max(BUFFER_COUNT_MIN * block);
    Buffers::new(headers, (bytes, block), volumes)
}

/// Returns the Minix file systems on the volumes in use.
fn build_minix_volumes(
    minix: &MinixSpecification,
    volumes: &[VolumeSpecification],
) -> Vec<minix::MinixVolume> {
    let made = |volume: &VolumeSpecification| {
        minix::MinixVolume::new(volume.partition.size_bytes(), minix.file_system?)
            .map(Some)
            .expect("the specification was checked")
    };
    volumes.iter().filter_map(made).collect()
}
