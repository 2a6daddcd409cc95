//! Rows of programs with several requests in flight. Their rate is judged, with the 99th percentile
//! of the response time beside it; in open loop the response times are judged.

use super::{figures, format_interval, format_marks, format_ratio};
use crate::comparison::{PairSide, Quantity, ResultPair};
use crate::report::document::{Column, ColumnGroup, Grid};

pub(super) fn build_grid(pairs: &[&ResultPair]) -> Grid {
    let column = |of: &dyn Fn(&ResultPair) -> String| pairs.iter().map(|pair| of(pair)).collect();
    let sides = |of: fn(&ResultPair) -> &PairSide| {
        let cell = |pair: &&ResultPair| format_cell(of(pair), pair.quantity);
        pairs.iter().map(cell).collect()
    };
    let p99 =
        |of: fn(&ResultPair) -> &PairSide| column(&|pair| format_p99(of(pair), pair.quantity));
    let rate = match pairs.iter().any(|pair| pair.quantity == Quantity::Iops) {
        true => "\nIOPS (CPU)",
        false => "",
    };
    let heading = |side: &str| format!("{side}{rate}");
    Grid {
        key_column: Column::left_aligned(
            "program",
            column(&|pair| super::format_title(pair, pairs)),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned_pairs(&heading("base"), sides(|pair| &pair.base)),
                Column::right_aligned_pairs(&heading("other"), sides(|pair| &pair.other)),
                Column::right_aligned("ratio", column(&format_ratio)),
                Column::right_aligned("99 %", column(&format_interval)),
                Column::left_aligned("verdict", column(&ResultPair::describe_verdict)),
                Column::right_aligned("base\np99", p99(|pair| &pair.base)),
                Column::right_aligned("other\np99", p99(|pair| &pair.other)),
            ],
        )],
    }
}

fn format_cell(side: &PairSide, quantity: Quantity) -> (String, String) {
    let mark = format_marks(side);
    match quantity {
        Quantity::Iops => (
            figures::format_iops(side.figure),
            figures::format_cpu_percent(side.cpu_percent) + &mark,
        ),
        Quantity::KbPerS | Quantity::DurableKbPerS => {
            let mb_per_s = side.figure * 1024.0 / 1e6;
            (format!("{} MB/s", figures::format_mb_per_s(mb_per_s)), mark)
        }
        Quantity::ResponseP50Us | Quantity::ResponseP99Us => {
            (figures::format_us(side.figure), mark)
        }
    }
}

/// Formats the 99th percentile beside the judged figure, unless it is judged itself.
fn format_p99(side: &PairSide, quantity: Quantity) -> String {
    let beside = side.p99_us.filter(|_| quantity == Quantity::Iops);
    beside.map_or_else(String::new, figures::format_us)
}

/// Describes the columns of the table of programs with several requests in flight.
pub(super) fn list_legend(pairs: &[ResultPair]) -> Vec<String> {
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
