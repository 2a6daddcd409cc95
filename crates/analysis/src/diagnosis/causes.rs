//! What differs between two runs that is no consequence of anything else.

use super::Suspect;
use super::measures::{Measures, Worker};
use crate::explanation::words;
use diskperf_timeline::trace::Purpose;
use diskperf_timeline::{Deadline, Stage, Trace};

/// Something that differs, and whose it is.
pub(super) struct Cause {
    pub(super) suspect: Suspect,
    /// How sure it is that this is a cause: see [`Rank`]; within one, by how
    /// much it differs.
    weight: (Rank, f64),
    /// In words.
    pub(super) evidence: String,
}

impl Cause {
    /// Whether it is hardly the consequence of another.
    pub(super) fn is_sure(&self) -> bool {
        self.weight.0 > Rank::Hint
    }
}

/// What a difference can be a consequence of: of nothing further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It may well be a consequence.
    Hint,
    /// What a routine, a command or a move of data takes each time.
    Unit,
    /// Where blocks lie; it depends on the drive as well.
    Layout,
    /// How the drive is made.
    Shape,
}

/// Ratios nearer to one than this are no difference.
const SAME: f64 = 0.015;
/// A cost that appears from nothing counts as this ratio.
const MOST_RATIO: f64 = 20.0;
/// Steps from a request to the next that both runs have, as a share of all:
/// below this the files are laid out in another way.
const SAME_LAYOUT: f64 = 0.75;
/// Lengths of work that are this frequent are those of a routine; all others
/// come of what came in between.
const FREQUENT: f64 = 0.08;
/// A frequent length of one run that makes up less than this in the other is
/// not there.
const ABSENT: f64 = 0.01;
/// Lengths within this are the same, as times are rounded to nanoseconds.
const BUCKET_NS: u64 = 64;
/// As many pieces of work tell something.
const FEWEST: usize = 20;
/// Costs that vary by chance differ if their means differ by more.
const BY_CHANCE: f64 = 0.08;
/// A routine whose time changed by less, as a logarithm, tells nothing of the
/// processor.
const ALIKE: f64 = 0.06;
/// Shares of requests that differ by more than this differ.
const SHARE: f64 = 0.25;

/// The causes, the surest first.
pub(super) fn causes(a: (&Trace, &Measures), b: (&Trace, &Measures)) -> Vec<Cause> {
    let mut found = shape(a, b);
    let ((_, a), (_, b)) = (a, b);
    found.extend(layout(a, b));
    found.extend(lead(a, b));
    found.extend(read_ahead(a, b));
    found.extend(units(a, b));
    found.extend(queues(a, b));
    found.sort_by(|one, other| {
        let (ranks, sizes) = (
            one.weight.0.cmp(&other.weight.0),
            (one.weight.1, other.weight.1),
        );
        ranks.then(sizes.0.total_cmp(&sizes.1)).reverse()
    });
    found
}

fn cause(suspect: Suspect, weight: (Rank, f64), evidence: String) -> Cause {
    Cause {
        suspect,
        weight,
        evidence,
    }
}

