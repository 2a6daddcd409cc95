//! Platter picture as SVG, in the colours of the page.

use super::Picture;
use super::mark::Mark;
use crate::explanation::words;
use crate::report::html::chart::figure_with;
use crate::report::html::escape;
use crate::report::html::family::Family;
use diskperf_timeline::trace::{ArmWork, DiskPosition, RequestPurpose, TracedArm, TracedRequest};
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Nanoseconds, Stage};
use std::fmt::Write;

const LEFT: f64 = 76.0;
const WIDTH: f64 = 880.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 44.0;
const LINE_HEIGHT: f64 = 46.0;
const PROCESSOR_HEIGHT: f64 = 8.0;
const DRIVE_HEIGHT: f64 = 20.0;
/// Height of the part for firmware and link, at the foot of a drive's band in the picture.
const LINK_HEIGHT: f64 = 6.0;

/// Part of a span within one revolution: its line, and its start and end as shares of the line.
#[derive(Clone, Copy)]
struct LineSegment {
    line: u32,
    from: f64,
    until: f64,
}

impl LineSegment {
    fn width(self) -> f64 {
        (self.until - self.from) * WIDTH
    }

    fn x(self) -> f64 {
        LEFT + self.from * WIDTH
    }
}

fn top(line: u32) -> f64 {
    TOP + f64::from(line) * LINE_HEIGHT
}

fn middle(line: u32) -> f64 {
    top(line) + PROCESSOR_HEIGHT + 3.0 + DRIVE_HEIGHT / 2.0
}

impl Picture {
    /// Divides a span of time at the ends of revolutions.
    fn line_segments(&self, from: Nanoseconds, until: Nanoseconds) -> Vec<LineSegment> {
        let shown = |at| {
            (self.drive.revolutions_at(at) - self.first)
                .clamp(0.0, f64::from(super::REVOLUTIONS_SHOWN))
        };
        let (mut from, until) = (shown(from), shown(until));
        let mut pieces = Vec::new();
        while from < until {
            let line = from.floor();
            let end = until.min(line + 1.0);
            pieces.push(LineSegment {
                line: line as u32,
                from: from - line,
                until: end - line,
            });
            from = end;
        }
        pieces
    }

    /// Returns the line and the x coordinate of a time; `None` outside the picture.
    fn position_at(&self, moment: Nanoseconds) -> Option<(u32, f64)> {
        let turned = self.drive.revolutions_at(moment) - self.first;
        (0.0..f64::from(super::REVOLUTIONS_SHOWN))
            .contains(&turned)
            .then(|| (turned as u32, LEFT + turned.fract() * WIDTH))
    }

