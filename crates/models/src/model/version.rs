//! Version of the model that made a run.

/// Release, and a hash of all sources that a modelled figure depends on: the engine, the machine,
/// the programs and the code that runs them. The text of the catalogue is not included, since a run
/// stores its own.
pub const MODEL_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "+",
    env!("DISKPERF_MODEL_SOURCES")
);

/// Hashes texts in a way that stays the same from release to release: FNV-1a of 64 bits, with each
/// text closed by a byte that UTF-8 does not have.
pub fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let bytes = texts
        .into_iter()
        .flat_map(|text| text.bytes().chain(std::iter::once(0xff)));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_texts_apart_and_where_they_end() {
        assert_eq!(fingerprint([""]), fingerprint([""]));
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_ne!(fingerprint(["a"]), fingerprint(["a", ""]));
        assert_eq!(fingerprint(["a"]).len(), 16);
    }

    #[test]
    fn the_version_names_release_and_sources() {
        let (release, sources) = MODEL_VERSION.split_once('+').unwrap();
        assert_eq!(release, env!("CARGO_PKG_VERSION"));
        assert_eq!(sources.len(), 16);
    }
}
