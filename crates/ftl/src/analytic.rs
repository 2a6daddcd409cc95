//! Write amplification by formula: units programmed per unit that the host wrote, in the steady
//! state. The over-provisioning `spare` is the share of the physical units of closed superblocks
//! that holds no mapped unit, in (0, 1).

/// Returns the root of `f` by bisection. `f` is negative at `low` and positive at `high`.
fn find_root_by_bisection(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns the valid share of a FIFO victim (the oldest superblock) under uniform random writes: x
/// = exp(-alpha (1 - x)) (Desnoyers, SYSTOR 2012).
pub fn fifo_victim_share(spare: f64) -> f64 {
    let alpha = 1.0 / (1.0 - spare);
    // Between 0 and the function's summit lies the root below 1.
    find_root_by_bisection(0.0, 1.0 - libm::log(alpha) / alpha, |x| {
        x - libm::exp(-alpha * (1.0 - x))
    })
}

/// Returns the write amplification of uniform random writes under FIFO garbage collection, which
/// collects the oldest superblock first.
pub fn fifo_write_amplification(spare: f64) -> f64 {
    1.0 / (1.0 - fifo_victim_share(spare))
}

/// Steady state of greedy garbage collection: shares of blocks by valid count.
#[derive(Debug, Clone, PartialEq)]
pub struct GreedySteadyState {
    /// Minimum number of valid mapping units in any block, which is the valid count of victims.
    pub victim_valid: u32,
    /// Constant c of the distribution: the share of blocks with k valid mapping units is c / k.
    pub share_constant: f64,
    /// Share of blocks whose valid count is `victim_valid`.
    pub victim_valid_share: f64,
}

/// Returns the steady state of uniform random writes under greedy garbage collection of blocks of
/// `units` mapping units.
///
/// # Panics
/// If `units` is 0 or `spare` is not in (0, 1).
pub fn solve_greedy_steady_state(spare: f64, units: u32) -> GreedySteadyState {
    assert!(units > 0 && spare > 0.0 && spare < 1.0);
    let (b, rho) = (f64::from(units), 1.0 - spare);
    // H_b - H_j, from j = b down.
    let mut tail = 0.0;
    let mut best = None;
    for j in (0..units).rev() {
        tail += 1.0 / f64::from(j + 1);
        let full = f64::from(j);
        let c = (rho * b - full) / ((b - full) - full * tail);
        let at_victim = 1.0 - c * tail;
        if c > 0.0 && at_victim >= -1e-12 && at_victim * full <= c * (1.0 + 1e-9) {
            best = Some(GreedySteadyState {
                victim_valid: j,
                share_constant: c,
                victim_valid_share: at_victim.max(0.0),
            });
            break;
        }
    }
    best.expect("some count balances what is written with what is collected")
}

/// Returns the write amplification of uniform random writes under greedy garbage collection of
/// blocks of `units` mapping units.
///
/// # Panics
/// If `units` is 0 or `spare` is not in (0, 1).
pub fn greedy_write_amplification(spare: f64, units: u32) -> f64 {
    solve_greedy_steady_state(spare, units).share_constant / (1.0 - spare)
}

/// Returns, for each count k from 0 to `units`, the share of blocks with at least k valid mapping
/// units.
fn shares_at_least(c: f64, units: u32, choices: u32) -> Vec<f64> {
    let mut shares = vec![0.0; units as usize + 2];
    for k in (1..=units as usize).rev() {
        shares[k] = solve_share_below(shares[k + 1], c / k as f64, f64::from(choices));
    }
    shares[0] = 1.0;
    shares
}

/// Returns the solution w of w = above + rate (1 - w^choices). The function is convex, so Newton's
/// steps from 1 never pass the root.
fn solve_share_below(above: f64, rate: f64, choices: f64) -> f64 {
    let mut w = 1.0;
    for _ in 0..60 {
        let power = libm::pow(w, choices - 1.0);
        let off = w - above - rate * (1.0 - power * w);
        let step = off / (1.0 + rate * choices * power);
        w -= step;
        if step < 1e-15 {
            break;
        }
    }
    w
}

/// Returns the mean-field steady state (Van Houdt) when the victim is the best of `choices` blocks
/// drawn at random: for each k the share of blocks with at least k valid mapping units, and the
/// constant c.
pub fn solve_choices_steady_state(spare: f64, units: u32, choices: u32) -> (Vec<f64>, f64) {
    let mapped = (1.0 - spare) * f64::from(units);
    let sum = |c: f64| shares_at_least(c, units, choices)[1..].iter().sum::<f64>();
    let c = find_root_by_bisection(0.0, 2.0 / spare, |c| sum(c) - mapped);
    (shares_at_least(c, units, choices), c)
}

/// Returns the write amplification of uniform random writes when the victim is the best of
/// `choices` random blocks of `units` mapping units.
pub fn choices_write_amplification(spare: f64, units: u32, choices: u32) -> f64 {
    solve_choices_steady_state(spare, units, choices).1 / (1.0 - spare)
}

/// Returns, for each class of mapping units, the number of writes per unit during one pass of FIFO
/// garbage collection over all closed superblocks. Classes are pairs of a share of the writes and a
/// share of the mapped units. A share exp(-rate) of a class is still valid when it is collected.
/// Host writes and moved units fill a superblock together.
pub fn fifo_cost_by_class(spare: f64, classes: &[(f64, f64)]) -> Vec<f64> {
    let mapped = 1.0 - spare;
    let rate = |y: f64, (writes, space): (f64, f64)| writes * y / (mapped * space);
    // Units of a class programmed in that time, of all that it has.
    let programmed = |rate: f64| match rate < 1e-9 {
        true => 1.0,
        false => rate / (1.0 - libm::exp(-rate)),
    };
    let used = classes.iter().filter(|(_, space)| *space > 0.0);
    let y = find_root_by_bisection(0.0, 1.0, |y| {
        let of_class = |&class: &(f64, f64)| class.1 * programmed(rate(y, class));
        mapped * used.clone().map(of_class).sum::<f64>() - 1.0
    });
    let rate_of = |&class: &(f64, f64)| match class.1 > 0.0 {
        true => rate(y, class),
        false => 0.0,
    };
    classes.iter().map(rate_of).collect()
}

/// Returns the write amplification of hot and cold data in separate superblocks under cost-benefit
/// garbage collection. Each kind of data is then written uniformly. The greatest benefit (1 - x)
/// age / 2x is the same for both kinds of victims, which determines the share of space that hot
/// data get.
pub fn hot_cold_cost_benefit_write_amplification(spare: f64, writes: f64, space: f64) -> f64 {
    let mapped = 1.0 - spare;
    // Amplification, and benefit over cost, of a pool by its spare units.
    let pool = |(writes, space): (f64, f64), extra: f64| {
        let room = space * mapped + extra;
        let x = fifo_victim_share(extra / room);
        let age = room * (1.0 - x) / writes;
        (1.0 / (1.0 - x), (1.0 - x) * age / (2.0 * x))
    };
    let (hot, cold) = ((writes, space), (1.0 - writes, 1.0 - space));
    // The more room the hot ones have, the older and emptier are their victims.
    let extra = find_root_by_bisection(1e-9, spare - 1e-9, |extra| {
        pool(hot, extra).1 - pool(cold, spare - extra).1
    });
    writes * pool(hot, extra).0 + (1.0 - writes) * pool(cold, spare - extra).0
}

/// Returns the share of programmed mapping units that the host wrote, for hot and cold data under
/// FIFO garbage collection. A share `writes` of the writes goes to a share `space` of the units.
pub fn hot_cold_fresh_share(spare: f64, writes: f64, space: f64) -> f64 {
    let rates = fifo_cost_by_class(spare, &[(writes, space), (1.0 - writes, 1.0 - space)]);
    rates[0] * (1.0 - spare) * space / writes
}

/// Returns the write amplification of hot and cold writes in one write frontier under FIFO garbage
/// collection.
pub fn hot_cold_fifo_write_amplification(spare: f64, writes: f64, space: f64) -> f64 {
    1.0 / hot_cold_fresh_share(spare, writes, space)
}

/// Returns the write amplification of hot and cold data in separate pools, with the best split of
/// the over-provisioning.
pub fn hot_cold_separated_write_amplification(spare: f64, writes: f64, space: f64) -> f64 {
    let mapped = 1.0 - spare;
    let pool = |share: f64, extra: f64| fifo_write_amplification(extra / (share * mapped + extra));
    (1..1000)
        .map(|i| f64::from(i) / 1000.0 * spare)
        .map(|hot| writes * pool(space, hot) + (1.0 - writes) * pool(1.0 - space, spare - hot))
        .fold(f64::INFINITY, f64::min)
}

/// Returns the over-provisioning after a share `trimmed` of the mapped units is trimmed at random.
pub fn spare_after_trim(spare: f64, trimmed: f64) -> f64 {
    1.0 - (1.0 - spare) * (1.0 - trimmed)
}

/// Returns the over-provisioning when a share `trims` of all requests each trims a random mapped
/// unit.
pub fn spare_with_trims(spare: f64, trims: f64) -> f64 {
    1.0 - (1.0 - spare) * (1.0 - 2.0 * trims) / (1.0 - trims)
}

/// Returns the utilisation of many dies with `outstanding` random reads in flight per die. All
/// reads have the same mean service time, with coefficient of variation `variation` (0: constant).
pub fn die_utilisation_by_load(outstanding: f64, variation: f64) -> f64 {
    let queue = 0.5 * (1.0 + variation * variation);
    find_root_by_bisection(0.0, 1.0, |u| {
        u * (1.0 - u) + queue * u * u - outstanding * (1.0 - u)
    })
}

/// Returns the utilisation of `dies` dies with `outstanding` random reads in flight in total, by
/// mean value analysis. An arriving read sees the dies as if it were not there, and waits for half
/// of the service in progress (more if service times vary). [`die_utilisation_by_load`] is the limit for many
/// dies.
pub fn die_utilisation(dies: u32, outstanding: u32, variation: f64) -> f64 {
    let per_die = |reads: u32| f64::from(reads) / f64::from(dies);
    let rest = 0.5 * (1.0 + variation * variation);
    (1..=outstanding).fold(0.0, |busy, reads| {
        per_die(reads) / (1.0 + per_die(reads - 1) - busy * (1.0 - rest))
    })
}

/// Returns the expected share of `dies` that a number of random reads hits. This is the maximum
/// utilisation, reached if no read waits for another.
pub fn busy_die_count(dies: f64, outstanding: f64) -> f64 {
    1.0 - libm::pow(1.0 - 1.0 / dies, outstanding)
}

/// Returns the steady-state rate of random writes of `dies` dies, in writes per second. Each die
/// programs `program_units` mapping units in `program_s` seconds, and needs `copy_s` seconds to
/// read a unit that garbage collection moves.
pub fn random_writes_per_s(
    dies: f64,
    amplification: f64,
    (program_s, program_units): (f64, f64),
    copy_s: f64,
) -> f64 {
    let program = amplification * program_s / program_units;
    dies / (program + (amplification - 1.0) * copy_s)
}

/// Returns the utilisation of `dies` dies with exponential service times and `outstanding` reads in
/// flight.
pub fn die_utilisation_exponential(dies: f64, outstanding: f64) -> f64 {
    outstanding / (outstanding + dies - 1.0)
}

/// Returns the time in seconds until a buffer with these fill and drain rates is full; `None` if it
/// never is.
pub fn time_until_buffer_full_s(
    buffer_bytes: f64,
    arrival_bytes_s: f64,
    drain_bytes_s: f64,
) -> Option<f64> {
    (arrival_bytes_s > drain_bytes_s).then(|| buffer_bytes / (arrival_bytes_s - drain_bytes_s))
}

/// Returns the number of full drive writes per day over `years` that `cycles` erases of each block
/// allow.
pub fn drive_writes_per_day(cycles: f64, amplification: f64, years: f64) -> f64 {
    cycles / amplification / (365.0 * years)
}
