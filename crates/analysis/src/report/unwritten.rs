//! The mark of figures of a modelled flash drive that answered reads without its dies; see
//! [`crate::summary::unwritten`].

use super::figures;

const MARK: &str = "¶";

/// The mark of a figure with such a share; empty where there is none.
pub(super) fn mark(share: Option<f64>) -> &'static str {
    match share {
        Some(_) => MARK,
        None => "",
    }
}

/// What the mark means, where any of these figures has it.
pub(super) fn legend(shares: impl IntoIterator<Item = Option<f64>>) -> Option<String> {
    let most = shares.into_iter().flatten().reduce(f64::max)?;
    Some(format!(
        "{MARK} never written: up to {} of what it read, which the drive answers with zeroes, without its dies; --set drive.past=random is a drive in use",
        figures::share(most)
    ))
}
