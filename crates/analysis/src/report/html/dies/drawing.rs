//! Picture of the dies as SVG, in the colours of the page.
//!
//! Content over time is drawn in plots: pictures within the picture, of width [`PLOT_WIDTH`]. The
//! script shows a part of a plot when a reader zooms in.

use super::axis::{LEFT_MARGIN, PLOT_AREA_WIDTH, RIGHT_MARGIN, draw_axis};
use super::panels::draw_panels;
use super::stretches::SLICES_PER_DIE;
use super::{
    DieActivities, DiePicture, DriveGeometry, PictureView, find_die_of_request, is_wait_stage,
    longest_wait_ns,
};
use crate::explanation::words;
use crate::report::html::chart::render_figure_with;
use crate::report::html::escape;
use crate::report::html::family::StageFamily;
use diskperf_timeline::trace::{RequestPurpose, TracedRequest};
use diskperf_timeline::units::{format_nanoseconds, format_size};
use diskperf_timeline::{DieBusy, Nanoseconds, Stage};
use std::fmt::Write;

pub(super) const PLOT_WIDTH: f64 = 10_000.0;

const TOP_MARGIN: f64 = 24.0;
/// Height of a request's caption in the list of slow requests.
const CAPTION_HEIGHT: f64 = 14.0;
const BAR_HEIGHT: f64 = 9.0;
const LETTER_WIDTH: f64 = 6.6;
const REQUEST_HEIGHT: f64 = CAPTION_HEIGHT + BAR_HEIGHT + 5.0;
/// Divisor of a request's total wait. The picture does not mention a cause below that share.
const CAUSE_WAIT_DIVISOR_MAX: u64 = 50;
/// Height of the rows of all dies together, in the picture's pixels.
const DIES_HEIGHT: f64 = 360.0;
const DIE_HEIGHT_MIN: f64 = 5.0;
const DIE_HEIGHT_MAX: f64 = 16.0;
const CHANNEL_GAP: f64 = 4.0;

impl PictureView {
    /// Converts a time to an x coordinate in a plot.
    pub(super) fn x_position(&self, at: Nanoseconds) -> f64 {
        let length = (self.end.since(self.start).0 as f64).max(1.0);
        PLOT_WIDTH * (at.since(self.start).0 as f64 / length).min(1.0)
    }
}

/// Layout of the rows of dies in the picture, with those of a channel below each other.
struct DieRows {
    height: f64,
    channels: u32,
    dies_per_channel: u32,
}

impl DieRows {
    fn from_geometry(drive: &DriveGeometry) -> Self {
        Self {
            height: (DIES_HEIGHT / f64::from(drive.die_count.max(1)))
                .clamp(DIE_HEIGHT_MIN, DIE_HEIGHT_MAX),
            channels: drive.channel_count,
            dies_per_channel: drive.die_count.div_ceil(drive.channel_count).max(1),
        }
    }

    fn channel_top(&self, channel: u32) -> f64 {
        f64::from(channel) * (f64::from(self.dies_per_channel) * self.height + CHANNEL_GAP)
    }

    fn die_top(&self, die: u32) -> f64 {
        let (channel, place) = (die % self.channels, die / self.channels);
        self.channel_top(channel) + f64::from(place) * self.height
    }

    fn mark_height(&self) -> f64 {
        self.height - 1.0
    }

    fn total_height(&self) -> f64 {
        self.channel_top(self.channels) - CHANNEL_GAP
    }
}

/// Draws a plot at a vertical position of the picture.
pub(super) fn draw_plot((top, height): (f64, f64), content: &str) -> String {
    format!(
        "<svg class=\"plot\" x=\"{LEFT_MARGIN}\" y=\"{top:.1}\" width=\"{PLOT_AREA_WIDTH}\" height=\"{height:.1}\" \
         viewBox=\"0 0 {PLOT_WIDTH} {height:.1}\" preserveAspectRatio=\"none\">{content}</svg>\n"
    )
}

fn colour_of_activity(by: DieBusy) -> &'static str {
    match by {
        DieBusy::Read => "media",
        DieBusy::Program => "processor",
        DieBusy::Erase => "rotation",
        DieBusy::Collection => "queue",
        DieBusy::Suspension => "other",
        DieBusy::Channel => "controller",
    }
}

fn describe_activity(by: DieBusy) -> &'static str {
    match by {
        DieBusy::Read => "read",
        DieBusy::Program => "program",
        DieBusy::Erase => "erase",
        DieBusy::Collection => "collection: reads and programs of garbage collection",
        DieBusy::Suspension => "suspension: a program or an erase stops for a read",
        DieBusy::Channel => "channel: the data read wait for the channel",
    }
}