/// How the drives turn, where sectors lie on them, and how their arms move.
fn shape(a: (&Trace, &Measures), b: (&Trace, &Measures)) -> Vec<Cause> {
    let mut found = Vec::new();
    let drive = |size: f64, evidence| cause(Suspect::Drive, (Rank::Shape, size), evidence);
    for (one, other) in a.0.drives.iter().zip(&b.0.drives) {
        let size = (other.revolution_ns / one.revolution_ns).ln().abs();
        if size > 1e-4 {
            found.push(drive(
                size,
                format!(
                    "a revolution takes {} in one run and {} in the other",
                    words::milliseconds(one.revolution_ns),
                    words::milliseconds(other.revolution_ns)
                ),
            ));
        }
    }
    let formats = |trace: &Trace| {
        let request = trace.requests.first();
        request.map(|one| (one.slots, trace.drives[one.drive as usize].sector_bytes))
    };
    if let (Some(one), Some(other)) = (formats(a.0), formats(b.0))
        && one != other
    {
        let evidence = format!(
            "a track has {} slots of {} bytes in one run and {} of {} in the other",
            one.0, one.1, other.0, other.1
        );
        found.push(drive(1.0, evidence));
    }
    let (a, b) = (a.1, b.1);
    let both = a
        .places
        .iter()
        .filter_map(|(at, one)| Some((one, b.places.get(at)?)));
    let (mut common, mut moved) = (0.0_f64, 0.0_f64);
    for (one, other) in both {
        common += 1.0;
        moved += f64::from(u8::from(one != other));
    }
    if moved > common * 0.1 {
        let evidence = "the same sectors lie at other places of the drive".to_owned();
        found.push(drive(moved / common, evidence));
    }
    let seeks = a.seeks.iter();
    let mut ratios: Vec<f64> = seeks
        .filter_map(|(way, ns)| Some((*b.seeks.get(way)? as f64 / *ns as f64).ln()))
        .collect();
    ratios.sort_by(f64::total_cmp);
    if let Some(size) = ratios
        .get(ratios.len() / 2)
        .filter(|size| size.abs() > 5e-3)
    {
        let evidence = format!(
            "seeks over the same distance take {:.2} times as long",
            size.exp()
        );
        found.push(drive(size.abs(), evidence));
    }
    for stage in [Stage::Settle, Stage::WriteSettle, Stage::HeadSwitch] {
        if let Some(size) = differs(a.usual(stage), b.usual(stage)) {
            found.push(drive(
                size,
                each(&words::stage(stage), a.usual(stage), b.usual(stage)),
            ));
        }
    }
    if let Some(size) = differs(a.sector_ns, b.sector_ns) {
        let evidence = each("a sector, passing,", a.sector_ns, b.sector_ns);
        let rank = if moved > 0.0 { Rank::Shape } else { Rank::Hint };
        found.push(cause(Suspect::Drive, (rank, size), evidence));
    }
    found
}

/// By how much the logarithm of something differs, if it does.
fn differs(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a.unwrap_or(0.0), b.unwrap_or(0.0));
    let most = MOST_RATIO.ln();
    let size = match (a > 0.0, b > 0.0) {
        (true, true) => (b / a).ln().clamp(-most, most).abs(),
        (false, false) => 0.0,
        (true, false) | (false, true) => most,
    };
    (size > SAME).then_some(size)
}

fn each(what: &str, a: Option<f64>, b: Option<f64>) -> String {
    let told = |ns: Option<f64>| ns.map_or_else(|| "nothing".to_owned(), words::milliseconds);
    format!(
        "{what} takes {} in one run and {} in the other",
        told(a),
        told(b)
    )
}

/// How far the blocks of files lie apart, and how long they are.
fn layout(a: &Measures, b: &Measures) -> Option<Cause> {
    let all = |of: &Measures| of.steps.values().sum::<u64>().max(1) as f64;
    let (of_a, of_b) = (all(a), all(b));
    let shares = a.steps.iter().map(|(step, count)| {
        let other = b.steps.get(step).copied().unwrap_or(0);
        (*count as f64 / of_a).min(other as f64 / of_b)
    });
    let share: f64 = shares.sum();
    let usual = |of: &Measures| {
        let most = of.steps.iter().max_by_key(|(_, count)| **count);
        most.map_or_else(String::new, |((step, size), _)| {
            format!("{size} sectors, {step} after the one before")
        })
    };
    (share < SAME_LAYOUT).then(|| {
        let evidence = format!(
            "the files are laid out in another way: most blocks are of {} in one run, and of {} in the other",
            usual(a),
            usual(b)
        );
        cause(Suspect::Filesystem, (Rank::Layout, 1.0 - share), evidence)
    })
}

/// How far ahead of a sector its search ends.
fn lead(a: &Measures, b: &Measures) -> Vec<Cause> {
    let mut found = Vec::new();
    if let (Some(one), Some(other)) = (a.lead_slots, b.lead_slots)
        && (one - other).abs() >= 1.0
    {
        let evidence = format!(
            "searches end {one:.0} sectors ahead of the one wanted in one run and {other:.0} in the other"
        );
        found.push(cause(Suspect::Driver, (Rank::Layout, 2.0), evidence));
    }
    let more = (a.searching - b.searching).abs();
    if more > SHARE {
        let evidence = format!(
            "{} of the requests search in one run and {} in the other",
            words::percent(a.searching),
            words::percent(b.searching)
        );
        found.push(cause(Suspect::Driver, (Rank::Hint, more), evidence));
    }
    found
}

/// Whether blocks are read ahead.
fn read_ahead(a: &Measures, b: &Measures) -> Option<Cause> {
    let share = |of: &Measures| {
        let ahead = of.requests.get(&Purpose::ReadAhead).copied().unwrap_or(0.0);
        ahead / of.count().max(1.0)
    };
    let (one, other) = (share(a), share(b));
    ((one - other).abs() > SHARE && one.min(other) < 0.02).then(|| {
        let evidence = format!(
            "{} of the requests read ahead in one run and {} in the other",
            words::percent(one),
            words::percent(other)
        );
        cause(Suspect::Kernel, (Rank::Layout, 0.9), evidence)
    })
}

