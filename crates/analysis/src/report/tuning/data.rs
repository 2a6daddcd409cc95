//! Result of a tuning search as JSON with all data, and as CSV with a line for each point.

use crate::comparison::Verdict;
use crate::report::csv::{CsvField, format_number, format_records};
use crate::report::json::render_pretty;
use crate::tuning::{
    BestStanding, GridPoint, ParameterStep, PointOutcome, SeedSpread, TuningResult,
};
use crate::tuning::{
    ParameterCliff, ProgramFigures, SearchMethod, TunedParameter, TuningGoal, ValueRange,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Result of a search in the `tune` contract.
#[derive(Serialize)]
struct TuningJson<'t> {
    suite: &'t str,
    target: &'t str,
    goal: TuningGoal,
    /// Quantity that the search compares.
    quantity: &'static str,
    programs: &'t [String],
    keys: &'t [TunedParameter],
    points: Vec<PointJson<'t>>,
    /// Best point; absent where nothing is shown to be better than today's settings.
    best: Option<PointJson<'t>>,
    /// Point with the best figure, where its gain is not confirmed.
    #[serde(rename = "candidate")]
    candidate_point: Option<PointJson<'t>>,
    #[serde(rename = "today")]
    today_point: TodayJson<'t>,
    /// Gain of the best point or the candidate over today's settings, as a share.
    gain: Option<f64>,
    #[serde(rename = "spread")]
    seed_spread: Option<SpreadJson<'t>>,
    #[serde(rename = "cliff")]
    steps_from_best: Vec<ParameterStep>,
    on_cliff: bool,
    /// Cliffs between all points that were tried.
    cliffs: Vec<CliffJson<'t>>,
    /// Falls as deep as a cliff, between values too far apart to tell a cliff from a slope.
    wide_steps: Vec<CliffJson<'t>>,
    /// Best point among those on no cliff, where the best one is on a cliff.
    safe: Option<PointJson<'t>>,
    at_an_end: Vec<&'t str>,
    no_effect: Vec<&'t str>,
    method: &'t SearchMethod,
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
    settings: BTreeMap<&'t str, &'t str>,
}

#[derive(Serialize)]
struct PointJson<'t> {
    #[serde(rename = "places")]
    value_indices: &'t [usize],
    settings: BTreeMap<&'t str, &'t str>,
    value: Option<f64>,
    programs: &'t [ProgramFigures],
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
struct TodayJson<'t> {
    settings: BTreeMap<&'t str, Option<&'t str>>,
    value: Option<f64>,
    programs: &'t [ProgramFigures],
}

#[derive(Serialize)]
struct SpreadJson<'t> {
    #[serde(flatten)]
    values: &'t SeedSpread,
    best_extent: Option<ValueRange>,
    today_extent: Option<ValueRange>,
    gain_extent: Option<ValueRange>,
}

fn settings_of_point<'t>(tuned: &'t TuningResult, places: &[usize]) -> BTreeMap<&'t str, &'t str> {
    let pairs = tuned.parameters.iter().zip(places);
    pairs
        .map(|(key, place)| (key.path.as_str(), key.values[*place].as_str()))
        .collect()
}

fn cliff_json<'t>(tuned: &'t TuningResult, cliff: &ParameterCliff) -> CliffJson<'t> {
    let key = &tuned.parameters[cliff.parameter_index];
    let value = |places: &GridPoint| key.values[places[cliff.parameter_index]].as_str();
    CliffJson {
        path: &key.path,
        from: value(&cliff.top_point),
        to: value(&cliff.bottom_point),
        from_value: tuned.goal_value(&cliff.top_point),
        to_value: tuned.goal_value(&cliff.bottom_point),
        gain: cliff.gain,
        expected_gain: cliff.expected_gain,
        settings: settings_of_point(tuned, &cliff.top_point),
    }
}

fn cliffs_json<'t>(tuned: &'t TuningResult, cliffs: &[ParameterCliff]) -> Vec<CliffJson<'t>> {
    cliffs
        .iter()
        .map(|cliff| cliff_json(tuned, cliff))
        .collect()
}

fn point_json<'t>(tuned: &'t TuningResult, places: &'t GridPoint) -> PointJson<'t> {
    let outcome = &tuned.points[places];
    PointJson {
        value_indices: places,
        settings: settings_of_point(tuned, places),
        value: tuned.goal_value(places),
        programs: outcome.measured_figures().unwrap_or_default(),
        impossible: match outcome {
            PointOutcome::Impossible(why) => Some(why),
            PointOutcome::Measured(_) => None,
        },
        against_today: compare_with_today(tuned, places),
    }
}

