//! The accuracy card: the page in the repository is what the models give, and
//! what they give does not depend on who runs them.

use diskperf_analysis::accuracy::{AccuracyCard, CellQuantity, CellRole, FreeParameterOrigin};
use diskperf_analysis::report::{self, ReportFormat};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_laboratory::reproduce::{ReproduceOptions, reproduce};
use std::collections::BTreeSet;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ACCURACY.md");

fn card(options: ReproduceOptions) -> AccuracyCard {
    reproduce(&Catalogue::embedded(), &options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_page_is_what_the_models_give_on_any_number_of_threads() {
    let two = card(ReproduceOptions {
        thread_count: 2,
        ..ReproduceOptions::default()
    });
    let one = card(ReproduceOptions {
        thread_count: 1,
        ..ReproduceOptions::default()
    });
    assert!(one == two, "the card depends on the number of threads");
    let page = report::render_card(&two, ReportFormat::Markdown, 0);
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differing = kept.lines().zip(page.lines()).find(|(old, new)| old != new);
    assert!(
        kept == page,
        "ACCURACY.md is stale; make it anew: diskperf reproduce --format markdown > ACCURACY.md\n\
         the first line that differs: {differing:#?}"
    );
    every_published_cell_is_there(&two);
    free_parameters_are_free(&two);
}

fn every_published_cell_is_there(card: &AccuracyCard) {
    let published = Catalogue::embedded().published_values().unwrap();
    let ids: BTreeSet<&str> = card.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids.len(), card.cells.len(), "an id stands twice");
    for document in &card.documents {
        for printed in published.cells_of_document(document).unwrap() {
            let id = printed.id.as_deref().unwrap();
            let cell = card.cells.iter().find(|cell| cell.id == id);
            let cell = cell.unwrap_or_else(|| panic!("{id} is missing"));
            assert_eq!(cell.is_scored, printed.is_scored, "{id}");
            assert_eq!(cell.same_as_cell, printed.scored_as, "{id}");
            let values = [
                printed.kb_per_s,
                printed.blocks_per_s,
                printed.minutes,
                printed.real_s,
                printed.ratio,
            ];
            let value = values.into_iter().find_map(|value| value);
            assert_eq!(cell.printed_value, value, "{id}");
            // Context of machines that are not here has no model.
            let modelled = cell.modelled_value.is_some_and(|value| value > 0.0);
            assert!(modelled || cell.target.is_none(), "{id}");
            assert_eq!(
                cell.phase_count,
                if cell.drives > 1 { 16 } else { 1 },
                "{id}"
            );
            let by_chance = cell.drives == 1 && id.contains("initial-arbitration");
            assert_eq!(cell.seed_count, if by_chance { 4 } else { 1 }, "{id}");
            assert_eq!(
                cell.seed_range.is_some(),
                cell.phase_count * cell.seed_count > 1,
                "{id}"
            );
            if printed.has_cpu_share {
                let share = card
                    .cells
                    .iter()
                    .find(|cell| cell.id == format!("{id}#cpu"));
                let share = share.unwrap_or_else(|| panic!("{id}#cpu is missing"));
                assert_eq!(share.quantity, CellQuantity::CpuPercent);
                assert_eq!(
                    share.is_scored,
                    printed.is_scored && printed.drives == Some(1),
                    "{id}"
                );
            }
            if !printed.is_measured {
                assert_eq!(cell.role, CellRole::Prediction, "{id}");
                assert_eq!(cell.error, None, "{id}");
            }
        }
    }
}

fn free_parameters_are_free(card: &AccuracyCard) {
    let parameters = &card.parameters;
    assert_eq!(parameters.calibrated_count, parameters.list.len());
    assert_eq!(
        parameters.calibrated_count,
        parameters.fitted_count + parameters.set_by_hand_count + parameters.assumed_count
    );
    for parameter in &parameters.list {
        let starts = match parameter.origin {
            FreeParameterOrigin::Fitted => "calibrated on:",
            FreeParameterOrigin::SetByHand => "calibrated by hand on:",
            FreeParameterOrigin::Assumed => "assumed:",
        };
        let (path, source) = (&parameter.path, &parameter.source_document);
        assert!(source.starts_with(starts), "{path}: {source}");
        let by_cells = parameter.origin != FreeParameterOrigin::Assumed;
        assert_eq!(by_cells, !parameter.cells.is_empty(), "{path}");
    }
}

#[test]
fn a_cell_that_a_number_was_chosen_by_is_no_prediction() {
    let card = card(ReproduceOptions {
        documents: vec!["zachariassen-1987".to_owned()],
        ..ReproduceOptions::default()
    });
    for parameter in &card.parameters.list {
        for id in &parameter.cells {
            let cell = card.cells.iter().find(|cell| cell.id == *id);
            let Some(cell) = cell else { continue };
            if cell.error.is_none() {
                // Nothing was measured that a number could have been chosen by.
                continue;
            }
            assert_eq!(cell.role, CellRole::Calibration, "{id}: {}", parameter.path);
        }
    }
    let all = &card.summary[2];
    let parts = &card.summary[..2];
    assert_eq!(
        all.cell_count,
        parts.iter().map(|part| part.cell_count).sum::<usize>()
    );
    assert!(parts.iter().all(|part| part.cell_count > 0), "{parts:?}");
}

#[test]
fn a_part_of_the_card_is_as_in_the_whole() {
    let part = card(ReproduceOptions {
        cell_patterns: vec!["*T2/vax780-sc780-eagle/8K/*/1".to_owned()],
        ..ReproduceOptions::default()
    });
    assert_eq!(
        part.cells.len(),
        8,
        "four programs, each with its CPU share"
    );
    assert!(
        part.statements.is_empty(),
        "statements need the whole document"
    );
    assert!(part.cells.iter().all(|cell| cell.table_title == "T2"));
    let changed = card(ReproduceOptions {
        cell_patterns: vec!["*T2/vax780-sc780-eagle/8K/*/1".to_owned()],
        settings: vec![Setting {
            path: "drive.spindle_rpm".to_owned(),
            value_text: "1980".to_owned(),
        }],
        ..ReproduceOptions::default()
    });
    for (before, after) in part.cells.iter().zip(&changed.cells) {
        if before.quantity == CellQuantity::KbPerS {
            assert!(
                after.modelled_value < before.modelled_value,
                "{}",
                before.id
            );
        }
    }
    assert_eq!(changed.settings, ["drive.spindle_rpm=1980"]);
}

#[test]
fn what_cannot_be_reproduced_is_said() {
    let error = |options: ReproduceOptions| {
        let error = reproduce(&Catalogue::embedded(), &options).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let misspelt = error(ReproduceOptions {
        documents: vec!["kridle-mckusik-1983".to_owned()],
        ..ReproduceOptions::default()
    });
    assert!(misspelt.contains("kridle-mckusick-1983"), "{misspelt}");
    let nothing = error(ReproduceOptions {
        table_title: Some("T9".to_owned()),
        ..ReproduceOptions::default()
    });
    assert!(
        nothing.contains("T9") && nothing.contains("T2"),
        "{nothing}"
    );
}
