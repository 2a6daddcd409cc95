//! Write amplification by formula: units programmed per unit that the host wrote, in
//! the long run. A spare is the share of the physical units of closed superblocks
//! that holds no mapped unit, in (0, 1).

/// Where `f`, which is negative at `low` and positive at `high`, is zero.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
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

/// The share of a victim that is valid under uniform random writes when the oldest
/// superblock is collected: x = exp(-alpha (1 - x)) (Desnoyers, SYSTOR 2012).
pub fn fifo_victim_share(spare: f64) -> f64 {
    let alpha = 1.0 / (1.0 - spare);
    // Between 0 and the function's summit lies the root below 1.
    bisect(0.0, 1.0 - libm::log(alpha) / alpha, |x| {
        x - libm::exp(-alpha * (1.0 - x))
    })
}

/// Uniform random writes, the oldest superblock collected first.
pub fn fifo(spare: f64) -> f64 {
    1.0 / (1.0 - fifo_victim_share(spare))
}

/// The greedy policy's steady state: shares of blocks by valid count.
#[derive(Debug, Clone, PartialEq)]
pub struct Greedy {
    /// Blocks hold at least this many valid units: the victims' count.
    pub victim_valid: u32,
    /// The share of blocks with k valid units is this over k.
    pub c: f64,
    /// The share of blocks at `victim_valid`.
    pub at_victim: f64,
}

/// The state of uniform random writes under greedy collection of blocks of `units`.
///
/// # Panics
/// If `units` is 0 or the spare is not in (0, 1).
pub fn greedy_state(spare: f64, units: u32) -> Greedy {
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
            best = Some(Greedy {
                victim_valid: j,
                c,
                at_victim: at_victim.max(0.0),
            });
            break;
        }
    }
    best.expect("some count balances what is written with what is collected")
}

/// Uniform random writes, greedy collection of blocks of `units`.
///
/// # Panics
/// If `units` is 0 or the spare is not in (0, 1).
pub fn greedy(spare: f64, units: u32) -> f64 {
    greedy_state(spare, units).c / (1.0 - spare)
}

/// For each count k of 0 to `units`, the share of blocks with at least k valid units.
fn at_least(c: f64, units: u32, choices: u32) -> Vec<f64> {
    let mut shares = vec![0.0; units as usize + 2];
    for k in (1..=units as usize).rev() {
        shares[k] = least_share(shares[k + 1], c / k as f64, f64::from(choices));
    }
    shares[0] = 1.0;
    shares
}