fn format_die_name(drive: &DriveGeometry, die: u32) -> String {
    let (channel, place) = (die % drive.channel_count, die / drive.channel_count);
    format!("channel {channel}, die {place}")
}

/// Draws a rectangle from one time to another in a plot.
pub(super) fn draw_rectangle(
    out: &mut String,
    class: &str,
    (from, until): (f64, f64),
    (top, height): (f64, f64),
    title: &str,
) {
    // What is shorter than half a pixel is drawn, and seen, all the same.
    let width = (until - from).max(PLOT_WIDTH / PLOT_AREA_WIDTH / 2.0);
    let title = escape::escape_text(title);
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{from:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{height:.1}\"><title>{title}</title></rect>"
    );
}

fn draw_marks(view: &PictureView, drive: &DriveGeometry, rows: &DieRows) -> (String, usize) {
    let mut out = String::new();
    match &view.dies {
        DieActivities::Exact(kept) => {
            for one in kept {
                let (x, y) = (
                    (
                        view.x_position(one.busy_start),
                        view.x_position(one.busy_end),
                    ),
                    rows.die_top(one.die_index),
                );
                let took = format_nanoseconds(one.busy_end.since(one.busy_start));
                let stands = match one.is_suspended {
                    true => ", while a program or an erase is suspended",
                    false => "",
                };
                let name = format_die_name(drive, one.die_index);
                let title = format!(
                    "{name}: {}, {took}{stands}",
                    describe_activity(one.busy_with)
                );
                let class = match one.is_suspended {
                    true => format!("{} stands", colour_of_activity(one.busy_with)),
                    false => colour_of_activity(one.busy_with).to_owned(),
                };
                draw_rectangle(&mut out, &class, x, (y, rows.mark_height()), &title);
            }
            (out, kept.len())
        }
        DieActivities::BusySlices(stretches) => {
            let x = |place: usize| PLOT_WIDTH * place as f64 / SLICES_PER_DIE as f64;
            for one in stretches {
                let class = format!(
                    "{} step{}",
                    colour_of_activity(one.activity),
                    one.busy_level
                );
                let name = format_die_name(drive, one.die);
                let percent = 100 * one.busy_level / super::stretches::BUSY_LEVEL_COUNT;
                let title = format!(
                    "{name}: busy about {percent} %, most with {}",
                    describe_activity(one.activity)
                );
                let y = (rows.die_top(one.die), rows.mark_height());
                draw_rectangle(
                    &mut out,
                    &class,
                    (x(one.first_slice), x(one.last_slice)),
                    y,
                    &title,
                );
            }
            (out, stretches.len())
        }
    }
}

/// Draws the rows of dies, with the waits of requests in red and the time without data marked.
fn draw_dies(picture: (&PictureView, &DriveGeometry), rows: &DieRows, top: f64) -> (String, usize) {
    let (view, drive) = picture;
    let (marks, count) = draw_marks(view, drive, rows);
    let mut inner = String::new();
    for die in 0..drive.die_count {
        let y = rows.die_top(die);
        let _ = writeln!(
            inner,
            "<rect class=\"ground\" x=\"0\" y=\"{y:.1}\" width=\"{PLOT_WIDTH}\" height=\"{:.1}\"/>",
            rows.mark_height()
        );
    }
    if drive.complete_since > view.start && drive.omitted_count > 0 {
        let title = format!(
            "not kept: {} intervals before this moment were left out",
            drive.omitted_count
        );
        let x = (0.0, view.x_position(drive.complete_since));
        draw_rectangle(&mut inner, "gone", x, (0.0, rows.total_height()), &title);
    }
    let _ = write!(inner, "<g class=\"rows_marks\">\n{marks}</g>\n");
    for request in &view.slowest_requests {
        let Some(die) = find_die_of_request(request, drive) else {
            continue;
        };
        for part in request.stage_intervals() {
            if matches!(part.stage, Stage::DieWait(_)) {
                let x = (view.x_position(part.start), view.x_position(part.end));
                let y = (rows.die_top(die) + rows.mark_height() - 1.6, 2.4);
                let title = format!(
                    "{}: {}",
                    describe_request(request, drive),
                    words::stage_label(part.stage)
                );
                draw_rectangle(&mut inner, "missed", x, y, &title);
            }
        }
    }
    let mut out = String::new();
    for channel in 0..drive.channel_count {
        let middle =
            top + rows.channel_top(channel) + f64::from(rows.dies_per_channel) * rows.height / 2.0;
        let _ = writeln!(
            out,
            "<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">channel {channel}</text>",
            LEFT_MARGIN - 8.0,
            middle + 3.5
        );
    }
    (out + &draw_plot((top, rows.total_height()), &inner), count)
}

