//! Division of the difference between two computers into the contributions of single changes from
//! the first to the second.
//!
//! The changes are applied in every possible order. The contribution of a change is its mean over
//! the orders. Since every order ends at the second computer, the contributions sum to the
//! difference. With too many changes for that, random orders are drawn.

use super::ExplanationOptions;
use super::rerun::{self, ModelVariant, RerunOutcome};
use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use crate::plan::ModelPlan;
use diskperf_analysis::explanation::difference::{
    Contribution, ContributionMethod, RequestCounts, average_over_all_orders, round_shares,
};
use diskperf_catalogue::{Component, Setting};
use std::collections::BTreeMap;

/// Maximum number of changes whose subsets are all run.
const EXACT_CHANGES_MAX: usize = 7;
/// Number of random orders if there are more changes.
const SAMPLED_ORDERS: u32 = 24;

/// A difference between the two compared computers, or several that can only be applied together.
#[derive(Clone)]
struct SettingMove {
    descriptions: Vec<String>,
    settings: Vec<Setting>,
    drives: Option<usize>,
    seed: Option<u64>,
}

/// The two compared computers with their plans: start and end of the changes.
pub(super) struct ComparedPlans<'p> {
    pub(super) a: (&'p ModelPlan, &'p ModelComputer),
    pub(super) b: (&'p ModelPlan, &'p ModelComputer),
}

/// Contributions to each program's difference, and the method that found them.
type Contributions = (Vec<Vec<Contribution>>, ContributionMethod);

/// Returns the contribution of each change to the elapsed time of each program. `requests` are
/// those of programs with a fixed duration; their times are scaled to the request count of the
/// first computer.
pub(super) fn measure_contributions(
    ends: &ComparedPlans<'_>,
    requests: &[Option<RequestCounts>],
    (a, b): (&[RerunOutcome], &[RerunOutcome]),
    means: &ExplanationOptions<'_>,
) -> Result<Option<Contributions>, LaboratoryError> {
    let times = ElapsedTimes {
        requests,
        a: scale_times(a, requests),
        b: scale_times(b, requests),
    };
    let Some(moves) = list_moves(ends) else {
        return Ok(None);
    };
    if moves.is_empty() {
        return Ok(None);
    }
    let (per_program, method) = if moves.len() <= EXACT_CHANGES_MAX {
        exact_contributions(ends, &moves, &times, means)?
    } else {
        sampled_contributions(ends, &moves, &times, means)?
    };
    let told = |shares: Vec<i64>| {
        let parts = moves.iter().zip(shares).map(|(one, ns)| Contribution {
            setting_changes: one.descriptions.clone(),
            contribution_ns: ns,
        });
        let mut parts: Vec<Contribution> = parts.collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.contribution_ns.unsigned_abs()));
        parts
    };
    Ok(Some((per_program.into_iter().map(told).collect(), method)))
}

struct ElapsedTimes<'r> {
    requests: &'r [Option<RequestCounts>],
    a: Vec<i64>,
    b: Vec<i64>,
}

/// Scales the elapsed time of each program to the request count of the first computer.
fn scale_times(outcomes: &[RerunOutcome], requests: &[Option<RequestCounts>]) -> Vec<i64> {
    let pairs = outcomes.iter().zip(requests);
    pairs
        .map(|(outcome, requests)| outcome.elapsed_for_requests(*requests).0 as i64)
        .collect()
}

/// Returns the differences between the two computers, in the smallest steps that a computer can be
/// built with.
fn list_moves(ends: &ComparedPlans<'_>) -> Option<Vec<SettingMove>> {
    let mut fine: Vec<SettingMove> = Vec::new();
    let mut coarse: Vec<SettingMove> = Vec::new();
    for component in Component::ALL {
        let (one, all) = moves_of_component(ends, component);
        fine.extend(one);
        coarse.extend(all);
    }
    let whole = moves_of_whole_systems(ends);
    fine.extend(whole.iter().cloned());
    coarse.extend(whole);
    // By parameter, where every one of them can be changed by itself.
    let alone = |moves: &[SettingMove]| {
        moves
            .iter()
            .all(|one| build_computer(ends, &[one]).is_some())
    };
    if alone(&fine) && (fine.len() > EXACT_CHANGES_MAX || are_subsets_buildable(ends, &fine)) {
        return Some(fine);
    }
    // By component, joining those that only go together.
    while coarse.len() > 1 && !are_subsets_buildable(ends, &coarse) {
        coarse = join_dependent_moves(ends, coarse);
    }
    Some(coarse)
}

