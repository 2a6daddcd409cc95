//! The picture as SVG, in the colours of the page.

use super::Picture;
use crate::explanation::words;
use crate::report::html::chart::figure_with;
use crate::report::html::escape;
use crate::report::html::family::Family;
use diskperf_timeline::trace::{Purpose, TracedRequest};
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Nanoseconds, Stage};
use std::fmt::Write;

/// Measures of the picture, in pixels of its own.
const LEFT: f64 = 76.0;
const WIDTH: f64 = 880.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 44.0;
const LINE: f64 = 46.0;
const PROCESSOR: f64 = 8.0;
const DRIVE: f64 = 20.0;

/// A part of a span that lies in one revolution: the line, and where it begins
/// and ends as shares of it.
#[derive(Clone, Copy)]
struct Piece {
    line: u32,
    from: f64,
    until: f64,
}

impl Piece {
    fn width(self) -> f64 {
        (self.until - self.from) * WIDTH
    }

    fn x(self) -> f64 {
        LEFT + self.from * WIDTH
    }
}

fn top(line: u32) -> f64 {
    TOP + f64::from(line) * LINE
}

/// The middle of the drive's band.
fn middle(line: u32) -> f64 {
    top(line) + PROCESSOR + 3.0 + DRIVE / 2.0
}

impl Picture {
    /// A span, cut where revolutions end.
    fn pieces(&self, from: Nanoseconds, until: Nanoseconds) -> Vec<Piece> {
        let shown =
            |at| (self.drive.revolutions(at) - self.first).clamp(0.0, f64::from(super::SHOWN));
        let (mut from, until) = (shown(from), shown(until));
        let mut pieces = Vec::new();
        while from < until {
            let line = from.floor();
            let end = until.min(line + 1.0);
            pieces.push(Piece {
                line: line as u32,
                from: from - line,
                until: end - line,
            });
            from = end;
        }
        pieces
    }

    /// A moment that is shown: line and place.
    fn at(&self, moment: Nanoseconds) -> Option<(u32, f64)> {
        let turned = self.drive.revolutions(moment) - self.first;
        (0.0..f64::from(super::SHOWN))
            .contains(&turned)
            .then(|| (turned as u32, LEFT + turned.fract() * WIDTH))
    }

    fn ground(&self) -> String {
        let mut out = String::new();
        let every = [1, 2, 4, 5, 8, 10, 16, 20, 32, 64]
            .into_iter()
            .find(|every| self.slots / every <= 14)
            .unwrap_or(100);
        for slot in 0..=self.slots {
            let x = LEFT + WIDTH * f64::from(slot) / f64::from(self.slots);
            let named = slot % every == 0;
            let (from, class) = if named {
                (TOP - 6.0, "tick named")
            } else {
                (TOP, "tick")
            };
            let bottom = top(super::SHOWN) - 8.0;
            let _ = writeln!(
                out,
                "<path class=\"{class}\" d=\"M{x:.1} {from:.1}V{bottom:.1}\"/>"
            );
            if named && slot < self.slots {
                let y = TOP - 10.0;
                let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{slot}</text>");
            }
        }
        let _ = writeln!(
            out,
            "<text class=\"quiet\" x=\"{LEFT}\" y=\"14\">angle: the sector slot under the heads →</text>"
        );
        for line in 0..super::SHOWN {
            let (y, band) = (top(line), top(line) + PROCESSOR + 3.0);
            let ms = f64::from(line) * self.drive.revolution_ns / 1e6;
            let _ = writeln!(
                out,
                "<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">{ms:.1} ms</text>\
                 <rect class=\"ground\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{PROCESSOR}\"/>\
                 <rect class=\"ground\" x=\"{LEFT}\" y=\"{band:.1}\" width=\"{WIDTH}\" height=\"{DRIVE}\"/>",
                LEFT - 8.0,
                middle(line) + 4.0
            );
        }
        out
    }

    /// All spans as rectangles, and how many these are.
    fn spans(&self) -> (String, usize) {
        let mut out = String::new();
        let mut count = 0;
        for one in &self.work {
            let title = format!("processor: {}", words::stage(one.stage));
            for piece in self.pieces(one.from, one.until) {
                count += 1;
                rectangle(&mut out, piece, (0.0, PROCESSOR), one.stage, &title);
            }
        }
        for request in &self.requests {
            for (stage, from, until) in request.parts() {
                if !at_the_drive(stage) {
                    continue;
                }
                let took = format_nanoseconds(Nanoseconds(until.0 - from.0));
                let title = format!("{}: {}, {took}", described(request), words::stage(stage));
                for piece in self.pieces(from, until) {
                    count += 1;
                    rectangle(&mut out, piece, (PROCESSOR + 3.0, DRIVE), stage, &title);
                }
            }
        }
        (out, count)
    }

