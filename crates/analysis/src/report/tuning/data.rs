//! A search as JSON, which has everything, and as CSV, a line for each point.

use crate::comparison::Verdict;
use crate::report::csv::{Field, number, written};
use crate::report::json::pretty;
use crate::tuning::{Cliff, Extent, Figures, Goal, Key, Method};
use crate::tuning::{Outcome, Places, Spread, Standing, Step, Tuned};
use serde::Serialize;
use std::collections::BTreeMap;

/// The `tune` contract.
#[derive(Serialize)]
struct Document<'t> {
    suite: &'t str,
    target: &'t str,
    goal: Goal,
    /// What is compared.
    quantity: &'static str,
    programs: &'t [String],
    keys: &'t [Key],
    points: Vec<Point<'t>>,
    /// Absent where nothing is shown to be better than today's.
    best: Option<Point<'t>>,
    /// The point with the best figure, where that is all that is known for it.
    candidate: Option<Point<'t>>,
    today: Today<'t>,
    /// What the best, or the candidate, gain over today's, as a share.
    gain: Option<f64>,
    spread: Option<Spreads<'t>>,
    /// The steps from the best to its neighbours.
    cliff: Vec<Step>,
    on_cliff: bool,
    /// All cliffs between points that were tried.
    cliffs: Vec<Fall<'t>>,
    /// What falls as much between values that are too far apart to tell.
    wide_steps: Vec<Fall<'t>>,
    /// The best of those that are on no cliff, where the best are on one.
    safe: Option<Point<'t>>,
    at_an_end: Vec<&'t str>,
    no_effect: Vec<&'t str>,
    method: &'t Method,
    notes: &'t [String],
}

/// A step down a cliff.
#[derive(Serialize)]
struct Fall<'t> {
    path: &'t str,
    from: &'t str,
    to: &'t str,
    from_value: Option<f64>,
    to_value: Option<f64>,
    /// What the step gains, as a share, and what the steps around it lead one to
    /// expect of it.
    gain: f64,
    expected_gain: f64,
    /// All settings at the edge.
    settings: BTreeMap<&'t str, &'t str>,
}

#[derive(Serialize)]
struct Point<'t> {
    places: &'t [usize],
    settings: BTreeMap<&'t str, &'t str>,
    value: Option<f64>,
    programs: &'t [Figures],
    impossible: Option<&'t str>,
    /// On real storage: the ratio to today's with its 99 % interval, and what
    /// that says.
    against_today: Option<Against>,
}

#[derive(Serialize)]
struct Against {
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct Today<'t> {
    settings: BTreeMap<&'t str, Option<&'t str>>,
    value: Option<f64>,
    programs: &'t [Figures],
}

#[derive(Serialize)]
struct Spreads<'t> {
    #[serde(flatten)]
    values: &'t Spread,
    best_extent: Option<Extent>,
    today_extent: Option<Extent>,
    gain_extent: Option<Extent>,
}

fn settings<'t>(tuned: &'t Tuned, places: &[usize]) -> BTreeMap<&'t str, &'t str> {
    let pairs = tuned.keys.iter().zip(places);
    pairs
        .map(|(key, place)| (key.path.as_str(), key.values[*place].as_str()))
        .collect()
}

fn fall<'t>(tuned: &'t Tuned, cliff: &Cliff) -> Fall<'t> {
    let key = &tuned.keys[cliff.key];
    let value = |places: &Places| key.values[places[cliff.key]].as_str();
    Fall {
        path: &key.path,
        from: value(&cliff.top),
        to: value(&cliff.bottom),
        from_value: tuned.value(&cliff.top),
        to_value: tuned.value(&cliff.bottom),
        gain: cliff.gain,
        expected_gain: cliff.expected,
        settings: settings(tuned, &cliff.top),
    }
}

fn falls<'t>(tuned: &'t Tuned, cliffs: &[Cliff]) -> Vec<Fall<'t>> {
    cliffs.iter().map(|cliff| fall(tuned, cliff)).collect()
}

