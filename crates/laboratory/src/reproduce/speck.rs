//! Speck and Bass 1984: a file of 6400 KB, read in a tight loop with calls of 2 to 64 KiB, on
//! layouts with a rotational delay of 4 ms and of 7 ms.

use super::asking::{CellValues, ModelQueries, parse_settings};
use super::jobs::ModelFigures;
use diskperf_analysis::accuracy::{Finding, PublishedStatement};
use diskperf_battery::Program;
use diskperf_catalogue::PublishedCell;
use diskperf_models::LaboratoryError;

pub(super) const DOCUMENT_ID: &str = "speck-bass-1984";
const MODEL_SYSTEM: &str = "vax780-si9900-cdc9775";
const READ_BYTES: u64 = 6400 << 10;
const BLOCK_KB: f64 = 4.0;
/// Call sizes in bytes: 2^11 to 2^16.
const CALL_BYTES: [u64; 6] = [2048, 4096, 8192, 16_384, 32_768, 65_536];

struct SpeckLayout {
    description: &'static str,
    target: &'static str,
    settings: &'static [(&'static str, &'static str)],
    call_bytes: &'static [u64],
}

const SPECK_LAYOUTS: [SpeckLayout; 5] = [
    SpeckLayout {
        description: "rotdelay 4 ms",
        target: MODEL_SYSTEM,
        settings: &[("filesystem.rotdelay_ms", "4")],
        call_bytes: &CALL_BYTES,
    },
    SpeckLayout {
        description: "rotdelay 7 ms",
        target: MODEL_SYSTEM,
        settings: &[("filesystem.rotdelay_ms", "7")],
        call_bytes: &CALL_BYTES,
    },
    SpeckLayout {
        description: "an Eagle in the same place, rotdelay 4 ms",
        target: MODEL_SYSTEM,
        settings: &[("drive", "eagle"), ("filesystem.rotdelay_ms", "4")],
        call_bytes: &[4096],
    },
    SpeckLayout {
        description: "the SC780 in place of the SI 9900, rotdelay 4 ms",
        target: MODEL_SYSTEM,
        settings: &[("controller", "sc780"), ("filesystem.rotdelay_ms", "4")],
        call_bytes: &[4096],
    },
    SpeckLayout {
        description: "an SC750 on an 11/750, a drive of the same 32 sectors a track, rotdelay 4 ms",
        target: "vax750-sc750-eagle",
        settings: &[
            ("filesystem", "4k"),
            ("drive", "cdc9775"),
            ("drives", "1"),
            ("filesystem.rotdelay_ms", "4"),
        ],
        call_bytes: &[4096],
    },
];

/// Modelled figures for each file layout and call size.
pub(super) struct SpeckResults {
    figures_by_layout: Vec<Vec<ModelFigures>>,
}

impl SpeckResults {
    /// Runs all file layouts with all call sizes.
    pub(super) fn run_layouts(asking: &ModelQueries<'_>) -> Result<Self, LaboratoryError> {
        let mut jobs = Vec::new();
        for layout in &SPECK_LAYOUTS {
            let own = parse_settings(layout.settings);
            for call_bytes in layout.call_bytes {
                jobs.push(asking.build_job(
                    layout.target,
                    &own,
                    read_program(*call_bytes),
                    READ_BYTES,
                )?);
            }
        }
        let mut done = asking.run_figures(&jobs)?.into_iter();
        let figures = SPECK_LAYOUTS
            .iter()
            .map(|layout| done.by_ref().take(layout.call_bytes.len()).collect());
        Ok(Self {
            figures_by_layout: figures.collect(),
        })
    }

    /// Returns the modelled values of the cells from the thread of Speck and Bass 1984.
    pub(super) fn cell_values(&self, cells: &[&PublishedCell]) -> CellValues {
        let value = |cell: &&PublishedCell| Some((cell.id.clone()?, self.value_of_cell(cell)?));
        cells.iter().filter_map(value).collect()
    }

    fn rates_of_layout(&self, layout: usize) -> Vec<f64> {
        let rate = |figure: &ModelFigures| figure.kb_per_s / BLOCK_KB;
        self.figures_by_layout[layout].iter().map(rate).collect()
    }