    /// What is written into the bands, and the marks of issues.
    fn labels(&self) -> String {
        let mut out = String::new();
        for request in &self.requests {
            if let Some((line, x)) = self.at(request.issued) {
                let y = top(line) + PROCESSOR + 3.0;
                let _ = writeln!(
                    out,
                    "<path class=\"issue\" d=\"M{:.1} {:.1}h7l-3.5 6z\"><title>issued: {}</title></path>",
                    x - 3.5,
                    y - 3.5,
                    described(request)
                );
            }
            for (stage, from, until) in request.parts().filter(|(stage, ..)| at_the_drive(*stage)) {
                let widest = self.pieces(from, until).into_iter();
                let Some(widest) = widest.max_by(|a, b| a.width().total_cmp(&b.width())) else {
                    continue;
                };
                let text = self.label(request, stage, (from, until));
                // About six pixels a letter.
                let room = widest.width() / 6.0;
                if let Some(text) = text
                    .into_iter()
                    .find(|text| (text.chars().count() as f64) < room)
                {
                    let x = widest.x() + widest.width() / 2.0;
                    let y = middle(widest.line) + 4.0;
                    let _ = writeln!(
                        out,
                        "<text class=\"in\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                        escape::text(&text)
                    );
                }
            }
        }
        out
    }

    /// What may be written into a span, the longest first.
    fn label(
        &self,
        request: &TracedRequest,
        stage: Stage,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> Vec<String> {
        match stage {
            Stage::MediaTransfer => vec![
                format!("{} {} sectors", purpose(request.purpose), request.sectors),
                format!("{} sectors", request.sectors),
                request.sectors.to_string(),
            ],
            Stage::MissedRevolution(_) => {
                let late = self.late(from, until);
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

    /// How long before `from` the place passed the heads that comes at `until`.
    fn late(&self, from: Nanoseconds, until: Nanoseconds) -> Nanoseconds {
        let period = self.drive.revolution_ns as u64;
        Nanoseconds(period.saturating_sub((until.0 - from.0) % period.max(1)))
    }

    /// The deadline that was missed.
    fn deadline(&self) -> String {
        let Some((line, x)) = self.missed.and_then(|missed| self.at(missed.deadline)) else {
            return String::new();
        };
        let (y, bottom) = (top(line) - 5.0, top(line) + PROCESSOR + DRIVE + 8.0);
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
            "Each line is one revolution of drive {}, {}; points below each other are the same place on the platter. The thin band is the processor, the thick one the drive; a triangle marks the issue of a request. ",
            self.number + 1,
            format_nanoseconds(Nanoseconds(self.drive.revolution_ns as u64)),
        );
        match self.missed {
            None => text += "No revolution is lost.",
            Some(missed) => {
                let late = missed.ready.since(missed.deadline);
                let sectors = late.0 as f64 / self.drive.revolution_ns * f64::from(self.slots);
                let _ = write!(
                    text,
                    "The place passed the heads at the deadline; {} or {sectors:.1} sectors later the transfer was ready, and waited for the next pass ({}). So did {} of {} requests.",
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
        let stages = self.requests.iter().flat_map(|one| one.parts());
        let stages = stages
            .map(|(stage, ..)| stage)
            .filter(|stage| at_the_drive(*stage));
        let mut families: Vec<Family> = stages
            .chain(self.work.iter().map(|one| one.stage))
            .map(Family::of)
            .collect();
        families.sort_unstable();
        families.dedup();
        let key = |family: Family| {
            let words = match family {
                Family::Memory => "slowed by transfers to memory",
                family => family.words(),
            };
            format!(
                "<li><i style=\"background:var({})\"></i>{}</li>",
                family.variable(),
                words
            )
        };
        let keys: String = families.into_iter().map(key).collect();
        format!("<ul class=\"key\">{keys}</ul>")
    }
}

/// Whether a stage is something that the drive, or its controller, does for a
/// request, and not a place in a queue.
fn at_the_drive(stage: Stage) -> bool {
    matches!(
        Family::of(stage),
        Family::Controller | Family::Arm | Family::Rotation | Family::Missed | Family::Media
    ) || matches!(stage, Stage::ChannelWait | Stage::BusWait)
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Read => "read",
        Purpose::ReadAhead => "read-ahead",
        Purpose::Write => "write",
        Purpose::WriteBehind => "write-behind",
    }
}

fn described(request: &TracedRequest) -> String {
    let place = request.on_disk().map_or_else(String::new, |on| {
        format!(
            " (cylinder {}, head {}, slot {})",
            on.cylinder, on.head, on.slot
        )
    });
    format!(
        "{} of {} sectors from {}{place}",
        purpose(request.purpose),
        request.sectors,
        request.sector,
    )
}

fn rectangle(
    out: &mut String,
    piece: Piece,
    (down, height): (f64, f64),
    stage: Stage,
    title: &str,
) {
    // What is shorter than this is drawn, and seen, all the same.
    let width = piece.width().max(0.6);
    let y = top(piece.line) + down;
    let _ = writeln!(
        out,
        "<rect class=\"{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\"><title>{}</title></rect>",
        Family::of(stage).variable().trim_start_matches('-'),
        piece.x(),
        escape::text(title)
    );
}

/// The picture with its words.
pub(in crate::report::html) fn figure(picture: &Picture, name: &str, title: &str) -> String {
    let (spans, count) = picture.spans();
    let (width, height) = (LEFT + WIDTH + RIGHT, top(super::SHOWN));
    let content = format!(
        "<div class=\"scroll\"><svg class=\"platter\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n\
         {}<g class=\"rows_marks\">\n{spans}</g>\n{}{}</svg></div>{}",
        escape::text(title),
        picture.ground(),
        picture.labels(),
        picture.deadline(),
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
