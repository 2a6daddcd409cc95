//! The accuracy card: the page in the repository is what the models give, and
//! what they give does not depend on who runs them.

use diskperf_analysis::accuracy::{Card, Choice, Quantity, Role};
use diskperf_analysis::report::{self, Format};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_laboratory::reproduce::{Options, reproduce};
use std::collections::BTreeSet;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ACCURACY.md");

fn card(options: Options) -> Card {
    reproduce(&Catalogue::embedded(), &options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_page_is_what_the_models_give_on_any_number_of_threads() {
    let two = card(Options {
        threads: 2,
        ..Options::default()
    });
    let one = card(Options {
        threads: 1,
        ..Options::default()
    });
    assert!(one == two, "the card depends on the number of threads");
    let page = report::card(&two, Format::Markdown, 0);
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

fn every_published_cell_is_there(card: &Card) {
    let published = Catalogue::embedded().published().unwrap();
    let ids: BTreeSet<&str> = card.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids.len(), card.cells.len(), "an id stands twice");
    for document in &card.documents {
        for printed in published.of_document(document).unwrap() {
            let id = printed.id.as_deref().unwrap();
            let cell = card.cells.iter().find(|cell| cell.id == id);
            let cell = cell.unwrap_or_else(|| panic!("{id} is missing"));
            assert_eq!(cell.scored, printed.scored, "{id}");
            assert_eq!(cell.same_as, printed.same_as, "{id}");
            let values = [
                printed.kb_per_s,
                printed.blocks_per_s,
                printed.minutes,
                printed.real_s,
                printed.ratio,
            ];
            let value = values.into_iter().find_map(|value| value);
            assert_eq!(cell.printed, value, "{id}");
            // Context of machines that are not here has no model.
            let modelled = cell.modelled.is_some_and(|value| value > 0.0);
            assert!(modelled || cell.target.is_none(), "{id}");
            assert_eq!(cell.phases, if cell.drives > 1 { 16 } else { 1 }, "{id}");
            let by_chance = cell.drives == 1 && id.contains("initial-arbitration");
            assert_eq!(cell.seeds, if by_chance { 4 } else { 1 }, "{id}");
            assert_eq!(cell.spread.is_some(), cell.phases * cell.seeds > 1, "{id}");
            if printed.cpu_given {
                let share = card
                    .cells
                    .iter()
                    .find(|cell| cell.id == format!("{id}#cpu"));
                let share = share.unwrap_or_else(|| panic!("{id}#cpu is missing"));
                assert_eq!(share.quantity, Quantity::CpuPercent);
                assert_eq!(
                    share.scored,
                    printed.scored && printed.drives == Some(1),
                    "{id}"
                );
            }
            if !printed.measured {
                assert_eq!(cell.role, Role::Prediction, "{id}");
                assert_eq!(cell.error, None, "{id}");
            }
        }
    }
}

fn free_parameters_are_free(card: &Card) {
    let parameters = &card.parameters;
    assert_eq!(parameters.calibrated, parameters.list.len());
    assert_eq!(
        parameters.calibrated,
        parameters.fitted + parameters.by_hand + parameters.assumed
    );
    for parameter in &parameters.list {
        let starts = match parameter.choice {
            Choice::Fitted => "calibrated on:",
            Choice::ByHand => "calibrated by hand on:",
            Choice::Assumed => "assumed:",
        };
        let (path, source) = (&parameter.path, &parameter.source);
        assert!(source.starts_with(starts), "{path}: {source}");
        let by_cells = parameter.choice != Choice::Assumed;
        assert_eq!(by_cells, !parameter.cells.is_empty(), "{path}");
    }
}

#[test]
fn a_cell_that_a_number_was_chosen_by_is_no_prediction() {
    let card = card(Options {
        documents: vec!["zachariassen-1987".to_owned()],
        ..Options::default()
    });
    for parameter in &card.parameters.list {
        for id in &parameter.cells {
            let cell = card.cells.iter().find(|cell| cell.id == *id);
            let Some(cell) = cell else { continue };
            if cell.error.is_none() {
                // Nothing was measured that a number could have been chosen by.
                continue;
            }
            assert_eq!(cell.role, Role::Calibration, "{id}: {}", parameter.path);
        }
    }
    let all = &card.summary[2];
    let parts = &card.summary[..2];
    assert_eq!(
        all.cells,
        parts.iter().map(|part| part.cells).sum::<usize>()
    );
    assert!(parts.iter().all(|part| part.cells > 0), "{parts:?}");
}

#[test]
fn a_part_of_the_card_is_as_in_the_whole() {
    let part = card(Options {
        cells: vec!["*T2/vax780-sc780-eagle/8K/*/1".to_owned()],
        ..Options::default()
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
    assert!(part.cells.iter().all(|cell| cell.table == "T2"));
    let changed = card(Options {
        cells: vec!["*T2/vax780-sc780-eagle/8K/*/1".to_owned()],
        settings: vec![Setting {
            path: "drive.spindle_rpm".to_owned(),
            value_text: "1980".to_owned(),
        }],
        ..Options::default()
    });
    for (before, after) in part.cells.iter().zip(&changed.cells) {
        if before.quantity == Quantity::KbPerS {
            assert!(after.modelled < before.modelled, "{}", before.id);
        }
    }
    assert_eq!(changed.settings, ["drive.spindle_rpm=1980"]);
}

#[test]
fn what_cannot_be_reproduced_is_said() {
    let error = |options: Options| {
        let error = reproduce(&Catalogue::embedded(), &options).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let misspelt = error(Options {
        documents: vec!["kridle-mckusik-1983".to_owned()],
        ..Options::default()
    });
    assert!(misspelt.contains("kridle-mckusick-1983"), "{misspelt}");
    let nothing = error(Options {
        table: Some("T9".to_owned()),
        ..Options::default()
    });
    assert!(
        nothing.contains("T9") && nothing.contains("T2"),
        "{nothing}"
    );
}