    fn draw_background(&self) -> String {
        let mut out = String::new();
        let every = [1, 2, 4, 5, 8, 10, 16, 20, 32, 64]
            .into_iter()
            .find(|every| self.slots / every <= 14)
            .unwrap_or(100);
        // One path for all lines of a kind: a track of today has hundreds of slots.
        let (mut lines, mut named_lines) = (String::new(), String::new());
        for slot in 0..=self.slots {
            let x = LEFT + WIDTH * f64::from(slot) / f64::from(self.slots);
            let named = slot % every == 0;
            let (from, path) = match named {
                true => (TOP - 6.0, &mut named_lines),
                false => (TOP, &mut lines),
            };
            let bottom = top(super::REVOLUTIONS_SHOWN) - 8.0;
            let _ = write!(path, "M{x:.1} {from:.1}V{bottom:.1}");
            if named && slot < self.slots {
                let y = TOP - 10.0;
                let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{slot}</text>");
            }
        }
        for (class, path) in [("tick", lines), ("tick named", named_lines)] {
            let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
        let _ = writeln!(
            out,
            "<text class=\"quiet\" x=\"{LEFT}\" y=\"14\">angle: the sector slot under the heads →</text>"
        );
        for line in 0..super::REVOLUTIONS_SHOWN {
            let (y, band) = (top(line), top(line) + PROCESSOR_HEIGHT + 3.0);
            let ms = f64::from(line) * self.drive.revolution_ns / 1e6;
            let _ = writeln!(
                out,
                "<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">{ms:.1} ms</text>\
                 <rect class=\"ground\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{PROCESSOR_HEIGHT}\"/>\
                 <rect class=\"ground\" x=\"{LEFT}\" y=\"{band:.1}\" width=\"{WIDTH}\" height=\"{DRIVE_HEIGHT}\"/>",
                LEFT - 8.0,
                middle(line) + 4.0
            );
        }
        out
    }

    fn draw_spans(&self) -> (String, usize) {
        let mut out = String::new();
        let mut count = 0;
        for one in &self.processor_work {
            let title = format!("processor: {}", words::stage(one.stage));
            for piece in self.line_segments(one.from, one.until) {
                count += 1;
                let mark = Mark::from_stage(one.stage);
                rectangle(&mut out, piece, (0.0, PROCESSOR_HEIGHT), mark, &title);
            }
        }
        for arm in &self.arm_work {
            for (stage, from, until) in arm.stage_intervals() {
                let took = format_nanoseconds(Nanoseconds(until.0 - from.0));
                let title = format!(
                    "{}: {}, {took}",
                    describe_arm_work(arm),
                    words::stage(stage)
                );
                for piece in self.line_segments(from, until) {
                    count += 1;
                    let mark = Mark::of_arm(arm.arm_work, stage);
                    rectangle(
                        &mut out,
                        piece,
                        (PROCESSOR_HEIGHT + 3.0, DRIVE_HEIGHT),
                        mark,
                        &title,
                    );
                }
            }
        }
        for request in &self.requests {
            for (stage, from, until) in request.stage_intervals() {
                if !self.is_at_drive(stage) {
                    continue;
                }
                let took = format_nanoseconds(Nanoseconds(until.0 - from.0));
                let title = format!(
                    "{}: {}, {took}",
                    describe_request(request),
                    words::stage(stage)
                );
                for piece in self.line_segments(from, until) {
                    count += 1;
                    let mark = Mark::from_stage(stage);
                    let band = self.band(mark);
                    rectangle(&mut out, piece, band, mark, &title);
                }
            }
        }
        (out, count)
    }

    /// Draws the texts in the bands of the picture, and the marks at the issue of requests.
    fn draw_labels(&self) -> String {
        let mut out = String::new();
        for request in &self.requests {
            if let Some((line, x)) = self.position_at(request.issued_at) {
                let y = top(line) + PROCESSOR_HEIGHT + 3.0;
                let _ = writeln!(
                    out,
                    "<path class=\"issue\" d=\"M{:.1} {:.1}h7l-3.5 6z\"><title>issued: {}</title></path>",
                    x - 3.5,
                    y - 3.5,
                    describe_request(request)
                );
            }
            let parts = request.stage_intervals();
            for (stage, from, until) in parts.filter(|(stage, ..)| self.is_at_drive(*stage)) {
                let what = (purpose_text(request.purpose), request.sector_count);
                let text = self.label(what, stage, (from, until));
                self.write_label(&mut out, text, (from, until));
            }
        }
        // Reads that wait for what is read ahead are written into it.
        let own = self.arm_work.iter();
        for arm in own.filter(|one| one.arm_work != ArmWork::ReadAhead) {
            for (stage, from, until) in arm.stage_intervals() {
                let text = self.label(
                    (arm_work_text(arm.arm_work), arm.sector_count),
                    stage,
                    (from, until),
                );
                self.write_label(&mut out, text, (from, until));
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
        let widest = self.line_segments(from, until).into_iter();
        let Some(widest) = widest.max_by(|a, b| a.width().total_cmp(&b.width())) else {
            return;
        };
        // About six pixels a letter.
        let room = widest.width() / 6.0;
        let mut text = text.into_iter();
        if let Some(text) = text.find(|text| (text.chars().count() as f64) < room) {
            let x = widest.x() + widest.width() / 2.0;
            let y = middle(widest.line) + 4.0;
            let _ = writeln!(
                out,
                "<text class=\"in\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                escape::text(&text)
            );
        }
    }

    /// Returns the offset and the height of a request's mark in its line of the picture. Firmware
    /// and link have a separate part, since they work while the arm does something else.
    fn band(&self, mark: Mark) -> (f64, f64) {
        let beside_arm = matches!(
            mark,
            Mark::Hit | Mark::Stage(Family::Controller | Family::Queue)
        );
        match beside_arm && self.drive.has_bus_link {
            true => (
                PROCESSOR_HEIGHT + 3.0 + DRIVE_HEIGHT - LINK_HEIGHT,
                LINK_HEIGHT,
            ),
            false => (PROCESSOR_HEIGHT + 3.0, DRIVE_HEIGHT),
        }
    }

    /// Tests whether the drive or its controller works on a request in this stage, rather than
    /// letting it wait in a queue. Waits for background work of the arm are drawn as that work.
    fn is_at_drive(&self, stage: Stage) -> bool {
        let of_arm = matches!(stage, Stage::Destage | Stage::Cleaning);
        let families = matches!(
            Family::from_stage(stage),
            Family::Controller | Family::Arm | Family::Rotation | Family::Missed | Family::Media
        );
        let waits = matches!(stage, Stage::ChannelWait | Stage::BusWait);
        (families || waits) && !(of_arm && self.drive.has_bus_link)
    }

    /// Returns possible texts for a span of the picture, the longest first.
    fn label(
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
                let late = self.lateness(from, until);
                vec![
                    format!("{}, by {}", words::stage(stage), format_nanoseconds(late)),
                    "missed revolution".to_owned(),
                    "missed".to_owned(),
                ]
            }
            Stage::Seek | Stage::RotationalLatency => vec![words::stage(stage)],
            _ => Vec::new(),
        }
    }

    /// Returns the time by which the request missed its sector: from the sector's last pass until
    /// `from`.
    fn lateness(&self, from: Nanoseconds, until: Nanoseconds) -> Nanoseconds {
        let period = self.drive.revolution_ns as u64;
        Nanoseconds(period.saturating_sub((until.0 - from.0) % period.max(1)))
    }

    fn describe_deadline(&self) -> String {
        let Some((line, x)) = self
            .missed
            .and_then(|missed| self.position_at(missed.deadline))
        else {
            return String::new();
        };
        let (y, bottom) = (
            top(line) - 5.0,
            top(line) + PROCESSOR_HEIGHT + DRIVE_HEIGHT + 8.0,
        );
        // On the side where there is room.
        let (anchor, beside) = match x < LEFT + WIDTH / 2.0 {
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

    fn caption(&self) -> String {
        let mut text = format!(
            "Each line is one revolution of drive {}, {}; points below each other are at the same angle of the platter. The thin band is the processor, the thick one the drive{}; a triangle marks the issue of a request. ",
            self.number + 1,
            format_nanoseconds(Nanoseconds(self.drive.revolution_ns as u64)),
            match self.drive.has_bus_link {
                true => ", at its foot the firmware and the link",
                false => "",
            },
        );
        match self.missed {
            None => text += "No revolution is lost.",
            Some(missed) => {
                let late = missed.ready.since(missed.deadline);
                let sectors = late.0 as f64 / self.drive.revolution_ns * f64::from(self.slots);
                let _ = write!(
                    text,
                    "The sector passed the heads at the deadline; {} or {sectors:.1} sectors later the transfer was ready, and waited for the next pass ({}). So did {} of {} requests.",
                    format_nanoseconds(late),
                    words::stage(missed.stage),
                    missed.requests,
                    missed.of,
                );
            }
        }
        text
    }

    fn legend(&self) -> String {
        let stages = self.requests.iter().flat_map(|one| one.stage_intervals());
        let stages = stages
            .map(|(stage, ..)| stage)
            .filter(|stage| self.is_at_drive(*stage));
        let of_arms = self.arm_work.iter().flat_map(|one| {
            let parts = one.stage_intervals();
            parts.map(|(stage, ..)| Mark::of_arm(one.arm_work, stage))
        });
        let mut marks: Vec<Mark> = stages
            .chain(self.processor_work.iter().map(|one| one.stage))
            .map(Mark::from_stage)
            .chain(of_arms)
            .collect();
        marks.sort_unstable();
        marks.dedup();
        let key = |mark: Mark| {
            format!(
                "<li><i style=\"background:var({})\"></i>{}</li>",
                mark.variable(),
                mark.words()
            )
        };
        let keys: String = marks.into_iter().map(key).collect();
        format!("<ul class=\"key\">{keys}</ul>")
    }
}

fn arm_work_text(work: ArmWork) -> &'static str {
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
        arm_work_text(arm.arm_work),
        arm.sector_count,
        arm.sector,
        position_text(Some(arm.arm_position))
    )
}

fn purpose_text(purpose: RequestPurpose) -> &'static str {
    match purpose {
        RequestPurpose::Read => "read",
        RequestPurpose::ReadAhead => "read-ahead",
        RequestPurpose::Write => "write",
        RequestPurpose::WriteBehind => "write-behind",
    }
}

