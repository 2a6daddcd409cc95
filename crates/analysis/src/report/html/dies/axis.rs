//! Time axis of the die picture, which the script of the page draws as well when a reader zooms in
//! (`page.js`).

use std::fmt::Write;

/// Width of the picture's left margin in pixels of the picture.
pub(super) const LEFT_MARGIN: f64 = 112.0;
pub(super) const PLOT_AREA_WIDTH: f64 = 830.0;
pub(super) const RIGHT_MARGIN: f64 = 28.0;

/// Maximum number of steps between two labels of the whole axis.
const TICK_COUNT_MAX: f64 = 9.0;

/// Returns the labelled times from `from_ns` to `until_ns` with their labels.
pub(super) fn choose_ticks(from_ns: f64, until_ns: f64) -> Vec<(f64, String)> {
    let length = until_ns - from_ns;
    let least = (length / TICK_COUNT_MAX).max(1.0);
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|one| one * power);
    let step = steps.into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(10.0 * power);
    let (unit_ns, unit) = match until_ns {
        until if until < 1e6 => (1e3, "µs"),
        until if until < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let digits = (-(step / unit_ns).log10().floor()).max(0.0) as usize;
    let first = (from_ns / step).ceil();
    let count = ((until_ns / step).floor() - first).clamp(0.0, 2.0 * TICK_COUNT_MAX) as usize;
    let tick = |number: usize| {
        let at = (first + number as f64) * step;
        (at, format!("{:.digits$} {unit}", at / unit_ns))
    };
    (0..=count).map(tick).collect()
}

/// Draws the axis above and below the area from `top` to `bottom`.
pub(super) fn draw_axis((from_ns, until_ns): (f64, f64), (top, bottom): (f64, f64)) -> String {
    let mut out = format!("<g class=\"axis\" data-top=\"{top:.1}\" data-bottom=\"{bottom:.1}\">\n");
    for (at, words) in choose_ticks(from_ns, until_ns) {
        let x = LEFT_MARGIN + PLOT_AREA_WIDTH * (at - from_ns) / (until_ns - from_ns).max(1.0);
        let (above, below) = (top - 6.0, bottom + 14.0);
        let _ = writeln!(
            out,
            "<path class=\"tick\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>\
             <text class=\"quiet\" x=\"{x:.1}\" y=\"{above:.1}\">{words}</text>\
             <text class=\"quiet\" x=\"{x:.1}\" y=\"{below:.1}\">{words}</text>"
        );
    }
    out + "</g>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_round() {
        let words = |from, until| -> Vec<String> {
            let all = choose_ticks(from, until).into_iter();
            all.map(|(_, words)| words).collect()
        };
        assert_eq!(
            words(0.0, 4e5),
            [
                "0 µs", "50 µs", "100 µs", "150 µs", "200 µs", "250 µs", "300 µs", "350 µs",
                "400 µs"
            ]
        );
        assert_eq!(words(1.23e6, 1.6e6).first().unwrap(), "1.25 ms");
        assert_eq!(words(0.0, 1.9e9).last().unwrap(), "1.5 s");
        assert!(choose_ticks(0.0, 0.0).len() == 1 && choose_ticks(0.0, f64::MAX).len() < 25);
    }
}