    fn mean_rate(&self, layout: usize) -> f64 {
        let rates = self.rates_of_layout(layout);
        rates.iter().sum::<f64>() / rates.len() as f64
    }

    fn value_of_cell(&self, cell: &PublishedCell) -> Option<f64> {
        let id = cell
            .id
            .as_deref()
            .filter(|_| cell.document() == Some(DOCUMENT_ID))?;
        match id.rsplit('/').next()? {
            "sequential-read-rotdelay-4-ms" => Some(self.mean_rate(0)),
            "sequential-read-rotdelay-7-ms" => Some(self.mean_rate(1) / self.mean_rate(0)),
            "sequential-read-ffs-paper" => Some(self.mean_rate(4)),
            _ => None,
        }
    }

    /// Tests the statements in the thread of Speck and Bass 1984.
    pub(super) fn check_statements(&self) -> Vec<PublishedStatement> {
        vec![
            self.check_same_for_all_sizes(),
            self.check_missed_revolutions(),
            self.check_cause(),
        ]
    }

    fn check_same_for_all_sizes(&self) -> PublishedStatement {
        let mut findings = Vec::new();
        let mut widest: f64 = 0.0;
        for (layout, what) in [(0, "4 ms"), (1, "7 ms")] {
            let rates = self.rates_of_layout(layout);
            for (call_bytes, rate) in CALL_BYTES.iter().zip(&rates) {
                findings.push(Finding::new(
                    &format!("rotdelay {what}, read of {} KiB", call_bytes >> 10),
                    *rate,
                    "blocks/s",
                ));
            }
            let most = rates.iter().copied().fold(0.0, f64::max);
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            widest = widest.max(most / least - 1.0);
        }
        build_statement(
            "The rate is the same for reads of 2 to 64 KiB.",
            findings,
            Some(widest <= 0.03),
            format!("The sizes differ by {:.1} % at most.", 100.0 * widest),
        )
    }

    fn check_missed_revolutions(&self) -> PublishedStatement {
        let figure = &self.figures_by_layout[2][0];
        let share =
            100.0 * figure.missed_revolution_count as f64 / figure.request_count.max(1) as f64;
        build_statement(
            "On an Eagle, about half of the 4 KB transfers miss their slot.",
            vec![
                Finding::new("transfers that lost a revolution", share, "%"),
                Finding::new(SPECK_LAYOUTS[2].description, self.mean_rate(2), "blocks/s"),
            ],
            Some((40.0..=60.0).contains(&share)),
            "The same turnaround that misses every slot of the 9775 misses about half of the \
             Eagle's, whose slots are spaced differently."
                .to_owned(),
        )
    }

    fn check_cause(&self) -> PublishedStatement {
        let (here, sc780, paper) = (self.mean_rate(0), self.mean_rate(3), self.mean_rate(4));
        build_statement(
            "The 11/750 of the fast file system paper got 116 blocks/s from a drive of the same \
             speed and track; this 11/780 gets 40.",
            vec![
                Finding::new("the SI 9900, rotdelay 4 ms", here, "blocks/s"),
                Finding::new(SPECK_LAYOUTS[3].description, sc780, "blocks/s"),
                Finding::new(SPECK_LAYOUTS[4].description, paper, "blocks/s"),
            ],
            Some(sc780 > 2.0 * here),
            format!(
                "It is the controller. Two blocks are 4.17 ms apart on such a track; the SI 9900 \
                 answers later than that allows, so that every block waits a revolution more, \
                 and a faster processor does not help. With a controller that answers at once \
                 the same 11/780 reads {sc780:.0} blocks/s, and an 11/750 {paper:.0}."
            ),
        )
    }
}

fn read_program(call_bytes: u64) -> Program {
    let mut program = Program::from_name("read_8192").expect("the battery has read_8192");
    program
        .set_parameter("call_bytes", &call_bytes.to_string())
        .expect("it reads with any size of call");
    program
}

fn build_statement(
    text: &str,
    findings: Vec<Finding>,
    holds: Option<bool>,
    conclusion: String,
) -> PublishedStatement {
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: text.to_owned(),
        findings,
        is_confirmed: holds,
        conclusion,
    }
}
