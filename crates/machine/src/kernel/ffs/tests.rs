//! Tests of the file system, and the driver that they use.

mod corruption;
mod directories;
mod groups;
mod layout;
mod making;
mod random;
mod space;
mod truncation;
mod walks;

use super::writer;
use super::*;

/// The Eagle's `g` partition as the disktab of 1983 has it.
fn eagle_g() -> DiskLabel {
    DiskLabel {
        sector_bytes: 512,
        sectors_per_track: 48,
        tracks_per_cylinder: 20,
        partition_sectors: 432_768,
        revolutions_per_second: 65,
    }
}

/// The RA81's `h` partition as the disktab of 1983 has it.
fn ra81_h() -> DiskLabel {
    DiskLabel {
        sector_bytes: 512,
        sectors_per_track: 51,
        tracks_per_cylinder: 14,
        partition_sectors: 759_668,
        revolutions_per_second: 60,
    }
}

/// A drive of 12 MB in three groups and a bit, quickly filled.
fn small_drive() -> DiskLabel {
    DiskLabel {
        sector_bytes: 512,
        sectors_per_track: 32,
        tracks_per_cylinder: 5,
        partition_sectors: 160 * 151 + 77,
        revolutions_per_second: 60,
    }
}

fn make(geometry: DiskLabel, block_bytes: u32, rotdelay_ms: u32) -> FastFileSystem {
    let parameters = NewfsParameters {
        rotdelay_ms,
        ..NewfsParameters::bsd42_defaults(block_bytes, 1024)
    };
    FastFileSystem::make_file_system(geometry, parameters).expect("a possible file system")
}

#[track_caller]
fn assert_sound(file_system: &FastFileSystem) -> CheckSummary {
    file_system.check_consistency().unwrap_or_else(|problems| {
        let lines: Vec<String> = problems.iter().take(20).map(ToString::to_string).collect();
        panic!("{} problems:\n{}", problems.len(), lines.join("\n"));
    })
}

/// A small generator of its own, so that a seed means the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
