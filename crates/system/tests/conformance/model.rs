//! Runs the cases on a modelled computer.

use crate::cases::{Case, SMALL_VOLUME_BYTES, Volume};
use crate::modelled;
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

/// The file systems that each case runs on.
const FILE_SYSTEMS: [&str; 2] = ["filesystem=8k", "filesystem=4k"];

const SECTOR_BYTES: u64 = 512;

fn check(case: &Case) {
    for file_system in FILE_SYSTEMS {
        let sectors = format!(
            "drive.partition_sectors={}",
            SMALL_VOLUME_BYTES / SECTOR_BYTES
        );
        match case.volume {
            Volume::Ordinary => run_workers(case, &[file_system]),
            Volume::Small => run_workers(case, &[file_system, &sectors]),
        }
    }
}

/// Runs the body in each worker's own process. A worker that panics ends the
/// test at once: they all run in one thread.
fn run_workers(case: &Case, settings: &[&str]) {
    let specification = modelled::specification(modelled::ANY_SYSTEM, settings);
    let machine = modelled::machine(&specification);
    let results = Rc::default();
    let body = case.body;
    for (worker, ports) in modelled::ports_in_a_ring(case.workers)
        .into_iter()
        .enumerate()
    {
        modelled::start(&machine, ports, &results, async move |mut system| {
            body(&mut system, worker).await;
            (system, ())
        });
    }
    if let Err(deadlock) = machine.run() {
        panic!("{} with {settings:?}: {deadlock}", case.name);
    }
    modelled::expect_sound(&machine, 1);
}
