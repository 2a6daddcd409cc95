//! Result of a tuning search as JSON with all data, and as CSV with a line for each point.

use crate::comparison::Verdict;
use crate::report::csv::{Field, format_records, number};
use crate::report::json::pretty;
use crate::tuning::{Cliff, Extent, Figures, Goal, Key, Method};
use crate::tuning::{Outcome, Places, Spread, Standing, Step, Tuned};
use serde::Serialize;
use std::collections::BTreeMap;

/// Result of a search in the `tune` contract.
#[derive(Serialize)]
struct Document<'t> {
    suite: &'t str,
    target: &'t str,
    goal: Goal,
    /// Quantity that the search compares.
    quantity: &'static str,
    programs: &'t [String],
    keys: &'t [Key],
    points: Vec<Point<'t>>,
    /// Best point; absent where nothing is shown to be better than today's settings.
    best: Option<Point<'t>>,
    /// Point with the best figure, where its gain is not confirmed.
    candidate: Option<Point<'t>>,
    today: Today<'t>,
    /// Gain of the best point or the candidate over today's settings, as a share.
    gain: Option<f64>,
    spread: Option<SpreadJson<'t>>,
    /// Steps from the best point to its neighbours.
    cliff: Vec<Step>,
    on_cliff: bool,
    /// Cliffs between all points that were tried.
    cliffs: Vec<CliffJson<'t>>,
    /// Falls as deep as a cliff, between values too far apart to tell a cliff from a slope.
    wide_steps: Vec<CliffJson<'t>>,
    /// Best point among those on no cliff, where the best one is on a cliff.
    safe: Option<Point<'t>>,
    at_an_end: Vec<&'t str>,
    no_effect: Vec<&'t str>,
    method: &'t Method,
    notes: &'t [String],
}

/// Step down a cliff in the contract.
#[derive(Serialize)]
struct CliffJson<'t> {
    path: &'t str,
    from: &'t str,
    to: &'t str,
    from_value: Option<f64>,
    to_value: Option<f64>,
    /// Gain of the step as a share.
    gain: f64,
    /// Gain that the surrounding steps predict, as a share.
    expected_gain: f64,
    /// Settings of all parameters at the edge of the cliff.
    settings: BTreeMap<&'t str, &'t str>,
}

#[derive(Serialize)]
struct Point<'t> {
    places: &'t [usize],
    settings: BTreeMap<&'t str, &'t str>,
    value: Option<f64>,
    programs: &'t [Figures],
    impossible: Option<&'t str>,
    /// Comparison with today's settings on real storage: the ratio with its 99 % interval, and the
    /// verdict.
    against_today: Option<TodayComparison>,
}

#[derive(Serialize)]
struct TodayComparison {
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
struct SpreadJson<'t> {
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

fn fall<'t>(tuned: &'t Tuned, cliff: &Cliff) -> CliffJson<'t> {
    let key = &tuned.keys[cliff.key];
    let value = |places: &Places| key.values[places[cliff.key]].as_str();
    CliffJson {
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

fn falls<'t>(tuned: &'t Tuned, cliffs: &[Cliff]) -> Vec<CliffJson<'t>> {
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

fn against_today(tuned: &Tuned, places: &Places) -> Option<TodayComparison> {
    let judged = tuned.samples.as_ref()?.against_today(places)?;
    Some(TodayComparison {
        ratio: judged.ratio,
        low: judged.interval.map(|interval| interval.low),
        high: judged.interval.map(|interval| interval.high),
        verdict: judged.verdict,
    })
}

/// Divides the point with the best figure into a confirmed best and an unconfirmed candidate.
fn unless_today<'t>(
    tuned: &Tuned,
    best: Option<&'t Places>,
) -> (Option<&'t Places>, Option<&'t Places>) {
    match best.map(|best| tuned.standing(best)) {
        Some(Standing::Unproven) => (None, best),
        Some(Standing::Better | Standing::AsGood) | None => (best, None),
    }
}

pub(in crate::report) fn json(tuned: &Tuned) -> String {
    let best = tuned.best();
    let (proven, candidate) = unless_today(tuned, best);
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
        spread: tuned.spread.as_ref().map(|spread| SpreadJson {
            values: spread,
            best_extent: Extent::of(&spread.best),
            today_extent: Extent::of(&spread.today),
            gain_extent: Extent::of(&spread.gains(tuned.goal)),
        }),
        cliff: best.map_or(Vec::new(), |best| tuned.steps(best)),
        cliffs: falls(tuned, &tuned.cliffs()),
        wide_steps: falls(tuned, &tuned.find_wide_steps()),
        on_cliff: best.is_some_and(|best| tuned.on_cliff(best)),
        safe: proven
            .and_then(|_| tuned.safe())
            .map(|safe| point(tuned, safe)),
        at_an_end: tuned
            .parameters_at_range_end()
            .into_iter()
            .map(|(path, _)| path)
            .collect(),
        no_effect: tuned.parameters_without_effect(),
        method: &tuned.method,
        notes: &tuned.notes,
    })
}

/// Formats the search as CSV, one line for each point that was tried.
pub(in crate::report) fn csv(tuned: &Tuned) -> String {
    let (best, candidate) = unless_today(tuned, tuned.best());
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
    format_records(&records)
}
