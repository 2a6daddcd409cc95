//! What a machine is built from: a system of the catalogue, read and checked.

mod controller;
mod drive;
mod kernel;
mod minix;

pub use controller::ControllerSpecification;
pub use drive::DriveSpecification;
pub use kernel::{DriverSpecification, KernelSpecification};

use crate::catalogue::{Component, Errors, Parameter, System};
use crate::kernel::ffs::{FileSystem, Parameters};
use crate::kernel::minix::MinixParameters;

/// A system, ready to be built.
#[derive(Clone, Debug)]
pub struct Specification {
    /// Its name in the catalogue.
    pub name: String,
    /// Its drives, as configured.
    pub drives: Vec<DriveSpecification>,
    /// What they hang on.
    pub controller: ControllerSpecification,
    /// Bytes per second of the bus.
    pub bus_bytes_per_s: u64,
    /// Share of the processor's speed that moving 1 MB/s costs.
    pub memory_contention_share: f64,
    /// The software.
    pub kernel: KernelSpecification,
    /// The driver.
    pub driver: DriverSpecification,
    /// How files are laid out; none where the drives have no file system that
    /// is modelled.
    pub filesystem: Option<Parameters>,
    /// The same, where it is Minix's.
    pub minix_filesystem: Option<MinixParameters>,
}

impl Specification {
    /// Reads a system; also everything that was read, for lists and for the
    /// accuracy card.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with its place.
    pub fn read(system: System) -> Result<(Self, Vec<Parameter>), Errors> {
        let mut drives = Vec::new();
        for number in 1..=system.drives() {
            let mut reader = system.reader(Component::Drive, Some(number));
            drives.push(DriveSpecification::read(&mut reader));
            reader.finish();
        }
        let mut bus = system.reader(Component::Bus, None);
        let bus_bytes_per_s = bus.integer(
            "bytes_per_s",
            1000..=1_000_000_000_000,
            "the most that it moves",
        );
        let memory_contention_share = bus.number(
            "memory_contention_share",
            0.0..=0.9,
            "share of the processor's speed that moving 1 MB/s takes",
        );
        bus.finish();
        let mut reader = system.reader(Component::Controller, None);
        let controller = ControllerSpecification::read(&mut reader);
        reader.finish();
        let kernel = KernelSpecification::read(&system, &controller);
        let driver = DriverSpecification::read(&system, &controller, &drives, kernel.speed);
        let (filesystem, minix_filesystem) = if kernel.minix.is_some() {
            (None, minix::read_filesystem(&system, &drives))
        } else {
            (read_filesystem(&system, &drives), None)
        };
        let specification = Self {
            name: system.name().to_string(),
            drives,
            controller,
            bus_bytes_per_s,
            memory_contention_share,
            kernel,
            driver,
            filesystem,
            minix_filesystem,
        };
        let parameters = system.finish()?;
        Ok((specification, parameters))
    }
}

/// Reads newfs's parameters, and makes sure that every drive takes them.
fn read_filesystem(system: &System, drives: &[DriveSpecification]) -> Option<Parameters> {
    let mut reader = system.reader(Component::Filesystem, None);
    let kinds = [("ffs", true), ("none", false)];
    if !reader.choice("kind", &kinds, "which file system, if any") {
        // What a system says of its own file system is known, and means
        // nothing here.
        for key in FILESYSTEM_KEYS {
            reader.optional_integer(key, 0..=u64::MAX, "of a file system");
        }
        reader.finish();
        return None;
    }
    let parameters = Parameters {
        block_bytes: reader.integer("block_bytes", 4096..=65_536, "bytes in a block") as u32,
        fragment_bytes: reader.integer(
            "fragment_bytes",
            512..=65_536,
            "bytes in a fragment, the least that a small file takes",
        ) as u32,
        rotdelay_ms: reader.integer(
            "rotdelay_ms",
            0..=1000,
            "between the end of a block and the start of the next of the same file",
        ) as u32,
        maxcontig_blocks: reader.integer("maxcontig", 1..=1024, "blocks laid out without a gap")
            as u32,
        maxbpg_blocks: reader.integer(
            "blocks_per_section",
            1..=1_000_000,
            "blocks of a file before it moves to another cylinder group",
        ) as u32,
        cylinders_per_group: reader.integer("cylinders_per_group", 1..=32, "cylinders in a group")
            as u32,
        minfree_percent: reader.integer(
            "minfree_percent",
            0..=99,
            "share that only the super-user may allocate",
        ) as u32,
        bytes_per_inode: reader.integer(
            "bytes_per_inode",
            512..=1 << 30,
            "one inode is made for this much",
        ) as u32,
    };
    if reader.is_sound() {
        for drive in drives {
            if let Err(error) = FileSystem::newfs(drive.partition, parameters) {
                let (key, message) = blamed(&error);
                reader.fail(key, &message);
                break;
            }
        }
    }
    reader.finish();
    Some(parameters)
}

/// What is said of a file system besides its kind.
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

/// The key that a refusal of newfs is about, and what it says.
fn blamed(error: &crate::kernel::ffs::NewfsError) -> (&'static str, String) {
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