/// Returns the changes from one computer to another in one component: one by one, and all together.
fn moves_of_component(
    ends: &ComparedPlans<'_>,
    component: Component,
) -> (Vec<SettingMove>, Option<SettingMove>) {
    let of = |computer: &ModelComputer| -> BTreeMap<String, String> {
        let prefix = format!("{}.", component.name());
        let all = computer.parameters.iter();
        all.filter(|parameter| parameter.path.starts_with(&prefix))
            .map(|parameter| (parameter.path.clone(), parameter.value.clone()))
            .collect()
    };
    let (a, b) = (of(ends.a.1), of(ends.b.1));
    let differing: Vec<(&String, &String)> = b
        .iter()
        .filter(|(path, value)| a.get(*path) != Some(value))
        .collect();
    let (from, to) = (
        ends.a.1.component_names.get(&component),
        ends.b.1.component_names.get(&component),
    );
    if differing.is_empty() && a.len() == b.len() {
        return (Vec::new(), None);
    }
    let word = |path: &String, value: &String| match a.get(path) {
        Some(before) => format!("{path}: {before} to {value}"),
        None => format!("{path}: {value}"),
    };
    let one = |(path, value): &(&String, &String)| SettingMove {
        descriptions: vec![word(path, value)],
        settings: vec![Setting::new(path, value)],
        drives: None,
        seed: None,
    };
    // Drives by themselves have no other components.
    let named = |name: Option<&String>| name.map_or("none", |name| name).to_owned();
    let words = match from == to {
        true => differing
            .iter()
            .map(|(path, value)| word(path, value))
            .collect(),
        false => vec![format!("{component}: {} to {}", named(from), named(to))],
    };
    let changed = to.filter(|_| from != to);
    let changed = changed.map(|to| Setting::new(component.name(), to));
    let values = differing
        .iter()
        .map(|(path, value)| Setting::new(path, value));
    let all = SettingMove {
        descriptions: words,
        settings: changed.into_iter().chain(values).collect(),
        drives: None,
        seed: None,
    };
    let same_keys = a.keys().eq(b.keys());
    let fine = match same_keys {
        true => differing.iter().map(one).collect(),
        false => vec![all.clone()],
    };
    (fine, Some(all))
}

/// Returns the differences between the two plans outside of components: drives configured, drives
/// used, and seed.
fn moves_of_whole_systems(ends: &ComparedPlans<'_>) -> Vec<SettingMove> {
    let (a, b) = (ends.a.0, ends.b.0);
    let mut found = Vec::new();
    let nothing = SettingMove {
        descriptions: Vec::new(),
        settings: Vec::new(),
        drives: None,
        seed: None,
    };
    let configured = (
        ends.a.1.specification.drives.len(),
        ends.b.1.specification.drives.len(),
    );
    if configured.0 != configured.1 {
        found.push(SettingMove {
            descriptions: vec![format!(
                "drives configured: {} to {}",
                configured.0, configured.1
            )],
            settings: vec![Setting::new("drives", &configured.1.to_string())],
            ..nothing.clone()
        });
    }
    if a.drive_count != b.drive_count {
        found.push(SettingMove {
            descriptions: vec![format!(
                "drives that run the program: {} to {}",
                a.drive_count, b.drive_count
            )],
            drives: Some(b.drive_count),
            ..nothing.clone()
        });
    }
    let seeds = (a.experiment.seed, b.experiment.seed);
    if seeds.0 != seeds.1 {
        found.push(SettingMove {
            descriptions: vec![format!("seed: {} to {}", seeds.0, seeds.1)],
            seed: Some(seeds.1),
            ..nothing
        });
    }
    found
}

/// Builds the first of two compared computers with some changes towards the second; `None` if that
/// is not possible.
fn build_computer(ends: &ComparedPlans<'_>, moves: &[&SettingMove]) -> Option<ModelComputer> {
    let (plan, computer) = ends.a;
    let own = plan.settings_of_computer(computer);
    let changes = moves.iter().flat_map(|one| &one.settings);
    let settings: Vec<Setting> = own.iter().chain(changes).cloned().collect();
    let built = plan.rebuild_computer(&settings)?;
    let drives = moves
        .iter()
        .find_map(|one| one.drives)
        .unwrap_or(plan.drive_count);
    let fits = built.configured_drive_count() >= drives && built.medium() == computer.medium();
    fits.then_some(built)
}

fn choose_moves(moves: &[SettingMove], subset: usize) -> Vec<&SettingMove> {
    let within = |(place, _): &(usize, &SettingMove)| subset & (1 << place) != 0;
    moves
        .iter()
        .enumerate()
        .filter(within)
        .map(|(_, one)| one)
        .collect()
}

/// Reports whether a computer can be built with every subset of the changes. With the full set it
/// always can.
fn are_subsets_buildable(ends: &ComparedPlans<'_>, moves: &[SettingMove]) -> bool {
    if moves.len() > EXACT_CHANGES_MAX {
        return false;
    }
    (1..(1_usize << moves.len()) - 1)
        .all(|subset| build_computer(ends, &choose_moves(moves, subset)).is_some())
}

