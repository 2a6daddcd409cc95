//! Flash calculations without timing, as tables, JSON and CSV.

use super::csv::{CsvField, format_number, format_optional, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::flash::{DieUtilisation, FlashReport, PolicyAmplification, SpareFigures, WriteCliff};
use diskperf_timeline::units::format_size;

pub(super) fn build_blocks(flash: &FlashReport) -> Vec<DocumentBlock> {
    let drive = &flash.drive;
    vec![
        DocumentBlock::Heading(format!(
            "Write amplification: {}, superblocks of {} units",
            flash.write_pattern, flash.superblock_units
        )),
        DocumentBlock::Grid(build_amplification_grid(flash)),
        DocumentBlock::Heading(format!(
            "Random reads of 4 KiB from {} dies, {} µs each",
            drive.die_count,
            drive.read_us + drive.transfer_us
        )),
        DocumentBlock::Grid(build_die_grid(&flash.die_utilisation)),
        DocumentBlock::Heading("What fills up".to_owned()),
        DocumentBlock::Grid(build_cliff_grid(&flash.write_cliffs)),
        DocumentBlock::List(list_remarks(flash)),
    ]
}

fn list_remarks(flash: &FlashReport) -> Vec<String> {
    let drive = &flash.drive;
    let mut remarks = vec![
        "spare: share of the closed superblocks without mapped data; OP: the same capacity divided by the mapped data, as in data sheets".to_owned(),
        format!(
            "IOPS, DWPD: steady random writes of {} dies that program {} in {} µs, and {} erases of each block in {} years, at the model's amplification",
            drive.die_count,
            format_size(drive.program_bytes),
            drive.program_us,
            drive.erase_cycles,
            drive.warranty_years
        ),
        "busy: utilisation of a die, from mean value analysis; many dies: the limit for very many dies with as many reads per die; bound: dies hit if no read waits for another".to_owned(),
    ];
    if flash
        .spare_figures
        .iter()
        .any(|of| of.pool_amplification.is_some())
    {
        remarks.push(
            "pools: separate superblocks for hot and cold data, with the optimal split of the spare"
                .to_owned(),
        );
    }
    if (flash
        .spare_figures
        .iter()
        .flat_map(|of| &of.policy_amplification))
    .any(|of| of.formula_amplification.is_none())
    {
        remarks.push("no formula: none is known, so only the model's figure is given".to_owned());
    }
    remarks
}

fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn build_amplification_grid(flash: &FlashReport) -> Grid {
    let spares = || flash.spare_figures.iter();
    let names = flash
        .spare_figures
        .first()
        .map_or(&[][..], |of| &of.policy_amplification);
    let mut groups = vec![ColumnGroup::new(
        "",
        vec![Column::right_aligned(
            "OP",
            spares()
                .map(|of| format_percent(of.over_provisioning))
                .collect(),
        )],
    )];
    for (index, name) in names.iter().enumerate() {
        let column = |heading: &str, cell: &dyn Fn(&PolicyAmplification) -> String| {
            let cells = spares().map(|of| cell(&of.policy_amplification[index]));
            Column::right_aligned(heading, cells.collect())
        };
        let two = |value: f64| format!("{value:.2}");
        groups.push(ColumnGroup::new(
            &name.policy,
            vec![
                column("formula", &|of| {
                    of.formula_amplification.map_or_else(String::new, two)
                }),
                column("model", &|of| two(of.modelled_amplification)),
                column("error", &|of| {
                    of.relative_error()
                        .map_or_else(String::new, |error| format!("{:+.1} %", 100.0 * error))
                }),
                column("IOPS", &|of| format!("{:.0}", of.random_write_iops)),
                column("DWPD", &|of| format!("{:.2}", of.drive_writes_per_day)),
            ],
        ));
    }
    let pools = |of: &SpareFigures| {
        of.pool_amplification
            .map_or_else(String::new, |it| format!("{it:.2}"))
    };
    groups.push(ColumnGroup::new(
        "",
        vec![Column::right_aligned(
            "pools",
            spares().map(pools).collect(),
        )],
    ));
    groups.retain(|group| !group.columns.is_empty());
    Grid {
        key_column: Column::right_aligned(
            "spare",
            spares().map(|of| format_percent(of.spare_share)).collect(),
        ),
        groups,
    }
}

fn build_die_grid(depths: &[DieUtilisation]) -> Grid {
    let column = |heading: &str, cell: &dyn Fn(&DieUtilisation) -> f64| {
        let cells = depths.iter().map(|of| format!("{:.3}", cell(of)));
        Column::right_aligned(heading, cells.collect())
    };
    let iops = depths.iter().map(|of| format!("{:.0}", of.iops)).collect();
    Grid {
        key_column: Column::right_aligned(
            "depth",
            depths.iter().map(|of| of.queue_depth.to_string()).collect(),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                column("busy", &|of| of.busy_dies_formula),
                column("model", &|of| of.busy_dies_modelled),
                column("many dies", &|of| of.busy_share_many_dies),
                column("bound", &|of| of.busy_dies_bound),
                Column::right_aligned("IOPS", iops),
            ],
        )],
    }
}

fn build_cliff_grid(cliffs: &[WriteCliff]) -> Grid {
    let column = |heading: &str, cell: &dyn Fn(&WriteCliff) -> String| {
        Column::right_aligned(heading, cliffs.iter().map(cell).collect())
    };
    let whole = |value: f64| format!("{value:.0}");
    Grid {
        key_column: Column::left_aligned("what", cliffs.iter().map(|of| of.name.clone()).collect()),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                column("size", &|of| format_size(of.cache_bytes)),
                column("in, MB/s", &|of| whole(of.fill_mb_per_s)),
                column("out, MB/s", &|of| whole(of.drain_mb_per_s)),
                column("full after, s", &|of| {
                    of.full_after_s
                        .map_or_else(|| "never".to_owned(), |s| format!("{s:.4}"))
                }),
                column("taken, MB", &|of| {
                    of.accepted_bytes
                        .map_or_else(String::new, |bytes| format!("{:.1}", bytes / 1e6))
                }),
                column("then, MB/s", &|of| whole(of.after_mb_per_s)),
            ],
        )],
    }
}

pub(super) fn render_json(flash: &FlashReport) -> String {
    render_pretty(flash)
}

/// Formats the calculations as CSV, one line for each policy at each share of spare capacity.
pub(super) fn render_csv(flash: &FlashReport) -> String {
    let record = |spare: &SpareFigures, of: &PolicyAmplification| -> Vec<CsvField> {
        vec![
            ("spare", format_number(spare.spare_share)),
            ("over_provisioning", format_number(spare.over_provisioning)),
            ("policy", of.policy.clone()),
            ("formula", format_optional(of.formula_amplification)),
            ("model", format_number(of.modelled_amplification)),
            ("error", format_optional(of.relative_error())),
            ("random_write_iops", format_number(of.random_write_iops)),
            ("terabytes_written", format_number(of.terabytes_written)),
            (
                "drive_writes_per_day",
                format_number(of.drive_writes_per_day),
            ),
            ("pools", format_optional(spare.pool_amplification)),
        ]
    };
    let records: Vec<Vec<CsvField>> = flash
        .spare_figures
        .iter()
        .flat_map(|spare| {
            spare
                .policy_amplification
                .iter()
                .map(move |of| record(spare, of))
        })
        .collect();
    format_records(&records)
}
