//! Speck and Bass 1984: a file of 6400 KB, read in a tight loop with calls of 2 to 64 KiB, on
//! layouts with a rotational delay of 4 ms and of 7 ms.

use super::asking::{Asking, Values, settings};
use super::jobs::Figure;
use diskperf_analysis::accuracy::{Finding, Statement};
use diskperf_battery::Program;
use diskperf_catalogue::Cell;
use diskperf_models::LaboratoryError;

pub(super) const DOCUMENT: &str = "speck-bass-1984";
const SYSTEM: &str = "vax780-si9900-cdc9775";
const SIZE_BYTES: u64 = 6400 << 10;
const BLOCK_KB: f64 = 4.0;
/// Call sizes in bytes: 2^11 to 2^16.
const CALLS: [u64; 6] = [2048, 4096, 8192, 16_384, 32_768, 65_536];

struct Layout {
    what: &'static str,
    target: &'static str,
    settings: &'static [(&'static str, &'static str)],
    calls: &'static [u64],
}

const LAYOUTS: [Layout; 5] = [
    Layout {
        what: "rotdelay 4 ms",
        target: SYSTEM,
        settings: &[("filesystem.rotdelay_ms", "4")],
        calls: &CALLS,
    },
    Layout {
        what: "rotdelay 7 ms",
        target: SYSTEM,
        settings: &[("filesystem.rotdelay_ms", "7")],
        calls: &CALLS,
    },
    Layout {
        what: "an Eagle in the same place, rotdelay 4 ms",
        target: SYSTEM,
        settings: &[("drive", "eagle"), ("filesystem.rotdelay_ms", "4")],
        calls: &[4096],
    },
    Layout {
        what: "the SC780 in place of the SI 9900, rotdelay 4 ms",
        target: SYSTEM,
        settings: &[("controller", "sc780"), ("filesystem.rotdelay_ms", "4")],
        calls: &[4096],
    },
    Layout {
        what: "an SC750 on an 11/750, a drive of the same 32 sectors a track, rotdelay 4 ms",
        target: "vax750-sc750-eagle",
        settings: &[
            ("filesystem", "4k"),
            ("drive", "cdc9775"),
            ("drives", "1"),
            ("filesystem.rotdelay_ms", "4"),
        ],
        calls: &[4096],
    },
];

/// Modelled figures for each file layout and call size.
pub(super) struct Speck {
    figures: Vec<Vec<Figure>>,
}

impl Speck {
    /// Runs all file layouts with all call sizes.
    pub(super) fn run(asking: &Asking<'_>) -> Result<Self, LaboratoryError> {
        let mut jobs = Vec::new();
        for layout in &LAYOUTS {
            let own = settings(layout.settings);
            for call_bytes in layout.calls {
                jobs.push(asking.job(layout.target, &own, read(*call_bytes), SIZE_BYTES)?);
            }
        }
        let mut done = asking.figures(&jobs)?.into_iter();
        let figures = LAYOUTS
            .iter()
            .map(|layout| done.by_ref().take(layout.calls.len()).collect());
        Ok(Self {
            figures: figures.collect(),
        })
    }

    /// Returns the modelled values of the cells from the thread of Speck and Bass 1984.
    pub(super) fn values(&self, cells: &[&Cell]) -> Values {
        let value = |cell: &&Cell| Some((cell.id.clone()?, self.value(cell)?));
        cells.iter().filter_map(value).collect()
    }

    fn rates(&self, layout: usize) -> Vec<f64> {
        let rate = |figure: &Figure| figure.kb_per_s / BLOCK_KB;
        self.figures[layout].iter().map(rate).collect()
    }

    fn mean(&self, layout: usize) -> f64 {
        let rates = self.rates(layout);
        rates.iter().sum::<f64>() / rates.len() as f64
    }

    fn value(&self, cell: &Cell) -> Option<f64> {
        let id = cell
            .id
            .as_deref()
            .filter(|_| cell.document() == Some(DOCUMENT))?;
        match id.rsplit('/').next()? {
            "sequential-read-rotdelay-4-ms" => Some(self.mean(0)),
            "sequential-read-rotdelay-7-ms" => Some(self.mean(1) / self.mean(0)),
            "sequential-read-ffs-paper" => Some(self.mean(4)),
            _ => None,
        }
    }

    /// Tests the statements in the thread of Speck and Bass 1984.
    pub(super) fn statements(&self) -> Vec<Statement> {
        vec![self.same_for_all_sizes(), self.missed(), self.why()]
    }

    fn same_for_all_sizes(&self) -> Statement {
        let mut findings = Vec::new();
        let mut widest: f64 = 0.0;
        for (layout, what) in [(0, "4 ms"), (1, "7 ms")] {
            let rates = self.rates(layout);
            for (call_bytes, rate) in CALLS.iter().zip(&rates) {
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
        statement(
            "The rate is the same for reads of 2 to 64 KiB.",
            findings,
            Some(widest <= 0.03),
            format!("The sizes differ by {:.1} % at most.", 100.0 * widest),
        )
    }

    fn missed(&self) -> Statement {
        let figure = &self.figures[2][0];
        let share = 100.0 * figure.missed as f64 / figure.requests.max(1) as f64;
        statement(
            "On an Eagle, about half of the 4 KB transfers miss their slot.",
            vec![
                Finding::new("transfers that lost a revolution", share, "%"),
                Finding::new(LAYOUTS[2].what, self.mean(2), "blocks/s"),
            ],
            Some((40.0..=60.0).contains(&share)),
            "The same turnaround that misses every slot of the 9775 misses about half of the \
             Eagle's, whose slots are spaced differently."
                .to_owned(),
        )
    }

    fn why(&self) -> Statement {
        let (here, sc780, paper) = (self.mean(0), self.mean(3), self.mean(4));
        statement(
            "The 11/750 of the fast file system paper got 116 blocks/s from a drive of the same \
             speed and track; this 11/780 gets 40.",
            vec![
                Finding::new("the SI 9900, rotdelay 4 ms", here, "blocks/s"),
                Finding::new(LAYOUTS[3].what, sc780, "blocks/s"),
                Finding::new(LAYOUTS[4].what, paper, "blocks/s"),
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

fn read(call_bytes: u64) -> Program {
    let mut program = Program::from_name("read_8192").expect("the battery has read_8192");
    program
        .set_parameter("call_bytes", &call_bytes.to_string())
        .expect("it reads with any size of call");
    program
}

fn statement(
    text: &str,
    findings: Vec<Finding>,
    holds: Option<bool>,
    conclusion: String,
) -> Statement {
    Statement {
        published: DOCUMENT.to_owned(),
        statement: text.to_owned(),
        findings,
        holds,
        conclusion,
    }
}
