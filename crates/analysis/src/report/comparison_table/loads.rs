//! Rows of programs with several requests in flight. Their rate is judged, with the 99th percentile
//! of the response time beside it; in open loop the response times are judged.

use super::{figures, interval, marks, ratio};
use crate::comparison::{Pair, Quantity, Side};
use crate::report::document::{Column, Grid, Group};

pub(super) fn grid(pairs: &[&Pair]) -> Grid {
    let column = |of: &dyn Fn(&Pair) -> String| pairs.iter().map(|pair| of(pair)).collect();
    let sides = |of: fn(&Pair) -> &Side| {
        let cell = |pair: &&Pair| cell(of(pair), pair.quantity);
        pairs.iter().map(cell).collect()
    };
    let p99 = |of: fn(&Pair) -> &Side| column(&|pair| p99(of(pair), pair.quantity));
    let rate = match pairs.iter().any(|pair| pair.quantity == Quantity::Iops) {
        true => "\nIOPS (CPU)",
        false => "",
    };
    let heading = |side: &str| format!("{side}{rate}");
    Grid {
        key: Column::words("program", column(&|pair| super::title(pair, pairs))),
        groups: vec![Group::of(
            "",
            vec![
                Column::pairs(&heading("base"), sides(|pair| &pair.base)),
                Column::pairs(&heading("other"), sides(|pair| &pair.other)),
                Column::figures("ratio", column(&ratio)),
                Column::figures("99 %", column(&interval)),
                Column::words("verdict", column(&Pair::verdict)),
                Column::figures("base\np99", p99(|pair| &pair.base)),
                Column::figures("other\np99", p99(|pair| &pair.other)),
            ],
        )],
    }
}

fn cell(side: &Side, quantity: Quantity) -> (String, String) {
    let mark = marks(side);
    match quantity {
        Quantity::Iops => (
            figures::iops(side.figure),
            figures::cpu(side.cpu_percent) + &mark,
        ),
        Quantity::KbPerS | Quantity::DurableKbPerS => {
            let mb_per_s = side.figure * 1024.0 / 1e6;
            (format!("{} MB/s", figures::megabytes(mb_per_s)), mark)
        }
        Quantity::ResponseP50Us | Quantity::ResponseP99Us => (figures::time_us(side.figure), mark),
    }
}

/// Formats the 99th percentile beside the judged figure, unless it is judged itself.
fn p99(side: &Side, quantity: Quantity) -> String {
    let beside = side.p99_us.filter(|_| quantity == Quantity::Iops);
    beside.map_or_else(String::new, figures::time_us)
}

/// Describes the columns of the table of programs with several requests in flight.
pub(super) fn legend(pairs: &[Pair]) -> Vec<String> {
    let has = |quantity| pairs.iter().any(|pair| pair.quantity == quantity);
    let remarks = [
        (
            has(Quantity::Iops),
            "p99: 99 % of the responses took at most this time; shown beside the rate, not judged",
        ),
        (
            has(Quantity::ResponseP50Us),
            "p50, p99: requests arrived by the clock, so that their responses are judged and not their rate; a ratio below 1 is faster",
        ),
    ];
    let occurring = remarks.into_iter().filter(|(occurs, _)| *occurs);
    occurring.map(|(_, text)| text.to_owned()).collect()
}
