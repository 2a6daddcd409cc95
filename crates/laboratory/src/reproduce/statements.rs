//! Statements in the text of Kridle and McKusick 1983, each tested by runs that differ in one
//! parameter.

use super::asking::{self, ModelQueries};
use super::setups::{CellSetup, ModelledPlace, TablePlace, run_figures};
use diskperf_analysis::accuracy::{Finding, PublishedStatement};
use diskperf_models::LaboratoryError;
use std::collections::BTreeMap;

pub(super) const DOCUMENT_ID: &str = "kridle-mckusick-1983";
const PROGRAM_NAMES: [&str; 4] = ["read_8192", "write_4096", "write_8192", "rewrite_8192"];
const FILESYSTEM_NAMES: [&str; 2] = ["8k", "4k"];

type FiguresByPlace = BTreeMap<TablePlace, ModelledPlace>;

/// Tests all statements in the text of Kridle and McKusick 1983.
pub(super) fn check_statements(
    asking: &ModelQueries<'_>,
) -> Result<Vec<PublishedStatement>, LaboratoryError> {
    Ok(vec![
        check_search_lead(asking)?,
        check_driver_share(asking)?,
        check_reads_first(asking)?,
    ])
}

impl ModelQueries<'_> {
    /// Runs all programs on the given file systems, on one drive of a system.
    fn run_one_drive(
        &self,
        target: &str,
        filesystems: &[&str],
        settings: &[(&str, &str)],
    ) -> Result<FiguresByPlace, LaboratoryError> {
        let mut places = Vec::new();
        for filesystem in filesystems {
            places.extend(PROGRAM_NAMES.iter().map(|program| TablePlace {
                setup: CellSetup {
                    target: target.to_owned(),
                    filesystem: (*filesystem).to_owned(),
                    drive_count: 1,
                },
                program: (*program).to_owned(),
            }));
        }
        let all = self.own_settings_last(&asking::parse_settings(settings));
        let places: Vec<&TablePlace> = places.iter().collect();
        let places = (places.as_slice(), self.seed);
        run_figures(self.catalogue, &all, places, self.two_drives, self.workshop)
    }
}

/// Returns the gains of one set of runs compared with another, in percent, each with its name.
fn list_gains(before: &FiguresByPlace, after: &FiguresByPlace) -> Vec<Finding> {
    before
        .iter()
        .map(|(place, old)| Finding {
            subject: format!(
                "{} {}: {:.0} to {:.0} KB/s",
                place.setup.filesystem.to_uppercase(),
                place.program,
                old.kb_per_s.mean,
                after[place].kb_per_s.mean
            ),
            value: 100.0 * (after[place].kb_per_s.mean / old.kb_per_s.mean - 1.0),
            unit: "%".to_owned(),
        })
        .collect()
}

fn largest_value(findings: &[Finding]) -> f64 {
    findings
        .iter()
        .map(|finding| finding.value.abs())
        .fold(0.0, f64::max)
}

fn check_search_lead(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let target = "vax780-sc780-eagle:inadequate-lead-initial-arbitration";
    let before = asking.run_one_drive(target, &FILESYSTEM_NAMES, &[])?;
    let after = asking.run_one_drive(target, &FILESYSTEM_NAMES, &[("driver", "hp-1983-07")])?;
    let findings = list_gains(&before, &after);
    let most = findings.iter().map(|one| one.value).fold(0.0, f64::max);
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "Correcting the search constants raises throughput by over 20 % in some cases."
            .to_owned(),
        is_confirmed: Some(most > 20.0),
        conclusion: format!(
            "With the driver's constants alone changed, on the same file systems and the same \
             arbitration, one drive gains up to {most:.0} %."
        ),
        findings,
    })
}

fn check_driver_share(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let mut findings = Vec::new();
    let mut all_within = true;
    for target in ["vax780-sc780-eagle", "vax780-uda50-ra81"] {
        let figures = asking.run_one_drive(target, &FILESYSTEM_NAMES[..1], &[])?;
        let mut sum = 0.0;
        for (place, figure) in &figures {
            let percent = 100.0 * figure.driver_share;
            sum += percent / figures.len() as f64;
            findings.push(Finding {
                subject: format!("{target}, {}", place.program),
                value: percent,
                unit: "%".to_owned(),
            });
        }
        findings.push(Finding {
            subject: format!("{target}, mean of the programs"),
            value: sum,
            unit: "%".to_owned(),
        });
        all_within &= (9.5..14.5).contains(&sum);
    }
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "The driver takes 10 to 14 % of the processor's time, for the SC780 as for \
                    the UDA50."
            .to_owned(),
        findings,
        is_confirmed: Some(all_within),
        conclusion:
            "The share of all processor work that is the driver's routines, in the programs' \
                     calls and in the handlers of the disks' interrupts; entering a handler is \
                     not counted."
                .to_owned(),
    })
}

/// Compares the queue order that the paper of 1983 describes with that of the kernel's source code.
fn check_reads_first(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let mut findings = Vec::new();
    for target in ["vax780-sc780-eagle", "vax780-uda50-ra81"] {
        let before = asking.run_one_drive(
            target,
            &FILESYSTEM_NAMES[..1],
            &[("kernel.disksort", "1983")],
        )?;
        let changed = [("kernel.disksort", "reads-first")];
        let after = asking.run_one_drive(target, &FILESYSTEM_NAMES[..1], &changed)?;
        findings.extend(
            list_gains(&before, &after)
                .into_iter()
                .map(|finding| Finding {
                    subject: format!("{target}, {}", finding.subject),
                    ..finding
                }),
        );
    }
    // Only what allocates reads maps. On the UDA50 the other programs show how
    // far another draw of the controller's times moves a rate.
    let allocating = findings
        .iter()
        .filter(|finding| finding.subject.contains(" write_"));
    let most = largest_value(&allocating.cloned().collect::<Vec<_>>());
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "In a single queue a read of the map waits behind the queued writes and idles \
                    the disk."
            .to_owned(),
        findings,
        is_confirmed: None,
        conclusion: format!(
            "Letting reads pass the queued writes changes the rate of the programs that allocate \
             by {most:.1} % at most: the queued writes keep the drive busy meanwhile, and 8 MB need few such reads."
        ),
    })
}
