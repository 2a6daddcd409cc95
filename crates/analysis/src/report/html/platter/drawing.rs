//! Platter picture as SVG, in the colours of the page.

use super::PlatterPicture;
use super::mark::TimelineMark;
use crate::explanation::words;
use crate::report::html::chart::render_figure_with;
use crate::report::html::escape;
use crate::report::html::family::StageFamily;
use diskperf_timeline::trace::{ArmWork, DiskPosition, RequestPurpose, TracedArm, TracedRequest};
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Nanoseconds, Stage};
use std::fmt::Write;

const LEFT_MARGIN: f64 = 76.0;
const REVOLUTION_WIDTH: f64 = 880.0;
const RIGHT_MARGIN: f64 = 14.0;
const TOP_MARGIN: f64 = 44.0;
const LINE_HEIGHT: f64 = 46.0;
const PROCESSOR_BAND_HEIGHT: f64 = 8.0;
const DRIVE_BAND_HEIGHT: f64 = 20.0;
/// Height of the part for firmware and link, at the foot of a drive's band in the picture.
const LINK_BAND_HEIGHT: f64 = 6.0;

/// Part of a span within one revolution: its line, and its start and end as shares of the line.
#[derive(Clone, Copy)]
struct RevolutionSegment {
    revolution_line: u32,
    start_angle: f64,
    end_angle: f64,
}

impl RevolutionSegment {
    fn width(self) -> f64 {
        (self.end_angle - self.start_angle) * REVOLUTION_WIDTH
    }

    fn x_position(self) -> f64 {
        LEFT_MARGIN + self.start_angle * REVOLUTION_WIDTH
    }
}

fn line_top(line: u32) -> f64 {
    TOP_MARGIN + f64::from(line) * LINE_HEIGHT
}

fn line_middle(line: u32) -> f64 {
    line_top(line) + PROCESSOR_BAND_HEIGHT + 3.0 + DRIVE_BAND_HEIGHT / 2.0
}

impl PlatterPicture {
    /// Divides a span of time at the ends of revolutions.
    fn split_into_segments(&self, from: Nanoseconds, until: Nanoseconds) -> Vec<RevolutionSegment> {
        let shown = |at| {
            (self.drive.revolutions_at(at) - self.first_revolution)
                .clamp(0.0, f64::from(super::REVOLUTIONS_SHOWN))
        };
        let (mut from, until) = (shown(from), shown(until));
        let mut pieces = Vec::new();
        while from < until {
            let line = from.floor();
            let end = until.min(line + 1.0);
            pieces.push(RevolutionSegment {
                revolution_line: line as u32,
                start_angle: from - line,
                end_angle: end - line,
            });
            from = end;
        }
        pieces
    }

    /// Returns the line and the x coordinate of a time; `None` outside the picture.
    fn line_and_angle(&self, moment: Nanoseconds) -> Option<(u32, f64)> {
        let turned = self.drive.revolutions_at(moment) - self.first_revolution;
        (0.0..f64::from(super::REVOLUTIONS_SHOWN))
            .contains(&turned)
            .then(|| {
                (
                    turned as u32,
                    LEFT_MARGIN + turned.fract() * REVOLUTION_WIDTH,
                )
            })
    }

