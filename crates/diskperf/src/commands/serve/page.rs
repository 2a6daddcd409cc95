//! Page of a served drive, its data, and its metrics for Prometheus.

mod metrics;

use super::report::report_json;
use crate::arguments::ServeArguments;
use diskperf_serve::{
    ACTIVITY_PERIODS_MAX, ActivePart, ActivityPeriod, DriveShape, HttpResponse, HttpServer,
    ServeError, Served,
};
use diskperf_spans::DieBusy;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PAGE: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

/// Span of virtual time that the page has for its slow motion.
const WINDOW_MS: f64 = 200.0;

/// Page of a served drive. Dropping it ends its server.
pub(super) struct DrivePage {
    server: HttpServer,
    watched: Arc<WatchedDrive>,
}

/// A served drive with its last work.
struct WatchedDrive {
    arguments: ServeArguments,
    served: Arc<Served>,
    shape: DriveShape,
    periods: Mutex<VecDeque<ActivityPeriod>>,
}

impl DrivePage {
    /// Serves the page, if there is to be one.
    ///
    /// # Errors
    ///
    /// An address beyond the loopback, or a port that is taken.
    pub(super) fn start(
        arguments: &ServeArguments,
        served: &Arc<Served>,
    ) -> Result<Option<Self>, ServeError> {
        let Some(at) = arguments.http else {
            return Ok(None);
        };
        let watched = Arc::new(WatchedDrive {
            arguments: arguments.clone(),
            served: Arc::clone(served),
            shape: served.drive.shape(),
            periods: Mutex::default(),
        });
        let of_server = Arc::clone(&watched);
        let server = HttpServer::start(at, move |path| of_server.respond(path))?;
        served.drive.keep_activity();
        Ok(Some(Self { server, watched }))
    }

    /// Address that browsers are given.
    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// Takes what the drive did since the last call.
    pub(super) fn update(&self) {
        self.watched.update();
    }
}

impl WatchedDrive {
    fn respond(&self, path: &str) -> Option<HttpResponse> {
        let (content_type, body) = match path {
            "/" => ("text/html; charset=utf-8", PAGE.to_owned()),
            "/page.js" => ("text/javascript; charset=utf-8", SCRIPT.to_owned()),
            "/page.css" => ("text/css; charset=utf-8", STYLE.to_owned()),
            "/state.json" => ("application/json", self.state().to_string()),
            "/metrics" => (
                metrics::CONTENT_TYPE,
                metrics::render(&self.arguments, &self.served),
            ),
            _ => return None,
        };
        Some(HttpResponse { content_type, body })
    }

    fn update(&self) {
        let mut periods = self.lock();
        periods.extend(self.served.drive.take_activity());
        let excess = periods.len().saturating_sub(ACTIVITY_PERIODS_MAX);
        periods.drain(..excess);
    }

    /// Returns all that the page shows: the statistics, and the work of the last time.
    fn state(&self) -> Value {
        self.update();
        let report = self.served.statistics.report();
        let now = self.served.drive.clock().now();
        let now_ms = now.0 as f64 / 1e6;
        let periods = self.lock();
        let mut recent: Vec<&ActivityPeriod> = periods
            .iter()
            .filter(|period| ms(period.end.0) >= now_ms - WINDOW_MS)
            .collect();
        recent.sort_by_key(|period| (period.start, period.end));
        let mut state = report_json(&self.arguments, &self.served, &report);
        state["now_ms"] = json!(now_ms);
        state["window_ms"] = json!(WINDOW_MS);
        state["in_flight"] = json!(self.served.drive.in_flight());
        state["shape"] = shape_json(self.shape);
        state["periods"] = recent.into_iter().map(period_json).collect();
        state
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ActivityPeriod>> {
        self.periods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn shape_json(shape: DriveShape) -> Value {
    match shape {
        DriveShape::Disk {
            cylinders,
            heads,
            period_ns,
            start_angle,
        } => json!({
            "kind": "disk",
            "cylinders": cylinders,
            "heads": heads,
            "revolution_ms": period_ns / 1e6,
            "start_angle": start_angle,
        }),
        DriveShape::Flash { channels, dies } => json!({
            "kind": "flash",
            "channels": channels,
            "dies": dies,
        }),
        DriveShape::Plain => json!({ "kind": "plain" }),
    }
}

/// Returns a period: its start and end in virtual ms, the part, and what it did.
fn period_json(period: &ActivityPeriod) -> Value {
    let (start_ms, end_ms) = (ms(period.start.0), ms(period.end.0));
    match period.part {
        ActivePart::Arm {
            position,
            stage,
            access,
        } => json!({
            "start_ms": start_ms,
            "end_ms": end_ms,
            "work": stage.name(),
            "access": access,
            "cylinder": position.cylinder,
            "head": position.head,
            "angle": f64::from(position.slot) / f64::from(position.slots.max(1)),
        }),
        ActivePart::Die { index, operation } => json!({
            "start_ms": start_ms,
            "end_ms": end_ms,
            "work": die_work(operation),
            "die": index,
        }),
    }
}

fn die_work(operation: DieBusy) -> &'static str {
    match operation {
        DieBusy::Read => "read",
        DieBusy::Program => "program",
        DieBusy::Erase => "erase",
        DieBusy::Collection => "collection",
        DieBusy::Suspension => "suspension",
        DieBusy::Channel => "channel",
    }
}