/// What work takes each time.
fn units(a: &Measures, b: &Measures) -> Vec<Cause> {
    let work = [
        (Suspect::Host, Worker::Program, Stage::Copy),
        (Suspect::Host, Worker::Program, Stage::Clear),
        (Suspect::Kernel, Worker::Program, Stage::SystemCall),
        (Suspect::Kernel, Worker::Program, Stage::CacheLookup),
        (Suspect::Kernel, Worker::Program, Stage::Allocate),
        (Suspect::Kernel, Worker::Handler, Stage::Interrupt),
        (Suspect::Driver, Worker::Program, Stage::Driver),
        (Suspect::Driver, Worker::Handler, Stage::Driver),
        (Suspect::Controller, Worker::Hardware, Stage::Command),
        (Suspect::Controller, Worker::Hardware, Stage::CacheHit),
        (Suspect::Bus, Worker::Hardware, Stage::BusTransfer),
    ];
    let mut found = Vec::new();
    let mut ratios = Vec::new();
    for (suspect, worker, stage) in work {
        let nothing = Vec::new();
        let of = |of: &Measures| of.pieces.get(&(worker, stage)).cloned();
        let (one, other) = (of(a).unwrap_or(nothing.clone()), of(b).unwrap_or(nothing));
        let changed = changed(&one, &other);
        let routine = worker != Worker::Hardware && suspect != Suspect::Host;
        if routine && one.len().min(other.len()) >= FEWEST {
            let ratio = changed.map_or(0.0, |(one, other)| (other / one).ln());
            ratios.push((suspect, ratio));
        }
        if let Some((one, other)) = changed {
            let size = differs(Some(one), Some(other)).unwrap_or(SAME);
            let evidence = each(&words::stage(stage), Some(one), Some(other));
            found.push(cause(suspect, (Rank::Unit, size), evidence));
        }
    }
    found.extend(clock(a, b));
    if let Some(size) = differs(a.contention, b.contention).filter(|size| *size > BY_CHANCE) {
        let told = |of: Option<f64>| words::percent(of.unwrap_or(0.0));
        let evidence = format!(
            "what the processor does while data moves takes up to {} longer in one run and {} in the other",
            told(a.contention),
            told(b.contention)
        );
        // Longer work is slowed by more than one transfer, or by parts of them.
        found.push(cause(Suspect::Bus, (Rank::Hint, 1.0 + size), evidence));
    }
    found.extend(processor(&ratios));
    found
}

/// The clock's interrupts: longer ones are the kernel's, more of them the
/// machine's.
fn clock(a: &Measures, b: &Measures) -> Option<Cause> {
    let ((tick_a, rate_a), (tick_b, rate_b)) = (a.clock?, b.clock?);
    if let Some(size) = differs(Some(tick_a), Some(tick_b)) {
        let evidence = each("the clock's interrupt", Some(tick_a), Some(tick_b));
        return Some(cause(Suspect::Kernel, (Rank::Hint, 1.0 + size), evidence));
    }
    let size = differs(Some(rate_a), Some(rate_b)).filter(|size| *size > SHARE)?;
    let evidence = format!(
        "the clock ticks about {rate_a:.0} times a second in one run and {rate_b:.0} in the other"
    );
    Some(cause(Suspect::Host, (Rank::Unit, size), evidence))
}

/// What a piece of work takes in both, if it is not the same. Routines take the
/// same each time but for what comes in between, so of both runs the frequent
/// lengths are compared; where there are none, since a cost varies by chance,
/// the means.
fn changed(a: &[u64], b: &[u64]) -> Option<(f64, f64)> {
    if a.len() < FEWEST || b.len() < FEWEST {
        return None;
    }
    let (of_a, of_b) = (frequent(a), frequent(b));
    let mean = |of: &[u64]| of.iter().sum::<u64>() as f64 / of.len() as f64;
    if of_a.is_empty() || of_b.is_empty() {
        let (one, other) = (mean(a), mean(b));
        return (differs(Some(one), Some(other))? > BY_CHANCE).then_some((one, other));
    }
    let absent = |modes: &[(u64, f64)], from: &[u64]| -> Vec<(u64, f64)> {
        let gone = modes
            .iter()
            .filter(|(length, _)| share_of(from, *length) < ABSENT);
        gone.copied().collect()
    };
    let (only_a, only_b) = (absent(&of_a, b), absent(&of_b, a));
    let most = |modes: &[(u64, f64)]| {
        let most = modes.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        most.map(|(length, _)| *length as f64)
    };
    Some((most(&only_a)?, most(&only_b)?))
}

