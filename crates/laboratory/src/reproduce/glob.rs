//! Matching of cell ids against patterns with wildcards.

/// Reports whether a text matches a pattern, in which `*` stands for any characters and `?` for
/// one.
pub(crate) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut of) = (0, 0);
    // Where to go on when what follows the last star does not fit there.
    let mut retry: Option<(usize, usize)> = None;
    while of < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                retry = Some((at, of));
            }
            Some(byte) if *byte == b'?' || *byte == text[of] => {
                at += 1;
                of += 1;
            }
            _ => {
                let Some((after_star, from)) = retry else {
                    return false;
                };
                at = after_star;
                of = from + 1;
                retry = Some((after_star, of));
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn a_star_stands_for_anything() {
        let id = "kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/read_8192/1";
        for pattern in [
            id,
            "*",
            "*/read_8192/1",
            "kridle*/T2/*/8K/*",
            "*T2*8K*1",
            "*/T?/*/?K/*",
        ] {
            assert!(matches_pattern(pattern, id), "{pattern}");
        }
        for pattern in ["", "T2", "*/2", "kridle*/T3/*", "*8K*T2*"] {
            assert!(!matches_pattern(pattern, id), "{pattern}");
        }
        assert!(!matches_pattern("ab*b", "ab"));
    }
}
