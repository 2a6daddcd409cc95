//! What a misspelt name may have meant.

/// The nearest of the known names, nearest first, at most three.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Long garbage is near nothing, and the distance costs length times length.
    let name: String = name.chars().take(80).collect::<String>().to_lowercase();
    let limit = (name.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|candidate| {
            let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
            let inside = name.len() >= 3 && candidate.contains(&name);
            (distance <= limit || inside).then_some((distance, candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.truncate(3);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The sentence that offers the nearest names, or lists all when none is near.
pub(crate) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = nearest(name, known.clone());
    if near.is_empty() {
        format!("there is {}", listed(known))
    } else {
        offered(near.into_iter())
    }
}

/// did you mean `a` or `b`?
pub(crate) fn offered<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", names.join(" or "))
}

/// `a`, `b`, `c`
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_string()
    } else {
        names.join(", ")
    }
}