/// The lengths that are frequent, and their shares; the lengths are in order.
fn frequent(lengths: &[u64]) -> Vec<(u64, f64)> {
    let mut found = Vec::new();
    let mut place = 0;
    while place < lengths.len() {
        let first = lengths[place];
        let alike = lengths[place..].partition_point(|one| *one <= first + BUCKET_NS);
        let share = alike as f64 / lengths.len() as f64;
        if share >= FREQUENT {
            found.push((first, share));
        }
        place += alike;
    }
    found
}

/// How many of the lengths are this one.
fn share_of(lengths: &[u64], length: u64) -> f64 {
    let from = lengths.partition_point(|one| *one + BUCKET_NS < length);
    let until = lengths.partition_point(|one| *one <= length + 2 * BUCKET_NS);
    (until - from) as f64 / lengths.len() as f64
}

/// Routines of the kernel and of the driver take longer, or less long, at once,
/// which no routine's own cost does.
fn processor(ratios: &[(Suspect, f64)]) -> Option<Cause> {
    let changed = |suspect: Suspect| -> Vec<f64> {
        let own = ratios.iter().filter(|(of, _)| *of == suspect);
        own.map(|(_, ratio)| *ratio)
            .filter(|ratio| ratio.abs() > ALIKE)
            .collect()
    };
    let (kernel, driver) = (changed(Suspect::Kernel), changed(Suspect::Driver));
    let all: Vec<f64> = kernel.iter().chain(&driver).copied().collect();
    let same_way = all.iter().all(|ratio| ratio.signum() == all[0].signum());
    (kernel.len() > 1 && !driver.is_empty() && same_way).then(|| {
        let mut sorted = all;
        sorted.sort_by(f64::total_cmp);
        let evidence = format!(
            "every routine takes about {:.2} times as long",
            sorted[sorted.len() / 2].exp()
        );
        cause(Suspect::Host, (Rank::Layout, 0.5), evidence)
    })
}

/// Waiting that some parts have to themselves.
fn queues(a: &Measures, b: &Measures) -> Vec<Cause> {
    let difference = (b.elapsed_ns - a.elapsed_ns).abs().max(1.0);
    let mut found = Vec::new();
    let late = Stage::MissedRevolution(Deadline::DataLate);
    let each = |of: &Measures| Some(of.requested(late) / of.count().max(1.0));
    let worth = (b.requested(late) - a.requested(late)).abs() > SHARE * difference;
    if let Some(size) = differs(each(a), each(b)).filter(|size| worth && *size > SHARE) {
        let evidence = self::each("for a request, data late", each(a), each(b));
        found.push(cause(Suspect::Controller, (Rank::Unit, size), evidence));
    }
    let own = [
        (Suspect::Controller, Stage::ControllerQueue),
        (Suspect::Controller, Stage::ChannelWait),
        (Suspect::Kernel, Stage::BufferWait),
    ];
    for (suspect, stage) in own {
        let more =
            (b.requested(stage) + b.booked(stage) - a.requested(stage) - a.booked(stage)).abs();
        if more > SHARE * difference {
            let evidence = format!(
                "{}: {} in one run and {} in the other",
                words::stage(stage),
                words::milliseconds(a.requested(stage)),
                words::milliseconds(b.requested(stage))
            );
            found.push(cause(suspect, (Rank::Hint, more / difference), evidence));
        }
    }
    let (one, other) = (a.most_at_once as f64, b.most_at_once as f64);
    if let Some(size) = differs(Some(one), Some(other)).filter(|size| *size > SHARE) {
        let evidence =
            format!("up to {one:.0} requests are under way in one run and {other:.0} in the other");
        found.push(cause(Suspect::Kernel, (Rank::Hint, size / 4.0), evidence));
    }
    let (one, other) = (a.count(), b.count());
    if let Some(size) = differs(Some(one), Some(other)).filter(|size| *size > SHARE) {
        let evidence = format!("{one:.0} requests in one run and {other:.0} in the other");
        found.push(cause(Suspect::Kernel, (Rank::Hint, size), evidence));
    }
    found
}
