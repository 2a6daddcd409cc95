//! Panels below the dies: throughput, fill levels and write amplification over time.

use super::axis::LEFT_MARGIN;
use super::course::FlashInterval;
use super::drawing::{draw_plot, draw_rectangle};
use super::{DriveGeometry, PictureView};
use diskperf_timeline::units::{format_nanoseconds, format_size};
use std::fmt::Write;

const PANEL_HEIGHT: f64 = 46.0;
const PANEL_GAP: f64 = 12.0;

/// Line in a panel of the die picture: its CSS class, and its value in an interval.
type PanelLine<'a> = (&'a str, Box<dyn Fn(&FlashInterval) -> Option<f64> + 'a>);

/// Panel of the die picture, with some figures on one scale.
struct Panel<'a> {
    name: &'a str,
    /// Value at the upper edge of the panel.
    value_max: f64,
    format_value: Box<dyn Fn(f64) -> String + 'a>,
    lines: Vec<PanelLine<'a>>,
}

/// Draws all panels with data, and returns the y coordinate of their end.
pub(super) fn draw_panels(view: &PictureView, drive: &DriveGeometry, top: f64) -> (String, f64) {
    let mut out = String::new();
    let mut at = top;
    for panel in list_panels(view, drive) {
        if panel.value_max > 0.0 {
            out += &draw_panel(view, drive, &panel, at);
            at += PANEL_HEIGHT + PANEL_GAP;
        }
    }
    (out, at - PANEL_GAP)
}

fn list_panels<'a>(view: &PictureView, drive: &'a DriveGeometry) -> Vec<Panel<'a>> {
    let course = &view.flash_series;
    let read: PanelLine<'a> = ("media", Box::new(|one| Some(one.read_bytes_per_s)));
    let written: PanelLine<'a> = ("processor", Box::new(|one| Some(one.written_bytes_per_s)));
    let rate = course.series_max(|one| Some(one.read_bytes_per_s.max(one.written_bytes_per_s)));
    let unit_bytes = u64::from(drive.unit_bytes);
    let bytes = move |units: f64| format_size((units as u64).saturating_mul(unit_bytes));
    let buffer = |one: &FlashInterval| Some(f64::from(one.levels?.buffer_units));
    let cache = |one: &FlashInterval| Some(one.levels?.cache_free_units? as f64);
    let spare = |one: &FlashInterval| Some(f64::from(one.levels?.free_superblocks));
    let amplification = |one: &FlashInterval| one.write_amplification;
    let level = |name, most, words: Box<dyn Fn(f64) -> String>, line: PanelLine<'a>| Panel {
        name,
        value_max: most,
        format_value: words,
        lines: vec![line],
    };
    let is_written = course.series_max(amplification) > 0.0;
    let shown = |most: f64| if is_written { most } else { 0.0 };
    vec![
        Panel {
            name: "throughput",
            value_max: round_up_to_tick(rate),
            format_value: Box::new(format_bytes_per_s),
            lines: vec![read, written],
        },
        // Of a drive that is only read, levels stand where they are.
        level(
            "in the buffer",
            shown(f64::from(drive.buffer_units)),
            Box::new(bytes),
            ("accent", Box::new(buffer)),
        ),
        level(
            "pSLC free",
            shown(course.series_max(cache)),
            Box::new(bytes),
            ("controller", Box::new(cache)),
        ),
        level(
            "free superblocks",
            shown(course.series_max(spare)),
            Box::new(|count| format!("{count:.0}")),
            ("arm", Box::new(spare)),
        ),
        level(
            "amplification",
            // The least there is, 1, is not to lie on the edge.
            round_up_to_tick(1.1 * course.series_max(amplification)),
            Box::new(|factor| format!("{factor:.2}")),
            ("queue", Box::new(amplification)),
        ),
    ]
}

fn round_up_to_tick(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 0.0;
    }
    let power = 10f64.powf(most.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps
        .into_iter()
        .find(|step| step * power >= most * 0.999_999);
    step.unwrap_or(10.0) * power
}

fn format_bytes_per_s(bytes_per_s: f64) -> String {
    match bytes_per_s / 1e6 {
        mb if mb >= 10.0 => format!("{mb:.0} MB/s"),
        mb => format!("{mb:.1} MB/s"),
    }
}

fn draw_panel(view: &PictureView, drive: &DriveGeometry, panel: &Panel<'_>, top: f64) -> String {
    let mut inner = format!(
        "<rect class=\"ground\" x=\"0\" y=\"0\" width=\"{}\" height=\"{PANEL_HEIGHT}\"/>\n",
        super::drawing::PLOT_WIDTH
    );
    let y =
        |value: f64| 1.0 + (PANEL_HEIGHT - 2.0) * (1.0 - (value / panel.value_max).clamp(0.0, 1.0));
    for (class, of) in &panel.lines {
        let (mut line, mut pen) = (String::new(), "M");
        for one in &view.flash_series.intervals {
            let Some(value) = of(one) else {
                pen = "M";
                continue;
            };
            let (from, until) = (view.x_position(one.start), view.x_position(one.end));
            let _ = write!(line, "{pen}{from:.1} {0:.1}L{until:.1} {0:.1}", y(value));
            pen = "L";
        }
        let _ = writeln!(inner, "<path class=\"course {class}-line\" d=\"{line}\"/>");
    }
    for one in &view.flash_series.intervals {
        let values = panel
            .lines
            .iter()
            .filter_map(|(class, of)| Some((class, of(one)?)));
        let values: Vec<String> = values
            .map(|(class, value)| match panel.lines.len() {
                1 => (panel.format_value)(value),
                _ => format!(
                    "{} {}",
                    if *class == "media" { "read" } else { "written" },
                    (panel.format_value)(value)
                ),
            })
            .collect();
        let at = format_nanoseconds(one.start.since(drive.recording_start));
        let title = format!("{} at {at}: {}", panel.name, values.join(", "));
        if !values.is_empty() {
            let x = (view.x_position(one.start), view.x_position(one.end));
            draw_rectangle(&mut inner, "hover", x, (0.0, PANEL_HEIGHT), &title);
        }
    }
    let right = LEFT_MARGIN - 8.0;
    format!(
        "<text class=\"time\" x=\"{right:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"time\" x=\"{right:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"time\" x=\"{right:.1}\" y=\"{:.1}\">0</text>\n{}",
        top + PANEL_HEIGHT / 2.0 + 4.0,
        panel.name,
        top + 9.0,
        (panel.format_value)(panel.value_max),
        top + PANEL_HEIGHT,
        draw_plot((top, PANEL_HEIGHT), &inner)
    )
}
