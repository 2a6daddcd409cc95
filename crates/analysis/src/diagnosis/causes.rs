//! What differs between two runs that is no consequence of anything else.

use super::Suspect;
use super::measures::Measures;
use crate::explanation::is_of_processor;
use crate::explanation::words;
use diskperf_timeline::trace::Purpose;
use diskperf_timeline::{Stage, Trace};

/// Something that differs, and whose it is.
pub(super) struct Cause {
    pub(super) suspect: Suspect,
    /// How sure it is that this is a cause: see [`Rank`]; within one, by how
    /// much it differs.
    weight: (Rank, f64),
    /// In words.
    pub(super) evidence: String,
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
/// Requests that begin at the same sectors with the same sizes, as a share of
/// all: below this the files lie elsewhere.
const SAME_LAYOUT: f64 = 0.7;
/// Routines that all changed by the same ratio, but for this, run on another
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

/// Which sectors the requests begin at, and how long they are.
fn layout(a: &Measures, b: &Measures) -> Option<Cause> {
    let same = a
        .sizes
        .iter()
        .filter(|(at, size)| b.sizes.get(at) == Some(size))
        .count();
    let all = a.sizes.len() + b.sizes.len() - same;
    let share = same as f64 / all.max(1) as f64;
    (share < SAME_LAYOUT).then(|| {
        let evidence = format!(
            "the files lie elsewhere: of all requests of both runs {} begin at the same sector with the same length",
            words::percent(share)
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

/// What work takes each time, or for each byte.
fn units(a: &Measures, b: &Measures) -> Vec<Cause> {
    let per_byte = |of: &Measures, stage| Some(of.booked(stage) / of.bytes.max(1.0) * 8192.0);
    let booked = |suspect, stage| (suspect, stage, per_byte(a, stage), per_byte(b, stage));
    let handled = |suspect, stage| (suspect, stage, a.handled(stage), b.handled(stage));
    let usual = |suspect, stage| (suspect, stage, a.usual(stage), b.usual(stage));
    let routines = [
        booked(Suspect::Kernel, Stage::SystemCall),
        booked(Suspect::Kernel, Stage::CacheLookup),
        booked(Suspect::Kernel, Stage::Allocate),
        handled(Suspect::Kernel, Stage::Interrupt),
        handled(Suspect::Driver, Stage::Driver),
        usual(Suspect::Driver, Stage::Driver),
    ];
    let others = [
        booked(Suspect::Host, Stage::Copy),
        booked(Suspect::Host, Stage::Clear),
        usual(Suspect::Controller, Stage::Command),
        usual(Suspect::Controller, Stage::CacheHit),
        usual(Suspect::Bus, Stage::BusTransfer),
        (
            Suspect::Bus,
            Stage::MemoryContention,
            contention(a),
            contention(b),
        ),
    ];
    let mut found = Vec::new();
    for (suspect, stage, one, other) in routines.into_iter().chain(others) {
        if let Some(size) = differs(one, other) {
            let evidence = each(&words::stage(stage), one, other);
            found.push(cause(suspect, (Rank::Unit, size), evidence));
        }
    }
    let ratios: Vec<f64> = routines
        .iter()
        .filter_map(|(_, _, one, other)| Some(((*other)? / (*one)?).ln()))
        .filter(|ratio| ratio.is_finite())
        .collect();
    found.extend(processor(&ratios));
    found
}

/// Every routine takes longer, or less long, by the same ratio.
fn processor(ratios: &[f64]) -> Option<Cause> {
    let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    let alike = ratios
        .iter()
        .all(|ratio| (ratio - mean).abs() < ALIKE + mean.abs() * 0.25);
    (ratios.len() > 2 && mean.abs() > ALIKE && alike).then(|| {
        let evidence = format!("every routine takes about {:.2} times as long", mean.exp());
        cause(Suspect::Host, (Rank::Layout, 0.5), evidence)
    })
}

/// Of the time that programs spend on the processor, what they take longer
/// because data moves; for a millisecond of it.
fn contention(of: &Measures) -> Option<f64> {
    let work = Stage::ALL
        .into_iter()
        .filter(|stage| is_of_processor(*stage));
    let all: f64 = work.map(|stage| of.booked(stage)).sum();
    (all > 0.0).then(|| 1e6 * of.booked(Stage::MemoryContention) / all)
}

/// Waiting that some parts have to themselves.
fn queues(a: &Measures, b: &Measures) -> Vec<Cause> {
    let difference = (b.elapsed_ns - a.elapsed_ns).abs().max(1.0);
    let mut found = Vec::new();
    let own = [
        (Suspect::Controller, Stage::ControllerQueue),
        (Suspect::Controller, Stage::ChannelWait),
        (
            Suspect::Controller,
            Stage::MissedRevolution(diskperf_timeline::Deadline::DataLate),
        ),
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
    let (one, other) = (a.count(), b.count());
    if let Some(size) = differs(Some(one), Some(other)).filter(|size| *size > SHARE) {
        let evidence = format!("{one:.0} requests in one run and {other:.0} in the other");
        found.push(cause(Suspect::Kernel, (Rank::Hint, size), evidence));
    }
    let (one, other) = (interrupts(a), interrupts(b));
    if let Some(size) = differs(Some(one), Some(other)).filter(|size| *size > SHARE) {
        let evidence = "interrupts take another share of the processor".to_owned();
        found.push(cause(Suspect::Kernel, (Rank::Hint, size), evidence));
    }
    found
}

/// What comes in between programs, for what they do themselves.
fn interrupts(of: &Measures) -> f64 {
    let own = of.booked(Stage::SystemCall) + of.booked(Stage::Copy) + of.booked(Stage::CacheLookup);
    of.booked(Stage::Interrupt) / own.max(1.0)
}