    fn draw_background(&self) -> String {
        let mut out = String::new();
        let every = [1, 2, 4, 5, 8, 10, 16, 20, 32, 64]
            .into_iter()
            .find(|every| self.slots_per_track / every <= 14)
            .unwrap_or(100);
        // One path for all lines of a kind: a track of today has hundreds of slots.
        let (mut lines, mut named_lines) = (String::new(), String::new());
        for slot in 0..=self.slots_per_track {
            let x =
                LEFT_MARGIN + REVOLUTION_WIDTH * f64::from(slot) / f64::from(self.slots_per_track);
            let named = slot % every == 0;
            let (from, path) = match named {
                true => (TOP_MARGIN - 6.0, &mut named_lines),
                false => (TOP_MARGIN, &mut lines),
            };
            let bottom = line_top(super::REVOLUTIONS_SHOWN) - 8.0;
            let _ = write!(path, "M{x:.1} {from:.1}V{bottom:.1}");
            if named && slot < self.slots_per_track {
                let y = TOP_MARGIN - 10.0;
                let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{slot}</text>");
            }
        }
        for (class, path) in [("tick", lines), ("tick named", named_lines)] {
            let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
        let _ = writeln!(
            out,
            "<text class=\"quiet\" x=\"{LEFT_MARGIN}\" y=\"14\">angle: the sector slot under the heads →</text>"
        );
        for line in 0..super::REVOLUTIONS_SHOWN {
            let (y, band) = (line_top(line), line_top(line) + PROCESSOR_BAND_HEIGHT + 3.0);
            let ms = f64::from(line) * self.drive.revolution_ns / 1e6;
            let _ = writeln!(
                out,
                "<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">{ms:.1} ms</text>\
                 <rect class=\"ground\" x=\"{LEFT_MARGIN}\" y=\"{y:.1}\" width=\"{REVOLUTION_WIDTH}\" height=\"{PROCESSOR_BAND_HEIGHT}\"/>\
                 <rect class=\"ground\" x=\"{LEFT_MARGIN}\" y=\"{band:.1}\" width=\"{REVOLUTION_WIDTH}\" height=\"{DRIVE_BAND_HEIGHT}\"/>",
                LEFT_MARGIN - 8.0,
                line_middle(line) + 4.0
            );
        }
        out
    }

    fn draw_spans(&self) -> (String, usize) {
        let mut out = String::new();
        let mut count = 0;
        for one in &self.processor_work {
            let title = format!("processor: {}", words::stage_label(one.stage));
            for piece in self.split_into_segments(one.start, one.end) {
                count += 1;
                let mark = TimelineMark::from_stage(one.stage);
                draw_rectangle(&mut out, piece, (0.0, PROCESSOR_BAND_HEIGHT), mark, &title);
            }
        }
        for arm in &self.arm_work {
            for part in arm.stage_intervals() {
                let took = format_nanoseconds(part.duration());
                let title = format!(
                    "{}: {}, {took}",
                    describe_arm_work(arm),
                    words::stage_label(part.stage)
                );
                for piece in self.split_into_segments(part.start, part.end) {
                    count += 1;
                    let mark = TimelineMark::from_arm_work(arm.arm_work, part.stage);
                    draw_rectangle(
                        &mut out,
                        piece,
                        (PROCESSOR_BAND_HEIGHT + 3.0, DRIVE_BAND_HEIGHT),
                        mark,
                        &title,
                    );
                }
            }
        }
        for request in &self.requests {
            for part in request.stage_intervals() {
                if !self.is_drive_stage(part.stage) {
                    continue;
                }
                let took = format_nanoseconds(part.duration());
                let title = format!(
                    "{}: {}, {took}",
                    describe_request(request),
                    words::stage_label(part.stage)
                );
                for piece in self.split_into_segments(part.start, part.end) {
                    count += 1;
                    let mark = TimelineMark::from_stage(part.stage);
                    let band = self.band_of_mark(mark);
                    draw_rectangle(&mut out, piece, band, mark, &title);
                }
            }
        }
        (out, count)
    }

    /// Draws the texts in the bands of the picture, and the marks at the issue of requests.
    fn draw_labels(&self) -> String {
        let mut out = String::new();
        for request in &self.requests {
            if let Some((line, x)) = self.line_and_angle(request.issued_at) {
                let y = line_top(line) + PROCESSOR_BAND_HEIGHT + 3.0;
                let _ = writeln!(
                    out,
                    "<path class=\"issue\" d=\"M{:.1} {:.1}h7l-3.5 6z\"><title>issued: {}</title></path>",
                    x - 3.5,
                    y - 3.5,
                    describe_request(request)
                );
            }
            let parts = request.stage_intervals();
            for part in parts.filter(|interval| self.is_drive_stage(interval.stage)) {
                let what = (purpose_label(request.purpose), request.sector_count);
                let text = self.draw_span_label(what, part.stage, (part.start, part.end));
                self.write_label(&mut out, text, (part.start, part.end));
            }
        }
        // Reads that wait for what is read ahead are written into it.
        let own = self.arm_work.iter();
        for arm in own.filter(|one| one.arm_work != ArmWork::ReadAhead) {
            for part in arm.stage_intervals() {
                let text = self.draw_span_label(
                    (arm_work_label(arm.arm_work), arm.sector_count),
                    part.stage,
                    (part.start, part.end),
                );
                self.write_label(&mut out, text, (part.start, part.end));
            }
        }
        out
    }

    /// Draws the first of some texts that fits into a span of the picture.
    fn write_label(
        &self,
        out: &mut String,
        text: Vec<String>,
        (from, until): (Nanoseconds, Nanoseconds),
    ) {
        let widest = self.split_into_segments(from, until).into_iter();
        let Some(widest) = widest.max_by(|a, b| a.width().total_cmp(&b.width())) else {
            return;
        };
        // About six pixels a letter.
        let room = widest.width() / 6.0;
        let mut text = text.into_iter();
        if let Some(text) = text.find(|text| (text.chars().count() as f64) < room) {
            let x = widest.x_position() + widest.width() / 2.0;
            let y = line_middle(widest.revolution_line) + 4.0;
            let _ = writeln!(
                out,
                "<text class=\"in\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                escape::escape_text(&text)
            );
        }
    }

    /// Returns the offset and the height of a request's mark in its line of the picture. Firmware
    /// and link have a separate part, since they work while the arm does something else.
    fn band_of_mark(&self, mark: TimelineMark) -> (f64, f64) {
        let beside_arm = matches!(
            mark,
            TimelineMark::BufferHit
                | TimelineMark::Stage(StageFamily::Controller | StageFamily::Queue)
        );
        match beside_arm && self.drive.has_bus_link {
            true => (
                PROCESSOR_BAND_HEIGHT + 3.0 + DRIVE_BAND_HEIGHT - LINK_BAND_HEIGHT,
                LINK_BAND_HEIGHT,
            ),
            false => (PROCESSOR_BAND_HEIGHT + 3.0, DRIVE_BAND_HEIGHT),
        }
    }

    /// Tests whether the drive or its controller works on a request in this stage, rather than
    /// letting it wait in a queue. Waits for background work of the arm are drawn as that work.
    fn is_drive_stage(&self, stage: Stage) -> bool {
        let of_arm = matches!(stage, Stage::Destage | Stage::Cleaning);
        let families = matches!(
            StageFamily::from_stage(stage),
            StageFamily::Controller
                | StageFamily::Arm
                | StageFamily::RotationalLatency
                | StageFamily::MissedRevolution
                | StageFamily::MediaTransfer
        );
        let waits = matches!(stage, Stage::ChannelWait | Stage::BusWait);
        (families || waits) && !(of_arm && self.drive.has_bus_link)
    }

    /// Returns possible texts for a span of the picture, the longest first.
    fn draw_span_label(
        &self,
        (what, sectors): (&str, u32),
        stage: Stage,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> Vec<String> {
        match stage {
            Stage::MediaTransfer => vec![
                format!("{what} {sectors} sectors"),
                format!("{sectors} sectors"),
                sectors.to_string(),
            ],
            Stage::MissedRevolution(_) => {
                let late = self.time_past_deadline(from, until);
                vec![
                    format!(
                        "{}, by {}",
                        words::stage_label(stage),
                        format_nanoseconds(late)
                    ),
                    "missed revolution".to_owned(),
                    "missed".to_owned(),
                ]
            }
            Stage::Seek | Stage::RotationalLatency => vec![words::stage_label(stage)],
            _ => Vec::new(),
        }
    }

    /// Returns the time by which the request missed its sector: from the sector's last pass until
    /// `from`.
    fn time_past_deadline(&self, from: Nanoseconds, until: Nanoseconds) -> Nanoseconds {
        let period = self.drive.revolution_ns as u64;
        Nanoseconds(period.saturating_sub((until.0 - from.0) % period.max(1)))
    }

    fn describe_deadline(&self) -> String {
        let Some((line, x)) = self
            .missed_revolution
            .and_then(|missed| self.line_and_angle(missed.deadline))
        else {
            return String::new();
        };
        let (y, bottom) = (
            line_top(line) - 5.0,
            line_top(line) + PROCESSOR_BAND_HEIGHT + DRIVE_BAND_HEIGHT + 8.0,
        );
        // On the side where there is room.
        let (anchor, beside) = match x < LEFT_MARGIN + REVOLUTION_WIDTH / 2.0 {
            true => ("start", x + 5.0),
            false => ("end", x - 5.0),
        };
        format!(
            "<path class=\"deadline\" d=\"M{x:.1} {y:.1}V{bottom:.1}\"/>\
             <text class=\"deadline\" text-anchor=\"{anchor}\" x=\"{beside:.1}\" y=\"{:.1}\">deadline: \
             here it passes the heads</text>\n",
            bottom + 4.0
        )
    }

    fn format_caption(&self) -> String {
        let mut text = format!(
            "Each line is one revolution of drive {}, {}; points below each other are at the same angle of the platter. The thin band is the processor, the thick one the drive{}; a triangle marks the issue of a request. ",
            self.drive_index + 1,
            format_nanoseconds(Nanoseconds(self.drive.revolution_ns as u64)),
            match self.drive.has_bus_link {
                true => ", at its foot the firmware and the link",
                false => "",
            },
        );
        match self.missed_revolution {
            None => text += "No revolution is lost.",
            Some(missed) => {
                let late = missed.ready_at.since(missed.deadline);
                let sectors =
                    late.0 as f64 / self.drive.revolution_ns * f64::from(self.slots_per_track);
                let _ = write!(
                    text,
                    "The sector passed the heads at the deadline; {} or {sectors:.1} sectors later the transfer was ready, and waited for the next pass ({}). So did {} of {} requests.",
                    format_nanoseconds(late),
                    words::stage_label(missed.stage),
                    missed.missed_request_count,
                    missed.total_request_count,
                );
            }
        }
        text
    }

    fn draw_legend(&self) -> String {
        let stages = self.requests.iter().flat_map(|one| one.stage_intervals());
        let stages = stages
            .map(|interval| interval.stage)
            .filter(|stage| self.is_drive_stage(*stage));
        let of_arms = self.arm_work.iter().flat_map(|one| {
            let parts = one.stage_intervals();
            parts.map(|part| TimelineMark::from_arm_work(one.arm_work, part.stage))
        });
        let mut marks: Vec<TimelineMark> = stages
            .chain(self.processor_work.iter().map(|one| one.stage))
            .map(TimelineMark::from_stage)
            .chain(of_arms)
            .collect();
        marks.sort_unstable();
        marks.dedup();
        let key = |mark: TimelineMark| {
            format!(
                "<li><i style=\"background:var({})\"></i>{}</li>",
                mark.css_variable(),
                mark.label()
            )
        };
        let keys: String = marks.into_iter().map(key).collect();
        format!("<ul class=\"key\">{keys}</ul>")
    }
}

fn arm_work_label(work: ArmWork) -> &'static str {
    match work {
        ArmWork::Destage => "destage",
        ArmWork::Cleaning => "cleaning",
        ArmWork::ReadAhead => "read-ahead",
    }
}

/// Describes a piece of the arm's background work, with its sectors and their position.
fn describe_arm_work(arm: &TracedArm) -> String {
    format!(
        "{} of {} sectors from {}{}",
        arm_work_label(arm.arm_work),
        arm.sector_count,
        arm.sector,
        format_position(Some(arm.arm_position))
    )
}

fn purpose_label(purpose: RequestPurpose) -> &'static str {
    match purpose {
        RequestPurpose::Read => "read",
        RequestPurpose::ReadAhead => "read-ahead",
        RequestPurpose::Write => "write",
        RequestPurpose::WriteBehind => "write-behind",
    }
}