fn point<'t>(tuned: &'t Tuned, places: &'t Places) -> Point<'t> {
    let outcome = &tuned.points[places];
    Point {
        places,
        settings: settings(tuned, places),
        value: tuned.value(places),
        programs: outcome.figures().unwrap_or_default(),
        impossible: match outcome {
            Outcome::Impossible(why) => Some(why),
            Outcome::Ran(_) => None,
        },
        against_today: against_today(tuned, places),
    }
}

fn against_today(tuned: &Tuned, places: &Places) -> Option<Against> {
    let judged = tuned.samples.as_ref()?.against_today(places)?;
    Some(Against {
        ratio: judged.ratio,
        low: judged.interval.map(|interval| interval.low),
        high: judged.interval.map(|interval| interval.high),
        verdict: judged.verdict,
    })
}

/// The point with the best figure: as the best, or as a candidate.
fn parted<'t>(tuned: &Tuned, best: Option<&'t Places>) -> (Option<&'t Places>, Option<&'t Places>) {
    match best.map(|best| tuned.standing(best)) {
        Some(Standing::Unproven) => (None, best),
        Some(Standing::Better | Standing::AsGood) | None => (best, None),
    }
}

pub(in crate::report) fn json(tuned: &Tuned) -> String {
    let best = tuned.best();
    let (proven, candidate) = parted(tuned, best);
    let own = tuned.keys.iter();
    pretty(&Document {
        suite: &tuned.suite,
        target: &tuned.target,
        goal: tuned.goal,
        quantity: tuned.goal.quantity(),
        programs: &tuned.programs,
        keys: &tuned.keys,
        points: tuned
            .points
            .keys()
            .map(|places| point(tuned, places))
            .collect(),
        best: proven.map(|best| point(tuned, best)),
        candidate: candidate.map(|best| point(tuned, best)),
        today: Today {
            settings: own
                .map(|key| (key.path.as_str(), key.today.as_deref()))
                .collect(),
            value: tuned.today_value(),
            programs: &tuned.today,
        },
        gain: best.and_then(|best| tuned.gain_over_today(best)),
        spread: tuned.spread.as_ref().map(|spread| Spreads {
            values: spread,
            best_extent: Extent::of(&spread.best),
            today_extent: Extent::of(&spread.today),
            gain_extent: Extent::of(&spread.gains(tuned.goal)),
        }),
        cliff: best.map_or(Vec::new(), |best| tuned.steps(best)),
        cliffs: falls(tuned, &tuned.cliffs()),
        wide_steps: falls(tuned, &tuned.wide_steps()),
        on_cliff: best.is_some_and(|best| tuned.on_cliff(best)),
        safe: proven
            .and_then(|_| tuned.safe())
            .map(|safe| point(tuned, safe)),
        at_an_end: tuned
            .at_an_end()
            .into_iter()
            .map(|(path, _)| path)
            .collect(),
        no_effect: tuned.idle_keys(),
        method: &tuned.method,
        notes: &tuned.notes,
    })
}

/// One line for each point that was tried.
pub(in crate::report) fn csv(tuned: &Tuned) -> String {
    let (best, candidate) = parted(tuned, tuned.best());
    let record = |(places, outcome): (&Places, &Outcome)| -> Vec<Field> {
        let settings = settings(tuned, places).into_iter();
        let settings: Vec<String> = settings
            .map(|(path, value)| format!("{path}={value}"))
            .collect();
        let of = |goal: Goal| {
            let value = outcome.figures().and_then(|figures| goal.value(figures));
            value.map_or(String::new(), number)
        };
        vec![
            ("settings", settings.join(" ")),
            ("kb_per_s", of(Goal::Throughput)),
            ("call_p99_ms", of(Goal::Latency)),
            ("cpu_ms_per_mib", of(Goal::Cpu)),
            ("best", (Some(places) == best).to_string()),
            ("candidate", (Some(places) == candidate).to_string()),
            ("today", tuned.is_today(places).to_string()),
            (
                "impossible",
                match outcome {
                    Outcome::Impossible(why) => why.clone(),
                    Outcome::Ran(_) => String::new(),
                },
            ),
        ]
    };
    let records: Vec<Vec<Field>> = tuned.points.iter().map(record).collect();
    written(&records)
}
