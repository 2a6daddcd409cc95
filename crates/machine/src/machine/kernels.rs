//! Construction of the kernels on their computers from the catalogue's description.

use crate::driver::QueueOrder;
use crate::kernel::buffers::{Buffers, CLICK, HEADER_BYTES};
use crate::kernel::computer::Computer;
use crate::kernel::ffs::FileSystem;
use crate::kernel::minix::{self, CACHED_BLOCK_BYTES, Minix};
use crate::kernel::v7::V7;
use crate::kernel::{FileSystems, Mount, Unix, raw};
use crate::parts::{Attachment, Drivers};
use crate::software::Kernel;
use crate::specification::{
    BUFFERS_MIN, ComputerSpecification, Edition, KernelBuilder, Layout, MinixSpecification,
    Specification, UnixSpecification, Volume,
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

    fn order(&self) -> QueueOrder {
        self.order
    }

    fn layout(&self, volume: &Volume) -> Option<Layout> {
        match self.edition {
            Edition::Bsd => volume.filesystem.map(Layout::Ffs),
            Edition::Seventh(parameters) => parameters.map(Layout::V7),
        }
    }

    fn cache_memory(&self) -> (&'static str, u64) {
        (
            "host.memory_bytes",
            u64::from(self.buffers()) * HEADER_BYTES,
        )
    }

    fn build(
        &self,
        specification: &Specification,
        volumes: &[Volume],
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

    fn layout(&self, _volume: &Volume) -> Option<Layout> {
        self.filesystem.map(Layout::Minix)
    }

    fn cache_memory(&self) -> (&'static str, u64) {
        let blocks = u64::from(self.config.cache_blocks);
        ("kernel.cache_blocks", blocks * CACHED_BLOCK_BYTES)
    }

    fn build(
        &self,
        _: &Specification,
        volumes: &[Volume],
        computer: Computer,
        drivers: Drivers,
    ) -> Kernel {
        let volumes = build_minix_volumes(self, volumes);
        let config = self.config.clone();
        Kernel::Minix(Rc::new(Minix::new(computer, config, drivers, volumes)))
    }
}

/// Builds a UNIX kernel on its computer, with file systems on the media.
fn build_unix(
    specification: &Specification,
    unix: &UnixSpecification,
    volumes: &[Volume],
    computer: Computer,
    drivers: Drivers,
) -> Unix {
    let file_systems = match unix.edition {
        Edition::Seventh(Some(parameters)) => {
            let bytes = volumes.iter().map(|volume| volume.partition.bytes());
            FileSystems::V7(V7::new(&computer.volumes, parameters, bytes))
        }
        Edition::Seventh(None) | Edition::Bsd => FileSystems::Ffs(RefCell::new(
            volumes.iter().filter_map(mount_volume).collect(),
        )),
    };
    Unix {
        computer,
        drivers,
        buffers: RefCell::new(build_buffers(specification, unix, volumes.len())),
        file_systems,
        owners: RefCell::default(),
        raw_headers: raw::headers(volumes.len()),
    }
}

fn mount_volume(volume: &Volume) -> Option<Mount> {
    let fs = FileSystem::newfs(volume.partition.label, volume.filesystem?);
    Some(Mount {
        fs: fs.expect("the specification was checked"),
        inodes: BTreeMap::new(),
        modified: false,
    })
}

fn build_buffers(
    specification: &Specification,
    unix: &UnixSpecification,
    volumes: usize,
) -> Buffers {
    let headers = unix.buffers();
    if let Edition::Seventh(Some(_)) = unix.edition {
        // A click is the least that a header can have.
        return Buffers::new(headers, (headers * CLICK, CLICK), volumes);
    }
    let blocks = specification
        .volumes
        .iter()
        .map(|volume| specification.block_sizes(volume).0);
    let block = blocks.max().unwrap_or(4096);
    let bytes = unix.cache_bytes.max(BUFFERS_MIN * block);
    Buffers::new(headers, (bytes, block), volumes)
}

/// Returns the Minix file systems on the volumes in use.
fn build_minix_volumes(minix: &MinixSpecification, volumes: &[Volume]) -> Vec<minix::Volume> {
    let made = |volume: &Volume| {
        minix::Volume::new(volume.partition.bytes(), minix.filesystem?)
            .map(Some)
            .expect("the specification was checked")
    };
    volumes.iter().filter_map(made).collect()
}