fn position_text(position: Option<DiskPosition>) -> String {
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
        purpose_text(request.purpose),
        request.sector_count,
        request.sector,
        position_text(request.disk_position())
    )
}

fn rectangle(
    out: &mut String,
    piece: LineSegment,
    (down, height): (f64, f64),
    mark: Mark,
    title: &str,
) {
    // What is shorter than this is drawn, and seen, all the same.
    let width = piece.width().max(0.6);
    let y = top(piece.line) + down;
    let _ = writeln!(
        out,
        "<rect class=\"{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\"><title>{}</title></rect>",
        mark.variable().trim_start_matches('-'),
        piece.x(),
        escape::text(title)
    );
}

/// Draws the platter picture with its title and caption.
pub(in crate::report::html) fn figure(picture: &Picture, name: &str, title: &str) -> String {
    let (spans, count) = picture.draw_spans();
    let (width, height) = (LEFT + WIDTH + RIGHT, top(super::REVOLUTIONS_SHOWN));
    let content = format!(
        "<div class=\"scroll\"><svg class=\"platter\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n\
         {}<g class=\"rows_marks\">\n{spans}</g>\n{}{}</svg></div>{}",
        escape::text(title),
        picture.draw_background(),
        picture.draw_labels(),
        picture.describe_deadline(),
        picture.legend()
    );
    figure_with(
        title,
        &picture.caption(),
        &content,
        &format!(
            "data-picture=\"{}\" data-rows=\"{count}\"",
            escape::text(name)
        ),
    )
}
