//! One binary of libFuzzer for each target: what they do is in `diskperf-fuzzing`.

pub use diskperf_fuzzing::{FuzzBody, FuzzTarget};
pub use libfuzzer_sys::fuzz_target;

/// The `main` of a target's binary. Its body is made once, and libFuzzer has no other
/// place to keep it.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        static BODY: std::sync::OnceLock<$crate::FuzzBody> = std::sync::OnceLock::new();

        $crate::fuzz_target!(|data: &[u8]| {
            let make_body = || {
                let target = $crate::FuzzTarget::find_by_name($name).expect("a target");
                (target.make_body)()
            };
            BODY.get_or_init(make_body)(data)
        });
    };
}
