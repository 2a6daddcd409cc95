//! Flash calculations without timing, as tables, JSON and CSV.

use super::csv::{Field, format_records, number, optional};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::flash::{Amplification, Cliff, DieUse, Flash, Spare};
use diskperf_timeline::units::format_size;

pub(super) fn blocks(flash: &Flash) -> Vec<Block> {
    let drive = &flash.drive;
    vec![
        Block::Heading(format!(
            "Write amplification: {}, superblocks of {} units",
            flash.writes, flash.superblock_units
        )),
        Block::Grid(amplification(flash)),
        Block::Heading(format!(
            "Random reads of 4 KiB from {} dies, {} µs each",
            drive.dies,
            drive.read_us + drive.transfer_us
        )),
        Block::Grid(dies(&flash.depths)),
        Block::Heading("What fills up".to_owned()),
        Block::Grid(cliffs(&flash.cliffs)),
        Block::List(remarks(flash)),
    ]
}

fn remarks(flash: &Flash) -> Vec<String> {
    let drive = &flash.drive;
    let mut remarks = vec![
        "spare: share of the closed superblocks without mapped data; OP: the same capacity divided by the mapped data, as in data sheets".to_owned(),
        format!(
            "IOPS, DWPD: steady random writes of {} dies that program {} in {} µs, and {} erases of each block in {} years, at the model's amplification",
            drive.dies,
            format_size(drive.program_bytes),
            drive.program_us,
            drive.cycles,
            drive.years
        ),
        "busy: utilisation of a die, from mean value analysis; many dies: the limit for very many dies with as many reads per die; bound: dies hit if no read waits for another".to_owned(),
    ];
    if flash.spares.iter().any(|of| of.pools.is_some()) {
        remarks.push(
            "pools: separate superblocks for hot and cold data, with the optimal split of the spare"
                .to_owned(),
        );
    }
    if (flash.spares.iter().flat_map(|of| &of.policies)).any(|of| of.formula.is_none()) {
        remarks.push("no formula: none is known, so only the model's figure is given".to_owned());
    }
    remarks
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn amplification(flash: &Flash) -> Grid {
    let spares = || flash.spares.iter();
    let names = flash.spares.first().map_or(&[][..], |of| &of.policies);
    let mut groups = vec![Group::of(
        "",
        vec![Column::figures(
            "OP",
            spares().map(|of| percent(of.over_provisioning)).collect(),
        )],
    )];
    for (index, name) in names.iter().enumerate() {
        let column = |heading: &str, cell: &dyn Fn(&Amplification) -> String| {
            let cells = spares().map(|of| cell(&of.policies[index]));
            Column::figures(heading, cells.collect())
        };
        let two = |value: f64| format!("{value:.2}");
        groups.push(Group::of(
            &name.policy,
            vec![
                column("formula", &|of| of.formula.map_or_else(String::new, two)),
                column("model", &|of| two(of.model)),
                column("error", &|of| {
                    of.error()
                        .map_or_else(String::new, |error| format!("{:+.1} %", 100.0 * error))
                }),
                column("IOPS", &|of| format!("{:.0}", of.random_write_iops)),
                column("DWPD", &|of| format!("{:.2}", of.drive_writes_per_day)),
            ],
        ));
    }
    let pools = |of: &Spare| of.pools.map_or_else(String::new, |it| format!("{it:.2}"));
    groups.push(Group::of(
        "",
        vec![Column::figures("pools", spares().map(pools).collect())],
    ));
    groups.retain(|group| !group.columns.is_empty());
    Grid {
        key: Column::figures("spare", spares().map(|of| percent(of.spare)).collect()),
        groups,
    }
}

fn dies(depths: &[DieUse]) -> Grid {
    let column = |heading: &str, cell: &dyn Fn(&DieUse) -> f64| {
        let cells = depths.iter().map(|of| format!("{:.3}", cell(of)));
        Column::figures(heading, cells.collect())
    };
    let iops = depths.iter().map(|of| format!("{:.0}", of.iops)).collect();
    Grid {
        key: Column::figures(
            "depth",
            depths.iter().map(|of| of.depth.to_string()).collect(),
        ),
        groups: vec![Group::of(
            "",
            vec![
                column("busy", &|of| of.formula),
                column("model", &|of| of.model),
                column("many dies", &|of| of.many_dies),
                column("bound", &|of| of.bound),
                Column::figures("IOPS", iops),
            ],
        )],
    }
}

fn cliffs(cliffs: &[Cliff]) -> Grid {
    let column = |heading: &str, cell: &dyn Fn(&Cliff) -> String| {
        Column::figures(heading, cliffs.iter().map(cell).collect())
    };
    let whole = |value: f64| format!("{value:.0}");
    Grid {
        key: Column::words("what", cliffs.iter().map(|of| of.name.clone()).collect()),
        groups: vec![Group::of(
            "",
            vec![
                column("size", &|of| format_size(of.bytes)),
                column("in, MB/s", &|of| whole(of.in_mb_per_s)),
                column("out, MB/s", &|of| whole(of.out_mb_per_s)),
                column("full after, s", &|of| {
                    of.full_after_s
                        .map_or_else(|| "never".to_owned(), |s| format!("{s:.4}"))
                }),
                column("taken, MB", &|of| {
                    of.accepted_bytes
                        .map_or_else(String::new, |bytes| format!("{:.1}", bytes / 1e6))
                }),
                column("then, MB/s", &|of| whole(of.then_mb_per_s)),
            ],
        )],
    }
}

pub(super) fn json(flash: &Flash) -> String {
    pretty(flash)
}

/// Formats the calculations as CSV, one line for each policy at each share of spare capacity.
pub(super) fn csv(flash: &Flash) -> String {
    let record = |spare: &Spare, of: &Amplification| -> Vec<Field> {
        vec![
            ("spare", number(spare.spare)),
            ("over_provisioning", number(spare.over_provisioning)),
            ("policy", of.policy.clone()),
            ("formula", optional(of.formula)),
            ("model", number(of.model)),
            ("error", optional(of.error())),
            ("random_write_iops", number(of.random_write_iops)),
            ("terabytes_written", number(of.terabytes_written)),
            ("drive_writes_per_day", number(of.drive_writes_per_day)),
            ("pools", optional(spare.pools)),
        ]
    };
    let records: Vec<Vec<Field>> = flash
        .spares
        .iter()
        .flat_map(|spare| spare.policies.iter().map(move |of| record(spare, of)))
        .collect();
    format_records(&records)
}