fn describe_request(request: &TracedRequest, drive: &DriveGeometry) -> String {
    let purpose = match request.purpose {
        RequestPurpose::Read => "read",
        RequestPurpose::ReadAhead => "read-ahead",
        RequestPurpose::Write => "write",
        RequestPurpose::WriteBehind => "write-behind",
    };
    let bytes = u64::from(request.sector_count).saturating_mul(u64::from(drive.sector_bytes));
    let place = match find_die_of_request(request, drive) {
        Some(die) => format!(" ({})", format_die_name(drive, die)),
        None => String::new(),
    };
    match request.sector_count {
        0 => "flush".to_owned(),
        _ => format!("{purpose} of {}{place}", format_size(bytes)),
    }
}

/// Returns the causes of a request's wait with their durations, the longest first, without
/// negligible ones.
fn list_wait_causes(request: &TracedRequest) -> Vec<(Stage, u64)> {
    let mut causes: Vec<(Stage, u64)> = Vec::new();
    for part in request
        .stage_intervals()
        .filter(|interval| is_wait_stage(interval.stage))
    {
        let took = part.duration().0;
        match causes.iter_mut().find(|(other, _)| *other == part.stage) {
            Some((_, all)) => *all = all.saturating_add(took),
            None => causes.push((part.stage, took)),
        }
    }
    causes.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let least = longest_wait_ns(request) / CAUSE_WAIT_DIVISOR_MAX;
    causes.retain(|(_, took)| *took >= least);
    causes
}

/// Describes a request in a sentence: its kind, its response time and its main waits.
fn describe_causes(request: &TracedRequest, drive: &DriveGeometry, most: usize) -> String {
    let took = format_nanoseconds(request.completed_at().since(request.issued_at));
    let cause = |(stage, ns): &(Stage, u64)| {
        let took = format_nanoseconds(Nanoseconds(*ns));
        format!("{took} {}", words::stage_label(*stage))
    };
    let causes = list_wait_causes(request);
    let named: Vec<String> = causes.iter().take(most).map(cause).collect();
    format!(
        "{}, {took}: {}",
        describe_request(request, drive),
        named.join(", ")
    )
}

fn draw_requests(view: &PictureView, drive: &DriveGeometry) -> String {
    let mut out = String::new();
    for (number, request) in view.slowest_requests.iter().enumerate() {
        let top = TOP_MARGIN + number as f64 * REQUEST_HEIGHT;
        let words = escape::escape_text(&describe_causes(request, drive, 2));
        // Where the request begins, or further left, where they would not end in the picture.
        let at = view.x_position(request.issued_at);
        let room = PLOT_AREA_WIDTH - words.chars().count() as f64 * LETTER_WIDTH;
        let x = LEFT_MARGIN + (at / PLOT_WIDTH * PLOT_AREA_WIDTH).min(room).max(0.0);
        let _ = writeln!(
            out,
            "<text class=\"waits\" x=\"{x:.1}\" y=\"{:.1}\" data-at=\"{at:.2}\">{words}</text>",
            top + CAPTION_HEIGHT - 4.0,
        );
        let mut bar = String::new();
        let _ = write!(
            bar,
            "<rect class=\"ground\" x=\"0\" y=\"0\" width=\"{PLOT_WIDTH}\" height=\"{BAR_HEIGHT}\"/>"
        );
        // Where all of it is one pixel, that is red.
        let mut parts: Vec<_> = request.stage_intervals().collect();
        parts.sort_by_key(|interval| is_wait_stage(interval.stage));
        for part in parts {
            let class = match is_wait_stage(part.stage) {
                true => "missed",
                false => StageFamily::from_stage(part.stage)
                    .css_variable()
                    .trim_start_matches('-'),
            };
            let took = format_nanoseconds(part.duration());
            let title = format!(
                "{}: {}, {took}",
                describe_request(request, drive),
                words::stage_label(part.stage)
            );
            draw_rectangle(
                &mut bar,
                class,
                (view.x_position(part.start), view.x_position(part.end)),
                (0.0, BAR_HEIGHT),
                &title,
            );
        }
        out += &draw_plot((top + CAPTION_HEIGHT, BAR_HEIGHT), &bar);
    }
    if !view.slowest_requests.is_empty() {
        let _ = writeln!(
            out,
            "<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">slowest requests</text>",
            LEFT_MARGIN - 8.0,
            TOP_MARGIN + CAPTION_HEIGHT + BAR_HEIGHT - 1.0
        );
    }
    out
}

