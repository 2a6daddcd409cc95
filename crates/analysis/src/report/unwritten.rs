//! Mark of figures from a modelled flash drive that answered reads of unwritten data without its
//! dies; see [`crate::summary::unwritten`].

use super::figures;

const UNWRITTEN_MARK: &str = "¶";

/// Returns the mark of a figure with this share of unwritten data; empty where there is none.
pub(super) fn mark_of_share(share: Option<f64>) -> &'static str {
    match share {
        Some(_) => UNWRITTEN_MARK,
        None => "",
    }
}

/// Describes the mark, where any of these figures has it.
pub(super) fn format_legend(shares: impl IntoIterator<Item = Option<f64>>) -> Option<String> {
    let most = shares.into_iter().flatten().reduce(f64::max)?;
    Some(format!(
        "{UNWRITTEN_MARK} never written: up to {} of what it read, for which the drive returns zeroes without a die access; use --set drive.past=random for a drive in use",
        figures::format_share(most)
    ))
}