/// The w of w = above + rate (1 - w^choices): the function is convex, so Newton's steps
/// from 1 never pass the root.
fn least_share(above: f64, rate: f64, choices: f64) -> f64 {
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

/// For each k, the share of blocks with at least k valid units, and the constant c, when
/// the victim is the best of `choices` blocks drawn at random (Van Houdt's mean field).
pub fn choices_state(spare: f64, units: u32, choices: u32) -> (Vec<f64>, f64) {
    let mapped = (1.0 - spare) * f64::from(units);
    let sum = |c: f64| at_least(c, units, choices)[1..].iter().sum::<f64>();
    let c = bisect(0.0, 2.0 / spare, |c| sum(c) - mapped);
    (at_least(c, units, choices), c)
}

/// Uniform random writes, the best of `choices` random blocks of `units` collected.
pub fn choices(spare: f64, units: u32, choices: u32) -> f64 {
    choices_state(spare, units, choices).1 / (1.0 - spare)
}

/// How often the units of each class are written while as many units are programmed as all
/// closed superblocks hold, when the oldest is collected first: classes are shares of the
/// writes and of the mapped units. Of a class a share exp(-rate) is valid when it is
/// collected, and what the host writes and what is moved fill a superblock together.
pub fn fifo_rates(spare: f64, classes: &[(f64, f64)]) -> Vec<f64> {
    let mapped = 1.0 - spare;
    let rate = |y: f64, (writes, space): (f64, f64)| writes * y / (mapped * space);
    // Units of a class programmed in that time, of all that it has.
    let programmed = |rate: f64| match rate < 1e-9 {
        true => 1.0,
        false => rate / (1.0 - libm::exp(-rate)),
    };
    let used = classes.iter().filter(|(_, space)| *space > 0.0);
    let y = bisect(0.0, 1.0, |y| {
        let of_class = |&class: &(f64, f64)| class.1 * programmed(rate(y, class));
        mapped * used.clone().map(of_class).sum::<f64>() - 1.0
    });
    let rate_of = |&class: &(f64, f64)| match class.1 > 0.0 {
        true => rate(y, class),
        false => 0.0,
    };
    classes.iter().map(rate_of).collect()
}

/// Hot and cold data each in superblocks of their own, so that each is written uniformly,
/// and cost-benefit chooses among them: the greatest (1 - x) age / 2x is the same for both
/// kinds of victims, which gives the share of the room that the hot ones have.
pub fn hot_cold_cost_benefit(spare: f64, writes: f64, space: f64) -> f64 {
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
    let extra = bisect(1e-9, spare - 1e-9, |extra| {
        pool(hot, extra).1 - pool(cold, spare - extra).1
    });
    writes * pool(hot, extra).0 + (1.0 - writes) * pool(cold, spare - extra).0
}

/// The share of units that a hot and cold past programs for the host when the oldest
/// superblock is collected: share `writes` of the writes go to share `space` of the units.
pub fn hot_cold_fresh_share(spare: f64, writes: f64, space: f64) -> f64 {
    let rates = fifo_rates(spare, &[(writes, space), (1.0 - writes, 1.0 - space)]);
    rates[0] * (1.0 - spare) * space / writes
}

/// Hot and cold writes in one frontier, the oldest superblock collected first.
pub fn hot_cold_fifo(spare: f64, writes: f64, space: f64) -> f64 {
    1.0 / hot_cold_fresh_share(spare, writes, space)
}

/// Hot and cold data in pools of their own, with the best split of the spare.
pub fn hot_cold_split(spare: f64, writes: f64, space: f64) -> f64 {
    let mapped = 1.0 - spare;
    let pool = |share: f64, extra: f64| fifo(extra / (share * mapped + extra));
    (1..1000)
        .map(|i| f64::from(i) / 1000.0 * spare)
        .map(|hot| writes * pool(space, hot) + (1.0 - writes) * pool(1.0 - space, spare - hot))
        .fold(f64::INFINITY, f64::min)
}

/// The spare when share `trimmed` of the mapped units is unmapped at random.
pub fn spare_after_trim(spare: f64, trimmed: f64) -> f64 {
    1.0 - (1.0 - spare) * (1.0 - trimmed)
}

/// The spare when share `trims` of all requests unmap a random mapped unit.
pub fn spare_with_trims(spare: f64, trims: f64) -> f64 {
    1.0 - (1.0 - spare) * (1.0 - 2.0 * trims) / (1.0 - trims)
}

/// The utilisation of many dies with `outstanding` random reads per die, of one service
/// time whose coefficient of variation is `variation` (0: constant).
pub fn utilisation(outstanding: f64, variation: f64) -> f64 {
    let queue = 0.5 * (1.0 + variation * variation);
    bisect(0.0, 1.0, |u| {
        u * (1.0 - u) + queue * u * u - outstanding * (1.0 - u)
    })
}

/// The utilisation of `dies` with so many reads under way in all, as [`utilisation`] has it
/// of very many: mean value analysis, where a read that arrives sees the dies as if it
/// were not there, and waits for half of what is in service (more if it varies).
pub fn utilisation_of(dies: u32, outstanding: u32, variation: f64) -> f64 {
    let per_die = |reads: u32| f64::from(reads) / f64::from(dies);
    let rest = 0.5 * (1.0 + variation * variation);
    (1..=outstanding).fold(0.0, |busy, reads| {
        per_die(reads) / (1.0 + per_die(reads - 1) - busy * (1.0 - rest))
    })
}

/// The share of `dies` that so many random reads hit: more cannot be busy, and that many
/// are if no read waits for another.
pub fn dies_hit(dies: f64, outstanding: f64) -> f64 {
    1.0 - libm::pow(1.0 - 1.0 / dies, outstanding)
}

/// Random writes per second in the steady state of `dies`, each of which programs
/// `program_units` in `program_s` and takes `copy_s` to read a unit that is moved.
pub fn random_writes_per_s(
    dies: f64,
    amplification: f64,
    (program_s, program_units): (f64, f64),
    copy_s: f64,
) -> f64 {
    let program = amplification * program_s / program_units;
    dies / (program + (amplification - 1.0) * copy_s)
}

/// The utilisation of `dies` with exponential service times and `outstanding` reads.
pub fn utilisation_exponential(dies: f64, outstanding: f64) -> f64 {
    outstanding / (outstanding + dies - 1.0)
}

/// Seconds until a buffer is full that fills and drains at these rates; none if it never is.
pub fn buffer_full_s(buffer_bytes: f64, arrival_bytes_s: f64, drain_bytes_s: f64) -> Option<f64> {
    (arrival_bytes_s > drain_bytes_s).then(|| buffer_bytes / (arrival_bytes_s - drain_bytes_s))
}

/// Full drive writes per day over `years` that `cycles` erases of each block allow.
pub fn drive_writes_per_day(cycles: f64, amplification: f64, years: f64) -> f64 {
    cycles / amplification / (365.0 * years)
}
