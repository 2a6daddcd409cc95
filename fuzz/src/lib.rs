//! One binary of libFuzzer for each target: what they do is in `diskperf-fuzzing`.

pub use diskperf_fuzzing::{Body, Target};
pub use libfuzzer_sys::fuzz_target;

/// The `main` of a target's binary. Its body is made once, and libFuzzer has no other
/// place to keep it.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        static BODY: std::sync::OnceLock<$crate::Body> = std::sync::OnceLock::new();

        $crate::fuzz_target!(|data: &[u8]| {
            let prepare = || {
                let target = $crate::Target::named($name).expect("a target");
                (target.prepare)()
            };
            BODY.get_or_init(prepare)(data)
        });
    };
}
