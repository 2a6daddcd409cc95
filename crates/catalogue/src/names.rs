//! Suggestions for misspelt names.

/// Returns at most three known names that are similar to a given one. Names that start with the
/// given text come first, the others by edit distance.
pub fn find_similar_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Long garbage is near nothing, and the distance costs length times length.
    let name: String = name.chars().take(80).collect::<String>().to_lowercase();
    let limit = (name.chars().count() / 3).max(2);
    let mut near: Vec<(bool, usize, &str)> = known
        .filter_map(|candidate| {
            let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
            let inside = name.len() >= 3 && candidate.contains(&name);
            let is_other = name.len() < 3 || !candidate.to_lowercase().starts_with(&name);
            (distance <= limit || inside).then_some((is_other, distance, candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.truncate(3);
    near.into_iter().map(|(.., candidate)| candidate).collect()
}

/// Maximum number of known names that a message lists completely.
const SHORT_LIST_MAX: usize = 12;

/// Returns a sentence that suggests similar names. If none is similar, it lists related names with
/// a common word, or all names if they are few.
pub(crate) fn suggest_names<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let near = find_similar_names(name, known.clone());
    if !near.is_empty() {
        return format_choices(near.into_iter());
    }
    let all = known.clone().count();
    let related: Vec<&str> = known
        .clone()
        .filter(|other| have_common_word(name, other))
        .collect();
    match related.len() {
        some if some > 0 && some < all && all > SHORT_LIST_MAX => {
            let others = match all - some {
                1 => "1 other".to_owned(),
                others => format!("{others} others"),
            };
            format!(
                "there is {}, and {others}",
                format_list(related.into_iter())
            )
        }
        _ if all > LISTED_NAMES_MAX => {
            let similar = select_most_similar(name, known);
            let others = all - similar.len();
            format!(
                "there is {}, and {others} others",
                format_list(similar.into_iter())
            )
        }
        _ => format!("there is {}", format_list(known)),
    }
}

/// Maximum length of a list that is printed completely when no name is similar. It covers all
/// systems, but not all keys of a drive.
const LISTED_NAMES_MAX: usize = 50;

/// Returns the names that are most similar to a given one, best first.
fn select_most_similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name: String = name.chars().take(80).collect::<String>().to_lowercase();
    let mut ranked: Vec<&str> = known.collect();
    ranked.sort_by(|one, other| {
        let similarity = |candidate: &str| strsim::jaro_winkler(&name, &candidate.to_lowercase());
        similarity(other).total_cmp(&similarity(one))
    });
    ranked.truncate(SIMILAR_NAMES_MAX);
    ranked
}

/// Maximum number of suggested names when none is close and many are known.
const SIMILAR_NAMES_MAX: usize = 5;

/// Words at the end of many names, such as units, that do not tell what a name refers to.
const UNIT_WORDS: [&str; 6] = ["bytes", "sectors", "share", "per", "least", "most"];

/// Tests whether two names have a common word, such as `cache_size` and `cache_segments`, or start
/// alike, such as `vax` and `vax780-fixed`.
fn have_common_word(one: &str, other: &str) -> bool {
    let words = |name| {
        let all = str::split(name, ['_', '-', ':']);
        all.filter(|word: &&str| word.len() > 2 && !UNIT_WORDS.contains(word))
    };
    words(one).any(|word| words(other).any(|known| known.starts_with(word)))
}

/// Formats suggestions as: did you mean `a` or `b`?
pub fn format_choices<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", names.join(" or "))
}

/// Formats names as a list: `a`, `b`, `c`
pub fn format_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_string()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_with_what_was_typed_come_first() {
        let known = ["vme", "nvme-tlc", "nvme-qlc", "bare-nvme-tlc", "read_ns"];
        let cases: [(&str, &[&str]); 4] = [
            ("nvme", &["nvme-qlc", "nvme-tlc", "vme"]),
            ("vme", &["vme", "nvme-qlc", "nvme-tlc"]),
            ("read", &["read_ns"]),
            ("nvme-tcl", &["nvme-tlc", "nvme-qlc"]),
        ];
        for (typed, expected) in cases {
            assert_eq!(
                find_similar_names(typed, known.into_iter()),
                expected,
                "{typed}"
            );
        }
    }

    #[test]
    fn of_many_names_those_with_a_word_in_common_are_listed() {
        let many: Vec<String> = (0..20).map(|number| format!("seek_{number}_ms")).collect();
        let known = ["cache_segments", "write_cache_bytes"].into_iter();
        let known = known.chain(many.iter().map(String::as_str));
        assert_eq!(
            suggest_names("cache_size", known.clone()),
            "there is `cache_segments`, `write_cache_bytes`, and 20 others"
        );
        assert_eq!(
            suggest_names("cache_segment", known.clone()),
            "did you mean `cache_segments`?"
        );
        assert!(suggest_names("elevator", known).contains("`seek_19_ms`"));
        let more: Vec<String> = (0..75)
            .map(|number| format!("window_{number}_ms"))
            .collect();
        let shown = suggest_names("past", more.iter().map(String::as_str));
        assert!(shown.ends_with(", and 70 others"), "{shown}");
        assert_eq!(shown.matches('`').count(), 10, "{shown}");
    }
}
