//! DiskSim's parameter files and validation traces: drives that others have measured.
//!
//! ```
//! use diskperf_diskspecs::{SpecificationFiles, import};
//!
//! let text = "dm_disk SMALL { Block count = 80, Number of data surfaces = 2,
//!     Number of cylinders = 4,
//!     Mechanical Model = dm_mech_g1 { Access time type = trackSwitchPlusRotation,
//!         Seek type = constant, Constant seek time = 2.5, Head switch time = 0.5,
//!         Add. write settling delay = 0.0, Rotation speed (in rpms) = 6000 },
//!     Layout Model = dm_layout_g1 { LBN-to-PBN mapping scheme = 0,
//!         Sparing scheme used = 0, Zones = [ dm_layout_g1_zone {
//!             First cylinder number = 0, Last cylinder number = 3, Blocks per track = 10,
//!             Offset of first block = 0.0, Empty space at zone front = 0,
//!             Skew for track switch = 2, Skew for cylinder switch = 3,
//!             Number of spares = 0, slips = [], defects = [] } ] } }";
//! let files = SpecificationFiles::Memory([("small.model".to_owned(), text.to_owned())].into());
//! let drive = &import("small.model", &files)?.drives[0];
//! let sector = drive.model.layout.locate_block(20).expect("the drive has 80 blocks");
//! assert_eq!((sector.cylinder, sector.head, sector.angle), (1, 0, 0.5));
//! # Ok::<(), diskperf_diskspecs::Errors>(())
//! ```
//!
//! - [`import()`]: `.parv`, `.diskspecs`, `.model` and `.seek` files as typed [`SpecifiedDrive`]s.
//!   Every key is used, listed in [`ImportedSpecification::ignored_keys`], or rejected with its place. The
//!   values are those of the files, without corrections from a trace.
//! - [`table`]: the keys of DiskSim with their ranges and their effect.
//! - [`layout`]: mapping of a block to its cylinder, head, sector and angle, and back.
//! - [`trace`]: traces in the closed-loop `validate` format.
//! - [`phase`]: the rotational phase of the spindle in a trace, its period, and the position
//!   of the pauses before or after their requests.
//!
//! The crate does no I/O except reading the requested files, and does not know how a drive is
//! modelled.

mod files;
mod firmware;
mod import;
mod keys;
pub mod layout;
mod mechanics;
mod model;
pub mod phase;
mod run;
mod seek;
pub mod table;
mod text;
pub mod trace;

pub use diskperf_diagnostics::{Errors, Problem, SourceSpan};
pub use files::SpecificationFiles;
pub use firmware::{
    DriveBuffer, FastWriteSupport, Firmware, OverheadsMs, ReadAheadExtent, Scheduler,
};
pub use import::{ImportedSpecification, SpecifiedDrive, import};
pub use keys::{IgnoredKey, KeySpans, SubstitutedValue};
pub use mechanics::Mechanics;
pub use model::DriveModel;
pub use run::{BusTiming, ControllerTiming, DataPath};
pub use seek::{SeekCurve, SeekTable};
