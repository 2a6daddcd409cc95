//! Runs the cases on a modelled computer.

use crate::cases::{Abilities, Case, MINIX, POSIX, SMALL_VOLUME_BYTES, Volume, World, XENIX};
use crate::modelled;
use diskperf_system::EngineChoice;
use std::rc::Rc;

macro_rules! model_tests {
    ($($kind:ident $module:ident on $volume:ident { $($name:ident,)* })*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                super::check(&case!($kind $module::$name on $volume));
            })*
        })*
    };
}

for_each_case!(model_tests);

/// A modelled system, and what its kernel can do.
struct Modelled {
    system: &'static str,
    settings: &'static [&'static str],
    can: Abilities,
}

/// The systems that each case runs on: both file systems of 4.2BSD, SunOS,
/// Minix, with and without its improvements, and Xenix, with both kinds of gap.
const MODELLED: [Modelled; 7] = [
    Modelled {
        system: modelled::ANY_SYSTEM,
        settings: &["filesystem=8k"],
        can: POSIX,
    },
    Modelled {
        system: modelled::ANY_SYSTEM,
        settings: &["filesystem=4k"],
        can: POSIX,
    },
    Modelled {
        system: modelled::SUNOS,
        settings: &[],
        can: POSIX,
    },
    Modelled {
        system: modelled::MINIX,
        settings: &[],
        can: MINIX,
    },
    Modelled {
        system: modelled::MINIX,
        settings: &[
            "kernel.read_ahead_blocks=3",
            "kernel.blocks_per_request=8",
            "driver.read_ahead_bytes=4096",
        ],
        can: MINIX,
    },
    Modelled {
        system: modelled::XENIX,
        settings: &[],
        can: XENIX,
    },
    Modelled {
        system: modelled::XENIX,
        settings: &[
            "filesystem.gap_blocks=4",
            "filesystem.cylinder_gap_sectors=11",
            "kernel.read_ahead_blocks=0",
            "kernel.buffer_cache_share=0",
        ],
        can: XENIX,
    },
];

const SECTOR_BYTES: u64 = 512;

fn check(case: &Case) {
    let sectors = format!(
        "drive.partition_sectors={}",
        SMALL_VOLUME_BYTES / SECTOR_BYTES
    );
    for on in &MODELLED {
        let mut settings = on.settings.to_vec();
        match case.volume {
            Volume::Ordinary => {}
            Volume::Small => settings.push(&sectors),
        }
        run_workers(case, on, &settings);
    }
}

/// Runs the body in each worker's own process. A worker that panics ends the
/// test at once: they all run in one thread.
fn run_workers(case: &Case, on: &Modelled, settings: &[&str]) {
    let specification = modelled::specification(on.system, settings);
    let machine = modelled::machine(&specification);
    let results = Rc::default();
    let (body, can) = (case.body, on.can);
    for (worker, ports) in modelled::ports_in_a_ring(case.workers)
        .into_iter()
        .enumerate()
    {
        modelled::start(&machine, ports, &results, async move |system| {
            let mut world = World {
                system,
                can,
                engine: EngineChoice::BestAvailable,
            };
            body(&mut world, worker).await;
            (world.system, ())
        });
    }
    if let Err(standstill) = machine.run_to_end() {
        panic!(
            "{} on {} with {settings:?}: {standstill}",
            case.name, on.system
        );
    }
    modelled::expect_sound(&machine, 1);
}