fn draw_colour_key(view: &PictureView) -> String {
    let mut all: Vec<DieBusy> = match &view.dies {
        DieActivities::Exact(kept) => kept.iter().map(|one| one.busy_with).collect(),
        DieActivities::BusySlices(stretches) => stretches.iter().map(|one| one.activity).collect(),
    };
    all.sort_unstable_by_key(|by| *by as usize);
    all.dedup();
    let entry = |class: &str, words: &str| {
        format!("<li><i style=\"background:var(--{class})\"></i>{words}</li>")
    };
    let mut keys: String = all
        .iter()
        .map(|by| entry(colour_of_activity(*by), describe_activity(*by)))
        .collect();
    if matches!(&view.dies, DieActivities::Exact(kept) if kept.iter().any(|one| one.is_suspended)) {
        keys += "<li><i class=\"stands\"></i>a suspended program or erase</li>";
    }
    if !view.slowest_requests.is_empty() {
        keys += &entry("missed", "a slow request waits");
    }
    format!("<ul class=\"key\">{keys}</ul>")
}

fn write_caption(view: &PictureView, drive: &DriveGeometry, is_close: bool) -> String {
    let from = format_nanoseconds(view.start.since(drive.recording_start));
    let length = format_nanoseconds(view.end.since(view.start));
    let mut text = match is_close {
        true => format!("{length} from {from} on, around the request with the longest wait. "),
        false => format!("The whole repetition, {length}. "),
    };
    text += match view.dies {
        DieActivities::Exact(_) => "Each line is a die; each mark is one activity. ",
        DieActivities::BusySlices(_) => {
            "Each line is a die; a mark has the colour of the main activity in a slice of time, and is darker the busier the die was. "
        }
    };
    let slowest = view
        .slowest_requests
        .iter()
        .max_by_key(|one| longest_wait_ns(one));
    if let Some(slowest) = slowest {
        let _ = write!(
            text,
            "The slowest: {}. ",
            describe_causes(slowest, drive, 4)
        );
    }
    if drive.omitted_count > 0 && drive.complete_since > view.start {
        let shown = format_nanoseconds(drive.complete_since.since(drive.recording_start));
        let _ = write!(
            text,
            "Die activities before {shown} are omitted, and so are the requests of that time. "
        );
    }
    text
}

fn draw_figure(
    picture: (&PictureView, &DriveGeometry),
    (name, title): (&str, &str),
    is_close: bool,
) -> String {
    let (view, drive) = picture;
    let rows = DieRows::from_geometry(drive);
    let of_requests = view.slowest_requests.len() as f64 * REQUEST_HEIGHT;
    let top = TOP_MARGIN + of_requests + if of_requests > 0.0 { 6.0 } else { 0.0 };
    let (dies, count) = draw_dies(picture, &rows, top);
    let (panels, bottom) = draw_panels(view, drive, top + rows.total_height() + 12.0);
    let from_ns = view.start.since(drive.recording_start).0 as f64;
    let until_ns = view.end.since(drive.recording_start).0 as f64;
    let (width, height) = (LEFT_MARGIN + PLOT_AREA_WIDTH + RIGHT_MARGIN, bottom + 20.0);
    let content = format!(
        "<div class=\"scroll\"><svg class=\"platter dies\" viewBox=\"0 0 {width} {height:.1}\" role=\"img\" \
         aria-label=\"{}\" data-left=\"{LEFT_MARGIN}\" data-width=\"{PLOT_AREA_WIDTH}\" data-across=\"{PLOT_WIDTH}\" \
         data-from=\"{from_ns}\" data-until=\"{until_ns}\">\n{}{}{dies}{panels}</svg></div>{}\
         <p class=\"quiet screen closer\" hidden>Drag across the picture to look closer; a double click \
         shows all of it again.</p>",
        escape::escape_text(title),
        draw_axis((from_ns, until_ns), (TOP_MARGIN - 4.0, bottom)),
        draw_requests(view, drive),
        draw_colour_key(view)
    );
    render_figure_with(
        title,
        &write_caption(view, drive, is_close),
        &content,
        &format!(
            "data-picture=\"{}\" data-rows=\"{count}\"",
            escape::escape_text(name)
        ),
    )
}

/// Draws the close-up and the whole picture of dies with their captions.
pub(in crate::report::html) fn render_figures(
    picture: &DiePicture,
    name: &str,
    title: &str,
) -> String {
    let drive = &picture.drive;
    let number = drive.drive_index + 1;
    let whole = draw_figure(
        (&picture.whole_run, drive),
        (name, &format!("{title}: dies of drive {number}")),
        false,
    );
    let close = picture.close_up.as_ref().map_or_else(String::new, |close| {
        let title = format!("{title}: dies of drive {number}, closely");
        draw_figure((close, drive), (&format!("{name}-closely"), &title), true)
    });
    close + &whole
}
