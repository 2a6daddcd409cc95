//! Runs the bodies on modelled computers.

use crate::bodies;
use crate::modelled::{self, ANY_SYSTEM, MINIX, SUNOS, XENIX};
use diskperf_system::System;
use std::pin::Pin;

type Body = for<'a> fn(&'a mut System) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

fn check(name: &str, body: Body) {
    for (system, settings) in [
        (ANY_SYSTEM, &["filesystem=8k"][..]),
        (ANY_SYSTEM, &["filesystem=4k"]),
        ("vax750-uda50-ra81", &[]),
        (SUNOS, &[]),
        (MINIX, &[]),
        (XENIX, &[]),
    ] {
        let machine = modelled::machine(&modelled::specification(system, settings));
        let ran = modelled::run_alone(&machine, modelled::ports_alone(), async move |mut world| {
            body(&mut world).await;
            (world, ())
        });
        if let Err(standstill) = ran {
            panic!("{name} on {system} with {settings:?}: {standstill}");
        }
        modelled::expect_sound(&machine, 1);
    }
}

macro_rules! bodies {
    ($($name:ident,)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), |system| Box::pin(bodies::$name(system)));
        })*
    };
}

bodies! {
    reads_end_with_the_file,
    slots_complete_once_each_in_any_order,
    writes_are_in_the_file,
    a_failed_request_fails_alone,
    a_wait_ends_at_its_moment,
    closing_waits_for_what_is_under_way,
    requests_are_measured,
    arrivals_do_not_wait,
}