fn compare_with_today(tuned: &TuningResult, places: &GridPoint) -> Option<TodayComparison> {
    let judged = tuned.samples.as_ref()?.compare_with_today(places)?;
    Some(TodayComparison {
        ratio: judged.ratio,
        low: judged.interval.map(|interval| interval.min),
        high: judged.interval.map(|interval| interval.max),
        verdict: judged.verdict,
    })
}

/// Divides the point with the best figure into a confirmed best and an unconfirmed
/// candidate. A point that neither is better nor leads is neither.
fn none_if_today<'t>(
    tuned: &TuningResult,
    best: Option<&'t GridPoint>,
) -> (Option<&'t GridPoint>, Option<&'t GridPoint>) {
    match best.map(|best| tuned.standing_of_best(best)) {
        Some(BestStanding::Unproven) => (None, best.filter(|best| tuned.is_leading(best))),
        Some(BestStanding::Better | BestStanding::AsGoodAsToday) | None => (best, None),
    }
}

pub(in crate::report) fn render_json(tuned: &TuningResult) -> String {
    let best = tuned.best_point();
    let (proven, candidate) = none_if_today(tuned, best);
    let own = tuned.parameters.iter();
    render_pretty(&TuningJson {
        suite: &tuned.suite,
        target: &tuned.target,
        goal: tuned.goal,
        quantity: tuned.goal.quantity(),
        programs: &tuned.programs,
        keys: &tuned.parameters,
        points: tuned
            .points
            .keys()
            .map(|places| point_json(tuned, places))
            .collect(),
        best: proven.map(|best| point_json(tuned, best)),
        candidate_point: candidate.map(|best| point_json(tuned, best)),
        today_point: TodayJson {
            settings: own
                .map(|key| (key.path.as_str(), key.today_value.as_deref()))
                .collect(),
            value: tuned.today_value(),
            programs: &tuned.today_figures,
        },
        gain: best.and_then(|best| tuned.gain_over_today(best)),
        seed_spread: tuned.seed_spread.as_ref().map(|spread| SpreadJson {
            values: spread,
            best_extent: ValueRange::from_values(&spread.best_values),
            today_extent: ValueRange::from_values(&spread.today_values),
            gain_extent: ValueRange::from_values(&spread.gains(tuned.goal)),
        }),
        steps_from_best: best.map_or(Vec::new(), |best| tuned.list_steps(best)),
        cliffs: cliffs_json(tuned, &tuned.find_cliffs()),
        wide_steps: cliffs_json(tuned, &tuned.find_wide_steps()),
        on_cliff: best.is_some_and(|best| tuned.is_on_cliff(best)),
        safe: proven
            .and_then(|_| tuned.safe_point())
            .map(|safe| point_json(tuned, safe)),
        at_an_end: tuned
            .parameters_at_range_end()
            .into_iter()
            .map(|one| one.path)
            .collect(),
        no_effect: tuned.parameters_without_effect(),
        method: &tuned.method,
        notes: &tuned.notes,
    })
}

/// Formats the search as CSV, one line for each point that was tried.
pub(in crate::report) fn render_csv(tuned: &TuningResult) -> String {
    let (best, candidate) = none_if_today(tuned, tuned.best_point());
    let record = |(places, outcome): (&GridPoint, &PointOutcome)| -> Vec<CsvField> {
        let settings = settings_of_point(tuned, places).into_iter();
        let settings: Vec<String> = settings
            .map(|(path, value)| format!("{path}={value}"))
            .collect();
        let of = |goal: TuningGoal| {
            let value = outcome
                .measured_figures()
                .and_then(|figures| goal.value_of_programs(figures));
            value.map_or(String::new(), format_number)
        };
        vec![
            ("settings", settings.join(" ")),
            ("kb_per_s", of(TuningGoal::Throughput)),
            ("call_p99_ms", of(TuningGoal::Latency)),
            ("cpu_ms_per_mib", of(TuningGoal::Cpu)),
            ("best", (Some(places) == best).to_string()),
            ("candidate", (Some(places) == candidate).to_string()),
            ("today", tuned.is_today(places).to_string()),
            (
                "impossible",
                match outcome {
                    PointOutcome::Impossible(why) => why.clone(),
                    PointOutcome::Measured(_) => String::new(),
                },
            ),
        ]
    };
    let records: Vec<Vec<CsvField>> = tuned.points.iter().map(record).collect();
    format_records(&records)
}