fn format_position(position: Option<DiskPosition>) -> String {
    position.map_or_else(String::new, |on| {
        format!(
            " (cylinder {}, head {}, slot {})",
            on.cylinder, on.head, on.slot
        )
    })
}

fn describe_request(request: &TracedRequest) -> String {
    format!(
        "{} of {} sectors from {}{}",
        purpose_label(request.purpose),
        request.sector_count,
        request.sector,
        format_position(request.disk_position())
    )
}

fn draw_rectangle(
    out: &mut String,
    piece: RevolutionSegment,
    (down, height): (f64, f64),
    mark: TimelineMark,
    title: &str,
) {
    // What is shorter than this is drawn, and seen, all the same.
    let width = piece.width().max(0.6);
    let y = line_top(piece.revolution_line) + down;
    let _ = writeln!(
        out,
        "<rect class=\"{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\"><title>{}</title></rect>",
        mark.css_variable().trim_start_matches('-'),
        piece.x_position(),
        escape::escape_text(title)
    );
}

/// Draws the platter picture with its title and caption.
pub(in crate::report::html) fn render_figure(
    picture: &PlatterPicture,
    name: &str,
    title: &str,
) -> String {
    let (spans, count) = picture.draw_spans();
    let (width, height) = (
        LEFT_MARGIN + REVOLUTION_WIDTH + RIGHT_MARGIN,
        line_top(super::REVOLUTIONS_SHOWN),
    );
    let content = format!(
        "<div class=\"scroll\"><svg class=\"platter\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n\
         {}<g class=\"rows_marks\">\n{spans}</g>\n{}{}</svg></div>{}",
        escape::escape_text(title),
        picture.draw_background(),
        picture.draw_labels(),
        picture.describe_deadline(),
        picture.draw_legend()
    );
    render_figure_with(
        title,
        &picture.format_caption(),
        &content,
        &format!(
            "data-picture=\"{}\" data-rows=\"{count}\"",
            escape::escape_text(name)
        ),
    )
}
