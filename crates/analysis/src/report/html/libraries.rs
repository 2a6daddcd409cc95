//! Libraries that draw charts, as `tools/vendor-vega` fetched them.

/// Versions and checksums of the libraries, with the licences of everything bundled in them.
pub(super) const VERSIONS: &str = include_str!("../../../assets/VERSIONS");
pub(super) const LICENCES: &str = include_str!("../../../assets/LICENCES");

/// Names and texts of the libraries, the texts compressed by gzip.
pub(super) const LIBRARIES: [(&str, &[u8]); 3] = [
    ("vega", include_bytes!("../../../assets/vega.min.js.gz")),
    (
        "vega-lite",
        include_bytes!("../../../assets/vega-lite.min.js.gz"),
    ),
    (
        "vega-embed",
        include_bytes!("../../../assets/vega-embed.min.js.gz"),
    ),
];

const BASE64_DIGITS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in Base 64 by RFC 4648.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            out.push(if digit <= three.len() {
                char::from(BASE64_DIGITS[value as usize])
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_that_of_the_standard() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(super::encode_base64(plain.as_bytes()), coded);
        }
        assert_eq!(super::encode_base64(&[0xfb, 0xff]), "+/8=");
    }
}