/// Joins two of the changes to one: a pair that can only be built together, otherwise the first two
/// changes that cannot be built alone.
fn join_dependent_moves(ends: &ComparedPlans<'_>, moves: Vec<SettingMove>) -> Vec<SettingMove> {
    let count = moves.len();
    let bad: Vec<usize> = (0..count)
        .filter(|place| build_computer(ends, &[&moves[*place]]).is_none())
        .collect();
    let pair = bad.iter().find_map(|one| {
        let with = (0..count).find(|other| {
            other != one && build_computer(ends, &[&moves[*one], &moves[*other]]).is_some()
        })?;
        Some((*one, with))
    });
    let first = bad.first().copied().unwrap_or(0);
    let second = bad.get(1).copied().unwrap_or(usize::from(first == 0));
    let (one, other) = pair.unwrap_or((first, second));
    let (low, high) = (one.min(other), one.max(other));
    let mut moves = moves;
    let taken = moves.remove(high);
    let kept = &mut moves[low];
    kept.descriptions.extend(taken.descriptions);
    kept.settings.extend(taken.settings);
    kept.drives = kept.drives.or(taken.drives);
    kept.seed = kept.seed.or(taken.seed);
    moves
}

/// Returns the elapsed time of each program after some of the changes.
fn measure_elapsed(
    ends: &ComparedPlans<'_>,
    moves: &[&SettingMove],
    times: &ElapsedTimes<'_>,
    means: &ExplanationOptions<'_>,
) -> Result<Vec<i64>, LaboratoryError> {
    let plan = ends.a.0;
    let computer = build_computer(ends, moves).ok_or_else(|| {
        LaboratoryError::Workload("a computer between the two cannot be built".to_owned())
    })?;
    let variant = ModelVariant {
        drives: moves
            .iter()
            .find_map(|one| one.drives)
            .unwrap_or(plan.drive_count),
        seed: moves
            .iter()
            .find_map(|one| one.seed)
            .unwrap_or(plan.experiment.seed),
        ..ModelVariant::from_plan(plan, &computer)
    };
    let outcomes = rerun::rerun_programs(plan, &variant, means.stop)?;
    Ok(scale_times(&outcomes, times.requests))
}

fn exact_contributions(
    ends: &ComparedPlans<'_>,
    moves: &[SettingMove],
    times: &ElapsedTimes<'_>,
    means: &ExplanationOptions<'_>,
) -> Result<(Vec<Vec<i64>>, ContributionMethod), LaboratoryError> {
    let count = moves.len();
    let last = (1_usize << count) - 1;
    // Both ends are known.
    let between = means
        .watched_crew()
        .run_each(last.saturating_sub(1), |number| {
            measure_elapsed(ends, &choose_moves(moves, number + 1), times, means)
        })?;
    let of_program = |program: usize| {
        let of = |subset: usize| match subset {
            0 => times.a[program],
            subset if subset == last => times.b[program],
            subset => between[subset - 1][program],
        };
        average_over_all_orders(count, &(0..=last).map(of).collect::<Vec<_>>())
    };
    let shares = (0..times.a.len()).map(of_program).collect();
    let runs = last.saturating_sub(1) as u32;
    Ok((shares, ContributionMethod::AllOrders { runs }))
}

fn draw_orders(count: usize) -> Vec<Vec<usize>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        // Vigna's splitmix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    };
    let mut all = Vec::new();
    for _ in 0..SAMPLED_ORDERS / 2 {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            order.swap(place, draw(place + 1));
        }
        all.push(order.iter().rev().copied().collect());
        all.push(order);
    }
    all
}

fn sampled_contributions(
    ends: &ComparedPlans<'_>,
    moves: &[SettingMove],
    times: &ElapsedTimes<'_>,
    means: &ExplanationOptions<'_>,
) -> Result<(Vec<Vec<i64>>, ContributionMethod), LaboratoryError> {
    let orders = draw_orders(moves.len());
    let mut subsets: Vec<Vec<usize>> = Vec::new();
    for order in &orders {
        for length in 1..order.len() {
            let mut subset = order[..length].to_vec();
            subset.sort_unstable();
            subsets.push(subset);
        }
    }
    subsets.sort_unstable();
    subsets.dedup();
    let found = means.watched_crew().run_each(subsets.len(), |number| {
        let chosen: Vec<&SettingMove> =
            subsets[number].iter().map(|place| &moves[*place]).collect();
        measure_elapsed(ends, &chosen, times, means)
    })?;
    let of = |members: &[usize], program: usize| {
        let mut subset = members.to_vec();
        subset.sort_unstable();
        match subset.len() {
            0 => times.a[program],
            all if all == moves.len() => times.b[program],
            _ => found[subsets.binary_search(&subset).expect("it was run")][program],
        }
    };
    let of_program = |program: usize| {
        let mut sums = vec![0_i128; moves.len()];
        for order in &orders {
            for (place, one) in order.iter().enumerate() {
                let added = of(&order[..=place], program) - of(&order[..place], program);
                sums[*one] += i128::from(added);
            }
        }
        round_shares(&sums, orders.len() as i128)
    };
    let shares = (0..times.a.len()).map(of_program).collect();
    let method = ContributionMethod::SampledOrders {
        orders: orders.len() as u32,
        runs: subsets.len() as u32,
    };
    Ok((shares, method))
}
